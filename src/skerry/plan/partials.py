"""How an aggregate is made of partial ones: what each site computes, and what makes the whole of it.

Spark itself works so between its partitions: a merge of buffers that equals Spark's gives an answer of Spark's.
What is not here (percentiles, most sketches, first and last, …) has no partial form that SQL can carry, or one whose
merge is not what one Spark says of all rows (docs/planning.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from sqlglot import exp

from skerry.model.fragment import MergeStep
from skerry.sql.dialect import render
from skerry.sql.functions import call_name
from skerry.sql.lexer import tokens_of
from skerry.sql.nodes import Arguments, SparkType
from skerry.sql.parse import parse_query
from skerry.sql.types import decimal_of
from skerry.sql.walk import bare, find_all

_DEPTH = 50

TypeOf = Callable[[exp.Expr], str | None]

_SUMS = frozenset(("sum",))
_COUNTS = frozenset(("count", "count_if"))
_LEAST = {"min": "min", "max": "max", "bool_and": "min", "every": "min", "bool_or": "max", "some": "max", "any": "max"}
_AVERAGES = frozenset(("avg", "mean"))
_BITS = frozenset(("bit_and", "bit_or", "bit_xor"))
_VARIANCES = {
    "var_pop": "var_pop",
    "var_samp": "var_samp",
    "variance": "var_samp",
    "stddev_pop": "stddev_pop",
    "stddev_samp": "stddev_samp",
    "stddev": "stddev_samp",
    "std": "stddev_samp",
}
# What merges a sketch, where that gives the very bytes of one pass over all rows.
_SKETCHES = {
    "bitmap_construct_agg": "bitmap_or_agg",
    "bitmap_or_agg": "bitmap_or_agg",
    "bitmap_and_agg": "bitmap_and_agg",
    # The k least hashes there are, and the next: the same whichever rows were seen together.
    "theta_sketch_agg": "theta_union_agg",
}
# At most; k is 4,096 unless said.
_SKETCH_BYTES = {"theta_sketch_agg": 8 * 4096}
_BITMAP_BYTES = 4096
# Their registers are maxima over hashes: a value that comes twice says nothing new.
_REGISTERS = frozenset(("approx_count_distinct",))
_LISTS = frozenset(("collect_list", "array_agg"))
_WHOLE = frozenset(("tinyint", "smallint", "int", "bigint"))
REALS = ("float", "double")
REAL = frozenset(REALS)
_ORDERED = frozenset("boolean string binary date timestamp timestamp_ntz".split()) | _WHOLE | REAL
# Values that equal each other are the same: of two zeros or NaNs a set keeps any.
_EXACT = frozenset("boolean string date timestamp timestamp_ntz".split()) | _WHOLE
# The moments of the parts, put together one after the other as Spark's buffers are.
_MOMENTS = """
SELECT aggregate(
  collect_list(named_struct('n', part_n, 'a', part_a, 'v', part_v)),
  named_struct('n', CAST(0 AS DOUBLE), 'a', CAST(0 AS DOUBLE), 'm', CAST(0 AS DOUBLE)),
  (s, x) -> CASE WHEN x.n = 0 THEN s ELSE named_struct(
    'n', s.n + x.n,
    'a', s.a + (x.a - s.a) * x.n / (s.n + x.n),
    'm', s.m + x.v * x.n + (x.a - s.a) * (x.a - s.a) * s.n * x.n / (s.n + x.n)) END,
  s -> {})
