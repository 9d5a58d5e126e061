"""What no row can make right: a date that no calendar has, a LIMIT below 0. Refused before anything runs. Pure.

Spark refuses all of it while it parses or analyses, whatever the tables hold; what depends on rows is Spark's to say.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from skerry.model.comparable import BLANKS, DATE, is_no_date
from skerry.model.errors import SqlError
from skerry.sql.fixed import special_time
from skerry.sql.nodes import TypedLiteral
from skerry.sql.position import error_at
from skerry.sql.walk import bare, find_all

_TIMESTAMPS = frozenset({"TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"})


def check_literals(tree: exp.Expr, text: str) -> None:
    """Raise SqlError at a typed literal, a LIMIT or an OFFSET that can have no value."""
    for node in find_all(tree, TypedLiteral, exp.Limit, exp.Offset):
        if isinstance(node, TypedLiteral):
            _check_time(node, text)
        else:
            wrong = _wrong_bound(node.expression)
            if wrong:
                raise bound_error(node, wrong, text)


def bound_error(clause: exp.Expr, wrong: str, text: str, where: str = "") -> SqlError:
    """`where` names the parameter that has the wrong value."""
    word = type(clause).__name__.upper()
    return error_at(f"{where}{word} takes a number of rows, 0 or more, not {wrong}", text, clause)


def is_bound(value: Any) -> bool:
    """Whether a parameter can stand behind LIMIT."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _check_time(node: TypedLiteral, text: str) -> None:
    kind, value = node.args["kind"].name.upper(), str(node.this.this)
    word = value.strip(BLANKS)
    if word.lower().startswith("epoch") or special_time(node) is not None:
        return
    if kind == "DATE":
        wrong = DATE.fullmatch(word) is None or is_no_date(word)
    elif kind in _TIMESTAMPS:
        wrong = is_no_date(word) or not any(char.isdigit() for char in word)
    else:
        return
    if wrong:
        shape = "DATE 'yyyy-mm-dd'" if kind == "DATE" else f"{kind} 'yyyy-mm-dd hh:mm:ss'"
        raise error_at(f"there is no {kind} '{value}' (write {shape})", text, node)


def _wrong_bound(node: exp.Expr) -> str:
    """What a bound surely is that it must not be; "" if it may be right."""
    node = bare(node)
    sign = ""
    if isinstance(node, exp.Neg):
        sign, node = "-", node.this
    if isinstance(node, exp.Null):
        return "NULL"
    if not isinstance(node, exp.Literal):
        return ""
    number = str(node.this)
    if node.is_string:
        return f"'{number}'"
    is_wrong = "." in number or (sign and number.isdigit() and int(number) > 0)
    return f"{sign}{number}" if is_wrong else ""
