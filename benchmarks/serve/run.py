#!/usr/bin/env python3
"""`fewtag serve` under load, and beside the same model behind FastAPI and PyTorch. Writes benchmarks/serve/results/DATE.md.

    python3 benchmarks/serve/run.py                 # sets up everything, runs everything: about six minutes
    python3 benchmarks/serve/run.py --python PATH   # a Python that has torch, transformers, tokenizers, fastapi, uvicorn[standard]
    python3 benchmarks/serve/run.py --overload 10 --rounds 1 --seconds 2    # a quick look

Sustained: closed loop, the rate at which a number of clients are answered. Overload: open loop at four times that rate; every request must get
an answer or 429. Comparison: all servers run, and in every round each is loaded in turn, so that a change of the machine hits all;
a ratio is the median over the rounds. The load generator is part of this process and shares the processor with the servers.
"""

import argparse
import asyncio
import json
import os
import platform
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from statistics import fmean, median

import load

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from common import ROOT, commit, environment, processor  # noqa: E402

PACKAGES = ["torch", "transformers", "tokenizers", "fastapi", "uvicorn[standard]"]
N_CLIENTS = 32
N_TEXTS = 5000  # So many different supports that none is still in the server's memory when its turn comes again.
OVERLOAD = 4
TEMPLATES = ["play {a}", "put {t} by {a} on repeat", "could you play some {a} please", "i want to hear {t} {w}", "add {a} to my {p} list",
             "start my {p} list {w}", "wake me up {w} with {t} by {a}", "what was the name of that old song by {a} about {p}"]
WORDS = {
    "a": ["miles davis", "billie holiday", "ella fitzgerald", "the modern jazz quartet", "chet baker", "sun ra", "anita o day"],
    "t": ["naima", "caravan", "take the a train", "my funny valentine", "so what", "round midnight", "night in tunisia"],
    "w": ["tonight", "at seven", "tomorrow morning", "in half an hour", "on sunday after lunch", "now"],
    "p": ["road trip", "sunday morning", "dinner", "late night work", "running"],
}
LABELS = {"a": "artist", "t": "track", "w": "time", "p": "playlist"}
WORK = {
    "domain": "a text, the domain is known",
    "same": "a text with five examples, the same in every request",
    "new": "a text with five examples, other ones in every request",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, help="instead of building target/release/fewtag")
    parser.add_argument("--python", help="an interpreter that has " + ", ".join(PACKAGES))
    parser.add_argument("--overload", type=float, default=60, help="seconds of overload")
    parser.add_argument("--rounds", type=int, default=5, help="of the comparison")
    parser.add_argument("--seconds", type=float, default=4, help="of load for each server, work and round")
    parser.add_argument("--options", default="", help="further options of `fewtag serve`, for trials")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    args = parser.parse_args()
    python = args.python or environment("serve-venv", PACKAGES)
    binary = args.binary or build()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 1 << 16), hard))
    with tempfile.TemporaryDirectory() as temporary:
        bench = Bench(args, binary, python, Path(temporary))
        try:
            lines = head(args, binary, python) + bench.under_load() + (bench.compared() if args.rounds else [])
        finally:
            bench.stop()
    report = "\n".join(lines) + "\n"
    print(report)
    args.out.mkdir(exist_ok=True)
    (args.out / f"{time.strftime('%Y-%m-%d')}.md").write_text(report)


def build() -> Path:
    subprocess.run(["cargo", "build", "--release", "--quiet", "--locked", "--package", "fewtag-cli"], cwd=ROOT, check=True)
    return ROOT / "target" / "release" / "fewtag"


