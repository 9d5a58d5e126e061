"""Generated queries are planned on every cluster, by all rules and by some: always a sound plan, and the same one."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest

from metamorphic.check import query_of
from metamorphic.planned import CHOICES, Planner, planner
from metamorphic.tables import Table, read_tables
from skerry.plan.cache import fingerprint
from skerry.testing.topologies import SHAPES, make_files

SEEDS = range(2000, 2007)


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Mapping[str, Table], dict[str, Planner]]:
    files = make_files(tmp_path_factory.mktemp("planned"), 0.001)
    return read_tables(files), {shape.name: planner(files, shape) for shape in SHAPES.values()}


@pytest.mark.parametrize("seed", SEEDS)
def test_every_plan_is_sound(seed: int, generated: tuple[Mapping[str, Table], dict[str, Planner]]) -> None:
    tables, planners = generated
    sql = query_of(tables, seed).sql
    random = Random(seed)
    for name, planned in planners.items():
        at = random.choice(list(planned.config.members))
        for rules in (CHOICES[0], random.choice(CHOICES[1:])):
            plan = planned.plan(sql, at, rules)
            assert planned.unsound(plan, at) == [], f"{name}, asked at {at}, {rules}: {sql}"
            assert plan.plan_id == fingerprint(plan)
        assert planned.plan(sql, at, rules) == plan, f"another plan the second time: {sql}"
