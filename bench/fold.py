"""The group-by's state beside DuckDB: partial rows with many keys, folded in one thread.

What counts is processor time, of this process with all its threads; the bar is for medians. DuckDB reads the same Arrow
rows, has one thread too, and hands its groups over as Arrow batches.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import duckdb
import numpy as np
import pyarrow as pa

from bench.frame import Bar, Options, Report, Samples, ratio
from skerry.exchange.groupby.rows import PartialRows
from skerry.exchange.groupby.state import State
from skerry.exchange.input import END
from skerry.model.fragment import MergeStep
from skerry.model.limits import GIB, Limits

ROWS = 10_000_000
KEYS_SHARE = 0.68  # keys that differ, of all rows
OURS, DUCKDB = "state", "DuckDB"
BAR = 0.8
_MIX = np.uint64(0x9E3779B97F4A7C15)

QUERY = "SELECT k, sum(n), sum(s), min(lo), max(hi) FROM rows GROUP BY k"


def run(options: Options) -> Report:
    """`--scale 0.1` folds a tenth of the rows."""
    samples: Samples = {}
    peaks: dict[str, int] = {}
    for case, is_text in (("int keys", False), ("string keys", True)):
        batches = _batches(int(ROWS * options.scale), is_text)
        rows = sum(batch.num_rows for batch in batches)
        works: dict[str, Callable[[], int]] = {
            OURS: lambda batches=batches, case=case: _folded(batches, case, peaks),  # type: ignore[misc]
            DUCKDB: lambda batches=batches: _duckdb(batches),  # type: ignore[misc]
        }
        samples[case] = {name: [] for name in works}
        found: dict[str, int] = {}
        for turn in range(options.rounds + 1):
            for name in list(works) if turn % 2 == 0 else reversed(list(works)):
                gc.collect()
                started = time.process_time()
                found[name] = works[name]()
                taken_s = time.process_time() - started
                if turn:  # the first is a warm-up: memory is new to the process
                    samples[case][name].append(rows / 1e6 / taken_s)
        assert found[OURS] == found[DUCKDB], f"{case}: {found} groups"
    ratios = {case: ratio(taken, OURS, DUCKDB) for case, taken in samples.items()}
    bars = [Bar("duckdb", ratios["int keys"], BAR, at_most=False)]
    notes = [
        f"{case}: {ratios[case]:.2f} x DuckDB by medians, {max(taken[OURS]) / max(taken[DUCKDB]):.2f} x at best;"
        f" the state held {peaks[case] / 1e6:.0f} MB at most"
        for case, taken in samples.items()
    ]
    title = f"{ROWS * options.scale / 1e6:g} million partial rows: count, sum, min and max"
    return Report("fold", title, "million rows a processor second", samples, bars, options, notes)


def _batches(rows: int, is_text: bool) -> list[pa.RecordBatch]:
    """In batches as they travel."""
    rng = np.random.default_rng(1)
    # Drawn from so many keys that as many as KEYS_SHARE of the rows are hit: keys * (1 - exp(-rows / keys)).
    numbers = rng.integers(0, int(rows * 1.21), rows)
    assert abs(len(np.unique(numbers)) / rows - KEYS_SHARE) < 0.1
    values = rng.integers(-(10**6), 10**6, rows)
    mixed = numbers.astype(np.uint64) * _MIX
    hashes = (mixed ^ (mixed >> np.uint64(29))) * _MIX
    keys = pa.array(numbers) if not is_text else pa.array(np.char.add("customer ", numbers.astype("U")).tolist())
    columns = {
        "k": keys,
        "n": pa.array(rng.integers(1, 10, rows)),
        "s": pa.array(values * 7),
        "lo": pa.array(values),
        "hi": pa.array(values + 5),
        "hash": pa.array(hashes.view(np.int64)),
        "weight": pa.array(np.ones(rows, np.int64)),
    }
    batches: list[pa.RecordBatch] = pa.Table.from_pydict(columns).to_batches(max_chunksize=Limits().batch_rows)
    return batches


def _folded(batches: list[pa.RecordBatch], case: str, peaks: dict[str, int]) -> int:
    kinds = ("any", "count", "sum", "min", "max")
    steps = [MergeStep(index, kind) for index, kind in enumerate(kinds)]
    limits = Limits()
    state = State(PartialRows(batches[0].schema, [0], steps, 5, 6), 2 * GIB, limits.batch_rows, limits.batch_bytes)
    for batch in batches:
        state.fold(batch)
    drain, groups = state.drain(), 0
    while (polled := drain.poll()) is not END:
        assert isinstance(polled, pa.RecordBatch)
        groups += polled.num_rows
    peaks[case] = max(peaks.get(case, 0), state.peak_bytes)
    return groups


def _duckdb(batches: list[pa.RecordBatch]) -> int:
    with duckdb.connect(config={"threads": 1, "preserve_insertion_order": False}) as connection:
        connection.register("rows", pa.Table.from_batches(batches))
        reader = connection.execute(QUERY).to_arrow_reader(Limits().batch_rows)
        return sum(batch.num_rows for batch in reader)
