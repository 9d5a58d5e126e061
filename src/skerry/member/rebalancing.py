"""Rebalancing: the keeper of definitions moves one group after the other, until each member has its share.

Each move is a transaction that the keeper decides (docs/adr/0065). Its record on the keeper's disk is the commit, and
has the new bucket map. Whoever rebalances asks for one move at a time: what is not asked for stays where it is.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable

from skerry.config import Config, Role
from skerry.member import clock
from skerry.member.own import OwnTables
from skerry.member.questions import Questions
from skerry.model.commits import Moving, Part, Policy, Staged, TransactionId, Versions
from skerry.model.errors import (
    Overloaded,
    SiteError,
    SkerryError,
    StaleSchema,
    TimedOut,
    UserError,
    unsure,
)
from skerry.model.ids import QueryId
from skerry.model.limits import (
    DEFINE_WAIT_S,
    MOVE_APART_S,
    MOVE_LOOK_S,
    MOVE_PAUSE_S,
    MOVE_SENT_S,
    MOVE_TRIES,
    MOVES_TOLD,
)
from skerry.model.points import reach
from skerry.model.rights import Rights
from skerry.model.sharded import Definition
from skerry.tables.mapping import copied_map, moved_map
from skerry.tables.moves import Transfer, holders, planned
from skerry.wire.commit_messages import State
from skerry.wire.messages import Message
from skerry.wire.moving_messages import GroupSent, Rebalance, Rebalanced, SendGroup, Step
from skerry.wire.values import error_of, failure_of


class _Met(Exception):
    """A move met a transaction that began before it, or that was quicker; another attempt may succeed."""

    def __init__(self, error: SkerryError) -> None:
        super().__init__(error.message)
        self.error = error


class Rebalancing:
    """Belongs to the member's loop. The keeper's part is idle elsewhere."""

    def __init__(
        self,
        member: str,
        config: Config,
        own: OwnTables,
        send: Callable[[str, Message], None],
        up: Callable[[], Iterable[str]],
        rights_of: Callable[[str, tuple[str, ...]], Rights],
    ) -> None:
        self._member = member
        self._own = own
        self._send = send
        self._up = up
        self._rights_of = rights_of
        self._move_bytes_s = config.limits.move_bytes_s
        self._data = tuple(name for name, each in config.members.items() if each.role is Role.DATA)
        self._questions = Questions[GroupSent | Rebalanced]()
        self._turn = asyncio.Lock()
        self._doubt: QueryId | None = None  # a move whose decision was slow to be written
        self._not_before = 0.0

    # --- at the member that was asked ---------------------------------------------------------------------------------
    async def ask(self, leaving: tuple[str, ...], rights: Rights, *, is_plan: bool) -> Rebalanced:
        """The next move, done by the keeper; or only what is to be moved."""
        keeper = self._own.keeper
        told = await self._answered(
            keeper, lambda number: Rebalance(number, leaving, is_plan, rights.user, rights.roles), None
        )
        assert isinstance(told, Rebalanced)
        if told.failure is not None:
            raise error_of(told.failure)
        return told

    async def _answered(
        self, member: str, message: Callable[[str], Message], within_s: float | None
    ) -> GroupSent | Rebalanced:
        """`within_s` None: the query's deadline; a member that is lost ends it."""
        request_id, answer = self._questions.put(member)
        try:
            self._send(member, message(request_id))
            return await asyncio.wait_for(answer, within_s)
        except TimeoutError:
            raise TimedOut(f"no answer from {member} within {within_s:g} s", member=member) from None
        finally:
            self._questions.forget((request_id,))

    def told(self, sender: str, message: GroupSent | Rebalanced) -> None:
        self._questions.answered(sender, message.request_id, message)

    def lost(self, peer: str, error: SiteError) -> None:
        for answer in self._questions.open_at(peer):
            answer.set_exception(error)

    # --- at the source ------------------------------------------------------------------------------------------------
    async def send_here(self, sender: str, message: SendGroup) -> None:
        if sender != self._own.keeper:
            wrong = SiteError(f"site {self._member}: {sender} does not keep definitions, and moves no rows")
            self._send(sender, GroupSent(message.request_id, self._member, failure=failure_of(wrong, self._member)))
            return
        self._send(sender, await self._own.moves.send(message))

    # --- at the keeper ------------------------------------------------------------------------------------------------
    async def rebalance_here(self, sender: str, message: Rebalance) -> None:
        try:
            rights = self._rights_of(message.user, message.roles)
            unknown = sorted(set(message.leaving) - set(self._data))
            if unknown:
                raise UserError(f"{', '.join(unknown)} is no member with data (those are {', '.join(self._data)})")
            if message.is_plan:
                answer = Rebalanced(message.request_id, (), self._left(message.leaving, rights))
            else:
                async with self._turn:
                    moved = await self._step(message.leaving, rights)
                answer = Rebalanced(message.request_id, moved, self._left(message.leaving, rights))
        except SkerryError as error:
            answer = Rebalanced(message.request_id, failure=failure_of(error, self._member))
        self._send(sender, answer)

    def _tables(self, rights: Rights) -> list[Definition]:
        """All; UserError if the user may not define one of them."""
        found = [each for each in self._own.defining.core.catalogue.definitions if each.is_seen]
        for each in found:
            if not all(rights.may("define", member, each.table.name) for member in each.table.members):
                raise UserError(f"user {rights.user} may not define table {each.table.name}, and not move its rows")
        return sorted(found, key=lambda each: each.table.name.lower())

    def _left(self, leaving: tuple[str, ...], rights: Rights) -> tuple[Step, ...]:
        steps = [
            Step(each.table.name, move.source, move.target, move.first, move.upto)
            for each in self._tables(rights)
            for move in planned(each, holders(each, self._data, leaving))
        ]
        return tuple(steps[:MOVES_TOLD])

    async def _step(self, leaving: tuple[str, ...], rights: Rights) -> tuple[Step, ...]:
        """One move; () if nothing is to be moved any more."""
        core = self._own.defining.core
        core.check()
        if self._doubt is not None:
            await self._own.recall(self._doubt)
            self._doubt = None
        await asyncio.sleep(max(0.0, self._not_before - clock.now()))  # owner: the query's deadline
        for definition in self._tables(rights):
            wanted = holders(definition, self._data, leaving)
            if planned(definition, wanted):
                return (await self._move_next(definition.table.id, wanted),)
            await self._place(definition, wanted)
        return ()

    async def _place(self, definition: Definition, members: tuple[str, ...]) -> None:
        """Members that shall have some of the table know it, those that have nothing more forget it."""
        is_copied = not definition.table.distributed_by
        if set(definition.table.members) != set(members) or (is_copied and not definition.buckets.members):
            self._own.defining.placed(definition.table.id, members)
            await self._known()

    async def _known(self) -> None:
        """Until all that are up know the definitions: a while, as for any other (ADR 49)."""
        until = clock.now() + DEFINE_WAIT_S
        while clock.now() < until:
            if all(self._own.defining.core.is_known(member) for member in (self._member, *self._up())):
                return
            await asyncio.sleep(MOVE_LOOK_S)  # owner: `until`

    async def _move_next(self, table_id: int, wanted: tuple[str, ...]) -> Step:
        """Some attempts: a member that knows other definitions, or a write that was quicker, is met again."""
        first_start = self._own.now()  # of all attempts: who came later waits for it
        for attempt in range(1, MOVE_TRIES + 1):
            definition = self._defined(table_id)
            sources = [*wanted, *(name for name in definition.table.members if name not in wanted)]
            await self._place(definition, tuple(sources))
            definition = self._defined(table_id)
            try:
                return await self._move(definition, planned(definition, wanted)[0], first_start)
            except (StaleSchema, Overloaded, _Met) as met:
                if attempt == MOVE_TRIES:
                    raise (met.error if isinstance(met, _Met) else met) from None
            await asyncio.sleep(MOVE_PAUSE_S * attempt)  # owner: the query's deadline
        raise AssertionError

    def _defined(self, table_id: int) -> Definition:
        for each in self._own.defining.core.catalogue.definitions:
            if each.table.id == table_id:
                return each
        raise UserError("the table was dropped while its rows moved")

    async def _move(self, definition: Definition, transfer: Transfer, first_start: int) -> Step:
        table, buckets = definition.table, definition.buckets
        source, target = transfer.source, transfer.target
        if target in buckets.members:  # of its own copy nobody needs to be sent anything
            sent = GroupSent("", source, transfer.first, transfer.upto, rows=QueryId(self._member, "none"))
            after = copied_map(buckets, tuple(name for name in buckets.members if name != source))
        else:
            sent = await self._sent(definition, transfer)
            is_copy = not table.distributed_by
            joined = copied_map(buckets, (*buckets.members, target))
            after = joined if is_copy else moved_map(buckets, sent.first, sent.upto, target)
        moving = Moving(after, sent.first, sent.upto, source, target, sent.rows)
        staged = Staged(table.id, ("0",), Policy.FAIL, moving=moving)
        part = Part((), (staged,), (Versions(table.id, table.version, buckets.version),))
        await self._commit({source: part, target: part}, sent.read_ts, first_start)
        self._not_before = clock.now() + max(MOVE_APART_S, sent.size_bytes / self._move_bytes_s)
        await self._known()
        return Step(table.name, source, target, sent.first, sent.upto, sent.count, sent.size_bytes)

    async def _sent(self, definition: Definition, transfer: Transfer) -> GroupSent:
        """When the target has the rows of the group, or of a part of it."""
        table, bucket_map = definition.table, definition.buckets.version
        first, upto, source, target, is_top = transfer
        sent = await self._answered(
            source,
            lambda number: SendGroup(number, table.id, table.version, bucket_map, first, upto, target, is_top),
            MOVE_SENT_S,
        )
        assert isinstance(sent, GroupSent)
        if sent.failure is not None:
            raise error_of(sent.failure)
        if not first <= sent.first < sent.upto <= upto:
            raise SiteError(f"site {source} has sent buckets that it was not asked for", member=source)
        return sent

    async def _commit(self, parts: dict[str, Part], read_ts: int, first_start: int) -> None:
        """Raises why it is not committed."""
        query = QueryId(self._member, uuid.uuid4().hex)
        outcome = await self._own.move(TransactionId(query), first_start, parts, read_ts)
        if outcome.state is State.COMMITTED:
            reach("move.decided")
            return
        failure = outcome.failure
        error = error_of(failure) if failure is not None else SiteError("no reason was told")
        if outcome.state is State.UNKNOWN:
            self._doubt = query
            raise unsure(query, error)
        raise _Met(error) if outcome.is_retryable else error
