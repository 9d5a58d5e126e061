"""Where the rest of a query runs: costs of routes, common ancestors, members that are full, members nobody reaches."""

from __future__ import annotations

import math

import pytest

from skerry.catalog.topology import Topology
from skerry.config import parse
from skerry.model.errors import ConfigError
from skerry.model.fragment import Plan
from skerry.model.limits import SAME_SHARE
from skerry.plan.cut import make_plan
from skerry.plan.money import cost_text
from skerry.plan.place import EDGE_BYTES, Cost, Costs, bottom_up_places, cheapest, common_ancestor
from skerry.plan.rules import Rules
from skerry.plan.site import Site
from tests.plans.plan_cases import CATALOG, FOLDER, LIMITS, bound

CHAIN = "  - {between: [oslo, bergen], mbit: 10, ms: 5}\n  - {between: [bergen, tromso], mbit: 20, usd_per_gb: 1}\n"
JOIN = "SELECT c_name, l_qty FROM customer JOIN lineitem ON l_order = c_id"


def topology(links: str, capacity: str = "") -> Topology:
    text = (FOLDER / "topology.yaml").read_text()
    if capacity:
        text = text.replace(f"  {capacity}:\n", f"  {capacity}:\n    capacity: 1\n")
    return Topology(parse(f"{text}\nlinks:\n{links}"))


def planned(sql: str, at: str, links: str, rules: Rules, capacity: str = "") -> Plan:
    site = Site(at, ("oslo", "bergen", "tromso"), rules, topology(links, capacity))
    return make_plan(bound(sql), CATALOG, site, LIMITS)


def root(plan: Plan) -> str:
    return plan.rows.senders[0]


def test_a_route_costs_its_links_in_turn() -> None:
    costs = Costs(topology(CHAIN))
    size_bytes = 1_000_000 - EDGE_BYTES
    assert costs.ship_s("oslo", "oslo", 1e9) == 0
    assert costs.ship_s("oslo", "bergen", size_bytes) == pytest.approx(0.8 + 0.005)
    assert costs.ship_s("bergen", "tromso", size_bytes) == pytest.approx(0.4 + 0.1)
    assert costs.ship_s("oslo", "tromso", size_bytes) == pytest.approx(0.8 + 0.005 + 0.4 + 0.1)
    assert costs.ship_s("oslo", "front", 1) == math.inf
    assert Costs().ship_s("oslo", "bergen", 1e6) > Costs().ship_s("oslo", "bergen", 1e5) > 0


def test_the_reason_tells_seconds_and_dollars_apart() -> None:
    """Orders are dear to move: their root stays, and what else it could be is said with its price."""
    sql = "SELECT o_id, o_note, c_name FROM orders JOIN customer ON o_cust = c_id"
    links = "  - {between: [oslo, bergen], mbit: 1000, usd_per_gb: %s}\n  - {between: [bergen, tromso], mbit: 10}\n"
    free, dear = (planned(sql, "oslo", links % price, NO_KEYS).fragments[-1].reason for price in (0, 100))
    assert free == "the links take ~0.038 s, ~1.2 s at bergen"
    assert dear == "the links take ~0.038 s and $0.48, ~1.2 s and $14.40 at bergen"
    assert cost_text(150.25, 150.0) == "~150 s and less than $0.01"
    assert cost_text(math.inf, math.inf) == "for ever"


def test_ties_go_to_a_member_that_holds_rows() -> None:
    members = ("oslo", "bergen", "tromso")
    even = dict.fromkeys(members, Cost(1.0, 9.0))
    assert cheapest(even, ["tromso"], members) == "tromso"
    assert cheapest(even, [], members) == "oslo"
    assert cheapest({"oslo": Cost(2.0, 9.0), "bergen": Cost(1.0, 9.0)}, ["oslo"], members) == "bergen"


def test_fewer_bytes_decide_between_costs_that_are_the_same() -> None:
    fewer, more = Cost(1.0 + 0.9 * SAME_SHARE, 50.0), Cost(1.0, 90.0)
    assert fewer.is_less(more)
    assert not more.is_less(fewer)
    assert cheapest({"oslo": more, "bergen": fewer}, ["oslo"], ("oslo", "bergen")) == "bergen"


