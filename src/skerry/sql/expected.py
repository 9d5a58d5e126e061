"""Types that the markers of a statement must have, and values that surely have another. Pure.

A marker that is compared with a table's column takes what Spark would compare with it. Only what Spark certainly
refuses is refused, so that nothing runs for it; what depends on the rows, or on Spark's finer rules, is Spark's.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from sqlglot import exp

from skerry.sql.position import error_at
from skerry.sql.scope import Scope, Scopes

_COMPARISONS = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)

_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double", "decimal"})
_TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})
_FAMILIES = _NUMBERS | _TIMES | {"boolean", "string", "binary"}

# Generous: 'nan' and '1.5' are no bigints, but whether Spark takes them is for Spark to say.
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?[df]?|0x[0-9a-f.]+(p[+-]?\d+)?[df]?|nan|inf|infinity)")
_TRUTHS = frozenset({"t", "true", "y", "yes", "1", "f", "false", "n", "no", "0"})
_DAYS = frozenset({"epoch", "now", "today", "tomorrow", "yesterday"})
_BLANKS = "".join(map(chr, [*range(0x21), *range(0x7F, 0xA0)]))  # what Spark trims before it casts


def expected_types(tree: exp.Expr, scopes: Scopes) -> dict[str, list[tuple[exp.Placeholder, str, str]]]:
    """By marker: each place where its type is known, with the type and the column or clause that says so."""
    owners = {id(column): scope for scope in scopes.all if scope.plain for column in scope.columns}
    found: dict[str, list[tuple[exp.Placeholder, str, str]]] = {}
    for marker, column in _compared(tree):
        scope = owners.get(id(column))
        kind = _type_of(column, scope) if scope is not None else None
        if kind is not None:
            found.setdefault(marker.name, []).append((marker, kind, column.name))
    for clause in tree.find_all(exp.Limit, exp.Offset):
        if isinstance(clause.expression, exp.Placeholder):
            where = type(clause).__name__.upper()
            found.setdefault(clause.expression.name, []).append((clause.expression, "int", where))
    return found


def check_values(tree: exp.Expr, scopes: Scopes, values: Mapping[str, Any], text: str) -> None:
    """Refuse a value that surely has a wrong type, before anything runs."""
    for name, places in expected_types(tree, scopes).items():
        for marker, kind, where in places:
            value = values.get(name)
            is_bound = where in ("LIMIT", "OFFSET")
            if not (_bounds(value) if is_bound else may_compare(kind, value)):
                said = repr(value) if len(repr(value)) <= 40 else f"a value of type {type(value).__name__}"
                wants = f"{where} takes a number of rows" if is_bound else f"column {where} is {_article(kind)}"
                shown = f"{int(name[1:]) + 1}" if re.fullmatch(r"p\d+", name) else f":{name}"
                raise error_at(f"parameter {shown}: {said} has a wrong type: {wants}", text, marker)


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
