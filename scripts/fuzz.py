#!/usr/bin/env python3
"""Fuzzes everything that reads what others wrote (docs/guide/fuzzing.md), with libFuzzer and a stable compiler.

    python3 scripts/fuzz.py                              # two minutes, shared by all targets
    python3 scripts/fuzz.py --minutes-each 20 --jobs 2   # until each target has had 20 minutes of a core, also over several runs
    python3 scripts/fuzz.py --minutes-each 0             # what was done so far
    python3 scripts/fuzz.py --targets rasa,inline --seconds 600
    python3 scripts/fuzz.py --targets rasa --input fuzz/artifacts/rasa/crash-0123   # one input again

`--minutes-each` keeps what was done in `fuzz/totals.json`, by which the next run goes on. New inputs go to `target/fuzz/corpus/TARGET`, those of `fuzz/corpus/TARGET` are read as well. An input that panics, takes
longer than 25 s or more than 2 GB is kept in `fuzz/artifacts/TARGET`, and the exit status is 1. It needs a C++ compiler.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUZZ = ROOT / "fuzz"
OUT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "fuzz"
TARGETS = [
    *["conll", "episodes", "hf", "spacy", "doccano", "labelstudio", "gliner", "rasa", "snips", "snips-yaml", "inline", "any"],
    *["tokenizer", "vocabulary", "encoder_config", "safetensors", "fewtag_json", "domain_file", "npy", "glove", "train_toml"],
    *["bodies", "server"],
]
# What a compiler puts in so that libFuzzer sees which code an input reaches and what it is compared with.
COUNTERS = ["-Cpasses=sancov-module"] + [
    f"-Cllvm-args=-sanitizer-coverage-{option}"
    for option in ["level=4", "inline-8bit-counters", "pc-table", "trace-compares"]
]
TOTALS = FUZZ / "totals.json"
TURN = 120  # seconds that a target runs at a time
LIMITS = ["-timeout=25", "-rss_limit_mb=2048", "-malloc_limit_mb=1024", "-max_len=8192"]


def build() -> Path:
    # The dependencies have the versions that the program itself is built with.
    shutil.copy(ROOT / "Cargo.lock", FUZZ / "Cargo.lock")
    version = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    host = re.search(r"^host: (.+)$", version, re.MULTILINE)[1]
    # With `--target`, the flags are not those of build scripts.
    command = ["cargo", "build", "--manifest-path", FUZZ / "Cargo.toml", "--target-dir", OUT, "--target", host]
    subprocess.run(command, check=True, env=os.environ | {"RUSTFLAGS": " ".join(COUNTERS)})
    return OUT / host / "debug" / "fuzz"


def environment(target: str) -> dict[str, str]:
    # One thread: what an input reaches does not depend on how work is shared. Temporary files stay in memory.
    memory = {"TMPDIR": "/dev/shm"} if os.access("/dev/shm", os.W_OK) else {}
    return os.environ | memory | {"FEWTAG_FUZZ": target, "RAYON_NUM_THREADS": "1"}


def fuzz(program: Path, target: str, seconds: int, seed: int) -> dict[str, float]:
    """Runs one target; what it reached and how often it was run."""
    new, seeds, found = OUT / "corpus" / target, FUZZ / "corpus" / target, FUZZ / "artifacts" / target
    for directory in (new, found):
        directory.mkdir(parents=True, exist_ok=True)
    options = [f"-max_total_time={seconds}", f"-seed={seed}", f"-artifact_prefix={found}/", "-print_final_stats=1"]
    options.append(f"-dict={FUZZ / 'dictionary.txt'}")
    start = time.monotonic()
    command = [program, *LIMITS, *options, new, seeds]
    run = subprocess.Popen(command, env=environment(target), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    log = run.stderr.read().decode(errors="replace")
    _, status, used = os.wait4(run.pid, 0)
    run.returncode = os.waitstatus_to_exitcode(status)

    def last(pattern: str) -> int:
        return int((re.findall(pattern, log) or [0])[-1])

    if run.returncode:
        print(f"{target}: found something, see {found.relative_to(ROOT)}\n{log[-4000:]}", flush=True)
    return {
        "seconds": time.monotonic() - start,
        "cpu": used.ru_utime + used.ru_stime,
        "runs": last(r"stat::number_of_executed_units: (\d+)"),
        "edges": last(r" cov: (\d+)"),
        "corpus": last(r" corp: (\d+)"),
        "slowest_s": last(r"stat::slowest_unit_time_sec: +(\d+)"),
        "peak_mb": last(r"stat::peak_rss_mb: +(\d+)"),
        "findings": int(run.returncode != 0),
    }


def add(total: dict[str, float], part: dict[str, float]) -> None:
    for key, value in part.items():
        summed = key in ("seconds", "cpu", "turns", "runs", "findings")
        total[key] = total.get(key, 0) + value if summed else max(total.get(key, 0), value)


def table(totals: dict[str, dict[str, float]]) -> str:
    lines = [
        "| target | minutes of a core | executions | edges | inputs | slowest, s | memory, MB | findings |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for target, total in totals.items():
        rest = [f"{int(total[key]):,}" for key in ("runs", "edges", "corpus", "slowest_s", "peak_mb", "findings")]
        lines.append(f"| `{target}` | {total['cpu'] / 60:.1f} | {' | '.join(rest)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz what reads files and requests.")
    parser.add_argument("--seconds", type=int, default=120, help="for all targets together")
    parser.add_argument("--minutes-each", type=float, help="instead of --seconds: go on until each target has had so much processor time")
    parser.add_argument("--jobs", type=int, default=1, help="with --minutes-each: so many targets at a time")
    parser.add_argument("--targets", type=lambda text: text.split(","), default=TARGETS)
    parser.add_argument("--program", type=Path, help="one that was built before")
    parser.add_argument("--input", type=Path, help="run this input once")
    arguments = parser.parse_args()
    if unknown := [target for target in arguments.targets if target not in TARGETS]:
        parser.error(f"no such target: {', '.join(unknown)}")
    program = arguments.program or (build() if arguments.minutes_each != 0 else None)
    if arguments.input:
        command = [program, *LIMITS, arguments.input]
        return max(subprocess.run(command, env=environment(target)).returncode for target in arguments.targets)
    if arguments.minutes_each is not None:
        totals = go_on(program, arguments.targets, 60 * arguments.minutes_each, arguments.jobs)
    else:
        turn = max(1, arguments.seconds // len(arguments.targets))
        totals = {target: fuzz(program, target, turn, seed=1) for target in arguments.targets}
    print(table(totals))
    return 1 if any(total["findings"] for total in totals.values()) else 0


def go_on(program: Path, targets: list[str], goal: float, jobs: int) -> dict[str, dict[str, float]]:
    """Runs each target until it has had `goal` seconds of a core, those of earlier runs among them."""
    totals = json.loads(TOTALS.read_text()) if TOTALS.exists() else {}
    lock = threading.Lock()

    def finish(target: str) -> None:
        with lock:
            total = totals.setdefault(target, {"cpu": 0, "turns": 0})
        while total["cpu"] < goal:
            part = fuzz(program, target, TURN, seed=int(total["turns"]) + 1)
            with lock:
                add(total, part | {"turns": 1})
                TOTALS.write_text(json.dumps(totals, indent=1) + "\n")

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(finish, targets))
    return {target: total for target, total in totals.items() if total["turns"]}


if __name__ == "__main__":
    sys.exit(main())
