"""How large relations are likely to be: rows, bytes and distinct values, from what is known of the tables."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec
from sqlglot import exp

from skerry.model.columns import FIXED_BYTES
from skerry.model.table import Column, ColumnStats, TablePart
from skerry.plan.constant import bound_place
from skerry.plan.observed import Observed
from skerry.plan.selectivity import ColumnEstimate, Columns, distinct, keeps
from skerry.sql.walk import find_all

_FIXED = {**FIXED_BYTES, "void": 1}
_DECIMAL = 16
_STRING = 24
_NESTED = 48
# Without statistics a column is taken to have a value for each ten rows.
_DISTINCT_SHARE = 0.1
# Who asks for an outer join has rows without a match: of each hundred so many at least.
_UNMATCHED = 0.05
_WHOLE = frozenset(("tinyint", "smallint", "int", "bigint", "date"))


def width_bytes(column_type: str) -> int:
    """Arrow bytes a value of this type takes, roughly."""
    if column_type in _FIXED:
        return _FIXED[column_type]
    if column_type.startswith("decimal"):
        return _DECIMAL
    if column_type.startswith(("array", "map", "struct")):
        return _NESTED
    return _STRING


def row_bytes(columns: Iterable[Column]) -> int:
    return sum(width_bytes(column.type) for column in columns)


def most_row_bytes(columns: Iterable[Column]) -> float:
    """Infinite if a value of one of them may have any length."""
    types = [column.type for column in columns]
    return sum(map(width_bytes, types)) if all(map(_is_fixed, types)) else math.inf


def _is_fixed(column_type: str) -> bool:
    return column_type in _FIXED or column_type.startswith("decimal")


def held_row_bytes(part: TablePart) -> float:
    """Bytes of a row as its files hold it, on average; infinite for a part that nobody has counted, or that grows."""
    return math.inf if part.rows is None or part.own else part.size_bytes / max(1, part.rows)


class Estimate(msgspec.Struct, frozen=True):
    """A relation as it is likely to be. Columns are named `name` or `alias.name`, in lower case.

    `base_rows`: rows before conditions dropped some; `extra_bytes`: of columns that have no entry of their own.
    """

    rows: float
    columns: dict[str, ColumnEstimate]
    base_rows: float
    extra_bytes: float = 0.0

    @property
    def row_bytes(self) -> float:
        """The size of one row in Arrow."""
        return sum(column.width_bytes for column in self.columns.values()) + self.extra_bytes

    @property
    def size_bytes(self) -> float:
        return self.rows * self.row_bytes

    @property
    def ndv(self) -> dict[str, float]:
        """Distinct values of each column."""
        return {name: column.ndv for name, column in self.columns.items()}

    def distinct(self, expression: exp.Expr) -> float:
        """Distinct values of an expression over the columns; one for a constant."""
        return min(self.rows, distinct(expression, Columns(self.columns)) or 1.0)

    def key(self, column: exp.Expr) -> str | None:
        """What the column that `column` names is called here; None when it is not one of these."""
        return Columns(self.columns).key(column)


class Estimator:
    """Rows, bytes and distinct values of relations, from the statistics that parts carry.

    Deterministic, and blind to the values of parameters: one statement has one plan. `observed` knows what the same
    scans gave before.
    """

    def __init__(self, observed: Observed | None = None) -> None:
        self.observed = observed

    def scan(
        self,
        parts: Sequence[TablePart],
        filters: Sequence[exp.Expr] = (),
        columns: Iterable[str] | None = None,
        alias: str = "",
    ) -> Estimate:
        """The rows of these parts that pass the filters; only `columns` of them, if said."""
        prefix = f"{alias.lower()}." if alias else ""
        rows = float(sum(part_rows(part) for part in parts))
        named = {column.name.lower() for each in filters for column in find_all(each, exp.Column)}
        kept = None if columns is None else [name.lower() for name in columns]
        asked = merged_columns(parts, None if kept is None else named.union(kept))
        found = {prefix + name: column for name, column in asked.items()}
        every = Estimate(rows, found, rows)
        whole = self.filter(every, filters)
        if self.observed and filters:
            shares = [part_rows(part) / max(1.0, rows) for part in parts]
            seen = self.observed.rows(self.observed.scan_keys(parts, filters), shares, whole.rows)
            whole = self.resize(whole, seen, every, {prefix + name for name in named})
        return whole if kept is None else self.keep(whole, [prefix + name for name in kept])

    def filter(self, relation: Estimate, conditions: Sequence[exp.Expr]) -> Estimate:
        """What passes all of the conditions."""
        if not conditions:
            return relation
        share, changed = keeps(conditions, Columns(relation.columns))
        rows = relation.rows * share
        columns = {
            name: changed[name] if name in changed else _thinned(column, relation.rows, rows)
            for name, column in relation.columns.items()
        }
        columns = {
            name: msgspec.structs.replace(each, ndv=max(1.0, min(each.ndv, rows))) for name, each in columns.items()
        }
        return Estimate(rows, columns, relation.base_rows, relation.extra_bytes)

    def keep(self, relation: Estimate, columns: Iterable[str], extra_bytes: float = 0.0) -> Estimate:
        """A projection: these columns, and `extra_bytes` a row for computed ones."""
        wanted = {name: relation.columns[name] for name in columns if name in relation.columns}
        return Estimate(relation.rows, wanted, relation.base_rows, extra_bytes)

    def join(self, left: Estimate, right: Estimate, keys: Sequence[tuple[str, str]], kind: str = "inner") -> Estimate:
        """`keys` are pairs (left column, right column) that must be equal; kind: inner, left, right, full or cross."""
        rows = left.rows * right.rows
        if keys:
            rows /= _key_values(left, right, keys)
            for side, names in ((left, [a for a, _ in keys]), (right, [b for _, b in keys])):
                rows *= math.prod(1 - side.columns[name].nulls for name in names if name in side.columns)
        if kind in ("left", "full"):
            rows = max(rows, left.rows)
        if kind in ("right", "full"):
            rows = max(rows, right.rows)
        columns = {
            name: msgspec.structs.replace(column, ndv=max(1.0, min(column.ndv, rows)))
            for name, column in (left.columns | right.columns).items()
        }
        if kind in ("left", "full"):
            columns |= self._supplied(right, columns, left.rows - self.semi(left, right, keys).rows, rows)
        if kind in ("right", "full"):
            backward = [(b, a) for a, b in keys]
            columns |= self._supplied(left, columns, right.rows - self.semi(right, left, backward).rows, rows)
        if kind == "inner":
            for a, b in keys:
                if a in columns and b in columns:
                    ndv = min(columns[a].ndv, columns[b].ndv)
                    columns |= {each: msgspec.structs.replace(columns[each], ndv=ndv, nulls=0.0) for each in (a, b)}
        base = max(left.base_rows, right.base_rows, rows)
        return Estimate(rows, columns, base, left.extra_bytes + right.extra_bytes)

    def _supplied(
        self, side: Estimate, columns: Mapping[str, ColumnEstimate], unmatched: float, rows: float
    ) -> dict[str, ColumnEstimate]:
        """The columns of an outer join's other side: NULL in rows that have no match, of which there are some."""
        share = min(1.0, max(_UNMATCHED, unmatched / max(1.0, rows)))
        nulls = {name: columns[name].nulls * (1.0 - share) + share for name in side.columns}
        return {name: msgspec.structs.replace(columns[name], nulls=each) for name, each in nulls.items()}

    def semi(self, left: Estimate, right: Estimate, keys: Sequence[tuple[str, str]], is_anti: bool = False) -> Estimate:
        """The rows of `left` whose key is among the right side's (or is not)."""
        there = min(right.rows, math.prod(right.columns[b].ndv if b in right.columns else 1.0 for _, b in keys))
        share = min(1.0, there / _key_values(left, right, keys)) if keys else float(right.rows > 0)
        rows = left.rows * (1 - share if is_anti else share)
        columns = {name: _thinned(column, left.rows, rows) for name, column in left.columns.items()}
        for a, b in keys if not is_anti else ():
            if a in columns and b in right.columns:
                ndv = max(1.0, min(columns[a].ndv, right.columns[b].ndv))
                columns[a] = msgspec.structs.replace(columns[a], ndv=ndv, nulls=0.0)
        return Estimate(rows, columns, left.base_rows, left.extra_bytes)

    def group(self, relation: Estimate, keys: Sequence[str | exp.Expr], extra_bytes: float = 0.0) -> Estimate:
        """One row for each combination of the keys (one for none); `extra_bytes` is what the aggregates take."""
        known = Columns(relation.columns)
        counts = [
            relation.columns[key].ndv if isinstance(key, str) else (distinct(key, known) or 1.0)
            for key in keys
            if not isinstance(key, str) or key in relation.columns
        ]
        rows = max(1.0, min(relation.rows, math.prod(counts))) if keys else 1.0
        names = [key if isinstance(key, str) else known.key(key) for key in keys]
        columns = {name: relation.columns[name] for name in names if name is not None and name in relation.columns}
        computed = sum(width_bytes("") for name in names if name is None)
        return Estimate(rows, columns, rows, extra_bytes + computed)

    def union(self, relations: Sequence[Estimate]) -> Estimate:
        """All rows of all of them; columns are the first one's."""
        rows = sum(each.rows for each in relations)
        first = relations[0]
        return Estimate(rows, first.columns, sum(each.base_rows for each in relations), first.extra_bytes)

    def resize(self, relation: Estimate, rows: float, whole: Estimate, kept: Collection[str] = ()) -> Estimate:
        """As many rows as were seen of `whole`; what conditions say of the columns `kept` still holds."""
        if rows <= relation.rows:
            return relation if rows == relation.rows else _with_rows(relation, rows)
        columns = {}
        for name, column in relation.columns.items():
            ndv = column.ndv
            if name not in kept and name in whole.columns:
                ndv = max(ndv, _thinned(whole.columns[name], whole.rows, rows).ndv)
            columns[name] = msgspec.structs.replace(column, ndv=max(1.0, min(ndv, rows)))
        return Estimate(rows, columns, max(relation.base_rows, rows), relation.extra_bytes)

    def as_seen(self, relation: Estimate, key: str) -> Estimate:
        """As many rows as were seen under this name, if any were."""
        if not self.observed or not key:
            return relation
        return self.resize(relation, self.observed.rows([key], [1.0], relation.rows), relation)

    def limit(self, relation: Estimate, rows: float) -> Estimate:
        return _with_rows(relation, min(relation.rows, rows))


