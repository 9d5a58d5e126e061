"""Conditions that were applied where their table is need not be applied again, and their columns need not travel."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from skerry.sql.push import split
from skerry.sql.walk import find_all


def without_moved(tree: exp.Expr, moved: Collection[int]) -> None:
    """Take the conjuncts with these identities out of the tree's WHEREs and ONs."""
    if not moved:
        return
    for select in find_all(tree, exp.Select):
        where = select.args.get("where")
        if where is not None:
            kept = _kept(where.this, moved)
            if kept is not None:
                select.set("where", exp.Where(this=_all(kept)) if kept else None)
        for join in select.args.get("joins") or []:
            on = join.args.get("on")
            kept = _kept(on, moved) if on is not None else None
            if kept is not None:
                join.set("on", _all(kept) if kept else exp.Boolean(this=True))


def _kept(condition: exp.Expr, moved: Collection[int]) -> list[exp.Expr] | None:
    """What is left of the conjuncts; None when none of them was moved."""
    found = split(condition)
    kept = [conjunct for conjunct in found if id(conjunct) not in moved]
    return kept if len(kept) < len(found) else None


def _all(conjuncts: list[exp.Expr]) -> exp.Expr:
    joined = conjuncts[0]
    for conjunct in conjuncts[1:]:
        joined = exp.And(this=joined, expression=conjunct)
    return joined
