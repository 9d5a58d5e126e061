"""Arrow to Python objects."""

from __future__ import annotations

import datetime
from datetime import UTC, date, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from skerry.client.pep249 import BINARY, DATETIME, NUMBER, ROWID, STRING
from skerry.client.rows import ROWS_AT_ONCE, RowBuffer, describe, to_rows
from skerry.model.table import Column

when = datetime.datetime
CASES = [
    (pa.int64(), [1, None, -(2**63)]),
    (pa.float64(), [1.5, None, float("inf")]),
    (pa.decimal128(38, 2), [Decimal("1.20"), None, Decimal("-999999999999999999999999999999999999.99")]),
    (pa.date32(), [date(1, 1, 1), None, date(9999, 12, 31)]),
    (pa.timestamp("us", "UTC"), [when(1, 1, 1, tzinfo=UTC), None, when(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)]),
    (pa.timestamp("us"), [when(1969, 12, 31, 23), None, when(2024, 2, 29)]),
    (pa.duration("us"), [timedelta(days=-3, microseconds=5), None, timedelta(0)]),
    (pa.binary(), [b"\x00a", None, b""]),
    (pa.string(), ["æ漢", None, ""]),
    (pa.bool_(), [True, None, False]),
    (pa.list_(pa.date32()), [[date(2024, 1, 1), None], None, []]),
    (pa.struct([("a", pa.int32()), ("b", pa.list_(pa.timestamp("us", "UTC")))]), [{"a": 1, "b": None}, None]),
    (pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.int32()))])), [[{"m": {"k": 1}}], None, [None], []]),
    (pa.map_(pa.string(), pa.list_(pa.int32())), [{"x": [1], "y": None}, None, {}]),
    (pa.null(), [None, None]),
]


def as_pairs(value: object) -> object:
    """What pyarrow wants for maps: pairs instead of dicts (a struct of one field `m` holds the only nested one)."""
    if isinstance(value, list):
        return [as_pairs(item) for item in value]
    if isinstance(value, dict) and set(value) == {"m"}:
        return {"m": list(value["m"].items())}
    return value


@pytest.mark.parametrize(("kind", "values"), CASES, ids=[str(kind) for kind, _ in CASES])
def test_values_come_back(kind: pa.DataType, values: list[Any]) -> None:
    if pa.types.is_map(kind):
        given = [value if value is None else list(value.items()) for value in values]
    else:
        given = [as_pairs(value) for value in values]
    batch = pa.record_batch([pa.array(given, kind)], names=["v"])
    assert to_rows(batch) == [(value,) for value in values]
    assert to_rows(batch.slice(1)) == [(value,) for value in values[1:]]


def test_timestamps_are_in_utc_whatever_their_zone() -> None:
    array = pa.array([when(2024, 6, 1, 12, tzinfo=UTC)], pa.timestamp("us", "Europe/Oslo"))
    ((value,),) = to_rows(pa.record_batch([array], names=["v"]))
    assert value == when(2024, 6, 1, 12, tzinfo=UTC)
    assert value.tzinfo is UTC


def test_map_keys_that_are_no_keys_in_python_become_tuples() -> None:
    array = pa.array([[([1, 2], "a")]], pa.map_(pa.list_(pa.int32()), pa.string()))
    assert to_rows(pa.record_batch([array], names=["v"])) == [({(1, 2): "a"},)]


def test_two_columns_of_one_name_and_no_columns() -> None:
    assert to_rows(pa.record_batch([pa.array([1]), pa.array([2])], names=["a", "a"])) == [(1, 2)]
    assert to_rows(pa.record_batch([], schema=pa.schema([]))) == []


def test_a_struct_with_two_fields_of_one_name_is_refused() -> None:
    array = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    with pytest.raises(ValueError, match="two fields of one name"):
        to_rows(pa.record_batch([array], names=["v"]))


def test_buffer_gives_rows_and_arrow_in_turn() -> None:
    buffer = RowBuffer()
    rows = 2 * ROWS_AT_ONCE + 5
    for first in (0, rows):
        buffer.append(pa.record_batch([pa.array(range(first, first + rows))], names=["n"]))
    buffer.append(pa.record_batch([pa.array([], pa.int64())], names=["n"]))
    assert buffer.take_rows(2) == [(0,), (1,)]
    assert buffer.take_rows(rows)[-1] == (rows + 1,)
    rest = pa.Table.from_batches(buffer.take_batches())
    assert rest.column(0).to_pylist() == list(range(rows + 2, 2 * rows))
    assert not buffer
    assert buffer.take_rows(None) == []


def test_description_and_type_objects() -> None:
    columns = (
        Column("price", "decimal(15,2)"),
        Column("name", "varchar(10)"),
        Column("at", "timestamp_ntz"),
        Column("raw", "binary"),
        Column("tags", "array<int>"),
    )
    described = describe(columns)
    assert described[0] == ("price", "decimal(15,2)", None, None, 15, 2, None)
    assert described[1] == ("name", "varchar(10)", None, None, None, None, None)
    kinds = [NUMBER, STRING, DATETIME, BINARY, ROWID]
    found = [[kind == column[1] for kind in kinds].index(True) for column in described[:4]]
    assert found == [0, 1, 2, 3]
    assert not any(kind == described[4][1] for kind in kinds)
    assert len({*kinds}) == 5
