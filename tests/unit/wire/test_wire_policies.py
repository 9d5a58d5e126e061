"""What fault policies ask of channels and sessions: not to wait at all, or longer than usual."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from skerry.errors import SiteError
from skerry.wire.channel import ChannelEnd
from skerry.wire.session import PeerLost, Session
from tests.unit.wire.looping import OSLO, QUICK, Cutter, run, until
from tests.unit.wire.test_wire_channels import SMALL, Receiver, Sender


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


def test_a_session_outlasts_the_longest_wait_that_is_asked_for() -> None:
    session = Session(OSLO, "bergen", 1, QUICK, 0.0)
    session.wait_s = 100.0
    assert session.deadline == 100.0
    assert session.tick(99.0) == []
    session.wait_s = QUICK.wait_s
    (lost,) = session.tick(99.0)
    assert isinstance(lost, PeerLost)
    assert f"no connection for {QUICK.wait_s:g} s" in lost.error.message
