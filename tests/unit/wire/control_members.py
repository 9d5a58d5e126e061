"""Members with nothing but their control connections, side by side or behind links that can be cut."""

from __future__ import annotations

from random import Random

from skerry.model.errors import SiteError
from skerry.model.ids import QueryId
from skerry.model.limits import Limits
from skerry.testing.ports import free_ports
from skerry.wire.listener import Listener
from skerry.wire.messages import Check, Message
from skerry.wire.peers import Peers
from skerry.wire.session import Identity
from tests.unit.wire.looping import BERGEN, GIVE_UP_S, OSLO, QUICK, Cutter


def check(number: int) -> Check:
    return Check((QueryId("oslo", f"{number:032x}"),))


class Member:
    """A member with nothing but its control connections."""

    def __init__(self, identity: Identity, addresses: dict[str, str], limits: Limits = QUICK) -> None:
        self.identity = identity
        self.limits = limits
        self.addresses = addresses
        self.numbers: list[int] = []
        self.messages: list[tuple[str, Message]] = []
        self.ups: list[tuple[str, int]] = []
        self.backs: list[str] = []
        self.losses: list[str] = []
        self.listener: Listener | None = None
        self.peers: Peers | None = None

    async def start(self, address: str = "tcp:127.0.0.1:0") -> Member:
        self.peers = Peers(
            self.identity,
            self.addresses,
            self.limits,
            on_message=self.on_message,
            on_peer_lost=self.on_lost,
            on_peer_up=lambda peer, epoch: self.ups.append((peer, epoch)),
            on_peer_back=lambda peer, heard_at: self.backs.append(peer),
            random=Random(self.identity.epoch),
        )
        self.listener = await Listener.start(address, self.limits, self.identity, {"control": self.peers.serve})
        self.addresses[self.identity.member] = self.listener.address
        return self

    def on_message(self, peer: str, message: Message) -> None:
        assert isinstance(message, Check)
        self.messages.append((peer, message))
        self.numbers.append(int(message.suspected[0].local, 16))

    def on_lost(self, peer: str, error: SiteError) -> None:
        assert isinstance(error, SiteError)
        self.losses.append(error.message)

    def send(self, peer: str, number: int) -> None:
        assert self.peers is not None
        self.peers.send(peer, check(number))

    def be_patient(self, is_patient: bool = True) -> None:
        """Do not lose a peer that a busy machine keeps waiting; or no longer than `limits.wait_s` says."""
        assert self.peers is not None
        self.peers.be_patient(dict.fromkeys(self.addresses, GIVE_UP_S) if is_patient else {})

    async def crash(self) -> None:
        """Like kill -9: connections reset, no Goodbye, nobody listens."""
        assert self.listener is not None
        assert self.peers is not None
        for pair in self.peers._pairs.values():
            pair.session = None
            pair._drop_link()
        await self.listener.stop()
        self.peers.is_stopping = True

    async def stop(self) -> None:
        assert self.listener is not None
        assert self.peers is not None
        await self.peers.stop()
        await self.listener.stop()


def lasting_address() -> str:
    """Nobody else is given it while its member is away."""
    return f"tcp:127.0.0.1:{free_ports(1)[0]}"


async def two(limits: Limits = QUICK) -> tuple[Member, Member]:
    """Tests stop bergen, and start it again where it was."""
    addresses: dict[str, str] = {}
    oslo, bergen = Member(OSLO, addresses, limits), Member(BERGEN, addresses, limits)
    return await oslo.start(), await bergen.start(lasting_address())


async def behind_cutter(limits: Limits = QUICK) -> tuple[Member, Member, Cutter]:
    """Two members that reach each other only over links that can be cut."""
    cutter = Cutter()
    oslo, bergen = Member(OSLO, {}, limits), Member(BERGEN, {}, limits)
    oslo.addresses["bergen"] = await cutter.front(lambda: bergen.addresses["bergen"])
    bergen.addresses["oslo"] = await cutter.front(lambda: oslo.addresses["oslo"])
    return await oslo.start(), await bergen.start(lasting_address()), cutter
