"""Small changes of a query's tree that several rules make."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

# A UNION ALL whose first operand has no rows: it gives the columns their names.
_NAMES_ONLY = "names_only"


def named_by(names: exp.Expr, rows: exp.Expr) -> exp.Union:
    """The rows, with the column names of a query that is asked for no row: neither is an operator of the query."""
    names.set("limit", exp.Limit(expression=exp.Literal.number(0)))
    union = exp.Union(this=exp.Subquery(this=names), expression=exp.Subquery(this=rows), distinct=False)
    union.meta[_NAMES_ONLY] = True
    return union


def is_for_names(union: exp.Expr) -> bool:
    """Did the planner make this union, to give names?"""
    return bool(union.meta.get(_NAMES_ONLY))


def rename(node: exp.Column, table: str, alias: exp.Identifier, name: str) -> None:
    """A column of the relation `table` is the column `name` of the one that `alias` says now."""
    is_qualified = len(node.parts) > 1 and node.parts[0].name.lower() == table
    is_same = node.parts[-1 if is_qualified else 0].name.lower() == name.lower()
    if is_same and not is_qualified:
        return
    if not is_same and isinstance(node.parent, exp.Select) and node.arg_key == "expressions":
        # The column keeps the name that the result has.
        own = node.copy()
        node.replace(exp.Alias(this=own, alias=exp.Identifier(this=node.name, quoted=True)))
        node = own
    if not is_same:
        node.set("this", exp.Identifier(this=name, quoted=True))
    node.set("table", alias.copy())


def conjunction(conditions: Sequence[exp.Expr]) -> exp.Expr:
    joined: exp.Expr | None = None
    for each in conditions:
        each = exp.Paren(this=each) if isinstance(each, exp.Or) and len(conditions) > 1 else each
        joined = each if joined is None else exp.And(this=joined, expression=each)
    assert joined is not None
    return joined