@pytest.mark.parametrize(
    ("less", "other"),
    [
        (Cost(1.0, 90.0), Cost(1.0 + 1.1 * SAME_SHARE, 50.0)),  # the costs differ
        (Cost(1.0, 50.0), Cost(1.0 + 0.9 * SAME_SHARE, 50.0 * (1 - 0.9 * SAME_SHARE))),  # the bytes are the same too
        (Cost(1.0, 50.0), Cost(math.inf, math.inf)),
    ],
)
def test_else_seconds_decide(less: Cost, other: Cost) -> None:
    assert less.is_less(other)
    assert not other.is_less(less)
    assert not less.is_less(less)


@pytest.mark.parametrize(
    ("holders", "sink", "expected"),
    [
        (["oslo", "tromso"], "oslo", ("oslo",)),
        (["oslo", "bergen"], "tromso", ("bergen", "tromso")),
        (["oslo"], "tromso", ("oslo", "bergen", "tromso")),
        ([], "oslo", ("oslo",)),
    ],
)
def test_the_first_member_that_all_rows_pass(holders: list[str], sink: str, expected: tuple[str, ...]) -> None:
    assert common_ancestor(topology(CHAIN), holders, sink, ("oslo", "bergen", "tromso")) == expected


def test_bottom_up_runs_where_the_rows_meet() -> None:
    bottom_up = Rules(strategy="bottom-up")
    assert (
        root(planned("SELECT o_id, c_id FROM orders JOIN customer ON o_id = c_id", "tromso", CHAIN, bottom_up))
        == "bergen"
    )
    assert root(planned(JOIN, "oslo", CHAIN, bottom_up)) == "bergen"
    mesh = CHAIN + "  - {between: [oslo, tromso], mbit: 1000}\n"
    assert root(planned("SELECT o_id FROM orders JOIN lineitem ON o_id = l_order", "oslo", mesh, bottom_up)) == "oslo"


# A lite sink in the middle: no data member is on the way of rows of bergen and tromso.
STAR = "  - {between: [bergen, front], mbit: 10}\n  - {between: [tromso, front], mbit: 20}\n"


@pytest.mark.parametrize("rules", [Rules(strategy="bottom-up"), Rules(frozenset(), "bottom-up")])
@pytest.mark.parametrize("oslo", ["", "  - {between: [oslo, front], mbit: 1000}\n"])
def test_rows_that_meet_nowhere_meet_at_the_holder_nearest_to_the_sink(oslo: str, rules: Rules) -> None:
    plan = planned(JOIN, "front", STAR + oslo, rules)
    assert root(plan) == "tromso"
    assert plan.fragments[-1].reason == (
        "no data member is on the way of all its rows to front; of those that hold some of them tromso is the nearest "
        "to it"
    )


def test_who_has_no_way_to_the_sink_is_not_the_nearest() -> None:
    """Tromso only receives; of the others oslo has the quicker link."""
    links = "  - {between: [oslo, front], mbit: 20}\n  - {between: [bergen, front], mbit: 10}\n"
    links += "  - {from: front, to: tromso, mbit: 1000}\n"
    members = ("tromso", "bergen", "oslo")
    assert bottom_up_places(topology(links), ["bergen", "oslo"], "front", members) == ("oslo", "bergen")
    assert bottom_up_places(None, ["bergen", "oslo"], "front", members) == ("bergen", "oslo", "tromso")


@pytest.mark.parametrize("sink", ["tromso", "bergen"])
def test_without_rules_the_strategy_counts(sink: str) -> None:
    sql = "SELECT o_id, c_id FROM orders JOIN customer ON o_id = c_id"
    plan = planned(sql, sink, CHAIN, Rules(frozenset(), "bottom-up"))
    assert root(plan) == "bergen"
    way = "come to bergen, where the result goes" if sink == "bergen" else "pass bergen on their way to tromso"
    assert plan.fragments[-1].reason == f"all its rows {way}"
    assert root(planned(sql, sink, CHAIN, Rules(frozenset()))) == "oslo", "where the fewest bytes arrive"


