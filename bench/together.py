"""Four small scans of one query, as four jobs and as one, in processor time of the engine and this process (ADR 74).

On Apache Spark one job is what members run. On Sail, which they give four jobs, it is a UNION ALL whose arms are told
apart by a number, each with its row in a struct.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import statistics
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from bench.frame import Bar, Options, Report, Samples
from bench.star_schema import star_files
from bench.writers import processor_s_of
from skerry.spark import start_engine
from skerry.spark.engine import Engine, Job, TableFiles
from skerry.spark.settings import SparkSettings

# The dimensions of star's query 4.1, with their columns and those columns' types.
SCANS = {
    "dates": ("d_datekey, d_year", "INT, INT", "d_year > 0"),
    "customer": ("c_custkey, c_nation", "BIGINT, STRING", "c_region = 'AMERICA'"),
    "supplier": ("s_suppkey, s_nation", "BIGINT, STRING", "s_region = 'AMERICA'"),
    "part": ("p_partkey, p_mfgr", "BIGINT, STRING", "p_mfgr IN ('MFGR#1', 'MFGR#2')"),
}
APART, TOGETHER = "four jobs", "one job"
AT_ONCE = 10  # runs in one sample
WARM_UPS = 30  # of each way: Spark's compiler is busy until then
_numbers = itertools.count(1)


def run(options: Options) -> Report:
    """A bar for Spark alone: Sail does not run jobs together, and its samples say why."""
    samples: Samples = {}
    for name in options.engines:
        with multiprocessing.get_context("spawn").Pool(1) as process:  # one that had a Sail can start no JVM
            samples[name] = process.apply(_on_engine, (name, options))
    ratios = {
        name: statistics.median(each[TOGETHER]) / statistics.median(each[APART]) for name, each in samples.items()
    }
    bars = [Bar("spark", ratios["spark"], 1.0)] if "spark" in ratios else []
    notes = [f"{name}: {each[APART]} and {each[TOGETHER]}" for name, each in _least(samples).items()]
    return Report("together", "four small scans", "milliseconds of processor time", samples, bars, options, notes)


def _on_engine(name: str, options: Options) -> dict[str, list[float]]:
    conf = {} if name == "sail" else {"spark.driver.memory": options.heap}
    engine = start_engine(SparkSettings(sail=name == "sail", conf=conf))
    try:
        with ThreadPoolExecutor(len(SCANS)) as pool:
            return _measured(_ways(engine, name, pool, options.scale), options.rounds)
    finally:
        engine.stop()


def _ways(engine: Engine, name: str, pool: ThreadPoolExecutor, scale: float) -> dict[str, Callable[[], list[int]]]:
    """Each gives how many rows the scans have."""
    slices = star_files(scale).slices
    scans = [_scan(engine, table, Path(slices[table][0])) for table in SCANS]

    def rows(job: Job) -> int:
        table = engine.run(msgspec.structs.replace(job, tag=_tag()), lambda schema: None).table
        assert table is not None
        return int(table.num_rows)

    def together() -> list[int]:
        jobs = [msgspec.structs.replace(job, tag=_tag()) for job in scans]
        found = engine.run_together(jobs, [lambda schema: None] * len(jobs))
        return [each.table.num_rows for each in found if each is not None and each.table is not None]

    union = _union(scans)
    ways = {APART: lambda: list(pool.map(rows, scans))}
    return ways | {TOGETHER: (lambda: [rows(union)]) if name == "sail" else together}


def _measured(ways: dict[str, Callable[[], list[int]]], rounds: int) -> dict[str, list[float]]:
    for _ in range(WARM_UPS):
        found = [way() for way in ways.values()]
    assert len({sum(each) for each in found}) == 1, found
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds):
        for name in list(ways) if number % 2 == 0 else reversed(list(ways)):
            taken[name].append(1000 * processor_s_of(lambda name=name: _often(ways[name])) / AT_ONCE)  # type: ignore[misc]
    return taken


def _often(way: Callable[[], object]) -> None:
    for _ in range(AT_ONCE):
        way()


def _least(samples: Samples) -> dict[str, dict[str, str]]:
    return {
        name: {way: f"{way} least {min(taken):.1f} ms" for way, taken in each.items()} for name, each in samples.items()
    }


def _tag() -> str:
    return f"bench-{next(_numbers)}"


def _scan(engine: Engine, table: str, folder: Path) -> Job:
    listed = tuple(str(folder / file) for file in sorted(os.listdir(folder)))
    files = TableFiles("oslo", table, "parquet", {}, str(folder), listed, 1)
    files = msgspec.structs.replace(files, columns=engine.describe(files))
    columns, _, where = SCANS[table]
    sql = f"SELECT {columns} FROM leaf_{table} WHERE {where}"
    return Job("", sql, {f"leaf_{table}": files}, {}, {}, None, is_small=True, is_repeatable=True)


def _union(scans: Sequence[Job]) -> Job:
    arms = []
    for place, (scan, (columns, _, _)) in enumerate(zip(scans, SCANS.values(), strict=True)):
        named = ", ".join(f"'{name}', {name}" for name in columns.split(", "))
        rows = [
            f"named_struct({named}) AS r{other}" if other == place else f"CAST(NULL AS {_struct(*each)}) AS r{other}"
            for other, each in enumerate(SCANS.values())
        ]
        arms.append(f"SELECT {place} AS n, {', '.join(rows)} FROM ({scan.sql})")
    tables = {name: files for scan in scans for name, files in scan.tables.items()}
    return msgspec.structs.replace(scans[0], sql=" UNION ALL ".join(arms), tables=tables)


def _struct(columns: str, types: str, _: str) -> str:
    fields = zip(columns.split(", "), types.split(", "), strict=True)
    return f"STRUCT<{', '.join(f'{name}: {kind}' for name, kind in fields)}>"
