"""Tagging on Spark: `fewtag.spark.tag(frame, domain, column="text")`.

The domain, a few kilobytes, is broadcast once; a Python worker loads the model once and keeps it. Rows keep their columns and their
place. A text that cannot be tagged is a null in `spans` with its reason in `error`. A task uses as many threads as Spark gives it
cores (`spark.task.cpus`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import _worker
from ._domain import Domain, Threshold

#: The types of the two new columns, as Spark writes them.
SPANS = "array<struct<start:int,end:int,label:string,text:string,probability:double>>"


def tag(
    frame: Any,
    domain: Domain,
    column: str = "text",
    *,
    names: tuple[str, str] = ("spans", "error"),
    threshold: Threshold | None = None,
) -> Any:
    """The frame with the spans of `column`, and why a text has none, in two more columns."""
    from pyspark.sql.types import StringType, StructField, StructType

    _worker.check_names(frame.columns, column, names)
    session = frame.sparkSession
    spans = session.createDataFrame([], f"spans {SPANS}").schema["spans"].dataType
    schema = StructType([*frame.schema.fields, StructField(names[0], spans), StructField(names[1], StringType())])
    threads = int(session.conf.get("spark.task.cpus", "1"))
    sent = session.sparkContext.broadcast(_worker.state(domain))

    def of_partition(batches: Iterator[Any]) -> Iterator[Any]:
        opened = _worker.opened(sent.value, threads)
        for batch in batches:
            yield _worker.tagged(opened, batch, column, names, threshold)

    return frame.mapInArrow(of_partition, schema)
