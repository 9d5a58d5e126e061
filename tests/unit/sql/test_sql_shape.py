"""What the root of a query promises about its result."""

from __future__ import annotations

import pytest
from sqlglot import exp

from skerry.model.errors import InternalError
from skerry.model.fragment import SortKey
from skerry.sql.shape import drop_limit, put_sort_by, result_shape, without_limit
from skerry.sql.statement import render
from tests.unit.sql.sql_cases import query


def asc(index: int) -> SortKey:
    return SortKey(index, descending=False, nulls_first=True)


def desc(index: int) -> SortKey:
    return SortKey(index, descending=True, nulls_first=False)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT count(*) FROM orders", True),
        ("SELECT 1 + sum(o_id) / 2 AS x FROM orders WHERE o_id > 1", True),
        ("SELECT count(*) FILTER (WHERE o_id > 1) FROM orders", True),
        ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY o_id) FROM orders", True),
        ("SELECT 1 FROM orders HAVING count(*) > 1", True),
        ("SELECT sum(sum(o_id)) OVER () FROM orders", True),
        ("SELECT sum(o_id) OVER () FROM orders", False),
        ("SELECT sum(o_id) FILTER (WHERE true) OVER () FROM orders", False),
        ("SELECT explode(collect_list(o_id)) FROM orders", False),
        ("SELECT count(*) FROM orders GROUP BY o_id", False),
        ("SELECT count(*) FROM orders GROUP BY ALL", True),
        ("SELECT o_id FROM orders", False),
        ("SELECT (SELECT count(*) FROM orders) FROM item", False),
        ("SELECT count(*) FROM orders UNION ALL SELECT 1", False),
    ],
)
def test_global_aggregates(sql: str, expected: bool) -> None:
    assert result_shape(query(sql)).is_global_aggregate is expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM orders", True),
        ("SELECT o_id + 1, upper(o_note) FROM orders o WHERE o_id > 1 ORDER BY o_id LIMIT 3 OFFSET 1", True),
        ("SELECT DISTINCT o_id FROM orders", False),
        ("SELECT count(*) FROM orders", False),
        ("SELECT rank() OVER (ORDER BY o_id) FROM orders", False),
        ("SELECT explode(c_tags) FROM customer", False),
        ("SELECT o_id FROM orders GROUP BY o_id", False),
        ("SELECT o_id FROM orders, item", False),
        ("SELECT o_id FROM orders WHERE o_id IN (SELECT 1)", False),
        ("SELECT o_id FROM orders WHERE EXISTS (SELECT 1)", False),
        ("SELECT x FROM customer LATERAL VIEW explode(c_tags) t AS x", False),
        ("SELECT o_id FROM (SELECT * FROM orders)", False),
        ("WITH x AS (SELECT 1) SELECT o_id FROM orders", False),
        ("WITH x AS (SELECT * FROM orders) SELECT o_id FROM x", False),
        ("SELECT id FROM range(3)", False),
        ("SELECT 1", False),
        ("SELECT o_id FROM orders SORT BY o_id", False),
        ("(SELECT o_id FROM orders)", False),
    ],
)
def test_plain_scans(sql: str, expected: bool) -> None:
    assert result_shape(query(sql)).is_plain_scan is expected


@pytest.mark.parametrize(
    ("sql", "limit", "offset", "known"),
    [
        ("SELECT 1", None, 0, True),
        ("SELECT 1 LIMIT 5", 5, 0, True),
        ("SELECT 1 LIMIT 5 OFFSET 2", 5, 2, True),
        ("SELECT 1 LIMIT ALL", None, 0, True),
        ("SELECT 1 LIMIT 2 + 3", None, 0, False),
        ("SELECT 1 LIMIT 5 OFFSET 1 + 1", 5, 0, False),
        ("SELECT 1 LIMIT 5L", None, 0, False),
        ("SELECT 1 UNION ALL SELECT 2 LIMIT 1", 1, 0, True),
        ("(SELECT 1 LIMIT 9) LIMIT 1", 1, 0, True),
    ],
)
def test_bounds(sql: str, limit: int | None, offset: int, known: bool) -> None:
    shape = result_shape(query(sql))
    assert (shape.limit, shape.offset, shape.bounds_known) == (limit, offset, known)


