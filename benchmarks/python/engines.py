#!/usr/bin/env python3
"""One worker of one core against two, on Spark, on Ray and without an engine, interleaved. Prints Markdown.

    python benchmarks/python/engines.py [--n 20000] [--rounds 3] [--engines spark ray processes] [--workers 1 2]

Needs a machine with nothing else to do and as many cores as the most workers; the wheel, pyarrow, pyspark (and Java) and `ray[data]` in the
Python that runs this. Spark is a `local-cluster` with an executor of one core for each worker, Ray a cluster with a node of one core for
each (`concurrency` is the number of workers); `processes` is a pool of plain processes of one thread: what the machine allows. Every run starts its
cluster anew, so that none stands beside another; before the clock starts each worker has loaded the model and tagged, but for those of Ray,
which stay for one job and whose start counts. The time is that of the whole
job, from the driver's rows to the answers back in the driver. A round runs everything once; a ratio is the median of those
within rounds. All runs must find the same spans.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import ROOT, commit, processor  # noqa: E402

sys.path.insert(0, str(ROOT / "crates/fewtag-py/tests"))
from conftest import EXAMPLES, sentences  # noqa: E402

import fewtag  # noqa: E402

#: Rows of a task: some seconds of work, beside which what an engine does for a task is little; few enough that two workers end together.
TASK = 2000


def n_tasks(texts: list[str]) -> int:
    return -(-len(texts) // TASK)


def n_spans(table) -> int:
    """Counted where they lie: to make Python objects of them would take a worker's core."""
    import pyarrow.compute

    return pyarrow.compute.sum(pyarrow.compute.list_value_length(table["spans"])).as_py() or 0


class Spark:
    def __init__(self, music: fewtag.Domain, workers: int):
        from pyspark.sql import SparkSession

        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master(f"local-cluster[{workers},1,1024]").config("spark.ui.enabled", "false")
        # One worker must not begin before all are there.
        builder = builder.config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
        self.session, self.music = builder.getOrCreate(), music

    def spans(self, texts: list[str]) -> int:
        import fewtag.spark

        rows = self.session.sparkContext.parallelize([(text,) for text in texts], n_tasks(texts))
        found = fewtag.spark.tag(self.session.createDataFrame(rows, "text string"), self.music).select("spans").toArrow()
        return n_spans(found)

    def stop(self) -> None:
        self.session.stop()


class Ray:
    def __init__(self, music: fewtag.Domain, workers: int):
        import ray
        from ray.cluster_utils import Cluster

        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        for _ in range(workers - 1):
            self.cluster.add_node(num_cpus=1)
        ray.init(address=self.cluster.address, log_to_driver=False)
        ray.data.DataContext.get_current().enable_progress_bars = False
        self.ray, self.music, self.workers = ray, music, workers

    def spans(self, texts: list[str]) -> int:
        import pyarrow

        import fewtag.ray

        tables = [pyarrow.table({"text": texts[i : i + TASK]}) for i in range(0, len(texts), TASK)]
        found = fewtag.ray.tag(self.ray.data.from_arrow(tables), self.music, concurrency=self.workers)
        return sum(map(n_spans, found.iter_batches(batch_format="pyarrow")))

    def stop(self) -> None:
        self.ray.shutdown()
        self.cluster.shutdown()


class Processes:
    def __init__(self, music: fewtag.Domain, workers: int):
        self.pool = multiprocessing.get_context("spawn").Pool(workers, _keep, (music,))

    def spans(self, texts: list[str]) -> int:
        tasks = [texts[i : i + TASK] for i in range(0, len(texts), TASK)]
        return sum(self.pool.imap_unordered(_spans, tasks))

    def stop(self) -> None:
        self.pool.terminate()


_music: fewtag.Domain


def _keep(music: fewtag.Domain) -> None:
    global _music
    fewtag.set_threads(1)
    _music = music


def _spans(texts: list[str]) -> int:
    return sum(len(found.spans) for found in _music.tag(texts))


ENGINES = {"spark": Spark, "ray": Ray, "processes": Processes}


def one_run(engine: str, workers: int, n: int) -> None:
    """In a process of its own: prints the seconds of the job and the spans that were found."""
    music = fewtag.adapt(EXAMPLES)
    side = ENGINES[engine](music, workers)
    for _ in range(2):
        side.spans(sentences(4 * workers * TASK)[: 4 * workers * TASK : 4])
    start = time.perf_counter()
    spans = side.spans(sentences(n))
    seconds = time.perf_counter() - start
    side.stop()
    print(json.dumps({"seconds": seconds, "spans": spans}))


def run(engine: str, workers: int, n: int) -> dict:
    command = [sys.executable, __file__, "--one-run", engine, str(workers), "--n", str(n)]
    printed = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if printed.returncode != 0:
        sys.exit(f"{engine} with {workers} worker(s) failed:\n{printed.stderr[-3000:]}")
    found = json.loads(printed.stdout.splitlines()[-1])
    print(engine, workers, found, file=sys.stderr, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=list(ENGINES))
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--one-run", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one_run:
        return one_run(args.one_run[0], int(args.one_run[1]), args.n)
    rounds = []
    for i in range(args.rounds):
        sides = [(engine, workers) for engine in args.engines for workers in (args.workers if i % 2 == 0 else args.workers[::-1])]
        rounds.append({side: run(*side, args.n) for side in sides})
    if len({found["spans"] for of in rounds for found in of.values()}) > 1:
        sys.exit("not all runs found the same spans")
    print(f"# {time.strftime('%Y-%m-%d')}, {processor()}, {len(os.sched_getaffinity(0))} core(s), commit {commit()}\n")
    print(f"{args.n:,} short sentences, {len(EXAMPLES)} examples, {args.rounds} rounds.\n")
    print("| engine | workers | sentences a second | times one worker (lowest, highest) |\n|---|---:|---:|---:|")
    for engine in args.engines:
        for workers in args.workers:
            rate = median(args.n / of[engine, workers]["seconds"] for of in rounds)
            ratios = [of[engine, args.workers[0]]["seconds"] / of[engine, workers]["seconds"] for of in rounds]
            print(f"| {engine} | {workers} | {rate:.0f} | {median(ratios):.2f} ({min(ratios):.2f}, {max(ratios):.2f}) |")


if __name__ == "__main__":
    main()
