"""The type of a column of our own: how a statement writes it → Spark's short text, for types that files hold.

They are those of configured tables (`model/columns.py`): no interval and no TIME, which Delta does not know either.
"""

from __future__ import annotations

import re

from sqlglot import exp

from skerry.model.columns import DEPTH_MAX, NAMES
from skerry.model.limits import DECIMAL_DIGITS
from skerry.sql.nodes import SparkType
from skerry.sql.position import error_at

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DECIMALS = ("DECIMAL", "DEC", "NUMERIC")
_SIZED_TEXTS = ("CHAR", "CHARACTER", "VARCHAR")
# Types whose values have one place among the buckets (T9 of the design): those that a key may have.
_KEY_TYPES = frozenset(NAMES.values()) - {"decimal(10,0)"}


def type_text(node: SparkType, text: str) -> str:
    """`DECIMAL(15, 2)` → `decimal(15,2)`; SqlError at a type that is none of these."""
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
    if word in _SIZED_TEXTS:
        raise error_at(f"{word} is not admitted: no site checks lengths; write STRING", text, node)
    if word == "TIMESTAMP" and node.args.get("zone") == "WITHOUT TIME ZONE":
        return "timestamp_ntz"
    kind = NAMES.get(word.lower())
    if kind is None:
        raise error_at(f"a column of type {word} is not admitted: no file of a table holds its values", text, node)
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
        if not _NAME.fullmatch(name):
            raise error_at("the name of a field has letters, digits and _ only", text, field)
        fields.append(f"{name}:{_type_text(field.args['kind'], text, depth)}")
    return f"struct<{','.join(fields)}>"


def _decimal(node: exp.Expr, sizes: list[str], text: str) -> str:
    precision, scale = (*map(int, sizes), *((10, 0)[len(sizes) :]))[:2]
    if len(sizes) > 2 or not 1 <= precision <= DECIMAL_DIGITS or scale > precision:
        raise error_at("DECIMAL(p, s) has 1 to 38 digits, s of them behind the point", text, node)
    return f"decimal({precision},{scale})"
