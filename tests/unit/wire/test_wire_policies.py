"""What fault policies ask of channels and sessions: not to wait at all, or longer than usual."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from skerry.model.errors import SiteError
from skerry.wire.channel import ChannelEnd
from skerry.wire.session import PeerLost, Session
from tests.unit.wire.channel_ends import CHANNEL, SMALL, Receiver, Sender
from tests.unit.wire.looping import OSLO, QUICK, Cutter, run, until


def test_a_channel_that_does_not_wait_ends_with_its_first_connection(tmp_path: Path) -> None:
    async def main() -> None:
        receiver = Receiver(tmp_path)
        receiver.channel.wait_for(0.0)
        address = await receiver.start()
        cutter = Cutter()
        sender = Sender(tmp_path, await cutter.front(lambda: address), wait_s=0.0)
        sender.put(100)
        task = asyncio.create_task(sender.out.run())
        await until(lambda: receiver.spool.length == 1)
        cutter.cut()
        with pytest.raises(SiteError, match="site oslo is down: its connection was lost, and this query does not wait"):
            await task
        await until(lambda: receiver.errors)
        assert receiver.errors[0].message == "site bergen is down: its channel had no connection for 0 s"
        assert len(receiver.lookups) == 1
        await cutter.close()
        await receiver.stop()
        sender.spool.close()

    run(main())


def test_a_channel_that_buffers_outlasts_the_usual_wait(tmp_path: Path) -> None:
    limits = msgspec.structs.replace(SMALL, wait_s=0.1, login_s=0.1)

    async def main() -> None:
        receiver = Receiver(tmp_path, limits)
        receiver.channel.wait_for(60.0)
        address = await receiver.start()
        cutter = Cutter()
        sender = Sender(tmp_path, await cutter.front(lambda: address), limits, wait_s=60.0)
        sender.put(100)
        task = asyncio.create_task(sender.out.run())
        await until(lambda: receiver.spool.length == 1)
        cutter.is_frozen = True
        cutter.cut()
        sender.put(*[1000] * 20)
        await asyncio.sleep(3 * limits.wait_s)  # what would end it otherwise
        assert not task.done()
        assert receiver.errors == []
        cutter.is_frozen = False
        sender.spool.finish()
        assert await task is ChannelEnd.FINISHED
        assert receiver.bodies() == sender.bodies
        await cutter.close()
        await receiver.stop()
        sender.spool.close()

    run(main())


class Void:
    """Where connections are taken, and nothing is ever answered."""

    def __init__(self) -> None:
        self.writers: list[asyncio.StreamWriter] = []

    async def start(self) -> str:
        async def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.writers.append(writer)

        self._server = await asyncio.start_server(accept, "127.0.0.1", 0)
        return f"tcp:127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        self._server.close()
        for writer in self.writers:
            writer.transport.abort()
        await self._server.wait_closed()


# Nobody would see the end of these by waiting.
_FOREVER = {"reconnect_first_s": 1e5, "reconnect_max_s": 1e5, "wait_s": 1e6}


@pytest.mark.parametrize("login_s", [1e6, 0.05], ids=["in a dial", "in the pause after it"])
def test_a_channel_dials_at_once_when_its_peer_is_back(
    tmp_path: Path, login_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    limits = msgspec.structs.replace(SMALL, login_s=login_s, **_FOREVER)
    caplog.set_level("DEBUG", "skerry.wire")

    async def main() -> None:
        receiver, void, cutter = Receiver(tmp_path), Void(), Cutter()
        nowhere, somewhere = await void.start(), await receiver.start()
        reached = nowhere
        sender = Sender(tmp_path, await cutter.front(lambda: reached), limits)
        sender.put(100, 200)
        sender.spool.finish()
        task = asyncio.create_task(sender.out.run())
        # Whether it was the connection or the answer to Hello that took too long.
        await until(lambda: void.writers and (login_s > 1 or f"{CHANNEL}: " in caplog.text))
        reached = somewhere
        assert receiver.lookups == []
        sender.out.peer_is_back(0.0)
        assert await task is ChannelEnd.FINISHED
        assert len(void.writers) == len(receiver.lookups) == 1  # two dials, and not more
        assert receiver.bodies() == sender.bodies
        await cutter.close()
        await void.stop()
        await receiver.stop()
        sender.spool.close()

    run(main())


@pytest.mark.parametrize(
    ("wait_s", "heard_later", "dials"),
    [(60.0, False, 2), (60.0, True, 1), (0.0, False, 1)],
    ids=["as silent as its peer was", "heard since", "of a query that does not wait"],
)
def test_a_silent_connection_is_given_up_when_its_peer_is_back(
    tmp_path: Path, wait_s: float, heard_later: bool, dials: int
) -> None:
    limits = msgspec.structs.replace(SMALL, heartbeat_s=0.001)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        receiver, cutter = Receiver(tmp_path), Cutter()
        address = await receiver.start()
        sender = Sender(tmp_path, await cutter.front(lambda: address), limits, wait_s=wait_s)
        task = asyncio.create_task(sender.out.run())
        began_at = loop.time()
        await until(lambda: loop.time() > began_at + 0.001)  # a heartbeat
        sender.put(100)
        await until(lambda: sender.out._sender.acked_upto == 1)
        heard_at = began_at if heard_later else loop.time()
        await until(lambda: loop.time() > heard_at + 0.003)  # three heartbeats
        cutter.is_frozen = True
        sender.put(200)
        sender.out.peer_is_back(heard_at)
        cutter.is_frozen = False
        sender.spool.finish()
        assert await task is ChannelEnd.FINISHED
        assert len(receiver.lookups) == dials
        assert receiver.bodies() == sender.bodies
        await cutter.close()
        await receiver.stop()
        sender.spool.close()

    run(main())


def test_a_session_outlasts_the_longest_wait_that_is_asked_for() -> None:
    session = Session(OSLO, "bergen", 1, QUICK, 0.0)
    session.wait_s = 100.0
    assert session.deadline == 100.0
    assert session.tick(99.0) == []
    session.wait_s = QUICK.wait_s
    (lost,) = session.tick(99.0)
    assert isinstance(lost, PeerLost)
    assert f"no connection for {QUICK.wait_s:g} s" in lost.error.message
