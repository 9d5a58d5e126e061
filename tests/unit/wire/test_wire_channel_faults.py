"""What may befall a channel: refused dials, silence, restarts, full spools, and senders that break the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from skerry.exchange.spool import Budget
from skerry.model.errors import Overloaded, PeerError, SiteError
from skerry.model.limits import KIB
from skerry.wire.frames import decode, encode_batch_frame
from skerry.wire.greeting import make_hello
from skerry.wire.messages import Batch, ChannelOk, Grant, OpenChannel, Ping, Refused
from skerry.wire.tcp import Connection, connect, login
from tests.unit.wire.channel_ends import CHANNEL, SMALL, Receiver, Sender
from tests.unit.wire.control_members import lasting_address
from tests.unit.wire.looping import BERGEN, OSLO, SECRET, Cutter, run, until


def test_a_refused_connection_is_a_site_error_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        receiver = Receiver(tmp_path)
        address = await receiver.start(lasting_address())
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
    limits = msgspec.structs.replace(SMALL, login_s=0.5)

    async def main() -> None:
        receiver = Receiver(tmp_path, limits)
        address = await receiver.start()
        cutter = Cutter()
        sender = Sender(tmp_path, await cutter.front(lambda: address), limits)
        sender.put(100)
        task = asyncio.create_task(sender.out.run())
        await until(lambda: receiver.spool.length == 1)
        sender.out._wait_s = 1.0  # not before: the first dial may take a busy machine longer
        receiver.channel.wait_for(1.0)
        cutter.is_frozen = True
        cutter.cut()
        with pytest.raises(SiteError, match=r"site oslo is down: no connection to .* for 1 s"):
            await task
        await until(lambda: receiver.errors)
        assert receiver.errors[0].message == "site bergen is down: its channel had no connection for 1.5 s"
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
    await login(connection, make_hello(BERGEN, "data"), SECRET, "oslo")
    connection.send(opening)
    return connection


async def answer(connection: Connection) -> object:
    frame = await connection.receive()
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
