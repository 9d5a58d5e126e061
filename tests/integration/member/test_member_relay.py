"""Members without a link between them exchange rows through those between: same rows, nothing left at the relay."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import skerry
from tests.integration.member.conftest import StartCluster
from tests.integration.member.member_sites import FEW, TICKS, large_query, nothing_left, slow_query, wait_until

pytestmark = pytest.mark.sail

# oslo and bergen have no link: rows between them pass tromso.
BY_TROMSO = [{"between": ["oslo", "tromso"], "mbit": 10_000}, {"between": ["tromso", "bergen"], "mbit": 10_000}]
# Nobody has a link to anyone but the lite members, in a row: four hops from end to end.
BY_LITE = [
    {"between": ["oslo", "ferry"], "mbit": 200},
    {"between": ["ferry", "kiosk"], "mbit": 10_000},
    {"between": ["kiosk", "bergen"], "mbit": 500},
    {"between": ["kiosk", "tromso"], "mbit": 500},
]
QUERIES = {
    "all rows": "SELECT id, note FROM ticks",
    "sorted": "SELECT id, note FROM ticks ORDER BY note, id",
    "joined": "SELECT a.id, b.name FROM bergen.ticks a JOIN oslo.few b ON a.id % 100 = b.id",
    "aggregated": "SELECT kind, count(*), max(note) FROM ticks GROUP BY kind",
    "limited": "SELECT id FROM bergen.ticks ORDER BY id LIMIT 10",
}


def crossed(cursor: Any) -> set[tuple[str, str]]:
    return {(link.sender, link.receiver) for link in cursor.status().links if link.size_bytes}


@pytest.mark.parametrize("links", [BY_TROMSO, BY_LITE], ids=["by a data member", "by lite members"])
def test_answers_are_those_of_a_cluster_where_all_are_linked(start_sail: StartCluster, links: list[Any]) -> None:
    direct = start_sail(lite=("ferry", "kiosk"))
    relayed = start_sail(lite=("ferry", "kiosk"), more={"links": links})
    allowed = {pair for link in links for pair in (tuple(link["between"]), tuple(reversed(link["between"])))}
    for name, sql in QUERIES.items():
        seen = []
        for cluster in (direct, relayed):
            with cluster.connect("oslo") as connection, connection.cursor() as cursor:
                rows = cursor.execute(sql).fetchall()
                nothing_left(cluster)
                seen.append(rows if "ORDER" in sql else sorted(rows))
                pairs = crossed(cursor)
        assert seen[0] == seen[1], name
        assert pairs, name
        assert pairs <= allowed, f"{name}: bytes are told for each hop"
    assert len(seen[0]) == 10


def test_a_full_limit_stops_the_sender_behind_the_relay(start_sail: StartCluster) -> None:
    cluster = start_sail(more={"links": BY_TROMSO})
    with cluster.connect("oslo") as connection, connection.cursor() as cursor:
        assert len(cursor.execute(f"{large_query('bergen')} LIMIT 5").fetchall()) == 5
        nothing_left(cluster)


def test_a_reader_that_stalls_holds_little_at_the_relay(start_sail: StartCluster) -> None:
    cluster = start_sail(more={"links": BY_TROMSO})
    limits = cluster.config.limits
    with cluster.connect("oslo") as connection, connection.cursor() as cursor:
        cursor.execute(large_query("bergen"))
        relay = cluster.members["tromso"]

        def is_full() -> bool:
            return relay.resources.memory_used > limits.first_credits_bytes / 2

        wait_until(is_full, "rows wait at the relay")
        # A window of decoded bytes and one batch of overdraft; the rest waits at its sender.
        assert relay.resources.memory_used <= limits.first_credits_bytes + 4 * limits.batch_bytes
        assert relay.resources.disk_used == 0
        assert len(cursor.fetchmany(200_000)) == 200_000, "and it goes on when the reader does"
        cursor.close()
    nothing_left(cluster)


def test_a_cancel_reaches_relays(start_sail: StartCluster) -> None:
    cluster = start_sail(more={"links": BY_TROMSO})
    with cluster.connect("oslo") as connection, connection.cursor() as cursor:
        errors: list[BaseException] = []

        def ask() -> None:
            try:
                cursor.execute(slow_query("bergen")).fetchall()
            except skerry.Error as error:
                errors.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        wait_until(lambda: cluster.members["tromso"].participants, "the relay takes part")
        cursor.cancel()
        asking.join(30)
        assert errors
        nothing_left(cluster)


def test_a_relay_that_goes_ends_the_query_by_name(start_sail: StartCluster) -> None:
    cluster = start_sail(more={"links": BY_LITE}, lite=("ferry", "kiosk"))
    with cluster.connect("oslo") as connection, connection.cursor() as cursor:
        cursor.execute(large_query("bergen"))
        cluster.stop_member("kiosk")
        with pytest.raises(skerry.OperationalError, match="kiosk"):
            cursor.fetchall()
        nothing_left(cluster)
        cluster.start_member("kiosk")
        assert len(cursor.execute("SELECT id FROM bergen.few").fetchall()) == FEW


def test_members_without_a_way_to_each_other_are_named_before_anything_runs(start_sail: StartCluster) -> None:
    cluster = start_sail(more={"links": [{"from": "oslo", "to": "bergen", "mbit": 100}]})
    with cluster.connect("oslo") as connection, connection.cursor() as cursor:
        with pytest.raises(skerry.Error, match="no link leads from bergen to oslo, not even through other members"):
            cursor.execute("SELECT id FROM bergen.few")
        assert all(not member.participants for member in cluster.members.values())
        assert len(cursor.execute("SELECT id FROM oslo.few").fetchall()) == FEW
    # Its own direction is enough for rows; what must be said goes both ways (ADR 9).
    with cluster.connect("bergen") as connection:
        assert len(connection.cursor().execute("SELECT id FROM oslo.ticks").fetchall()) == TICKS
