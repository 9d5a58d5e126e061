"""Where Sail sorts by doubles that it computes: its NaN has a sign there, and one with a minus is the least of all.

`-x` of NaN, `sqrt(-1)` and infinity less infinity are such values; to Spark NaN is NaN, the greatest.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from skerry.plan.partials import called, cast
from skerry.plan.reals import Reals, is_always_double
from skerry.plan.rules.outputs import Outputs
from skerry.sql.functions import is_aggregate
from skerry.sql.scope import Scope
from skerry.sql.walk import bare, find_all


def sorts_by_computed(tree: exp.Expr) -> bool:
    """Whether there is anything to look at: an order by more than columns of tables."""
    return bool(find_all(tree, exp.Ordered))


def give_nan_one_sign(scope: Scope, outputs: Outputs, reals: Reals) -> None:
    """Changes what the SELECT and its windows are sorted by. Items without an alias stay, and so do their names."""
    select = scope.select
    if select.args.get("distinct"):
        return  # only what is listed can be sorted by
    listed = [bare(item.unalias()) for item in select.expressions]
    aliased = {item.alias.lower(): item for item in select.expressions if isinstance(item, exp.Alias)}
    for ordered in find_all(select, exp.Ordered):
        if ordered.find_ancestor(exp.Select) is not select:
            continue
        key = bare(ordered.this)
        item = aliased.get(key.name.lower()) if isinstance(key, exp.Column) and len(key.parts) == 1 else None
        if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.name) <= len(select.expressions):
            found = select.expressions[int(key.name) - 1]
            item = found if isinstance(found, exp.Alias) else None
        if item is not None and not isinstance(ordered.parent, exp.Window):
            value = bare(item.this)
            if _is_computed(value) and (outputs.type(value, scope) == "double" or is_always_double(value)):
                item.set("this", _one_sign(value))
        elif (
            _is_computed(key) and key not in listed and (reals.has(key, scope) or _has_real(key, aliased, reals, scope))
        ):
            ordered.set("this", _one_sign(key))


def _has_real(key: exp.Expr, aliased: Mapping[str, exp.Expr], reals: Reals, scope: Scope) -> bool:
    """Whether it is arithmetic with a double of the list."""
    if not isinstance(key, exp.Neg | exp.Add | exp.Sub | exp.Mul | exp.Div):
        return False
    names = [column.name.lower() for column in find_all(key, exp.Column) if len(column.parts) == 1]
    return any(reals.has(aliased[name].this, scope) for name in names if name in aliased)


def _is_computed(value: exp.Expr) -> bool:
    """Not a column as it is, nor an aggregate of one, which the members merge themselves."""
    whole = value.this if isinstance(value, exp.Filter) else value
    is_made = isinstance(value, exp.Column | exp.Literal | exp.Query | exp.Window) or is_aggregate(whole)
    return not is_made and bool(find_all(value, exp.Column))


def _one_sign(value: exp.Expr) -> exp.Expr:
    return called("nanvl", value.copy(), cast(exp.Literal.string("NaN"), "double"))
