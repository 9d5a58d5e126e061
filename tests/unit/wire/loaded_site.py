"""A member with control connections and one channel that comes in; also as a process, for tests that stop one."""

from __future__ import annotations

import asyncio
import sys
from random import Random

import msgspec

from skerry.model.errors import SiteError, SkerryError
from skerry.model.ids import ChannelId, QueryId
from skerry.model.limits import KIB, MIB
from skerry.wire.channels import ChannelIn, data_handler
from skerry.wire.frames import Buffer
from skerry.wire.listener import Listener
from skerry.wire.messages import Batch
from skerry.wire.peers import Peers
from skerry.wire.session import Identity
from tests.unit.wire.looping import OSLO, QUICK

CHANNEL = ChannelId(QueryId("oslo", "0" * 32), 1, "bergen", "oslo")
LIMITS = msgspec.structs.replace(QUICK, first_credits_bytes=MIB)
BODY = Random(1).randbytes(64 * KIB)


class Site:
    """A member with control connections and one channel that comes in."""

    def __init__(self, identity: Identity, addresses: dict[str, str]) -> None:
        self.identity = identity
        self.received = 0
        self.errors: list[SkerryError] = []
        self.losses: list[str] = []
        self.peers = Peers(
            identity,
            addresses,
            LIMITS,
            on_message=lambda _peer, _message: None,
            on_peer_lost=self._lost,
            on_peer_up=lambda _peer, _epoch: None,
            random=Random(identity.epoch),
        )
        self.channel = ChannelIn(CHANNEL, LIMITS, append=self._append, finish=lambda: None, fail=self.errors.append)
        self.listener: Listener | None = None

    def _lost(self, peer: str, error: SiteError) -> None:
        self.losses.append(error.message)

    def _append(self, header: Batch, body: Buffer) -> None:
        assert bytes(body[:16]) == BODY[:16]
        self.received += 1

    async def start(self, address: str = "tcp:127.0.0.1:0") -> str:
        handlers = {"control": self.peers.serve, "data": data_handler(lambda _opening: self.channel, LIMITS)}
        self.listener = await Listener.start(address, LIMITS, self.identity, handlers)
        return self.listener.address

    async def stop(self) -> None:
        await self.peers.stop()
        self.channel.close()
        assert self.listener is not None
        await self.listener.stop()


async def main() -> None:
    """oslo: prints its address, and after a line of input what it has received and how many errors."""
    site = Site(OSLO, {"bergen": sys.argv[1]})
    print(await site.start(), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    print(site.received, len(site.errors), flush=True)
    await site.stop()


if __name__ == "__main__":
    asyncio.run(main())
