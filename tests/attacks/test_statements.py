"""No hostile statement is admitted, neither from a client nor as a fragment of another member."""

from __future__ import annotations

import re

import pytest

from skerry.model.errors import PeerError, UserError
from skerry.model.limits import Limits
from skerry.model.names import TableRef
from skerry.sql.statement import analyse
from tests.attacks.hostile import COLUMNS, LEAF, admitted, forged, statements
from tests.plans.plan_cases import planned

HOSTILE = statements()


class OneTable:
    """A catalog that knows `orders` alone."""

    def lookup(self, parts: tuple[str, ...]) -> TableRef | None:
        return TableRef("orders", None, COLUMNS) if parts == ("orders",) else None

    def names(self) -> list[str]:
        return ["orders"]


def test_there_are_many_and_the_table_can_be_read() -> None:
    assert len(HOSTILE) > 180
    assert len({sql for _, sql in HOSTILE}) == len(HOSTILE)
    analyse("SELECT o_id FROM orders", None, OneTable(), Limits())
    admitted(forged(f"SELECT o_id FROM {LEAF} AS orders"))


@pytest.mark.parametrize(("wants", "sql"), HOSTILE, ids=[wants for wants, _ in HOSTILE])
def test_no_client_may(wants: str, sql: str) -> None:
    with pytest.raises(UserError):
        analyse(sql, {"t": "orders"} if ":t" in sql else None, OneTable(), Limits())


@pytest.mark.parametrize(("wants", "sql"), HOSTILE, ids=[wants for wants, _ in HOSTILE])
def test_no_member_may_have_it_run_at_another(wants: str, sql: str) -> None:
    with pytest.raises(PeerError, match="the plan of member bergen is not admitted here"):
        admitted(forged(sql.replace("orders", LEAF)))


@pytest.mark.parametrize(("wants", "sql"), HOSTILE, ids=[wants for wants, _ in HOSTILE])
def test_nor_inside_of_a_query_that_is_admitted(wants: str, sql: str) -> None:
    with pytest.raises(PeerError):
        admitted(forged(f"SELECT * FROM (\n{sql.replace('orders', LEAF)}\n) AS x"))


def test_no_alias_ends_the_hint_that_it_stands_in() -> None:
    """Sail reads a hint as a comment: what followed the alias was SQL that no gate had seen."""
    sql = "SELECT o_id FROM orders JOIN customer AS `{0}` ON o_cust = `{0}`.c_id JOIN nation AS n ON c_nation = n_id"
    assert any("/*+" in each.sql for each in planned(sql.format("c")).jobs)
    for alias in ("*/ 1 AS seen, /*", "a*/b", "x y"):
        plan = planned(sql.format(alias))
        assert any(f"`{alias}`" in each.sql for each in plan.jobs)
        assert not any(re.search(rf"/\*\+[^)]*{re.escape(alias)}", each.sql) for each in plan.jobs)


def test_no_member_reads_a_table_of_the_engine_under_the_name_of_a_query() -> None:
    """Sail knows no recursion: the name inside of such a query is one of its own tables to it."""
    sql = (
        "WITH RECURSIVE {0} AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM {0} AS r WHERE n < 3) SELECT n FROM {0} AS r"
    )
    with pytest.raises(PeerError, match="the plan of member bergen is not admitted here"):
        admitted(forged(sql.format("salaries")))
    text = next(iter(planned(sql.format("salaries")).jobs)).sql
    assert "salaries" not in text
    assert text.count("skerry_recursive_0") == 3
