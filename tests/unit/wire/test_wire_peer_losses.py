"""Peers that are lost: refused dials, kills, restarts, silence, and when they are dialled again."""

from __future__ import annotations

import asyncio
from random import Random

import msgspec
import pytest

from skerry.model.limits import Limits
from skerry.wire.frames import encode_message
from skerry.wire.peers import backoff_s
from tests.unit.wire.control_members import Member, behind_cutter, two
from tests.unit.wire.looping import BERGEN, OSLO, QUICK, run, until


def test_a_refused_dial_is_a_loss_and_a_later_send_dials_anew() -> None:
    async def main() -> None:
        oslo, bergen = await two()
        assert bergen.listener is not None
        address = bergen.listener.address
        await bergen.stop()
        where = address.removeprefix("tcp:")
        oslo.send("bergen", 1)
        await until(lambda: len(oslo.losses) == 1)
        oslo.send("bergen", 1)
        await until(lambda: len(oslo.losses) == 2)
        assert oslo.losses == [f"site bergen is down: connection refused at {where}"] * 2
        assert oslo.peers is not None
        assert oslo.peers.state("bergen") == "down"
        await bergen.start(address)
        oslo.send("bergen", 2)
        await until(lambda: bergen.numbers)
        assert bergen.numbers == [2]  # what was queued for the lost peer is dropped
        assert len(oslo.losses) == 2
        await oslo.stop()
        await bergen.stop()

    run(main())


def test_only_a_peer_that_was_there_before_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """Members that are started together dial before all of them listen."""

    async def main() -> None:
        oslo, bergen = await two()
        assert bergen.listener is not None
        address = bergen.listener.address
        await bergen.stop()
        with caplog.at_level("INFO", "skerry.wire"):
            oslo.send("bergen", 1)
            await until(lambda: len(oslo.losses) == 1)
            assert ("INFO", "oslo: bergen does not listen yet") in _said(caplog)
            assert not [text for level, text in _said(caplog) if level == "WARNING"]
            await bergen.start(address)
            oslo.send("bergen", 2)
            await until(lambda: bergen.numbers)
            await bergen.crash()
            await until(lambda: len(oslo.losses) == 2)
            oslo.send("bergen", 3)
            await until(lambda: len(oslo.losses) == 3)
        assert [text for level, text in _said(caplog) if level == "WARNING"] == [f"oslo: {oslo.losses[1]}"] * 2
        await oslo.stop()
        await bergen.stop()

    run(main())


def _said(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in caplog.records]


def test_a_killed_peer_is_noticed_at_once_and_welcome_when_it_returns() -> None:
    async def main() -> None:
        oslo, bergen = await two()
        oslo.send("bergen", 1)
        await until(lambda: bergen.numbers)
        assert bergen.listener is not None
        address = bergen.listener.address
        await bergen.crash()
        await until(lambda: oslo.losses)
        assert "connection refused" in oslo.losses[0]  # not waited out
        again = await Member(msgspec.structs.replace(BERGEN, epoch=23), bergen.addresses).start(address)
        again.send("oslo", 5)
        await until(lambda: oslo.numbers)
        assert oslo.ups == [("bergen", 22), ("bergen", 23)]
        assert len(oslo.losses) == 1
        await oslo.stop()
        await again.stop()

    run(main())


def test_a_peer_that_restarted_unnoticed_is_lost_by_its_epoch() -> None:
    async def main() -> None:
        oslo, bergen, cutter = await behind_cutter()
        oslo.send("bergen", 1)
        await until(lambda: bergen.numbers)
        assert bergen.listener is not None
        address = bergen.listener.address
        cutter.is_frozen = True  # oslo sees nothing of the change
        oslo.send("bergen", 2)
        await bergen.crash()
        again = await Member(msgspec.structs.replace(BERGEN, epoch=23), bergen.addresses).start(address)
        cutter.is_frozen = False
        cutter.cut()
        await until(lambda: oslo.losses)
        assert oslo.losses == ["site bergen is down: it restarted"]
        assert again.numbers == []
        oslo.send("bergen", 3)
        await until(lambda: again.numbers)
        assert (again.numbers, again.losses, again.ups) == ([3], [], [("oslo", 11)])
        await oslo.stop()
        await again.stop()
        await cutter.close()

    run(main())


