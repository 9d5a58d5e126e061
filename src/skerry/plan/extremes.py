"""`min` and `max` of doubles for Sail, to which the order of rows decides whether NaN is the least or the greatest.

They are marked while the types of their arguments are known, and are plain calls to every rule; what is left of them
when a fragment is made gets Spark's meaning written out.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from skerry.model.errors import SqlError
from skerry.plan.partials import call_of, extreme
from skerry.sql.naming import item_of, names_matter, spark_name
from skerry.sql.walk import bare, find_all

_MARK = "of_reals"
_ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}


def mark(call: exp.Expr, type_: str) -> None:
    """`type_`: float or double."""
    call.meta[_MARK] = type_


def write_out(tree: exp.Expr) -> None:
    """Every marked call in it, in place."""
    marked = [each for each in find_all(tree, exp.Anonymous) if _MARK in each.meta]
    for item in [item_of(each) for each in marked]:
        if item is not None and item.parent is not None and names_matter(item):
            _keep_name(item)
    for node in reversed(marked):  # the inner ones first
        aggregate: exp.Expr = node.parent if isinstance(node.parent, exp.Filter) else node
        call = call_of(aggregate)
        assert call is not None, "it was one when it was marked"
        window = aggregate.parent
        if isinstance(window, exp.Window) and window.this is aggregate:
            call, aggregate = replace(call, over=window), window
        aggregate.replace(extreme(call, call.arguments[0], node.meta[_MARK]))


def _keep_name(item: exp.Expr) -> None:
    """A column without alias is called after what computes it, so it is given the name of what was written."""
    if isinstance(item.parent, exp.Alias):
        return  # of another call in the same item
    name = spark_name(item, _name)
    if name is None:
        raise SqlError(
            "a column without a name is computed from min or max of doubles, whose NaN Sail takes for any value",
            suggestion="give the column a name (AS …), or use Apache Spark at these sites",
        )
    alias = exp.Alias(alias=exp.Identifier(this=name, quoted=True))
    item.replace(alias)
    alias.set("this", item)


def _name(node: exp.Expr) -> str | None:
    if _MARK in node.meta:
        call = call_of(node)
        inner = spark_name(call.arguments[0], _name) if call is not None else None
        return f"{call.name}({'DISTINCT ' if call.is_distinct else ''}{inner})" if call is not None and inner else None
    if type(node) in _ARITHMETIC and _is_real(node):
        left, right = spark_name(node.this, _name), spark_name(node.args["expression"], _name)
        return f"({left} {_ARITHMETIC[type(node)]} {right})" if left and right else None
    return None


def _is_real(node: exp.Expr) -> bool:
    """Of doubles: of dates such an operator has another name."""
    if type(node) in _ARITHMETIC:
        return _is_real(node.this) or _is_real(node.args["expression"])
    return _MARK in bare(node).meta
