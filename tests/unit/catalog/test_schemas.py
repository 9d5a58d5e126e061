"""Tables of schemas and older versions: known by name alone until their site has been asked."""

from __future__ import annotations

import pytest

from skerry.access.rules import parse_rules
from skerry.catalog.catalog import Catalog, Undescribed
from skerry.catalog.seen import seen_by
from skerry.config import parse
from skerry.model.config import Config, Leaves
from skerry.model.errors import ConfigError, SiteError, UserError
from skerry.model.names import Moment, TableRef, base_of, older_name, schema_of, split_older
from skerry.model.table import Column, TablePart
from skerry.plan.egress import mark_of, marks_of

CONFIG = """
cluster: c
members:
  oslo:
    address: h:1
    schemas: {sales: {namespace: sales, leaves: never}}
    spark: {master: "local[1]", packages: ["io.delta:delta-spark_4.2_2.13:4.4.0"]}
    tables: {stock: {format: delta, path: x}, plain: {format: csv, path: y}}
  bergen: {address: 'h:2', schemas: {Sales: {namespace: bergen}}}
  tromso: {address: 'h:3'}
"""
COLUMNS = (Column("id", "bigint"), Column("name", "string"))
OLDER = older_name("stock", Moment("version", 3))


def config() -> Config:
    return parse(CONFIG)


def known(*offered: str) -> Catalog:
    catalog = Catalog(config())
    catalog.learn("oslo", [part("oslo", "stock")], {}, offered)
    catalog.learn("bergen", [], {})
    catalog.learn("tromso", [], {})
    return catalog


def part(member: str, table: str, columns: tuple[Column, ...] = COLUMNS) -> TablePart:
    return TablePart(table, member, columns, 3, 10, 1, 1)


def undescribed(catalog: Catalog, *name: str, schema: str = "") -> tuple[str, str]:
    with pytest.raises(Undescribed) as raised:
        catalog.lookup(name, schema)
    return raised.value.member, raised.value.table


def test_each_site_with_the_schema_is_asked_once() -> None:
    catalog = known()
    assert undescribed(catalog, "sales", "Orders") == ("oslo", "sales.Orders")
    catalog.learn_asked("oslo", "sales.Orders", [part("oslo", "sales.orders")], {})
    assert undescribed(catalog, "sales", "Orders") == ("bergen", "sales.Orders")
    catalog.learn_asked("bergen", "sales.Orders", [], {})  # it has no such table
    assert catalog.lookup(("SALES", "orders")) == TableRef("sales.orders", None, COLUMNS)
    assert catalog.lookup(("oslo", "sales", "orders")) == TableRef("sales.orders", "oslo", COLUMNS)
    assert catalog.lookup(("default", "sales", "orders")) == TableRef("sales.orders", None, COLUMNS)
    assert catalog.lookup(("orders",), "sales") == TableRef("sales.orders", None, COLUMNS)
    assert catalog.lookup(("bergen", "sales", "orders")) is None
    assert catalog.lookup(("tromso", "sales", "orders")) is None
    assert catalog.lookup(("other", "orders")) is None
    assert catalog.lookup(("sales", "a", "b")) is None
    for one_name in (
        ("sales.orders",),
        ("oslo", "sales.orders"),
        ("default", "sales.orders"),
        ("oslo.sales", "orders"),
    ):
        assert catalog.lookup(one_name) is None


def test_what_was_asked_is_asked_again_when_the_site_tells_all_of_its_tables() -> None:
    catalog = known()
    catalog.learn_asked("oslo", "sales.t", [part("oslo", "sales.t")], {})
    catalog.learn_asked("bergen", "sales.t", [], {})
    catalog.learn("oslo", [part("oslo", "stock")], {}, is_asked=False)  # it has new statistics of its own tables
    assert catalog.lookup(("sales", "t")) is not None
    catalog.learn("oslo", [part("oslo", "stock")], {})
    assert undescribed(catalog, "sales", "t") == ("oslo", "sales.t")


def test_a_table_that_a_site_cannot_read_is_told_in_its_words() -> None:
    catalog = known()
    catalog.learn_asked("oslo", "sales.t", [], {"sales.t": "the metastore is down"})
    with pytest.raises(SiteError, match=r"site oslo: table sales\.t: the metastore is down"):
        catalog.lookup(("oslo", "sales", "t"))


def test_an_older_version_is_a_table_beside_the_one_of_now() -> None:
    catalog = known()
    with pytest.raises(UserError, match="AS OF is for tables of our own and those of Delta: plain is read"):
        catalog.lookup((older_name("plain", Moment("version", 3)),))
    assert undescribed(catalog, OLDER) == ("oslo", OLDER)
    catalog.learn_asked("oslo", OLDER, [part("oslo", OLDER, COLUMNS[:1])], {})
    assert catalog.lookup((OLDER,)) == TableRef(OLDER, None, COLUMNS[:1])
    assert catalog.lookup(("stock",)) == TableRef("stock", None, COLUMNS)
    assert catalog.lookup((older_name("gone", Moment("version", 3)),)) is None


