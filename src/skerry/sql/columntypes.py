"""The type of a column of our own: how a statement writes it → Spark's short text, for types that travel."""

from __future__ import annotations

import re

from sqlglot import exp

from skerry.model.columns import DEPTH_MAX, NAMES
from skerry.sql.nodes import SparkType
from skerry.sql.position import error_at

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNITS = ("DAY", "HOUR", "MINUTE", "SECOND")
_DECIMALS = ("DECIMAL", "DEC", "NUMERIC")
_SIZED_TEXTS = ("CHAR", "CHARACTER", "VARCHAR")
# Types whose values have one place among the buckets (T9 of the design): those that a key may have.
_KEY_TYPES = frozenset(NAMES.values()) - {"decimal(10,0)"}


def type_text(node: SparkType, text: str) -> str:
    """`DECIMAL(15, 2)` → `decimal(15,2)`; SqlError at a type that does not travel."""
    return _type_text(node, text, 0)


def may_be_key(kind: str) -> bool:
    return kind in _KEY_TYPES or kind.startswith("decimal(")


def _type_text(node: SparkType, text: str, depth: int) -> str:
    word = str(node.this)
    sizes = [each.name for each in node.expressions] if not node.args.get("nested") else []
    if depth > DEPTH_MAX:
        raise error_at(f"a type is nested at most {DEPTH_MAX} deep", text, node)
    if node.args.get("nested"):
        return _nested(node, word, text, depth + 1)
    if word in _DECIMALS:
        return _decimal(node, sizes, text)
    if word == "TIME":
        precision = int(sizes[0]) if sizes else 6
        if len(sizes) > 1 or precision > 6:
            raise error_at("TIME has at most 6 digits behind the second", text, node)
        return f"time({precision})"
    if word == "INTERVAL":
        return _interval(node, text)
    if word in _SIZED_TEXTS:
        raise error_at(f"{word} is not admitted: no site checks lengths; write STRING", text, node)
    if word == "TIMESTAMP" and node.args.get("zone") == "WITHOUT TIME ZONE":
        return "timestamp_ntz"
    kind = NAMES.get(word.lower())
    if kind is None:
        raise error_at(f"a column of type {word} is not admitted: its values cannot leave a site", text, node)
    if sizes:
        raise error_at(f"{word} takes no size", text, node)
    return kind


def _nested(node: SparkType, word: str, text: str, depth: int) -> str:
    if word != "STRUCT":
        inside = ",".join(_type_text(each, text, depth) for each in node.expressions)
        return f"{word.lower()}<{inside}>"
    if not node.expressions:
        raise error_at("STRUCT takes a field at least", text, node)
    fields, names = [], set()
    for field in node.expressions:
        name = field.this.name
        if field.args.get("not_null") or field.args.get("comment"):
            raise error_at("a field of a STRUCT is a name and a type", text, field)
        if name.lower() in names:
            raise error_at(f"two fields are called {name}", text, field)
        names.add(name.lower())
        shown = name if _NAME.fullmatch(name) else f"`{name.replace('`', '``')}`"
        fields.append(f"{shown}:{_type_text(field.args['kind'], text, depth)}")
    return f"struct<{','.join(fields)}>"


def _decimal(node: exp.Expr, sizes: list[str], text: str) -> str:
    precision, scale = (*map(int, sizes), *((10, 0)[len(sizes) :]))[:2]
    if len(sizes) > 2 or not 1 <= precision <= 38 or scale > precision:
        raise error_at("DECIMAL(p, s) has 1 to 38 digits, s of them behind the point", text, node)
    return f"decimal({precision},{scale})"


def _interval(node: SparkType, text: str) -> str:
    units = [each.name for each in (*node.expressions, node.args.get("to")) if each is not None]
    if not units or not all(unit in _UNITS for unit in units) or [*units] != sorted(units, key=_UNITS.index):
        raise error_at("an interval of a column is one of DAY, HOUR, MINUTE, SECOND, or DAY TO SECOND", text, node)
    return f"interval {' to '.join(unit.lower() for unit in units)}"
