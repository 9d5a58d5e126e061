"""Which share of rows a condition keeps, going by what is known of the columns it speaks of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from sqlglot import exp

from skerry.plan.constant import constant, place
from skerry.sql.functions import call_name
from skerry.sql.nodes import DistinctFrom
from skerry.sql.push import split
from skerry.sql.walk import bare, find_all, nodes_of

# Without anything better a condition is taken to keep a third of the rows, a comparison of two columns half of them,
# an equality a tenth, a pattern less.
KEEPS = 1 / 3
COMPARED_KEEPS = 0.5
EQUAL_KEEPS = 0.1
# A condition on values that nobody has counted must not look sharper than one of so many.
GUESSED_VALUES = 100.0
PATTERN_KEEPS = 0.05
# A pattern fits more of a few words than of many texts; each further piece between % fits less of them.
FEW_WORDS = 1000
WORD_KEEPS = 0.15
NEXT_PIECE_KEEPS = 0.2
PREFIX_KEEPS = 0.02
# On an IN: about how many values its subquery gives.
VALUES = "values"
_DISCRETE = frozenset(("tinyint", "smallint", "int", "bigint", "date"))
_SWAPPED = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE, exp.EQ: exp.EQ, exp.NEQ: exp.NEQ}


class ColumnEstimate(msgspec.Struct, frozen=True):
    """A column of a relation. `low` and `high` are places on a line (constant.py), None when nobody knows.

    `ndv`: distinct values here; `domain`: those before conditions on *other* columns dropped rows, which is what
    a join's keys are compared by. `nulls`: their share of the rows. `is_guessed`: nobody has counted the values.
    """

    type: str
    width_bytes: float
    ndv: float
    domain: float
    low: float | None = None
    high: float | None = None
    nulls: float = 0.0
    is_guessed: bool = False


class _Range(msgspec.Struct):
    """What conjuncts ask of one column: from `low` to `high`, its ends included or not, or one of `points` values."""

    low: float | None = None
    high: float | None = None
    open_low: bool = False
    open_high: bool = False
    points: float | None = None
    is_nulls: bool = False

    def raise_low(self, value: float, is_open: bool) -> None:
        if self.low is None or value >= self.low:
            self.low, self.open_low = value, is_open

    def cut_high(self, value: float, is_open: bool) -> None:
        if self.high is None or value <= self.high:
            self.high, self.open_high = value, is_open


class Columns:
    """Finds the column that a tree names among those of a relation; keys are `name` or `alias.name`, lower case."""

    def __init__(self, columns: Mapping[str, ColumnEstimate]) -> None:
        self.by_key = columns
        self._bare: dict[str, str | None] = {}
        for key in columns:
            bare = key.rpartition(".")[2]
            self._bare[bare] = None if bare in self._bare else key

    def key(self, node: exp.Expr) -> str | None:
        """None for anything but a column of the relation, and for one that two relations have."""
        node = bare(node)
        if not isinstance(node, exp.Column):
            return None
        parts = [part.name.lower() for part in node.parts]
        if len(parts) >= 2 and ".".join(parts[-2:]) in self.by_key:
            return ".".join(parts[-2:])
        return self._bare.get(parts[-1]) or (parts[-1] if parts[-1] in self.by_key else None)


def conjuncts(conditions: Iterable[exp.Expr]) -> list[exp.Expr]:
    return [each for condition in conditions for each in split(condition)]


def keeps(conditions: Iterable[exp.Expr], columns: Columns) -> tuple[float, dict[str, ColumnEstimate]]:
    """The share of rows that pass all conditions, and the columns they speak of as they are then."""
    share = 1.0
    ranges: dict[str, _Range] = {}
    for condition in conjuncts(conditions):
        if not _narrowed(condition, columns, ranges):
            share *= _share(condition, columns)
    changed = {}
    for key, asked in ranges.items():
        column = columns.by_key[key]
        kept = _range_share(asked, column)
        share *= kept
        changed[key] = _after(asked, column, kept)
    return min(1.0, max(0.0, share)), changed


def _narrowed(node: exp.Expr, columns: Columns, ranges: dict[str, _Range]) -> bool:
    """Ranges of one column are taken together: two halves of a year are not a quarter of a quarter."""
    node = bare(node)
    if isinstance(node, exp.Between):
        key = columns.key(node.this)
        ends = [_place(node.args[end], columns, key) for end in ("low", "high")]
        if key is None or ends[0] is None or ends[1] is None:
            return False
        asked = ranges.setdefault(key, _Range())
        asked.raise_low(ends[0], False)
        asked.cut_high(ends[1], False)
        return True
    if isinstance(node, exp.Is) and isinstance(node.args["expression"], exp.Null):
        key = columns.key(node.this)
        if key is not None:
            ranges.setdefault(key, _Range()).is_nulls = True
        return key is not None
    if isinstance(node, exp.In) and VALUES in node.meta and columns.key(node.this) is not None:
        _points(ranges.setdefault(columns.key(node.this) or "", _Range()), float(node.meta[VALUES]))
        return True
    if isinstance(node, exp.In) and not node.args.get("query") and node.expressions:
        key = columns.key(node.this)
        if key is None or any(constant(each) is None for each in node.expressions):
            return False
        _points(ranges.setdefault(key, _Range()), float(len(node.expressions)))
        return True
    return _compared(node, columns, ranges)


def _compared(node: exp.Expr, columns: Columns, ranges: dict[str, _Range]) -> bool:
    kind: type[exp.Expr] = exp.EQ if isinstance(node, exp.NullSafeEQ) else type(node)
    if kind not in _SWAPPED or kind is exp.NEQ:
        return False
    this, other = node.this, node.args["expression"]
    key = columns.key(this)
    if key is None:
        this, other, kind, key = other, this, _SWAPPED[kind], columns.key(other)
    if key is None or columns.key(other) is not None:
        return False
    if kind is exp.EQ:
        # One value, whichever: a parameter's is not looked at, or each value would have a plan of its own.
        if any(isinstance(part, exp.Column | exp.Query) for part in nodes_of(other)):
            return False
        asked = ranges.setdefault(key, _Range())
        _points(asked, 1.0)
        at = _place(other, columns, key)
        if at is not None:
            asked.raise_low(at, False)
            asked.cut_high(at, False)
        return True
    at = _place(other, columns, key)
    if at is None:
        return False
    asked = ranges.setdefault(key, _Range())
    if kind in (exp.GT, exp.GTE):
        asked.raise_low(at, kind is exp.GT)
    else:
        asked.cut_high(at, kind is exp.LT)
    return True


def _points(asked: _Range, count: float) -> None:
    asked.points = count if asked.points is None else min(count, asked.points)


def _place(node: exp.Expr, columns: Columns, key: str | None) -> float | None:
    if key is None:
        return None
    value = constant(node)
    return None if value is None else place(value, columns.by_key[key].type)


def _range_share(asked: _Range, column: ColumnEstimate) -> float:
    if asked.is_nulls:
        return column.nulls
    known = 1.0 - column.nulls
    inside = _inside(asked, column)
    if asked.points is not None:
        ndv = max(1.0, min(column.ndv, GUESSED_VALUES) if column.is_guessed else column.ndv)
        # A value outside the known range is not there at all, if the range is still true; one row may have come.
        return known * min(1.0, asked.points / ndv) if inside != 0.0 else 0.5 / ndv
    return known * (KEEPS if inside is None else inside)


def _inside(asked: _Range, column: ColumnEstimate) -> float | None:
    """Which part of the column's values is inside the range; None when nobody knows the ends."""
    if column.low is None or column.high is None or (column.low >= column.high and column.ndv > 1):
        return None
    # Values are taken to lie at equal distances: a range with both of its ends has one more of them.
    span = column.high - column.low
    step = 1.0 if column.type in _DISCRETE else span / (column.ndv - 1) if column.ndv > 1 else 0.0
    low = column.low if asked.low is None else max(column.low, asked.low + step * asked.open_low)
    high = column.high if asked.high is None else min(column.high, asked.high - step * asked.open_high)
    if high < low:
        return 0.0
    width = span + step
    return 1.0 if width <= 0 else min(1.0, max((high - low + step) / width, 1 / max(1.0, column.ndv)))


