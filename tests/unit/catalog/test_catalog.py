"""What names mean to an initiator, and what it says when a site is missing."""

from __future__ import annotations

import msgspec
import pytest

from skerry.catalog.catalog import Catalog, own_part
from skerry.config import parse
from skerry.model.errors import PeerError, SiteError, UserError
from skerry.model.sharded import Definition, OwnColumn, OwnTable
from skerry.model.table import Column, PartStats, TablePart
from skerry.tables.catalogue import first_map

CONFIG = parse("""\
cluster: nordic
members:
  Oslo:
    address: h:1
    tables: {orders: {format: parquet, path: o}, nation: {format: csv, path: n}}
  bergen:
    address: h:2
    tables: {Orders: {format: json, path: o}, customer: {format: parquet, path: c}}
  front: {address: 'h:3', role: lite}
""")
KEY = (Column("k", "bigint"), Column("v", "string"))


def part(
    member: str, table: str, columns: tuple[Column, ...] = KEY, rows: int | None = 10, size: int = 100
) -> TablePart:
    return TablePart(table, member, columns, rows, size, 1, 1)


@pytest.fixture
def catalog() -> Catalog:
    catalog = Catalog(CONFIG)
    catalog.learn("Oslo", [part("Oslo", "orders"), part("Oslo", "nation", rows=None)], {})
    catalog.learn(
        "bergen",
        [part("bergen", "Orders", (Column("K", "BIGINT"), Column("v", "string"))), part("bergen", "customer")],
        {},
    )
    return catalog


def test_a_logical_table_has_all_its_parts(catalog: Catalog) -> None:
    ref = catalog.lookup(("ORDERS",))
    assert ref is not None
    assert (ref.name, ref.member, ref.columns) == ("orders", None, KEY)
    assert [(each.member, each.table) for each in catalog.parts(ref)] == [("Oslo", "orders"), ("bergen", "Orders")]
    assert [(column.name, column.type) for column in ref.columns] == [("k", "bigint"), ("v", "string")]


def test_a_part_alone(catalog: Catalog) -> None:
    ref = catalog.lookup(("BERGEN", "orders"))
    assert ref is not None
    assert (ref.name, ref.member) == ("Orders", "bergen")
    assert [each.member for each in catalog.parts(ref)] == ["bergen"]


@pytest.mark.parametrize(
    "name", [("order",), ("oslo", "customer"), ("front", "orders"), ("nobody", "orders"), ("c", "oslo", "orders"), ()]
)
def test_unknown_names(catalog: Catalog, name: tuple[str, ...]) -> None:
    assert catalog.lookup(name) is None


def test_a_default_schema_means_the_part_there_if_it_has_one(catalog: Catalog) -> None:
    orders, customer = catalog.lookup(("orders",), "oslo"), catalog.lookup(("customer",), "oslo")
    assert orders is not None
    assert customer is not None
    assert (orders.member, customer.member) == ("Oslo", None)
    part_of_bergen = catalog.lookup(("bergen", "orders"), "oslo")
    assert part_of_bergen is not None
    assert part_of_bergen.member == "bergen"


def test_a_mistyped_schema_does_not_mean_all_sites(catalog: Catalog) -> None:
    with pytest.raises(UserError, match=r"^there is no schema olso; did you mean Oslo\?$"):
        catalog.lookup(("orders",), "olso")


def test_every_schema_that_is_shown_may_be_named(catalog: Catalog) -> None:
    assert catalog.schemas() == ("default", "Oslo", "bergen", "front")
    assert [catalog.schema(name.upper()) for name in catalog.schemas()] == ["", "Oslo", "bergen", "front"]
    whole = catalog.lookup(("orders",))
    for schema in ("default", "front"):
        assert catalog.lookup(("orders",), schema) == whole
    assert catalog.lookup(("Default", "orders"), "oslo") == whole
    assert catalog.show_tables("default") == catalog.show_tables()
    assert catalog.show_tables("front") == ()
    with pytest.raises(UserError, match="there is no schema nowhere; there are default, Oslo, bergen, front"):
        catalog.schema("nowhere")


