"""Conditions that an OR implies: where each branch says something of one table, some branch's saying is true of it.

`(n1 = 'F' AND n2 = 'G') OR (n1 = 'G' AND n2 = 'F')` lets only F and G of either table through.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from skerry.sql.push import owner, split
from skerry.sql.scope import Scope, Source
from skerry.sql.walk import bare


def implied(conjunct: exp.Expr, scope: Scope) -> Iterator[tuple[Source, exp.Expr]]:
    """For each table that every branch has a condition on, the OR of these; the tree keeps the whole of it."""
    branches = [split(branch) for branch in _branches(conjunct)]
    if len(branches) < 2:
        return
    owned: list[dict[int, list[exp.Expr]]] = []
    sources: dict[int, Source] = {}
    for branch in branches:
        found: dict[int, list[exp.Expr]] = {}
        for condition in branch:
            source = owner(condition, scope)
            if source is not None:
                sources[id(source)] = source
                found.setdefault(id(source), []).append(condition)
        owned.append(found)
    for key, source in sources.items():
        if all(key in found for found in owned):
            yield source, _either([_both([each.copy() for each in found[key]]) for found in owned])


def _branches(node: exp.Expr) -> list[exp.Expr]:
    found: list[exp.Expr] = []
    stack = [node]
    while stack:
        node = stack.pop()
        node = bare(node)
        if isinstance(node, exp.Or):
            stack += [node.args["expression"], node.args["this"]]
        else:
            found.append(node)
    return found


def _both(conditions: list[exp.Expr]) -> exp.Expr:
    joined = conditions[0]
    for condition in conditions[1:]:
        joined = exp.And(this=joined, expression=condition)
    return exp.Paren(this=joined)


def _either(branches: list[exp.Expr]) -> exp.Expr:
    joined = branches[0]
    for branch in branches[1:]:
        joined = exp.Or(this=joined, expression=branch)
    return exp.Paren(this=joined)
