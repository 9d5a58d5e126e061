"""Shell of one elastic group-by at one member: runs its manager, worker and sender, as far as they are here, over
ordinary channels and spools of the query (docs/protocol.md, 16)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, assert_never

import msgspec
import pyarrow as pa

from skerry.exchange.entries import ReadableSpool
from skerry.exchange.groupby.arrow import GroupRows, GroupState
from skerry.exchange.groupby.contract import (
    Conclude,
    Deliver,
    DeliverShare,
    Forget,
    GiveOn,
    Instruction,
    LetGo,
    Send,
)
from skerry.exchange.groupby.manager import ManagerCore
from skerry.exchange.groupby.router import RouterCore, RouterPhase
from skerry.exchange.groupby.rows import PartialRows
from skerry.exchange.groupby.spill import Spill
from skerry.exchange.groupby.strangers import answer
from skerry.exchange.groupby.worker import WorkerCore, WorkerPhase
from skerry.exchange.input import END, Input, Signal
from skerry.exchange.reader import SpoolInput
from skerry.exchange.spool import Body, Budget, Entry, Spool
from skerry.member import clock
from skerry.member.inputs import Arriving
from skerry.member.resources import Wakeup
from skerry.model.errors import PeerError, SkerryError
from skerry.model.fragment import GroupHere
from skerry.model.ids import GroupById
from skerry.model.limits import GROUP_BATCHES_AHEAD, Limits
from skerry.model.points import reach
from skerry.model.ranges import first_table
from skerry.wire.codec import decode_batch, decode_schema, decoded_bytes, encode_batch, encode_schema
from skerry.wire.groupby_messages import (
    End,
    Finish,
    FromManager,
    GroupByMessage,
    Grown,
    HandOver,
    Recruit,
    Recruited,
    Redirect,
    ToManager,
)
from skerry.wire.messages import Message


class Port(msgspec.Struct, frozen=True):
    """What a group-by needs of its query at this member.

    `open_channel(edge, to, spool, schema)` sends a spool's rows; its failure ends the query.
    """

    me: str
    limits: Limits
    budget: Budget
    directory: str
    send: Callable[[str, Message], None]
    new_spool: Callable[[str], Spool]
    open_channel: Callable[[int, str, Spool, bytes], asyncio.Task[None]]
    own: Callable[[Coroutine[Any, Any, None]], object]
    fail: Callable[[BaseException], None]
    has_room: Callable[[int], bool]


class Part(msgspec.Struct, frozen=True):
    """A candidate's share of the group-by. `senders` send on the group's edge. `done(rows, bytes, …)`: it is over."""

    fragment: int
    shape: GroupHere
    senders: tuple[str, ...]
    output: Spool
    done: Callable[[int, int, Grown], None]


class _Feed:
    """Rows of one channel, or of this member's own sender, for the worker here."""

    def __init__(self, sender: str, spool: ReadableSpool, *, is_sent: bool, limits: Limits) -> None:
        self.sender = sender
        self.spool = spool
        self.schema: pa.Schema | None = None
        self.channel: Arriving | None = None
        self._is_sent = is_sent
        self._limits = limits
        self._next = 0

    def poll(self) -> GroupRows | Signal:
        """WAIT if there is nothing yet."""
        if self.spool.failed is not None:
            raise self.spool.failed
        while self._next < self.spool.length:
            if self.schema is None:
                assert self.channel is not None
                self.schema = decode_schema(self.channel.channel.schema)
            entry = self.spool.read(self._next)
            batch = decode_batch(entry.body, self.schema, self._limits.frame_bytes * 4) if entry.rows else None
            self._next += 1
            self.spool.release(self._next)
            if self.channel is not None:
                self.channel.channel.consumed(entry.decoded_bytes)
            if batch is not None:
                return GroupRows(batch, is_sent=self._is_sent)
        return END if self.spool.finished else Signal.WAIT


