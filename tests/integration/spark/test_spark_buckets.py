"""Spark's text for the bucket of a row gives what Arrow's version does, for every type that a key may have."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

from skerry.model.table import Column
from skerry.spark.engine import Engine
from skerry.sql.dialect import render
from skerry.tables.bucket import buckets_of
from skerry.tables.bucket_sql import bucket_sql
from skerry.tables.columns import arrow_type
from tests.integration.spark.harness import Site, files
from tests.unit.tables.table_samples import KEY_TYPES, TYPES

BUCKETS = 3000  # no power of two: signs matter


def all_keys() -> pa.Table:
    """A column for each type, each value beside others of the other types, NULLs among them."""
    rng = np.random.default_rng(7)
    columns = {}
    for kind in KEY_TYPES:
        arrow = arrow_type(kind)
        values = pa.array([*TYPES[kind], None], arrow)
        columns[kind] = values.take(pa.array(rng.integers(0, len(values), 60)))
    numbers = pa.array(rng.integers(-(2**62), 2**62, 60))
    halves = pa.array(rng.integers(-(2**54), 2**54, 60) / 4)
    return pa.table({**columns, "bigint ": numbers, "double ": halves})


def compare(engine: Engine, folder: Path) -> None:
    rows = all_keys()
    kinds = [name.strip() for name in rows.column_names]
    renamed = rows.rename_columns([f"c{number}" for number in range(len(kinds))])
    pq.write_table(renamed, folder / "keys.parquet", store_schema=False)
    each = [(exp.column(f"c{number}", quoted=True), kind) for number, kind in enumerate(kinds)]
    wanted = [buckets_of([column.combine_chunks()], BUCKETS).tolist() for column in rows.columns]
    wanted.append(buckets_of([column.combine_chunks() for column in rows.columns], BUCKETS).tolist())
    asked = [bucket_sql([one], BUCKETS) for one in each] + [bucket_sql(each, BUCKETS)]
    select = exp.select(*(exp.alias_(tree, f"b{number}") for number, tree in enumerate(asked))).from_("keys")

    async def run() -> pa.Table:
        columns = tuple(Column(f"c{number}", kind) for number, kind in enumerate(kinds))
        async with Site(engine) as site:
            listing = files(folder, "keys", folder / "keys.parquet", columns=columns)
            return (await site.drive(render(select), tables={"keys": listing}))[1]

    found = asyncio.run(run())
    for number, kind in enumerate([*kinds, "all together"]):
        assert sorted(found.column(number).to_pylist()) == sorted(wanted[number]), kind
    together = zip(*(found.column(number).to_pylist() for number in range(len(wanted))), strict=True)
    assert sorted(together) == sorted(zip(*wanted, strict=True))


@pytest.mark.spark
def test_buckets_on_spark(spark_engine: Engine, tmp_path: Path) -> None:
    compare(spark_engine, tmp_path)


@pytest.mark.sail
def test_buckets_on_sail(sail_engine: Engine, tmp_path: Path) -> None:
    compare(sail_engine, tmp_path)
