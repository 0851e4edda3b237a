#!/usr/bin/env python3
"""How much longer tagging takes while a domain is tuned. Writes benchmarks/serve/results/tuning-DATE.md.

    python3 benchmarks/serve/tuning.py                          # builds the server and measures, about three minutes
    python3 benchmarks/serve/tuning.py --binary target/release/fewtag --rounds 10 --seconds 5

One server; in every round it is loaded twice, once while it tunes another domain of 60 sentences and once while it does not, in turn. The load
is open: so many requests a second whatever comes back, well below what the server sustains, as tagging people is. A latency counts
from the moment at which the request was due. A ratio is the median over the rounds.
"""

import argparse
import asyncio
import json
import os
import random
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from statistics import median

import load
from run import HERE, Server, build, commit, free_port, labelled, processor, support

N_SENTENCES = 60  # Of the domain that is tuned.
STATES = {True: "while a domain is tuned", False: "otherwise"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, help="instead of building target/release/fewtag")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=5, help="of load in each half of a round")
    parser.add_argument("--rates", type=float, nargs="+", default=[20, 100], help="requests a second")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        port = free_port()
        options = ["--port", port, "--database", Path(directory) / "domains.sqlite", "--log", "warn"]
        server = Server("fewtag serve", [args.binary or build(), "serve", *options], port)
        try:
            server.wait("/ready")
            lines = head(args) + [line for rate in args.rates for line in measured(server, rate, args)]
        finally:
            server.stop()
    report = "\n".join(lines) + "\n"
    print(report)
    args.out.mkdir(exist_ok=True)
    (args.out / f"tuning-{time.strftime('%Y-%m-%d')}.md").write_text(report)


def head(args) -> list[str]:
    rates = " ".join(f"{rate:g}" for rate in args.rates)
    return [
        f"# Tagging while a domain is tuned, {time.strftime('%Y-%m-%d')}",
        "",
        f"Commit {commit()}; {len(os.sched_getaffinity(0))} × {processor()}. Load generator and server share the processor. {args.rounds} rounds of twice "
        f"{args.seconds:g} s, in turn; a text of 2 to 16 words a request, with a domain of five examples; {N_SENTENCES} sentences are tuned with.",
        "",
        "```console",
        f"python3 benchmarks/serve/tuning.py --rounds {args.rounds} --seconds {args.seconds:g} --rates {rates}",
        "```",
        "",
        "| requests/s | | p50 ms | p95 ms | p99 ms | others than 200 |",
        "|---:|---|---:|---:|---:|---:|",
    ]


def call(server: Server, method: str, path: str, body: dict | None = None) -> dict:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request) as answer:
        text = answer.read()
    return json.loads(text) if text else {}


def set_tuning(server: Server, wanted: bool) -> None:
    """Starts a long tuning and waits until it works, or cancels it and waits until it does not."""
    if wanted:
        call(server, "POST", "/v1/domains/tuned/tune", {"minutes": 60})
        while not call(server, "GET", "/v1/domains/tuned/tune")["progress"]:
            time.sleep(0.1)
    else:
        call(server, "DELETE", "/v1/domains/tuned/tune")
    while (server.figure("tuning") == 1) != wanted:
        time.sleep(0.05)


def measured(server: Server, rate: float, args) -> list[str]:
    draw = random.Random(7)
    for name, examples in (("music", support()), ("tuned", [labelled(draw) for _ in range(N_SENTENCES)])):
        try:
            call(server, "DELETE", f"/v1/domains/{name}")
        except urllib.error.HTTPError:
            pass  # It was not there yet.
        call(server, "POST", "/v1/domains", {"name": name, "examples": examples})
    bodies = [json.dumps({"texts": [labelled(draw)["text"]]}).encode() for _ in range(1000)]
    requests = [load.request("/v1/domains/music/tag", body) for body in bodies]
    drive = lambda: asyncio.run(load.opened(server.port, requests, rate, args.seconds))
    drive()
    seen = {True: [], False: []}
    for n in range(args.rounds):
        for wanted in (True, False) if n % 2 else (False, True):
            if wanted:
                set_tuning(server, True)
            seen[wanted].append(drive())
            if wanted:
                set_tuning(server, False)
    lines = []
    for wanted, rounds in seen.items():
        times = " | ".join(f"{1e3 * median(one.percentile(p) for one in rounds):.1f}" for p in (0.5, 0.95, 0.99))
        failures = sum(one.n_sent - one.statuses[200] for one in rounds)
        lines.append(f"| {rate:g} | {STATES[wanted]} | {times} | {failures} of {sum(one.n_sent for one in rounds)} |")
    ratios = []
    for p in (0.5, 0.95, 0.99):
        each = [a.percentile(p) / b.percentile(p) for a, b in zip(seen[True], seen[False])]
        ratios.append(f"{median(each):.2f}× ({min(each):.2f}–{max(each):.2f})")
    return lines + [f"| {rate:g} | ratio, over rounds | {' | '.join(ratios)} | |"]


if __name__ == "__main__":
    main()
