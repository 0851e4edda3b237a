"""A real Spark, two workers in processes of their own: the same answers as one process, also if a worker is killed."""

import os
import signal
import sys
import threading
import time

import many_rows
import pytest

pyspark = pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
pytestmark = pytest.mark.engine

PARTS = 8


@pytest.fixture(scope="module")
def session():
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.executor.memory", "1g")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "2000")
        .getOrCreate()
    )
    yield session
    session.stop()


def answers(session, domain, given):
    """The rows with their spans and errors, as bytes and in the order in which they come."""
    import fewtag.spark

    rows = session.sparkContext.parallelize(given, PARTS)
    tagged = fewtag.spark.tag(session.createDataFrame(rows, "id long, text string"), domain)
    assert tagged.schema["spans"].dataType.simpleString() == fewtag.spark.SPANS
    return many_rows.lines(tuple(row.values()) for row in tagged.toArrow().to_pylist())


def test_the_same_answers_as_one_process_in_the_same_order(session, tiny, given, wanted):
    many_rows.check_same(answers(session, tiny, given), wanted)


def test_the_built_in_model_answers_as_in_one_process(session, music):
    few = many_rows.rows(200)
    many_rows.check_same(answers(session, music, few), many_rows.expected(music, few))


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


@pytest.mark.parametrize("whom", ["the Python worker", "the executor above it"])
def test_a_killed_worker_costs_time_and_no_rows(session, tiny, given, wanted, whom):
    tracker, stages, killed = session.sparkContext.statusTracker(), set(), []

    def kill():
        deadline = time.monotonic() + 120
        while not killed and time.monotonic() < deadline:
            stages.update(tracker.getActiveStageIds())
            # In the middle: some parts are done, so their answers must not come twice, and some are not.
            known = filter(None, map(tracker.getStageInfo, stages))
            if any(stage.numCompletedTasks >= 2 for stage in known):
                for pid in many_rows.working():
                    if whom == "the executor above it":
                        pid = many_rows.parent(many_rows.parent(pid))
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
                    break
            time.sleep(0.002)

    killer = threading.Thread(target=kill)
    killer.start()
    found = answers(session, tiny, given)
    killer.join()
    assert killed, "there was a worker to kill"
    failed = sum(tracker.getStageInfo(stage).numFailedTasks for stage in stages)
    assert failed > 0, "the killed worker held rows, and Spark had to give them to another"
    many_rows.check_same(found, wanted)
