"""Types that the markers of a statement must have, and values that surely have another. Pure.

A marker that is compared with a table's column takes what Spark would compare with it. Only what Spark certainly
refuses is refused, so that nothing runs for it; what depends on the rows, or on Spark's finer rules, is Spark's.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlglot import exp

from skerry.sql.position import error_at
from skerry.sql.scope import Scope, Scopes

_COMPARISONS = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)

BOUND = "number of rows"  # the type of LIMIT's and OFFSET's markers

_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double", "decimal"})
_TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})
_FAMILIES = _NUMBERS | _TIMES | {"boolean", "string", "binary"}

# Generous: 'nan' and '1.5' are no bigints, but whether Spark takes them is for Spark to say.
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?[df]?|0x[0-9a-f.]+(p[+-]?\d+)?[df]?|nan|inf|infinity)")
_TRUTHS = frozenset({"t", "true", "y", "yes", "1", "f", "false", "n", "no", "0"})
_DAYS = frozenset({"epoch", "now", "today", "tomorrow", "yesterday"})
_BLANKS = "".join(map(chr, [*range(0x21), *range(0x7F, 0xA0)]))  # what Spark trims before it casts


@dataclass(frozen=True)
class Place:
    """Where a marker's type is known; `where` is the column, or LIMIT or OFFSET, that says so."""

    marker: exp.Placeholder
    type: str
    where: str
    is_bound: bool = False


def expected_places(tree: exp.Expr, scopes: Scopes) -> dict[str, list[Place]]:
    """By the names of markers; those whose type nobody knows are left out."""
    owners = {id(column): scope for scope in scopes.all if scope.plain for column in scope.columns}
    found: dict[str, list[Place]] = {}
    for marker, column in _compared(tree):
        scope = owners.get(id(column))
        kind = _type_of(column, scope) if scope is not None else None
        if kind is not None:
            found.setdefault(marker.name, []).append(Place(marker, kind, column.name))
    for clause in tree.find_all(exp.Limit, exp.Offset):
        if isinstance(clause.expression, exp.Placeholder):
            place = Place(clause.expression, BOUND, type(clause).__name__.upper(), is_bound=True)
            found.setdefault(clause.expression.name, []).append(place)
    return found


def check_values(places: Mapping[str, Sequence[Place]], values: Mapping[str, Any], text: str) -> None:
    """Refuse a value that surely has a wrong type, before anything runs."""
    for name, known in places.items():
        for place in known:
            if not may_be(place.type, values.get(name)):
                shown = f"{int(name[1:]) + 1}" if re.fullmatch(r"p\d+", name) else f":{name}"
                wants = "takes a number of rows" if place.is_bound else f"is {_article(place.type)}"
                where = place.where if place.is_bound else f"column {place.where}"
                what = said(values.get(name))
                raise error_at(f"parameter {shown}: {what} has a wrong type: {where} {wants}", text, place.marker)


def said(value: Any) -> str:
    """A value in a message."""
    return repr(value) if len(repr(value)) <= 40 else f"a value of type {type(value).__name__}"


def may_be(kind: str, value: Any) -> bool:
    """False when the value surely is none of the type, the type being one of `Place`."""
    return _bounds(value) if kind == BOUND else may_compare(kind, value)


def may_compare(kind: str, value: Any) -> bool:
    """False when Spark surely refuses to compare a column of the type with the value, or to cast it."""
    family = re.split(r"[(<]", kind, maxsplit=1)[0].strip().lower()
    if family not in _FAMILIES or value is None:
        return True
    match value:
        case str():
            return _may_cast(family, value)
        case bool():
            return family in ("boolean", "string")
        case int() | float() | Decimal():
            return family in _NUMBERS or family == "string"
        case dt.date():  # a datetime is one
            return family in _TIMES or family == "string"
        case bytes():
            return family in ("binary", "string")
        case list() | tuple():
            return False
    return True


def _may_cast(family: str, value: str) -> bool:
    word = value.strip(_BLANKS).lower()
    if family in _NUMBERS:
        return _NUMBER.fullmatch(word) is not None
    if family == "boolean":
        return word in _TRUTHS
    if family in _TIMES:
        return word in _DAYS or any(letter.isdigit() for letter in word)
    return True


def _bounds(value: Any) -> bool:
    """Spark's LIMIT takes integers only; a negative one, or NULL, it refuses by itself with a better sentence."""
    return value is None or (isinstance(value, int) and not isinstance(value, bool))


def _compared(tree: exp.Expr) -> Iterator[tuple[exp.Placeholder, exp.Column]]:
    for node in tree.find_all(*_COMPARISONS, exp.Between):
        if node.find_ancestor(exp.Lambda) is not None:
            continue  # its variables are called as they like
        sides = [node.args.get(key) for key in ("this", "expression", "low", "high")]
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