class Grouping:
    """Belongs to the member's loop. Folding is done there too, a batch at a time."""

    def __init__(self, group: GroupById, members: tuple[str, ...], port: Port) -> None:
        """`members`: those of the plan, to whom rows may go; the first is the manager."""
        self.group = group
        self._members = frozenset(members)
        self._manager_name = members[0]
        self._port = port
        self._bounds = port.limits.group_by
        self._manager: ManagerCore | None = None
        self._worker: WorkerCore | None = None
        self._state: GroupState | None = None
        self._router: RouterCore | None = None
        self._router_done: Callable[[], None] | None = None
        self._part: Part | None = None
        self._feeds: list[_Feed] = []  # for the worker
        self._shares: dict[str, _Feed] = {}  # by who may hand one over
        self._share_of: _Feed | None = None
        self._epoch = 0
        self._leaving: dict[tuple[int, str], Spool] = {}  # by edge and receiver
        self._channels: list[asyncio.Task[None]] = []  # that send what leaves
        self._changed = Wakeup()  # there may be something to do for the worker
        self._acted = Wakeup()  # deadlines may have changed
        self._ends: list[Callable[[], None]] = []
        self._is_over = self._is_watched = False
        self._given = (0, 0)

    # --- who takes part here ---------------------------------------------------------------------
    def take_part(self, part: Part, arriving: Sequence[Arriving]) -> None:
        """This member may be a worker; the manager's is one from the beginning. `arriving`: all channels here."""
        port, shape, now = self._port, part.shape, clock.now()
        self._part = part
        for each in arriving:
            channel = each.channel.channel
            feed = _Feed(channel.sender, each.spool, is_sent=channel.edge == self.group.edge, limits=port.limits)
            feed.channel = each
            if channel.edge == shape.shares:
                self._shares[channel.sender] = feed
            else:
                self._feeds.append(feed)
            self._ends.append(each.spool.subscribe(self._changed))
        if port.me == self._manager_name:
            others = shape.members[1:]
            candidates = {name: len(others) - place for place, name in enumerate(others)}
            self._manager = ManagerCore(self.group, port.me, part.senders, candidates, self._bounds, now)
            state = self._new_state(shape)
            self._worker = WorkerCore(
                self.group, port.me, port.me, state, self._bounds, now, epoch=1, table=first_table(port.me)
            )
        port.own(self._work())
        self._begin_watch()

    def will_send(self, done: Callable[[], None]) -> None:
        """A fragment here will make rows: from now on it hears of tables. `done` when nobody needs them any more."""
        self._router = RouterCore(self.group, self._manager_name, self._bounds, clock.now())
        self._router_done = done
        self._begin_watch()

    def send_rows(self, spool: ReadableSpool, schema: bytes) -> None:
        """Its rows are, or will be, in `spool`."""
        self._port.own(self._route(spool, schema))

    def stop(self) -> None:
        """The query is over here: nothing more is begun."""
        self._is_over = True
        self._acted()
        self._changed()

    def close(self) -> None:
        """After `stop`, when none of its tasks runs any more."""
        for end in self._ends:
            end()
        if self._state is not None:
            self._state.clear()

    # --- what comes ------------------------------------------------------------------------------
    def received(self, sender: str, message: GroupByMessage) -> None:
        """PeerError for what this sender may not say."""
        part, now = self._part, clock.now()
        is_for_manager = isinstance(message, ToManager)
        may_say = {*part.senders, *part.shape.members} if is_for_manager and part is not None else {self._manager_name}
        if sender not in may_say or (is_for_manager and self._manager is None):
            raise PeerError(f"{self.group}: {type(message).__name__} of {sender}, which does not say it here")
        try:
            if isinstance(message, ToManager):
                assert self._manager is not None
                self._do(self._manager.received(sender, message, now), self.group.edge)
            else:
                self._obey(message, now)
        except SkerryError as error:  # whoever takes part and breaks the protocol has broken the query
            self._port.fail(error)
        self._changed()

    def _obey(self, message: FromManager, now: float) -> None:
        if isinstance(message, Redirect | HandOver | Finish) and not self._members.issuperset(message.table.members):
            # The plan says whom rows may go to, and was admitted here.
            raise PeerError(f"{self.group}: a table with members that are not those of the plan")
        if isinstance(message, Recruit) and self._worker is None:
            self._recruited(message, now)
            return
        # A table and an end are for both parts of a member.
        if self._router is not None and isinstance(message, Redirect | End):
            self._do(self._router.received(message, now), self.group.edge)
        if self._worker is not None:
            self._do(self._worker.received(message, now), self._forwards)
        elif self._router is None and (reply := answer(self._port.me, message)) is not None:
            self._port.send(self._manager_name, reply)
        if isinstance(message, End):
            self._end()

    def _recruited(self, message: Recruit, now: float) -> None:
        part = self._part
        reach("recruited")
        if part is None or message.giver not in self._shares:
            raise PeerError(f"{self.group}: {self._port.me} is recruited for what {message.giver} would give")
        if not self._port.has_room(self._bounds.memory_bytes):
            self._port.send(self._manager_name, Recruited(self.group, is_taken=False))
            return
        self._epoch, self._share_of = message.epoch, self._shares[message.giver]
        self._worker = WorkerCore(
            self.group,
            self._port.me,
            self._manager_name,
            self._new_state(part.shape),
            self._bounds,
            now,
            epoch=message.epoch,
            giver=message.giver,
        )
        self._do(self._worker.received(message, now), self._forwards)

    def _new_state(self, shape: GroupHere) -> GroupState:
        limits, budget = self._port.limits, self._port.budget
        self._state = GroupState(shape.keys, shape.steps, limits, self._bounds, self._new_spill, budget.change_state)
        return self._state

    def _new_spill(self, rows: PartialRows) -> Spill:
        limits = self._port.limits

        def decode(body: Body, schema: pa.Schema) -> pa.RecordBatch:
            return decode_batch(body, schema, limits.frame_bytes * 4)

        return Spill(rows, self._port.budget, self._port.directory, str(self.group), encode_batch, decode)

    @property
    def _forwards(self) -> int:
        assert self._part is not None
        return self._part.shape.forwards

    # --- what is done ----------------------------------------------------------------------------
    def _do(self, instructions: Sequence[Instruction], edge: int) -> None:
        """`edge`: which rows go on that are delivered."""
        for each in instructions:
            match each:
                case Send(to=to, message=message):
                    self._port.send(to, message)
                case Deliver(to=to, rows=rows):
                    self._leave(edge, to, rows)
                case DeliverShare(to=to, parts=parts):
                    self._port.own(self._hand_over(to, parts))
                case GiveOn():
                    self._port.own(self._give())
                case LetGo(error=error):
                    if error is not None:
                        self._port.fail(error)
                case Conclude(error=error):
                    self._conclude(error)
                case Forget():
                    pass
                case never:
                    assert_never(never)

        if instructions:
            self._acted()

    def _conclude(self, error: SkerryError | None) -> None:
        """Those that were never asked are told as well: they have to know that nothing comes."""
        assert self._manager is not None
        assert self._part is not None
        if error is not None:
            self._port.fail(error)
        for member in {*self._part.shape.members} - self._manager.unended:
            self._port.send(member, End(self.group))

    def _leave(self, edge: int, to: str, rows: GroupRows) -> None:
        batch = rows.batch if edge == self.group.edge else rows.weighed()
        spool = self._leaving.get((edge, to)) or self._opened(edge, to, batch.schema)
        spool.append(Entry(encode_batch(batch), batch.num_rows, decoded_bytes(batch)))

    def _opened(self, edge: int, to: str, schema: pa.Schema) -> Spool:
        spool = self._leaving[edge, to] = self._port.new_spool(f"edge {edge} to {to}")
        if to == self._port.me:
            feed = _Feed(to, spool, is_sent=True, limits=self._port.limits)
            feed.schema = schema
            self._feeds.append(feed)
            self._ends.append(spool.subscribe(self._changed))
        else:
            self._channels.append(self._port.open_channel(edge, to, spool, encode_schema(schema)))
        return spool

    async def _has_room(self, edge: int) -> None:
        """Until what left before is on its way: rows that wait here would go by a table that is no longer in force."""
        if not self._is_crowded(edge):
            return
        wakeup = Wakeup()
        end = self._port.budget.subscribe(wakeup)
        try:
            while self._is_crowded(edge):
                await wakeup.wait()
        finally:
            end()

    def _is_crowded(self, edge: int) -> bool:
        leaving = (spool for (number, _), spool in self._leaving.items() if number == edge)
        return any(spool.length - spool.first > GROUP_BATCHES_AHEAD for spool in leaving)

    async def _route(self, spool: ReadableSpool, schema: bytes) -> None:
        router = self._router
        assert router is not None
        arrow, wakeup = decode_schema(schema), Wakeup()
        self._ends.append(spool.subscribe(wakeup))
        rows: Input = SpoolInput(spool, arrow, self._decode, release=True)
        reach("groups sent")
        while (batch := rows.poll()) is not END and router.phase is RouterPhase.SENDING:
            if isinstance(batch, Signal):
                await wakeup.wait()
                continue
            self._do(router.send(GroupRows(batch, is_sent=True)), self.group.edge)
            await asyncio.sleep(0)
            await self._has_room(self.group.edge)
        if router.phase is RouterPhase.SENDING:
            for (edge, _), leaving in self._leaving.items():
                if edge == self.group.edge:
                    leaving.finish()
            self._do(router.done(clock.now()), self.group.edge)
            self._changed()

    def _decode(self, body: Body, schema: pa.Schema) -> pa.RecordBatch:
        return decode_batch(body, schema, self._port.limits.frame_bytes * 4)

    async def _hand_over(self, to: str, parts: Input) -> None:
        assert self._part is not None
        edge = self._part.shape.shares
        spool: Spool | None = None
        reach("share handed over")
        while isinstance(batch := parts.poll(), pa.RecordBatch):
            spool = spool or self._opened(edge, to, batch.schema)
            spool.append(Entry(encode_batch(batch), batch.num_rows, decoded_bytes(batch)))
            await asyncio.sleep(0)
            await self._has_room(edge)
        assert self._state is not None
        (spool or self._opened(edge, to, self._state.schema)).finish()

    async def _give(self) -> None:
        assert self._part is not None
        assert self._state is not None
        assert self._worker is not None
        rows = size_bytes = 0
        reach("groups given")
        groups = self._state.drain()
        while isinstance(batch := groups.poll(), pa.RecordBatch):
            entry = Entry(encode_batch(batch), batch.num_rows, decoded_bytes(batch))
            self._part.output.append(entry)
            rows, size_bytes = rows + entry.rows, size_bytes + entry.decoded_bytes
            await asyncio.sleep(0)
        self._given = rows, size_bytes
        self._part.output.finish()
        self._do(self._worker.given(), self._forwards)

    # --- the worker's rows -----------------------------------------------------------------------
    async def _work(self) -> None:
        while not self._is_over:
            if self._take_some():
                await asyncio.sleep(0)
                if self._part is not None:
                    await self._has_room(self._forwards)
            else:
                await self._changed.wait()

    def _take_some(self) -> bool:
        """A batch of each channel that has one; whether there was any."""
        worker = self._worker
        if worker is None or worker.phase not in (WorkerPhase.JOINING, WorkerPhase.WORKING, WorkerPhase.COUNTED):
            return False
        if worker.phase is WorkerPhase.JOINING:
            return self._take_share(worker)
        found = False
        for feed in list(self._feeds):
            if isinstance(rows := feed.poll(), GroupRows):
                self._do(worker.rows(rows, clock.now()), self._forwards)
                found = True
            elif rows is END:
                self._feeds.remove(feed)
        return found

    def _take_share(self, worker: WorkerCore) -> bool:
        """Rows of others wait in their spools until the share is whole."""
        feed = self._share_of
        assert feed is not None
        rows = feed.poll()
        if rows is Signal.WAIT:
            return False
        part = rows if isinstance(rows, GroupRows) else None
        self._do(worker.share(feed.sender, self._epoch, part, clock.now()), self._forwards)
        return True

    # --- time, and the end -----------------------------------------------------------------------
    def _begin_watch(self) -> None:
        if not self._is_watched:
            self._is_watched = True
            self._port.own(self._watch())

    async def _watch(self) -> None:
        while not self._is_over:
            cores = (self._manager, self._worker, self._router)
            deadlines = [each.deadline for each in cores if each is not None and each.deadline is not None]
            await self._acted.wait(max(0.0, min(deadlines) - clock.now()) if deadlines else None)
            now = clock.now()
            if self._manager is not None:
                self._do(self._manager.tick(now), self.group.edge)
            if self._worker is not None:
                self._do(self._worker.tick(now), self._forwards)
            if self._router is not None:
                self._do(self._router.tick(now), self.group.edge)

    def _end(self) -> None:
        """The manager says that it is over; its own member hears it as all others."""
        if self._is_over:
            return
        self._is_over = True
        for spool in self._leaving.values():
            spool.finish()
        if self._part is not None:
            self._part.output.finish()
        self._port.own(self._finish())

    async def _finish(self) -> None:
        """This member's channels end before anybody here lets go of the query: one that is cut off would be a failure
        to its receiver."""
        for feed in (*self._feeds, *self._shares.values()):
            if feed.channel is not None:
                feed.channel.channel.stop_sending()
        if self._channels:
            await asyncio.wait(self._channels)
        if self._part is not None:
            self._part.done(*self._given, self._grown(self._part))
        if self._router_done is not None:
            self._router_done()

    def _grown(self, part: Part) -> Grown:
        """What EXPLAIN ANALYZE shows."""
        manager, worker, state = self._manager, self._worker, self._state
        return Grown(
            self.group.query,
            self._port.me,
            part.fragment,
            manager.recruits if manager is not None else 0,
            worker.epoch if worker is not None else 0,
            manager.splits if manager is not None else 0,
            worker.rows_forwarded if worker is not None else 0,
            state.spilled_bytes if state is not None else 0,
        )
