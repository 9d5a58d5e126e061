"""Large work on tables of our own under fire: loads, tables made from a query, moves; and how each is judged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa

from chaos.histories import Outcome
from skerry.client.dbapi import Cursor
from skerry.model.ids import QueryId

LOADED = "CREATE TABLE loads (l STRING, n BIGINT) PRIMARY KEY (l, n) DISTRIBUTED BY (l, n)"
LOAD_ROWS = 4200  # more than go with the commit
# Points of loads and moves; with engines those of tables that queries make, too. Members reach them seldom.
POINTS = ("staged.file", "staged.laid", "move.sent", "move.parted", "move.decided")
MADE_POINTS = ("table.made", "table.made")


class Made(NamedTuple):
    """`is_dropped`: somebody has tried to."""

    name: str
    outcome: Outcome
    is_dropped: bool


def load(cursor: Cursor, label: str, query_id: QueryId | None = None) -> None:
    numbers = pa.array(range(LOAD_ROWS), pa.int64())
    rows = pa.table({"l": pa.repeat(pa.scalar(label), LOAD_ROWS), "n": numbers})
    cursor.load("loads", rows, query_id=query_id)


def create_as(cursor: Cursor, name: str, query_id: QueryId | None = None) -> None:
    sql = f"CREATE TABLE {name} PRIMARY KEY (id) DISTRIBUTED BY (id) AS SELECT id, v FROM bank"
    cursor.execute(sql, query_id=query_id)


def check_loads(loads: Iterable[tuple[str, Outcome]], found: Iterable[tuple[str, object]]) -> list[str]:
    """Each load is there whole, or not at all, as its client was told."""
    counts: dict[str, int] = {}
    for label, count in found:
        counts[label] = counts.get(label, 0) + int(str(count))
    wrong = [f"{label}: {count} of {LOAD_ROWS} rows are there" for label, count in counts.items() if count != LOAD_ROWS]
    for label, outcome in loads:
        if outcome is Outcome.DONE and label not in counts:
            wrong.append(f"{label} was acknowledged, and is not there")
        if outcome is Outcome.REFUSED and label in counts:
            wrong.append(f"{label} was refused, and is there")
    return wrong


def check_made(made: Iterable[Made], names: set[str]) -> list[str]:
    """A table is there if its statement was acknowledged, and not if that was refused."""
    wrong = []
    for each in made:
        if each.outcome is Outcome.DONE and not each.is_dropped and each.name not in names:
            wrong.append(f"table {each.name} was made, and is not there")
        if each.outcome is Outcome.REFUSED and each.name in names:
            wrong.append(f"table {each.name} was refused, and is there")
    return wrong
