"""A table whose rows only make a set is one: rows that are alike in the columns they send travel once.

EXISTS, IN, SEMI and ANTI joins ask about a set, and UNION, INTERSECT and EXCEPT (without ALL) make one.
"""

from __future__ import annotations

from sqlglot import exp

from skerry.sql.functions import is_aggregate, is_deterministic, is_generator
from skerry.sql.scope import Scope

# What the SELECT may have: nothing that counts its rows or chooses among them.
_PLAIN = frozenset("expressions from_ joins where distinct said_all".split())
# In a chain of more UNIONs than that nobody looks for the one that makes a set.
_HIGH = 50


def is_set(scope: Scope) -> bool:
    """Does it not matter how often a row of this SELECT's tables comes?"""
    select = scope.select
    if not scope.plain or not feeds_set(select):
        return False
    if any(value not in (None, [], False) and key not in _PLAIN for key, value in select.args.items()):
        return False
    # Each of two rows that are alike has its own chance to pass a condition that differs from call to call.
    if not is_deterministic(select):
        return False
    return not any(
        isinstance(node, exp.Window) or is_aggregate(node) or is_generator(node)
        for item in select.expressions
        for node in item.walk()
    )


def is_asked_about(scope: Scope, table: exp.Expr) -> bool:
    """Is it the right side of a SEMI or ANTI join, of which the left side asks whether there is such a row?"""
    join = table.parent
    return (
        scope.plain
        and isinstance(join, exp.Join)
        and join.this is table
        and join.args.get("kind") in ("SEMI", "ANTI")
        and join.args.get("side") in (None, "", "LEFT")
        and is_deterministic(join)
    )


def feeds_set(query: exp.Expr) -> bool:
    """Does it not matter how often a row of the query's result comes?"""
    node, parent = query, query.parent
    for _ in range(_HIGH):
        match parent:
            case exp.Exists():
                return True
            case exp.In():
                return parent.args.get("query") is node
            case exp.SetOperation() if parent.args.get("distinct"):
                return True
            case exp.Union() if not any(parent.args.get(key) for key in ("limit", "offset")):
                pass
            case exp.Subquery() if not any(value for key, value in parent.args.items() if key != "this"):
                pass
            case _:
                return False
        node, parent = parent, parent.parent
    return False
