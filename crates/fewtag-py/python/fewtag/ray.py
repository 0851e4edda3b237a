"""Tagging on Ray Data: `fewtag.ray.tag(dataset, domain, column="text")`.

The domain, a few kilobytes, is put into the object store once; a worker process loads the model once and keeps it. Rows keep their
columns and their order. A text that cannot be tagged is a null in `spans` with its reason in `error`. A task uses as many threads as
Ray gives it cores (`num_cpus`). With `concurrency` the work is done by so many workers that stay from beginning to end instead of by
tasks wherever there is room: they take seconds to start and then never wait for the next task, which pays for large corpora.
"""

from __future__ import annotations

from typing import Any

from . import _worker
from ._domain import Domain, Threshold


def tag(
    dataset: Any,
    domain: Domain,
    column: str = "text",
    *,
    names: tuple[str, str] = ("spans", "error"),
    threshold: Threshold | None = None,
    num_cpus: int = 1,
    batch_size: int = 1024,
    concurrency: int | tuple[int, int] | None = None,
) -> Any:
    """The dataset with the spans of `column`, and why a text has none, in two more columns.

    `concurrency`: this many workers that stay, or from so many to so many. Leave Ray cores for what comes before, such as reading files.
    """
    import ray

    schema = dataset.schema()
    if schema is not None:
        _worker.check_names(list(schema.names), column, names)
    sent = ray.put(_worker.state(domain))

    def of_batch(table: Any) -> Any:
        opened = _worker.opened(ray.get(sent), num_cpus)
        return _worker.tagged(opened, table, column, names, threshold)

    class Worker:
        def __call__(self, table: Any) -> Any:
            return of_batch(table)

    how: dict[str, Any] = {"batch_format": "pyarrow", "batch_size": batch_size, "num_cpus": num_cpus}
    if concurrency is None:
        result = dataset.map_batches(of_batch, **how)
    else:
        least, most = (concurrency, concurrency) if isinstance(concurrency, int) else concurrency
        result = dataset.map_batches(Worker, compute=ray.data.ActorPoolStrategy(min_size=least, max_size=most), **how)
    result.context.execution_options.preserve_order = True
    return result
