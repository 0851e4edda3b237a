"""Our encoder beside PyTorch and ONNX Runtime: the same batches, interleaved, as a table of ratios.

    python3 benchmarks/encoder/run.py                 # sets up everything, runs everything: about 20 minutes
    python3 benchmarks/encoder/run.py --rounds 5      # fewer repetitions
    python3 benchmarks/encoder/run.py --python PATH   # a Python that has torch, transformers, onnx, onnxruntime

Writes benchmarks/encoder/results/DATE.md and DATE-*.svg. Needs about 8 GB of disk for PyTorch, and Linux.

In every round each stack does one step, one after the other, so that a change of the machine's clock or load hits
all of them; a ratio is the median over the rounds of (their time / our time). Memory is the peak of a process that
did nothing but the training steps.
"""

import argparse
import datetime
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import plot  # noqa: E402
from common import ROOT, commit, environment, processor  # noqa: E402

PACKAGES = ["torch", "transformers", "onnx", "onnxruntime"]
BERT = dict(architectures=["BertModel"], model_type="bert", vocab_size=30522, max_position_embeddings=512,
            type_vocab_size=2, hidden_act="gelu", layer_norm_eps=1e-12)
SHAPES = {
    "MiniLM-L6": dict(BERT, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536),
    "bert-base": dict(BERT, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072),
}
STACKS = ["fewtag", "torch", "onnx"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", help="an interpreter that has " + ", ".join(PACKAGES))
    parser.add_argument("--rounds", type=int, default=15, help="repetitions of every measurement")
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "results")
    arguments = parser.parse_args()
    python = arguments.python or environment("benchmark-venv", PACKAGES)
    build()
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(pathlib.Path(scratch), python, arguments.rounds)
        peaks = {threads: bench.peak(threads) for threads in arguments.threads}
        products = {shape: bench.products(shape) for shape in arguments.shapes}
        rows = [row for shape in arguments.shapes for threads in arguments.threads
                for row in bench.compare(shape, threads, peaks[threads])]
        growth = bench.growth(max(arguments.threads))
    write_report(arguments.out, rows, growth, peaks, products, python)


def build():
    command = ["cargo", "build", "--release", "--quiet", "--package", "fewtag", "--example", "encoder_worker"]
    subprocess.run(command, cwd=ROOT, check=True)