"""
_SPREADS = {
    "var_pop": "CASE WHEN s.n < 1 THEN NULL ELSE s.m / s.n END",
    "var_samp": "CASE WHEN s.n < 2 THEN NULL ELSE s.m / (s.n - 1) END",
    "stddev_pop": "CASE WHEN s.n < 1 THEN NULL ELSE sqrt(s.m / s.n) END",
    "stddev_samp": "CASE WHEN s.n < 2 THEN NULL ELSE sqrt(s.m / (s.n - 1)) END",
}
_MOMENT_KINDS = ("count", "centre", "spread")
# Exact averages of decimals in SQL: how many digits of a count leave room for the fraction at its full scale.
_COUNT_DIGITS = ((4, 15), (10, 12))


@dataclass(frozen=True)
class Call:
    """An aggregate call, taken apart."""

    name: str
    arguments: tuple[exp.Expr, ...]
    is_distinct: bool
    where: exp.Expr | None
    over: exp.Window | None = None

    def like(self, name: str, *arguments: exp.Expr) -> exp.Expr:
        """Another aggregate over the same rows."""
        made: exp.Expr = called(name, *(argument.copy() for argument in arguments))
        if self.where is not None:
            made = exp.Filter(this=made, expression=self.where.copy())
        if self.over is None:
            return made
        window = self.over.copy()
        window.set("this", made)
        return window


@dataclass(frozen=True)
class Kernel:
    """Merged in the member by the kernel `kind`, from its own column or, if there are any, from `hidden` ones."""

    kind: str
    hidden: tuple[exp.Expr, ...] = ()


@dataclass(frozen=True)
class Split:
    """Merged in Spark: `partials` with their types, and what `merged` makes of their columns.

    kinds: how a member merges each of them into another partial one (`exchange/kernels.py`); none: it cannot.
    """

    partials: tuple[tuple[exp.Expr, str], ...]
    merged: Callable[[Sequence[exp.Expr]], exp.Expr]
    kinds: tuple[str, ...] = ()

    def steps(self, places: Sequence[int]) -> tuple[MergeStep, ...] | None:
        """The same for partial ones at these places; None if some cannot be merged so."""
        if self.kinds == _MOMENT_KINDS:
            return (MergeStep(places[-1], "var_pop", tuple(places)),)
        if not self.kinds:
            return None
        return tuple(MergeStep(place, kind) for place, kind in zip(places, self.kinds, strict=True))


def sketch_bytes(node: exp.Expr) -> int:
    """The size of the sketches in each row that a query computes: their type does not tell how long they are."""
    names = (call_name(each) for each in node.find_all(exp.Anonymous))
    return sum(_SKETCH_BYTES.get(name, _BITMAP_BYTES) for name in names if name in _SKETCHES)


def called(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=list(arguments))


def call_of(node: exp.Expr) -> Call | None:
    """None for forms that no partial aggregate has (WITHIN GROUP, IGNORE NULLS, named arguments)."""
    where = node.expression if isinstance(node, exp.Filter) else None
    inner = node.this if isinstance(node, exp.Filter) else node
    name = call_name(inner)
    if name is None or not isinstance(inner, exp.Anonymous):
        return None
    arguments = list(inner.expressions)
    is_distinct = bool(arguments) and isinstance(arguments[0], exp.Distinct)
    if is_distinct or (arguments and isinstance(arguments[0], Arguments)):
        arguments = list(arguments[0].expressions)
    if any(isinstance(each, exp.IgnoreNulls | exp.RespectNulls | exp.Kwarg) for each in arguments):
        return None
    return Call(name, tuple(arguments), is_distinct, where)


def kernel_of(call: Call, type_of: TypeOf) -> Kernel | None:
    """The member's own way, for types that have a proven kernel."""
    if call.name in _COUNTS and not call.is_distinct:
        return Kernel("count")
    if not call.arguments:
        return None
    argument, type_ = call.arguments[0], type_of(call.arguments[0])
    is_number = _is_number(type_)
    if call.name in _LEAST and type_ in REAL:
        return Kernel(_LEAST[call.name], (extreme(call, argument),))
    if call.name in _LEAST and (type_ in _ORDERED or is_number):
        return Kernel(_LEAST[call.name])  # DISTINCT changes nothing
    if call.is_distinct or len(call.arguments) != 1 or not is_number:
        return None
    if call.name in _SUMS:
        return Kernel("sum")
    if call.name in _BITS and type_ in _WHOLE:
        return Kernel(call.name)
    if call.name in _AVERAGES:
        counted = call.like("count", argument)
        if decimal_of(type_) is not None:
            return Kernel("avg", (call.like("sum", _unfolded(argument)), counted))
        return Kernel("mean", (call.like("sum", _real(argument, type_)), counted))
    return Kernel(_VARIANCES[call.name], _moments(call, type_)) if call.name in _VARIANCES else None


def split_of(call: Call, type_of: TypeOf) -> Split | None:
    """Spark's way: SQL over the partial rows. Aggregates of distinct values are not split: see `distinct_of`."""
    if call.is_distinct and call.name not in _LEAST:
        return None
    if call.name in _COUNTS:
        own = call.like(call.name, *call.arguments)
        counted = lambda c: called("coalesce", called("sum", c[0]), exp.Literal.number(0))  # noqa: E731
        return Split(((own, "bigint"),), counted, ("count",))
    if call.name in _SKETCHES:
        own, size = call.like(call.name, *call.arguments), call.arguments[1:]
        return Split(((own, "binary"),), lambda c: called(_SKETCHES[call.name], c[0], *(each.copy() for each in size)))
    types = [type_of(argument) for argument in call.arguments]
    type_ = types[0] if types else None
    if type_ is None or type_ == "void" or None in types:
        return None
    own = call.like(call.name, *call.arguments)
    if call.name in _LEAST and len(types) == 1 and type_ in REAL:
        whole = Call(call.name, (), False, None)
        kinds = (_LEAST[call.name],)
        return Split(((extreme(call, call.arguments[0]), type_),), lambda c: extreme(whole, c[0]), kinds)
    if call.name in _LEAST and len(types) == 1:
        return Split(((own, type_),), lambda c: called(call.name, c[0]), (_LEAST[call.name],))
    if len(types) != 1:
        return None
    if call.name in _BITS and type_ in _WHOLE:
        return Split(((own, type_),), lambda c: called(call.name, c[0]), (call.name,))
    if call.name in _SUMS:
        summed = type_of(called("sum", call.arguments[0]))
        return Split(((own, summed),), lambda c: _sum(c[0], summed), ("sum",)) if summed is not None else None
    if call.name in _LISTS:
        return Split(((own, f"array<{type_}>"),), lambda c: called("flatten", called("collect_list", c[0])))
    if call.name == "collect_set" and (type_ in _EXACT or decimal_of(type_) is not None):
        return Split(((own, f"array<{type_}>"),), lambda c: _set(c[0]))
    if call.name in _VARIANCES and _is_number(type_):
        count, mean, variance = _moments(call, type_)
        partials = ((count, "bigint"), (mean, "double"), (variance, "double"))
        return Split(partials, lambda c: _spread(_VARIANCES[call.name], c), _MOMENT_KINDS)
    return _average(call, type_, type_of) if call.name in _AVERAGES else None