@pytest.mark.parametrize(
    ("sql", "keys"),
    [
        ("SELECT o_id, o_date FROM orders ORDER BY o_date DESC, O_ID", (desc(1), asc(0))),
        ("SELECT o_id AS a FROM orders ORDER BY a NULLS LAST", (SortKey(0, False, False),)),
        ("SELECT o_id FROM orders ORDER BY 1 DESC NULLS FIRST", (SortKey(0, True, True),)),
        ("SELECT o_id + 1, o_id FROM orders ORDER BY o_id + 1", (asc(0),)),
        ("SELECT sum(o_id), o_date FROM orders GROUP BY o_date ORDER BY SUM(O_ID) DESC", (desc(0),)),
        ("SELECT o.o_id AS x FROM orders o ORDER BY o.o_id", (asc(0),)),
        ("SELECT o_id AS o_date, o_date AS o_id FROM orders ORDER BY o_id", (asc(1),)),
        ("SELECT * FROM orders ORDER BY o_price DESC", (desc(3),)),
        ("SELECT *, o_id + 1 AS x FROM orders ORDER BY x", (asc(5),)),
        ("SELECT o.* FROM orders o ORDER BY 2", (asc(1),)),
        ("SELECT o_id, o_date FROM orders ORDER BY ALL DESC", (desc(0), desc(1))),
        ("SELECT CAST(o_id AS STRING) FROM orders ORDER BY o_id", (asc(0),)),
        ("SELECT o_id FROM orders UNION ALL SELECT i_order FROM item ORDER BY o_id", (asc(0),)),
        ("(SELECT o_id FROM orders) ORDER BY 1", (asc(0),)),
        ("SELECT o_id FROM orders ORDER BY o_date", None),
        ("SELECT o_id FROM orders ORDER BY o_id + 1", None),
        ("SELECT o_id AS o_price, o_price + 1 FROM orders ORDER BY o_price + 1", None),
        ("SELECT rand() FROM orders ORDER BY rand()", None),
        ("SELECT o_id AS a, o_date AS a FROM orders ORDER BY a", None),
        ("SELECT * FROM orders, item ORDER BY o_id", None),
        ("SELECT * FROM (SELECT * FROM orders) ORDER BY o_id", None),
        ("SELECT o_id FROM orders ORDER BY 2", None),
        ("SELECT explode(c_tags), c_id FROM customer ORDER BY c_id", None),
        ("SELECT o_id FROM orders", None),
    ],
)
def test_order_keys(sql: str, keys: tuple[SortKey, ...] | None) -> None:
    shape = result_shape(query(sql))
    assert shape.order_keys == keys
    assert shape.has_order == (" ORDER BY " in sql)


def test_order_by_becomes_sort_by() -> None:
    tree = query("SELECT o_id FROM orders ORDER BY o_id DESC LIMIT 3 OFFSET 1").tree
    assert render(without_limit(tree)) == "SELECT o_id FROM scan_0 AS orders ORDER BY o_id DESC"
    put_sort_by(tree)
    assert render(tree) == "SELECT o_id FROM scan_0 AS orders SORT BY o_id DESC LIMIT 3 OFFSET 1"
    drop_limit(tree)
    assert render(tree) == "SELECT o_id FROM scan_0 AS orders SORT BY o_id DESC"
    everything = query("SELECT explode(array(o_id)), o_date FROM orders ORDER BY ALL").tree
    with pytest.raises(InternalError):
        put_sort_by(everything)
    put_sort_by(everything, 2)
    assert render(everything).endswith("SORT BY 1, 2")


def test_the_plan_may_name_small_relations() -> None:
    tree = query("SELECT DISTINCT o_id FROM orders o JOIN item i ON o_id = i_order").tree
    named = exp.Anonymous(this="BROADCAST", expressions=[exp.to_identifier("i", quoted=True)])
    tree.set("hint", exp.Hint(expressions=[named]))
    assert render(tree).startswith("SELECT /*+ BROADCAST(`i`) */ DISTINCT o_id FROM")
