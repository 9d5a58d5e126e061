"""Queries over several sites that one member answers: who that is when members are full, far away or may not send."""

from __future__ import annotations

import pytest

from skerry.catalog.topology import Topology
from skerry.config import Leaves, parse
from skerry.model.errors import UserError
from skerry.model.fragment import Plan, TableLeaf
from skerry.plan.cut import make_plan
from skerry.plan.egress import EgressRules, check_egress
from skerry.plan.rules import Rules
from skerry.plan.site import Site
from tests.plans.plan_cases import CATALOG, FOLDER, LIMITS, bound

MEMBERS = ("oslo", "bergen", "tromso")
CHAIN = "  - {between: [oslo, bergen], mbit: 10}\n  - {between: [bergen, tromso], mbit: 10}\n"
MESH = CHAIN + "  - {between: [oslo, tromso], mbit: 10}\n"
GROUPS = "SELECT c_nation AS k, sum(o_total) AS s FROM orders JOIN customer ON o_cust = c_id GROUP BY c_nation"
ONE = f"SELECT d.s, l_qty FROM ({GROUPS}) AS d JOIN lineitem ON l_qty = d.k"
TWO = (
    f"SELECT d.s, e.n, l_qty FROM ({GROUPS}) AS d JOIN lineitem ON l_qty = d.k "
    "JOIN (SELECT c_nation AS k, count(*) AS n FROM orders JOIN customer ON o_id = c_id GROUP BY c_nation) AS e "
    "ON l_order = e.k"
)


def topology(links: str, capacity: int = 16) -> Topology:
    text = (FOLDER / "topology.yaml").read_text()
    for member in MEMBERS[:2]:
        text = text.replace(f"  {member}:\n", f"  {member}:\n    capacity: {capacity}\n")
    return Topology(parse(f"{text}\nlinks:\n{links}"))


def planned(
    sql: str,
    links: str = MESH,
    rules: Rules | None = None,
    capacity: int = 16,
    at: str = "tromso",
    egress: EgressRules | None = None,
) -> Plan:
    site = Site(at, MEMBERS, rules or Rules(), topology(links, capacity), egress=egress)
    return make_plan(bound(sql), CATALOG, site, LIMITS)


def answering(plan: Plan) -> list[str]:
    return [fragment.member for fragment in plan.fragments if "a query over" in fragment.reason]


def hosted(plan: Plan, member: str) -> int:
    """Fragments there that are more than a scan of one table."""
    here = [fragment for fragment in plan.fragments if fragment.member == member]
    return sum(len(each.leaves) != 1 or not isinstance(each.leaves[0], TableLeaf) for each in here)


def test_where_most_rows_are() -> None:
    assert answering(planned(ONE)) == ["oslo"]
    assert answering(planned(TWO)) == ["oslo", "oslo"]


def test_a_slow_link_moves_it() -> None:
    """Nothing can come to oslo."""
    links = "  - {from: oslo, to: bergen, mbit: 10}\n  - {between: [bergen, tromso], mbit: 0.01}\n"
    plan = planned(ONE, links)
    assert answering(plan) == ["bergen"]


def test_full_members_answer_no_more_than_they_may() -> None:
    plan = planned(TWO, capacity=1)
    assert hosted(plan, "oslo") <= 1
    assert hosted(plan, "bergen") <= 1
    assert 1 <= len(answering(plan)) <= 2


def test_bottom_up_answers_where_the_rows_meet() -> None:
    plan = planned(ONE, CHAIN, Rules(strategy="bottom-up"))
    assert answering(plan) == ["bergen"]
    assert plan.rows.senders == ("tromso",)


def test_rows_of_a_named_root_stay_there() -> None:
    assert answering(planned(ONE, rules=Rules(root_at="tromso"))) == []


@pytest.mark.parametrize(("table", "mark"), [("orders", "aggregated"), ("orders", "never")])
def test_what_leaves_is_what_the_query_makes(table: str, mark: str) -> None:
    """Groups of marked rows leave; without the rule the rows would. Marked tables are planned without `grouped`."""
    egress = EgressRules({("oslo", table): Leaves(mark)}, topology(MESH))
    rules = Rules(Rules().on - {"grouped"})
    without = planned(ONE, rules=Rules(rules.on - {"apart"}), egress=egress)
    with pytest.raises(UserError, match="rows of orders"):
        check_egress(without, egress)
    plan = planned(ONE, rules=rules, egress=egress)
    if mark == "aggregated":
        check_egress(plan, egress)
        return
    with pytest.raises(UserError, match=r"rows of orders from oslo to tromso"):
        check_egress(plan, egress)


def test_estimates_count_against_a_budget_as_those_of_other_edges() -> None:
    def links(budget: int) -> str:
        return MESH.replace("[oslo, tromso], mbit: 10", f"[oslo, tromso], mbit: 10, query_bytes: {budget}")

    check_egress(planned(ONE, links(1_000_000)), EgressRules({}, topology(links(1_000_000))))
    without = planned(ONE, links(1_000_000), Rules(Rules().on - {"apart"}))
    with pytest.raises(UserError, match="query_bytes is 1000000"):
        check_egress(without, EgressRules({}, topology(links(1_000_000))))
