"""Arrow in and out: pyarrow, pandas, polars and DuckDB columns, nulls, empty frames and bad rows."""

import pytest
from conftest import sentences

import fewtag

pa = pytest.importorskip("pyarrow")

TEXTS = [*sentences(30), None, "", "play sade"]
SPANS = pa.list_(
    pa.field(
        "item",
        pa.struct(
            [
                pa.field("start", pa.int32(), nullable=False),
                pa.field("end", pa.int32(), nullable=False),
                pa.field("label", pa.string(), nullable=False),
                pa.field("text", pa.string(), nullable=False),
                pa.field("probability", pa.float64(), nullable=False),
            ]
        ),
        nullable=False,
    )
)


def expected(music):
    return [found and found.to_dict()["spans"] for found in music.tag(TEXTS)]


def test_every_kind_of_pyarrow_column(music):
    plain = pa.array(TEXTS)
    kinds = [
        plain,
        plain.cast(pa.large_string()),
        plain.cast(pa.string_view()),
        plain.dictionary_encode(),
        pa.chunked_array([TEXTS[:5], TEXTS[5:], []], pa.string()),
        pa.table({"text": plain}),
        pa.record_batch({"text": plain}),
    ]
    for column in kinds:
        found = pa.table(music.tag_arrow(column))
        assert found.schema == pa.schema([("spans", SPANS), ("error", pa.string())])
        assert found["spans"].to_pylist() == expected(music)
        assert found["error"].null_count == len(TEXTS)
    sliced = pa.table(music.tag_arrow(plain.slice(3, 4)))
    assert sliced["spans"].to_pylist() == expected(music)[3:7]


def test_a_column_of_a_table_is_named(music):
    table = pa.table({"id": [1, 2], "body": ["play sade", None]})
    found = pa.table(music.tag_arrow(table, "body"))
    assert found["spans"].null_count == 1 and len(music.tag_arrow(table, "body")) == 2
    with pytest.raises(ValueError, match="id, body: say which"):
        music.tag_arrow(table)
    with pytest.raises(ValueError, match="no `text`"):
        music.tag_arrow(table, "text")


def test_empty_columns_and_columns_of_nulls(music):
    for empty in (pa.array([], pa.string()), pa.chunked_array([], pa.string()), pa.table({"t": pa.array([], pa.string())})):
        found = pa.table(music.tag_arrow(empty))
        assert found.num_rows == 0 and found.schema.names == ["spans", "error"]
    nulls = pa.table(music.tag_arrow(pa.nulls(3)))
    assert nulls["spans"].null_count == nulls["error"].null_count == 3


def test_a_bad_row_is_a_null_with_its_reason(music):
    found = pa.table(music.tag_arrow(pa.array(["play sade", "x " * 2**20, None], pa.large_string())))
    assert [spans is None for spans in found["spans"].to_pylist()] == [False, True, True]
    reasons = found["error"].to_pylist()
    assert reasons[0] is None and "longer than 1048576 bytes" in reasons[1] and reasons[2] is None


def test_what_is_no_column_of_texts_is_refused(music):
    with pytest.raises(TypeError, match="a column of texts is wanted"):
        music.tag_arrow(pa.array([1, 2]))
    with pytest.raises(TypeError, match="list is no Arrow column"):
        music.tag_arrow(["play sade"])


def test_pandas(music):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"text": TEXTS})
    found = pa.table(music.tag_arrow(frame, "text"))
    assert found["spans"].to_pylist() == expected(music)
    assert len(music.tag_arrow(frame.iloc[:0], "text")) == 0
    examples = pd.DataFrame({"text": ["play nina simone"], "spans": [[(5, 16, "artist")]]})
    assert fewtag.adapt(examples).labels == ["artist"]
    assert [found.text for found in music.tag(frame["text"][:5])] == TEXTS[:5]


def test_polars(music):
    pl = pytest.importorskip("polars")
    series = pl.Series("text", TEXTS)
    found = pl.DataFrame(music.tag_arrow(series))
    assert found["spans"].to_list() == expected(music)
    frame = pl.DataFrame({"text": series})
    assert pl.DataFrame(music.tag_arrow(frame, "text")).equals(found)
    examples = pl.DataFrame({"text": ["play nina simone"], "spans": [[{"start": 5, "end": 16, "label": "artist"}]]})
    assert fewtag.adapt(examples).labels == ["artist"]


def test_duckdb(music):
    duckdb = pytest.importorskip("duckdb")
    table = pa.table({"text": TEXTS})
    relation = duckdb.from_arrow(table)
    found = pa.table(music.tag_arrow(relation))
    assert found["spans"].to_pylist() == expected(music)
    counts = [n for (n,) in duckdb.from_arrow(found).project("len(spans)").fetchall()]
    assert counts == [None if spans is None else len(spans) for spans in expected(music)]
