#!/usr/bin/env python3
"""`fewtag serve` of today beside an earlier one, interleaved: throughput and tail latency with a kept domain. Prints Markdown.

    python3 benchmarks/serve/before.py EARLIER_BINARY [--now BINARY] [--rounds 5] [--seconds 4] [--options="--precision int8"]

Throughput: closed loop, 32 clients, one text a request. Half load: open loop at half of the rate that the *earlier* server sustained, the same for
both, latencies from the moment a request was due. Both servers run all the time and are loaded in turn; a ratio is the median over the
rounds. The load generator shares the processor with the servers.
"""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from statistics import median

import load
from run import N_CLIENTS, ROOT, WORK, Bench, commit, processor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("earlier", type=Path)
    parser.add_argument("--now", type=Path, default=ROOT / "target/release/fewtag")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4, help="of load for each server and round")
    parser.add_argument("--options", default="", help="further options of today's server")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        plain = argparse.Namespace(**vars(args) | {"options": ""})
        benches = [Bench(plain, args.earlier, "", Path(temporary)), Bench(args, args.now, "", Path(temporary))]
        try:
            measure(args, benches)
        finally:
            for bench in benches:
                bench.stop()


def measure(args, benches: list[Bench]) -> None:
    servers = [bench.fewtag(name) for bench, name in zip(benches, ("earlier", "now"))]
    for bench, server in zip(benches, servers):
        bench.drive(server, "domain", 1)
    full = [[bench.drive(server, "domain", args.seconds) for bench, server in zip(benches, servers)] for _ in range(args.rounds)]
    rate = median(earlier.rate for earlier, _ in full) / 2
    opened = lambda bench, server: asyncio.run(load.opened(server.port, bench.requests["domain"], rate, args.seconds))
    half = [[opened(bench, server) for bench, server in zip(benches, servers)] for _ in range(args.rounds)]
    print(f"{time.strftime('%Y-%m-%d')}, commit {commit()}, {processor()}: {WORK['domain']}; {args.rounds} rounds of {args.seconds:g} s.\n")
    print("| | earlier | now | ratio |\n|---|---:|---:|---:|")
    line(f"answers a second, {N_CLIENTS} clients", full, lambda seen: seen.rate, lambda a, b: b / a, "{:.0f}")
    for p in (0.5, 0.99):
        line(f"p{100 * p:.0f} in ms at {rate:.0f} requests a second", half, lambda seen: 1e3 * seen.percentile(p), lambda a, b: a / b, "{:.2f}")
    for seen in (one for of in full + half for one in of):
        assert not seen.n_failures, seen.statuses


def line(name: str, rounds: list, figure, ratio, shown: str) -> None:
    earlier, now = (median(figure(of[side]) for of in rounds) for side in (0, 1))
    by_round = median(ratio(figure(a), figure(b)) for a, b in rounds)
    print(f"| {name} | {shown.format(earlier)} | {shown.format(now)} | {by_round:.2f}× |")


if __name__ == "__main__":
    main()
