"""How an initiator learns the tables of all members, and keeps them fresh."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Any

from skerry.member import clock
from skerry.model.errors import SiteError
from skerry.wire.messages import Describe, Tables

if TYPE_CHECKING:
    from skerry.member.server import Member


class PeerTables:
    """Feeds the member's catalog. Whoever waits for a site is answered when it described itself, or is lost."""

    def __init__(self, member: Member) -> None:
        self._member = member
        # Who has asked for our tables, and is told when there is more to say of them.
        self._askers: set[str] = set()
        # Questions that somebody waits for, by their ids: whom they were put to.
        self._asked: dict[str, tuple[str, asyncio.Future[Tables | None]]] = {}

    async def learn_own(self) -> None:
        parts, broken = await self._member.tables.all()
        self._member.catalog.learn(self._member.name, parts, broken)

    async def answer(self, sender: str, message: Describe) -> None:
        if message.tables:
            parts, broken = await self._member.tables.named(message.tables)
            self._member.send(sender, Tables(message.request_id, self._member.name, parts, broken, message.tables))
            return
        self._askers.add(sender)
        parts, broken = await self._member.tables.all()
        self._member.send(sender, Tables(message.request_id, self._member.name, parts, broken))

    async def tell(self) -> None:
        """There are new statistics: for the own catalog, and for all who asked before."""
        parts, broken = await self._member.tables.all()
        self._member.catalog.learn(self._member.name, parts, broken)
        for peer in sorted(self._askers):  # one that has no link now gets it with the next, or is lost and asks again
            self._member.send(peer, Tables("", self._member.name, parts, broken))

    def ask(self, peer: str) -> None:
        """What it says is for the catalog; nobody waits."""
        self._member.send(peer, Describe(uuid.uuid4().hex))

    def _question(self, peer: str, tables: tuple[str, ...] = ()) -> tuple[str, asyncio.Future[Tables | None]]:
        """Its id and its own answer: one that was on its way before knows nothing of what has changed since."""
        request_id, answer = uuid.uuid4().hex, asyncio.get_running_loop().create_future()
        self._asked[request_id] = peer, answer
        self._member.send(peer, Describe(request_id, tables))
        return request_id, answer

    async def files_version(self, member: str, table: str) -> int | None:
        """Of the member's part of the table as its files are now; None when it cannot tell."""
        if member == self._member.name:
            parts, _ = await self._member.tables.named((table,))
        else:
            request_id, answer = self._question(member, (table,))
            try:
                told = await asyncio.wait_for(answer, self._member.limits.login_s)
            except TimeoutError:
                told = None
            finally:
                self._asked.pop(request_id, None)
            parts = told.parts if told is not None else ()
        # A member of an older release tells all its tables.
        return next((part.files_version for part in parts if part.table.lower() == table.lower()), None)

    def learned(self, sender: str, message: Tables) -> None:
        member, answer = self._asked.get(message.request_id, ("", None))
        if answer is not None and member == sender and not answer.done():
            answer.set_result(message)
        if not message.asked:
            self._member.catalog.learn(sender, message.parts, message.broken)

    def lost(self, peer: str, error: SiteError) -> None:
        reason = error.message.removeprefix(f"site {peer} is down: ")
        self._member.catalog.lose(peer, reason)
        self._askers.discard(peer)
        for member, answer in list(self._asked.values()):
            if member == peer and not answer.done():
                answer.set_result(None)

    async def refresh(self, members: tuple[str, ...] = ()) -> None:
        """Ask these members (default: all that have tables) what they have now; a dead one is not waited for."""
        member = self._member
        wanted = members or tuple(name for name, each in member.config.members.items() if each.tables)
        waits: dict[asyncio.Future[Any], str] = {}
        questions = []
        for name in wanted:
            if name == member.name:
                waits[asyncio.ensure_future(self.learn_own())] = name
            elif name in member.config.members:
                request_id, answer = self._question(name)
                questions.append(request_id)
                waits[answer] = name
        limits, late = member.limits, set(waits)
        give_up = clock.now() + limits.wait_s
        try:
            while late:
                done, late = await asyncio.wait(late, timeout=limits.login_s)
                for task in done:
                    task.result()
                # One that is linked is only busy: with many files, or a Spark that starts. Without its answer a table
                # or a column that is there would be called unknown.
                late -= {task for task in late if clock.now() >= give_up or not self._is_there(waits[task])}
        finally:
            # Also when the member stops, or the client that waits is gone.
            for request_id in questions:
                self._asked.pop(request_id, None)
            for task in waits:
                task.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    def _is_there(self, name: str) -> bool:
        return name == self._member.name or self._member.peers.state(name) == "up"