@pytest.mark.parametrize("rules", [Rules(frozenset()), Rules(frozenset(), root="initiator")])
def test_without_rules_the_root_has_ways(rules: Rules) -> None:
    """Most bytes are at oslo, and the first member is oslo: nothing leads there."""
    links = STAR + "  - {from: oslo, to: front, mbit: 10}\n"
    sql = "SELECT o_id, c_id, l_qty FROM orders, customer, lineitem WHERE o_id = c_id AND l_order = o_id"
    assert root(planned(sql, "front", links, rules)) in ("bergen", "tromso")


@pytest.mark.parametrize("rules", [Rules(), Rules(frozenset()), Rules(strategy="bottom-up")])
@pytest.mark.parametrize(
    "sql", ["SELECT id FROM events", "SELECT o_id FROM orders", "SELECT o_id, c_id FROM orders, customer"]
)
def test_a_plan_without_a_way_names_both(sql: str, rules: Rules) -> None:
    with pytest.raises(ConfigError, match=r"no link leads from (oslo to front|bergen to oslo)"):
        planned(sql, "front", STAR, rules)


def test_slow_links_move_the_root() -> None:
    sql = "SELECT count(*) AS n FROM orders JOIN lineitem ON o_cust = l_qty"
    rules = Rules(frozenset({"filters"}))
    quick = "  - {from: oslo, to: tromso, mbit: 1000}\n  - {from: tromso, to: oslo, mbit: 0.1}\n"
    assert root(planned(sql, "oslo", quick, rules)) == "tromso"
    quick = "  - {from: tromso, to: oslo, mbit: 1000}\n  - {from: oslo, to: tromso, mbit: 0.1}\n"
    assert root(planned(sql, "oslo", quick, rules)) == "oslo"


def test_a_member_that_is_full_is_passed_over() -> None:
    """Bergen would give keys to tromso and run the rest, two fragments."""
    sql = "SELECT c_id, l_qty FROM customer, lineitem, nation WHERE l_order = c_id AND c_nation = n_id AND n_name = 'x'"
    plan = planned(sql, "tromso", CHAIN, Rules(strategy="bottom-up"))
    assert root(plan) == "tromso"
    roomy = planned(
        "SELECT c_id, l_qty FROM customer, lineitem WHERE l_order = c_id AND c_name = 'x'",
        "oslo",
        CHAIN,
        Rules(strategy="bottom-up"),
    )
    assert root(roomy) == "bergen"
    assert sum(fragment.member == "bergen" for fragment in roomy.fragments) == 2
    full = planned(
        "SELECT c_id, l_qty FROM customer, lineitem WHERE l_order = c_id AND c_name = 'x'",
        "oslo",
        CHAIN,
        Rules(strategy="bottom-up"),
        "bergen",
    )
    assert root(full) == "oslo"


def test_members_that_no_link_joins() -> None:
    with pytest.raises(ConfigError, match=r"no link leads from (tromso|bergen) to (tromso|bergen)"):
        planned(JOIN, "bergen", "  - {between: [oslo, bergen], mbit: 10}\n", Rules())


def test_the_reason_is_kept() -> None:
    plan = planned(JOIN, "oslo", CHAIN, Rules())
    assert all(fragment.reason for fragment in plan.fragments)
    assert "the links take" in plan.fragments[-1].reason


JOINED = "SELECT o_id FROM orders, customer, nation WHERE o_cust = c_id AND c_nation = n_id AND n_name = 'x'"
SLOW = "  - {between: [oslo, bergen], mbit: 1}\n  - {between: [bergen, tromso], mbit: 1}\n"


# Without keys that go ahead, all there is to save is saved by joins.
NO_KEYS = Rules(Rules().on - {"semijoin"})


def joined(plan: Plan) -> list[str]:
    """Where tables are joined before the rest."""
    return [fragment.member for fragment in plan.fragments if "joined there before they travel" in fragment.reason]


