"""Shell of definitions: the keeper's part at one member, the followers' at all; who asks for a change is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, assert_never

from skerry.config import Config, Role
from skerry.member import clock
from skerry.model.errors import OutcomeUnknown, SiteError, SkerryError, UserError, unsure
from skerry.model.ids import QueryId
from skerry.model.limits import CATCH_UP_S, DEFINE_WAIT_S, DEFINED_WAIT_S, KEEP_PAUSE_S, REACH_KEEPER_S
from skerry.model.rights import Rights
from skerry.model.sharded import Alter, BucketMap, Create, OwnTable, Recall, Wish, numbered
from skerry.tables.catalogue import Follower, Instruction, Keep, Keeper, Kept, Send
from skerry.tables.store import Unwritten
from skerry.wire.definition_messages import Define, Defined, Definitions, KnownDefinitions
from skerry.wire.messages import Message
from skerry.wire.values import error_of, failure_of


def keeper_of(config: Config) -> str:
    """The first data member of the configuration; "" if no member keeps anything."""
    data = (name for name, member in config.members.items() if member.role is Role.DATA)
    return next(data, "") if config.state else ""


class Defining:
    """`keep` writes definitions and makes them those of this member; `up`: members that have a connection.

    `reach`: whether one has; one that has none is dialled.
    """

    def __init__(
        self,
        member: str,
        config: Config,
        kept: Kept,
        keep: Callable[[Kept], Coroutine[Any, Any, None]],
        send: Callable[[str, Message], None],
        own: Callable[[Coroutine[Any, Any, None], str], None],
        up: Callable[[], Iterable[str]],
        rights_of: Callable[[str, tuple[str, ...]], Rights],
        moment: Callable[[int], int],
        reach: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self.keeper = keeper_of(config)
        self._member = member
        self._keep = keep
        self._send = send
        self._own = own
        self._up = up
        self._rights_of = rights_of
        self._moment = moment
        self._reach = reach
        self._linking: list[asyncio.Future[SiteError | None]] = []  # who waits for a connection to the keeper
        self._defining: dict[QueryId, asyncio.Future[Defined]] = {}
        self._asking: list[asyncio.Future[None]] = []
        self.named_by: Callable[[str, frozenset[str]], str] = lambda *_: ""  # as OwnTables has it
        self._core: Keeper | None = None
        self._follower = Follower(member, self.keeper, kept)
        if member == self.keeper:
            configured = frozenset(name.lower() for name in config.table_names())
            members = frozenset(name for name, each in config.members.items() if each.role is Role.DATA)
            self._core = Keeper(member, kept, configured, members)

    # --- what this member asks for ------------------------------------------------------------------------------------
    async def define(self, query: QueryId, wish: Wish, rights: Rights) -> None:
        """Until it is durable, and known to all members that are up; the keeper's error if it refuses.

        Nothing was changed by any error but OutcomeUnknown.
        """
        await self._asked(query, wish, rights)

    async def was_defined(self, query: QueryId, rights: Rights) -> bool:
        """Whether this statement, which was sent before, has changed definitions; OutcomeUnknown if nobody tells."""
        try:
            return (await self._asked(query, Recall(), rights)).version > 0
        except SkerryError as error:
            raise unsure(query, error) from error

    async def _asked(self, query: QueryId, wish: Wish, rights: Rights) -> Defined:
        request = Define(query, wish, rights.user, rights.roles, self._moment(0))
        await self._reach_keeper()
        answer: asyncio.Future[Defined] = asyncio.get_running_loop().create_future()
        self._defining[query] = answer
        try:
            self._send(self.keeper, request)
            defined = await asyncio.wait_for(answer, DEFINED_WAIT_S)
        except TimeoutError:
            raise OutcomeUnknown(
                f"{self.keeper}, which keeps the definitions of tables, has not answered within {DEFINED_WAIT_S:g} s; "
                "whether the statement was carried out is not known",
                suggestion="look with SHOW TABLES",
            ) from None
        finally:
            self._defining.pop(query, None)
        if defined.failure is not None:
            raise error_of(defined.failure)
        return defined

    async def _reach_keeper(self) -> None:
        """SiteError if it has no connection: then nothing is sent to it, and nothing can have been changed.

        A connection that is lost is dialled once more: it may have been that of the keeper's earlier life.
        """
        until, losses = clock.now() + REACH_KEEPER_S, 0
        while not self._reach(self.keeper):
            linked: asyncio.Future[SiteError | None] = asyncio.get_running_loop().create_future()
            self._linking.append(linked)
            try:
                error = await asyncio.wait_for(linked, max(0.0, until - clock.now()))
            except TimeoutError:
                error, losses = SiteError(f"no connection within {REACH_KEEPER_S:g} s"), 1
            finally:
                self._linking.remove(linked)
            if error is not None and (losses := losses + 1) > 1:
                raise SiteError(
                    f"{self.keeper} keeps the definitions of tables, and cannot be reached: {error.message}; nothing "
                    "was changed",
                    member=self.keeper,
                    suggestion=f"tables are read and written meanwhile; try again when {self.keeper} is up",
                )

    def linked(self, peer: str) -> None:
        """There is a connection to that member."""
        self._tell_linking(peer, None)

    def _tell_linking(self, peer: str, error: SiteError | None) -> None:
        for waiting in self._linking if peer == self.keeper else ():
            if not waiting.done():
                waiting.set_result(error)

    async def catch_up(self) -> None:
        """Asks the keeper whether there are newer definitions; without an answer those that are known have to do."""
        if not self.keeper or self._core is not None:
            return
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asking.append(answer)
        self._do(self._follower.up(asks=True))
        await asyncio.wait({answer}, timeout=CATCH_UP_S)

    # --- what others tell ---------------------------------------------------------------------------------------------
    def receive(self, sender: str, message: Define | Defined | Definitions | KnownDefinitions) -> None:
        """PeerError if the sender may not say this."""
        match message:
            case Define():
                self._define(sender, message)
            case KnownDefinitions():
                if self._core is not None:
                    self._do(self._core.known(sender, message, clock.now()))
            case Definitions():
                self._do(self._follower.told(sender, message))
                if self._follower.catalogue.version >= message.catalogue.version:
                    self._caught_up()  # else it is on its way to disk
            case Defined():
                answer = self._defining.get(message.query)
                if sender == self.keeper and answer is not None and not answer.done():
                    answer.set_result(message)

    def _define(self, sender: str, message: Define) -> None:
        try:
            if self._core is None:
                raise SiteError(f"site {self._member} does not keep definitions: {self.keeper or 'nobody'} does")
            self._refuse(message)
        except SkerryError as error:
            self._send(sender, Defined(message.query, failure=failure_of(error, self._member)))
            return
        self._do(self._core.define(sender, message, self._up(), clock.now(), self._moment_after(message.clock)))
        asyncio.get_running_loop().call_later(DEFINE_WAIT_S + 0.1, self._tick)

    def _moment_after(self, seen: int) -> int:
        """Later than what who asks has seen: of a table that is dropped and made again, the new one begins then. By the
        clock here, if that is too far behind."""
        try:
            return self._moment(seen)
        except SiteError:
            return self._moment(0)

    def _refuse(self, message: Define) -> None:
        """UserError if the user may not define this table."""
        rights, wish = self._rights_of(message.user, message.roles), message.wish
        assert self._core is not None
        if isinstance(wish, Recall):
            return
        # Of a table that nobody sees yet, whoever makes it says what becomes of it.
        named = [] if isinstance(wish, Create) else [each.table for each in self._core.named(wish) if each.is_seen]
        tables = [wish.table] if isinstance(wish, Create) else named
        if isinstance(wish, Alter):
            for before in tables:
                self.refuse_named(before, wish.table)
        for table in tables:
            if not all(rights.may("define", member, table.name) for member in table.members):
                raise UserError(f"user {message.user} may not define table {table.name[:100]}", member=self._member)

    def refuse_named(self, before: OwnTable, after: OwnTable) -> None:
        """UserError if a column gets another name, and a rule names the one or the other: rules know columns by name,
        and would show what they hide."""
        old = {column.id: column.name for column in numbered(before).columns}
        renamed = [(old[each.id], each.name) for each in after.columns if old.get(each.id, each.name) != each.name]
        names = frozenset(name.lower() for pair in renamed for name in pair)
        if role := self.named_by(before.name, names):
            raise UserError(
                f"table {before.name[:100]}: a rule of role {role} names a column that would get, or lose, its name",
                member=self._member,
                suggestion="take the column out of the rules at all members, rename it, and write the rules anew",
            )

    # --- moves ----------------------------------------------------------------------------------------------------
    @property
    def core(self) -> Keeper:
        """SiteError unless this member keeps the definitions."""
        if self._core is None:
            raise SiteError(f"site {self._member} does not keep definitions: {self.keeper or 'nobody'} does")
        return self._core

    def moved(self, buckets: BucketMap) -> None:
        """A move is decided here: all members learn of its map."""
        self._do(self.core.moved(buckets))

    def placed(self, table: int, members: tuple[str, ...]) -> None:
        self._do(self.core.placed(table, members))

    def meet(self, others: Iterable[str]) -> None:
        """At the start: a member tells the keeper what it knows, the keeper looks for all members."""
        for member in others if self._core is not None else (self.keeper,):
            self._do([Send(member, KnownDefinitions(self._member, self._follower.catalogue.version))])

    def peer_up(self, peer: str) -> None:
        if peer == self.keeper:
            self._do(self._follower.up())

    def peer_lost(self, peer: str, error: SiteError) -> None:
        self._tell_linking(peer, error)
        if peer == self.keeper:
            self._caught_up()
            for answer in self._defining.values():
                if not answer.done():
                    answer.set_exception(
                        OutcomeUnknown(
                            f"{peer} keeps the definitions of tables, and cannot be reached: {error.message}",
                            member=peer,
                            suggestion=f"tables are read and written meanwhile; try again when {peer} is up",
                        )
                    )
        if self._core is not None:
            self._do(self._core.lost(peer, clock.now()))

    def _tick(self) -> None:
        if self._core is not None:
            self._do(self._core.tick(clock.now()))

    # --- instructions -------------------------------------------------------------------------------------------------
    def _do(self, instructions: list[Instruction]) -> None:
        for instruction in instructions:
            match instruction:
                case Send(to, message):
                    self._send(to, message)
                case Keep(kept):
                    self._own(self._write(kept), f"definitions of version {kept.catalogue.version}")
                case never:
                    assert_never(never)

    async def _write(self, kept: Kept) -> None:
        try:
            await self._keep_when_possible(kept)
        except SkerryError:
            self._follower.failed()
            raise
        finally:
            self._caught_up()
        if self._core is not None:
            self._do(self._core.kept(kept.catalogue, self._up(), clock.now()))
        else:
            self._do(self._follower.kept(kept.catalogue))

    async def _keep_when_possible(self, kept: Kept) -> None:
        """Of a disk that has no room now, later: who waits for it is told that nobody knows yet."""
        while True:
            try:
                await self._keep(kept)
                return
            except Unwritten:
                self._caught_up()
                await asyncio.sleep(KEEP_PAUSE_S)  # owner: the member's background

    def _caught_up(self) -> None:
        for answer in self._asking:
            if not answer.done():
                answer.set_result(None)
        self._asking.clear()
