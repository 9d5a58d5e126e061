"""Both ends of one channel, bergen's and oslo's, each with a real spool."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import msgspec

from skerry.exchange.spool import Budget, Entry, Spool
from skerry.model.errors import SkerryError
from skerry.model.ids import ChannelId, QueryId
from skerry.model.limits import KIB, MIB, Limits
from skerry.wire.channels import ChannelIn, ChannelOut, Gone, data_handler
from skerry.wire.frames import Buffer
from skerry.wire.listener import Listener
from skerry.wire.messages import Batch, OpenChannel
from tests.unit.wire.looping import BERGEN, OSLO, QUICK, until

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
