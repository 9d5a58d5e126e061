"""A table that only EXISTS or IN asks about is a set: rows that are alike in the columns they send travel once."""

from __future__ import annotations

from sqlglot import exp

from skerry.sql.functions import is_aggregate, is_deterministic, is_generator
from skerry.sql.scope import Scope

# What the SELECT may have: nothing that counts its rows or chooses among them.
_PLAIN = frozenset("expressions from_ joins where distinct said_all".split())


def is_set(scope: Scope) -> bool:
    """Does it not matter how often a row of this SELECT's tables comes?"""
    select = scope.select
    asks = isinstance(select.parent, exp.Exists) or (
        isinstance(select.parent, exp.In) and select.parent.args.get("query") is select
    )
    if not asks or not scope.plain:
        return False
    if any(value not in (None, [], False) and key not in _PLAIN for key, value in select.args.items()):
        return False
    return not any(
        isinstance(node, exp.Window) or is_aggregate(node) or is_generator(node) or not is_deterministic(node)
        for item in select.expressions
        for node in item.walk()
    )