class Worker:
    """A process of one stack that takes commands; see peers.py."""

    def __init__(self, stack, python, config, threads):
        ours = {"fewtag": "f32", "f32": "f32", "int8": "int8", "avx-vnni": "avx-vnni", "avx2": "avx2"}
        if stack in ours:
            worker = ROOT / "target" / "release" / "examples" / "encoder_worker"
            command = [worker, config, str(threads), ours[stack]]
        else:
            command = [python, HERE / "peers.py", stack, config, str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.DEVNULL)

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.process.args} gave no answer to `{command}`")
        return json.loads(answer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


class Bench:
    def __init__(self, scratch, python, rounds):
        self.scratch, self.python, self.rounds = scratch, python, rounds
        for shape, config in SHAPES.items():
            (scratch / f"{shape}.json").write_text(json.dumps(config))

    def worker(self, stack, shape, threads):
        return Worker(stack, self.python, self.scratch / f"{shape}.json", threads)

    def batch_file(self, lengths):
        """A batch of pairs: random pieces, the second half in segment 1."""
        rng = random.Random(0)
        batch = [{"ids": [rng.randrange(1000, 30000) for _ in range(n)], "segments": [0] * (n - n // 2) + [1] * (n // 2)}
                 for n in lengths]
        path = self.scratch / f"batch-{len(lengths)}-{sum(lengths)}-{max(lengths)}.json"
        path.write_text(json.dumps(batch))
        return path

    def peak(self, threads):
        """The rate of a loop of nothing but fused multiply-adds in registers, in FLOP/s."""
        with self.worker("fewtag", "MiniLM-L6", threads) as worker:
            return max(worker.ask("peak") for _ in range(5))

    def products(self, shape):
        """What share of the peak our products reach alone, on one thread: the most that a forward pass can."""
        with self.worker("fewtag", shape, 1) as worker:
            rates = [(worker.ask("products"), worker.ask("peak")) for _ in range(3)]
        return max(products for products, _ in rates) / max(peak for _, peak in rates)

    def compare(self, shape, threads, peak):
        batches = {"ragged": ragged_lengths(), "equal": [32] * 24}
        for name, lengths in batches.items():
            path = self.batch_file(lengths)
            for command in ["forward", "train"]:
                stacks = STACKS if command == "forward" else STACKS[:2]
                seconds, memory = self.interleaved(stacks, shape, threads, path, command)
                flops = forward_flops(SHAPES[shape], lengths) * (1 if command == "forward" else 3)
                yield dict(shape=shape, threads=threads, batch=name, command=command, seconds=seconds, memory=memory,
                           fraction=flops / statistics.median(seconds["fewtag"]) / peak)

    def interleaved(self, stacks, shape, threads, batch, command):
        """stack -> seconds of each round, stack -> peak bytes."""
        workers = {stack: self.worker(stack, shape, threads) for stack in stacks}
        seconds = {stack: [] for stack in stacks}
        for worker in workers.values():
            worker.ask(f"batch {batch}")
            worker.ask(command)
            worker.ask(command)
        for _ in range(self.rounds):
            for stack, worker in workers.items():
                time.sleep(0.05)  # Until the threads of the stack before have stopped spinning.
                seconds[stack].append(worker.ask(command))
        memory = {stack: worker.ask("memory") for stack, worker in workers.items()}
        for worker in workers.values():
            worker.__exit__()
        report = {stack: round(statistics.median(s) * 1e3, 1) for stack, s in seconds.items()}
        print(f"{shape} {threads} threads {command} {batch.name}: {report} ms", file=sys.stderr)
        return seconds, memory

    def growth(self, threads):
        """Our forward seconds for 1 to 64 pairs of 32 pieces, and for about 2048 pieces in lengths 8 to 512."""
        pairs = {n: [32] * n for n in [1, 2, 4, 8, 16, 32, 64]}
        lengths = {n: [n] * (2048 // n) for n in [8, 16, 32, 64, 128, 256, 512]}
        with self.worker("fewtag", "MiniLM-L6", threads) as worker:
            def per_piece(batch):
                worker.ask(f"batch {self.batch_file(batch)}")
                worker.ask("forward")
                return statistics.median(worker.ask("forward") for _ in range(self.rounds)) / sum(batch)
            return {"pairs": {n: per_piece(batch) for n, batch in pairs.items()},
                    "length": {n: per_piece(batch) for n, batch in lengths.items()}}


def ragged_lengths():
    """24 pairs of 18 to 45 pieces, evenly spread, in a fixed random order."""
    lengths = [18 + round(i * 27 / 23) for i in range(24)]
    random.Random(1).shuffle(lengths)
    return lengths


def forward_flops(config, lengths):
    """Multiply-adds count twice; only real pieces count, and only products."""
    h, f = config["hidden_size"], config["intermediate_size"]
    linear = 2 * (4 * h * h + 2 * h * f) * sum(lengths)
    attention = 2 * 2 * h * sum(n * n for n in lengths)
    return config["num_hidden_layers"] * (linear + attention)


def ratio(row, stack):
    """How many times our time `stack` needs: the median over the rounds."""
    ours, theirs = row["seconds"]["fewtag"], row["seconds"].get(stack)
    return f"{statistics.median(b / a for a, b in zip(ours, theirs)):.2f}×" if theirs else "–"


def write_report(out, rows, growth, peaks, products, python):
    date = datetime.date.today().isoformat()
    out.mkdir(exist_ok=True)
    ms = lambda row, stack: f"{statistics.median(row['seconds'][stack]) * 1e3:.0f}" if stack in row["seconds"] else "–"
    mb = lambda row, stack: f"{row['memory'][stack] / 1e6:.0f}"
    lines = [f"# Encoder benchmark of {date}", "", *machine(python), "",
             "Register FMA peak: " + ", ".join(f"{p / 1e9:.0f} GFLOP/s on {n} thread(s)" for n, p in peaks.items())
             + ". Our products of the linear layers alone reach "
             + ", ".join(f"{share:.0%} of it ({shape})" for shape, share in products.items())
             + " on 1 thread. A training step is forward with dropout 0.1, backward, clipping and AdamW.", "",
             "| shape | threads | batch | step | fewtag ms | PyTorch ms | ONNX ms | PyTorch / fewtag | ONNX / fewtag "
             "| of FMA peak | fewtag MB | PyTorch MB |", "|---" * 12 + "|"]
    for row in rows:
        cells = [row["shape"], row["threads"], row["batch"], row["command"], *(ms(row, s) for s in STACKS),
                 f"**{ratio(row, 'torch')}**", ratio(row, "onnx"), f"{row['fraction']:.0%}",
                 mb(row, "fewtag"), mb(row, "torch")]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    lines += ["", "## How cost grows", "", "MiniLM-L6, forward, all threads: microseconds per piece.", ""]
    titles = {"pairs": "pairs of 32 pieces in a batch", "length": "pieces in a sequence (2048 pieces in all)"}
    for kind, points in growth.items():
        micro = {n: seconds * 1e6 for n, seconds in points.items()}
        lines += [f"| {titles[kind]} | " + " | ".join(map(str, micro)) + " |", "|---" * (len(micro) + 1) + "|",
                  "| µs per piece | " + " | ".join(f"{v:.0f}" for v in micro.values()) + " |", "",
                  f"![{titles[kind]}]({date}-{kind}.svg)", ""]
        (out / f"{date}-{kind}.svg").write_text(plot.curve(micro, titles[kind], "µs per piece"))
    (out / f"{date}.md").write_text("\n".join(lines))
    print(out / f"{date}.md")


def machine(python):
    """What the numbers depend on."""
    command = "import torch, transformers, onnxruntime as o; print(torch.__version__, transformers.__version__, o.__version__)"
    versions = subprocess.run([python, "-c", command], capture_output=True, text=True, check=True).stdout.split()
    load = os.getloadavg()[0]
    return [f"Machine: {processor()}, {os.cpu_count()} cores; load average at the end {load:.1f}. Commit {commit()}. "
            f"PyTorch {versions[0]} (sdpa, fused AdamW), transformers {versions[1]}, ONNX Runtime {versions[2]} "
            "(fp32, fused by its BERT optimiser)."]


if __name__ == "__main__":
    main()
