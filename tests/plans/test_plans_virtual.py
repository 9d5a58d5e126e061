"""Plans whose lists are virtual tables answer as those with the lists in their texts: both run, in DuckDB."""

from __future__ import annotations

from random import Random

import pytest

from metamorphic.in_duckdb import Runner
from skerry.model.fragment import VirtualLeaf
from tests.plans.plan_cases import planned
from tests.plans.plan_rows import made_up

pytestmark = pytest.mark.slow

ROWS = ", ".join(f"({number % 40}, 'n{number}', {'NULL' if number % 3 else number % 2 == 0})" for number in range(150))
# Columns have names of their own: DuckDB begins with col0.
LISTED = f"(VALUES {ROWS}) AS v(a, b, c)"
STATEMENTS = [
    f"SELECT id, v.a, v.b, v.c FROM events JOIN {LISTED} ON id = v.a",
    f"SELECT v.c, count(*) AS n, sum(id) AS s FROM events JOIN {LISTED} ON id = v.a GROUP BY v.c",
    f"WITH v(a, b, c) AS (VALUES {ROWS}) SELECT x.a, y.b FROM v AS x, v AS y, orders WHERE o_id = x.a AND o_id = y.a",
    f"SELECT id, kind FROM events WHERE id NOT IN (SELECT a FROM {LISTED}) ORDER BY id LIMIT 5",
    f"SELECT c_name, v.b FROM customer LEFT JOIN {LISTED} ON c_id = v.a AND v.c JOIN events ON id = c_id",
]


@pytest.mark.parametrize("sql", STATEMENTS)
def test_rows_beside_the_plan_give_what_rows_in_it_give(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for rules in ("all", "none"):
        plan = planned(sql, rules=rules)
        assert any(isinstance(leaf, VirtualLeaf) for job in plan.jobs for leaf in job.leaves)
        with monkeypatch.context() as patched:
            patched.setattr("skerry.plan.virtual.VIRTUAL_ROWS_LEAST", 1000)
            written = planned(sql, rules=rules)
        assert not any(isinstance(leaf, VirtualLeaf) for job in written.jobs for leaf in job.leaves)
        for seed in range(3):
            tables = made_up(Random(seed))
            assert Runner().run(plan, tables) == Runner().run(written, tables)