def test_names_of_versions_and_schemas_are_read_as_they_are_made() -> None:
    for moment in (Moment("version", 0), Moment("timestamp", 17)):
        assert split_older(older_name("sales.a b\nc", moment)) == ("sales.a b\nc", moment)
    assert (base_of("a b"), base_of(OLDER), schema_of("Sales.x.y"), schema_of("x")) == ("a b", "stock", "sales", "")


def test_schemas_are_shown_with_what_their_catalogs_list() -> None:
    catalog = known("sales.orders", "other.evil", "sales.odd`name")
    assert catalog.schemas() == ("default", "oslo", "bergen", "tromso", "sales")
    assert [line.table for line in catalog.show_tables("sales")] == ["sales.odd`name", "sales.orders"]
    assert {line.problem for line in catalog.show_tables("sales")} == {""}
    assert "sales.orders" in catalog.names()


RULES = """
roles:
  seller: [{on: sales.*, select: true}, {on: sales.pay, select: false}, {on: oslo.sales.staff, select: [id]}]
  keeper: [{on: stock, select: [id]}]
users: {ann: [seller], bob: [keeper]}
"""


def test_rules_are_about_schemas_and_older_versions_too() -> None:
    rules = parse_rules(RULES, "rules.yaml", config())
    catalog = known("sales.orders", "sales.pay")
    for name in ("sales.orders", "sales.pay", "sales.staff", OLDER):
        catalog.learn_asked("oslo", name, [part("oslo", name)], {})
        catalog.learn_asked("bergen", name, [], {})
    ann, bob = (seen_by(catalog, rules.rights_of(user)) for user in ("ann", "bob"))
    assert ann.lookup(("sales", "orders")) == TableRef("sales.orders", None, COLUMNS)
    assert ann.lookup(("oslo", "sales", "staff")) == TableRef("sales.staff", "oslo", COLUMNS[:1])
    assert ann.lookup(("sales", "pay")) is None
    assert [line.table for line in ann.show_tables("sales")] == ["sales.orders"]
    assert ann.lookup((OLDER,)) is None
    assert bob.lookup((OLDER,)) == TableRef(OLDER, None, COLUMNS[:1])
    assert bob.lookup(("sales", "orders")) is None
    assert "sales" not in bob.schemas()


def test_nobody_asks_a_site_for_a_user_who_may_not_see_the_answer() -> None:
    rules = parse_rules(RULES, "rules.yaml", config())
    assert seen_by(known(), rules.rights_of("bob")).lookup(("sales", "orders")) is None
    assert seen_by(known(), rules.rights_of("ann")).lookup(("oslo", "sales", "pay")) is None
    with pytest.raises(ConfigError, match=r"no member tromso\.sales"):
        parse_rules("roles: {r: [{on: tromso.sales.x, select: true}]}", "rules.yaml", config())


def test_the_mark_of_a_schema_holds_for_its_tables_and_their_versions() -> None:
    marks = marks_of(config().members.values())
    assert mark_of(marks, "oslo", "sales.Orders") is Leaves.NEVER
    assert mark_of(marks, "Oslo", older_name("sales.orders", Moment("version", 1))) is Leaves.NEVER
    assert mark_of(marks, "bergen", "sales.orders") is None
    assert mark_of(marks, "oslo", "stock") is None


def test_a_part_that_nobody_has_asked_for_is_no_reason_for_a_shorter_answer() -> None:
    """Ann may read the table at oslo alone: whether bergen has it too, only bergen knows."""
    text = "roles: {seller: [{on: oslo.sales.*, select: true}]}\nusers: {ann: [seller]}"
    rights = parse_rules(text, "rules.yaml", config()).rights_of("ann")
    catalog = known()
    catalog.learn_asked("oslo", "sales.orders", [part("oslo", "sales.orders")], {})
    assert undescribed(seen_by(catalog, rights), "sales", "orders") == ("bergen", "sales.orders")
    assert seen_by(catalog, rights).lookup(("oslo", "sales", "orders")) is not None
    catalog.learn_asked("bergen", "sales.orders", [], {})
    assert seen_by(catalog, rights).lookup(("sales", "orders")) == TableRef("sales.orders", None, COLUMNS)
    catalog.learn_asked("bergen", "sales.orders", [part("bergen", "sales.orders")], {})
    with pytest.raises(UserError, match="your rights differ between its parts"):
        seen_by(catalog, rights).lookup(("sales", "orders"))