def _with_rows(relation: Estimate, rows: float) -> Estimate:
    columns = {
        name: msgspec.structs.replace(column, ndv=max(1.0, min(column.ndv, rows)))
        for name, column in relation.columns.items()
    }
    return Estimate(rows, columns, relation.base_rows, relation.extra_bytes)


def part_rows(part: TablePart) -> int:
    """Rows of a part; one that nobody has counted is guessed from its bytes."""
    return part.rows if part.rows is not None else part.size_bytes // max(1, row_bytes(part.columns) // 2)


def merged_columns(parts: Sequence[TablePart], wanted: Collection[str] | None = None) -> dict[str, ColumnEstimate]:
    """The columns of all parts together, by lower-case name; only those that are `wanted`, if said."""
    found: dict[str, ColumnEstimate] = {}
    held = 0.0
    for part in parts:
        known = {each.name.lower(): each for each in part.stats.columns} if part.stats is not None else {}
        rows = float(part_rows(part))
        for column in part.columns:
            name = column.name.lower()
            if wanted is not None and name not in wanted:
                continue
            own = _column(column, known.get(name), rows)
            found[name] = _both(found[name], held, own, rows) if name in found else own
        held += rows
    return found


def _column(column: Column, stats: ColumnStats | None, rows: float) -> ColumnEstimate:
    if stats is None:
        stats = ColumnStats(column.name)
    low, high = bound_place(stats.low, column.type), bound_place(stats.high, column.type)
    nulls = min(1.0, (stats.nulls or 0) / rows) if rows else 0.0
    ndv = max(1.0, min(stats.ndv if stats.ndv is not None else guessed_ndv(column.type, low, high, rows), rows))
    width = stats.width_bytes if stats.width_bytes is not None else float(width_bytes(column.type))
    return ColumnEstimate(column.type, width, ndv, ndv, low, high, nulls, stats.ndv is None and low is None)


