"""What the grammar knows of the tables: columns by kind, values that occur in them, keys that join them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from skerry.testing.topologies import Files

# Values of each column that the grammar compares with.
SAMPLED = 7

# Kinds: expressions are made of int, dec, dbl, str, date and ts; "other" is only copied, counted and grouped by.
SAFE_DECIMAL_DIGITS = 18
# Sums of these may be more than their type holds, or depend on the order of addition: they are copied, never added.
NOT_ADDED = frozenset({"nasty.i64", "nasty.f64", "nasty.f32", "nasty.id"})

KEYS: dict[str, tuple[str, ...]] = {
    "customer": ("c_custkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
    "nation": ("n_nationkey",),
    "orders": ("o_orderkey",),
    "part": ("p_partkey",),
    # At a small scale a part has some suppliers twice.
    "partsupp": ("ps_partkey", "ps_suppkey", "ps_availqty", "ps_supplycost"),
    "region": ("r_regionkey",),
    "supplier": ("s_suppkey",),
    "nasty": ("id",),
    "events": ("id",),
    "empty": ("id",),
}

# Pairs of columns that may be joined without making too many rows.
JOINS: tuple[tuple[str, str], ...] = (
    ("lineitem.l_orderkey", "orders.o_orderkey"),
    ("lineitem.l_partkey", "part.p_partkey"),
    ("lineitem.l_suppkey", "supplier.s_suppkey"),
    ("lineitem.l_partkey", "partsupp.ps_partkey"),
    ("orders.o_custkey", "customer.c_custkey"),
    ("customer.c_nationkey", "nation.n_nationkey"),
    ("supplier.s_nationkey", "nation.n_nationkey"),
    ("nation.n_regionkey", "region.r_regionkey"),
    ("partsupp.ps_partkey", "part.p_partkey"),
    ("partsupp.ps_suppkey", "supplier.s_suppkey"),
    ("nasty.id", "events.id"),
    ("nasty.id", "nation.n_nationkey"),
    ("nasty.i32", "nation.n_nationkey"),
    ("nasty.i32", "part.p_size"),
    ("nasty.größe", "part.p_partkey"),
    ("nasty.i16", "region.r_regionkey"),
    ("nasty.f64", "events.value"),
    ("nasty.s", "events.kind"),
    ("nasty.i64", "supplier.s_suppkey"),
    ("nasty.d", "orders.o_orderdate"),
    ("events.id", "orders.o_orderkey"),
    ("events.id", "customer.c_custkey"),
    ("empty.id", "nasty.id"),
    ("empty.id", "orders.o_orderkey"),
    ("empty.name", "nation.n_name"),
)


@dataclass(frozen=True)
class Column:
    """`values` are literals, as Spark reads them, in order. `is_added`: may be summed."""

    name: str
    kind: str
    values: tuple[str, ...]
    is_added: bool


@dataclass(frozen=True)
class Table:
    name: str
    rows: int
    columns: tuple[Column, ...]


def read_tables(files: Files) -> dict[str, Table]:
    """Values are drawn once, by a seed of their own, so that a query's seed gives the same text again."""
    return {name: _table(name, paths) for name, paths in sorted(files.slices.items())}


def _table(name: str, paths: tuple[str, ...]) -> Table:
    rows = pa.concat_tables(ds.dataset(path).to_table() for path in paths)
    random = Random(name)
    columns = []
    for field in rows.schema:
        kind = kind_of(field.type)
        if not kind:
            continue
        values: tuple[str, ...] = ()
        if kind not in ("other", "bool"):
            # Dates and times beyond Python's are none of the tables'.
            found = [value for value in rows[field.name].to_pylist() if value is not None]
            drawn = sorted(random.choice(found) for _ in range(SAMPLED)) if found else []
            values = tuple(dict.fromkeys(literal(value, kind) for value in drawn))
        is_added = kind in ("int", "dec", "dbl") and f"{name}.{field.name}" not in NOT_ADDED
        columns.append(Column(field.name, kind, values, is_added))
    return Table(name, rows.num_rows, tuple(columns))


def kind_of(type_: Any) -> str:
    """ "" for what cannot be ordered or compared (maps)."""
    if pa.types.is_map(type_):
        return ""
    if pa.types.is_boolean(type_):
        return "bool"
    if pa.types.is_integer(type_):
        return "int"
    if pa.types.is_decimal(type_):
        return "dec" if type_.precision <= SAFE_DECIMAL_DIGITS else "other"
    if pa.types.is_floating(type_):
        return "dbl"
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return "str"
    if pa.types.is_date(type_):
        return "date"
    if pa.types.is_timestamp(type_) and type_.tz:
        return "ts"
    return "other"


def literal(value: Any, kind: str) -> str:
    """As Spark reads it back."""
    if kind == "str":
        return quoted(value)
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            return f"double('{'NaN' if math.isnan(value) else 'Infinity' if value > 0 else '-Infinity'}')"
        return f"double('{value!r}')"
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S.%f}'" if value.year > 999 else "TIMESTAMP '0001-01-01 00:00:00'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    assert isinstance(value, int)
    return str(value) if abs(value) < 2**31 else f"bigint('{value}')"


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")
    return f"'{escaped}'"


def partners(column: str) -> list[str]:
    """Columns that `table.column` may be joined with."""
    return [b if a == column else a for a, b in JOINS if column in (a, b)]
