"""The Spark type of an expression, exactly as Spark 4 in ANSI mode would say; None whenever that is not certain."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from sqlglot import exp

from skerry.model.columns import NAMES
from skerry.model.limits import DECIMAL_DIGITS
from skerry.sql.functions import call_name
from skerry.sql.nodes import (
    Arguments,
    ColonCast,
    DistinctFrom,
    IntervalLiteral,
    SparkType,
    SpokenCall,
    TypedLiteral,
    UnaryPlus,
)
from skerry.sql.walk import bare

# The type of a column, or None when the column is not known for certain.
Resolve = Callable[[exp.Column], str | None]

_INTEGRALS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_RANK = ("tinyint", "smallint", "int", "bigint")
_WORDS = {word: name for word, name in NAMES.items() if not name.startswith("decimal")}  # a decimal has sizes
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_SCALE_MIN = 6
_BOOLEANS = (
    exp.And | exp.Or | exp.Not | exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE | exp.NullSafeEQ | exp.Between
)
_PREDICATES = exp.In | exp.Like | exp.ILike | exp.RegexpLike | exp.Escape | exp.Is | exp.Exists | DistinctFrom
_SIGNED = exp.Neg | UnaryPlus

_INTS = frozenset(
    "year quarter month day dayofmonth dayofweek dayofyear weekofyear weekday hour minute length char_length"
    " character_length datediff row_number rank dense_rank ntile instr locate ascii".split()
)
_BIGINTS = frozenset("count count_if approx_count_distinct".split())
_DOUBLES = frozenset(
    "stddev std stddev_samp stddev_pop variance var_samp var_pop corr covar_pop covar_samp skewness kurtosis"
    " percent_rank cume_dist sqrt exp ln".split()
)
_BOOLS = frozenset("bool_and bool_or every some any isnull isnotnull isnan startswith endswith contains".split())
_STRINGS = frozenset("upper lower ucase lcase trim ltrim rtrim btrim initcap substring substr left right".split())
_LIKE_FIRST = frozenset("min max first first_value last last_value any_value lag lead".split())
_LIKE_ALL = frozenset("coalesce nvl ifnull greatest least".split())
_TIMES = frozenset(("date", "timestamp", "timestamp_ntz"))
_UNITS = {
    "YEAR": "int",
    "YEARS": "int",
    "MONTH": "int",
    "MONTHS": "int",
    "DAY": "int",
    "DAYS": "int",
    "QUARTER": "int",
    "HOUR": "int",
    "MINUTE": "int",
}


def decimal_of(type_: str | None) -> tuple[int, int] | None:
    """Precision and scale of `decimal(p,s)`."""
    found = _DECIMAL.fullmatch(type_ or "")
    return (int(found[1]), int(found[2])) if found else None


def infer(node: exp.Expr, resolve: Resolve) -> str | None:
    """The type of `node`, as Spark's short text."""
    match node:
        case exp.Paren() | exp.Alias():
            return infer(node.this, resolve)
        case exp.Filter() | exp.Window() | exp.IgnoreNulls() | exp.RespectNulls():
            return infer(node.this, resolve)
        case exp.Column():
            return resolve(node) if not isinstance(node.this, exp.Star) else None
        case exp.Literal():
            return "string" if node.is_string else _number(str(node.this))
        case exp.Boolean():
            return "boolean"
        case exp.Null():
            return "void"
        case TypedLiteral():
            return {"DATE": "date", "TIMESTAMP_NTZ": "timestamp_ntz"}.get(node.args["kind"].name.upper())
        case exp.Cast() | exp.TryCast() | ColonCast():
            return spelt(node.args["to"])
        case exp.Case():
            return _case(node, resolve)
        case exp.DPipe():
            both = {infer(part, resolve) for part in (node.this, node.expression)}
            return "string" if both == {"string"} else None
    if isinstance(node, _BOOLEANS | _PREDICATES):
        return "boolean"
    if isinstance(node, _SIGNED):
        return _signed(node, resolve)
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.IntDiv | exp.Mod):
        return _arithmetic(node, resolve)
    if isinstance(node, exp.Anonymous | SpokenCall):
        return _call(node, resolve)
    return None


