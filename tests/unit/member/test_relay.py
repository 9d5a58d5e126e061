"""A channel that passes a member, over real connections: complete and once, whichever hop is cut; ends pass it too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import msgspec
import pytest

from skerry.catalog.topology import Topology
from skerry.config import parse
from skerry.exchange.spool import Spool
from skerry.member.inputs import Arriving, Inputs
from skerry.member.outgoing import Outgoing
from skerry.member.query import QueryCore, Send
from skerry.member.relay import Relay, RelaySpool, relays_of
from skerry.member.resources import Resources
from skerry.member.server import Member
from skerry.member.task import RelayChannel, Release, RunFragment, TaskCore, TaskPhase
from skerry.model.errors import ConfigError, Overloaded, PeerError, SiteError, SkerryError
from skerry.model.ids import ChannelId
from skerry.model.limits import KIB
from skerry.wire.channel import ChannelEnd
from skerry.wire.channels import ChannelOut, data_handler
from skerry.wire.listener import Listener
from skerry.wire.messages import Cancel, Execute, Message, PlanRequest, Receipt
from skerry.wire.session import Identity
from tests.unit.member.member_samples import PATIENCE, QUERY, SCHEMA, TIMEOUT_S, entry_of, execute_of, plan_of, rows_of
from tests.unit.wire.looping import QUICK, SECRET, Cutter, run, until

CONFIG = parse("""\
cluster: fjords
members: {bergen: {address: 'h:1'}, tromso: {address: 'h:2'}, oslo: {address: 'h:3'}}
links:
  - {between: [bergen, tromso], mbit: 100}
  - {between: [tromso, oslo], mbit: 10000}
