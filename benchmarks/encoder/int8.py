"""Our encoder in whole numbers beside our floats and beside PyTorch and ONNX Runtime in both: forward passes, interleaved.

    python3 benchmarks/encoder/int8.py                  # about 5 minutes for 1 and 2 threads
    python3 benchmarks/encoder/int8.py --threads 1      # one thread only
    python3 benchmarks/encoder/int8.py --python PATH    # a Python that has torch, transformers, onnx, onnxruntime

Writes benchmarks/encoder/results/DATE-int8.md. Batches are those of run.py and one sentence of 10 words (14 pieces). `each` reads
the ragged batch one sequence after the other, without padding. In every round each stack has its turn, one after the other: a pause, in
which the threads of the one before fall asleep (those of PyTorch and ONNX Runtime wait awake for a while), then its passes; a
ratio is the median over the passes of (their time / our int8 time).
"""

import argparse
import datetime
import pathlib
import statistics
import tempfile
import time

import run
from common import commit, environment, processor

OURS = ["int8", "avx-vnni", "avx2", "f32"]
PEERS = ["torch", "torch-int8", "onnx", "onnx-int8"]
PAUSE = 0.3  # seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", help="an interpreter that has " + ", ".join(run.PACKAGES))
    parser.add_argument("--rounds", type=int, default=15, help="repetitions of every measurement")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--out", type=pathlib.Path, default=run.HERE / "results")
    parser.add_argument("--name", default=f"{datetime.date.today().isoformat()}-int8", help="of the page")
    arguments = parser.parse_args()
    python = arguments.python or environment("benchmark-venv", run.PACKAGES)
    run.build()
    with tempfile.TemporaryDirectory() as scratch:
        bench = run.Bench(pathlib.Path(scratch), python, arguments.rounds)
        rows = [row for threads in arguments.threads for row in compare(bench, threads)]
        differences = difference(bench)
    write(arguments.out / f"{arguments.name}.md", rows, differences, arguments)


def compare(bench, threads):
    workers = {}
    for stack in OURS + PEERS:
        worker = bench.worker(stack, "MiniLM-L6", threads)
        try:
            worker.ask("memory")
            workers[stack] = worker
        except (RuntimeError, BrokenPipeError):  # It ended: this machine has no such unit.
            assert stack in OURS[1:3], f"{stack} does not start"
    batches = {"ragged": run.ragged_lengths(), "equal": [32] * 24, "one": [14]}
    for name, lengths in batches.items():
        path = bench.batch_file(lengths)
        for worker in workers.values():
            worker.ask(f"batch {path}")
        for command in ["forward", "each"] if name == "ragged" else ["forward"]:
            passes = 60 if name == "one" else 1
            yield dict(threads=threads, batch=name, command=command, seconds=measure(workers, command, bench.rounds, passes))
    for worker in workers.values():
        worker.__exit__()


def measure(workers, command, rounds, passes):
    """The seconds of every stack; every turn begins with passes that do not count, in which weights come back to the caches."""
    seconds = {stack: [] for stack in workers}
    for _ in range(rounds):
        for stack, worker in workers.items():
            time.sleep(PAUSE)
            for _ in range(1 + passes // 3):
                worker.ask(command)
            seconds[stack] += [worker.ask(command) for _ in range(passes)]
    return seconds


def difference(bench):
    with bench.worker("int8", "MiniLM-L6", 1) as worker:
        worker.ask(f"batch {bench.batch_file(run.ragged_lengths())}")
        return worker.ask("difference")


def write(path, rows, differences, arguments):
    stacks = [stack for stack in OURS + PEERS if stack in rows[0]["seconds"]]
    names = {"int8": "fewtag int8", "avx-vnni": "… by AVX-VNNI", "avx2": "… by AVX2", "f32": "fewtag f32", "torch": "PyTorch",
             "torch-int8": "PyTorch int8", "onnx": "ONNX Runtime", "onnx-int8": "ONNX Runtime int8"}
    lines = [f"# int8 encoder benchmark, {arguments.name}", "",
             f"Machine: {processor()}. Commit {commit()}. MiniLM-L6 shape, random weights. Milliseconds, and in brackets how many times the time "
             f"of fewtag int8, medians of {arguments.rounds} interleaved rounds (of 60 passes for one sentence). `int8` runs on the best unit of "
             "the machine.", "",
             "| threads | batch | " + " | ".join(names[stack] for stack in stacks) + " |", "|---" * (len(stacks) + 2) + "|"]
    for row in rows:
        ours = row["seconds"]["int8"]
        cells = [f"{statistics.median(ours) * 1e3:.2f}"]
        for stack in stacks[1:]:
            theirs = row["seconds"][stack]
            ratio = statistics.median(b / a for a, b in zip(ours, theirs))
            cells.append(f"{statistics.median(theirs) * 1e3:.2f} ({ratio:.2f}×)")
        batch = f"{row['batch']}, one by one" if row["command"] == "each" else row["batch"]
        lines.append(f"| {row['threads']} | {batch} | " + " | ".join(cells) + " |")
    largest, mean = differences
    lines += ["", f"Hidden rows beside f32, random weights, ragged batch: largest difference {largest:.3f}, root mean square {mean:.4f}; "
              "the numbers themselves have a root mean square of 1."]
    path.write_text("\n".join(lines) + "\n")
    print(path)


if __name__ == "__main__":
    main()