def distinct_of(call: Call, type_of: TypeOf) -> tuple[exp.Expr, ...] | None:
    """The arguments to group by as well, each value once, where the aggregate of all rows follows from these.

    What hashes values hashes those alike that are equal (zeros, NaNs) only in types that are listed here: two maps
    may be equal and have another order.
    """
    values = call.arguments
    if call.name in _REGISTERS:
        values, precision = values[:1], values[1:]
        types = [type_of(each) for each in values]
        is_known = all(type_ in _ORDERED or decimal_of(type_) is not None for type_ in types)
        if not (is_known or call.is_distinct) or any(not isinstance(each, exp.Literal) for each in precision):
            return None
    elif not call.is_distinct:
        return None
    has_columns = bool(values) and all(each.find(exp.Column) for each in values)
    if not has_columns or call.where is not None or any(_may_be_map(each, type_of) for each in values):
        return None
    return values


def _may_be_map(value: exp.Expr, type_of: TypeOf) -> bool:
    """Spark 4.2 groups maps whatever the order of their entries, and tells them apart in an aggregate's DISTINCT."""
    type_ = type_of(value)
    if type_ is not None:
        return "map<" in type_
    types = [type_of(column) for column in find_all(value, exp.Column)]
    return any(each is None or "map<" in each for each in types) or "map" in render(value).lower()


def cast(node: exp.Expr, type_: str) -> exp.Expr:
    """CAST(node AS type), for the plain types and decimals."""
    digits = decimal_of(type_)
    to = SparkType(this=type_.upper())
    if digits is not None:
        to = SparkType(this="DECIMAL", expressions=[exp.Literal.number(size) for size in digits])
    return exp.Cast(this=node.copy(), to=to)


def _is_number(type_: str | None) -> bool:
    return type_ in _WHOLE or type_ in REAL or decimal_of(type_) is not None


def extreme(call: Call, argument: exp.Expr, *, is_real: bool = True) -> exp.Expr:
    """The least or greatest of doubles, with what Sail takes for another value apart.

    NaN is the greatest to Spark, and to Sail the last one, or what comes behind it. Where every value is the infinity
    that loses to all others, Sail answers the largest number; the opposite aggregate finds it.
    `is_real`: surely of floats or doubles; of others it means what the plain call means, if their type is to be asked.
    """
    other, sign = ("min", "-") if call.name == "max" else ("max", "")
    is_nan: exp.Expr = called("isnan", argument.copy())
    is_last: exp.Expr = exp.EQ(this=argument.copy(), expression=cast(exp.Literal.string(f"{sign}Infinity"), "double"))
    if not is_real:
        # A double is compared with no text, and a text with no double. Sail writes infinity as inf.
        is_nan, is_last = _is_written(argument, "NaN"), _is_written(argument, f"{sign}Infinity", f"{sign}inf")
    usual = exp.Not(this=exp.Paren(this=exp.Or(this=is_nan.copy(), expression=is_last.copy())))
    nan, found, last = (
        call.like(name, exp.Case(ifs=[exp.If(this=when, true=argument.copy())]))
        for name, when in ((call.name, is_nan), (call.name, usual), (other, is_last))
    )
    return called("coalesce", *((nan, found, last) if call.name == "max" else (found, last, nan)))


def _is_written(argument: exp.Expr, *texts: str) -> exp.Expr:
    """Is it a float or double that is one of these as a text?"""
    types = exp.In(this=called("typeof", argument.copy()), expressions=[exp.Literal.string(each) for each in REALS])
    text = exp.In(this=cast(argument, "string"), expressions=[exp.Literal.string(each) for each in texts])
    return exp.And(this=types, expression=text)


