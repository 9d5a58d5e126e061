"""Plans of generated queries, run in DuckDB: those with rules must give the rows of the one without."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from random import Random

import duckdb
from sqlglot.errors import SqlglotError

from metamorphic.check import query_of
from metamorphic.in_duckdb import Runner, Tables
from metamorphic.planned import Planner, planner
from metamorphic.tables import Table, read_tables
from skerry.model.fragment import Plan
from skerry.plan.rules import NAMES, NO_RULES, Rules
from skerry.testing.topologies import SHAPES, Files

CLUSTERS = ("two", "three", "five", "chain", "star")
# All rules by each strategy, without the usual ways to spare bytes, so that others show, and without what makes blocks;
# groups that have to go to where the rest is.
RULED = (
    Rules(),
    Rules(strategy="bottom-up"),
    Rules(frozenset(NAMES) - {"semijoin", "joined"}),
    Rules(frozenset({"joined", "blocks", "answers", "lookups", "filters"})),
    Rules(frozenset({"grouped", "filters"}), root="initiator"),
)
# How variances are merged, which DuckDB cannot say, and averages of decimals, which are doubles to it.
_BEYOND = re.compile(r"aggregate\(collect_list\(|% CAST\(nullif\(sum\(")


@dataclass
class Ran:
    """`runs` were compared; `unlike` tells of those that gave other rows. `refusal`: DuckDB's, of the plain plan."""

    runs: int = 0
    refusal: str = ""
    unlike: list[str] = field(default_factory=list)


@dataclass
class Clusters:
    """Links are slow, so that rules fire; statistics are those that members gather."""

    files: Files

    def __post_init__(self) -> None:
        self._runner = Runner()
        self._known: dict[str, tuple[Planner, Tables]] = {}

    @cached_property
    def tables(self) -> Mapping[str, Table]:
        return read_tables(self.files)

    def _cluster(self, name: str) -> tuple[Planner, Tables]:
        if name not in self._known:
            made = planner(self.files, SHAPES[name], is_slow=True)
            self._known[name] = made, made.rows()
        return self._known[name]

    def check(self, seed: int, names: tuple[str, ...] = CLUSTERS) -> Ran:
        """The seed's query on these clusters, each asked at a member of the seed's choice."""
        sql, found = query_of(self.tables, seed).sql, Ran()
        for name in names:
            planned, tables = self._cluster(name)
            at = Random(f"initiator {seed} {name}").choice(list(planned.config.members))
            plain = planned.plan(sql, at, NO_RULES)
            try:
                expected = self._runner.run(plain, tables)
            except (duckdb.Error, SqlglotError) as error:
                found.refusal = f"{type(error).__name__}: {error}"
                break
            for how, plan in _others(planned, sql, at, plain):
                found.runs += 1
                try:
                    trouble = "" if self._runner.run(plan, tables) == expected else "other rows"
                except (duckdb.Error, SqlglotError) as error:
                    trouble = f"{type(error).__name__}: {error}"
                if trouble:
                    sent = "; ".join(f"{each.member}: {each.sql}" for each in plan.jobs)
                    found.unlike.append(f"{name}, asked at {at}, {how}: {trouble}: {sent}")
        return found


def _others(planned: Planner, sql: str, at: str, plain: Plan) -> Iterator[tuple[Rules, Plan]]:
    """Each plan once."""
    seen = {plain.plan_id}
    for rules in RULED:
        plan = planned.plan(sql, at, rules)
        if plan.plan_id not in seen and not any(_BEYOND.search(each.sql) for each in plan.jobs):
            seen.add(plan.plan_id)
            yield rules, plan