def test_names(catalog: Catalog) -> None:
    expected = ["customer", "nation", "orders"]
    expected += ["bergen.customer", "bergen.Orders", "Oslo.nation", "Oslo.orders"]
    assert catalog.names() == expected
    for name in expected:
        assert catalog.lookup(tuple(name.split("."))) is not None


@pytest.mark.parametrize("name", [("orders",), ("bergen", "orders")])
def test_a_lost_site_is_named(catalog: Catalog, name: tuple[str, ...]) -> None:
    catalog.lose("bergen", "connection refused")
    with pytest.raises(SiteError) as caught:
        catalog.lookup(name)
    assert caught.value.message == "site bergen is down: connection refused; table Orders is there"
    assert caught.value.member == "bergen"
    assert catalog.lookup(("oslo", "orders")) is not None
    assert catalog.lookup(("nation",)) is not None
    catalog.learn("bergen", [part("bergen", "Orders")], {})
    assert catalog.lookup(name) is not None


def test_a_site_that_has_not_spoken_yet() -> None:
    with pytest.raises(
        SiteError, match=r"^site bergen is down: it has not told its tables yet; table customer is there$"
    ):
        Catalog(CONFIG).lookup(("customer",))


@pytest.mark.parametrize("prefix", ["", "site Oslo: table orders: "])
def test_a_broken_table_says_why(catalog: Catalog, prefix: str) -> None:
    reason = "no file under data/o (check members.Oslo.tables.orders.path)"
    catalog.learn("Oslo", [part("Oslo", "nation")], {"orders": prefix + reason})
    with pytest.raises(SiteError) as caught:
        catalog.lookup(("orders",))
    assert caught.value.message == f"site Oslo: table orders: {reason}"
    assert caught.value.may_quote  # another site's reason may be in the words of its Spark


def test_a_table_that_the_site_does_not_know(catalog: Catalog) -> None:
    catalog.learn("Oslo", [], {})
    with pytest.raises(SiteError, match=r"^site Oslo: table nation: the site does not know it"):
        catalog.lookup(("nation",))


def test_a_table_beyond_the_configuration_is_known_as_long_as_the_site_tells_it(catalog: Catalog) -> None:
    catalog.learn("Oslo", [part("Oslo", "fresh")], {})
    assert catalog.lookup(("fresh",)) is not None
    catalog.learn("Oslo", [], {})
    assert catalog.lookup(("fresh",)) is None


def test_parts_that_disagree_name_both_sites(catalog: Catalog) -> None:
    catalog.learn("bergen", [part("bergen", "Orders", (Column("k", "int"), Column("v", "string")))], {})
    with pytest.raises(SiteError, match="different columns at sites Oslo and bergen: k is int here and bigint there"):
        catalog.lookup(("orders",))
    assert catalog.lookup(("oslo", "orders")) is not None
    assert catalog.lookup(("bergen", "orders")) is not None


def test_what_a_site_may_not_say(catalog: Catalog) -> None:
    with pytest.raises(PeerError, match="described a table of bergen"):
        catalog.learn("Oslo", [part("bergen", "orders")], {})
    with pytest.raises(PeerError, match="described table ORDERS twice"):
        catalog.learn("Oslo", [part("Oslo", "orders"), part("Oslo", "ORDERS")], {})
    with pytest.raises(PeerError, match="site elsewhere is not in the configuration"):
        catalog.learn("elsewhere", [], {})
    with pytest.raises(PeerError, match="site elsewhere is not in the configuration"):
        catalog.lose("elsewhere", "")
    assert catalog.lookup(("orders",)) is not None


