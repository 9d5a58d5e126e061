"""Tables of our own: files, and what came after them, are one table to every engine."""

from __future__ import annotations

import asyncio
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

from skerry.member.ownreads import as_files
from skerry.model.sharded import Definition
from skerry.spark.engine import Engine
from skerry.tables.catalogue import first_map
from skerry.tables.columns import arrow_schema
from skerry.tables.flush import carry_out
from skerry.tables.shard import Shard
from skerry.tables.writes import deletes_of, writes_of
from tests.integration.spark.harness import Site
from tests.unit.tables.table_samples import SECOND, TYPES, all_types, batch_of, shown

TABLE = all_types()
DEFINITION = Definition(TABLE, first_map(TABLE))
KEYS = (0.0, math.nan, -math.inf, 1.5)


def row(number: int, turn: int = 0) -> dict[str, Any]:
    samples = {f"v{place}": [None, *values] for place, values in enumerate(TYPES.values())}
    values = {name: each[(number + turn) % len(each)] for name, each in samples.items()}
    return {"a": f"smør {number % 16}", "b": KEYS[number % 4], "c": Decimal(number), **values}


def test_rows_of_files_and_later_ones_are_one_table(engine: Engine, tmp_path: Path) -> None:
    shard = Shard(TABLE, str(tmp_path / "1"), ranges=[(0, 2000), (2000, 5000), (5000, TABLE.buckets)])
    moments: list[tuple[int, list[str]]] = []

    def note(turn: int) -> int:
        moments.append((turn * SECOND, shown(shard.read(turn * SECOND))))
        return turn * SECOND

    def commit(turn: int, rows: list[dict[str, Any]], gone: list[dict[str, Any]]) -> None:
        batch, keys = batch_of(TABLE, rows), batch_of(TABLE, gone).select(list(TABLE.primary_key))
        writes = [*writes_of(TABLE, batch), *deletes_of(TABLE, keys)]
        shard.apply(turn * SECOND, [(write.key, write.row) for write in writes])
        note(turn)

    note(1)
    commit(2, [row(number) for number in range(40)], [])
    plan = shard.plan_flush(3 * SECOND)
    assert plan is not None
    shard.flushed(carry_out(plan), plan.table)
    note(3)
    # One key of a string that few buckets have: other files stay untouched. 0.0 is -0.0 as a key, NaN is NaN.
    again = [{**row(number, 1), "b": row(number)["b"] * -1} for number in range(0, 40, 16)]
    commit(4, [*again, row(48), row(64)], [row(1), row(17)])
    snapshot = shard.snapshot(4 * SECOND)
    assert snapshot.plain
    assert snapshot.touched

    async def run() -> None:
        async with Site(engine) as site:
            for read_ts, expected in moments:
                files = as_files("oslo", DEFINITION, shard.folder, shard.snapshot(read_ts)).files
                for is_small in (True,) if read_ts < 4 * SECOND else (True, False):
                    schema, rows = await site.drive("SELECT * FROM leaf", tables={"leaf": files}, is_small=is_small)
                    assert [each.name for each in schema.columns] == arrow_schema(TABLE).names
                    assert [each.type for each in schema.columns] == [each.type for each in TABLE.columns]
                    assert shown(rows.rename_columns(arrow_schema(TABLE).names).cast(arrow_schema(TABLE))) == expected
            text = "SELECT x.c, y.v3 FROM leaf x JOIN leaf y ON x.c = y.c WHERE x.a = 'smør 0'"
            out = await site.collect(text, tables={"leaf": files})
            assert len(out.rows) == sum("'smør 0'" in each for each in expected)

    asyncio.run(run())
