"""Tables for tests of faults, and the check that a cluster holds nothing of a query that is over."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from skerry.model.errors import SiteError
from skerry.model.names import TableRef
from skerry.model.table import PartStats
from skerry.testing.cluster import LocalCluster

SITES = ("oslo", "bergen", "tromso")
TICKS = 20_000  # rows of `ticks` at each site
FEW = 100  # rows of `few` at each site
# Nothing of this takes long, but the machine may be busy.
DEADLINE_S = 60.0
# For what a query leaves behind: well below the time of `slow_query`, so that one that nobody ended is still there.
LEFT_S = 30.0
# For members whose tests are not about silence. On a busy machine a thread may get no turn for some seconds: that must
# neither drop a client that answers its heartbeats only when it reads, nor end a login or a question to a site.
PATIENT: Mapping[str, float] = {"heartbeats_missed": 30, "login_s": 30.0}


def make_sites(folder: Path) -> dict[str, dict[str, Path]]:
    """`ticks` and `few`, each with a part at every site; returns site → table → folder."""
    placed: dict[str, dict[str, Path]] = {}
    for number, site in enumerate(SITES):
        first = number * TICKS
        ids = range(first, first + TICKS)
        ticks = pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "kind": pa.array([each % 7 for each in ids], pa.int32()),
                "note": [f"{site} {each * 7919 % 1_000_003:>07} {'x' * (each % 50)}" for each in ids],
            }
        )
        few = pa.table({"id": pa.array(range(FEW), pa.int64()), "name": [f"{site} {each}" for each in range(FEW)]})
        placed[site] = {}
        for name, table in (("ticks", ticks), ("few", few)):
            path = folder / site / name
            path.mkdir(parents=True)
            # Spark looks for a cancel between batches of rows, and a batch ends with its row group.
            pq.write_table(table, path / "part.parquet", row_group_size=100)
            placed[site][name] = path
    return placed


def slow_query(site: str) -> str:
    """Minutes of work in that site's Spark, which ends soon after a cancel.

    Many rows come from a leaf, and each costs little: Sail looks there alone whether anybody still wants them, once in
    128 batches. A join of small tables that gives many rows goes on to its end, on every core, beside all other tests.
    """
    return f"SELECT max(a.name) AS digest FROM {site}.few a JOIN range(0, 40000000000, 1, 1) r ON a.id = r.id % 100"


def large_query(site: str) -> str:
    """200 million rows, so their reader ends first."""
    return f"SELECT t.id, t.note, a.name FROM {site}.ticks t CROSS JOIN {site}.few a CROSS JOIN {site}.few b"


def write_sites(
    path: Path,
    tables: Mapping[str, Mapping[str, Path]],
    *,
    ports: Mapping[str, int] | None = None,
    spark: Mapping[str, Any] | None = None,
    limits: Mapping[str, float] | None = None,
    lite: tuple[str, ...] = (),
    cluster: str = "faults",
    more: Mapping[str, Any] | None = None,
) -> Path:
    """skerry.yaml for these tables (site → table → folder or file of Parquet); returns `path`.

    `more` goes to the top level.
    """
    root = os.path.commonpath([folder for placed in tables.values() for folder in placed.values()])
    members: dict[str, Any] = {}
    for number, (site, placed) in enumerate(tables.items()):
        paths = {name: os.path.relpath(folder, root) for name, folder in placed.items()}
        members[site] = {
            "address": f"127.0.0.1:{ports[site] if ports else 7101 + number}",
            "spark": dict(spark or {"master": "local[2]"}),
            "tables": {name: {"format": "parquet", "path": path} for name, path in paths.items()},
        }
    for number, name in enumerate(lite):
        members[name] = {"address": f"127.0.0.1:{ports[name] if ports else 7201 + number}", "role": "lite"}
    text = {"cluster": cluster, "data_root": root, "members": members, "limits": dict(limits or {}), **(more or {})}
    path.write_text(yaml.safe_dump(text, sort_keys=False), encoding="utf-8")
    return path


def wait_until(
    condition: Callable[[], object], what: str, deadline_s: float = DEADLINE_S, every_s: float = 0.01
) -> None:
    give_up = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < give_up, f"not within {deadline_s:g} s: {what}"
        time.sleep(every_s)


def stats_of(cluster: LocalCluster, at: str, site: str, table: str) -> PartStats | None:
    """What member `at` knows of the part; None too before it has heard of it (a peer starts as down)."""
    try:
        (part,) = cluster.members[at].catalog.parts(TableRef(table, site, ()))
    except SiteError:
        return None
    return part.stats


def held(cluster: LocalCluster) -> list[str]:
    """What members and their Spark hold of any query."""

    async def look() -> list[str]:  # in the loop's thread: these books must not change while they are read
        return _held_by_members(cluster)

    found = cluster.call(look()) if cluster.members else []
    assert cluster.engine is not None
    slots: Any = cluster.engine.source_slots
    if slots is not None and slots.free != slots.count:
        found.append(f"{slots.count - slots.free} source slots")
    return found + cluster.engine.leftovers()


def _held_by_members(cluster: LocalCluster) -> list[str]:
    found = []
    for name, member in cluster.members.items():
        counts = {
            "queries begun here": len(member.initiated),
            "open cursors": member.service.open_cursors,
            "open transactions": len(member.transactions),
            "queries taken part in": len(member.participants),
            "budgets": member.resources.queries,
            "bytes of memory": member.resources.memory_used,
            "bytes of disk": member.resources.disk_used,
            "arriving channels": len(member.inputs._arriving),
            "halves": len(member.inputs._halves),
            "queries at the task port": len(member.taskport._queries),
        }
        found += [f"{name}: {count} {what}" for what, count in counts.items() if count]
    return found


def nothing_left(cluster: LocalCluster) -> None:
    """Receipts, and Spark's own books, lag a little behind a query's end."""
    give_up = time.monotonic() + LEFT_S
    while left := held(cluster):
        assert time.monotonic() < give_up, f"left behind: {', '.join(left)}"
        time.sleep(0.01)