def _moments(call: Call, type_: str | None) -> tuple[exp.Expr, exp.Expr, exp.Expr]:
    """Count, mean and population variance: Spark computes them of doubles."""
    argument = call.arguments[0]
    averaged = _as_double(argument) if decimal_of(type_) is not None else argument
    return call.like("count", argument), call.like("avg", averaged), call.like("var_pop", argument)


def _spread(kind: str, columns: Sequence[exp.Expr]) -> exp.Expr:
    (made,) = _parsed_moments(kind).copy().expressions
    found = dict(zip(("part_n", "part_a", "part_v"), columns, strict=True))
    for column in [each for each in made.find_all(exp.Column) if each.name in found]:
        column.replace(found[column.name].copy())
    assert isinstance(made, exp.Expr)
    return made


@cache
def _parsed_moments(kind: str) -> exp.Expr:
    text = _MOMENTS.format(_SPREADS[kind])
    return parse_query(tokens_of(text, _DEPTH), text)


def _set(column: exp.Expr) -> exp.Expr:
    return called("array_distinct", called("flatten", called("collect_list", column)))


def _sum(column: exp.Expr, type_: str) -> exp.Expr:
    """The sum of sums has more digits than the sum: it is brought back, or is the overflow that it would have been."""
    summed = called("sum", column)
    return cast(summed, type_) if decimal_of(type_) is not None else summed


def _average(call: Call, type_: str, type_of: TypeOf) -> Split | None:
    argument = call.arguments[0]
    counted = call.like("count", argument), "bigint"
    if type_ in _WHOLE or type_ in REAL:
        summed = call.like("sum", _real(argument, type_)), "double"
        return Split((summed, counted), lambda c: _mean(c[0], c[1]), ("sum", "count"))
    digits, result = decimal_of(type_), type_of(called("avg", argument))
    sum_type = type_of(called("sum", argument))
    if digits is None or result is None or sum_type is None:
        return None
    precision, scale = digits
    count_digits = next((count for most, count in _COUNT_DIGITS if scale <= most), None)
    if precision > 27 or count_digits is None:
        return None
    assert sum_type is not None
    whole: tuple[str, str, int, int] = (sum_type, result, scale, count_digits)
    partials = (call.like("sum", _unfolded(argument)), sum_type), counted
    return Split(partials, lambda c: _decimal_average(c[0], c[1], *whole), ("sum", "count"))


def _real(argument: exp.Expr, type_: str | None) -> exp.Expr:
    """Spark's average divides a sum of doubles, which is exact for whole numbers that are not very large."""
    return _as_double(argument) if type_ in _WHOLE else argument


def _unfolded(argument: exp.Expr) -> exp.Expr:
    """Beside another aggregate of `b + 0.5`, Sail makes `sum(b) + 0.5 * count(b)` of its sum, and fails at it."""
    node = bare(argument)
    if not isinstance(node, exp.Add | exp.Sub) or not find_all(node, exp.Literal):
        return argument
    return called("coalesce", argument.copy())


def _as_double(argument: exp.Expr) -> exp.Expr:
    """Not the cast alone: Sail names `sum(CAST(b AS DOUBLE))` as it names `sum(b)`, and refuses two columns of a name.

    Whole numbers and decimals have one zero, so adding it changes none of them.
    """
    return exp.Add(this=cast(argument, "double"), expression=exp.Literal.number(0))


def _mean(sums: exp.Expr, counts: exp.Expr) -> exp.Expr:
    return exp.Div(
        this=called("sum", sums), expression=called("nullif", called("sum", counts.copy()), exp.Literal.number(0))
    )


def _decimal_average(
    sums: exp.Expr, counts: exp.Expr, sum_type: str, result: str, scale: int, count_digits: int
) -> exp.Expr:
    """Exactly what Spark's avg gives: the quotient, rounded once.

    A plain division would round twice, first to the scale that `/` has. So the whole part and the fraction are
    divided apart: the first is exact, and the second has digits enough that its rounding cannot reach a tie.
    """
    total = cast(called("sum", sums), sum_type)
    count = cast(called("nullif", called("sum", counts), exp.Literal.number(0)), f"decimal({count_digits},0)")
    rest = exp.Mod(this=total, expression=count.copy())
    whole = exp.Div(this=exp.Paren(this=exp.Sub(this=total.copy(), expression=rest)), expression=count.copy())
    # Sail cuts a quotient off four digits behind those of what is divided.
    more = cast(rest, f"decimal({count_digits + scale + 6},{scale + 6})")
    fraction = exp.Div(this=more, expression=count.copy())
    parts = exp.Add(this=cast(whole, result), expression=cast(fraction, f"decimal({scale + 5},{scale + 4})"))
    return cast(parts, result)
