"""A result larger than Spark's heap, read whole and checked; and what members and Spark hold while its reader stalls.

The client is a process of its own and keeps no row, so all memory that is seen here is the members' and Spark's.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from typing import Any

import psutil
import pyarrow as pa

import skerry
from bench.frame import SITE, Bar, Options, Report, Samples, Site, one_site, tpch_files
from skerry.model.limits import MIB, Limits
from skerry.testing.oracle import Digest, digest_of_files, digest_of_rows

TABLE = "lineitem"
TEXT = f"SELECT * FROM {TABLE}"
SCALE = 1.0  # its Arrow form has 1.02 GB
LEAST_BYTES = 1e9
HEAP = "1g"

STALL_S = 60.0
SAMPLE_S = 0.5
WAIT_S = 900.0
# Spark's memory is looked at from here on: its tasks run on until the spools have all rows, or are full.
SETTLE_S = 15.0
FLAT = 1.05

# Far less room than the result needs: the tasks themselves have to wait for the reader.
LITTLE_ROOM = {"spool_memory_bytes": 16 * MIB, "spool_disk_bytes": 64 * MIB}


@dataclass
class Held:
    """Most that was seen while the client stalled, in bytes."""

    memory: int = 0
    disk: int = 0
    spark: list[int] = field(default_factory=list)
    member: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)  # that Spark's tasks had handed over


def read(url: str, rows: int, stall_s: float, pipe: Connection) -> None:
    """The client's process: reads all, with a pause after half of the rows; says (query id), then (digest, bytes)."""
    try:
        with skerry.connect(url) as connection, connection.cursor() as cursor:
            size_bytes = 0

            def batches() -> Iterator[pa.RecordBatch]:
                nonlocal size_bytes
                seen, has_stalled = 0, stall_s == 0
                for batch in reader:
                    size_bytes += batch.nbytes
                    seen += batch.num_rows
                    yield batch
                    if seen > rows // 2 and not has_stalled:
                        has_stalled = True
                        pipe.send(cursor.query_id)
                        time.sleep(stall_s)
                        pipe.send(None)

            reader = cursor.execute(TEXT).fetch_record_batch_reader()
            found = digest_of_rows(pa.RecordBatchReader.from_batches(reader.schema, batches()))
            pipe.send((found, size_bytes))
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")


def run(options: Options) -> Report:
    """Whole; with a stall and room to spool; with a stall and little room."""
    options = replace(options, heap=HEAP, scale=max(options.scale, SCALE))
    wanted = digest_of_files(tpch_files(options.scale)[TABLE])
    samples: Samples = {}
    bars: list[Bar] = []
    notes: list[str] = []
    for case, limits in (("spooled", {}), ("waiting", LITTLE_ROOM)):
        with one_site(options, limits) as site:
            whole = _read(site, wanted, 0.0)
            stalled = _read(site, wanted, STALL_S)
        budget = Limits(**limits)
        held = stalled.held
        samples[case] = {"whole": [whole.seconds], "with a stall": [stalled.seconds]}
        bars += [
            Bar(f"{case}_wrong_reads", sum(each.found != wanted for each in (whole, stalled)), 0),
            Bar(f"{case}_gigabytes", whole.size_bytes / LEAST_BYTES, 1.0, at_most=False),
            Bar(f"{case}_memory_of_budget", held.memory / budget.spool_memory_bytes, 1.0),
            Bar(f"{case}_disk_of_budget", held.disk / budget.spool_disk_bytes, 1.0),
            Bar(f"{case}_spark_growth", max(held.spark) / held.spark[0], FLAT),
        ]
        notes += [
            f"{case}: {whole.found.rows} rows, {whole.size_bytes / 1e9:.3f} GB, checksum {whole.found.checksum}, "
            f"{whole.size_bytes / 1e6 / whole.seconds:.0f} MB/s",
            f"{case}: while the client stalled {STALL_S:.0f} s: memory {held.memory / MIB:.1f} of "
            f"{budget.spool_memory_bytes / MIB:.0f} MiB, disk {held.disk / MIB:.1f} of "
            f"{budget.spool_disk_bytes / MIB:.0f} MiB; Spark's processes {_span(held.spark)}, "
            f"the member's {_span(held.member)}; Spark handed over {held.rows[0]} to {held.rows[-1]} rows",
        ]
    title = f"{TEXT}, TPC-H scale {options.scale:g}, Spark's heap {options.heap}"
    return Report("large", title, "seconds", samples, bars, options, notes)


@dataclass(frozen=True)
class Read:
    found: Digest
    size_bytes: int
    seconds: float
    held: Held


def _read(site: Site, wanted: Digest, stall_s: float) -> Read:
    started = time.perf_counter()
    held = Held()
    with _reader(site.url, wanted.rows, stall_s) as pipe:
        if stall_s:
            _sample(site, _said(pipe), pipe, held)
        found, size_bytes = _said(pipe)
    return Read(found, size_bytes, time.perf_counter() - started, held)


def _sample(site: Site, query: Any, pipe: Connection, held: Held) -> None:
    """Looks until the client says that it goes on."""
    engine: Any = site.cluster.engine
    settled = time.monotonic() + SETTLE_S
    with site.cluster.connect(SITE) as connection:
        while not pipe.poll(SAMPLE_S):
            status = connection.status(query)
            held.memory = max([held.memory, *(each.memory_peak_bytes for each in status.memory)])
            held.disk = max([held.disk, *(each.disk_peak_bytes for each in status.memory)])
            if time.monotonic() > settled:
                held.spark.append(resident_bytes(engine.jvm_pid))
                held.member.append(psutil.Process(os.getpid()).memory_info().rss)
                held.rows.append(sum(each.rows for each in status.fragments))
    _said(pipe)


def resident_bytes(pid: int) -> int:
    """The memory of a process and all below it: the JVM and its Python workers."""
    total = 0
    parent = psutil.Process(pid)
    for process in (parent, *parent.children(recursive=True)):
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue  # an idle worker that ended meanwhile
    return total


@contextmanager
def _reader(url: str, rows: int, stall_s: float) -> Iterator[Connection]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=read, args=(url, rows, stall_s, theirs), daemon=True)
    process.start()
    try:
        yield ours
    finally:
        process.join(WAIT_S)
        process.kill()


def _said(pipe: Connection) -> Any:
    if not pipe.poll(WAIT_S):
        raise TimeoutError(f"the client said nothing for {WAIT_S:.0f} s")
    said = pipe.recv()
    if isinstance(said, str):
        raise RuntimeError(f"the client failed: {said}")
    return said


def _span(sizes: list[int]) -> str:
    return f"{sizes[0] / MIB:.0f} at first, {min(sizes) / MIB:.0f} to {max(sizes) / MIB:.0f} MiB"
