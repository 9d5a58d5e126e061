"""Channels over real connections and real spools: complete, in order, once, whatever happens to the link."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import msgspec
import pytest

from skerry.errors import Overloaded, PeerError, SiteError, SkerryError
from skerry.exchange.spool import Budget, Entry, Spool
from skerry.ids import ChannelId, QueryId
from skerry.limits import ENTRY_BYTES, KIB, MIB, Limits
from skerry.wire.channel import ChannelEnd
from skerry.wire.channels import ChannelIn, ChannelOut, Gone, data_handler
from skerry.wire.frames import Buffer, decode, encode_batch_frame
from skerry.wire.listener import Listener
from skerry.wire.messages import Batch, ChannelOk, Grant, OpenChannel, Ping, Refused
from skerry.wire.session import make_hello
from skerry.wire.tcp import Connection, connect, login
from tests.unit.wire.looping import BERGEN, OSLO, QUICK, Cutter, run, until

CHANNEL = ChannelId(QueryId("oslo", "0" * 32), 1, "bergen", "oslo")
SMALL = msgspec.structs.replace(QUICK, first_credits_bytes=64 * KIB)


class Receiver:
    """oslo, which receives one channel into a spool."""

    def __init__(self, folder: Path, limits: Limits = SMALL, budget: Budget | None = None, **options: bool) -> None:
        self.limits = limits
        self.spool = Spool(budget or Budget(64 * MIB, 0), folder, "in")
        self.seqs: list[int] = []
        self.errors: list[SkerryError] = []
        self.lookups: list[OpenChannel] = []
        self.channel = ChannelIn(
            CHANNEL, limits, append=self.append, finish=self.spool.finish, fail=self.fail, **options
        )
        self.found: ChannelIn | Gone = self.channel
        self.identity = OSLO
        self.listener: Listener | None = None

    def append(self, header: Batch, body: Buffer) -> None:
        self.spool.append(Entry(bytes(body), header.rows, header.decoded_bytes))
        self.seqs.append(header.seq)

    def fail(self, error: SkerryError) -> None:
        self.errors.append(error)

    def lookup(self, opening: OpenChannel) -> ChannelIn | Gone:
        self.lookups.append(opening)
        return self.found

    async def start(self, address: str = "tcp:127.0.0.1:0") -> str:
        handlers = {"data": data_handler(self.lookup, self.limits)}
        self.listener = await Listener.start(address, self.limits, self.identity, handlers)
        return self.listener.address

    async def stop(self) -> None:
        assert self.listener is not None
        await until(lambda: self.listener is not None and self.listener.connections == 0)
        await self.listener.stop()
        self.spool.close()

    def bodies(self) -> list[bytes]:
        return [bytes(self.spool.read(index).body) for index in range(self.spool.length)]


class Sender:
    """bergen, which sends a spool."""

    def __init__(self, folder: Path, address: str, limits: Limits = SMALL, wait_s: float | None = None) -> None:
        self.spool = Spool(Budget(64 * MIB, 0), folder, "out")
        self.bodies: list[bytes] = []
        self.out = ChannelOut(BERGEN, CHANNEL, address, b"schema", self.spool, limits, Random(1), wait_s=wait_s)

    def put(self, *sizes: int) -> None:
        for size in sizes:
            body = os.urandom(size)
            self.bodies.append(body)
            self.spool.append(Entry(body, 10, size))


def test_a_channel_arrives_whole_and_in_order(tmp_path: Path) -> None:
    async def main() -> None:
        receiver = Receiver(tmp_path)
        sender = Sender(tmp_path, await receiver.start())
        task = asyncio.create_task(sender.out.run())
        sender.put(1, 10_000)
        await until(lambda: receiver.spool.length == 2)
        assert not task.done()
        sender.put(200_000, *[30_000] * 50, 7)  # one far over the credit, many more than the window
        sender.spool.finish()
        assert await task is ChannelEnd.FINISHED
        assert receiver.bodies() == sender.bodies
        assert receiver.spool.finished
        assert receiver.channel.schema == b"schema"
        assert sender.out.sent_rows == receiver.channel.received_rows == 540
        assert sender.out.sent_bytes == receiver.channel.received_bytes > sum(map(len, sender.bodies))
        assert sender.spool.first == sender.spool.length  # what is acked is released
        assert receiver.errors == []
        await receiver.stop()
        sender.spool.close()

    run(main())


def test_tiny_batches_hold_no_more_of_their_receiver_than_its_window(tmp_path: Path) -> None:
    """What it takes to keep account of a batch is paid for with credit too."""

    async def main() -> None:
        budget = Budget(64 * MIB, 0)
        receiver = Receiver(tmp_path, budget=budget, grant_on_consumption=True)
        sender = Sender(tmp_path, await receiver.start())
        sender.put(*[1] * 1000)
        sender.spool.finish()
        task = asyncio.create_task(sender.out.run())
        await until(lambda: sender.out._sender.acked_upto and not sender.out._sender.remaining_credits)
        await until(lambda: receiver.spool.length == sender.out._sender.sent_upto)
        window = SMALL.first_credits_bytes
        assert window <= budget.memory_used <= window + 1 + ENTRY_BYTES
        while not task.done():
            while receiver.spool.first < receiver.spool.length:
                size = receiver.spool.read(receiver.spool.first).decoded_bytes
                receiver.spool.release(receiver.spool.first + 1)
                receiver.channel.consumed(size)
                assert budget.memory_used <= window + 1 + ENTRY_BYTES
            await asyncio.sleep(0)
        assert task.result() is ChannelEnd.FINISHED
        assert len(receiver.seqs) == 1000
        await receiver.stop()
        sender.spool.close()

    run(main())


def test_an_empty_channel_over_a_unix_socket(tmp_path: Path) -> None:
    async def main() -> None:
        receiver = Receiver(tmp_path)
        sender = Sender(tmp_path, await receiver.start(f"unix:{tmp_path}/s"))
        sender.spool.finish()
        assert await sender.out.run() is ChannelEnd.FINISHED
        assert (receiver.spool.finished, receiver.spool.length) == (True, 0)
        await receiver.stop()

    run(main())


@pytest.mark.parametrize("seed", range(3))
def test_cuts_anywhere_lose_and_double_nothing(tmp_path: Path, seed: int) -> None:
    random = Random(seed)

    async def main() -> None:
        receiver = Receiver(tmp_path)
        address = await receiver.start()
        cutter = Cutter()
        sender = Sender(tmp_path, await cutter.front(lambda: address))
        task = asyncio.create_task(sender.out.run())
        cuts = 0
        for _ in range(150):
            sender.put(random.randrange(1, 20_000))
            if random.random() < 0.1:
                cutter.cut_after_bytes = cutter.forwarded_bytes + random.randrange(20_000)
                cuts += 1
            if random.random() < 0.3:
                await asyncio.sleep(0.001)
        sender.spool.finish()
        assert await task is ChannelEnd.FINISHED
        assert cuts > 5
        assert len(receiver.lookups) > 1
        assert receiver.bodies() == sender.bodies
        assert receiver.seqs == list(range(150))
        assert receiver.errors == []
        assert sender.out.sent_rows == 1500
        await cutter.close()
        await receiver.stop()
        sender.spool.close()

    run(main())


def test_credit_follows_consumption_and_bounds_what_is_sent(tmp_path: Path) -> None:
    async def main() -> None:
        receiver = Receiver(tmp_path, grant_on_consumption=True)
        sender = Sender(tmp_path, await receiver.start())
        sender.put(*[10_000] * 40)
        sender.spool.finish()
        task = asyncio.create_task(sender.out.run())
        for consumed in range(40):
            while receiver.spool.length <= consumed:
                await asyncio.sleep(0.001)
            held = sum(receiver.spool.read(index).decoded_bytes for index in range(consumed, receiver.spool.length))
            assert held <= SMALL.first_credits_bytes + 10_000
            receiver.channel.consumed(receiver.spool.read(consumed).decoded_bytes)
        assert await task is ChannelEnd.FINISHED
        assert receiver.bodies() == sender.bodies
        assert sender.out.stalled_s > 0  # 40 batches, and credit for 7 at a time
        await receiver.stop()
        sender.spool.close()

    run(main())


def test_a_pending_channel_takes_the_first_credits_and_goes_on_when_activated(tmp_path: Path) -> None:
    async def main() -> None:
        receiver = Receiver(tmp_path, pending=True)
        sender = Sender(tmp_path, await receiver.start())
        sender.put(*[16 * KIB] * 20)
        sender.spool.finish()
        task = asyncio.create_task(sender.out.run())
        await until(lambda: receiver.spool.length == 4)
        await asyncio.sleep(0.02)
        assert receiver.spool.length == 4
        assert receiver.channel.is_pending
        receiver.channel.activate()
        assert await task is ChannelEnd.FINISHED
        assert receiver.bodies() == sender.bodies
        await receiver.stop()
        sender.spool.close()

    run(main())


def test_stop_sending_ends_the_sender_cleanly_also_when_it_reconnects(tmp_path: Path) -> None:
    async def main() -> None:
        receiver = Receiver(tmp_path)
        address = await receiver.start()
        sender = Sender(tmp_path, address)
        sender.put(100)
        task = asyncio.create_task(sender.out.run())
        await until(lambda: receiver.spool.length == 1)
        receiver.channel.stop_sending()
        assert await task is ChannelEnd.STOPPED
        again = Sender(tmp_path, address)
        assert await again.out.run() is ChannelEnd.STOPPED
        assert (receiver.errors, receiver.spool.finished) == ([], False)
        await receiver.stop()
        sender.spool.close()

    run(main())


def test_gone_ends_the_sender(tmp_path: Path) -> None:
    async def main() -> None:
        receiver = Receiver(tmp_path)
        sender = Sender(tmp_path, await receiver.start())
        receiver.found = Gone.GONE
        assert await sender.out.run() is ChannelEnd.GONE
        receiver.found = receiver.channel
        receiver.channel.close()
        assert await sender.out.run() is ChannelEnd.GONE
        await receiver.stop()

    run(main())


def test_a_closed_channel_makes_its_sender_learn_that_it_is_gone(tmp_path: Path) -> None:
    async def main() -> None:
        receiver = Receiver(tmp_path)
        sender = Sender(tmp_path, await receiver.start())
        sender.put(100)
        task = asyncio.create_task(sender.out.run())
        await until(lambda: receiver.spool.length == 1)
        receiver.channel.close()
        assert await task is ChannelEnd.GONE
        assert receiver.errors == []
        await receiver.stop()
        sender.spool.close()

    run(main())


def test_a_refused_connection_is_a_site_error_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        receiver = Receiver(tmp_path)
        address = await receiver.start()
        sender = Sender(tmp_path, address, wait_s=1000.0)
        sender.put(100)
        task = asyncio.create_task(sender.out.run())
        await until(lambda: receiver.spool.length == 1)
        assert receiver.listener is not None
        await receiver.listener.stop()
        with pytest.raises(SiteError, match=r"site oslo is down: connection refused at 127.0.0.1:\d+"):
            await task
        receiver.channel.close()
        await receiver.stop()
        sender.spool.close()

    run(main())


def test_silence_is_waited_out_and_then_ends_both_sides(tmp_path: Path) -> None:
    limits = msgspec.structs.replace(SMALL, wait_s=1.0, login_s=0.5)  # time enough for the login on a busy machine

    async def main() -> None:
        receiver = Receiver(tmp_path, limits)
        address = await receiver.start()
        cutter = Cutter()
        sender = Sender(tmp_path, await cutter.front(lambda: address), limits)
        sender.put(100)
        task = asyncio.create_task(sender.out.run())
        await until(lambda: receiver.spool.length == 1)
        cutter.is_frozen = True
        cutter.cut()
        with pytest.raises(SiteError, match=r"site oslo is down: no connection to .* for 1 s"):
            await task
        await until(lambda: receiver.errors)
        assert receiver.errors[0].message == "site bergen is down: its channel had no connection for 1 s"
        await cutter.close()
        await receiver.stop()
        sender.spool.close()

    run(main())


def test_a_receiver_that_restarted_is_a_site_error(tmp_path: Path) -> None:
    async def main() -> None:
        receiver, again = Receiver(tmp_path), Receiver(tmp_path)
        addresses = [await receiver.start()]
        cutter = Cutter()
        sender = Sender(tmp_path, await cutter.front(lambda: addresses[-1]))
        sender.put(100)
        task = asyncio.create_task(sender.out.run())
        await until(lambda: receiver.spool.length == 1)
        again.identity = msgspec.structs.replace(OSLO, epoch=12)
        addresses.append(await again.start())
        cutter.cut()
        with pytest.raises(SiteError, match="site oslo is down: it restarted"):
            await task
        assert again.lookups == []
        receiver.channel.close()
        for one in (receiver, again):
            await one.stop()
        await cutter.close()
        sender.spool.close()

    run(main())


def test_a_full_spool_fails_both_sides_with_the_reason(tmp_path: Path) -> None:
    async def main() -> None:
        receiver = Receiver(tmp_path, budget=Budget(50_000, 0))
        sender = Sender(tmp_path, await receiver.start())
        sender.put(*[10_000] * 10)
        with pytest.raises(Overloaded, match="spool full"):
            await sender.out.run()
        assert [type(error) for error in receiver.errors] == [Overloaded]
        await receiver.stop()
        sender.spool.close()

    run(main())


def test_a_failed_spool_fails_both_sides_with_its_error(tmp_path: Path) -> None:
    async def main() -> None:
        receiver = Receiver(tmp_path)
        sender = Sender(tmp_path, await receiver.start())
        sender.put(100)
        task = asyncio.create_task(sender.out.run())
        await until(lambda: receiver.spool.length == 1)
        sender.spool.fail(SiteError("site bergen: Spark is out of memory", member="bergen"))
        with pytest.raises(SiteError, match="out of memory"):
            await task
        await until(lambda: receiver.errors)
        assert [(type(error), error.message) for error in receiver.errors] == [
            (SiteError, "site bergen: Spark is out of memory")
        ]
        assert not receiver.spool.finished
        await receiver.stop()
        sender.spool.close()

    run(main())


def test_a_batch_over_the_frame_limit_is_a_clear_error(tmp_path: Path) -> None:
    limits = msgspec.structs.replace(SMALL, frame_bytes=100_000)

    async def main() -> None:
        receiver = Receiver(tmp_path, limits)
        sender = Sender(tmp_path, await receiver.start(), limits)
        sender.put(100_000)
        with pytest.raises(Overloaded, match="a batch of 100000 bytes is over the limit of a frame"):
            await sender.out.run()
        receiver.channel.close()
        await receiver.stop()
        sender.spool.close()

    run(main())


async def open_raw(address: str, opening: OpenChannel) -> Connection:
    connection = await connect(address, SMALL)
    await login(connection, make_hello(BERGEN, "data"))
    connection.send(opening)
    return connection


async def answer(connection: Connection) -> object:
    frame = await connection.receive(5.0)
    return None if frame is None else decode(frame)


def test_a_new_connection_wins_over_the_old_one(tmp_path: Path) -> None:
    async def main() -> None:
        receiver = Receiver(tmp_path)
        address = await receiver.start()
        old = await open_raw(address, OpenChannel(CHANNEL, b"", 0))
        assert isinstance(await answer(old), ChannelOk)
        old.send_parts(encode_batch_frame(Batch(0, 0, False, 1, 5, 0), b"first"))
        await until(lambda: receiver.spool.length == 1)
        new = await open_raw(address, OpenChannel(CHANNEL, b"", 0))
        assert await answer(new) == ChannelOk(1, 64 * KIB + 5)
        assert await answer(new) == Grant(1, 64 * KIB + 5)
        new.send_parts(encode_batch_frame(Batch(0, 0, False, 1, 5, 0), b"again"))
        new.send_parts(encode_batch_frame(Batch(1, 0, True, 1, 6, 0), b"second"))
        assert await answer(new) == Grant(2, 64 * KIB + 11)
        assert receiver.bodies() == [b"first", b"second"]
        assert receiver.spool.finished
        for connection in (old, new):
            connection.abort()
            await connection.wait_closed()
        await receiver.stop()

    run(main())


def gap(connection: Connection) -> None:
    connection.send_parts(encode_batch_frame(Batch(1, 0, False, 1, 5, 0), b"third"))


def cheat(connection: Connection) -> None:
    connection.send_parts(encode_batch_frame(Batch(0, 0, False, 1, 0, 0), b"not for free"))


def flood(connection: Connection) -> None:
    for seq in range(3):
        connection.send_parts(encode_batch_frame(Batch(seq, 0, False, 1, 40_000, 0), bytes(100)))


def chat(connection: Connection) -> None:
    connection.send(Ping(1))


@pytest.mark.parametrize(
    ("misbehave", "reason"),
    [
        (gap, "batch 1 came where 0 was due"),
        (cheat, "counts 0 bytes and has 12"),
        (flood, "batch 2 came without credit"),
        (chat, "Ping does not belong"),
    ],
)
def test_a_sender_that_breaks_the_protocol_is_refused(
    tmp_path: Path, misbehave: Callable[[Connection], None], reason: str
) -> None:
    async def main() -> None:
        receiver = Receiver(tmp_path, grant_on_consumption=True)
        connection = await open_raw(await receiver.start(), OpenChannel(CHANNEL, b"", 0))
        assert isinstance(await answer(connection), ChannelOk)
        misbehave(connection)
        refused = await answer(connection)
        while isinstance(refused, Grant):
            refused = await answer(connection)
        assert isinstance(refused, Refused)
        assert reason in refused.error.message
        assert [type(error) for error in receiver.errors] == [PeerError]
        connection.abort()
        await connection.wait_closed()
        await receiver.stop()

    run(main())


def test_nobody_sends_in_another_s_name(tmp_path: Path) -> None:
    async def main() -> None:
        receiver = Receiver(tmp_path)
        foreign = msgspec.structs.replace(CHANNEL, sender="tromso")
        connection = await open_raw(await receiver.start(), OpenChannel(foreign, b"", 0))
        refused = await answer(connection)
        assert isinstance(refused, Refused)
        assert "'bergen' cannot send as 'tromso'" in refused.error.message
        assert receiver.lookups == []
        connection.abort()
        await connection.wait_closed()
        await receiver.stop()

    run(main())


def test_a_cancelled_sender_leaves_nothing_open(tmp_path: Path) -> None:
    async def main() -> None:
        receiver = Receiver(tmp_path)
        sender = Sender(tmp_path, await receiver.start())
        sender.put(100)
        task = asyncio.create_task(sender.out.run())
        await until(lambda: receiver.spool.length == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: receiver.listener is not None and receiver.listener.connections == 0)
        receiver.channel.close()
        await receiver.stop()
        sender.spool.close()

    run(main())