def head(args, binary: Path, python: str) -> list[str]:
    run = lambda *command: subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    versions = "; ".join(
        run(python, "-c", f"import importlib.metadata as m; print('{name}', m.version('{name}'))") for name in ("torch", "fastapi", "uvicorn")
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return [
        f"# `fewtag serve` under load, {time.strftime('%Y-%m-%d')}",
        "",
        f"Commit {commit()}; {os.cpu_count()} × {processor()}, {memory:.0f} GB, {platform.system()}; "
        f"{run('rustc', '--version').split(' (')[0]}; Python {platform.python_version()}; {versions}.",
        "Load generator and servers share the processor.",
        "",
        "```console",
        f"python3 benchmarks/serve/run.py --overload {args.overload:g} --rounds {args.rounds} --seconds {args.seconds:g}",
        "```",
        "",
    ]


def labelled(draw: random.Random) -> dict:
    """A sentence of our own, with its labels."""
    text, spans = "", []
    for part in re.split(r"(\{.\})", draw.choice(TEMPLATES)):
        if part.startswith("{"):
            words = draw.choice(WORDS[part[1]])
            spans.append({"start": len(text), "end": len(text) + len(words), "label": LABELS[part[1]]})
            part = words
        text += part
    return {"text": text, "spans": spans}


def support() -> list[dict]:
    """The sentences of examples/music.txt: `play [nina simone](artist)`."""
    examples = []
    for line in (ROOT / "examples" / "music.txt").read_text().splitlines():
        text, spans = "", []
        for before, quote, label in re.findall(r"([^\[]*)(?:\[([^\]]+)\]\((\w+)\))?", line):
            text += before
            if label:
                spans.append({"start": len(text), "end": len(text) + len(quote), "label": label})
            text += quote
        examples.append({"text": text, "spans": spans})
    return examples


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


class Server:
    """A running server."""

    def __init__(self, name: str, command: list, port: int, **environment):
        self.name, self.port = name, port
        self.process = subprocess.Popen([str(part) for part in command], env=os.environ | environment, stdout=subprocess.DEVNULL)

    def wait(self, path: str) -> None:
        for _ in range(600):
            if self.process.poll() is not None:
                sys.exit(f"{self.name} ended with status {self.process.returncode}")
            try:
                return urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5).close()
            except OSError:
                time.sleep(0.1)
        sys.exit(f"{self.name} does not answer")

    def post(self, path: str, body: dict) -> dict:
        data = json.dumps(body).encode()
        question = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(question) as answer:
            return json.load(answer)

    def figure(self, name: str) -> float:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics") as answer:
            found = re.search(rf"^fewtag_{name} (\S+)$", answer.read().decode(), re.MULTILINE)
        return float(found.group(1))

    def memory(self) -> float:
        """Resident MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


class Bench:
    def __init__(self, args, binary: Path, python: str, directory: Path):
        self.args, self.binary, self.python, self.directory = args, binary, python, directory
        draw = random.Random(7)
        self.texts, self.support = [labelled(draw)["text"] for _ in range(N_TEXTS)], support()
        body = lambda **parts: json.dumps(parts).encode()
        tag = lambda support, text: load.request("/v1/tag", body(support=support, texts=[text]))
        self.requests = {
            "domain": [load.request("/v1/domains/music/tag", body(texts=[text])) for text in self.texts],
            "same": [tag(self.support, text) for text in self.texts],
            "new": [tag([labelled(draw) for _ in range(5)], text) for text in self.texts],
        }
        self.n_sent = dict.fromkeys(WORK, 0)
        self.servers: list[Server] = []

    def fewtag(self, name: str, *options) -> Server:
        port = free_port()
        further = ["--database", self.directory / f"{port}.sqlite", *options, *self.args.options.split()]
        server = self.started(Server(name, [self.binary, "serve", "--port", port, "--log", "warn", *further], port), "/ready")
        server.post("/v1/domains", {"name": "music", "examples": self.support})
        return server

    def fastapi(self, name: str, workers: int, threads: int) -> Server:
        model, examples = self.directory / "model", self.directory / "support.json"
        if not model.exists():
            convert = [self.binary, "model", "convert", ROOT / "models" / "default", model, "--storage", "f32"]
            subprocess.run(convert, check=True, capture_output=True)
            examples.write_text(json.dumps(self.support))
        port = free_port()
        command = [self.python, "-m", "uvicorn", "fastapi_app:app", "--app-dir", HERE, "--port", port, "--workers", workers]
        environment = {"MODEL": str(model), "SUPPORT": str(examples), "THREADS": str(threads)}
        return self.started(Server(name, [*command, "--log-level", "warning", "--no-access-log"], port, **environment), "/openapi.json")

    def started(self, server: Server, path: str) -> Server:
        self.servers.append(server)
        server.wait(path)
        return server

    def stop(self) -> None:
        while self.servers:
            self.servers.pop().stop()

    def drive(self, server: Server, work: str, seconds: float) -> load.Seen:
        """Goes on where the last load of this work ended."""
        requests = self.requests[work]
        at = self.n_sent[work] % len(requests)
        seen = asyncio.run(load.closed(server.port, requests[at:] + requests[:at], N_CLIENTS, seconds))
        self.n_sent[work] += seen.n_sent + N_CLIENTS
        return seen

    def under_load(self) -> list[str]:
        """Sustained rate, then overload."""
        server = self.fewtag("fewtag")
        self.drive(server, "domain", 2)  # Warms up.
        sustained = self.drive(server, "domain", 10)
        samples, over = [], threading.Event()

        def sample():
            while not over.wait(1):
                samples.append(server.memory())

        sampler = threading.Thread(target=sample)
        sampler.start()
        n_batches, n_texts = server.figure("batch_texts_count"), server.figure("batch_texts_sum")
        rate = OVERLOAD * sustained.rate
        seen = asyncio.run(load.opened(server.port, self.requests["domain"], rate, self.args.overload))
        over.set()
        sampler.join()
        mean_batch = (server.figure("batch_texts_sum") - n_texts) / (server.figure("batch_texts_count") - n_batches)
        self.stop()
        third = max(1, len(samples) // 3)
        row = lambda name, of: f"| {name} | {of.rate:.0f} | " + " | ".join(f"{1e3 * of.percentile(p):.0f}" for p in (0.5, 0.95, 0.99, 1)) + " |"
        return [
            "## Overload",
            "",
            f"Work: {WORK['domain']}, 2 to 16 words. Sustained: {N_CLIENTS} clients for 10 s. "
            f"Overload: {rate:.0f} requests/s for {self.args.overload:g} s.",
            "",
            "| load | answers/s | p50 ms | p95 ms | p99 ms | max ms |",
            "|---|---:|---:|---:|---:|---:|",
            row("sustained", sustained),
            row(f"{OVERLOAD}×, accepted requests", seen),
            "",
            f"- {seen.n_sent} requests: {seen.statuses[200]} answers, {seen.statuses[429]} × 429, {seen.n_failures} others. "
            f"Batches held {mean_batch:.1f} texts on average.",
            f"- Resident memory: {fmean(samples[:third]):.0f} MiB on average in the first third, {fmean(samples[-third:]):.0f} MiB in the last; "
            f"from {min(samples):.0f} to {max(samples):.0f} MiB.",
            "",
        ]

    def compared(self) -> list[str]:
        """Batched, one by one, and FastAPI in the two ways to use two cores."""
        servers = [
            self.fewtag("fewtag serve"),
            self.fewtag("fewtag serve, one by one", "--batch-cost", "1"),
            self.fastapi("FastAPI, 1 process × 2 threads", 1, 2),
            self.fastapi("FastAPI, 2 processes × 1 thread", 2, 1),
        ]
        lines = ["## Comparison", "", f"{N_CLIENTS} clients; {self.args.rounds} rounds of {self.args.seconds:g} s each. {self.agreement(servers)}", ""]
        lines += ["| work | server | answers/s | p50 ms | p99 ms | fewtag serve is faster by (over rounds) |", "|---|---|---:|---:|---:|---:|"]
        for work in WORK:
            for server in servers:
                self.drive(server, work, 1)
            rounds = [[self.drive(server, work, self.args.seconds) for server in servers] for _ in range(self.args.rounds)]
            for server, of in zip(servers, zip(*rounds)):
                ratios = [one[0].rate / seen.rate for one, seen in zip(rounds, of)]
                shown = "" if server is servers[0] else f"{median(ratios):.2f}× ({min(ratios):.2f}–{max(ratios):.2f})"
                times = " | ".join(f"{1e3 * median(seen.percentile(p) for seen in of):.0f}" for p in (0.5, 0.99))
                lines.append(f"| {WORK[work]} | {server.name} | {median(seen.rate for seen in of):.0f} | {times} | {shown} |")
                if any(seen.n_failures for seen in of):
                    sys.exit(f"{server.name} failed: {[seen.statuses for seen in of]}")
        return lines

    def agreement(self, servers: list[Server]) -> str:
        """How often all find the same spans."""
        sample = self.texts[:100]
        bare = lambda answer: [[(s["start"], s["end"], s["label"]) for s in one["spans"]] for one in answer["results"]]
        found = [bare(server.post("/v1/tag", {"support": self.support, "texts": sample})) for server in servers]
        same = sum(all(of[i] == found[0][i] for of in found) for i in range(len(sample)))
        return f"All four servers find the same spans in {same} of {len(sample)} texts."


if __name__ == "__main__":
    main()