""")
TOPOLOGY = Topology(CONFIG)
LIMITS = msgspec.structs.replace(QUICK, first_credits_bytes=64 * KIB)
CHANNEL = ChannelId(QUERY, 1, "bergen", "oslo")
ROWS = [(number, f"{Random(number).random()} {'x' * 200}") for number in range(100)]


class Node:
    """What a member has of channels."""

    def __init__(self, name: str, epoch: int, addresses: dict[str, str], folder: Path) -> None:
        self.name = name
        self.identity = Identity("fjords", name, epoch, secret=SECRET)
        self.resources = Resources(LIMITS, str(folder))
        self.inputs = Inputs(name, LIMITS, TOPOLOGY, self.resources, lambda _query: None)
        self.outgoing = Outgoing(self.identity, addresses, TOPOLOGY, LIMITS, Random(epoch))
        self.listener: Listener | None = None
        self.memory_peak = 0

    async def start(self) -> Callable[[], str]:
        handler = data_handler(
            self.inputs.lookup, LIMITS, None, lambda c: TOPOLOGY.previous_hop(self.name, c.sender, c.receiver)
        )
        self.listener = listener = await Listener.start("tcp:127.0.0.1:0", LIMITS, self.identity, {"data": handler})
        return lambda: listener.address

    async def stop(self) -> None:
        self.inputs.forget(QUERY, 0.0)
        assert self.listener is not None
        await self.listener.stop()
        assert self.resources.memory_used == 0


class Way:
    """bergen → tromso → oslo, each behind a link that can be cut."""

    out: ChannelOut  # of bergen

    def __init__(self, folder: Path) -> None:
        self.addresses: dict[str, str] = {}
        self.bergen, self.tromso, self.oslo = (
            Node(name, number, self.addresses, folder) for number, name in enumerate(("bergen", "tromso", "oslo"), 1)
        )
        self.cutters = {"tromso": Cutter(), "oslo": Cutter()}
        self.held = self.bergen.resources.take(QUERY)
        self.spool: Spool = self.bergen.resources.spool(self.held, "out")
        self.arriving: Arriving | None = None
        self.relaying: asyncio.Future[None] | None = None
        self.sending: asyncio.Future[ChannelEnd] | None = None
        self.peak = 0

    async def start(self) -> None:
        for node in (self.tromso, self.oslo):
            self.addresses[node.name] = await self.cutters[node.name].front(await node.start())
        self.oslo.inputs.begin(QUERY, PATIENCE)
        (self.arriving,) = self.oslo.inputs.expect(QUERY, 1, ("bergen",), is_result=True)
        self.out = self.bergen.outgoing.channel(CHANNEL, SCHEMA.arrow, self.spool, LIMITS.wait_s)

    def relay(self) -> Relay:
        """Execute comes to tromso."""
        self.tromso.inputs.begin(QUERY, PATIENCE)
        arriving = self.tromso.inputs.expect_relayed(CHANNEL)
        arriving.spool.subscribe(self._note_peak)
        relay = Relay(arriving, self.tromso.outgoing, LIMITS.wait_s)
        self.relaying = asyncio.ensure_future(relay.run())
        return relay

    def send(self) -> None:
        self.sending = asyncio.ensure_future(self.out.run())

    def _note_peak(self) -> None:
        self.peak = max(self.peak, self.tromso.resources.memory_used)

    async def read(self) -> list[tuple[object, ...]]:
        """What arrives at oslo until its end, consumed as it comes."""
        assert self.arriving is not None
        spool, rows = self.arriving.spool, []
        index = 0
        while not (spool.finished and index == spool.length):
            if spool.failed is not None:
                raise spool.failed
            if index == spool.length:
                await asyncio.sleep(0.002)
                continue
            entry = spool.read(index)
            rows += rows_of(entry.body)
            index += 1
            spool.release(index)
            self.arriving.channel.consumed(entry.decoded_bytes)
        return rows

    async def stop(self) -> None:
        for task in (self.relaying, self.sending):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        for cutter in self.cutters.values():
            await cutter.close()
        self.spool.close()
        await self.tromso.stop()
        await self.oslo.stop()


@asynccontextmanager
async def way(folder: Path) -> AsyncIterator[Way]:
    made = Way(folder)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


def on_the_way(folder: Path, work: Callable[[Way], Awaitable[None]]) -> None:
    async def main() -> None:
        async with way(folder) as made:
            await work(made)

    run(main())


@pytest.mark.parametrize("seed", range(4))
def test_rows_pass_complete_once_and_in_order_whichever_hop_is_cut(tmp_path: Path, seed: int) -> None:
    async def work(made: Way) -> None:
        random = Random(seed)
        for _ in range(60):
            made.spool.append(entry_of(ROWS))
        made.spool.finish()
        relay = made.relay()
        made.send()
        reading = asyncio.ensure_future(made.read())
        cuts = 0
        while not reading.done() and cuts < 12:
            cutter = made.cutters[random.choice(["tromso", "oslo"])]
            cutter.cut_after_bytes = cutter.forwarded_bytes + random.randrange(200, 60_000)
            await until(lambda cutter=cutter: cutter.cut_after_bytes is None or reading.done())
            cuts += 1
        rows = await reading
        assert rows == ROWS * 60
        assert made.sending is not None
        assert await made.sending is ChannelEnd.FINISHED
        assert made.relaying is not None
        await made.relaying
        assert cuts >= 3
        assert relay.out is not None
        assert (relay.out.to, made.out.to) == ("oslo", "tromso")
        assert relay.out.sent_rows == made.out.sent_rows == len(ROWS) * 60
        # A window and one batch of overdraft, and entries' own cost; compressed as it is on the slow first hop.
        assert 0 < made.peak <= LIMITS.first_credits_bytes + 64 * KIB

    on_the_way(tmp_path, work)


def test_rows_before_the_relay_s_execute_are_kept_within_the_first_credits(tmp_path: Path) -> None:
    async def work(made: Way) -> None:
        for _ in range(20):
            made.spool.append(entry_of(ROWS))
        made.spool.finish()
        made.send()
        await until(lambda: made.tromso.inputs.pending == [QUERY])
        await until(lambda: made.out._sender.remaining_credits == 0)
        assert made.out._sender.next_seq < 20
        made.relay()
        assert await made.read() == ROWS * 20

    on_the_way(tmp_path, work)


def test_an_empty_channel_passes(tmp_path: Path) -> None:
    async def work(made: Way) -> None:
        made.spool.finish()
        made.relay()
        made.send()
        assert await made.read() == []

    on_the_way(tmp_path, work)


def test_stop_sending_passes_back_to_the_sender(tmp_path: Path) -> None:
    async def work(made: Way) -> None:
        made.spool.append(entry_of(ROWS))
        made.relay()
        made.send()
        assert made.arriving is not None
        arriving = made.arriving
        await until(lambda: arriving.spool.length)
        arriving.channel.stop_sending()
        assert made.sending is not None
        assert await made.sending is ChannelEnd.STOPPED
        assert made.relaying is not None
        await made.relaying

    on_the_way(tmp_path, work)


def test_stop_sending_passes_before_any_row_came(tmp_path: Path) -> None:
    async def work(made: Way) -> None:
        made.relay()
        assert made.arriving is not None
        made.arriving.channel.stop_sending()
        made.send()
        assert made.sending is not None
        assert await made.sending is ChannelEnd.STOPPED

    on_the_way(tmp_path, work)


def test_gone_passes_back_to_the_sender(tmp_path: Path) -> None:
    async def work(made: Way) -> None:
        made.spool.append(entry_of(ROWS))
        made.relay()
        made.send()
        assert made.arriving is not None
        arriving = made.arriving
        await until(lambda: arriving.spool.length)
        made.oslo.inputs.forget(QUERY, 0.0)
        assert made.sending is not None
        assert await made.sending is ChannelEnd.GONE

    on_the_way(tmp_path, work)


def test_an_error_of_the_sender_passes_to_the_receiver(tmp_path: Path) -> None:
    async def work(made: Way) -> None:
        made.spool.append(entry_of(ROWS))
        made.relay()
        made.send()
        assert made.arriving is not None
        arriving = made.arriving
        await until(lambda: arriving.spool.length)
        made.spool.fail(SiteError("the disk of bergen is broken"))
        for task in (made.sending, made.relaying):
            assert task is not None
            with pytest.raises(SkerryError, match="the disk of bergen is broken"):
                await task
        await until(lambda: arriving.spool.failed)
        assert "the disk of bergen is broken" in str(arriving.spool.failed)

    on_the_way(tmp_path, work)


def test_nobody_leaves_the_relay_out(tmp_path: Path) -> None:
    async def work(made: Way) -> None:
        made.spool.finish()
        direct = ChannelOut(
            made.bergen.identity, CHANNEL, made.addresses["oslo"], SCHEMA.arrow, made.spool, LIMITS, Random(1)
        )
        with pytest.raises(PeerError, match="'bergen' cannot send as 'bergen': its rows come here from tromso"):
            await direct.run()

    on_the_way(tmp_path, work)


# --- who takes part ----------------------------------------------------------------------------------
PLAN = plan_of("oslo", "bergen", "tromso", initiator="oslo")


def test_relays_are_found_by_the_routes_and_take_part() -> None:
    assert relays_of(PLAN, QUERY, TOPOLOGY) == {"tromso": (CHANNEL,)}
    alone = plan_of("oslo", "bergen", initiator="oslo")
    core = QueryCore(QUERY, alone, {}, TIMEOUT_S, LIMITS, 0.0, None, relays_of(alone, QUERY, TOPOLOGY))
    assert core.participants == ("bergen", "oslo", "tromso")
    executes = {each.member: each.message for each in core.start() if isinstance(each, Send)}
    assert isinstance(executes["tromso"], Execute)
    assert (executes["tromso"].fragments, executes["tromso"].relays) == ((), (CHANNEL,))
    assert isinstance(executes["bergen"], Execute)
    assert executes["bergen"].relays == ()
    assert core.receive("tromso", Receipt(QUERY, "tromso"), 1.0) == [], "a relay may be done first"
    core.validate()


def test_no_way_is_an_error_that_names_both() -> None:
    one_way = Topology(
        parse(
            "cluster: c\nmembers: {bergen: {address: 'h:1'}, oslo: {address: 'h:2'}}\n"
            "links: [{from: oslo, to: bergen, mbit: 1}]"
        )
    )
    with pytest.raises(ConfigError, match="no link leads from bergen to oslo"):
        relays_of(plan_of("oslo", "bergen", initiator="oslo"), QUERY, one_way)


def test_a_member_that_only_relays_needs_no_plan_and_ends_when_all_has_passed() -> None:
    other = ChannelId(QUERY, 1, "tromso", "oslo")
    execute = msgspec.structs.replace(execute_of(PLAN, "nobody"), relays=(CHANNEL, other))
    core = TaskCore(execute, "nobody", 0.0)
    assert core.begin(None) == [RelayChannel(CHANNEL), RelayChannel(other)]
    core.validate()
    assert core.relayed(CHANNEL) == []
    core.validate()
    assert core.relayed(other) == [Release("complete")]
    assert core.released() == [Send("oslo", Receipt(QUERY, "nobody"))]


def test_a_relay_that_runs_a_fragment_too_passes_rows_before_its_plan_is_there() -> None:
    execute = msgspec.structs.replace(execute_of(PLAN, "tromso"), relays=(CHANNEL,))
    core = TaskCore(execute, "tromso", 0.0)
    relay, request = core.begin(None)
    assert relay == RelayChannel(CHANNEL)
    assert isinstance(request, Send)
    assert isinstance(request.message, PlanRequest)
    assert core.relayed(CHANNEL) == []
    assert core.phase is TaskPhase.PLANNING
    assert [type(each) for each in core.plan_arrived(PLAN)] == [RunFragment]
    core.fragment_done(2, 1, 1, 0.1)
    assert core.output_taken(2, "oslo") == [Release("complete")]


def test_a_member_keeps_the_budgets_of_its_own_links() -> None:
    """Also where the initiator knows none: it may have been taken over."""

    async def test() -> None:
        links = [msgspec.structs.replace(link, query_bytes=100) for link in CONFIG.links]
        member = Member(msgspec.structs.replace(CONFIG, links=tuple(links)), "tromso", None)
        sent: list[Message] = []
        deliver, member.peers.send = member.peers.send, lambda _peer, message: sent.append(message)  # type: ignore[method-assign]
        try:
            execute = execute_of(plan_of("bergen"), "tromso")
            member._receive("oslo", msgspec.structs.replace(execute, fragments=(), relays=(CHANNEL,)))
            participant = member.participants[QUERY]
            (relay,) = participant._relays._all
            relay.out = member.outgoing.channel(CHANNEL, SCHEMA.arrow, RelaySpool(relay._arriving))
            relay.out.sent_bytes = 100
            participant.check_spent()
            assert not sent
            relay.out.sent_bytes = 101
            participant.check_spent()
            (cancel,) = sent
            assert isinstance(cancel, Cancel)
            assert cancel.error.code == Overloaded.code
            assert "101 bytes over the link from tromso to oslo, whose query_bytes is 100" in cancel.error.message
            await participant.wait_ended()
        finally:
            member.peers.send = deliver  # type: ignore[method-assign]
            await member.stop()

    run(test())
