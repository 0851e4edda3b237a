#!/usr/bin/env python3
"""`fewtag tag` against the same model in PyTorch, interleaved: latency, throughput, start-up. Prints Markdown.

    cargo build --release
    python benchmarks/tag/run.py CORPUS.conll [--rounds 15] [--sample 200] [--threads 2] [--fewtag BINARY]

Python needs torch, transformers and tokenizers. Support sets of 6 and 30 sentences and the sentences to tag come from the corpus.
PyTorch reads the query beside every support sentence (paired), as the paper does; fewtag does the same with `--context paired`, and by
default reads each sentence alone (separate). Latency: one sentence sent to a running process, until its answer is back.
Throughput: PyTorch and paired fewtag on `--sample` sentences in batches of 4 queries, from which the time for the file is
extrapolated; default fewtag on the whole file of 10,000 sentences, loading the model included. A ratio is the median over rounds.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import ROOT, commit, processor  # noqa: E402

SUPPORT_SIZES = (6, 30)
N_FILE = 10_000
BATCH = 4


def read(path: Path) -> list[tuple[list[str], list[str]]]:
    blocks = path.read_text(encoding="utf-8").strip().split("\n\n")
    pairs = [[line.split("\t") for line in block.splitlines()] for block in blocks]
    return [([word for word, _ in pair], [tag for _, tag in pair]) for pair in pairs]


class Side:
    """A process that answers a line with a line."""

    def __init__(self, command: list, ready: bool):
        self.process = subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        if ready:
            assert self.process.stdout.readline().strip() == "ready"

    def ask(self, lines: list[str], n_answers: int) -> tuple[float, list[str]]:
        """Seconds, and the answers."""
        start = time.perf_counter()
        self.process.stdin.write("".join(line + "\n" for line in lines))
        self.process.stdin.flush()
        answers = [self.process.stdout.readline() for _ in range(n_answers)]
        return time.perf_counter() - start, answers

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


class Sides:
    def __init__(self, args, support: list, model: Path, directory: Path):
        (directory / "support.json").write_text(json.dumps(support))
        conll = "\n\n".join("\n".join(f"{w}\t{t}" for w, t in zip(*sentence)) for sentence in support)
        self.support = directory / "support.conll"
        self.support.write_text(conll + "\n", encoding="utf-8")
        worker = Path(__file__).with_name("pytorch_worker.py")
        tag = [args.fewtag, "tag", "--support", self.support, "--jsonl", "--format", "hf"]
        self.pytorch = Side([sys.executable, worker, model, directory / "support.json", args.threads], ready=True)
        self.paired = Side([*tag, "--context", "paired"], ready=False)
        self.separate = Side(tag, ready=False)

    def latencies(self, words: list[str]) -> tuple[list[float], bool]:
        """Seconds of PyTorch, fewtag paired and fewtag separate; whether the first two agree."""
        line = json.dumps({"tokens": words})
        theirs, [tags] = self.pytorch.ask([json.dumps([words])], 1)
        paired, [answer] = self.paired.ask([line], 1)
        separate, _ = self.separate.ask([line], 1)
        return [theirs, paired, separate], json.loads(tags)[0] == json.loads(answer)["ner_tags"]

    def seconds(self, sentences: list[list[str]]) -> tuple[float, float]:
        """PyTorch and fewtag paired on the same sentences."""
        batches = [json.dumps(sentences[i : i + BATCH]) for i in range(0, len(sentences), BATCH)]
        theirs = sum(self.pytorch.ask([batch], 1)[0] for batch in batches)
        ours = sum(self.paired.ask([json.dumps({"tokens": w}) for w in sentences[i : i + BATCH]], len(sentences[i : i + BATCH]))[0]
                   for i in range(0, len(sentences), BATCH))
        return theirs, ours

    def close(self) -> None:
        for side in (self.pytorch, self.paired, self.separate):
            side.close()


def timed(command: list) -> float:
    start = time.perf_counter()
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def compare(args, corpus: list, size: int, model: Path, directory: Path) -> None:
    labelled = [sentence for sentence in corpus if any(tag != "O" for tag in sentence[1])]
    support, queries = labelled[:size], [words for words, _ in corpus[-N_FILE:]]
    sides = Sides(args, support, model, directory)
    rounds = [sides.latencies(words) for words in queries[: args.rounds + 3]][3:]
    times, agree = [of for of, _ in rounds], sum(same for _, same in rounds)
    theirs, paired, separate = (1e3 * median(column) for column in zip(*times))
    by_paired, by_separate = (median(of[0] / of[i] for of in times) for i in (1, 2))
    row = f"| latency, {size} examples | {theirs:.1f} ms | {paired:.1f} ms | {by_paired:.1f}× | {separate:.2f} ms | {by_separate:.1f}× |"
    print(f"{row} {agree} of {len(rounds)} |", flush=True)
    sample = queries[: args.sample * SUPPORT_SIZES[0] // size]
    theirs, paired = (seconds * len(queries) / len(sample) for seconds in sides.seconds(sample))
    sides.close()
    lines = directory / "lines.jsonl"
    lines.write_text("".join(json.dumps({"tokens": words}) + "\n" for words in queries))
    separate = timed([args.fewtag, "tag", "--support", sides.support, "--jsonl", "--format", "jsonl", "--input", lines])
    row = f"| file of {len(queries):,}, {size} examples | {theirs:.0f} s* | {paired:.0f} s* | {theirs / paired:.1f}× "
    print(f"{row}| {separate:.1f} s | {theirs / separate:.0f}× | ({len(sample)} sentences) |", flush=True)


def start_up(fewtag: Path) -> None:
    tag = [fewtag, "tag", "--example", "play [nina simone](artist)", "put on some miles davis"]
    rounds = [(timed([sys.executable, "-c", "import torch"]), timed(tag)) for _ in range(6)][1:]
    theirs, ours = (median(column) for column in zip(*rounds))
    ratio = median(a / b for a, b in rounds)
    print(f"\nStart-up to the first answer: fewtag {ours:.2f} s; `python -c 'import torch'` {theirs:.2f} s ({ratio:.1f}×).")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    for name, value in {"rounds": 15, "sample": 200, "threads": 2}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--fewtag", type=Path, default=ROOT / "target/release/fewtag")
    args = parser.parse_args()
    print(f"{time.strftime('%Y-%m-%d')}, commit {commit()}, {processor()}, {args.threads} threads, corpus {args.corpus.stem}.\n")
    print("| work | PyTorch paired | fewtag paired | ratio | fewtag default | ratio to PyTorch paired | same tags |")
    print("|---|---:|---:|---:|---:|---:|---:|", flush=True)
    corpus = read(args.corpus)
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        model = directory / "model"
        subprocess.run([args.fewtag, "model", "convert", ROOT / "models/default", model, "--storage", "f32"], check=True, capture_output=True)
        for size in SUPPORT_SIZES:
            compare(args, corpus, size, model, directory)
    print("\n\\* extrapolated from the number of sentences in the last column.")
    start_up(args.fewtag)


if __name__ == "__main__":
    main()
