#!/usr/bin/env python3
"""`fewtag tag` of today beside an earlier one, interleaved: latency of one sentence, rate and memory on a large file. Prints Markdown.

    python3 benchmarks/tag/before.py EARLIER_BINARY CORPUS.conll... [--now BINARY] [--sentences 100000] [--rounds 3] [--threads 2]
    python3 benchmarks/tag/before.py … --options="--precision int8"          # options for today's command alone
    python3 benchmarks/tag/before.py … --sentences 25000 --skip 50000        # the third quarter: where no long time is quiet

The first 30 labelled sentences of the first corpus are the examples; the sentences of all corpora, in their order and again from the start
if there are too few, are the text: `--distinct` leaves out those that were there before. Latency: a sentence of 10 words sent to a
running process, until its answer is back. Rate: whole runs, loading the model included. Memory: the largest resident set of a run,
for a tenth of the file and for all of it. A ratio is the median over the rounds of (earlier time / time now).
"""

import argparse
import json
import os
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from subprocess import DEVNULL, Popen

from run import Side, read

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import ROOT, commit, processor  # noqa: E402

N_WORDS = 10
N_SUPPORT = 30


def tag(binary: Path, support: Path) -> list:
    return [binary, "tag", "--support", support, "--jsonl", "--format", "jsonl"]


def latencies(commands: list[list], sentences: list[list[str]]) -> list[list[float]]:
    """Seconds of each command, sentence by sentence; the first ones warm up."""
    sides = [Side(command, ready=False) for command in commands]
    lines = [json.dumps({"tokens": words}) for words in sentences]
    seconds = [[side.ask([line], 1)[0] for side in sides] for line in lines]
    for side in sides:
        side.close()
    return seconds[len(seconds) // 10 :]


def run(command: list, lines: Path) -> tuple[float, float]:
    """Seconds, and the largest resident set in MiB."""
    start = time.perf_counter()
    process = Popen([str(part) for part in [*command, "--input", lines]], stdout=DEVNULL, stderr=DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, f"{command} failed"
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("earlier", type=Path)
    parser.add_argument("corpora", type=Path, nargs="+")
    parser.add_argument("--now", type=Path, default=ROOT / "target/release/fewtag")
    parser.add_argument("--sentences", type=int, default=100_000)
    parser.add_argument("--skip", type=int, default=0, help="so many sentences come before the first that is tagged")
    parser.add_argument("--latencies", type=int, default=300, help="sentences of 10 words that are sent one by one")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--options", default="", help="further options of today's command")
    parser.add_argument("--distinct", action="store_true", help="no sentence twice")
    args = parser.parse_args()
    os.environ["RAYON_NUM_THREADS"] = str(args.threads)
    corpus = [sentence for path in args.corpora for sentence in read(path)]
    support = [sentence for sentence in corpus if any(tag != "O" for tag in sentence[1])][:N_SUPPORT]
    texts = [words for words, _ in corpus]
    if args.distinct:
        texts = [list(words) for words in dict.fromkeys(map(tuple, texts))]
    end = args.skip + args.sentences
    texts = texts[args.skip : end] if args.distinct else list(islice(cycle(texts), args.skip, end))
    print(f"{time.strftime('%Y-%m-%d')}, commit {commit()}, {processor()}, {args.threads} threads, {len(support)} examples.")
    print(f"{len(texts):,} sentences, {len(set(map(tuple, texts))):,} of them different, {sum(map(len, texts)) / len(texts):.1f} words on average.\n")
    print("| work | earlier | now | ratio |\n|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as temporary:
        measure(args, Path(temporary), support, texts)


def measure(args, directory: Path, support: list, texts: list[list[str]]) -> None:
    examples = directory / "support.conll"
    examples.write_text("\n\n".join("\n".join(f"{w}\t{t}" for w, t in zip(*sentence)) for sentence in support) + "\n", encoding="utf-8")
    commands = [tag(args.earlier, examples), tag(args.now, examples) + args.options.split()]
    short = list(islice(cycle(words for words in texts if len(words) == N_WORDS), args.latencies * 10 // 9))
    if short and args.latencies:
        seconds = latencies(commands, short)
        earlier, now = (1e3 * median(column) for column in zip(*seconds))
        print(f"| a sentence of {N_WORDS} words | {earlier:.2f} ms | {now:.2f} ms | {median(a / b for a, b in seconds):.2f}× |", flush=True)
    for n in (len(texts) // 10, len(texts)) if args.skip == 0 else (len(texts),):
        lines = directory / f"{n}.jsonl"
        lines.write_text("".join(json.dumps({"tokens": words}) + "\n" for words in texts[:n]))
        rounds = [[run(command, lines) for command in commands] for _ in range(args.rounds if n == len(texts) else 1)]
        earlier, now = (median(of[side][0] for of in rounds) for side in (0, 1))
        ratio = median(of[0][0] / of[1][0] for of in rounds)
        print(f"| a file of {n:,} | {earlier:.1f} s, {n / earlier:.0f} a second | {now:.1f} s, {n / now:.0f} a second | {ratio:.2f}× |")
        earlier, now = (max(of[side][1] for of in rounds) for side in (0, 1))
        print(f"| … largest memory | {earlier:.0f} MiB | {now:.0f} MiB | {earlier / now:.2f}× |", flush=True)


if __name__ == "__main__":
    main()
