"""What full members pass on: the next member with room on the way answers it, or the rest does."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
import yaml

from skerry.catalog.topology import Topology
from skerry.config import parse
from skerry.model.fragment import Plan
from skerry.plan.cut import make_plan
from skerry.plan.place import on_the_way
from skerry.plan.rules import Rules
from skerry.plan.site import Site
from tests.plans.plan_cases import CATALOG, FOLDER, LIMITS, bound

MEMBERS = ("oslo", "bergen", "tromso", "alta")
# By cost alone the rest of some would be at oslo.
AT_TROMSO = [Rules(root="initiator"), Rules(strategy="bottom-up")]
CHAIN = ("oslo", "alta", "front", "bergen", "tromso")
A = "(SELECT o_cust, count(*) AS n FROM orders GROUP BY o_cust) AS a ON a.o_cust = l_order"
B = "(SELECT s_cust, max(s_id) AS m FROM oslo.sales GROUP BY s_cust) AS b ON b.s_cust = l_order"
C = "(SELECT kind, max(id) AS m FROM oslo.events GROUP BY kind) AS c ON c.m = l_order"
TWO = f"SELECT a.n, b.m FROM lineitem JOIN {A} JOIN {B}"
THREE = f"SELECT a.n, b.m, c.kind FROM lineitem JOIN {A} JOIN {B} JOIN {C}"


def topology(way: tuple[str, ...] = CHAIN, capacity: Mapping[str, int] | None = None) -> Topology:
    """The fixtures' members, and one without tables, in a row."""
    config: dict[str, Any] = yaml.safe_load((FOLDER / "topology.yaml").read_text())
    config["members"]["alta"] = {"address": "h:5"}
    for name, operators in (capacity or {}).items():
        config["members"][name]["capacity"] = operators
    config["links"] = [{"between": list(pair), "mbit": 10} for pair in pairwise(way)]
    return Topology(parse(yaml.safe_dump(config, sort_keys=False)))


def planned(
    sql: str,
    capacity: Mapping[str, int],
    rules: Rules = AT_TROMSO[0],
    way: tuple[str, ...] = CHAIN,
    at: str = "tromso",
    members: tuple[str, ...] = MEMBERS,
) -> Plan:
    return make_plan(bound(sql), CATALOG, Site(at, members, rules, topology(way, capacity)), LIMITS)


def places(plan: Plan) -> dict[str, str]:
    """Where each query in FROM is answered; the root's member is that of all that is left."""
    found = dict.fromkeys("abc", plan.rows.senders[0])
    for fragment in plan.fragments:
        for name in found:
            if f") AS {name}" in fragment.sql:
                found[name] = fragment.member
    return found


def sent_bytes(plan: Plan, way: tuple[str, ...] = CHAIN) -> int:
    """Over all links."""
    return sum(
        each.estimated_bytes * abs(way.index(each.member) - way.index(receiver))
        for each in plan.fragments
        for receiver in each.output.receivers
    )


@pytest.mark.parametrize(
    ("sender", "receiver", "expected"),
    [
        ("oslo", "tromso", ("alta", "bergen")),
        ("tromso", "oslo", ("bergen", "alta")),
        ("oslo", "alta", ()),
        ("alta", "bergen", ()),
        ("oslo", "oslo", ()),
        ("front", "oslo", ("alta",)),
    ],
)
def test_members_on_the_way(sender: str, receiver: str, expected: tuple[str, ...]) -> None:
    """A lite one is none of them."""
    assert on_the_way(topology(), sender, receiver, MEMBERS) == expected


def test_nobody_is_on_a_way_that_is_none() -> None:
    assert on_the_way(topology(("oslo", "bergen")), "oslo", "tromso", MEMBERS) == ()
    assert on_the_way(topology(()), "oslo", "tromso", MEMBERS) == (), "everyone reaches everyone"
    assert on_the_way(None, "oslo", "tromso", MEMBERS) == ()


