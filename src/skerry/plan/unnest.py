"""Subqueries are put in FROM one at a time, so that the planner can say of each whether its answer should travel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from skerry.model.table import TablePart
from skerry.plan.rules import Rules
from skerry.plan.rules.answers import asked, is_answerable, put_answer
from skerry.plan.rules.lookups import lookup, put_lookup
from skerry.plan.rules.outputs import Outputs
from skerry.sql.scope import Scopes


def put_in_from(
    scopes: Scopes,
    holders: Mapping[str, Sequence[TablePart]],
    rules: Rules,
    tried: set[tuple[str, ...]],
    name: str,
    travels: Callable[[Sequence[str]], bool] = lambda names: True,
) -> tuple[str, ...]:
    """Puts the first subquery that was not tried in FROM, as `name`; its scans. Without any the tree stays as it is.

    `holders` has the parts of each scan's table; `tried` has the scans of each subquery that was seen.
    `travels`: do rows of these scans go a way that an answer could spare them? If not, a plan need not be made for it.
    """
    outputs = Outputs(scopes)
    for each in asked(scopes):
        if each.names in tried:
            continue
        tried.add(each.names)
        may_spread = rules.has("apart") and travels(each.names)
        if rules.has("answers") and is_answerable(each, scopes, holders, outputs, may_spread):
            put_answer(each, name)
            return each.names
        found = lookup(each, scopes, holders, outputs) if rules.has("lookups") else None
        if found is not None:
            put_lookup(found, name)
            return each.names
    return ()