def spelt(node: exp.Expr) -> str | None:
    """A type as the statement writes it: DECIMAL(10, 2) → decimal(10,2)."""
    if not isinstance(node, SparkType) or node.args.get("nested"):
        return None
    word = str(node.this).lower()
    sizes = [str(size) for size in node.expressions]
    if word in ("decimal", "dec", "numeric"):
        if not all(size.isdecimal() for size in sizes) or len(sizes) > 2:
            return None
        precision, scale = (*map(int, sizes), *((10, 0)[len(sizes) :]))
        return f"decimal({precision},{scale})"
    return _WORDS.get(word) if not sizes else None


def _number(text: str) -> str | None:
    if text.isdecimal():
        value = int(text)
        if value < 2**31:
            return "int"
        return "bigint" if value < 2**63 else None
    found = re.fullmatch(r"(\d*)\.(\d*)", text)
    if found is None or not (found[1] or found[2]):
        return "bigint" if re.fullmatch(r"\d{1,18}[lL]", text) else None
    scale = len(found[2])
    digits = len((found[1] + found[2]).lstrip("0")) or 1
    return f"decimal({max(digits, scale)},{scale})" if max(digits, scale) <= DECIMAL_DIGITS else None


def _signed(node: exp.Expr, resolve: Resolve) -> str | None:
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and str(node.this.this) == str(2**31):
        return "int"  # the least of them: the sign is part of the number
    type_ = infer(node.this, resolve)
    return type_ if type_ in ("int", "bigint", "double", "float") or decimal_of(type_) else None


def _case(node: exp.Case, resolve: Resolve) -> str | None:
    branches = [branch.args["true"] for branch in node.args["ifs"]]
    default = node.args.get("default")
    return widest([infer(branch, resolve) for branch in ([*branches, default] if default is not None else branches)])


def widest(types: Iterable[str | None]) -> str | None:
    """The type that CASE, coalesce and UNION give to values of these types."""
    result: str | None = "void"
    for type_ in types:
        result = _wider(result, type_)
        if result is None:
            return None
    return result


def _wider(one: str | None, other: str | None) -> str | None:
    if one is None or other is None:
        return None
    if one == other or other == "void":
        return one
    if one == "void":
        return other
    if one in _INTEGRALS and other in _INTEGRALS:
        return max(one, other, key=_RANK.index)
    left, right = _as_decimal(one), _as_decimal(other)
    if left is not None and right is not None:
        scale = max(left[1], right[1])
        precision = max(left[0] - left[1], right[0] - right[1]) + scale
        return f"decimal({precision},{scale})" if precision <= DECIMAL_DIGITS else None
    return "double" if "double" in (one, other) and _is_numeric(one) and _is_numeric(other) else None


def _is_numeric(type_: str) -> bool:
    return type_ in _INTEGRALS or type_ == "double" or decimal_of(type_) is not None


def _as_decimal(type_: str | None) -> tuple[int, int] | None:
    if type_ in _INTEGRALS:
        return _INTEGRALS[type_], 0
    return decimal_of(type_)


def _operand(node: exp.Expr, type_: str | None, other: str | None) -> tuple[int, int] | None:
    """A whole-number literal beside a decimal has as many digits as it is written with, a column as its type has."""
    node = bare(node)
    if type_ in _INTEGRALS and decimal_of(other) is not None:
        if isinstance(node, exp.Literal):
            return len(str(node.this).rstrip("lL").lstrip("0")) or 1, 0
        if isinstance(node, _SIGNED):
            return None
    return _as_decimal(type_)


