"""How long rows waited for credit is told to the initiator, on the simulation's clock: the line of EXPLAIN ANALYZE."""

from __future__ import annotations

import asyncio

import msgspec

from sim.cluster import Cluster
from sim.engine import Temper
from sim.network import Weather
from sim.queries import Query, Reader
from skerry.member.answers import ran_as
from skerry.member.initiator import Initiated
from skerry.model.fragment import Output, Plan, Rows, SparkFragment
from skerry.model.ids import QueryId
from skerry.model.limits import MIB, Limits
from skerry.plan.cache import fingerprint
from skerry.plan.explain import Actual

DELAY_S = 0.5
BATCHES = 8


def ran_with(credits_bytes: int) -> Actual:
    """oslo asks, and bergen sends its batches over a slow link."""
    temper = Temper(retries_tasks=False, pipelined=False, slots=64, pause_s=0.001, deaf_share=0.0)
    weather = Weather(delay_s=DELAY_S, slow_share=0.0, bytes_per_s=1e9)
    cluster = Cluster(1, 2, [], Limits(first_credits_bytes=credits_bytes, batch_rows=4), weather, temper)
    output = Output(9, ("oslo",), "any", (), False)
    made = (SparkFragment(1, "bergen", f"SELECT 'make=1 lanes=1 batches={BATCHES} rows=4'", (), output),)
    plan = Plan("", made, Rows(9, ("bergen",)), {})
    plan = msgspec.structs.replace(plan, plan_id=fingerprint(plan))
    query = Query(QueryId("oslo", "q0"), plan, {100: BATCHES * 4}, "scan", Reader(), 0.0, rows=[])
    asked: list[Initiated] = []

    async def main() -> None:
        for name in cluster.names:
            await cluster.boot(name)
        cluster.queries = {query.query: query}
        member = cluster.sites["oslo"].member
        asking = asyncio.get_running_loop().create_task(cluster.ask(query))
        while query.query not in member.initiated:
            await asyncio.sleep(0.01)
        asked.append(member.initiated[query.query])
        await asking
        await asked[0].ended.wait()

    try:
        cluster.loop.run(main(), 1000.0 + 60.0)
        assert (query.outcome, query.wrong()) == ("complete", "")
        return ran_as(asked[0], 1.0)
    finally:
        cluster.dispose()


def test_with_credit_for_all_no_batch_waits() -> None:
    (link,) = ran_with(MIB).links
    assert (link.sender, link.receiver, link.rows) == ("bergen", "oslo", BATCHES * 4)
    assert link.stalled_s == 0


def test_each_batch_without_credit_waits_for_a_round_trip() -> None:
    (link,) = ran_with(1).links
    assert link.rows == BATCHES * 4
    # The simulation's ways take at least a seventh of the weather's delay.
    assert link.stalled_s > (BATCHES - 1) * 2 * DELAY_S / 7.2
