"""Errors of Spark and of fragments: one sentence, the site, and nothing left."""

from __future__ import annotations

import pytest

import skerry
from skerry.model.errors import Overloaded, SqlError
from skerry.testing.cluster import LocalCluster
from tests.integration.member.conftest import StartCluster
from tests.integration.member.member_sites import FEW, TICKS, nothing_left

pytestmark = pytest.mark.spark

# tromso's ids begin at 40,000.
DIVIDES_BY_ZERO = "SELECT id, 1 / (id - 40100) AS inverse FROM tromso.ticks"
CASTS = "SELECT CAST(note AS INT) AS number FROM tromso.ticks"


def failure(members: LocalCluster, at: str, sql: str) -> skerry.Error:
    with members.connect(at) as connection, connection.cursor() as cursor:
        with pytest.raises(skerry.Error) as caught:
            cursor.execute(sql).fetchall()
        nothing_left(members)
        return caught.value


@pytest.mark.parametrize("at", ["oslo", "tromso", "kiosk"])
@pytest.mark.parametrize(
    ("sql", "condition"), [(DIVIDES_BY_ZERO, "[DIVIDE_BY_ZERO] Division by zero"), (CASTS, "[CAST_INVALID_INPUT]")]
)
def test_errors_of_spark_name_the_site(members: LocalCluster, at: str, sql: str, condition: str) -> None:
    error = failure(members, at, sql)
    assert error.code == SqlError.code
    assert error.member == "tromso"
    assert "tromso" in error.message
    assert condition in error.message
    assert "\n" not in error.message
    assert "org.apache" not in error.message
    assert "Exception" not in error.message
    assert "leaf_" not in error.message


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM tromso.few WHERE 1 / (id - 5) > 0",
        "SELECT a.id FROM tromso.ticks a JOIN oslo.few b ON a.id - 40000 = b.id WHERE 1 / (a.id - 40005) > 0",
        "SELECT note FROM tromso.ticks WHERE 1 / (id - 40005) < 2 ORDER BY note",
    ],
    ids=["through the driver", "after an edge", "in sorted lanes"],
)
@pytest.mark.parametrize("at", ["oslo", "tromso"])
def test_every_way_out_of_a_fragment_fails_alike(members: LocalCluster, at: str, sql: str) -> None:
    error = failure(members, at, sql)
    assert "[DIVIDE_BY_ZERO]" in error.message
    assert error.member == "tromso"


def test_a_failed_query_does_not_harm_others(members: LocalCluster) -> None:
    with members.connect("oslo") as connection, connection.cursor() as cursor, connection.cursor() as other:
        other.execute("SELECT id FROM tromso.ticks")
        with pytest.raises(skerry.Error, match="DIVIDE_BY_ZERO"):
            cursor.execute(DIVIDES_BY_ZERO).fetchall()
        assert len(other.fetchall()) == TICKS
        assert cursor.execute("SELECT count(*) FROM tromso.few").fetchall() == [(FEW,)]


def test_a_sink_that_fails_at_the_initiators_own_site(start_members: StartCluster) -> None:
    # A participant's cancel at the initiator's own member once went nowhere, and the query hung.
    members = start_members(limits={"spool_memory_bytes": 16384, "spool_disk_bytes": 16384})
    error = failure(members, "oslo", "SELECT note FROM oslo.ticks ORDER BY note")
    assert error.code == Overloaded.code
    assert "spool full" in error.message
    with members.connect("oslo") as connection:
        assert connection.cursor().execute("SELECT count(*) FROM oslo.ticks").fetchall() == [(TICKS,)]
