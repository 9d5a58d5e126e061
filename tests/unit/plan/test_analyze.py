"""ANALYZE TABLE as a plan, and what is read from its answer."""

from __future__ import annotations

import json

import msgspec
import pytest

from skerry.catalog.topology import Topology
from skerry.config import Leaves, parse
from skerry.model.errors import UserError
from skerry.model.table import Column, TablePart
from skerry.plan.analyze import analyze_plan, read_found
from skerry.plan.cache import fingerprint
from skerry.plan.egress import EgressRules
from skerry.plan.site import Site

COLUMNS = (
    Column("k", "bigint"),
    Column("odd name", "string"),
    Column("p", "decimal(9,2)"),
    Column("d", "date"),
    Column("f", "double"),
    Column("l", "array<int>"),
)
PARTS = [TablePart("t", name, COLUMNS, 10, 640, 3, 4) for name in ("oslo", "bergen")]
SITE = Site("oslo", ("oslo", "bergen"))


def test_one_fragment_a_part() -> None:
    plan = analyze_plan(PARTS, (), SITE)
    assert plan.plan_id == fingerprint(plan)
    assert [(each.member, each.analyzes) for each in plan.fragments] == [("oslo", "t"), ("bergen", "t")]
    assert plan.schema_info == {"oslo.t": 3, "bergen.t": 3}
    assert plan.rows.senders == ("oslo", "bergen")
    assert "approx_count_distinct(`odd name`)" in plan.fragments[0].sql
    assert "(`l`)" in plan.fragments[0].sql
    assert "min(`l`)" not in plan.fragments[0].sql


def test_only_the_columns_that_were_named() -> None:
    sql = analyze_plan(PARTS, ("k",), SITE).fragments[0].sql
    assert "min(`k`)" in sql
    assert "odd name" not in sql


def test_nothing_is_found_of_a_table_that_never_leaves_its_site() -> None:
    config = parse("cluster: c\nmembers: {oslo: {address: 'h:1'}, bergen: {address: 'h:2'}}")

    def marked(member: str, leaves: Leaves) -> Site:
        egress = EgressRules({(member, "t"): leaves}, Topology(config))
        return msgspec.structs.replace(SITE, egress=egress)

    with pytest.raises(UserError, match="rows of t from bergen to oslo"):
        analyze_plan(PARTS, (), marked("bergen", Leaves.NEVER))
    for site in (marked("oslo", Leaves.NEVER), marked("bergen", Leaves.AGGREGATED)):
        assert len(analyze_plan(PARTS, (), site).fragments) == 2


def test_what_was_found() -> None:
    found = {
        "k": {"nulls": 1, "ndv": 9, "low": "-5", "high": "12"},
        "odd name": {"nulls": 0, "ndv": 3, "low": "a", "high": "z" * 40, "width": 7.5},
        "p": {"nulls": 0, "ndv": 3, "low": "-1.50", "high": "2.00"},
        "d": {"nulls": 10},
        "f": {"nulls": 0, "ndv": 2, "low": "0.5", "high": "NaN"},
        "l": {"nulls": 2},
        "gone": {"nulls": 2},
    }
    stats = read_found(json.dumps(found), COLUMNS)
    assert stats.source == "analyze"
    k, odd, p, d, f, array = stats.columns
    assert (k.low, k.high, k.nulls, k.ndv, k.is_exact) == (-5, 12, 1, 9, True)
    assert (odd.low, odd.width_bytes, odd.is_exact) == ("a", 11.5, False)
    assert (p.low, p.high) == ("-1.50", "2.00")
    assert (d.low, d.nulls, d.ndv) == (None, 10, None)
    assert (f.low, f.high, f.is_exact) == (0.5, None, False)
    assert (array.nulls, array.ndv) == (2, None)


@pytest.mark.parametrize("text", ["", "[]", "null", '{"k": 3}', '{"k": {"low": "soon", "ndv": "many"}}'])
def test_what_cannot_be_read_is_unknown(text: str) -> None:
    assert all(column.low is None and column.ndv is None for column in read_found(text, COLUMNS).columns)
