"""Channels over real connections and real spools: complete, in order, once, whatever happens to the link."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from skerry.exchange.spool import Budget
from skerry.model.limits import ENTRY_BYTES, KIB, MIB
from skerry.wire.channel import ChannelEnd
from skerry.wire.channels import Gone
from tests.unit.wire.channel_ends import SMALL, Receiver, Sender
from tests.unit.wire.looping import Cutter, run, until


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
