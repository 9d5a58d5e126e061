"""Small changes of a query's tree that several rules make."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp


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
