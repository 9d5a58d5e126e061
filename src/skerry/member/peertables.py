"""How an initiator learns the tables of all members, and keeps them fresh."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING

from skerry.errors import SiteError
from skerry.wire.messages import Describe, Tables

if TYPE_CHECKING:
    from skerry.member.server import Member


class PeerTables:
    """Feeds the member's catalog. Whoever waits for a site is answered when it described itself, or is lost."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        # Who has asked for our tables, and is told when there is more to say of them.
        self._askers: set[str] = set()

    async def learn_own(self) -> None:
        parts, broken = await self._member.tables.all()
        self._member.catalog.learn(self._member.name, parts, broken)

    async def answer(self, sender: str, message: Describe) -> None:
        self._askers.add(sender)
        parts, broken = await self._member.tables.all()
        self._member.send(sender, Tables(message.request_id, self._member.name, parts, broken))

    async def tell(self) -> None:
        """There are new statistics: for the own catalog, and for all who asked before."""
        parts, broken = await self._member.tables.all()
        self._member.catalog.learn(self._member.name, parts, broken)
        for peer in sorted(self._askers):
            if self._member.peers.state(peer) == "up":
                self._member.send(peer, Tables("", self._member.name, parts, broken))

    def ask(self, peer: str) -> None:
        self._member.send(peer, Describe(uuid.uuid4().hex))

    def learned(self, sender: str, message: Tables) -> None:
        self._member.catalog.learn(sender, message.parts, message.broken)
        self._wake(sender)

    def lost(self, peer: str, error: SiteError) -> None:
        reason = error.message.removeprefix(f"site {peer} is down: ")
        self._member.catalog.lose(peer, reason)
        self._askers.discard(peer)
        self._wake(peer)

    async def refresh(self, members: tuple[str, ...] = ()) -> None:
        """Ask these members (default: all that have tables) what they have now; a dead one is not waited for."""
        member = self._member
        wanted = members or tuple(name for name, each in member.config.members.items() if each.tables)
        waits = []
        for name in wanted:
            if name == member.name:
                waits.append(asyncio.ensure_future(self.learn_own()))
            elif name in member.config.members:
                answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._waiting.setdefault(name, []).append(answered)
                self.ask(name)
                waits.append(asyncio.ensure_future(_until(answered)))
        if not waits:  # no member has a table
            return
        done, late = await asyncio.wait(waits, timeout=member.limits.login_s)
        for task in late:
            task.cancel()
        for task in done:
            task.result()

    def _wake(self, peer: str) -> None:
        for answered in self._waiting.pop(peer, ()):
            if not answered.done():
                answered.set_result(None)


async def _until(answered: asyncio.Future[None]) -> None:
    await answered
