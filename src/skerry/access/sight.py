"""How a user sees a table, as one SELECT over all of it. Pure.

A row is there if some role shows it. In it a column has its value if a role that shows the row grants it unmasked,
else what the mask of such a role makes of it, else NULL. So no two roles tell more than the one and the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from sqlglot import exp

from skerry.access.expressions import USER, columns_in, read_expression, uses_user
from skerry.model.rights import Seen, Sight
from skerry.model.table import Column
from skerry.spark.engine import WHOLE_TABLE, TableView
from skerry.sql.dialect import render
from skerry.sql.parse import parse_type


def missing_column(seen: Seen, columns: Sequence[Column]) -> str:
    """A column that a filter or mask is about, and that the table does not have; "" if it has all of them."""
    known = {column.name.lower() for column in columns}
    for sight in seen.sights:
        texts = filter(None, (sight.where, *sight.masks.values()))
        named = frozenset(sight.masks).union(*map(columns_in, texts))
        if not known.issuperset(named):
            return min(named - known)
    return ""


def view_of(seen: Seen, columns: Sequence[Column], user: str) -> TableView | None:
    """None if the user sees the table as it is. `columns` are all that the table has."""
    if seen.is_whole:
        return None
    shown = [exp.alias_(_value(column, seen.sights), column.name, quoted=True) for column in seen.columns(columns)]
    select = exp.select(*shown, copy=False).from_(exp.to_table(WHOLE_TABLE))
    if all(sight.where for sight in seen.sights):
        rows: list[exp.Expr] = [exp.paren(read_expression(sight.where)) for sight in seen.sights]
        some = reduce(_or, rows)
        select.set("where", exp.Where(this=exp.And(this=exp.paren(some), expression=_barrier())))
    arguments = ((USER, user),) if uses_user(select) else ()
    return TableView(render(select), arguments)


def _value(column: Column, sights: Sequence[Sight]) -> exp.Expr:
    """A CASE also where one filter alone decides: an engine may compute a query's own conditions before the filter,
    and an error that a hidden row raised in them would tell of it. There the hidden row is NULL in every column."""
    showing = [sight for sight in sights if sight.shows(column.name)]
    showing.sort(key=lambda sight: column.name.lower() in sight.masks)  # a plain value before a masked one
    branches: list[exp.Expr] = []
    for sight in showing:
        value = _plain_or_masked(column, sight)
        if not sight.where:
            return exp.Case(ifs=branches, default=value) if branches else value
        branches.append(exp.If(this=exp.paren(read_expression(sight.where)), true=value))
    # Of two branches Sail makes new values. Of one it makes the old ones with a mark that they are NULL, and what is
    # inside of a struct, an array or a map could be had all the same.
    unknown = exp.Is(this=exp.paren(read_expression(showing[0].where)), expression=exp.Null())
    return exp.Case(ifs=[*branches, exp.If(this=unknown, true=exp.Null())])


def _plain_or_masked(column: Column, sight: Sight) -> exp.Expr:
    mask = sight.masks.get(column.name.lower())
    if mask is None:
        return exp.column(column.name, quoted=True)
    return exp.Cast(this=exp.paren(read_expression(mask)), to=parse_type(column.type))


def _or(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    return exp.Or(this=one, expression=other)


def _barrier() -> exp.Expr:
    """Always true, and another value each time as far as Spark can tell: so it computes no condition of a query before
    the filter, as it would if it could make one condition of both. (It sees through `rand(0) >= 0`.)"""
    chance = exp.Anonymous(this="rand", expressions=[exp.Literal.number(0)])
    return exp.GT(this=exp.Add(this=chance, expression=exp.Literal.number(1)), expression=exp.Literal.number(0))
