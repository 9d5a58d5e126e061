"""The end of a Spark job that succeeded: its rows are proven complete, put in order, and let go."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

import pyarrow as pa

from skerry.exchange.entries import ReadableSpool
from skerry.exchange.spool import Spool
from skerry.member.jobs import fill_from_table, merge_lanes
from skerry.member.running import Running, room_for
from skerry.member.stores import DirectStore, LaneStore, NoStore, RowStore
from skerry.model.limits import Limits
from skerry.spark.engine import JobResult

NewSpool = Callable[[str], Spool]  # by what it holds; closed with the query
SendRows = Callable[[ReadableSpool], None]


async def settle(
    running: Running, result: JobResult, new_spool: NewSpool, send_rows: SendRows, limits: Limits
) -> tuple[int, int]:
    """Rows and bytes of the fragment. `send_rows` takes rows whose channels are not yet there."""
    if result.table is None:
        return await _prove(running, result, new_spool, send_rows, limits)
    if running.store is None:
        assert running.spool is not None
        return fill_from_table(running.spool, result.table, limits)
    return await _take(running.store, result.table, new_spool, send_rows, limits)


async def _prove(
    running: Running, result: JobResult, new_spool: NewSpool, send_rows: SendRows, limits: Limits
) -> tuple[int, int]:
    """Tasks handed rows over: what the member holds must be what they say they sent."""
    assert running.intake is not None
    assert running.schema is not None
    winners = running.intake.settle(result.sink_rows)
    match running.store:
        case DirectStore(spool=spool):
            spool.finish()
        case LaneStore() as store:
            for loser in running.intake.losers:
                store.drop(loser)
            lanes = [store.lanes[winner] for winner in winners]
            send_rows(await merge_lanes(lanes, running.fragment.output, running.schema, new_spool("merged"), limits))
        case NoStore():
            pass  # its rows were counted
        case None:
            raise AssertionError("a job without a store returns its rows through the driver")
        case never:
            assert_never(never)
    return running.intake.rows, running.intake.size_bytes


async def _take(
    store: RowStore, table: pa.Table, new_spool: NewSpool, send_rows: SendRows, limits: Limits
) -> tuple[int, int]:
    """No task handed rows over: here they all are, in their order."""
    match store:
        case DirectStore(spool=spool):
            await room_for(store, table.nbytes)
            return fill_from_table(spool, table, limits)
        case LaneStore():
            rows = new_spool("rows")
            counts = fill_from_table(rows, table, limits)
            send_rows(rows)
            return counts
        case NoStore():
            return table.num_rows, table.nbytes
        case never:
            assert_never(never)
