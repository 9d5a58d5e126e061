"""Generated subqueries, on tables full of NULLs: put in FROM, whatever that costs, they ask for the same rows."""

from __future__ import annotations

import dataclasses
from random import Random

import pytest

from metamorphic.in_duckdb import Runner
from skerry.plan.cut import make_plan
from skerry.plan.mentions import read_scopes
from skerry.plan.rules import NO_RULES, Rules
from skerry.plan.site import Site
from skerry.plan.unnest import put_in_from
from skerry.sql.statement import Query, render
from tests.plans.plan_cases import CATALOG, LIMITS, bound
from tests.plans.plan_rows import made_up

pytestmark = pytest.mark.slow

SITE = Site("oslo", ("oslo", "bergen", "tromso"), NO_RULES)
# Two with many rows, one with no nations and no line items.
TABLES = [made_up(Random(seed)) for seed in (92, 151, 3)]
# What stands in FROM, and columns of it: whole numbers.
INNER = {
    "customer": ("c_id", "c_nation"),
    "lineitem AS l": ("l.l_order", "l.l_qty"),
    "customer AS c JOIN nation ON c.c_nation = n_id": ("c.c_id", "n_id"),
    "customer LEFT JOIN nation ON c_nation = n_id AND n_name <> 'x'": ("c_id", "c_nation", "n_id"),
    "customer, nation": ("c_id", "n_id"),
}


class Asking:
    """One statement a seed, with one subquery or two."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def statement(self) -> str:
        one, other = self._predicate(), self._predicate()
        joined = self._random.choice((one, one, f"{one} AND {other}", f"({one} OR {other})", f"NOT ({one})"))
        if self._random.random() < 0.3:
            return f"SELECT o_id, o.o_cust, {self._scalar()} AS s FROM orders AS o WHERE {joined} OR o_id > 4"
        return f"SELECT o_id, o.o_cust FROM orders AS o WHERE {joined}"

    def _predicate(self) -> str:
        kind = self._random.choice(("scalar", "scalar", "in", "exists"))
        no = self._random.choice(("", "NOT "))
        if kind == "scalar":
            return f"o_total {self._random.choice(('<', '>=', '<>'))} {self._scalar()}"
        from_, columns = self._random.choice(list(INNER.items()))
        where = self._where(from_, columns)
        if kind == "exists":
            listed = self._random.choice(("*", "1", columns[0], f"max({columns[0]})"))
            return f"{no}EXISTS (SELECT {listed} FROM {from_}{where})"
        value = self._random.choice((columns[-1], f"{columns[0]} + 1", f"min({columns[0]})"))
        if self._random.random() < 0.3:
            where = self._where(from_, columns, is_closed=True)
            where += f" GROUP BY {columns[0]} HAVING count(*) > 1"
            value = columns[0]
        return f"o.o_cust {no}IN (SELECT {value} FROM {from_}{where})"

    def _scalar(self) -> str:
        from_, columns = self._random.choice(list(INNER.items()))
        column, other = self._random.choice(columns), self._random.choice(columns)
        calls = (
            f"max({column})",
            f"2 * sum({column}) - min({other})",
            "count(*)",
            f"count(DISTINCT {column}) + 1",
            f"coalesce(avg({column}), 3)",
            f"CASE WHEN count({column}) > 1 THEN max({other}) END",
        )
        return f"(SELECT {self._random.choice(calls)} FROM {from_}{self._where(from_, columns)})"

    def _where(self, from_: str, columns: tuple[str, ...], *, is_closed: bool = False) -> str:
        found: list[str] = []
        if not is_closed and self._random.random() < 0.7:
            outer = self._random.choice(("o_id", "o.o_cust"))
            found.append(f"{self._random.choice(columns)} = {outer}")
            if self._random.random() < 0.3:
                found.append(f"o_cust {self._random.choice(('=', '<', '<=>'))} {self._random.choice(columns)}")
        if self._random.random() < 0.5:
            found.append(f"{self._random.choice(columns)} < {self._random.randrange(3, 12)}")
        if self._random.random() < 0.2 and "nation" in from_:
            found.append("(n_name = 'x' OR n_name IS NULL)")
        self._random.shuffle(found)
        return f" WHERE {' AND '.join(found)}" if found else ""


def unnested(query: Query) -> tuple[Query, int]:
    """All subqueries that may be in FROM there, and how many these are."""
    scans = {scan.node_name: scan for scan in query.tables}
    holders = {name: CATALOG.parts(scan.table) for name, scan in scans.items()}
    tree = query.tree.copy()
    tried: set[tuple[str, ...]] = set()
    count = 0
    while put_in_from(read_scopes(tree, scans), holders, Rules(), tried, f"answer_{count}"):
        count += 1
    return dataclasses.replace(query, tree=tree), count


@pytest.fixture(scope="module")
def runner() -> Runner:
    return Runner()


@pytest.mark.parametrize("seed", range(120))
def test_the_answer_is_the_same(seed: int, runner: Runner) -> None:
    query = bound(Asking(seed).statement())
    changed, _ = unnested(query)
    plain, other = (make_plan(each, CATALOG, SITE, LIMITS) for each in (query, changed))
    for tables in TABLES:
        assert runner.run(other, tables) == runner.run(plain, tables), other.fragments[-1].sql


def test_most_of_them_change() -> None:
    """Else the test above would show nothing."""
    found = [unnested(bound(Asking(seed).statement())) for seed in range(120)]
    assert sum(count > 0 for _, count in found) > 60
    texts = [render(query.tree) for query, _ in found]
    for part in (
        "NOT IN (SELECT answer_0.",
        "EXISTS (SELECT 1 FROM (SELECT DISTINCT",
        "coalesce(max(answer_0.",
        ") AS answer_1",
    ):
        assert any(part in text for text in texts), part
