#!/usr/bin/env python3
"""fewtag against the PyTorch reference, interleaved: training samples/s, tagged queries/s, peak memory.

    cargo build --release -p fewtag --example model_worker
    python benchmarks/model/run.py ENCODER_DIRECTORY EPISODE_DIRECTORY

The work is the first episode of each official Snips file. Both sides are processes that answer the same requests,
one after the other, `--rounds` times after one unmeasured round; a ratio is the median over the rounds. Processor
time is what both sides would need on a machine of their own, if something else runs beside them. Memory is the peak
resident size of two fresh processes that train on one 5-shot BookRestaurant episode in paired context.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
SHOTS = {1: "snips_1shot/snips_test_{}.json", 5: "snips_5shot/snips-test-{}-shot-5.json"}
CONTEXTS = ("separate", "paired")
BOOK_RESTAURANT = 6  # Its place in the official order of domains.


class Side:
    """One process that does what it is asked and says how long it took."""

    def __init__(self, command: list[str]):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ready = self.process.stdout.readline().strip()
        assert ready == "ready", f"{command[0]} did not start: {ready!r}"

    def rates(self, work: str) -> tuple[float, float]:
        """Samples per second by the clock, and per second of processor time."""
        before = self._processor_seconds()
        print(work, file=self.process.stdin, flush=True)
        answer = json.loads(self.process.stdout.readline())
        return answer["samples"] / answer["seconds"], answer["samples"] / (self._processor_seconds() - before)

    def _processor_seconds(self) -> float:
        """User and system time of all threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def start(arguments, context: str, episodes: Path) -> tuple[Side, Side]:
    shared = [str(arguments.encoder), context, str(episodes), str(arguments.threads)]
    pytorch = Side([sys.executable, str(Path(__file__).with_name("pytorch_worker.py")), *shared])
    return pytorch, Side([str(ROOT / "target/release/examples/model_worker"), *shared])


def write_episodes(directory: Path, shots: int, domains: list[int], target: Path) -> Path:
    """The first episode of each domain with ten queries, as one episode file."""
    chosen = {}
    for i in domains:
        for domain, episodes in json.loads((directory / SHOTS[shots].format(i)).read_text()).items():
            query = {key: episodes[0]["query"][key][:10] for key in ("seq_ins", "seq_outs")}
            chosen[domain] = [{"support": episodes[0]["support"], "query": query}]
    target.write_text(json.dumps(chosen))
    return target


def compare_speed(arguments, scratch: Path, shots: int, context: str) -> None:
    episodes = write_episodes(arguments.episodes, shots, list(range(1, 8)), scratch / f"{shots}.json")
    pytorch, fewtag = start(arguments, context, episodes)
    for work in ("train", "evaluate"):
        rounds = [(pytorch.rates(work), fewtag.rates(work)) for _ in range(arguments.rounds + 1)][1:]
        theirs, ours = (median(side[0] for side in sides) for sides in zip(*rounds))
        clock, processor = ([ours[i] / theirs[i] for theirs, ours in rounds] for i in range(2))
        print(
            f"| {work} | {shots} | {context} | {theirs:.1f} | {ours:.1f} | {median(clock):.2f}× "
            f"| {min(clock):.2f}–{max(clock):.2f} | {median(processor):.2f}× |",
            flush=True,
        )
    pytorch.close()
    fewtag.close()


def compare_memory(arguments, scratch: Path) -> None:
    episodes = write_episodes(arguments.episodes, 5, [BOOK_RESTAURANT], scratch / "memory.json")
    pytorch, fewtag = start(arguments, "paired", episodes)
    for side in (pytorch, fewtag):
        for _ in range(3):
            side.rates("train")
    print(f"\nPeak memory, training, 5-shot BookRestaurant, paired: PyTorch {pytorch.peak_mib():.0f} MiB, ", end="")
    print(f"fewtag {fewtag.peak_mib():.0f} MiB.")
    pytorch.close()
    fewtag.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("encoder", type=Path)
    parser.add_argument("episodes", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parts = [f"{shots}-{context}" for shots in SHOTS for context in CONTEXTS] + ["memory"]
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts, help="what to measure; default: all")
    arguments = parser.parse_args()
    print("| work | shots | context | PyTorch /s | fewtag /s | ratio | over rounds | ratio by processor time |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for shots, context in itertools.product(SHOTS, CONTEXTS):
            if f"{shots}-{context}" in arguments.parts:
                compare_speed(arguments, Path(scratch), shots, context)
        if "memory" in arguments.parts:
            compare_memory(arguments, Path(scratch))


if __name__ == "__main__":
    main()
