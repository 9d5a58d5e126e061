"""Plans by their fingerprint: least recently used first out, by count and by bytes."""

from __future__ import annotations

import msgspec
import pytest

from skerry.model.errors import PeerError
from skerry.model.fragment import Output, Plan, Rows, SparkFragment
from skerry.model.limits import Limits
from skerry.plan.cache import PlanCache, check_fingerprint, fingerprint


def plan(name: str, sql_bytes: int = 10) -> Plan:
    made = Plan("", (SparkFragment(1, name, "x" * sql_bytes, (), Output(1, ("oslo",))),), Rows(1, (name,)), {})
    return msgspec.structs.replace(made, plan_id=fingerprint(made))


def size(plan: Plan) -> int:
    return len(msgspec.msgpack.encode(plan))


def test_a_plan_is_found_by_its_id() -> None:
    cache, one = PlanCache(Limits()), plan("a")
    assert cache.get(one.plan_id, "oslo") is None
    cache.put(one, "oslo")
    cache.put(one, "oslo")
    assert cache.get(one.plan_id, "oslo") == one
    assert (len(cache), cache.size_bytes) == (1, size(one))


def test_the_least_recently_used_goes_first() -> None:
    cache = PlanCache(Limits(plans=2))
    a, b, c, d = map(plan, "abcd")
    cache.put(a, "oslo")
    cache.put(b, "oslo")
    cache.get(a.plan_id, "oslo")
    cache.put(c, "oslo")
    assert [cache.get(each.plan_id, "oslo") is not None for each in (a, b, c)] == [True, False, True]
    cache.put(a, "oslo")  # said again: as good as used
    cache.put(d, "oslo")
    assert [cache.get(each.plan_id, "oslo") is not None for each in (a, c, d)] == [True, False, True]
    assert cache.size_bytes == size(a) + size(d)


def test_bytes_bound_it_too() -> None:
    small, large = [plan(name, 100) for name in "abcd"], plan("e", 400)
    cache = PlanCache(Limits(plans_bytes=size(large) + size(small[0])))
    for each in small:
        cache.put(each, "oslo")
    cache.put(large, "oslo")
    assert cache.size_bytes <= size(large) + size(small[0])
    assert [cache.get(each.plan_id, "oslo") is not None for each in (*small, large)] == [
        False,
        False,
        False,
        True,
        True,
    ]


def test_a_plan_larger_than_the_cache_is_not_kept() -> None:
    cache = PlanCache(Limits(plans_bytes=200))
    cache.put(plan("a", 1000), "oslo")
    assert (len(cache), cache.size_bytes) == (0, 0)


def test_no_initiator_puts_its_plan_in_the_place_of_another_s() -> None:
    cache, one = PlanCache(Limits()), plan("a")
    cache.put(msgspec.structs.replace(plan("b"), plan_id=one.plan_id), "bergen")
    cache.put(one, "oslo")
    assert cache.get(one.plan_id, "oslo") == one
    assert cache.get(one.plan_id, "tromso") is None


def test_a_plan_that_is_not_what_its_id_says_is_refused() -> None:
    one = plan("a")
    check_fingerprint(one)
    for forged in (
        msgspec.structs.replace(one, fragments=plan("b").fragments),
        msgspec.structs.replace(one, plan_id="0" * 32),
        msgspec.structs.replace(one, schema_info={"oslo.t": 2}),
    ):
        with pytest.raises(PeerError, match="does not match its fingerprint"):
            check_fingerprint(forged)


def test_an_id_survives_the_wire() -> None:
    one = plan("a")
    assert fingerprint(msgspec.msgpack.decode(msgspec.msgpack.encode(one), type=Plan)) == one.plan_id
