"""What a user sees of a table, as one SELECT."""

from __future__ import annotations

from skerry.access.sight import view_of
from skerry.model.rights import Seen, Sight
from skerry.model.table import Column

COLUMNS = (Column("id", "int"), Column("Name", "string"), Column("email", "string"))
BARRIER = "rand(0) + 1 > 0"


def text(*sights: Sight, user: str = "ann") -> str:
    view = view_of(Seen(sights), COLUMNS, user)
    assert view is not None
    return view.sql


def test_the_whole_table_needs_no_view() -> None:
    assert view_of(Seen((Sight(), Sight(where="id = 1"))), COLUMNS, "ann") is None


def test_columns() -> None:
    assert text(Sight(frozenset({"id", "name"}))) == "SELECT `id` AS `id`, `Name` AS `Name` FROM skerry_whole_table"


def test_a_filter_is_kept_from_the_conditions_of_queries_twice() -> None:
    """By a condition that Spark cannot join others to, and by NULL in the place of every value that is hidden."""
    assert text(Sight(frozenset({"id"}), where="id > 1 OR name = 'x'")) == (
        "SELECT CASE WHEN (id > 1 OR name = 'x') THEN `id` WHEN (id > 1 OR name = 'x') IS NULL THEN NULL END AS `id`"
        " FROM skerry_whole_table"
        f" WHERE ((id > 1 OR name = 'x')) AND {BARRIER}"
    )


def test_a_mask_keeps_the_columns_type() -> None:
    found = text(Sight(masks={"id": "'7'", "name": "left(name, 1)"}))
    assert "CAST(('7') AS INT) AS `id`" in found
    assert "CAST((left(name, 1)) AS STRING) AS `Name`" in found
    assert "WHERE" not in found


def test_two_roles_tell_no_more_than_the_one_and_the_other() -> None:
    """The rows of one role have its columns and masks, not those of the other."""
    north = Sight(frozenset({"id", "email"}), where="id = 1", masks={"email": "'*'"})
    south = Sight(frozenset({"id", "name", "email"}), where="id = 2")
    found = text(north, south)
    assert "CASE WHEN (id = 2) THEN `Name` WHEN (id = 2) IS NULL THEN NULL END AS `Name`" in found
    assert "CASE WHEN (id = 2) THEN `email` WHEN (id = 1) THEN CAST(('*') AS STRING) WHEN (id = 2) IS" in found
    assert found.endswith(f"WHERE ((id = 1) OR (id = 2)) AND {BARRIER}")


def test_a_role_without_a_filter_shows_all_rows_but_not_all_values() -> None:
    found = text(Sight(frozenset({"id"})), Sight(where="id = 1"))
    assert "WHERE" not in found
    assert found.startswith("SELECT `id` AS `id`, ")
    assert "CASE WHEN (id = 1) THEN `Name` WHEN (id = 1) IS NULL THEN NULL END AS `Name`" in found


def test_the_user_is_a_parameter_and_never_text() -> None:
    view = view_of(Seen((Sight(where="name = session_user()"),)), COLUMNS, "o'hara :skerry_user")
    assert view is not None
    assert "o'hara" not in view.sql
    assert ":skerry_user" in view.sql
    assert view.arguments == (("skerry_user", "o'hara :skerry_user"),)
    other = view_of(Seen((Sight(where="id = 1"),)), COLUMNS, "ann")
    assert other is not None
    assert other.arguments == ()
