"""Made-up rows for the tables of the fixtures."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa

from metamorphic.in_duckdb import Tables
from skerry.model.table import Column
from skerry.tables.bucket import buckets_of
from tests.plans.plan_cases import CONFIG, OWN, STATS

_TEXTS = ("x", "NORWAY", "y", "")
_ARROW = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "decimal(15,2)": pa.decimal128(15, 2),
    "array<int>": pa.list_(pa.int32()),
    "struct<id:array<int>,city:string>": pa.struct([("id", pa.list_(pa.int32())), ("city", pa.string())]),
}


def made_up(random: Random) -> Tables:
    """Every table of the fixtures' cluster with a few rows, NULLs and keys that meet now and then."""
    found = {
        (name, table): pa.table(
            {
                column.name: _values(column, random, rows, STATS.get((name, table), {}).get(column.name))
                for column in each.columns
            }
        )
        for name, member in CONFIG.members.items()
        for table, each in member.tables.items()
        for rows in [random.choice((0, 3, 8, 20))]
    }
    return found | own_rows(random)


def own_rows(random: Random) -> dict[tuple[str, str], pa.Table]:
    """Of tables of our own, each row where its bucket is."""
    found: dict[tuple[str, str], pa.Table] = {}
    for name, each in OWN.items():
        rows, by = random.choice((0, 3, 8, 20)), each.table.distributed_by
        keys = [pa.array([random.randrange(8) for _ in range(rows)], _ARROW[each.table.columns[0].type])]
        others = [_values(Column(column.name, column.type), random, rows) for column in each.table.columns[1:]]
        whole = pa.table([*keys, *others], names=[column.name for column in each.table.columns])
        places = buckets_of(keys, each.table.buckets) if by else []
        for member in each.table.members:
            here = [group[:2] for group in each.buckets.groups if group[2] == member]
            mine = [any(first <= place < upto for first, upto in here) for place in places]
            found[member, name] = whole.filter(pa.array(mine, pa.bool_())) if by else whole
    return found


def _values(column: Column, random: Random, rows: int, known: tuple[Any, Any] | None = None) -> pa.Array:
    if column.type.startswith(("array", "struct")):
        some: list[Any] = [[1, 2], [], None, [2, None]]
        nested = [some[row % 4] for row in range(rows)]
        if column.type.startswith("struct"):
            nested = [{"id": each, "city": _TEXTS[row % 3]} for row, each in enumerate(nested)]
        return pa.array(nested, _ARROW[column.type])

    def one() -> Any:
        if known is not None and known[0] is None:
            return None
        if known is not None:
            if column.type == "string":
                return random.choice([text for text in _TEXTS if known[0] <= text <= known[1]])
            low, high = int(float(known[0])), int(float(known[1]))
            return random.randrange(low, high + 1, 100_000 if high - low > 1000 else 1)
        if random.random() < 0.15:
            return None
        if column.type == "string":
            return random.choice(_TEXTS)
        if column.type == "timestamp":
            return random.randrange(5)
        return random.randrange(12)

    values = [one() for _ in range(rows)]
    if column.type.startswith("decimal"):
        return pa.array(values, pa.int64()).cast(pa.decimal128(21, 2)).cast(_ARROW[column.type])
    return pa.array(values, pa.int32() if column.type == "date" else _ARROW[column.type]).cast(_ARROW[column.type])
