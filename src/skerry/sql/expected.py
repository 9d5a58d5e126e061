"""Types that the markers of a statement must have, and values that surely have another. Pure.

A marker that is compared with a table's column takes what Spark would compare with it. Only what Spark certainly
refuses is refused, so that nothing runs for it; what depends on the rows, or on Spark's finer rules, is Spark's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from skerry.model.comparable import may_compare, said
from skerry.sql.impossible import bound_error, is_bound
from skerry.sql.position import error_at
from skerry.sql.scope import Scope, Scopes
from skerry.sql.walk import contains, find_all, nodes_of

_COMPARISONS = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)

BOUND = "number of rows"  # the type of LIMIT's and OFFSET's markers


@dataclass(frozen=True)
class Place:
    """Where a marker's type is known; `where` is the column that says so, `clause` the LIMIT or OFFSET."""

    marker: exp.Placeholder
    type: str
    where: str
    clause: exp.Expr | None = None
    is_listed: bool = False  # in the list of IN


def expected_places(tree: exp.Expr, scopes: Scopes) -> dict[str, list[Place]]:
    """By the names of markers; those whose type nobody knows are left out."""
    owners = {id(column): scope for scope in scopes.all if scope.plain for column in scope.columns}
    found: dict[str, list[Place]] = {}
    for marker, column in _compared(tree):
        scope = owners.get(id(column))
        kind = _type_of(column, scope) if scope is not None else None
        if kind is not None:
            place = Place(marker, kind, column.name, is_listed=isinstance(marker.parent, exp.In))
            found.setdefault(marker.name, []).append(place)
    for clause in find_all(tree, exp.Limit, exp.Offset):
        if isinstance(clause.expression, exp.Placeholder):
            place = Place(clause.expression, BOUND, type(clause).__name__.upper(), clause)
            found.setdefault(clause.expression.name, []).append(place)
    return found


def check_values(places: Mapping[str, Sequence[Place]], values: Mapping[str, Any], text: str) -> None:
    """Refuse a value that surely has a wrong type, before anything runs."""
    for name, known in places.items():
        shown = f"parameter {int(name[1:]) + 1 if re.fullmatch('p[0-9]+', name) else f':{name}'}: "
        value = values.get(name)
        for place in known:
            if place.clause is not None:
                if not is_bound(value):
                    raise bound_error(place.clause, said(value), text, shown)
            elif not may_compare(place.type, value):
                advice = " (IN takes a marker for each value)" if place.is_listed and isinstance(value, list) else ""
                where = f"column {place.where} is {_article(place.type)}"
                raise error_at(f"{shown}{said(value)} has a wrong type: {where}{advice}", text, place.marker)


def _compared(tree: exp.Expr) -> Iterator[tuple[exp.Placeholder, exp.Column]]:
    if not contains(tree, exp.Placeholder):
        return
    # The variables of lambdas are called as they like.
    inside = {id(node) for each in find_all(tree, exp.Lambda) for node in nodes_of(each)}
    for node in find_all(tree, *_COMPARISONS, exp.Between, exp.In):
        if id(node) in inside:
            continue
        sides = [node.args.get(key) for key in ("this", "expression", "low", "high")]
        sides += node.args.get("expressions") or []
        columns = [side for side in map(_bare, sides) if isinstance(side, exp.Column)]
        markers = [side for side in map(_bare, sides) if isinstance(side, exp.Placeholder)]
        for column in columns:
            for marker in markers:
                yield marker, column


def _bare(node: exp.Expr | None) -> exp.Expr | None:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _type_of(column: exp.Column, scope: Scope) -> str | None:
    """The type of a column that is surely one of a table in this FROM."""
    parts = [part.name.lower() for part in column.parts]
    name = parts[-1]
    given = {item.alias.lower() for item in scope.select.expressions if isinstance(item, exp.Alias)}
    if len(parts) > 2 or name in given or any(source.columns is None for source in scope.sources):
        return None
    if len(parts) == 2 and any(parts[0] in (source.columns or ()) for source in scope.sources):
        return None  # may be a field of a struct
    owners = [
        source
        for source in scope.sources
        if (source.alias == parts[0] if len(parts) == 2 else name in (source.columns or ()))
    ]
    if len(owners) != 1 or owners[0].table is None or owners[0].renamed:
        return None
    found = owners[0].table.column(name)
    return found.type if found is not None else None


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