@pytest.mark.parametrize("rules", AT_TROMSO)
def test_a_query_that_has_no_room_goes_to_the_next_member(rules: Rules) -> None:
    assert places(planned(TWO, {}, rules)) == {"a": "oslo", "b": "oslo", "c": "tromso"}
    plan = planned(TWO, {"oslo": 1}, rules)
    assert places(plan) == {"a": "alta", "b": "oslo", "c": "tromso"}
    (moved,) = [each for each in plan.fragments if each.member == "alta"]
    told = "no room at oslo for a: answered at alta, on the way to tromso"
    assert moved.reason.startswith(told)
    assert "no room at oslo for a" in plan.fragments[-1].reason
    assert plan == planned(TWO, {"oslo": 1}, rules)


@pytest.mark.parametrize("rules", AT_TROMSO)
@pytest.mark.parametrize(
    ("capacity", "expected"),
    [
        ({"oslo": 1}, ("alta", "oslo", "alta")),
        ({"oslo": 2}, ("oslo", "oslo", "alta")),
        ({"oslo": 1, "alta": 1}, ("alta", "oslo", "bergen")),
        ({"oslo": 1, "alta": 1, "bergen": 1}, ("alta", "oslo", "bergen")),
    ],
)
def test_the_dearest_has_the_room(rules: Rules, capacity: Mapping[str, int], expected: tuple[str, ...]) -> None:
    """The dearest of those that move on has it, too."""
    assert tuple(places(planned(THREE, capacity, rules)).values()) == expected


@pytest.mark.parametrize("rules", AT_TROMSO)
def test_who_is_next_to_the_rest_gives_it_to_the_rest(rules: Rules) -> None:
    way = ("oslo", "tromso", "bergen", "alta")
    assert places(planned(TWO, {"oslo": 1}, rules, way))["a"] == "tromso"


@pytest.mark.parametrize("rules", AT_TROMSO)
def test_queries_of_the_next_member_come_first(rules: Rules) -> None:
    """Bergen's own is smaller, and has its room."""
    own = "(SELECT c_nation, max(c_id) AS m FROM customer GROUP BY c_nation) AS c ON c.m = l_qty"
    way = "oslo", "bergen", "tromso"
    full = planned(f"{TWO} JOIN {own}", {"oslo": 1, "bergen": 1}, rules, way)
    assert places(full) == {"a": "tromso", "b": "oslo", "c": "bergen"}
    assert places(planned(f"{TWO} JOIN {own}", {"oslo": 1, "bergen": 2}, rules, way))["a"] == "bergen"


@pytest.mark.parametrize("rules", AT_TROMSO)
@pytest.mark.parametrize("sql", [TWO, THREE])
def test_fewer_bytes_travel_than_to_the_rest(sql: str, rules: Rules) -> None:
    """Who may run no fragment lets rows pass."""
    moved = planned(sql, {"oslo": 1}, rules)
    passed = planned(sql, {"oslo": 1}, rules, members=("oslo", "tromso"))
    assert places(passed)["a"] == moved.rows.senders[0] == "tromso"
    assert sent_bytes(moved) < sent_bytes(passed)


def test_a_query_inside_moves_with_the_one_around_it() -> None:
    inside = "(SELECT n, count(*) AS k FROM (SELECT o_cust, count(*) AS n FROM orders GROUP BY o_cust) AS i GROUP BY n)"
    plan = planned(f"SELECT a.k, b.m FROM lineitem JOIN {inside} AS a ON a.n = l_order JOIN {B}", {"oslo": 1})
    assert places(plan) == {"a": "alta", "b": "oslo", "c": "tromso"}
    assert [") AS i" in each.sql for each in plan.fragments if each.member == "alta"] == [True]


