"""Plans that end in a count or in a sink, which no statement has yet: of a SELECT, with another ending."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from skerry.member.planning import Explained, Planned, Planner, Tried, Understood, plan_statement
from skerry.member.requests import RunStatement
from skerry.model.fragment import Count, Ending, Plan, SparkFragment, Written
from skerry.plan.cache import fingerprint

# What a statement begins with that is to end so; to the parser it is a comment.
COUNT, WRITE, STALE = "/* count */ ", "/* write */ ", "/* count, of columns that have changed */ "
SINK = "lake"


class Counting:
    """How members understand statements; it remembers which it was given. `on_planning` is called first."""

    def __init__(self) -> None:
        self.planned: list[str] = []
        self.on_planning: Callable[[], None] = lambda: None

    async def __call__(self, planner: Planner, statement: RunStatement) -> Understood:
        self.on_planning()
        self.planned.append(statement.sql)
        understood = await plan_statement(planner, statement)
        if not statement.sql.startswith((COUNT, WRITE, STALE)):
            return understood
        replace = msgspec.structs.replace
        match understood:
            case Planned(plan) | Explained(plan):
                return replace(understood, plan=ended(plan, statement.sql))
            case Tried(planned):
                return replace(understood, planned=replace(planned, plan=ended(planned.plan, statement.sql)))
        return understood


def ended(plan: Plan, sql: str) -> Plan:
    """The same fragments. Rows that were the result stay where they are made."""
    roots = {each.id for each in plan.fragments if plan.is_result(each.output)}
    ends_in: Ending = Written(SINK, tuple(sorted(roots))) if sql.startswith(WRITE) else Count(tuple(sorted(roots)))
    stale = {table: version + 1 for table, version in plan.schema_info.items()}
    changed = msgspec.structs.replace(
        plan,
        fragments=tuple(_staying(each) if each.id in roots else each for each in plan.jobs),
        ends_in=ends_in,
        schema_info=stale if sql.startswith(STALE) else plan.schema_info,
    )
    return msgspec.structs.replace(changed, plan_id=fingerprint(changed))


def _staying(fragment: SparkFragment) -> SparkFragment:
    output = msgspec.structs.replace(fragment.output, receivers=(fragment.member,))
    return msgspec.structs.replace(fragment, output=output)
