"""Which queries may have a group-by that grows, at whom, and that no other plan knows of it."""

from __future__ import annotations

from typing import Any

import pytest

from skerry.catalog.topology import Topology
from skerry.model.config import Leaves
from skerry.model.fragment import GroupHere, OperatorFragment, Plan
from skerry.plan.cut import make_plan
from skerry.plan.egress import EgressRules
from skerry.plan.lawful import plan_query
from skerry.plan.rules import Rules
from tests.plans.plan_cases import CATALOG, CONFIG, LIMITS, bound, linked, site

SUMS = "SELECT id, sum(cost) AS s FROM logs GROUP BY id HAVING sum(cost) > 1"
EVERYWHERE = [
    {"from": one, "to": other, "mbit": 100, "ms": 5}
    for one in ("oslo", "bergen", "tromso")
    for other in ("oslo", "bergen", "tromso")
    if one != other
]


def planned(sql: str, links: Any = None, capacity: dict[str, int] | None = None, group_by: str = "elastic") -> Plan:
    topology = linked(links, capacity) if links or capacity else None
    return make_plan(bound(sql), CATALOG, site("oslo", Rules(group_by=group_by), topology), LIMITS)


def shape(plan: Plan) -> GroupHere | None:
    shapes = {each.operator for each in plan.fragments if isinstance(each, OperatorFragment)}
    assert len(shapes) <= 1
    return next((each for each in shapes if isinstance(each, GroupHere)), None)


def members(sql: str, **topology: Any) -> set[str]:
    found = shape(planned(sql, **topology))
    return set(found.members) if found is not None else set()


def test_all_who_may_fold_take_part_and_get_rows_of_all_parts() -> None:
    plan = planned(SUMS)
    found = shape(plan)
    assert found is not None
    assert set(found.members) == {"oslo", "bergen", "tromso"}
    senders = [each for each in plan.jobs if each.output.order == "groups"]
    assert {each.member for each in senders} == {"oslo", "bergen", "tromso"}
    assert {each.output.receivers for each in senders} == {found.members}
    assert {each.member for each in plan.jobs if each.output.order != "groups"} == set(found.members)


def test_without_the_option_plans_are_the_same_to_the_last_byte() -> None:
    assert shape(planned(SUMS, group_by="merge")) is None
    default = make_plan(bound(SUMS), CATALOG, site("oslo", Rules()), LIMITS)
    assert default.plan_id == planned(SUMS, group_by="merge").plan_id


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(cost) FROM logs",
        "SELECT id, level, sum(cost) AS s FROM logs GROUP BY ROLLUP (id, level)",
        "SELECT id, collect_list(cost) AS c FROM logs GROUP BY id",
        "SELECT id, percentile(load, 0.5) AS p FROM logs GROUP BY id",
        "SELECT tags, count(*) AS n FROM events GROUP BY tags",
        "SELECT id FROM logs WHERE load > 1",
        "SELECT c_nation, count(*) AS n FROM customer GROUP BY c_nation",
        "SELECT id, sum(cost) AS s FROM logs GROUP BY id HAVING sum(cost) > (SELECT max(n_id) FROM nation)",
    ],
)
def test_what_members_cannot_fold_is_planned_as_without_it(sql: str) -> None:
    assert planned(sql).plan_id == planned(sql, group_by="merge").plan_id


def test_values_that_count_once_do_not_decide_who_folds_them() -> None:
    plan = planned("SELECT id, count(DISTINCT level) AS n FROM logs GROUP BY id")
    found = shape(plan)
    assert found is not None
    assert found.keys == (0, 1)
    sent = next(each.sql for each in plan.jobs if each.output.order == "groups")
    assert "(xxhash64(part_0) & (- 4294967296)) | (xxhash64(part_0, part_1) & 4294967295)" in sent


def test_nobody_folds_groups_whom_rows_may_not_reach() -> None:
    assert members(SUMS, links=EVERYWHERE) == {"oslo", "bergen", "tromso"}
    short = [{**each, "query_bytes": 10} if each["to"] == "tromso" else each for each in EVERYWHERE]
    assert members(SUMS, links=short) == {"oslo", "bergen"}
    # From oslo and bergen nothing leads to tromso; to them everything does.
    away = [each for each in EVERYWHERE if each["to"] != "tromso"]
    assert members(SUMS, links=away) == {"oslo", "bergen"}


@pytest.mark.parametrize(
    ("mark", "folds"), [(Leaves.AGGREGATED, True), (Leaves.FILTERED, True), (Leaves.NEVER, False)], ids=str
)
def test_groups_of_a_table_that_never_leaves_are_folded_at_its_member_alone(mark: Leaves, folds: bool) -> None:
    egress = EgressRules({("oslo", "logs"): mark}, Topology(CONFIG))
    asked = site("oslo", Rules(group_by="elastic"), egress=egress)
    found = plan_query(bound(SUMS), CATALOG, asked, LIMITS)
    assert found.refused is None
    assert (shape(found.plan) is not None) is folds
    leaving = [each for each in found.plan.fragments if each.member == "oslo" and each.output.receivers != ("oslo",)]
    assert bool(leaving) is folds


def test_nobody_folds_groups_who_has_no_room() -> None:
    assert members(SUMS, links=EVERYWHERE, capacity={"bergen": 1}) == {"oslo", "tromso"}
    # Fewer than two: as without the option.
    assert members(SUMS, links=EVERYWHERE, capacity={"bergen": 1, "tromso": 1}) == set()
