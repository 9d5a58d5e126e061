"""Correlated subqueries whose tables are at one site: they are answered there for all keys at once.

A scalar one, `x < (SELECT 0.2 * avg(q) FROM t WHERE t.k = o.k AND p)`, becomes
`x < (SELECT 0.2 * max(a.v) FROM (SELECT k, avg(q) AS v FROM t WHERE p GROUP BY k) AS a WHERE a.k = o.k)`. Why this is
the same: the groups are by the columns that must equal the outer ones, of types whose `=` is the equality of groups,
and both sides have one type (or whole numbers of two sizes), so at most one group equals the outer values. Its rows
are the rows that the subquery would have aggregated, and `max` of one value is that value, of its type. A group with a
NULL key is equal to nothing, as its rows were. Without a group `max` is NULL, as min, max, sum and avg of no rows are;
count is 0 then, and is written so. Spark makes such groups itself, of all rows, so errors are those it would have.

EXISTS and IN ask whether rows exist: the columns that the correlated conjuncts read, and those of IN's list, of every
row that passes the other conjuncts, each once; the correlated conjuncts then ask the same of the same values. (Of one
table alone the rule `sets` does that.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from skerry.model.table import TablePart
from skerry.plan.mention import is_key
from skerry.plan.rules.answers import Asked, column_of, derived, has_only, is_plain
from skerry.plan.rules.blocks import home_of
from skerry.plan.rules.outputs import Outputs
from skerry.plan.rules.subqueries import looked_up, scopes_inside
from skerry.sql.fields import names_field
from skerry.sql.functions import call_name, is_aggregate
from skerry.sql.push import resolve, split
from skerry.sql.scope import Scope, Scopes, Source
from skerry.sql.statement import render
from skerry.sql.walk import bare, find_all, nodes_of

ONCE = "the subquery is answered for all its keys at once"
_CLAUSES = frozenset("expressions from_ joins where said_all".split())
# NULL of no rows; and count, which is not.
_AGGREGATES = frozenset(("min", "max", "sum", "avg", "mean", "count"))
_WHOLE = frozenset(("tinyint", "smallint", "int", "bigint"))


@dataclass(frozen=True, eq=False)
class Lookup:
    """A correlated subquery: conjuncts that ask of the outer row, and the own columns that stand in them."""

    asked: Asked
    select: exp.Select
    own: tuple[exp.Expr, ...]
    outer: tuple[exp.Expr, ...]
    columns: tuple[exp.Column, ...]


def lookup(each: Asked, scopes: Scopes, holders: Mapping[str, Sequence[TablePart]], outputs: Outputs) -> Lookup | None:
    """None unless the subquery is one of those that are proved above."""
    select = each.query
    if not isinstance(select, exp.Select) or not has_only(select, _clauses(each.kind)):
        return None
    scope = next(own for own in scopes.all if own.select is select)
    where = select.args.get("where")
    if where is None or not scope.plain or select.find(exp.With) is not None or home_of(select, holders) is None:
        return None
    if each.kind != "scalar" and (len(scope.sources) < 2 or not is_plain(select)):
        return None
    if isinstance(each.parent.find_ancestor(exp.Having, exp.Select), exp.Having):
        return None  # what a name means there, the groups' list decides
    inner, outer = _parted(split(where.this), scope, each.scope, scopes)
    columns = _own_columns(outer, scope, each.scope)
    if not outer or columns is None or not _is_closed(select, outer, each.scope, scopes):
        return None
    if each.kind == "scalar":
        if not all(_is_key_pair(conjunct, scope, each.scope) for conjunct in outer) or not _is_aggregate(select):
            return None
        if any(outputs.type(call, scope) is None for call in _calls(select)):
            return None
    elif each.kind == "in" and any(not is_key(type_) for type_ in outputs.types(select) or ("",)):
        return None
    return Lookup(each, select, tuple(inner), tuple(outer), tuple(columns))


def _clauses(kind: str) -> frozenset[str]:
    return _CLAUSES if kind == "scalar" else _CLAUSES | {"distinct"}


def _parted(
    conjuncts: Sequence[exp.Expr], scope: Scope, around: Scope, scopes: Scopes
) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """The conjuncts that are the subquery's own, and those that look outside."""
    inner: list[exp.Expr] = []
    outer: list[exp.Expr] = []
    inside = {id(column): each for each in scopes_inside(scope.select, around, scopes) for column in each.columns}
    for conjunct in conjuncts:
        columns = find_all(conjunct, exp.Column)
        is_own = all(id(each) in inside and looked_up(each, inside[id(each)], around) is None for each in columns)
        (inner if is_own else outer).append(conjunct)
    return inner, outer


def _own_columns(outer: Sequence[exp.Expr], scope: Scope, around: Scope) -> list[exp.Column] | None:
    """The subquery's columns in these conjuncts; None when one cannot be told, or has no simple equality."""
    found: list[exp.Column] = []
    for conjunct in outer:
        for node in nodes_of(conjunct):
            if isinstance(node, exp.Query | exp.Window | exp.Lambda | exp.Star | exp.Dot | exp.Placeholder):
                return None
            if not isinstance(node, exp.Column):
                continue
            source = looked_up(node, scope, around)
            if source is None:
                if names_field(node) or not is_key(_type(node, resolve(node, scope))):
                    return None
                found.append(node)
            elif not isinstance(source, Source):
                return None
    return found