def test_tables_of_a_join_are_scanned_and_meet_at_the_next_member() -> None:
    """The full member joins nothing for it."""
    joins = "(SELECT n_name, count(*) AS n FROM customer JOIN nation ON c_nation = n_id GROUP BY n_name)"
    own = "(SELECT v_key, max(v_day) AS m FROM visits GROUP BY v_key) AS b ON b.v_key = l_order"
    sql = f"SELECT a.n, b.m FROM lineitem JOIN {joins} AS a ON a.n = l_order JOIN {own}"
    plan = planned(sql, {"bergen": 1}, Rules(strategy="bottom-up"), ("bergen", "alta", "tromso", "oslo"))
    assert places(plan) == {"a": "alta", "b": "bergen", "c": "tromso"}
    assert not any("joined there" in each.reason for each in plan.fragments)


def test_queries_that_differ_in_their_member_alone_stay_two() -> None:
    """Both move to alta; what has room at home is dearer."""
    of_oslo, of_bergen = (
        f"(SELECT id, count(*) AS n FROM {each}.events GROUP BY id) AS" for each in ("oslo", "bergen")
    )
    own = "(SELECT c_name, max(c_id) AS m FROM customer GROUP BY c_name) AS d ON d.m = l_order"
    both = f"{of_oslo} b ON b.id = l_qty JOIN {of_bergen} c ON c.id = l_qty"
    sql = f"SELECT a.n FROM lineitem JOIN {A} JOIN {own} JOIN {both}"
    rules = Rules(AT_TROMSO[0].on - {"semijoin", "ranges"}, root="initiator")
    plan = planned(sql, {"oslo": 1, "bergen": 1}, rules, ("oslo", "bergen", "alta", "tromso"))
    assert places(plan) == {"a": "oslo", "b": "alta", "c": "alta"}
    assert [each.member for each in plan.fragments].count("alta") == 2


def test_rows_of_a_named_root_stay_where_they_are() -> None:
    assert places(planned(TWO, {"oslo": 1}, Rules(root_at="tromso")))["a"] == "tromso"


@pytest.mark.parametrize("rules", AT_TROMSO)
def test_keys_that_are_too_many_alone_leave_queries_their_room(rules: Rules) -> None:
    """Customer's keys would go to orders and to lineitem."""
    of_clicks = ("(SELECT k_small, count(*) AS n FROM clicks GROUP BY k_small) AS a",)
    of_clicks += ("(SELECT k_key, max(k_cost) AS m FROM clicks GROUP BY k_key) AS b",)
    where = "c_id = l_order AND c_nation = 3 AND a.k_small = o_cust AND b.k_key = o_cust AND o_id = c_id"
    sql = f"SELECT a.n, b.m FROM orders, customer, lineitem, {', '.join(of_clicks)} WHERE {where}"
    rules = Rules(rules.on - {"joined"}, rules.strategy, rules.root)
    plan = planned(sql, {"tromso": 1, "bergen": 1}, rules, ("oslo", "bergen", "tromso"), "oslo")
    assert places(plan) == {"a": "tromso", "b": "bergen", "c": "oslo"}
    assert "no room at bergen for keys" in plan.fragments[-1].reason


def test_keys_that_save_less_than_a_query_go_first() -> None:
    """Keys of the one that has room would reduce the other, now that it is answered elsewhere."""
    a = "(SELECT n_name, count(*) AS n FROM customer JOIN nation ON c_nation = n_id GROUP BY n_name) AS a"
    b = "(SELECT c_name, max(c_id) AS m FROM customer GROUP BY c_name) AS b"
    sql = f"SELECT a.n, b.m FROM lineitem JOIN {a} ON a.n = l_order JOIN {b} ON b.m = l_order"
    plan = planned(sql, {"bergen": 1}, way=("bergen", "alta", "tromso", "oslo"))
    assert places(plan) == {"a": "bergen", "b": "alta", "c": "tromso"}
    assert plan.fragments[-1].reason.endswith("no room at bergen for b; no room at bergen for keys")