def guessed_ndv(column_type: str, low: float | None, high: float | None, rows: float) -> float:
    """Without a count: as many as fit between the least and the greatest, or one value for ten rows."""
    if column_type == "boolean":
        return 2.0
    if column_type in _WHOLE and low is not None and high is not None:
        return min(rows, high - low + 1)
    return max(1.0, rows * _DISTINCT_SHARE)


def _both(one: ColumnEstimate, one_rows: float, other: ColumnEstimate, other_rows: float) -> ColumnEstimate:
    """One column in two parts. Where their ranges do not meet, or both are keys, their values add up."""
    rows = max(1.0, one_rows + other_rows)
    ranges = (one.low, one.high, other.low, other.high)
    a, b, c, d = ranges
    known = a is not None and b is not None and c is not None and d is not None
    apart = known and (b < c or d < a)  # type: ignore[operator]
    keys = one.ndv > 0.9 * one_rows and other.ndv > 0.9 * other_rows
    ndv = one.ndv + other.ndv if apart or keys else max(one.ndv, other.ndv)
    return ColumnEstimate(
        one.type,
        (one.width_bytes * one_rows + other.width_bytes * other_rows) / rows,
        ndv,
        ndv,
        min(a, c) if known else None,  # type: ignore[type-var]
        max(b, d) if known else None,  # type: ignore[type-var]
        (one.nulls * one_rows + other.nulls * other_rows) / rows,
        one.is_guessed or other.is_guessed,
    )


def _thinned(column: ColumnEstimate, rows_before: float, rows: float) -> ColumnEstimate:
    """Rows were dropped whatever this column's value: a value is gone when all of its rows are."""
    if rows >= rows_before or rows_before <= 0:
        return column
    each = max(1.0, rows_before / max(1.0, column.ndv))
    left = column.ndv * (1.0 - (1.0 - rows / rows_before) ** each)
    return msgspec.structs.replace(column, ndv=max(1.0, left))


def _key_values(left: Estimate, right: Estimate, keys: Sequence[tuple[str, str]]) -> float:
    """How many values the keys range over: the larger side's, as the smaller's are among them.

    Several columns together have no more values than a table has rows; where that bounds them, the lesser side is
    the one that the other refers to. Not so where one of the columns is a key by itself: the others are conditions.
    """
    sides = []
    for side, names in ((left, [a for a, _ in keys]), (right, [b for _, b in keys])):
        domains = [side.columns[name].domain if name in side.columns else 1.0 for name in names]
        values, bound = math.prod(domains), max(1.0, side.base_rows)
        is_bounded = values > bound and len(names) > 1 and max(domains) < 0.9 * bound
        sides.append((min(values, bound) if is_bounded else values, is_bounded))
    (a, a_bounded), (b, b_bounded) = sides
    return max(1.0, min(a, b) if a_bounded or b_bounded else max(a, b))
