"""A real Ray of two nodes: the same answers as one process, also if a worker is killed."""

import os
import signal
import threading
import time

import pytest
from conftest import sentences

import fewtag

ray = pytest.importorskip("ray")
pa = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.engine

N = int(os.environ.get("FEWTAG_ENGINE_ROWS", "2000"))


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def table(n):
    texts = [None if i % 97 == 3 else text for i, text in enumerate(sentences(n))]
    return pa.table({"id": list(range(n)), "text": texts})


def expected(music, given):
    return [found and found.to_dict()["spans"] for found in music.tag(given["text"].to_pylist())]


def test_the_same_answers_as_one_process_in_the_same_order(cluster, music):
    import fewtag.ray

    given = table(N)
    dataset = ray.data.from_arrow(given).repartition(8)
    found = fewtag.ray.tag(dataset, music, batch_size=100).take_all()
    assert [row["id"] for row in found] == list(range(N))
    assert [row["spans"] for row in found] == expected(music, given)
    assert all(row["error"] is None for row in found)


def test_a_bad_row_is_a_null_with_its_reason(cluster, music):
    import fewtag.ray

    dataset = ray.data.from_arrow(pa.table({"body": ["play sade", "x " * 2**20]}))
    good, bad = fewtag.ray.tag(dataset, music, column="body", names=("found", "why")).take_all()
    assert good["found"] and good["why"] is None
    assert bad["found"] is None and "longer than" in bad["why"]
    with pytest.raises(ValueError, match="no column `text`"):
        fewtag.ray.tag(dataset, music)


def test_a_killed_worker_costs_time_and_no_rows(cluster, music):
    import fewtag.ray

    given = table(N)
    killed = []

    def kill():
        deadline = time.monotonic() + 60
        while not killed and time.monotonic() < deadline:
            for pid in working():
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                return
            time.sleep(0.05)

    killer = threading.Thread(target=kill)
    killer.start()
    found = fewtag.ray.tag(ray.data.from_arrow(given).repartition(8), music, batch_size=100).take_all()
    killer.join()
    assert killed, "there was a worker to kill"
    assert [row["id"] for row in found] == list(range(N))
    assert [row["spans"] for row in found] == expected(music, given)


def working():
    """The worker processes of Ray whose fewtag threads are running."""
    for entry in os.listdir("/proc"):
        try:
            if not entry.isdigit() or int(entry) == os.getpid():
                continue
            with open(f"/proc/{entry}/cmdline") as file:
                if not file.read().startswith("ray::"):
                    continue
            for thread in os.listdir(f"/proc/{entry}/task"):
                with open(f"/proc/{entry}/task/{thread}/stat") as file:
                    stat = file.read()
                if "(fewtag-" in stat and stat.rsplit(")", 1)[1].split()[0] == "R":
                    yield int(entry)
                    break
        except (FileNotFoundError, ProcessLookupError):
            continue