def _after(asked: _Range, column: ColumnEstimate, kept: float) -> ColumnEstimate:
    """The column itself once its own condition holds: fewer values, in a shorter range, none of them NULL."""
    if asked.is_nulls:
        return msgspec.structs.replace(column, ndv=1.0, domain=1.0, nulls=1.0)
    share = min(1.0, kept / max(1e-9, 1.0 - column.nulls))
    ndv = max(1.0, column.ndv * share if asked.points is None else min(asked.points, column.ndv))
    low, high = column.low, column.high
    if low is not None and high is not None:
        low = low if asked.low is None else max(low, asked.low)
        high = high if asked.high is None else min(high, asked.high)
    return msgspec.structs.replace(
        column, ndv=ndv, domain=max(1.0, min(column.domain, column.domain * share)), low=low, high=high, nulls=0.0
    )


def _share(node: exp.Expr, columns: Columns) -> float:
    """A condition that is no range of one column."""
    node = bare(node)
    match node:
        case exp.And():
            return keeps([node], columns)[0]
        case exp.Or():
            share = 0.0
            for each in node.flatten():  # hundreds, from a program
                other = keeps([each], columns)[0]
                share += other - share * other
            return share
        case exp.Not():
            return _negated(node.this, columns)
        case exp.Boolean():
            return 1.0 if node.this else 0.0
        case exp.EQ() | exp.NullSafeEQ():
            return _equal(node, columns)
        case exp.NEQ() | DistinctFrom():
            return 1.0 - _equal(node, columns)
        case exp.Like() | exp.ILike():
            return _pattern(node, columns)
        case exp.Exists():
            return 0.5
        case exp.In():
            return min(0.5, EQUAL_KEEPS * max(1, len(node.expressions))) if not node.args.get("query") else 0.5
        case exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            sides = [columns.key(side) for side in (node.this, node.args["expression"])]
            return COMPARED_KEEPS if None not in sides else KEEPS
        case exp.RegexpLike():
            return PATTERN_KEEPS
    if call_name(node) in ("startswith", "endswith", "contains", "rlike", "regexp", "like"):
        return PATTERN_KEEPS
    return KEEPS


