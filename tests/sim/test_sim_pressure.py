"""A simulated member whose spool is filled by the rows that arrive for a query, so that its result finds no room."""

from __future__ import annotations

import msgspec

from sim.cluster import Cluster
from sim.engine import COLUMNS, Temper
from sim.network import Weather
from sim.queries import Query, Reader
from skerry.model.errors import Overloaded
from skerry.model.fragment import EdgeLeaf, Output, Plan, Rows, SparkFragment
from skerry.model.ids import QueryId
from skerry.model.limits import Limits
from skerry.plan.cache import fingerprint


def run_with(disk_bytes: int) -> Query:
    """oslo asks; bergen's rows go to tromso, which passes them on."""
    limits = Limits(
        first_credits_bytes=100_000, spool_memory_bytes=0, spool_disk_bytes=disk_bytes, sink_stalled_s=2.0, batch_rows=4
    )
    temper = Temper(retries_tasks=False, pipelined=False, slots=64, pause_s=0.001, deaf_share=0.0)
    cluster = Cluster(1, 3, [], limits, Weather(slow_share=0.0), temper)
    edge = EdgeLeaf("e1", 1, COLUMNS, ("bergen",))
    plan = Plan(
        "",
        (
            SparkFragment(
                1, "bergen", "SELECT 'make=1 lanes=1 batches=8 rows=4'", (), Output(1, ("tromso",), "any", (), False)
            ),
            SparkFragment(2, "tromso", "SELECT 'pass'", (edge,), Output(9, ("oslo",))),
        ),
        Rows(9, ("tromso",)),
        {},
    )
    plan = msgspec.structs.replace(plan, plan_id=fingerprint(plan))
    query = Query(QueryId("oslo", "q0"), plan, {100: 32}, "pass", Reader(), 0.0, rows=[])

    async def main() -> None:
        for name in cluster.names:
            await cluster.boot(name)
        cluster.queries = {query.query: query}
        await cluster.ask(query)

    try:
        cluster.loop.run(main(), 1000.0 + 60.0)
    finally:
        cluster.dispose()
    return query


def test_rows_that_arrive_and_leave_no_room_for_the_result_end_the_query() -> None:
    """They stay to the query's end (Spark may read them again), so the tasks that wait for room would wait for ever."""
    query = run_with(disk_bytes=8_000)
    assert query.error_code == Overloaded.code
    assert "the rows that arrived for the query fill its spool, and leave no room for its result" in query.outcome


def test_with_room_for_one_batch_more_the_result_passes() -> None:
    query = run_with(disk_bytes=9_000)
    assert query.outcome == "complete"
    assert query.wrong() == ""