def _arithmetic(node: exp.Expr, resolve: Resolve) -> str | None:
    left, right = infer(node.this, resolve), infer(node.args["expression"], resolve)
    if isinstance(node, exp.Add | exp.Sub) and left == "date":
        return _date_arithmetic(node)
    if left is None or right is None or not _is_numeric(left) or not _is_numeric(right):
        return None
    if isinstance(node, exp.IntDiv):
        return "bigint" if left in _INTEGRALS and right in _INTEGRALS else None
    if "double" in (left, right):
        return "double"
    if left in _INTEGRALS and right in _INTEGRALS:
        return "double" if isinstance(node, exp.Div) else max(left, right, key=_RANK.index)
    one, other = _operand(node.this, left, right), _operand(node.args["expression"], right, left)
    return _decimal_result(node, one, other) if one is not None and other is not None else None


def _decimal_result(node: exp.Expr, one: tuple[int, int], other: tuple[int, int]) -> str:
    (p1, s1), (p2, s2) = one, other
    match node:
        case exp.Mul():
            precision, scale = p1 + p2 + 1, s1 + s2
        case exp.Div():
            scale = max(6, s1 + p2 + 1)
            precision = p1 - s1 + s2 + scale
        case exp.Mod():
            scale = max(s1, s2)
            precision = min(p1 - s1, p2 - s2) + scale
        case _:
            scale = max(s1, s2)
            precision = max(p1 - s1, p2 - s2) + scale + 1
    return _adjusted(precision, scale)


def _adjusted(precision: int, scale: int) -> str:
    if precision <= DECIMAL_DIGITS:
        return f"decimal({precision},{scale})"
    kept = max(DECIMAL_DIGITS - (precision - scale), min(scale, _SCALE_MIN))
    return f"decimal({DECIMAL_DIGITS},{kept})"


def _date_arithmetic(node: exp.Expr) -> str | None:
    interval = node.args["expression"]
    if not isinstance(interval, IntervalLiteral) or len(interval.expressions) != 1:
        return None
    part = interval.expressions[0]
    unit = part.args["unit"].name.upper().rstrip("S")
    return "date" if unit in ("YEAR", "MONTH", "DAY") and part.args.get("to") is None else None


def _call(node: exp.Expr, resolve: Resolve) -> str | None:
    name = call_name(node) or ""
    arguments: Sequence[exp.Expr] = node.expressions
    if arguments and isinstance(arguments[0], Arguments | exp.Distinct):
        arguments = arguments[0].expressions
    if name == "datediff" and len(arguments) > 2:
        return "bigint"  # by a unit
    if name in _INTS:
        return "int"
    if name in _BIGINTS:
        return "bigint"
    if name in _DOUBLES:
        return "double"
    if name in _BOOLS:
        return "boolean"
    if name in ("date_add", "date_sub", "to_date", "last_day") and not isinstance(node, SpokenCall):
        return "date" if len(arguments) <= 2 else None
    if name == "extract" and len(arguments) == 2:
        # The months, hours and minutes of an interval are a tinyint.
        return _UNITS.get(arguments[0].name.upper()) if infer(arguments[1], resolve) in _TIMES else None
    types = [infer(argument, resolve) for argument in arguments]
    if not types:
        return None
    if name in _STRINGS:
        return "string" if types[0] == "string" else None
    if name in _LIKE_FIRST:
        return types[0]
    if name in _LIKE_ALL:
        return widest(types)
    if name == "if" and len(types) == 3:
        return widest(types[1:])
    if name in ("sum", "avg", "mean"):
        return _sum(types[0]) if name == "sum" else _avg(types[0])
    return (types[0] if types[0] and _is_numeric(types[0]) else None) if name == "abs" else None


def _sum(type_: str | None) -> str | None:
    decimal = decimal_of(type_)
    if decimal is not None:
        return f"decimal({min(DECIMAL_DIGITS, decimal[0] + 10)},{decimal[1]})"
    if type_ in _INTEGRALS:
        return "bigint"
    return "double" if type_ in ("float", "double") else None


def _avg(type_: str | None) -> str | None:
    decimal = decimal_of(type_)
    if decimal is not None:
        return f"decimal({decimal[0] + 4},{decimal[1] + 4})" if decimal[0] + 4 <= DECIMAL_DIGITS else None
    return "double" if type_ in _INTEGRALS or type_ in ("float", "double") else None
