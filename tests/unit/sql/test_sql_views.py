"""Views: what a mention of one becomes, and what is told of one that is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from skerry.config import parse
from skerry.model.errors import ConfigError, SqlError
from skerry.model.limits import VIEW_MENTIONS, Limits
from skerry.sql.statement import Query, analyse, read_view, render
from skerry.sql.views import View, Views, check_views, known_as, mistakes, views_of
from tests.unit.sql.sql_catalog import FakeCatalog

COLUMNS = "id bigint, cost double"
CATALOG = FakeCatalog(
    {"orders": COLUMNS, "default.orders": COLUMNS, "oslo.orders": COLUMNS, "default.sales.t": COLUMNS}
)


def views(**texts: str) -> list[View]:
    return [View(name, sql, "", f"views.{name}") for name, sql in texts.items()]


def asked(sql: str, known: list[View], default_schema: str = "") -> Query:
    found = Views(known_as(known, default_schema), frozenset({"oslo", "bergen"}))
    query = analyse(sql, None, CATALOG, Limits(), views=found)
    assert isinstance(query, Query)
    return query


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT dear.id FROM dear", "SELECT dear.id FROM (SELECT id FROM scan_0 AS orders WHERE cost > 5) AS `dear`"),
        ("SELECT d.x FROM dear AS d(x)", "SELECT d.x FROM (SELECT id FROM scan_0 AS orders WHERE cost > 5) AS d(x)"),
        ("WITH dear AS (SELECT 1 AS a) SELECT a FROM dear", "WITH dear AS (SELECT 1 AS a) SELECT a FROM dear"),
        (
            "WITH orders AS (SELECT 7 AS id) SELECT d.id FROM dear AS d JOIN orders ON TRUE",
            "WITH orders AS (SELECT 7 AS id) SELECT d.id FROM "
            "(SELECT id FROM scan_0 AS orders WHERE cost > 5) AS d JOIN orders ON TRUE",
        ),
    ],
)
def test_a_mention_is_its_query(sql: str, expected: str) -> None:
    query = asked(sql, views(dear="SELECT id FROM orders WHERE cost > 5"))
    assert render(query.tree) == expected


def test_a_members_view_reads_its_own_tables_and_all_of_that_name_are_the_plain_one() -> None:
    known = [View("few", "SELECT id FROM orders", "oslo", "p"), View("few", "SELECT id FROM orders", "bergen", "q")]
    assert [scan.table.member for scan in asked("SELECT * FROM oslo.few", known).tables] == ["oslo"]
    assert [scan.table.member for scan in asked("SELECT * FROM few", known, "oslo").tables] == ["oslo"]
    assert [scan.table.member for scan in asked("SELECT * FROM few", known).tables] == ["oslo", "default"]


def test_a_view_of_views_tells_all_that_it_reads() -> None:
    known = views(dear="SELECT id FROM orders", two="SELECT id FROM dear UNION ALL SELECT id FROM default.dear")
    assert dict(asked("SELECT * FROM two", known).views) == {
        "default.dear": "SELECT id FROM orders",
        "two": "SELECT id FROM dear UNION ALL SELECT id FROM default.dear",
    }


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"v": "SELECT nope FROM orders"}, "view v: unknown column nope\n  SELECT nope FROM orders"),
        ({"v": "SELECT * FROM gone"}, "view v: unknown table default.gone"),
        ({"v": "SELECT * FROM w", "w": "SELECT * FROM v"}, "view v reads itself: v → w → v"),
        ({"v": "SELECT * FROM v"}, "view v reads itself: v → v"),
    ],
)
def test_a_wrong_view_is_told_with_its_place(texts: Mapping[str, str], message: str) -> None:
    with pytest.raises(SqlError) as raised:
        asked("SELECT * FROM v", views(**texts))
    assert raised.value.message.startswith(message)


def test_views_that_grow_without_bound_are_refused() -> None:
    texts = {"v0": "SELECT id FROM orders"}
    for number in range(1, 12):
        texts[f"v{number}"] = f"SELECT a.id FROM v{number - 1} AS a JOIN v{number - 1} AS b ON a.id = b.id"
    with pytest.raises(SqlError, match=f"mentions more than {VIEW_MENTIONS} views"):
        asked("SELECT * FROM v11", views(**texts))


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("DROP TABLE orders", "a view is a query"),
        ("SELECT reflect('a', 'b')", "function reflect is not admitted"),
        ("SELECT * FROM orders WHERE id = ?", "has a marker for a value, and nobody gives a view values"),
        ("SELECT 1; SELECT 2", "one statement a call"),
        ("SELECT * FROM v", "view v reads itself"),
    ],
)
def test_what_no_statement_could_use_is_found_without_tables(sql: str, message: str) -> None:
    ((place, told),) = mistakes(views(v=sql), read_view)
    assert (place, told[: len(message)]) == ("views.v", message)
    with pytest.raises(ConfigError, match=r"views\.v: "):
        check_views(views(v=sql), read_view)


def test_the_configuration_has_views_of_the_cluster_and_of_members(tmp_path: Path) -> None:
    config = parse(
        "cluster: c\nviews: {late: SELECT 1}\nmembers: {oslo: {address: 'h:1', views: {own: SELECT 2}}}",
        base_dir=tmp_path,
    )
    assert [(each.name, each.schema, each.place) for each in views_of(config)] == [
        ("late", "", "views.late"),
        ("own", "oslo", "members.oslo.views.own"),
    ]
