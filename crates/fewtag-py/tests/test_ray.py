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


class Killer(threading.Thread):
    """Kills one process that tags, as soon as `is_time`; gives up after two minutes."""

    def __init__(self, is_time):
        super().__init__()
        self.is_time, self.pid = is_time, None
        self.start()

    def run(self):
        deadline = time.monotonic() + 120
        while self.pid is None and time.monotonic() < deadline:
            if self.is_time():
                for pid in many_rows.working():
                    os.kill(pid, signal.SIGKILL)
                    self.pid = pid
                    break
            time.sleep(0.002)

    def killed(self):
        self.join()
        assert self.pid, "there was a worker to kill"
        return self.pid


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
    def note(table):
        """Who has which rows: Ray does this and the tagging in one task."""
        with open(tmp_path / str(os.getpid()), "a") as file:
            file.write(f"{table['id'][0]}\n")
        return table

    def noted():
        return {int(file.name): file.read_text().split() for file in tmp_path.iterdir()}

    # In the middle: some batches are done, so their answers must not come twice, and some are not.
    killer = Killer(lambda: sum(map(len, noted().values())) * BATCH > len(given) / 4)
    watched = dataset(given).map_batches(note, batch_format="pyarrow", batch_size=BATCH)
    found = answers(watched, tiny)
    rows = noted()
    lost = rows.pop(killer.killed(), [])[-1:]
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
    cut = dataset(given).materialize()
    killer = Killer(lambda: True)
    found = answers(cut, tiny, concurrency=2)
    assert killer.killed()
    many_rows.check_same(found, wanted)
