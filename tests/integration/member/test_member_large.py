"""A result far larger than the room for it, read whole; its reader pauses in the middle, and nothing grows meanwhile.

`python -m bench large` does the same with a gigabyte and a minute.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skerry.model.limits import KIB, MIB
from skerry.spark.engine import Engine
from skerry.testing.cluster import LocalCluster
from skerry.testing.oracle import digest_of_files, digest_of_rows
from tests.integration.member.conftest import StartCluster
from tests.integration.member.member_sites import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = 600_000  # some 36 MB of Arrow, in batches of 250 KB: small against the room, as they are by default
ROOM = {"spool_memory_bytes": 4 * MIB, "spool_disk_bytes": 4 * MIB, "first_credits_bytes": 512 * KIB}
STALL_S = 2.0
# A JVM at rest still compiles and collects a little; the rest of the result would be ten times this.
SPARK_GROWTH_BYTES = 32 * MIB


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large") / "ledger"
    folder.mkdir()
    for part in range(4):
        ids = range(part, ROWS, 4)
        text = [f"{each * 7919 % 1_000_003:>07}" * 7 for each in ids]
        table = pa.table({"id": pa.array(ids, pa.int64()), "text": text})
        pq.write_table(table, folder / f"{part}.parquet", row_group_size=20_000)
    return folder


@pytest.mark.parametrize("at", ["oslo", "bergen"], ids=["at the site", "at another"])
def test_a_reader_that_pauses_costs_bounded_memory(
    start_members: StartCluster, spark_engine: Engine, ledger: Path, at: str, fault_tables: Any
) -> None:
    tables = {"oslo": {"ledger": ledger}, "bergen": {"few": fault_tables["bergen"]["few"]}}
    members = start_members(tables=tables, limits=ROOM)
    with members.connect(at) as connection, connection.cursor() as cursor:
        reader = cursor.execute("SELECT * FROM ledger").fetch_record_batch_reader()
        seen: list[int] = []

        def handed_over() -> int:
            status = cursor.status()
            for each in status.memory:
                assert each.memory_bytes <= each.memory_peak_bytes <= ROOM["spool_memory_bytes"], each.member
                assert each.disk_bytes <= each.disk_peak_bytes <= ROOM["spool_disk_bytes"], each.member
            return sum(fragment.rows for fragment in status.fragments)

        def stands_still() -> bool:
            seen.append(handed_over())
            # Both: tasks may wait for a moment, and a busy machine may have none for Spark.
            return len(seen) > 50 and len(set(seen[-50:])) == 1 and all_wait(members, "oslo")

        def batches() -> Iterator[pa.RecordBatch]:
            rows, has_paused = 0, False
            for batch in reader:
                yield batch
                rows += batch.num_rows
                if rows > ROWS // 3 and not has_paused:
                    has_paused = True
                    wait_until(stands_still, "the spools are full and Spark's tasks wait")
                    pause()

        def pause() -> None:
            collect_garbage(spark_engine)  # the JVM moves to new pages what it keeps: now, not while it is watched
            rows, before = handed_over(), resident_bytes(spark_engine)
            assert rows < ROWS
            until = time.monotonic() + STALL_S
            while time.monotonic() < until:
                assert handed_over() == rows
                assert resident_bytes(spark_engine) <= before + SPARK_GROWTH_BYTES
                time.sleep(0.1)
            seen.append(-1)

        found = digest_of_rows(pa.RecordBatchReader.from_batches(reader.schema, batches()))
    assert seen[-1] == -1, "it paused"
    assert found == digest_of_files(ledger)


def all_wait(members: LocalCluster, name: str) -> bool:
    """Whether every task that hands rows to that member waits for the reader of its result."""

    async def ask() -> bool:
        known = members.members[name].taskport._queries.values()
        sinks = sum(kind == "sink" for each in known for kind, _ in each.parts.values())
        return 0 < sinks == sum(len(each.waiting) for each in known)

    return members.call(ask())


def collect_garbage(engine: Any) -> None:
    engine.session.sparkContext._jvm.System.gc()


def resident_bytes(engine: Any) -> int:
    """The memory of the JVM and its Python workers."""
    parent = psutil.Process(engine.jvm_pid)
    total = 0
    for process in (parent, *parent.children(recursive=True)):
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total
