"""What the queries of one user may keep at a member together, and all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from skerry.exchange.spool import Entry, Spool
from skerry.member.resources import Resources
from skerry.model.errors import Overloaded
from skerry.model.ids import QueryId
from skerry.model.limits import ENTRY_BYTES, KIB, Limits

BATCH = Entry(bytes(10 * KIB), 1, 10 * KIB)
SIZE = 10 * KIB + ENTRY_BYTES


def limits(**changed: int) -> Limits:
    unbounded = {"spool_memory_bytes_in_all": 0, "spool_disk_bytes_in_all": 0}
    return Limits(**{**unbounded, **changed})  # type: ignore[arg-type]


def begun(resources: Resources, name: str, user: str) -> Spool:
    held = resources.take(QueryId("oslo", name))
    resources.share(held, user)
    return resources.spool(held, name)


def test_a_users_memory_ends_where_its_queries_together_reach_it(tmp_path: Path) -> None:
    resources = Resources(limits(spool_memory_bytes_of_user=3 * SIZE), str(tmp_path))
    first, second, other = (begun(resources, *who) for who in (("a", "ann"), ("b", "ann"), ("c", "bob")))
    for spool in (first, first, second, second):  # the fourth finds no memory
        spool.append(BATCH)
    assert [each.budget.disk_used > 0 for each in (first, second)] == [False, True]
    other.append(BATCH)
    other.append(BATCH)
    assert other.budget.disk_used == 0
    for spool in (first, second, other):
        spool.close()


def test_every_query_has_room_for_one_batch(tmp_path: Path) -> None:
    resources = Resources(limits(spool_memory_bytes_of_user=1, spool_disk_bytes_of_user=1), str(tmp_path))
    first, second = begun(resources, "a", "ann"), begun(resources, "b", "ann")
    first.append(BATCH)
    second.append(BATCH)
    with pytest.raises(Overloaded, match=r"queries of ann hold .* together \(limits.spool_memory_bytes_of_user"):
        second.append(BATCH)
    first.close()
    second.close()


def test_room_that_one_query_gives_back_wakes_those_of_the_same_user(tmp_path: Path) -> None:
    shared = limits(spool_memory_bytes_of_user=2 * SIZE, spool_disk_bytes_of_user=1)
    resources = Resources(shared, str(tmp_path))
    first, second = begun(resources, "a", "ann"), begun(resources, "b", "ann")
    first.append(BATCH)
    second.append(BATCH)
    woken: list[bool] = []
    unsubscribe = second.budget.subscribe(lambda: woken.append(second.has_room(10 * KIB)))
    assert not second.has_room(10 * KIB)
    first.close()
    assert True in woken
    unsubscribe()
    woken.clear()
    second.close()
    assert not woken


def test_all_users_together_are_bounded_too(tmp_path: Path) -> None:
    shared = limits(spool_memory_bytes_in_all=2 * SIZE, spool_disk_bytes_in_all=2 * SIZE)
    resources = Resources(shared, str(tmp_path))
    first, second = begun(resources, "a", "ann"), begun(resources, "b", "bob")
    for spool in (first, second, first, second):  # two in memory, two on disk
        spool.append(BATCH)
    with pytest.raises(Overloaded, match="queries of all users hold"):
        second.append(BATCH)
    for spool in (first, second):
        spool.close()


def test_a_user_without_queries_is_forgotten(tmp_path: Path) -> None:
    resources = Resources(limits(), str(tmp_path))
    query = QueryId("oslo", "a")
    begun(resources, "a", "ann").close()
    resources.take(query)
    resources.give_back(query)
    assert resources._of_users
    resources.give_back(query)
    assert not resources._of_users
