"""Rows that a query gave: which columns take them, what is written for them, and where it goes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from skerry.model.commits import Change, Policy, Write
from skerry.model.errors import SqlError, UserError
from skerry.model.limits import Limits
from skerry.model.sharded import Definition, OwnColumn, OwnTable
from skerry.model.table import Column
from skerry.sql import owntables as said
from skerry.sql.changes import NeedsQuery, analyse_change, analyse_constants
from skerry.sql.dialect import render
from skerry.tables.catalogue import first_map
from skerry.tables.computed import (
    Wanted,
    cast_here,
    changed_rows,
    needs_casts,
    needs_whole,
    routed_rows,
    size_of,
    wanted_of,
)
from skerry.tables.keys import decode_keys
from skerry.tables.storing import is_exact, stored_as, takes
from tests.unit.sql.change_cases import KNOWN

COLUMNS = (OwnColumn("k", "int", False), OwnColumn("v", "string", False, "'new'"), OwnColumn("n", "decimal(5,2)"))
TABLE = OwnTable(7, "t", 1, COLUMNS, ("k",), ("k",), ("bergen", "oslo"))
DEFINITION = Definition(TABLE, first_map(TABLE))
MOVES = Wanted("update", TABLE, (0, 1, 2), moves=True)

# Spark 4.2's Cast.canANSIStoreAssign, and of those the ones that need no Spark.
EXACT, BY_SPARK, NOT = "exact", "by Spark", "not"
PAIRS = {
    ("bigint", "int"): EXACT,
    ("int", "bigint"): BY_SPARK,
    ("double", "float"): EXACT,
    ("float", "double"): BY_SPARK,
    ("double", "int"): BY_SPARK,
    ("decimal(12,2)", "int"): EXACT,
    ("decimal(11,2)", "int"): BY_SPARK,
    ("decimal(21,2)", "bigint"): EXACT,
    ("decimal(10,2)", "decimal(9,1)"): EXACT,
    ("decimal(10,2)", "decimal(10,1)"): BY_SPARK,
    ("decimal(10,2)", "decimal(9,3)"): BY_SPARK,
    ("string", "timestamp"): BY_SPARK,
    ("string", "boolean"): BY_SPARK,
    ("string", "interval day to second"): BY_SPARK,
    ("string", "array<int>"): NOT,
    ("int", "string"): NOT,
    ("boolean", "int"): NOT,
    ("int", "boolean"): NOT,
    ("int", "interval day to second"): NOT,
    ("binary", "string"): NOT,
    ("date", "timestamp_ntz"): BY_SPARK,
    ("timestamp", "date"): BY_SPARK,
    ("timestamp", "bigint"): NOT,
    ("date", "string"): NOT,
    ("array<bigint>", "array<int>"): BY_SPARK,
    ("array<int>", "array<string>"): NOT,
    ("array<int>", "int"): NOT,
    ("map<string,bigint>", "map<string,int>"): BY_SPARK,
    ("map<int,int>", "map<string,int>"): NOT,
    ("struct<a:int,b:string>", "struct<A:bigint,b:int>"): BY_SPARK,
    ("struct<a:int,b:string>", "struct<b:string,a:int>"): NOT,
    ("struct<a:int>", "struct<a:int,b:int>"): NOT,
    ("array<int>", "void"): EXACT,
    ("struct<a:int>", "struct<a:int>"): EXACT,
}


def test_what_a_column_takes() -> None:
    for (target, source), want in PAIRS.items():
        found = NOT if not takes(target, source) else EXACT if is_exact(target, source) else BY_SPARK
        assert found == want, (target, source)
        assert takes(target, source) or not is_exact(target, source)


def rows(*columns: list[Any]) -> pa.Table:
    return pa.table([pa.array(values) for values in columns], names=list("abcd")[: len(columns)])


def written(wanted: Wanted, given: pa.Table) -> dict[int, tuple[Any, ...]]:
    """By key: what its write says; every part has the buckets that are its own."""
    routed = routed_rows(DEFINITION, wanted, given)
    found: dict[int, tuple[Any, ...]] = {}
    for part in routed.parts.values():
        (keys,) = decode_keys([pa.int32()], [write.key for write in part.writes])
        for key, write in zip(keys.to_pylist(), part.writes, strict=True):
            found[key] = _shown(write)
    assert size_of(routed) == sum(len(w.key) + len(w.row or b"") for p in routed.parts.values() for w in p.writes)
    return dict(sorted(found.items()))


def _shown(write: Write) -> tuple[Any, ...]:
    if write.row is None:
        return ("gone", write.is_counted)
    return (write.policy.name if not write.is_patch else "patch", *msgspec.msgpack.decode(write.row))


def test_what_is_written() -> None:
    insert = Wanted("insert", TABLE, (1, 0), Policy.NOTHING)
    given = rows(["a", "b", "a"], [1, 2, 1])
    assert written(insert, given) == {1: ("NOTHING", 1, "a", None), 2: ("NOTHING", 2, "b", None)}
    only_key = Wanted("insert", TABLE, (0,), Policy.REPLACE)
    assert written(only_key, rows([5])) == {5: ("REPLACE", 5, "new", None)}
    assert written(Wanted("delete", TABLE), rows([3, 4])) == {3: ("gone", True), 4: ("gone", True)}
    update = Wanted("update", TABLE, (2,))
    given = rows([3, 4], [None, Decimal(150)])
    assert written(update, given) == {3: ("patch", [2, None]), 4: ("patch", [2, "150.00"])}
    # 1 → 2 → 3 → 4: what is where another comes to goes first; 9 stays.
    moved = rows([1, 2, 3, 9], [2, 3, 4, 9], ["a", "b", "c", "d"], [None] * 4)
    assert written(MOVES, moved) == {
        1: ("gone", False),
        2: ("REPLACE", 2, "a", None),
        3: ("REPLACE", 3, "b", None),
        4: ("FAIL", 4, "c", None),
        9: ("patch", [1, "d"], [2, None]),
    }
    assert routed_rows(DEFINITION, MOVES, moved.slice(0, 0)).parts == {}
    globally = msgspec.structs.replace(TABLE, distributed_by=())
    routed = routed_rows(
        Definition(globally, first_map(globally)), msgspec.structs.replace(only_key, table=globally), rows([5])
    )
    assert (sorted(routed.parts), routed.copies) == (["bergen", "oslo"], 2)


def merged(*rows: tuple[int, int | None, int | None, str | None, int | None, str | None]) -> pa.Table:
    """Number of the clause, the key that is there, then what the update sets, and what the insert gives."""
    return pa.Table.from_pylist(
        [dict(zip("abcdef", row, strict=True)) for row in rows],
        pa.schema([("a", "int32"), ("b", "int32"), ("c", "int32"), ("d", "string"), ("e", "int32"), ("f", "string")]),
    ).append_column("g", pa.nulls(len(rows)))


def test_what_a_merge_writes() -> None:
    wanted = Wanted("merge", TABLE, clauses=(("update", (0, 1)), ("delete", ()), ("insert", (0, 1, 2))))
    came = (2, None, None, None)
    given = merged(
        (0, 1, 1, "a", None, None), (1, 2, *[None] * 4), (1, 3, *[None] * 4), (*came, 3, "c"), (*came, 4, "d")
    )
    assert written(wanted, given) == {
        1: ("patch", [1, "a"]),
        2: ("gone", True),
        3: ("REPLACE", 3, "c", None),
        4: ("FAIL", 4, "d", None),
    }
    # What goes ahead says the same, in another way.
    whole = msgspec.structs.replace(wanted, clauses=(("update", (0, 1, 2)), ("delete", ()), ("insert", (0, 1, 2))))
    assert needs_whole(wanted)
    assert not needs_whole(whole)
    columns = [*given.columns[:4], pa.nulls(5), *given.columns[4:]]
    changes = changed_rows(
        whole, [column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column for column in columns]
    )
    assert [tuple(row.values()) for row in changes.to_pylist()] == [
        (1, "a", None, Change.PUT),
        (2, None, None, Change.DELETE),
        (3, None, None, Change.DELETE),
        (3, "c", None, Change.INSERT),
        (4, "d", None, Change.INSERT),
    ]
    twice = merged((1, 2, *[None] * 4), (1, 2, *[None] * 4))
    assert written(msgspec.structs.replace(wanted, may_match_again=True), twice) == {2: ("gone", True)}
    for wrong, words in (
        (twice, "2 rows of USING match the row of k = 2"),
        (merged((0, 1, 1, "a", None, None), (*came, 1, "b")), "two rows would get the same primary key, k = 1"),
        (merged((*came, 1, "a"), (*came, 1, "a")), "two rows would get the same primary key, k = 1"),
    ):
        with pytest.raises(UserError, match=words):
            written(wanted, wrong)


@pytest.mark.parametrize(
    ("wanted", "given", "words"),
    [
        (Wanted("insert", TABLE, (0,)), rows([1, 1]), "two rows of the query"),
        (Wanted("insert", TABLE, (0, 1), Policy.REPLACE), rows([1, 1], ["a", "b"]), "two rows of the query"),
        (Wanted("insert", TABLE, (0,)), rows([1, None]), "k of t is NOT NULL, and NULL is given in 1 of 2"),
        (Wanted("update", TABLE, (1,)), rows([1, 2], ["a", None]), "v of t is NOT NULL"),
        (Wanted("update", TABLE, (1,)), rows([1, 1], ["a", "a"]), "2 rows of FROM match the row of k = 1"),
        (MOVES, rows([1, 2], [3, 3], ["a", "b"], [None, None]), "two rows would get the same primary key"),
        (MOVES, rows([1, 1], [3, 4], ["a", "b"], [None, None]), "2 rows of FROM"),
    ],
)
def test_what_cannot_be_written(wanted: Wanted, given: pa.Table, words: str) -> None:
    with pytest.raises(UserError, match=words):
        routed_rows(DEFINITION, wanted, given)


def test_who_casts() -> None:
    insert = Wanted("insert", TABLE, (0, 2))
    assert needs_casts(insert, [Column("a", "smallint"), Column("b", "decimal(4,2)")]) is False
    assert needs_casts(insert, [Column("a", "bigint"), Column("b", "decimal(4,2)")]) is True
    with pytest.raises(SqlError, match="column n of t is decimal"):
        needs_casts(insert, [Column("a", "int"), Column("b", "string")])
    with pytest.raises(SqlError, match="gives 1 columns, table t takes 2"):
        needs_casts(insert, [Column("a", "int")])
    # The key that comes first is of the table itself.
    assert needs_casts(Wanted("delete", TABLE), [Column("k", "int")]) is False

    def query(text: str, *, casts: bool = True) -> str:
        change = analyse_change(text, None, KNOWN, Limits(), needs_query=True, casts=casts)
        assert isinstance(change, said.Change)
        assert change.query is not None
        assert wanted_of(change).table is change.table
        return render(change.query.tree)

    assert query("INSERT INTO by_day (day, price) TABLE orders LIMIT 1") == (
        "SELECT CAST(`skerry_given`.`skerry_value_0` AS DATE) AS skerry_value_0, "
        "CAST(`skerry_given`.`skerry_value_1` AS DECIMAL(5, 2)) AS skerry_value_1 "
        "FROM (SELECT * FROM scan_0 AS orders LIMIT 1) AS skerry_given(skerry_value_0, skerry_value_1)"
    )
    updated = "SELECT `by_day`.`day`, `by_day`.`price`, CAST(x + 1 AS DOUBLE) AS skerry_value_0 FROM scan_0 AS by_day"
    assert query("UPDATE by_day SET x = x + 1") == updated
    assert query("TRUNCATE TABLE by_day") == "SELECT `by_day`.`day`, `by_day`.`price` FROM scan_0 AS by_day"
    for text, is_read in {
        "TRUNCATE TABLE by_day": True,
        "DELETE FROM by_day": True,
        "UPDATE by_day SET x = x + 1": True,
        "INSERT INTO by_day SELECT nonsense FROM nowhere": False,
        "INSERT INTO by_day VALUES (current_date(), 1, 1)": False,
    }.items():
        with pytest.raises(NeedsQuery) as caught:
            analyse_constants(text, None, KNOWN, Limits())
        assert (caught.value.table.name, caught.value.is_read) == ("by_day", is_read)


@pytest.mark.parametrize(
    ("given", "kind", "stored"),
    [
        (1e27, (38, 10), "1000000000000000000000000000.0000000000"),
        (1e28, (38, 10), None),
        (1e28, (38, 0), "10000000000000000000000000000"),
        (123456789.125, (38, 10), "123456789.1250000000"),
        (1.005, (10, 2), "1.01"),
        (-1.005, (10, 2), "-1.01"),
        (0.30000000000000004, (38, 37), "0.3000000000000000400000000000000000000"),
        (9.999999, (3, 2), None),
        (-0.0, (5, 2), "0.00"),
        (4.9e-324, (5, 2), "0.00"),
        (1e300, (38, 0), None),
        (float("nan"), (10, 2), "NULL"),
        (float("-inf"), (10, 2), "NULL"),
    ],
)
def test_floating_point_numbers_become_decimals_as_in_spark(
    given: float, kind: tuple[int, int], stored: str | None
) -> None:
    """What Apache Spark 4.2 answers; Sail gives other digits."""
    values = pa.array([given, None], pa.float64())
    if stored is None:
        with pytest.raises(UserError, match="NUMERIC_VALUE_OUT_OF_RANGE"):
            stored_as(values, pa.decimal128(*kind))
        return
    first, second = stored_as(values, pa.decimal128(*kind)).to_pylist()
    assert (str(first) if first is not None else "NULL", second) == (stored, None)


def test_floats_are_widened_before_they_become_decimals() -> None:
    (found,) = stored_as(pa.array([0.1], pa.float32()), pa.decimal128(38, 20)).to_pylist()
    assert str(found) == "0.10000000149011612000"


def test_no_engine_casts_floating_point_numbers_to_decimals() -> None:
    exact = KNOWN.tables["reading"]
    place = [column.name for column in exact.columns].index("exact")
    insert = Wanted("insert", exact, (0, place))
    assert needs_casts(insert, [Column("k", "int"), Column("x", "double")]) is False
    given = [Column("k", "bigint"), Column("x", "float")]
    assert needs_casts(insert, given) is True
    assert cast_here(insert, given) == (1,)
    text = "INSERT INTO reading (k, exact) SELECT 1L, 1e27"
    change = analyse_change(text, None, KNOWN, Limits(), needs_query=True, casts=True, as_is=(1,))
    assert isinstance(change, said.Insert)
    assert change.query is not None
    assert render(change.query.tree).count("CAST(") == 1
