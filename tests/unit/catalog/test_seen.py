"""The catalog as a user sees it."""

from __future__ import annotations

import pytest

from skerry.catalog.catalog import Catalog
from skerry.catalog.seen import seen_by
from skerry.config import parse
from skerry.model.errors import SiteError, UserError
from skerry.model.names import TableRef
from skerry.model.rights import EVERYTHING, Pattern, Rights, Rule, Sight
from skerry.model.table import Column, ColumnStats, PartStats, TablePart

MEMBERS = ("oslo", "bergen", "tromso")
CONFIG = parse(
    "cluster: c\nmembers:\n"
    + "".join(
        f"  {name}: {{address: 'h:{port}', tables: {{t: {{format: parquet, path: t}}}}}}\n"
        for port, name in enumerate(MEMBERS, 1)
    )
)
COLUMNS = (Column("id", "int"), Column("v", "int"))


@pytest.fixture
def whole() -> Catalog:
    catalog = Catalog(CONFIG)
    stats = PartStats((ColumnStats("id", 1, 2), ColumnStats("v", 3, 4)))
    for name in MEMBERS:
        catalog.learn(name, [TablePart("t", name, COLUMNS, 10, 100, 1, 5, stats)], {})
    return catalog


def rights(**sights: Sight) -> Rights:
    """`oslo=…` is about that member's part, `t=…` about the table."""
    patterns = {name: Pattern("", "t") if name == "t" else Pattern(name, "t") for name in sights}
    return Rights("ann", (), (tuple(Rule(patterns[name], sight) for name, sight in sights.items()),))


def test_without_rules_it_is_the_catalog_itself(whole: Catalog) -> None:
    assert seen_by(whole, EVERYTHING) is whole


def test_what_is_hidden_is_not_there(whole: Catalog) -> None:
    seen = seen_by(whole, rights())
    assert seen.lookup(("t",)) is None
    assert seen.lookup(("oslo", "t")) is None
    assert seen.names() == []
    assert seen.show_tables() == ()
    assert seen.schemas() == ("default",)
    with pytest.raises(UserError, match="there is no schema oslo; there are default"):
        seen.schema("oslo")


def test_columns_take_their_statistics_with_them(whole: Catalog) -> None:
    seen = seen_by(whole, rights(t=Sight(frozenset({"id"}))))
    ref = seen.lookup(("t",))
    assert ref == TableRef("t", None, COLUMNS[:1])
    part = seen.parts(ref)[0]
    assert part.stats is not None
    assert [each.name for each in part.stats.columns] == ["id"]
    assert (part.rows, part.files_version) == (10, 5)


@pytest.mark.parametrize("sight", [Sight(where="id = 1"), Sight(masks={"v": "0"})])
def test_behind_a_filter_or_mask_nothing_is_known(whole: Catalog, sight: Sight) -> None:
    seen = seen_by(whole, rights(t=sight))
    ref = seen.lookup(("t",))
    assert ref is not None
    for part in seen.parts(ref):
        assert (part.rows, part.stats, part.files_version) == (None, None, 0)
        assert seen.is_veiled(part.member, part.table)
        assert seen.files_version(part.member, part.table) is None
    assert [(line.rows, line.size_bytes) for line in seen.show_tables()] == [(None, None)]


def test_some_parts_are_not_the_table(whole: Catalog) -> None:
    """A shorter answer in silence would be a wrong one."""
    seen = seen_by(whole, rights(oslo=Sight(), bergen=Sight()))
    with pytest.raises(UserError, match=r"by name: oslo\.t, bergen\.t$"):
        seen.lookup(("t",))
    assert seen.lookup(("bergen", "t")) == TableRef("t", "bergen", COLUMNS)
    (line,) = seen.show_tables()
    assert (line.members, line.rows) == (("oslo", "bergen"), None)
    assert "your rights differ between its parts" in line.problem
    assert "tromso" not in line.problem


def test_nor_are_other_columns_in_every_part(whole: Catalog) -> None:
    seen = seen_by(whole, rights(t=Sight(), oslo=Sight(frozenset({"id"}))))
    with pytest.raises(UserError, match="your rights differ"):
        seen.lookup(("t",))
    # But rows may differ: each site knows its own.
    assert seen_by(whole, rights(t=Sight(), oslo=Sight(where="id = 1"))).lookup(("t",)) is not None


def test_a_site_that_is_down_is_told_to_who_may_read_there(whole: Catalog) -> None:
    whole.lose("oslo", "gone")
    with pytest.raises(SiteError, match="site oslo is down"):
        seen_by(whole, rights(t=Sight())).lookup(("t",))
    assert seen_by(whole, rights(bergen=Sight())).lookup(("bergen", "t")) is not None
    with pytest.raises(UserError, match="by name: bergen"):
        seen_by(whole, rights(bergen=Sight())).lookup(("t",))
