#!/usr/bin/env python3
"""The Python package against the command and against PyTorch, interleaved. Prints Markdown.

    python benchmarks/python/run.py [--n 10000] [--rounds 5] [--threads 1] [--core 1] [--join 1] [--pytorch]

Needs the wheel and pyarrow in the Python that runs this; `--pytorch` also torch, transformers and tokenizers, and runs `plain.py` in the
same process after it has given the same spans as fewtag in f32 for all sentences. The sentences are made here; `--join 3` makes long ones of
three each. The command is the one of the wheel. Every side has tagged 100 sentences before the clock starts, so that loading and import stand in rows of their own. A round runs
every side once, in turn; a rate is the median over rounds, a ratio the median of the ratios within rounds. Processor time is that of
the side's process: on a machine that others use it says more than the clock.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import ROOT, commit, processor  # noqa: E402

sys.path.insert(0, str(ROOT / "crates/fewtag-py/tests"))
from conftest import EXAMPLES, sentences  # noqa: E402

import fewtag  # noqa: E402

FEWTAG = Path(sys.executable).parent / "fewtag"
Times = tuple[float, float]  # Seconds by the clock, and of the processor.


class Here:
    """A side in this process."""

    def __init__(self, prepare, tag):
        self.prepare, self.tag = prepare, tag
        self.seconds(sentences(100))

    def seconds(self, texts: list[str]) -> Times:
        given = self.prepare(texts)
        start, used = time.perf_counter(), time.process_time()
        n = self.tag(given)
        times = time.perf_counter() - start, time.process_time() - used
        assert n == len(texts)
        return times


class Command:
    """`fewtag tag`, running and warm."""

    def __init__(self, domain: Path, environment: dict):
        command = [str(FEWTAG), "tag", "--domain", str(domain), "--format", "jsonl"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self.seconds(sentences(100))

    def seconds(self, texts: list[str]) -> Times:
        data = "".join(text + "\n" for text in texts).encode()
        start, used = time.perf_counter(), self._used()
        writer = threading.Thread(target=lambda: (self.process.stdin.write(data), self.process.stdin.flush()))
        writer.start()
        for _ in texts:
            self.process.stdout.readline()
        writer.join()
        return time.perf_counter() - start, self._used() - used

    def _used(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def arrow(music: fewtag.Domain) -> Here:
    import pyarrow

    return Here(pyarrow.array, lambda column: len(music.tag_arrow(column)))


def pytorch(music: fewtag.Domain, directory: Path, texts: list[str], threads: int) -> Here:
    """The same model in PyTorch, once it has given the same spans."""
    import torch
    from plain import Plain

    torch.set_num_threads(threads)
    model = directory / "f32"
    subprocess.run([FEWTAG, "model", "convert", ROOT / "models/default", model, "--storage", "f32"], check=True, stdout=subprocess.DEVNULL)
    plain = Plain(model, music.examples)
    ours = [[(span.start, span.end, span.label) for span in found] for found in music.tag(texts)]
    theirs = plain.tag(texts)
    other = [text for text, a, b in zip(texts, ours, theirs) if a != b]
    if other:
        sys.exit(f"PyTorch answers {len(other)} of {len(texts)} texts otherwise, the first of them: {other[0]}")
    print(f"PyTorch gives the same {sum(map(len, ours))} spans in {len(texts)} texts", file=sys.stderr)
    return Here(lambda texts: texts, lambda texts: len(plain.tag(texts)))


def started(code: str, environment: dict) -> float:
    program = f"import time; start = time.perf_counter()\n{code}\nprint(time.perf_counter() - start)"
    return float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment).stdout)


def report(args, rounds: list[dict[str, Times]]) -> None:
    print(f"# {time.strftime('%Y-%m-%d')}, {processor()}, {args.threads} thread(s), commit {commit()}\n")
    words = sum(len(text.split()) for text in args.texts) / args.n
    print(f"{args.n:,} sentences of {words:.1f} words on average, {len(EXAMPLES)} examples, {args.rounds} rounds.\n")
    print("| side | sentences a second | beside the command | sentences a processor second | beside the command |\n|---|---:|---:|---:|---:|")
    for name in rounds[0]:
        row = f"| {name} |"
        for kind in (0, 1):
            rate = median(args.n / of[name][kind] for of in rounds)
            ratio = median(of["command"][kind] / of[name][kind] for of in rounds)
            row += f" {rate:.0f} | {ratio:.2f} |"
        print(row)
    if "PyTorch" in rounds[0]:
        for name in ("tag", "tag_arrow", "tag in f32"):
            ratios = [sorted(of["PyTorch"][kind] / of[name][kind] for of in rounds) for kind in (0, 1)]
            said = [f"{median(of):.2f} ({of[0]:.2f} to {of[-1]:.2f})" for of in ratios]
            print(f"\n`{name}` is {said[0]} times as fast as PyTorch by the clock, {said[1]} by processor time.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in {"n": 10_000, "rounds": 5, "threads": 1, "join": 1}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--core", type=int, help="run everything on this core")
    parser.add_argument("--pytorch", action="store_true", help="also PyTorch, in this process")
    args = parser.parse_args()
    if args.core is not None:
        os.sched_setaffinity(0, {args.core})
    environment = {**os.environ, "RAYON_NUM_THREADS": str(args.threads)}
    fewtag.set_threads(args.threads)
    music, rounds = fewtag.adapt(EXAMPLES), []
    parts = sentences(args.n * args.join)
    args.texts = texts = [" and ".join(parts[i :: args.n]) for i in range(args.n)]
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        music.save(directory / "music.fewtag")
        command = Command(directory / "music.fewtag", environment)
        sides = {"command": command, "tag": Here(lambda t: t, lambda t: sum(1 for _ in music.tag(t))), "tag_arrow": arrow(music)}
        if args.pytorch:
            same = fewtag.adapt(EXAMPLES, precision="f32")
            sides["tag in f32"] = Here(lambda t: t, lambda t: sum(1 for _ in same.tag(t)))
            sides["PyTorch"] = pytorch(same, directory, texts, args.threads)
        for i in range(args.rounds):
            names = list(sides) if i % 2 == 0 else list(reversed(sides))
            times = {name: sides[name].seconds(texts) for name in names}
            rounds.append({name: times[name] for name in sides})
            print(json.dumps(rounds[-1]), file=sys.stderr)
        command.process.stdin.close()
    report(args, rounds)
    imports = median(started("import fewtag", environment) for _ in range(7))
    first = "import fewtag\nfewtag.adapt(['play [nina simone](artist)'])('put on some miles davis')"
    first = median(started(first, environment) for _ in range(7))
    print(f"\n`import fewtag` takes {1e3 * imports:.0f} ms; import, learn and first answer {1e3 * first:.0f} ms.")


if __name__ == "__main__":
    main()
