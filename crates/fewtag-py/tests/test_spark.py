"""A real Spark, two workers in processes of their own: the same answers as one process, also if a worker is killed."""

import os
import signal
import threading
import time

import pytest
from conftest import sentences

import fewtag

pyspark = pytest.importorskip("pyspark")
pa = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.engine

N = int(os.environ.get("FEWTAG_ENGINE_ROWS", "2000"))


def rows(n):
    """Row number and text; some are missing."""
    return [(i, None if i % 97 == 3 else text) for i, text in enumerate(sentences(n))]


def expected(music, given):
    answers = music.tag([text for _, text in given])
    return [(i, text, found and found.to_dict()["spans"]) for (i, text), found in zip(given, answers)]


@pytest.fixture(scope="module")
def session():
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.executor.memory", "1g")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "500")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    yield session
    session.stop()


def collected(frame):
    return [
        (row.id, row.text, None if row.spans is None else [span.asDict() for span in row.spans]) for row in frame.collect()
    ]


def test_the_same_answers_as_one_process(session, music):
    import fewtag.spark

    given = rows(N)
    frame = session.createDataFrame(session.sparkContext.parallelize(given, 8), "id long, text string")
    tagged = fewtag.spark.tag(frame, music)
    assert tagged.schema["spans"].dataType.simpleString() == fewtag.spark.SPANS
    found = collected(tagged)
    assert found == expected(music, given), "the same rows in the same order"


def test_a_bad_row_is_a_null_with_its_reason(session, music):
    import fewtag.spark

    frame = session.createDataFrame([(1, "play sade"), (2, "x " * 2**20)], "id long, body string")
    good, bad = sorted(fewtag.spark.tag(frame, music, column="body", names=("found", "why")).collect())
    assert good.found and good.why is None
    assert bad.found is None and "longer than" in bad.why
    with pytest.raises(ValueError, match="no column `text`"):
        fewtag.spark.tag(frame, music)
    with pytest.raises(ValueError, match="there already"):
        fewtag.spark.tag(frame, music, column="body", names=("id", "why"))
    empty = session.createDataFrame([], "text string")
    assert fewtag.spark.tag(empty, music).collect() == []


def test_a_killed_worker_costs_time_and_no_rows(session, music):
    import fewtag.spark

    given = rows(N)
    frame = session.createDataFrame(session.sparkContext.parallelize(given, 8), "id long, text string")
    killed = []

    def kill():
        deadline = time.monotonic() + 60
        while not killed and time.monotonic() < deadline:
            for pid in python_workers():
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                return
            time.sleep(0.05)

    # Workers that wait idle from before would die unnoticed: the threads of fewtag say who is at work.
    killer = threading.Thread(target=kill)
    killer.start()
    found = collected(fewtag.spark.tag(frame, music))
    killer.join()
    assert killed, "there was a worker to kill"
    assert found == expected(music, given)


def python_workers():
    """The processes below this one whose fewtag threads are running."""
    for entry in os.listdir("/proc"):
        try:
            if not entry.isdigit() or int(entry) == os.getpid():
                continue
            with open(f"/proc/{entry}/cmdline") as file:
                if "pyspark" not in file.read():
                    continue
            for thread in os.listdir(f"/proc/{entry}/task"):
                with open(f"/proc/{entry}/task/{thread}/stat") as file:
                    stat = file.read()
                if "(fewtag-" in stat and stat.rsplit(")", 1)[1].split()[0] == "R":
                    yield int(entry)
                    break
        except (FileNotFoundError, ProcessLookupError):
            continue
