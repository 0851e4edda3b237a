"""A real Ray of two nodes: the same answers as one process, also if a worker is killed."""

import os
import signal
import threading
import time

import many_rows
import pytest

ray = pytest.importorskip("ray")
pa = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.engine

PARTS, BATCH = 8, 1000


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


def dataset(given):
    ids, texts = zip(*given)
    return ray.data.from_arrow(pa.table({"id": ids, "text": texts})).repartition(PARTS)


def answers(dataset, domain, concurrency=None):
    """The rows with their spans and errors, as bytes and in the order in which they come."""
    import fewtag.ray

    tagged = fewtag.ray.tag(dataset, domain, batch_size=BATCH, concurrency=concurrency)
    found = tagged.iter_batches(batch_format="pyarrow", batch_size=None)
    return many_rows.lines(tuple(row.values()) for table in found for row in table.to_pylist())


def test_the_same_answers_as_one_process_in_the_same_order(cluster, tiny, given, wanted):
    many_rows.check_same(answers(dataset(given), tiny), wanted)


def test_the_built_in_model_answers_as_in_one_process(cluster, music):
    few = many_rows.rows(200)
    many_rows.check_same(answers(dataset(few), music), many_rows.expected(music, few))


def test_a_bad_row_is_a_null_with_its_reason(cluster, music):
    import fewtag.ray

    dataset = ray.data.from_arrow(pa.table({"body": ["play sade", "x " * 2**20]}))
    good, bad = fewtag.ray.tag(dataset, music, column="body", names=("found", "why")).take_all()
    assert good["found"] and good["why"] is None
    assert bad["found"] is None and "longer than" in bad["why"]
    with pytest.raises(ValueError, match="no column `text`"):
        fewtag.ray.tag(dataset, music)


def test_a_killed_worker_costs_time_and_no_rows(cluster, tiny, given, wanted, tmp_path):
    killed = []

    def note(table):
        """Who has which rows: Ray does this and the tagging in one task."""
        with open(tmp_path / str(os.getpid()), "a") as file:
            file.write(f"{table['id'][0]}\n")
        return table

    def noted():
        return {int(file.name): file.read_text().split() for file in tmp_path.iterdir()}

    def kill():
        deadline = time.monotonic() + 120
        while not killed and time.monotonic() < deadline:
            # In the middle: some batches are done, so their answers must not come twice, and some are not.
            if sum(map(len, noted().values())) * BATCH > len(given) / 4:
                for pid in many_rows.working():
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
                    break
            time.sleep(0.002)

    killer = threading.Thread(target=kill)
    killer.start()
    watched = dataset(given).map_batches(note, batch_format="pyarrow", batch_size=BATCH)
    found = answers(watched, tiny)
    killer.join()
    assert killed, "there was a worker to kill"
    rows = noted()
    lost = rows.pop(killed[0], [])[-1:]
    again = [one for one in lost for others in rows.values() if one in others]
    assert again, "the killed worker held rows, and Ray gave them to another"
    many_rows.check_same(found, wanted)


@pytest.mark.parametrize("concurrency", [2, (1, 2)])
def test_workers_that_stay_give_the_same_answers(cluster, music, concurrency):
    few = many_rows.rows(200)
    # Cut before: the two workers have all cores, and nothing else could run beside them.
    found = answers(dataset(few).materialize(), music, concurrency)
    many_rows.check_same(found, many_rows.expected(music, few))


def test_a_killed_worker_that_was_to_stay_costs_no_rows(cluster, tiny, given, wanted):
    killed = []

    def kill():
        deadline = time.monotonic() + 120
        while not killed and time.monotonic() < deadline:
            for pid in many_rows.working():
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                break
            time.sleep(0.002)

    cut = dataset(given).materialize()
    killer = threading.Thread(target=kill)
    killer.start()
    found = answers(cut, tiny, concurrency=2)
    killer.join()
    assert killed, "there was a worker to kill"
    many_rows.check_same(found, wanted)
