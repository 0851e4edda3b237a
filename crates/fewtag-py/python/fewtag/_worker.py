"""What a worker of a cluster does: it opens a domain once and adds two columns to each Arrow table that it is given."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from . import _fewtag
from ._domain import Domain, State, Threshold, _restore

_DOMAINS: dict[tuple[str | None, ...], Domain] = {}


def state(domain: Domain) -> State:
    """What is sent to workers."""
    return domain._state()


def opened(sent: State, threads: int) -> Domain:
    """The domain of a process: opened once, with so many threads."""
    if _fewtag.threads() != threads:
        _fewtag.set_threads(threads)
    key = (sha256(sent[0]).hexdigest(), *sent[1:])
    if key not in _DOMAINS:
        _DOMAINS[key] = _restore(*sent)
    return _DOMAINS[key]


def tagged(domain: Domain, table: Any, column: str, names: tuple[str, str], threshold: Threshold | None) -> Any:
    """A `pyarrow` table or record batch with the columns of spans and errors at its end."""
    import pyarrow as pa

    found = pa.table(domain.tag_arrow(table.column(column), threshold=threshold)).combine_chunks()
    columns = [_whole(found.column(name)) for name in ("spans", "error")]
    schema = table.schema
    for name, values in zip(names, columns, strict=True):
        schema = schema.append(pa.field(name, values.type))
    kind = pa.RecordBatch if isinstance(table, pa.RecordBatch) else pa.Table
    return kind.from_arrays([*table.columns, *columns], schema=schema)


def _whole(column: Any) -> Any:
    """A column in one piece; an empty one has none."""
    import pyarrow as pa

    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def check_names(there: list[str], column: str, names: tuple[str, str]) -> None:
    """Refuses a column that is missing, and names that are taken."""
    if column not in there:
        raise ValueError(f"there is no column `{column}` ({', '.join(there)}): name it with `column`")
    taken = [name for name in names if name in there]
    if taken:
        raise ValueError(f"the column `{taken[0]}` is there already: give other names with `names`")
