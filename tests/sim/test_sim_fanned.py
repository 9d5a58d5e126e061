"""Rows of one job for several members, in simulated clusters: nobody waits for another."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from sim.cluster import Cluster
from sim.engine import COLUMNS, Temper
from sim.network import Weather
from sim.queries import Query, Reader
from skerry.model.fragment import EdgeLeaf, Finish, OperatorFragment, Output, Plan, Rows, SparkFragment
from skerry.model.ids import QueryId
from skerry.model.limits import Limits
from skerry.plan.cache import fingerprint
from skerry.wire.channel import ChannelEnd
from skerry.wire.sending import ChannelOut

BATCHES, ROWS = 40, 4


class Fanned:
    """oslo asks; bergen's rows go to all three. oslo and tromso send on what came, bergen what stayed."""

    def __init__(self, limit: int | None = None) -> None:
        limits = Limits(first_credits_bytes=2_000, batch_rows=ROWS, spool_memory_bytes=6_000, wait_s=30.0)
        temper = Temper(retries_tasks=False, pipelined=True, slots=64, pause_s=0.02, deaf_share=0.0)
        self.cluster = Cluster(1, 3, [], limits, Weather(slow_share=0.0), temper)
        words = f"SELECT 'make=1 lanes=1 batches={BATCHES} rows={ROWS}'"
        came, stayed = EdgeLeaf("e1", 1, COLUMNS, ("bergen",)), EdgeLeaf("", 1, COLUMNS, ("bergen",))
        rest = "SELECT 'pass'" if limit is None else f"SELECT 'limit={limit}'"
        result = Output(9, ("oslo",))
        fragments = (
            SparkFragment(1, "bergen", words, (), Output(1, ("tromso", "bergen", "oslo"))),
            OperatorFragment(2, "bergen", Finish(), (stayed,), result),
            SparkFragment(3, "oslo", "SELECT 'pass'", (came,), result),
            SparkFragment(4, "tromso", rest, (came,), result),
        )
        plan = Plan("", fragments, Rows(9, ("bergen", "oslo", "tromso")), {})
        plan = msgspec.structs.replace(plan, plan_id=fingerprint(plan))
        self.query = Query(QueryId("oslo", "q0"), plan, {100: BATCHES * ROWS}, "fan", Reader(), 0.0, rows=[])
        self.query.copies, self.query.some = {100: 3 if limit is None else 2}, limit or 0

    def channels(self) -> dict[str, ChannelOut]:
        """Those of the shared edge, at their sender."""
        participant = self.cluster.sites["bergen"].member.participants.get(self.query.query)
        leaving = participant._channels if participant is not None else []
        return {each.channel.receiver: each for each in leaving if each.channel.edge == 1}

    async def until_ended(self, receiver: str) -> ChannelOut:
        while receiver not in self.channels():
            await asyncio.sleep(0.01)
        found = self.channels()[receiver]
        while found._sender.end is None:
            await asyncio.sleep(0.01)
        return found

    def run(self, *, pauses: bool) -> None:
        async def main() -> None:
            for name in self.cluster.names:
                await self.cluster.boot(name)
            self.cluster.queries = {self.query.query: self.query}
            asked = asyncio.ensure_future(self.cluster.ask(self.query))
            if pauses:
                await self.while_tromso_is_paused()
            else:
                await self.while_tromso_has_enough()
            await asked

        try:
            self.cluster.loop.run(main(), 1000.0 + 60.0)
        finally:
            self.cluster.dispose()
        assert self.query.outcome == "complete"
        assert self.query.wrong() == ""

    async def while_tromso_is_paused(self) -> None:
        while "tromso" not in self.channels():
            await asyncio.sleep(0.01)
        self.cluster.pause("tromso")
        assert (await self.until_ended("oslo"))._sender.end is ChannelEnd.FINISHED
        behind = self.channels()["tromso"]
        assert behind._sender.end is None
        assert behind.sent_rows < BATCHES * ROWS
        # What tromso lacks is all kept, the rest is not: the spool is as long as the slowest is behind.
        spool = behind._spool
        assert spool.first == behind._sender.acked_upto < spool.length == BATCHES
        self.cluster.resume("tromso")

    async def while_tromso_has_enough(self) -> None:
        stopped = await self.until_ended("tromso")
        # A sender that is late finds the query gone there.
        assert stopped._sender.end in (ChannelEnd.STOPPED, ChannelEnd.GONE)
        assert stopped.sent_rows < BATCHES * ROWS
        other = self.channels()["oslo"]
        assert other._sender.end is None
        while other.sent_rows < BATCHES * ROWS:
            await asyncio.sleep(0.01)


def test_a_receiver_that_is_paused_holds_back_only_itself() -> None:
    Fanned().run(pauses=True)


@pytest.mark.parametrize("limit", [0, 3])
def test_a_receiver_that_has_enough_ends_only_its_own_channel(limit: int) -> None:
    Fanned(limit).run(pauses=False)