def _type(column: exp.Column, source: Source | None) -> str:
    found = source.table.column(column.name) if source is not None and source.table is not None else None
    return found.type if found is not None else ""


def _is_closed(select: exp.Select, outer: Sequence[exp.Expr], around: Scope, scopes: Scopes) -> bool:
    """Does nothing but those conjuncts look outside?"""
    free = {id(column) for conjunct in outer for column in find_all(conjunct, exp.Column)}
    inside = scopes_inside(select, around, scopes)
    seen = {id(column): each for each in inside for column in each.columns}
    for column in find_all(select, exp.Column):
        if id(column) not in seen or isinstance(column.this, exp.Star):
            return False
        if id(column) not in free and looked_up(column, seen[id(column)], around) is not None:
            return False
    return True


def _is_key_pair(conjunct: exp.Expr, scope: Scope, around: Scope) -> bool:
    """A column of the subquery that equals an outer one, both of one type."""
    conjunct = bare(conjunct)
    if not isinstance(conjunct, exp.EQ):
        return False
    types: dict[bool, str] = {}
    for side in (conjunct.this, conjunct.expression):
        if not isinstance(side, exp.Column):
            return False
        source = looked_up(side, scope, around)
        own = resolve(side, scope) if source is None else source
        types[source is None] = _type(side, own if isinstance(own, Source) else None)
    both = set(types.values())
    return len(types) == 2 and all(map(is_key, both)) and (len(both) == 1 or both <= _WHOLE)


def _calls(select: exp.Select) -> list[exp.Expr]:
    """The outermost aggregates of the one value."""
    found: list[exp.Expr] = []
    stack: list[exp.Expr] = list(select.expressions)
    while stack:
        node = stack.pop()
        if is_aggregate(node):
            found.append(node)
        else:
            stack.extend(reversed(list(node.iter_expressions())))
    return found


def _is_aggregate(select: exp.Select) -> bool:
    """One value, made of aggregates that are known here and of constants."""
    if len(select.expressions) != 1:
        return False
    (item,) = select.expressions
    calls = _calls(select)
    if not calls or any(call_name(call) not in _AGGREGATES or not isinstance(call, exp.Anonymous) for call in calls):
        return False
    if any(map(names_field, calls)):
        return False
    within = {id(node) for call in calls for node in nodes_of(call)}
    for node in nodes_of(item):
        if isinstance(node, exp.Query | exp.Window | exp.Filter | exp.WithinGroup | exp.Lambda):
            return False
        if isinstance(node, exp.Column) and id(node) not in within:
            return False
    # An aggregate of an aggregate is no query.
    return not any(is_aggregate(node) for call in calls for node in nodes_of(call) if node is not call)


def put_lookup(found: Lookup, name: str) -> None:
    """Puts the subquery's own part in FROM, grouped or distinct, and asks it what was asked."""
    asked, select = found.asked, found.select
    items: list[exp.Expr] = []
    known: dict[str, str] = {}

    def item(node: exp.Expr) -> str:
        text = render(node)
        if text not in known:
            known[text] = f"{name}_{len(items) + 1}"
            items.append(exp.Alias(this=node.copy(), alias=exp.Identifier(this=known[text], quoted=False)))
        return known[text]

    for column in found.columns:
        column.replace(column_of(name, item(column)))
    keys = [each.this.copy() for each in items]
    if asked.kind == "scalar":
        for call in _calls(select):
            call.replace(_looked_up(column_of(name, item(call)), call_name(call) == "count"))
        values: list[exp.Expr] = [select.expressions[0].unalias()]
    elif asked.kind == "in":
        values = [column_of(name, item(value.unalias())) for value in select.expressions]
    else:
        values = [exp.Literal.number(1)]
        if not items:
            item(exp.Literal.number(1))
    body = exp.Select(expressions=items, from_=select.args["from_"], joins=select.args.get("joins"))
    if found.own:
        body.set("where", exp.Where(this=_all(found.own)))
    if asked.kind == "scalar":
        body.set("group", exp.Group(expressions=keys))
    else:
        body.set("distinct", exp.Distinct())
    alias = exp.TableAlias(this=exp.Identifier(this=name, quoted=False))
    rest = exp.Select(expressions=values, from_=exp.From(this=derived(body, alias, ONCE)))
    rest.set("where", exp.Where(this=_all(found.outer)))
    asked.parent.set(asked.key, rest)


def _looked_up(value: exp.Column, is_count: bool) -> exp.Expr:
    most = exp.Anonymous(this="max", expressions=[value])
    return exp.Anonymous(this="coalesce", expressions=[most, exp.Literal.number(0)]) if is_count else most


def _all(conjuncts: Sequence[exp.Expr]) -> exp.Expr:
    joined = conjuncts[0]
    for conjunct in conjuncts[1:]:
        joined = exp.And(this=joined, expression=conjunct)
    return joined
