"""Which way a write goes, and the tuples that it goes as (`ways.sql`)."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from skerry.model.columns import normal_type
from skerry.model.errors import SqlError
from skerry.model.limits import WRITE_TUPLES, Limits
from skerry.model.table import Column
from skerry.spark.types import arrow_type as arrow_of_spark
from skerry.spark.types import parse_type
from skerry.sql.changes import analyse_change
from skerry.sql.dialect import render
from skerry.sql.owntables import Change, CreateTable, key_columns
from skerry.tables.ways import BySpark, ByTuples, way_of
from skerry.tables.writes import writes_of
from skerry.wire import execution as packets
from skerry.wire.execution import TypeCode
from skerry.wire.execution_codec import decode_request, encode_request
from skerry.wire.tuples import checked_values, decode_tuples
from skerry.wire.tupletypes import arrow_type, kind_of, type_code
from tests.unit.sql.change_cases import KNOWN, Case, cases


def told(case: Case) -> str:
    try:
        change = case.analysed()
        assert isinstance(change, Change)
        way = way_of(change)
        if isinstance(way, BySpark):
            again = case.analysed(needs_query=True)
            assert isinstance(again, Change)
            assert again.query is not None
            return f"Spark: {way.reason}\n{render(again.query.tree)}\n"
        return "\n".join([f"tuples: {way.reason}", *_shown(way)]) + "\n"
    except SqlError as error:
        return f"{error.message}\n"


def _shown(way: ByTuples) -> list[str]:
    match way.packet:
        case packets.Insert():
            rows = [msgspec.msgpack.decode(each) for each in way.packet.tuples]
            return [f"{key} {row}" for key, row in zip(way.keys, rows, strict=True)]
        case packets.LocalUpdate():
            return [f"{item.pk} {item.values}" for item in way.packet.items]
    return [str(key) for key in way.keys]


PATHS = (Path(__file__).with_name("ways.sql"), Path(__file__).parents[1] / "sql" / "changes.sql")
CASES = cases(PATHS[0], told)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_write_goes_its_way(case: Case) -> None:
    assert told(case) == case.expected


@pytest.mark.parametrize(
    "case", [each for each in CASES if each.expected.startswith("tuples")], ids=lambda case: case.name
)
def test_tuples_are_read_as_the_columns_of_the_table(case: Case) -> None:
    change = case.analysed()
    assert isinstance(change, Change)
    way = way_of(change)
    assert isinstance(way, ByTuples)
    request = packets.Request("r", way.packet)
    assert repr(decode_request(encode_request(request))) == repr(request)
    columns = [Column(column.name, column.type) for column in change.table.columns]
    keys = [Column(column.name, column.type) for column in key_columns(change.table)]
    assert checked_values(way.keys, keys).num_rows == len(way.keys)
    match way.packet:
        case packets.Insert(tuples=tuples):
            rows = writes_of(change.table, decode_tuples(tuples, columns))
            assert [write.row for write in rows] == list(tuples), "a tuple is a row's bytes, as they are kept"
            assert len(rows) == len(way.keys)
        case packets.LocalUpdate(items=items):
            for item in items:
                checked_values([[value for value, _ in item.values]], [columns[place] for _, place in item.values])
            assert [item.pk for item in items] == list(way.keys)
        case packets.Delete(tuples=tuples) if tuples is not msgspec.UNSET:
            assert decode_tuples(tuples, keys).num_rows == len(way.keys)


def test_every_type_that_a_table_may_have_travels() -> None:
    texts = [case.text for case in cases(PATHS[1]) if case.expected.startswith("CreateTable")]
    found = set()
    for text in texts:
        statement = analyse_change(text, None, KNOWN, Limits())
        assert isinstance(statement, CreateTable)
        for column in statement.table.columns:
            found.add(type_code(column.type))
            assert arrow_type(kind_of(column.type)) == arrow_of_spark(parse_type(column.type))
            assert normal_type(column.type) == column.type
    assert found == set(TypeCode) - {TypeCode.UUID, TypeCode.ANY}


@pytest.mark.parametrize(
    ("rows", "text", "reason"),
    [
        (WRITE_TUPLES, "x", f"{WRITE_TUPLES} rows of constants"),
        (WRITE_TUPLES + 1, "x", f"{WRITE_TUPLES + 1} rows are more than the {WRITE_TUPLES} that go as tuples"),
        (2, "x" * 600_000, "1200032 bytes are more than the 1048576 that go as tuples"),
    ],
)
def test_few_rows_of_few_bytes_go_as_tuples(rows: int, text: str, reason: str) -> None:
    values = ", ".join(f"({place}, :x)" for place in range(rows))
    change = analyse_change(f"INSERT INTO reading (k, s) VALUES {values}", {"x": text}, KNOWN, Limits())
    assert isinstance(change, Change)
    assert way_of(change).reason == reason