def hosts(plan: Plan, member: str) -> int:
    """Fragments there that are more than a scan of a table."""
    own = [each for each in plan.fragments if each.member == member]
    return sum(
        each.output.edge == plan.rows.edge
        or "GROUP BY" in each.sql
        or any(words in each.reason for words in ("joined there", "its tables are there", "so fewer rows travel"))
        for each in own
    )


def test_tables_of_one_site_are_joined_there() -> None:
    plan = planned(JOINED, "oslo", SLOW, NO_KEYS)
    assert (joined(plan), root(plan)) == (["bergen"], "oslo")
    without = planned(JOINED, "oslo", SLOW, Rules(NO_KEYS.on - {"joined"}))
    assert joined(without) == []
    sent = [sum(each.estimated_bytes for each in some.fragments) for some in (plan, without)]
    assert sent[0] < sent[1]


def test_a_join_of_a_full_member_moves_on() -> None:
    """One of two joins at bergen has no room, and its tables come apart."""
    inner = (
        "SELECT d.c_id FROM customer AS d, nation AS m WHERE d.c_nation = m.n_id AND m.n_name = 'y' AND d.c_id = o_id"
    )
    sql = f"{JOINED} AND EXISTS ({inner})"
    assert joined(planned(sql, "oslo", SLOW, NO_KEYS)) == ["bergen", "bergen"]
    full = planned(sql, "oslo", SLOW, NO_KEYS, "bergen")
    assert hosts(full, "bergen") == 1
    assert root(full) == "oslo"


BLOCKS = (
    "SELECT l_qty FROM lineitem "
    "JOIN (SELECT c_nation, count(*) AS n FROM customer GROUP BY c_nation) AS a ON a.n = l_order "
    "JOIN (SELECT c_name, max(c_id) AS m FROM customer GROUP BY c_name) AS b ON b.m = l_order"
)


def test_blocks_of_a_full_member_move_to_the_root() -> None:
    """The one that saves more has the room; the other's table is scanned and sent on."""
    assert hosts(planned(BLOCKS, "tromso", SLOW, NO_KEYS), "bergen") == 2
    full = planned(BLOCKS, "tromso", SLOW, NO_KEYS, "bergen")
    assert (hosts(full, "bergen"), root(full)) == (1, "tromso")
    assert "no room at bergen for b" in full.fragments[-1].reason
    assert "max(c_id)" in full.fragments[-1].sql
    assert "count(*)" not in full.fragments[-1].sql
    assert full == planned(BLOCKS, "tromso", SLOW, NO_KEYS, "bergen")


@pytest.mark.parametrize("strategy", ["cost", "bottom-up"])
def test_of_many_blocks_the_full_member_keeps_what_it_has_room_for(strategy: str) -> None:
    """Half of those that are too many go at once, and what subqueries say in FROM begins without them."""
    made = [
        f"(SELECT c_nation, max(c_id) AS m FROM customer WHERE c_id > {n} GROUP BY c_nation) AS b{n}" for n in range(20)
    ]
    asked = [f"l_qty > (SELECT avg(c_id) + {n} FROM customer WHERE c_nation = {n})" for n in range(6)]
    joined = " ".join(f"JOIN {block} ON b{n}.m = l_order" for n, block in enumerate(made))
    sql = f"SELECT l_qty FROM lineitem {joined} WHERE {' AND '.join(asked)}"
    plan = planned(sql, "tromso", SLOW, Rules(strategy=strategy), "bergen")
    assert (hosts(plan, "bergen"), root(plan)) == (1, "tromso")
    assert plan.fragments[-1].reason.count("no room at bergen for") >= 19
    assert sum("max(c_id)" in each.sql for each in plan.fragments) == 2


@pytest.mark.parametrize("strategy", ["cost", "bottom-up"])
def test_no_member_hosts_more_than_it_may(strategy: str) -> None:
    for sql in (JOIN, JOINED, BLOCKS, BLOCKS.replace("lineitem", "orders, lineitem") + " WHERE o_id = l_order"):
        for at in ("oslo", "bergen", "tromso"):
            for links in (CHAIN, SLOW):
                plan = planned(sql, at, links, Rules(strategy=strategy), "bergen")
                assert hosts(plan, "bergen") <= 1, (sql, at)


