"""Three members that share a cluster's Spark, and what tests of faults look at there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from skerry.exchange.intake import Intake
from skerry.testing.cluster import LocalCluster
from skerry.testing.oracle import make_tpch
from skerry.testing.sites import TPCH_SITES
from tests.integration.member.member_sites import SITES, TICKS, make_sites, wait_until

Placed = Mapping[str, Mapping[str, Path]]
Executors = Callable[[], list[psutil.Process]]
Asking = Callable[[LocalCluster, str], "Future[pa.Table]"]

# Each row takes a while, and the first ones come long before the last.
SLOW = "SELECT id, note, sha2(repeat(note, 400), 512) AS digest FROM ticks"


def make_tables(folder: Path) -> Placed:
    """`ticks` and `few` at every site, and TPC-H's."""
    tables = make_sites(folder)
    for name, path in make_tpch(folder / "tpch", 0.01).items():
        tables[TPCH_SITES[name]][name] = path
    return tables


def ask(members: LocalCluster, sql: str, at: str = "oslo") -> pa.Table:
    with members.connect(at) as connection, connection.cursor() as cursor:
        return cursor.execute(sql).fetch_arrow_table()


def intakes(members: LocalCluster) -> list[Intake]:
    """The books of all sinks that run."""

    async def look() -> list[Intake]:
        known = [each for member in members.members.values() for each in member.taskport._queries.values()]
        return [sink.intake for each in known for sink in each.sinks.values()]

    return members.call(look())


def arriving(members: LocalCluster) -> list[int]:
    """Rows that each open attempt has handed over so far."""
    books = [book for intake in intakes(members) for book in list(intake._books.values())]
    return [book.rows for book in books if book.phase.value == "open"]


def wait_for_rows(members: LocalCluster) -> None:
    """An attempt has begun to hand over, and has not handed over all."""
    wait_until(lambda: any(0 < rows < TICKS for rows in arriving(members)), "rows of an attempt")


def is_whole(found: pa.Table, placed: Placed) -> None:
    """Each row once, and none is another's."""
    wanted = pa.concat_tables(pq.read_table(placed[site]["ticks"], columns=["id", "note"]) for site in SITES)
    assert found.num_rows == wanted.num_rows
    found = found.sort_by("id")
    assert found.select(["id", "note"]).equals(wanted.sort_by("id").cast(found.select(["id", "note"]).schema))
    for row in found.take(pa.array(range(0, found.num_rows, 997))).to_pylist():
        assert row["digest"] == hashlib.sha512(row["note"].encode() * 400).hexdigest()
