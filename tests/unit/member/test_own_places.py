"""Which members a statement over tables of our own asks."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from skerry.catalog.catalog import Catalog, own_part
from skerry.catalog.seen import seen_by
from skerry.config import parse
from skerry.member.ownplaces import placed
from skerry.model.limits import Limits
from skerry.model.rights import Pattern, Rights, Rule, Sight
from skerry.model.sharded import Definition, OwnColumn, OwnTable
from skerry.sql.statement import Query, analyse
from skerry.tables.bucket import buckets_of
from skerry.tables.catalogue import first_map
from skerry.tables.columns import arrow_type
from tests.unit.tables.table_samples import KEY_TYPES, TYPES

MEMBERS = ("oslo", "bergen", "tromso")
CONFIG = parse("cluster: c\nmembers: {oslo: {address: 'h:1'}, bergen: {address: 'h:2'}, tromso: {address: 'h:3'}}")


def defined(*kinds: str, by: int = 0) -> tuple[Catalog, Definition]:
    """Of a table whose first `by` columns say where a row is; none: it is everywhere."""
    columns = tuple(OwnColumn(f"k{number}", kind) for number, kind in enumerate(kinds))
    names = tuple(column.name for column in columns)
    table = OwnTable(1, "t", 1, columns, names, names[:by], MEMBERS)
    definition, catalog = Definition(table, first_map(table)), Catalog(CONFIG)
    catalog.define([definition])
    for name in MEMBERS:
        catalog.learn(name, [own_part(definition, name, 0, 0)], {})
    return catalog, definition


def asked(catalog: Catalog, sql: str, values: Any = ()) -> str | None:
    """The one member that is asked; None if it is several."""
    query = analyse(sql, values, catalog, Limits())
    assert isinstance(query, Query)
    found, near = placed(query, catalog, "bergen")
    members = {part.member for scan in found.tables for part in near.parts(scan.table)}
    return members.pop() if len(members) == 1 else None


@pytest.mark.parametrize("kind", KEY_TYPES)
def test_a_key_is_asked_for_where_its_bucket_is(kind: str) -> None:
    catalog, definition = defined(kind, "int", by=1)
    for value in TYPES[kind]:
        (bucket,) = buckets_of([pa.array([value], arrow_type(kind))], definition.table.buckets).tolist()
        (owner,) = (member for first, upto, member in definition.buckets.groups if first <= bucket < upto)
        found = asked(catalog, "SELECT * FROM t WHERE k1 > 0 AND ? = k0", [value])
        # Spark compares floating point in its own way, and 0 with 38 places as a type that has fewer.
        is_sure = kind not in ("float", "double") and (kind, value) != ("decimal(38,38)", 0)
        assert found == (owner if is_sure else None), (kind, value)


def test_what_does_not_say_the_key_asks_everybody() -> None:
    catalog, _ = defined("bigint", "string", "int", by=2)
    sure = asked(catalog, "SELECT * FROM t WHERE k1 = 'a' AND k0 = 1")
    assert sure in MEMBERS
    assert asked(catalog, "SELECT k2 FROM t AS x WHERE x.k1 IN ('a') AND (x.k0 = 1)") == sure
    for where in (
        *("k0 = 1", "k0 = 1 OR k1 = 'a'", "k0 + 0 = 1 AND k1 = 'a'", "k0 = k2 AND k1 = 'a'", "k0 > 1 AND k1 = 'a'"),
        *("NOT (k0 = 1 AND k1 = 'a')", "k0 <=> 1 AND k1 = 'a'", "k0 = 1 AND k1 = NULL", "k0 = 1 AND k1 LIKE 'a'"),
        "k0 IN (1, 2, 3, 4, 5, 6, 7, 8, 9) AND k1 = 'a'",
    ):
        assert asked(catalog, f"SELECT * FROM t WHERE {where}") is None, where
    # Each mention of a table by itself, and rows that an outer join keeps are not left out.
    assert asked(catalog, "SELECT 1 FROM t a JOIN t b ON a.k2 = b.k2 WHERE a.k0 = 1 AND a.k1 = 'a'") is None
    assert asked(catalog, "SELECT 1 FROM t a LEFT JOIN oslo.t b ON a.k0 = 1 AND a.k1 = 'a'") is None


def test_who_sees_masked_keys_asks_everybody() -> None:
    catalog, _ = defined("bigint", by=1)
    for sight, is_one in ((Sight(masks={"k0": "k0 % 2"}), False), (Sight(), True)):
        seen = seen_by(catalog, Rights("ann", (), ((Rule(Pattern("", "t"), sight),),)))
        assert (asked(seen, "SELECT * FROM t WHERE k0 = 1") is not None) is is_one


def test_of_copies_one_is_asked() -> None:
    catalog, _ = defined("int")
    assert asked(catalog, "SELECT * FROM t") == "bergen"
    assert asked(catalog, "SELECT 1 FROM t a, t b") == "bergen"
    assert asked(catalog, "SELECT 1 FROM t JOIN tromso.t x ON x.k0 = t.k0") == "tromso"
