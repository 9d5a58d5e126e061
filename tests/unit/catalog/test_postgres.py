"""How columns of PostgreSQL are asked for."""

from __future__ import annotations

import pytest

from skerry.catalog.postgres import Fact, Kept, ReadColumn, bounds_query, question, reading, statistics
from skerry.model.errors import SiteError
from skerry.model.table import Column


def numeric(digits: int, after: int) -> int:
    """As pg_attribute.atttypmod has it."""
    return ((digits << 16) | (after & 0x7FF)) + 4


def fact(type_: str, modifier: int = -1, *, by_bytes: bool = False, utf8: bool = True, dims: int = 0) -> Fact:
    return Fact("x", type_, "b", modifier, dims, by_bytes, utf8)


KINDS = {
    "whole": (fact("int8"), '"x"', "bigint", Kept.FREE),
    "digits": (fact("numeric", numeric(10, 2)), '"x"', "decimal(10,2)", Kept.FREE),
    "no digits": (fact("numeric"), 'CAST("x" AS DECIMAL(38, 18))', "decimal(38,18)", Kept.FREE),
    "hundreds": (fact("numeric", numeric(5, -2)), 'CAST("x" AS DECIMAL(7, 0))', "decimal(7,0)", Kept.FREE),
    "small ones": (fact("numeric", numeric(2, 5)), 'CAST("x" AS DECIMAL(5, 5))', "decimal(5,5)", Kept.FREE),
    "bytes": (fact("text", by_bytes=True), '"x"', "string", Kept.FREE),
    "words": (fact("varchar", 14), '"x" COLLATE "C"', "string", Kept.FREE),
    "another encoding": (fact("text", utf8=False), '"x" COLLATE "C"', "string", Kept.JOINED),
    "filled up": (fact("bpchar", 9), 'CAST("x" AS TEXT) COLLATE "C"', "string", Kept.FREE),
    "unknown": (fact("uuid"), 'CAST("x" AS TEXT) COLLATE "C"', "string", Kept.FREE),
    "real": (fact("float4"), 'CAST("x" AS DOUBLE PRECISION)', "float", Kept.FLOAT),
    "double": (fact("float8"), '"x"', "double", Kept.DOUBLE),
    "binary": (fact("bytea"), '"x"', "binary", Kept.JOINED),
    "a list": (fact("_int4", dims=1), '"x"', "array<int>", Kept.JOINED),
    "lists in a list": (fact("_int4", dims=2), 'CAST("x" AS TEXT) COLLATE "C"', "string", Kept.FREE),
    "a list of others": (fact("_numeric", dims=1), 'CAST("x" AS TEXT) COLLATE "C"', "string", Kept.FREE),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_is_read_so_that_spark_compares_it_rightly(kind: str) -> None:
    known, expression, type_, kept = KINDS[kind]
    found = reading(("s", "t"), [known])
    assert found.text == f'SELECT {expression} AS "x" FROM "s"."t"'
    assert found.columns == (ReadColumn("x", type_, kept),)


def test_columns_may_be_declared() -> None:
    wide = fact("numeric", numeric(50, 5))
    with pytest.raises(SiteError, match="x has 50 digits"):
        reading(("t",), [wide])
    assert reading(("t",), [wide], [Column("x", "decimal(38,5)")]).text == (
        'SELECT CAST("x" AS DECIMAL(38, 5)) AS "x" FROM "t"'
    )
    assert reading(("t",), [wide], [Column("x", "string")]).columns == (ReadColumn("x", "string"),)
    plain = fact("numeric", numeric(10, 2))
    assert reading(("t",), [plain], [Column("x", "decimal(10,2)")]).text == 'SELECT "x" AS "x" FROM "t"'
    with pytest.raises(SiteError, match="x is int8 in the database, which is read as bigint, not as date"):
        reading(("t",), [fact("int8")], [Column("x", "date")])
    with pytest.raises(SiteError, match="no column y"):
        reading(("s", "t"), [plain], [Column("y", "")])


def test_names_are_names_whatever_they_hold() -> None:
    table = 'x"; DROP TABLE y; --'
    odd = Fact('a"b', "int4", "b", -1, 0, True, True)
    found = reading((table,), [odd])
    assert found.text == 'SELECT "a""b" AS "a""b" FROM "x""; DROP TABLE y; --"'
    assert "to_regclass('\"it''s\"')" in question(("it's",))
    assert bounds_query(found, 'a"b').startswith('SELECT CAST(MIN("a""b") AS TEXT) AS low')


def test_statistics_are_estimates() -> None:
    told = Fact("x", "int4", "b", -1, 0, True, True, nulls=0.0, ndv=-0.5, width=4, low="-3", high="12")
    (found,) = statistics([told], reading(("t",), [told]), 1000).columns
    assert (found.low, found.high, found.ndv, found.nulls, found.is_exact) == (-3, 12, 500.0, None, False)
    odd = Fact("x", "numeric", "b", -1, 0, True, True, low="NaN", high="x")
    (found,) = statistics([odd], reading(("t",), [odd]), 1000).columns
    assert (found.low, found.high) == (None, None)
