"""Places at once and in the queue: bounds, turns, and nobody waits for ever."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skerry.member.places import Places
from skerry.member.shares import Shares
from skerry.model.errors import Overloaded


def shares(in_all: int = 3, per_user: int = 2, waiting: int = 10) -> Shares[str]:
    return Shares("queries", "limits.running_queries", in_all, per_user, waiting, "limits.queued_queries")


def test_a_user_has_its_share_and_leaves_the_rest() -> None:
    held = shares()
    assert held.ask("a1", "ann") == ["a1"]
    assert held.ask("a2", "ann") == ["a2"]
    assert held.ask("a3", "ann") == []
    assert held.ask("b1", "bob") == ["b1"]
    assert held.ask("b2", "bob") == []
    assert held.place("a3") == 1
    assert held.leave("b1") == ["b2"]  # ann has two
    assert held.leave("a1") == ["a3"]
    assert held.place("a3") == 0


def test_users_take_turns_however_many_one_of_them_sends() -> None:
    held = shares(in_all=1, per_user=1)
    assert held.ask("x", "cid") == ["x"]
    for number in range(4):
        assert held.ask(f"a{number}", "ann") == []
    assert held.ask("b0", "bob") == []
    assert [held.place(each) for each in ("a0", "b0", "a1", "a3")] == [1, 2, 3, 5]
    begun = ["x"]
    while begin := held.leave(begun[-1]):
        begun += begin
    assert begun == ["x", "a0", "b0", "a1", "a2", "a3"]


def test_one_user_cannot_fill_the_queue_for_others() -> None:
    held = shares(in_all=1, per_user=1, waiting=4)
    for number in range(3):
        held.ask(f"a{number}", "ann")
    with pytest.raises(Overloaded, match=r"2 queries of ann wait already \(limits.queued_queries\)"):
        held.ask("a3", "ann")
    assert held.ask("b0", "bob") == []
    assert held.ask("c0", "cid") == []
    with pytest.raises(Overloaded, match="4 queries here wait already"):
        held.ask("d0", "dan")


def test_one_that_waits_may_leave() -> None:
    held = shares(in_all=1, per_user=1)
    held.ask("a0", "ann")
    held.ask("a1", "ann")
    assert held.leave("a1") == []
    assert held.leave("a0") == []
    assert (held.running, held.waiting) == (0, 0)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=60))
def test_no_place_is_left_empty_and_none_given_twice(steps: list[tuple[str, bool]]) -> None:
    held, running, waiting = shares(waiting=100), {}, {}
    for number, (user, leaves) in enumerate(steps):
        if leaves and running:
            one = sorted(running)[number % len(running)]
            del running[one]
            begun = held.leave(one)
        else:
            waiting[str(number)] = user
            begun = held.ask(str(number), user)
        running |= {one: waiting.pop(one) for one in begun}
        places = Counter(running.values())
        assert (held.running, held.waiting) == (len(running), len(waiting))
        assert len(running) <= 3
        assert max(places.values(), default=0) <= 2
        assert len(running) == 3 or all(places[user] == 2 for user in waiting.values())


def test_whoever_is_cancelled_while_it_waits_holds_nothing() -> None:
    async def run() -> None:
        places = Places(shares(in_all=1, per_user=1))
        assert not await places.take("a0", "ann")
        late = asyncio.ensure_future(places.take("a1", "ann"))
        later = asyncio.ensure_future(places.take("a2", "ann"))
        await asyncio.sleep(0)
        assert (places.place("a1"), places.place("a2")) == (1, 2)
        late.cancel()
        await asyncio.gather(late, return_exceptions=True)
        places.leave("a0")
        assert await later
        places.leave("a2")
        assert not await places.take("a3", "ann")

    asyncio.run(run())
