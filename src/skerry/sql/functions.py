"""What is known of every function of Spark: admitted or refused, aggregate or not, the same each time or not."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources

import msgspec
from sqlglot import exp

from skerry.sql.nodes import ColonCast, SpokenCall
from skerry.sql.walk import children_of, nodes_of

# Bare words that Spark reads as a call when no column has the name.
BARE_CALLS = frozenset(
    {"current_date", "current_timestamp", "current_time", "current_user", "user", "session_user", "current_path"}
)


class Function(msgspec.Struct, frozen=True):
    """`kind` is scalar, aggregate, window or generator; `refused` says why, or is empty."""

    kind: str
    deterministic: bool = True
    refused: str = ""


class Admitted(msgspec.Struct, frozen=True):
    """The committed result of the differential test against Spark's own parser (see docs/sql.md)."""

    spark: str
    functions: dict[str, Function]
    table_functions: dict[str, str]
    nodes: dict[str, list[str]]
    forms: dict[str, str]


@cache
def admitted() -> Admitted:
    raw = resources.files("skerry.sql").joinpath("admitted.json").read_text(encoding="utf-8")
    return msgspec.convert(json.loads(raw), Admitted)


def call_name(node: exp.Expr) -> str | None:
    """The name of the function that `node` calls, in lower case."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    if isinstance(node, SpokenCall):
        return str(node.this).lower()
    if isinstance(node, exp.Cast | ColonCast):
        return "cast"
    return None


def function_of(node: exp.Expr) -> Function | None:
    name = call_name(node)
    return admitted().functions.get(name) if name is not None else None


def is_aggregate(node: exp.Expr) -> bool:
    """Whether `node` itself calls an aggregate function; whether a window is over it, its parents say."""
    function = function_of(node)
    return function is not None and function.kind == "aggregate"


def has_aggregate(item: exp.Expr) -> bool:
    """Does it hold one that is not over a window, outside of its subqueries?"""
    stack = [item]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.Query):
            continue
        if isinstance(node, exp.Window):
            call = node.this
            while isinstance(call, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
                call = call.this
            stack += [each for each in children_of(node) if each is not node.this] + children_of(call)
            continue
        if is_aggregate(node):
            return True
        stack += children_of(node)
    return False


def is_generator(node: exp.Expr) -> bool:
    function = function_of(node)
    return function is not None and function.kind == "generator"


def is_deterministic(node: exp.Expr) -> bool:
    """Whether the expression gives the same value for the same row, each time."""
    return all(function.deterministic for part in nodes_of(node) if (function := function_of(part)) is not None)