def _negated(node: exp.Expr, columns: Columns) -> float:
    node = bare(node)
    if isinstance(node, exp.Is) and isinstance(node.args["expression"], exp.Null):
        key = columns.key(node.this)
        return 1.0 - columns.by_key[key].nulls if key is not None else 0.9
    return 1.0 - keeps([node], columns)[0]


def _equal(node: exp.Expr, columns: Columns) -> float:
    """Two expressions are equal as often as the one with more values has each of them."""
    counts = [distinct(side, columns) for side in (node.this, node.args["expression"])]
    known = [count for count in counts if count is not None]
    return 1.0 / max(1.0, *known) if known else EQUAL_KEEPS


def _pattern(node: exp.Expr, columns: Columns) -> float:
    pattern = constant(node.args["expression"])
    if not isinstance(pattern, str):
        return PATTERN_KEEPS
    head = pattern.split("%")[0].split("_")[0]
    if head == pattern:
        return _equal(node, columns)
    key = columns.key(node.this)
    ndv = columns.by_key[key].ndv if key is not None else float("inf")
    if head:
        return max(PREFIX_KEEPS, 1.0 / max(1.0, ndv))
    pieces = len([piece for piece in pattern.split("%") if piece])
    if not pieces:
        return 1.0
    return (WORD_KEEPS if ndv <= FEW_WORDS else PATTERN_KEEPS) * float(NEXT_PIECE_KEEPS ** (pieces - 1))


def distinct(node: exp.Expr, columns: Columns) -> float | None:
    """How many values an expression has; None for one without columns."""
    key = columns.key(node)
    if key is not None:
        return columns.by_key[key].ndv
    inner = [key for each in find_all(node, exp.Column) if (key := columns.key(each)) is not None]
    if not inner:
        return None
    count = 1.0
    for each in dict.fromkeys(inner):
        count *= max(1.0, columns.by_key[each].ndv)
    part = _time_part(node)
    if part is not None:
        column = columns.by_key[inner[0]]
        day = 1.0 if column.type == "date" else 86400e6
        if column.low is not None and column.high is not None and part == "year":
            return min(count, (column.high - column.low) / day / 365.25 + 1)
        return min(count, {"month": 12.0, "quarter": 4.0, "day": 31.0}.get(part, count))
    if isinstance(node, exp.Mod) and isinstance(node.expression, exp.Literal) and node.expression.is_int:
        return min(count, max(1.0, float(node.expression.this)))
    return 2.0 if isinstance(node, exp.Predicate | exp.Not) else count


def _time_part(node: exp.Expr) -> str | None:
    name = call_name(node)
    if name in ("year", "month", "quarter", "day", "dayofmonth"):
        return "day" if name == "dayofmonth" else name
    if name in ("extract", "date_part", "datepart") and node.expressions:
        return str(node.expressions[0].name).lower()
    return None
