"""How an initiator learns the tables of all members, and keeps them fresh."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from skerry.catalog.believed import believed
from skerry.catalog.catalog import Catalog
from skerry.config import Config
from skerry.member import clock
from skerry.member.ownreads import OwnReads
from skerry.member.questions import Questions
from skerry.member.tables import LocalTables
from skerry.model.errors import PeerError, SiteError, SqlError
from skerry.model.sharded import Definition
from skerry.model.table import TablePart
from skerry.wire.messages import Describe, Message, Tables
from skerry.wire.peers import Peers


class PeerTables:
    """Feeds the catalog of member `name`. Whoever waits for a site is answered when it described itself, or is lost."""

    def __init__(
        self,
        name: str,
        config: Config,
        catalog: Catalog,
        own: LocalTables,
        peers: Peers,
        send: Callable[[str, Message], None],
        own_reads: OwnReads,
    ) -> None:
        self._name = name
        self._config = config
        self._catalog = catalog
        self._own = own
        self._peers = peers
        self._send = send
        self._own_reads = own_reads
        self._defined: tuple[Definition, ...] = ()
        # Who has asked for our tables, and is told when there is more to say of them.
        self._askers: set[str] = set()
        self._questions = Questions[Tables | None]()

    def define(self) -> None:
        """The catalog has the tables of our own that are known here now."""
        definitions = self._own_reads.definitions()
        if definitions != self._defined:
            self._defined = definitions
            self._catalog.define(definitions)

    def own_definitions(self) -> Mapping[str, Definition]:
        """Of tables of our own, by name in lower case."""
        return self._own_reads.known

    def holders(self) -> tuple[str, ...]:
        """All members that have tables, in the order of the configuration."""
        own = {member for each in self._own_reads.definitions() for member in each.table.members}
        return tuple(name for name, each in self._config.members.items() if each.tables or name in own)

    async def learn_own(self) -> None:
        self._catalog.learn(self._name, *await self._all())

    async def _all(self) -> tuple[tuple[TablePart, ...], dict[str, str], tuple[str, ...]]:
        (parts, broken), offered = await asyncio.gather(self._own.all(), self._own.offered())
        files = {part.table.lower() for part in parts} | {name.lower() for name in broken}
        return (*parts, *(part for part in self._own_reads.parts() if part.table.lower() not in files)), broken, offered

    async def answer(self, sender: str, message: Describe) -> None:
        if message.tables:
            parts, broken = await self._own.named(message.tables)
            self._send(sender, Tables(message.request_id, self._name, parts, broken, message.tables))
            return
        self._askers.add(sender)
        parts, broken, offered = await self._all()
        self._send(sender, Tables(message.request_id, self._name, parts, broken, (), offered))

    async def tell(self) -> None:
        """There are new statistics: for the own catalog, and for all who asked before."""
        parts, broken, offered = await self._all()
        self._catalog.learn(self._name, parts, broken, offered, is_asked=False)
        for peer in sorted(self._askers):  # one that has no link now gets it with the next, or is lost and asks again
            self._send(peer, Tables("", self._name, parts, broken, (), offered))

    def ask(self, peer: str) -> None:
        """What it says is for the catalog; nobody waits."""
        self._send(peer, Describe(uuid.uuid4().hex))

    def _question(self, peer: str, tables: tuple[str, ...] = ()) -> tuple[str, asyncio.Future[Tables | None]]:
        """Its id and its own answer: one that was on its way before knows nothing of what has changed since."""
        request_id, answer = self._questions.put(peer)
        self._send(peer, Describe(request_id, tables))
        return request_id, answer

    async def files_version(self, member: str, table: str) -> int | None:
        """The version of the member's part of the table as its files are now; None when it cannot tell."""
        parts, _ = await self._asked(member, table) or ((), {})
        # A member of an older release tells all its tables.
        return next((part.files_version for part in parts if part.table.lower() == table.lower()), None)

    async def describe(self, member: str, table: str) -> None:
        """The catalog learns of a table that nobody tells of unasked; of one that is gone, that it is."""
        answer = await self._asked(member, table, self._config.limits.look_s)
        if answer is None:
            raise SiteError(f"site {member}: table {table}: it has not said what it is", member=member)
        parts, broken = answer
        self._catalog.learn_asked(member, table, map(believed, parts), broken)

    async def _asked(
        self, member: str, table: str, wait_s: float = 0.0
    ) -> tuple[Sequence[TablePart], Mapping[str, str]] | None:
        """What the member says of the table as it is now; None when it cannot tell."""
        if member == self._name:
            return await self._own.named((table,))
        request_id, answer = self._question(member, (table,))
        try:
            told = await asyncio.wait_for(answer, self._config.limits.login_s + wait_s)
        except TimeoutError:
            told = None
        finally:
            self._questions.forget([request_id])
        return (told.parts, told.broken) if told is not None else None

    def learned(self, sender: str, message: Tables) -> None:
        self._questions.answered(sender, message.request_id, message)
        if any(part.member != sender for part in message.parts):
            raise PeerError(f"{sender} tells of tables of another member")
        if not message.asked:
            # Bounds that cannot be would fail every plan with this table, or leave out rows.
            parts, is_asked = map(believed, message.parts), message.request_id != ""
            self._catalog.learn(sender, parts, message.broken, message.offered, is_asked=is_asked)

    def lost(self, peer: str, error: SiteError) -> None:
        reason = error.message.removeprefix(f"site {peer} is down: ")
        self._catalog.lose(peer, reason)
        self._askers.discard(peer)
        for answer in self._questions.open_at(peer):
            answer.set_result(None)

    def explained(self, error: SqlError) -> SqlError:
        """A table may be unknown because this member, which keeps nothing, has not met who knows all of them."""
        keeper = self._own_reads.keeper
        if not keeper or self._own_reads.is_informed or self.is_there(keeper):
            return error
        return SqlError(
            f"{error.message}\n{keeper}, which keeps the definitions of tables of our own, cannot be reached, and "
            f"{self._name} has not met it since it started, so it knows none of them",
            suggestion=f"start {keeper}, or ask a data member",
        )

    async def refresh(self, members: tuple[str, ...] = ()) -> None:
        """Ask these members (default: all that have tables) what they have now; a dead one is not waited for."""
        known, limits = self._config.members, self._config.limits
        if self.is_there(self._own_reads.keeper):
            await self._own_reads.catch_up()
        self.define()
        wanted = members or self.holders()
        waits: dict[asyncio.Future[Any], str] = {}
        questions = []
        for name in wanted:
            if name == self._name:
                waits[asyncio.ensure_future(self.learn_own())] = name
            elif name in known:
                request_id, answer = self._question(name)
                questions.append(request_id)
                waits[answer] = name
        late = set(waits)
        give_up = clock.now() + limits.wait_s
        try:
            while late:
                done, late = await asyncio.wait(late, timeout=limits.login_s)
                for task in done:
                    task.result()
                # One that is linked is only busy: with many files, or a Spark that starts. Without its answer a table
                # or a column that is there would be called unknown.
                late -= {task for task in late if clock.now() >= give_up or not self.is_there(waits[task])}
        finally:
            # Also when the member stops, or the client that waits is gone.
            self._questions.forget(questions)
            for task in waits:
                task.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    def is_there(self, name: str) -> bool:
        """Whether the member can be asked now."""
        return name == self._name or (name != "" and self._peers.state(name) == "up")