def test_silence_shorter_than_the_wait_is_survived() -> None:
    async def main() -> None:
        oslo, bergen, cutter = await behind_cutter()
        oslo.send("bergen", 1)
        await until(lambda: bergen.numbers)
        assert oslo.peers is not None
        cutter.is_frozen = True
        await until(lambda: oslo.peers is not None and oslo.peers.state("bergen") == "down")
        oslo.send("bergen", 2)
        bergen.send("oslo", 3)
        cutter.is_frozen = False
        await until(lambda: len(bergen.numbers) == 2 and oslo.numbers)
        assert (bergen.numbers, oslo.numbers) == ([1, 2], [3])
        assert (oslo.losses, bergen.losses) == ([], [])
        await oslo.stop()
        await bergen.stop()
        await cutter.close()

    run(main())


def test_longer_silence_is_a_loss_for_both_and_a_fresh_start_later() -> None:
    limits = msgspec.structs.replace(QUICK, wait_s=1.0, login_s=0.5)

    async def main() -> None:
        oslo, bergen, cutter = await behind_cutter(limits)
        oslo.send("bergen", 1)
        bergen.send("oslo", 1)
        oslo.be_patient()
        bergen.be_patient()
        await until(lambda: bergen.numbers and oslo.numbers)
        oslo.be_patient(False)
        bergen.be_patient(False)
        cutter.is_frozen = True
        await until(lambda: oslo.losses and bergen.losses)
        assert oslo.losses == ["site bergen is down: no connection for 1 s"]
        assert bergen.losses == ["site oslo is down: no connection for 1 s"]
        cutter.is_frozen = False
        for number in (2, 3):
            oslo.send("bergen", number)
        oslo.be_patient()
        await until(lambda: bergen.numbers == [1, 2, 3])
        bergen.send("oslo", 4)
        await until(lambda: oslo.numbers == [1, 4])
        assert (len(oslo.losses), len(bergen.losses)) == (1, 1)
        await oslo.stop()
        await bergen.stop()
        await cutter.close()

    run(main())


def test_one_side_that_gave_up_makes_the_other_start_afresh_too() -> None:
    async def main() -> None:
        # bergen waits long, oslo gives up soon.
        oslo, bergen, cutter = await behind_cutter()
        assert oslo.peers is not None
        oslo.send("bergen", 1)
        await until(lambda: bergen.numbers)
        cutter.is_frozen = True
        pair = oslo.peers._pairs["bergen"]
        session = pair.session
        assert session is not None
        pair._perform(session, session.refused("nowhere"))
        cutter.is_frozen = False
        cutter.cut()
        oslo.send("bergen", 2)
        await until(lambda: len(bergen.numbers) == 2)
        assert bergen.losses == ["site oslo is down: it gave up waiting"]
        assert bergen.ups == [("oslo", 11), ("oslo", 11)]
        await oslo.stop()
        await bergen.stop()
        await cutter.close()

    run(main())


def test_another_version_is_told_as_a_loss() -> None:
    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from skerry.wire.messages import Failure, Refused

        await reader.read(10)
        for part in encode_message(Refused(Failure(201, "bergen speaks 7"))):
            writer.write(bytes(part))
        writer.write_eof()
        await reader.read()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(reply, "127.0.0.1", 0)
        address = f"tcp:127.0.0.1:{server.sockets[0].getsockname()[1]}"
        oslo = await Member(OSLO, {"bergen": address}).start()
        assert oslo.peers is not None
        oslo.peers.reach("bergen")
        await until(lambda: oslo.losses)
        assert oslo.losses == ["site bergen cannot be used: bergen speaks 7"]
        await oslo.stop()
        server.close()
        await server.wait_closed()

    run(main())


def test_links_that_end_as_soon_as_they_begin_are_not_dialled_without_pause() -> None:
    limits = msgspec.structs.replace(QUICK, wait_s=0.7)
    dials = 0

    async def slam(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal dials
        dials += 1
        await reader.read(10)
        writer.transport.abort()

    async def main() -> None:
        server = await asyncio.start_server(slam, "127.0.0.1", 0)
        oslo = await Member(OSLO, {"bergen": f"tcp:127.0.0.1:{server.sockets[0].getsockname()[1]}"}, limits).start()
        oslo.send("bergen", 1)
        oslo.be_patient()
        await until(lambda: dials > 2)
        oslo.be_patient(False)
        await until(lambda: oslo.losses)
        assert oslo.losses == ["site bergen is down: no connection for 0.7 s"]
        assert dials < 50
        await oslo.stop()
        server.close()
        await server.wait_closed()

    run(main())


def test_back_off_doubles_with_jitter_up_to_its_bound() -> None:
    limits = Limits()
    for attempt, most in ((0, 0.05), (1, 0.1), (3, 0.4), (10, 2.0), (10_000, 2.0)):
        pauses = {backoff_s(attempt, limits, Random(seed)) for seed in range(50)}
        assert most / 2 <= min(pauses) < max(pauses) <= most