GROUPS = " JOIN ".join(
    f"(SELECT kind, max(amount) - min(amount) AS {name} FROM events GROUP BY kind HAVING count(*) > 1) AS {name}"
    for name in ("a", "b")
)


def test_groups_of_a_full_member_are_made_at_the_root() -> None:
    sql = f"SELECT a.kind FROM {GROUPS} ON a.kind = b.kind"
    at_oslo = Rules(root_at="oslo")
    assert hosts(planned(sql, "oslo", SLOW, at_oslo), "bergen") == 2
    assert hosts(planned(sql, "oslo", SLOW, at_oslo, "bergen"), "bergen") == 1
    first = " UNION ALL ".join(f"(SELECT id FROM {table} ORDER BY id LIMIT 3)" for table in ("events", "logs"))
    both = f"SELECT o_id FROM orders WHERE o_id IN (SELECT id FROM ({first}) AS x)"
    for capacity, bounded in (("", 2), ("bergen", 1)):
        plan = planned(both, "oslo", SLOW, at_oslo, capacity)
        assert sum("LIMIT 3" in each.sql for each in plan.fragments if each.member == "bergen") == bounded
    # Where rows may not leave groups have to, room or not.
    forced = planned(sql, "oslo", SLOW, Rules(aggregates_always=True, root_at="oslo"), "bergen")
    assert hosts(forced, "bergen") == 2
    assert "nobody has room, so the capacity of bergen is exceeded" in forced.fragments[-1].reason


def test_joins_meet_on_the_way() -> None:
    """Lineitem is far from orders; nation and customer are between them."""
    where = "l_order = c_id AND c_nation = n_id AND o_cust = c_id"
    sql = f"SELECT o_id, l_qty, n_name FROM lineitem, customer, nation, orders WHERE {where}"
    plan = planned(sql, "oslo", SLOW, Rules(strategy="bottom-up"))
    assert (joined(plan), root(plan)) == (["bergen"], "oslo")
    (sender,) = [each for each in plan.fragments if "joined there" in each.reason]
    assert "lineitem, customer, nation are joined there" in sender.reason
    full = planned(sql, "oslo", SLOW, Rules(strategy="bottom-up"), "bergen")
    assert joined(full) == ["bergen"], "one join is all that it has room for"


def test_of_many_tables_not_every_order_is_tried() -> None:
    names = [("nation", f"n{index}") for index in range(9)]
    tables = ", ".join(f"{table} AS {alias}" for table, alias in names)
    where = " AND ".join(f"n{index}.n_id = n{index + 1}.n_id AND n{index}.n_name = 'x{index}'" for index in range(8))
    plan = planned(f"SELECT o_id FROM orders, {tables} WHERE o_cust = n0.n_id AND {where}", "oslo", SLOW, Rules())
    assert joined(plan)
    assert any("of more than 8 tables not every order is tried" in fragment.reason for fragment in plan.fragments)


def test_large_statements_are_planned_all_the_same() -> None:
    """A long chain of UNIONs, one of ANDs, and more joins than anyone would reduce."""
    many = " UNION ALL ".join(["SELECT c_id FROM customer", *["SELECT o_id FROM orders"] * 400])
    assert len(planned(many, "oslo", CHAIN, Rules()).fragments) == 2
    where = " AND ".join(f"o_id <> {index}" for index in range(2000))
    joined_rows = f"SELECT count(*) FROM orders JOIN customer ON o_cust = c_id WHERE {where}"
    assert planned(joined_rows, "oslo", CHAIN, Rules()).fragments
    tables = ", ".join(f"{table} AS t{index}" for index, table in enumerate(["customer", "lineitem", "orders"] * 15))
    keys = [("c_id", "l_order", "o_id")[index % 3] for index in range(45)]
    where = " AND ".join(f"t{index}.{keys[index]} = t{index + 1}.{keys[index + 1]}" for index in range(44))
    assert planned(f"SELECT t0.c_id FROM {tables} WHERE {where}", "oslo", CHAIN, Rules()).fragments
