"""Channels that compress on their way out: the same rows, fewer bytes on the link, credits in decoded bytes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import msgspec
import pyarrow as pa
import pytest

from skerry.exchange.spool import Budget, Entry, Spool
from skerry.model.errors import PeerError, SkerryError
from skerry.model.ids import ChannelId, QueryId
from skerry.model.limits import KIB, MIB
from skerry.wire.channel import ChannelEnd
from skerry.wire.channels import ChannelIn, ChannelOut, data_handler
from skerry.wire.codec import decode_batch, decoded_bytes, encode_batch, encode_schema
from skerry.wire.frames import Buffer
from skerry.wire.greeting import make_hello
from skerry.wire.listener import Listener
from skerry.wire.messages import Batch, OpenChannel
from skerry.wire.tcp import connect, login
from tests.unit.wire.looping import BERGEN, OSLO, QUICK, SECRET, Cutter, run, until

CHANNEL = ChannelId(QueryId("oslo", "0" * 32), 1, "bergen", "oslo")
LIMITS = msgspec.structs.replace(QUICK, first_credits_bytes=256 * KIB)
SCHEMA = pa.schema([("id", pa.int64()), ("note", pa.string())])


def rows(first: int, count: int) -> pa.RecordBatch:
    ids = range(first, first + count)
    return pa.record_batch([list(ids), [f"a note that says the same, {each % 5}" for each in ids]], schema=SCHEMA)


class Receiver:
    """oslo: decodes as a member does, keeps what came as it came."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.batches: list[pa.RecordBatch] = []
        self.errors: list[SkerryError] = []
        self.finished = False
        self.channel = ChannelIn(CHANNEL, LIMITS, append=self.append, finish=self.finish, fail=self.errors.append)

    def append(self, header: Batch, body: Buffer) -> None:
        self.batches.append(decode_batch(body, SCHEMA, LIMITS.frame_bytes, header.decoded_bytes))
        self.bodies.append(bytes(body))

    def finish(self) -> None:
        self.finished = True

    async def start(self) -> Listener:
        handlers = {"data": data_handler(lambda _opening: self.channel, LIMITS)}
        return await Listener.start("tcp:127.0.0.1:0", LIMITS, OSLO, handlers)


@pytest.mark.parametrize("codec", ["", "lz4", "zstd"])
def test_rows_arrive_equal_over_cuts_and_the_link_carries_what_is_counted(tmp_path: Path, codec: str) -> None:
    async def main() -> None:
        receiver, cutter = Receiver(), Cutter()
        listener = await receiver.start()
        address = await cutter.front(lambda: listener.address)
        spool = Spool(Budget(64 * MIB, 0), tmp_path, "out")
        out = ChannelOut(BERGEN, CHANNEL, address, encode_schema(SCHEMA), spool, LIMITS, Random(1), codec=codec)
        # Both sizes: those compressed in the loop and those in a thread.
        sent = [rows(number * 10_000, 8000 if number % 2 else 200) for number in range(40)]
        for batch in sent:
            spool.append(Entry(encode_batch(batch), batch.num_rows, decoded_bytes(batch)))
        spool.finish()
        cutter.cut_after_bytes = 100 * KIB
        assert await out.run() is ChannelEnd.FINISHED
        await until(lambda: receiver.finished)
        assert pa.Table.from_batches(receiver.batches).equals(pa.Table.from_batches(sent))
        assert not receiver.errors
        raw_bytes = sum(len(encode_batch(batch)) for batch in sent)
        kept_bytes = sum(map(len, receiver.bodies))
        assert (kept_bytes < raw_bytes / 3) == bool(codec), "kept as it came, compressed or not"
        assert (out.sent_bytes < raw_bytes / 3) == bool(codec)
        # Counted is what was on the link, with what was under way when it was cut (hellos and grants are little).
        assert kept_bytes < out.sent_bytes
        assert cutter.forwarded_bytes <= out.sent_bytes + 32 * KIB
        await cutter.close()
        await listener.stop()
        spool.close()

    run(main())


def test_credits_count_decoded_bytes(tmp_path: Path) -> None:
    async def main() -> None:
        receiver = Receiver()
        receiver.channel = ChannelIn(
            CHANNEL,
            LIMITS,
            append=receiver.append,
            finish=receiver.finish,
            fail=receiver.errors.append,
            grant_on_consumption=True,
        )
        listener = await receiver.start()
        spool = Spool(Budget(64 * MIB, 0), tmp_path, "out")
        out = ChannelOut(
            BERGEN, CHANNEL, listener.address, encode_schema(SCHEMA), spool, LIMITS, Random(1), codec="zstd"
        )
        batch = rows(0, 4000)  # about 190 KiB, and a few KiB when compressed
        body = encode_batch(batch)
        for _ in range(10):
            spool.append(Entry(body, batch.num_rows, decoded_bytes(batch)))
        spool.finish()
        running = asyncio.ensure_future(out.run())
        await until(lambda: len(receiver.batches) == 2)
        await asyncio.sleep(0.05)  # nothing more may come, and no event tells of nothing
        assert len(receiver.batches) == 2, "256 KiB of credit and one overdraft"
        while not receiver.finished:
            count = len(receiver.batches)
            receiver.channel.consumed(max(len(body), decoded_bytes(batch)))
            await until(lambda seen=count: receiver.finished or len(receiver.batches) > seen)
        assert await running is ChannelEnd.FINISHED
        await listener.stop()
        spool.close()

    run(main())


def test_a_codec_that_nobody_knows_is_refused() -> None:
    async def main() -> None:
        receiver = Receiver()
        listener = await receiver.start()
        connection = await connect(listener.address, LIMITS)
        await login(connection, make_hello(BERGEN, "data"), SECRET, "oslo")
        connection.send(OpenChannel(CHANNEL, encode_schema(SCHEMA), 0, "brotli"))
        frame = await connection.receive()
        assert frame is not None
        assert b"no codec 'brotli'" in bytes(frame.payload)
        connection.abort()
        await connection.wait_closed()
        await listener.stop()

    run(main())


def test_a_batch_that_unpacks_to_more_than_its_credits_ends_the_channel(tmp_path: Path) -> None:
    """A peer of ours never does this: its spool is made to lie."""

    async def main() -> None:
        receiver = Receiver()
        listener = await receiver.start()
        spool = Spool(Budget(64 * MIB, 0), tmp_path, "out")
        out = ChannelOut(BERGEN, CHANNEL, listener.address, encode_schema(SCHEMA), spool, LIMITS, Random(1))
        packed = encode_batch(rows(0, 8000), "zstd")
        spool.append(Entry(packed, 8000, len(packed)))
        with pytest.raises(PeerError, match="was counted as"):
            await out.run()
        assert not receiver.batches
        assert len(receiver.errors) == 1
        await listener.stop()
        spool.close()

    run(main())