def test_show_tables(catalog: Catalog) -> None:
    catalog.learn("bergen", [part("bergen", "Orders", rows=5)], {"customer": "gone"})
    lines = catalog.show_tables()
    assert [(each.table, each.members, each.rows, each.size_bytes, each.format) for each in lines] == [
        ("customer", ("bergen",), None, None, "parquet"),
        ("nation", ("Oslo",), None, 100, "csv"),
        ("orders", ("Oslo", "bergen"), 15, 200, "json, parquet"),
    ]
    assert [each.problem for each in lines] == ["site bergen: table customer: gone", "", ""]


def own(number: int, name: str, by: tuple[str, ...], members: tuple[str, ...] = ("Oslo", "bergen")) -> Definition:
    table = OwnTable(number, name, 3, (OwnColumn("k", "bigint"),), ("k",), by, members)
    return Definition(table, first_map(table))


LEDGER = own(7, "Ledger", ("k",))
CODES = own(8, "codes", ())


def test_definitions_say_who_has_a_table_of_our_own_and_members_how_large_it_is(catalog: Catalog) -> None:
    told = own_part(LEDGER, "Oslo", rows=5, size_bytes=50)
    catalog.learn("Oslo", [part("Oslo", "orders"), told], {})
    assert catalog.lookup(("ledger",)) is None  # whatever a member tells
    catalog.define([LEDGER])
    # One that was taken over can neither add rows, nor tell of other columns or values.
    forged = msgspec.structs.replace(own_part(LEDGER, "bergen"), columns=KEY, rows=7, stats=PartStats(()))
    catalog.learn("bergen", [forged, part("bergen", "Orders")], {})
    catalog.learn("front", [part("front", "LEDGER")], {})
    ref = catalog.lookup(("ledger",))
    assert ref is not None
    assert (ref.name, ref.columns) == ("Ledger", KEY[:1])
    assert catalog.parts(ref) == (told, own_part(LEDGER, "bergen", rows=7))
    (line,) = (each for each in catalog.show_tables() if each.table == "Ledger")
    assert (line.members, line.rows, line.size_bytes, line.format) == (("Oslo", "bergen"), 12, 50, "skerry")
    # Of another version of the table nothing was told yet.
    catalog.define([own(9, "ledger", ("k",), ("bergen",))])
    assert [(each.member, each.rows) for each in catalog.parts(ref)] == [("bergen", None)]
    catalog.define([])
    assert catalog.lookup(("bergen", "ledger")) is None


def test_of_copies_one_is_read_where_it_is_wanted_and_up(catalog: Catalog) -> None:
    catalog.define([CODES])
    ref = catalog.lookup(("codes",))
    assert ref is not None
    assert catalog.is_copied(ref)

    def read_at(*near: str) -> list[str]:
        return [each.member for each in catalog.nearest(near).parts(ref)]

    assert (read_at(), read_at("front", "bergen", "Oslo")) == (["Oslo"], ["bergen"])
    catalog.lose("bergen", "gone")
    assert read_at("bergen") == ["Oslo"]
    assert catalog.lookup(("codes",)) == ref
    catalog.lose("Oslo", "gone")
    assert catalog.lookup(("codes",)) == ref
    with pytest.raises(SiteError, match="site Oslo is down: gone; table codes is there"):
        catalog.parts(ref)


def test_a_table_of_our_own_and_one_of_the_configuration_cannot_be_told_apart(catalog: Catalog) -> None:
    catalog.define([own(7, "Customer", ("k",), ("Oslo",))])
    with pytest.raises(SiteError, match=r"table Customer is one of our own, and members\.bergen\.tables has one"):
        catalog.lookup(("customer",))


def test_a_table_without_one_of_its_members_is_no_shorter_table(catalog: Catalog) -> None:
    catalog.define([own(7, "Ledger", ("k",), ("Oslo", "gone", "bergen"))])
    ref = catalog.lookup(("ledger",))
    assert ref is not None
    with pytest.raises(SiteError, match="table Ledger: 5461 of its 16384 buckets are at gone, which is not configured"):
        catalog.parts(ref)
    (line,) = (each for each in catalog.show_tables() if each.table == "Ledger")
    assert "not configured" in line.problem
