"""`min` and `max` of doubles for Sail, to which the order of rows decides whether NaN is the least or the greatest.

They are marked while the types of their arguments are known, and are plain calls to every rule; what is left of them
when a fragment is made gets Spark's meaning written out, where the names of columns and their order stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from skerry.plan.partials import call_of, extreme
from skerry.sql.naming import item_of, names_matter, spark_name
from skerry.sql.walk import bare, find_all

_MARK = "of_reals"
_ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}


def mark(call: exp.Expr) -> None:
    """It is of floats or doubles."""
    call.meta[_MARK] = True


def write_out(tree: exp.Expr) -> None:
    """The marked calls in it, in place: all of a SELECT or none, so that equal calls stay equal."""
    selects: dict[int, tuple[exp.Select, list[exp.Anonymous]]] = {}
    for node in find_all(tree, exp.Anonymous):
        select = node.find_ancestor(exp.Select) if _MARK in node.meta else None
        if select is not None:
            selects.setdefault(id(select), (select, []))[1].append(node)
    for select, calls in reversed(selects.values()):  # the inner ones first
        names = _names(calls) if _is_found_again(select, calls) else None
        if names is None:
            continue
        for item, name in names:
            alias = exp.Alias(alias=exp.Identifier(this=name, quoted=True))
            item.replace(alias)
            alias.set("this", item)
        for node in reversed(calls):
            _write_out(node)


def _write_out(node: exp.Expr) -> None:
    aggregate: exp.Expr = node.parent if isinstance(node.parent, exp.Filter) else node
    call = call_of(aggregate)
    assert call is not None, "it was one when it was marked"
    window = aggregate.parent
    if isinstance(window, exp.Window) and window.this is aggregate:
        call, aggregate = replace(call, over=window), window
    aggregate.replace(extreme(call, call.arguments[0]))


def _is_found_again(select: exp.Select, calls: Sequence[exp.Expr]) -> bool:
    """Whether Sail knows what is sorted by in what is listed: of what is written out, only a whole item."""
    listed = [bare(item.unalias()) for item in select.expressions]
    for node in calls:
        ordered = node.find_ancestor(exp.Ordered, exp.Select)
        if not isinstance(ordered, exp.Ordered):
            continue
        is_own = ordered.parent is select.args.get("order") and not select.args.get("having")
        if not is_own or bare(ordered.this) not in listed:
            return False
    return True


def _names(calls: Sequence[exp.Expr]) -> list[tuple[exp.Expr, str]] | None:
    """Items of the list without an alias are called after what computes them, so they are given that name: None if it
    is not known of each."""
    items = {id(item): item for item in map(item_of, calls) if item is not None and names_matter(item)}
    names = [(item, spark_name(item, _name)) for item in items.values()]
    known = [(item, name) for item, name in names if name is not None]
    return known if len(known) == len(names) else None


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
