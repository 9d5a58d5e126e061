"""Generated queries are planned on every cluster, by all rules and by some: always a sound plan, and the same one.

A few are run: plans with rules give the rows of the plan without (`python -m metamorphic --plans 300 --run` runs more).
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest

from metamorphic.check import query_of
from metamorphic.planned import CHOICES, Planner, planner
from metamorphic.ran import Clusters
from metamorphic.tables import Table, read_tables
from skerry.plan.cache import fingerprint
from skerry.testing.topologies import SHAPES, Files, make_files

pytestmark = pytest.mark.slow

# 1033: a leaf in a query of HAVING, of which the admission said that its name stands for something else as well.
SEEDS = (*range(2000, 2007), 1033)
RUN_SEEDS = range(5000, 5012)
Planners = dict[tuple[str, bool], Planner]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return make_files(tmp_path_factory.mktemp("planned"), 0.001)


@pytest.fixture(scope="module")
def generated(files: Files) -> tuple[Mapping[str, Table], Planners]:
    """Clusters with statistics and without."""
    made = {(name, has): planner(files, SHAPES[name], has_statistics=has) for name in SHAPES for has in (True, False)}
    return read_tables(files), made


@pytest.mark.parametrize("seed", SEEDS)
def test_every_plan_is_sound(seed: int, generated: tuple[Mapping[str, Table], Planners]) -> None:
    tables, planners = generated
    sql = query_of(tables, seed).sql
    random = Random(seed)
    for name in SHAPES:
        planned = planners[name, random.random() < 0.5]
        at = random.choice(list(planned.config.members))
        for rules in (CHOICES[0], random.choice(CHOICES[1:])):
            plan = planned.plan(sql, at, rules)
            assert planned.unsound(plan, at) == [], f"{name}, asked at {at}, {rules}: {sql}"
            assert plan.plan_id == fingerprint(plan)
        assert planned.plan(sql, at, rules) == plan, f"another plan the second time: {sql}"


def test_plans_with_rules_give_the_rows_of_those_without(files: Files) -> None:
    clusters = Clusters(files)
    found = {seed: clusters.check(seed, ("five" if seed % 2 else "chain",)) for seed in RUN_SEEDS}
    assert {seed: ran.unlike for seed, ran in found.items() if ran.unlike} == {}
    assert sum(ran.runs for ran in found.values()) > len(RUN_SEEDS)
    assert sum(bool(ran.refusal) for ran in found.values()) < len(RUN_SEEDS) / 4
