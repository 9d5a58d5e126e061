"""Shell of commits: what the core decides is written, sent, looked up and applied; who waits is answered."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, assert_never

from skerry.member import clock
from skerry.model import trace
from skerry.model.commits import Committed, Layouts, Part, Prepared, Record, Staged, TransactionId, Write
from skerry.model.errors import (
    ClocksApart,
    InternalError,
    Overloaded,
    SiteError,
    SiteStopping,
    SkerryError,
    unsure,
)
from skerry.model.ids import QueryId
from skerry.model.limits import CLOCKS_TOLD_S, COMMIT_LAZY_S, COMMIT_ROOM_S, COMMIT_TICK_S, CommitLimits
from skerry.model.sharded import BucketMap
from skerry.tables.clock import COUNTER_BITS, At
from skerry.tables.commits import Commits
from skerry.tables.instructions import (
    Answer,
    Apply,
    Discard,
    EndedAlone,
    Instruction,
    Look,
    Looked,
    Moved,
    Persist,
    PrepareAlone,
    ReadReady,
    ReadRefused,
    Send,
    Tell,
    Unsent,
)
from skerry.tables.outcomes import Known
from skerry.tables.store import Unwritten
from skerry.wire.commit_messages import (
    CommitMessage,
    Decided,
    Done,
    Outcome,
    Prepare,
    Refusal,
    State,
    Submit,
)
from skerry.wire.messages import Failure
from skerry.wire.values import error_of, failure_of

# Records, their turn, and who is told in the store's thread when they are on disk, or why they are not.
KeepRecords = Callable[[Iterable[Record], int, Callable[[BaseException | None], None]], None]
_T = TypeVar("_T")


def at() -> At:
    return At(clock.now(), time.time_ns() // 1000)


class Committing:
    """Belongs to the member's loop. `persist` is None for a member without a disk.

    `look` finds what a transaction meets, `apply` shows readers what it wrote, `discard` removes files of staged rows,
    `moved` tells all of a bucket map. `reach`: whether a member has a connection; one that has none is dialled.
    """

    def __init__(
        self,
        member: str,
        limits: CommitLimits,
        records: Iterable[Record],
        persist: KeepRecords | None,
        look: Callable[[QueryId, Part, int], Looked | Awaitable[Looked]],
        apply: Callable[[int, tuple[Write, ...], tuple[Staged, ...], Layouts], None],
        discard: Callable[[tuple[Staged, ...]], None],
        send: Callable[[str, CommitMessage], None],
        own: Callable[[Coroutine[Any, Any, None], str], None],
        moved: Callable[[BucketMap], None] = lambda _: None,
        reach: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._member = member
        self._limits = limits
        self._persist = persist
        self._look = look
        self._apply = apply
        self._discard = discard
        self._send = send
        self._own = own
        self._moved = moved
        self._reach = reach
        self._loop = asyncio.get_running_loop()
        self._core = Commits(member, limits, at(), records, has_disk=persist is not None)
        self._trouble: SkerryError | None = None
        self._queue: deque[Persist] = deque()  # in the order of the core
        self._in_flight = 0
        self._done: deque[tuple[Persist, BaseException | None]] = deque()  # by the store, and not heard here yet
        self._done_turn = threading.Lock()
        self._turn = 0  # of the store: records that follow each other
        self._unwritten: list[tuple[Persist, Unwritten]] = []  # until all of the turn are back
        self._room: asyncio.TimerHandle | None = None  # when the disk is tried again
        self._no_room: SkerryError | None = None
        self._told_apart: dict[str, float] = {}  # by member: not before this time again
        self._todo: deque[Instruction] = deque()
        self._is_doing = False
        self._lazy: asyncio.TimerHandle | None = None
        self._acks: list[tuple[str, Done]] = []  # that nobody waits for
        self._acking: asyncio.TimerHandle | None = None
        self._answers: dict[TransactionId, asyncio.Future[Outcome]] = {}
        self._tells: dict[QueryId, asyncio.Future[Tell]] = {}
        self._reads: dict[str, asyncio.Future[None]] = {}
        self._ticking: asyncio.TimerHandle | None = None
        self._arm()

    async def settle(self, within_s: float) -> None:
        """Until all is on disk, or time is up: what is decided is told, and what is in doubt asked, after a start."""
        until = clock.now() + within_s
        if self._queue:
            self._pump()
        while (self._queue or self._in_flight) and self._trouble is None and clock.now() < until:
            await asyncio.sleep(COMMIT_TICK_S / 10)  # owner: `until`

    def stop(self) -> None:
        for timer in (self._ticking, self._lazy, self._acking, self._room):
            if timer is not None:
                timer.cancel()
        self._ticking = self._lazy = self._acking = self._room = None
        self._fail(SiteStopping(f"site {self._member} is stopping", member=self._member))

    async def written(self) -> None:
        """All commits that were applied until now are on disk when it returns; SiteError if they are not."""
        while self._persist is not None:
            self._check()
            if self._room is not None and self._no_room is not None:
                raise self._no_room
            self._pump()
            if not self._queue:
                break
            await asyncio.sleep(COMMIT_TICK_S / 10)  # owner: the store, which has room again or fails
        if self._persist is not None:
            until: Future[None] = Future()
            until.set_running_or_notify_cancel()  # the store tells of it, also if nobody waits any more
            self._persist((), self._turn, partial(_end, until))  # the store's calls are carried out in their order
            await asyncio.wrap_future(until)
        self._check()

    # --- what the member asks for ------------------------------------------------------------------------------------
    def now(self, at_least: int = 0) -> int:
        """A timestamp greater than all that this member has given or seen. SiteError if `at_least` is far ahead."""
        return self._core.snapshot(at_least, at())

    async def read(self, read_ts: int, tables: frozenset[int]) -> None:
        """Until all commits up to `read_ts` are here, and no other can come."""
        if self._trouble is not None:
            # What is applied is what was decided, and nothing is added any more.
            if isinstance(self._trouble, SiteStopping) or self._core.is_in_doubt(read_ts, tables):
                raise self._trouble
            return
        name, ready = uuid.uuid4().hex, self._loop.create_future()
        self._reads[name] = ready
        try:
            self._do(self._core.read(name, read_ts, tables, at()))
            await ready
        finally:
            self._reads.pop(name, None)

    def is_held(self, table: int) -> bool:
        """Whether staged rows have locked the table, and are not committed yet."""
        return self._core.is_held(table)

    async def named(self, table: int) -> None:
        """Until all staged rows of the table that readers see are named on disk. Nothing happens between that and what
        the caller does next."""
        while self._core.is_named_late(table):
            await self.written()

    async def submit(
        self, txn: TransactionId, first_start: int, parts: dict[str, Part], read_ts: int = 0, decider: str = ""
    ) -> Outcome:
        """How this attempt ended. It goes on, and is answered by its id, if whoever waits is gone.

        SiteError if nothing of it was sent, and so nothing of this attempt can have been written.
        """
        return await self._answered(
            self._answers, txn, lambda: self._core.submit(txn, first_start, read_ts, parts, at(), decider)
        )

    def committed(self, query: QueryId) -> Known | None:
        """A commit of this query that is known here."""
        return self._core.committed(query)

    async def inquire(self, query: QueryId, first_start: int, members: frozenset[str]) -> Tell:
        """How the client's statement ended, whoever decided it."""
        return await self._answered(self._tells, query, lambda: self._core.inquire(query, first_start, members, at()))

    async def _answered(self, waiting: dict[Any, asyncio.Future[_T]], key: Any, begin: Callable[[], Any]) -> _T:
        self._check()
        if key in waiting:
            raise InternalError(f"{key} is awaited already")
        answer: asyncio.Future[_T] = self._loop.create_future()
        waiting[key] = answer
        try:
            self._do(begin())
            return await answer
        finally:
            waiting.pop(key, None)

    def receive(self, sender: str, message: CommitMessage) -> None:
        """PeerError if the sender may not say this."""
        if isinstance(message, Refusal | Outcome):
            self._tell_apart(sender, message.failure)
        elif isinstance(message, Submit | Prepare):
            self._tell_behind(sender, message.clock)
        if self._trouble is None:
            self._do(self._core.receive(sender, message, at()))
            return
        # Whoever waits for an answer gets one at once: it would not know why there is none.
        failure = failure_of(self._trouble, self._member)
        match message:
            case Prepare(txn):
                self._obey(Send(sender, Refusal(txn, self._member, failure, False)))
            case Submit(txn):
                self._obey(Send(sender, Outcome(txn, State.UNKNOWN, failure=failure)))

    def _tell_apart(self, peer: str, failure: Failure | None) -> None:
        """In the logs of both members: the one that refuses, and the one that is refused."""
        if failure is not None and failure.code == ClocksApart.code:
            self.tell_apart(peer, failure.message)

    def _tell_behind(self, peer: str, timestamp: int) -> None:
        """Nothing is refused for that here. It will be there, when times of this member come."""
        behind_s = (time.time_ns() // 1000 - (timestamp >> COUNTER_BITS)) / 1e6
        if behind_s > self._limits.clock_ahead_s:
            self.tell_apart(peer, f"a message says a time that is {behind_s:.1f} s ago: the clock of {peer} is behind")

    def tell_apart(self, peer: str, reason: str) -> None:
        if clock.now() >= self._told_apart.get(peer, 0.0):
            self._told_apart[peer] = clock.now() + CLOCKS_TOLD_S
            trace.emit(trace.ClocksAreApart(self._member, peer, reason))

    def lost(self, member: str, error: SkerryError) -> None:
        if self._trouble is None:
            self._do(self._core.lost(member, error, at()))

    def up(self, member: str) -> None:
        if self._trouble is None:
            self._do(self._core.up(member, at()))

    # --- instructions -------------------------------------------------------------------------------------------------
    def _do(self, instructions: Iterable[Instruction]) -> None:
        """In order, also if one of them leads to more: a commit is applied before anybody reads what follows it."""
        self._todo.extend(instructions)
        if self._is_doing:
            return
        self._is_doing = True
        try:
            while self._todo and self._trouble is None:
                self._obey(self._todo.popleft())
        finally:
            self._is_doing = False
        self._arm()

    def _obey(self, instruction: Instruction) -> None:
        match instruction:
            case Persist():
                self._queue.append(instruction)
                if instruction.is_urgent:
                    self._pump()
                elif self._lazy is None:
                    self._lazy = self._loop.call_later(COMMIT_LAZY_S, self._pump)
            case Send(to, Submit(txn)) if not self._reach(to):
                self._core.withheld(txn)
            case Send(to, Done() as done):
                self._acks.append((to, done))
                if self._acking is None:
                    self._acking = self._loop.call_later(COMMIT_LAZY_S, self._ack)
            case Send(to, Decided() as decided):  # behind the answer to the client, who waits
                self._loop.call_soon(self._say, to, decided)
            case Send(to, message):
                self._say(to, message)
            case Look():
                self._begin_look(instruction)
            case Apply(_, commit_ts, writes, staged, layouts):
                self._apply(commit_ts, writes, staged, layouts)
            case Moved(buckets):
                self._moved(buckets)
            case Answer(outcome):
                self._tell_apart("another member", outcome.failure)
                _answer(self._answers.get(outcome.txn), outcome)
            case Unsent(txn, failure):
                if (answer := self._answers.get(txn)) is not None and not answer.done():
                    answer.set_exception(error_of(failure))
            case Tell(query):
                _answer(self._tells.get(query), instruction)
            case ReadReady(read):
                _answer(self._reads.get(read), None)
            case ReadRefused(read, failure):
                self._tell_apart("the member that was asked", failure)
                if (ready := self._reads.get(read)) is not None and not ready.done():
                    ready.set_exception(error_of(failure))
            case Discard(_, staged):
                self._discard(staged)
            case PrepareAlone() | EndedAlone():
                raise InternalError(f"{type(instruction).__name__} is between cores")
            case never:
                assert_never(never)

    def _say(self, to: str, message: CommitMessage) -> None:
        if isinstance(message, Refusal | Outcome):
            self._tell_apart(to, message.failure)
        try:
            self._send(to, message)
        except SkerryError as error:  # as if it were lost: nothing waits that does not say it again
            trace.emit(trace.WorkGivenUp(f"{type(message).__name__} to {to}", trace.cause_of(error)))

    def _ack(self) -> None:
        """Together, and not between the votes of others: the decider only forgets what is acked."""
        self._acking = None
        acks, self._acks = self._acks, []
        for to, done in acks:
            self._say(to, done)

    def _begin_look(self, look: Look) -> None:
        """Answered at once if memory tells all."""
        try:
            looked = self._look(look.txn.query, look.part, look.read_ts)
        except Exception as error:
            looked = self._misled(look, error)
        if isinstance(looked, Looked):
            self._do(self._core.looked(look.txn, look.number, looked, at()))
        else:
            self._own(self._end_look(look, looked), f"transaction {look.txn}")

    async def _end_look(self, look: Look, looking: Awaitable[Looked]) -> None:
        try:
            looked = await looking
        except Exception as error:
            looked = self._misled(look, error)
        if self._trouble is None:
            then = self._core.looked(look.txn, look.number, looked, at())
            records = [record for each in then if isinstance(each, Persist) for record in each.records]
            if looked.laid and not any(isinstance(record, Prepared | Committed) for record in records):
                self._discard(looked.laid)  # refused, or given up meanwhile
            self._do(then)

    def _misled(self, look: Look, error: Exception) -> Looked:
        if isinstance(error, SkerryError):
            return Looked(error=error)
        trace.emit(trace.WorkFailed(f"transaction {look.txn}"), error)
        wrong = f"transaction {look.txn}: {type(error).__name__}: {error}"
        return Looked(error=InternalError(wrong, member=self._member))

    def _arm(self) -> None:
        """Nobody looks at the time where nothing waits."""
        if self._ticking is None and self._trouble is None and not self._core.is_idle:
            self._ticking = self._loop.call_later(COMMIT_TICK_S, self._tick)

    def _tick(self) -> None:
        self._ticking = None
        self.tick()

    def tick(self) -> None:
        """What is late is said again or given up; old ids are forgotten."""
        if self._trouble is None:
            self._do(self._core.tick(at()))

    # --- the disk -----------------------------------------------------------------------------------------------------
    def _pump(self) -> None:
        """Hands all that waits to the store, in order; when that has too much already, the rest follows later."""
        if self._lazy is not None:
            self._lazy.cancel()
            self._lazy = None
        assert self._persist is not None
        while self._queue and self._trouble is None and not self._unwritten and self._room is None:
            entry = self._queue[0]
            try:
                self._persist(entry.records, self._turn, partial(self._told, entry))
            except Overloaded as error:
                if not self._in_flight:
                    self._fail(error)
                return
            self._queue.popleft()
            self._in_flight += 1

    def _told(self, entry: Persist, error: BaseException | None) -> None:
        """In the store's thread. The loop is woken once for what is committed together."""
        with self._done_turn:
            is_first = not self._done
            self._done.append((entry, error))
        if is_first:
            with suppress(RuntimeError):  # the loop is closed: what is on disk is found at the next start
                self._loop.call_soon_threadsafe(self._hear)

    def _hear(self) -> None:
        """In the order of the store."""
        try:
            while (told := self._next_done()) is not None:
                self._written(*told)
        except BaseException:
            self._loop.call_soon(self._hear)  # a mistake about one is not to stop the others
            raise

    def _next_done(self) -> tuple[Persist, BaseException | None] | None:
        with self._done_turn:
            return self._done.popleft() if self._done else None

    def _written(self, entry: Persist, error: BaseException | None) -> None:
        self._in_flight -= 1
        if self._trouble is not None:
            return
        if isinstance(error, Unwritten):
            self._unwritten.append((entry, error))
        elif error is not None:
            self._fail(error if isinstance(error, SkerryError) else InternalError(f"{error!r}", member=self._member))
            return
        else:
            self._no_room = None
            self._do(self._core.persisted(entry.then, at()))
        if self._unwritten and not self._in_flight:
            self._wait_for_room()
        elif self._queue and self._lazy is None:
            self._pump()

    def _wait_for_room(self) -> None:
        """All of the turn are back. Those that stay keep their order; the disk is tried again soon.

        What has gathered since is not written either: it may be the Prepared of what is given up now, whose Aborted
        would go before it.
        """
        unwritten, self._unwritten = self._unwritten, []
        later, self._queue = self._queue, deque()
        self._turn += 1
        if self._no_room is None:  # once, until it works again
            trace.emit(trace.WorkGivenUp("commits", trace.cause_of(unwritten[0][1])))
        self._no_room = unwritten[0][1]
        self._room = self._loop.call_later(COMMIT_ROOM_S, self._try_again)
        for entry, error in (*unwritten, *((entry, self._no_room) for entry in later)):
            self._do(self._core.unwritten(entry, error, at()))

    def _try_again(self) -> None:
        self._room = None
        self._pump()

    def _check(self) -> None:
        if self._trouble is not None:
            raise self._trouble

    def _fail(self, error: SkerryError) -> None:
        """Nothing is committed here any more until the member starts anew and reads what is on disk."""
        if self._trouble is not None:
            return
        why = f"site {self._member}: nothing can be committed until it starts anew: {error.message}"
        is_stopping = isinstance(error, SiteStopping)
        self._trouble = error if is_stopping else SiteError(why, member=self._member, suggestion=error.suggestion)
        for txn, outcome in self._answers.items():
            if not outcome.done():
                outcome.set_exception(unsure(txn.query, self._trouble))
        waiting: list[asyncio.Future[Any]] = [*self._tells.values(), *self._reads.values()]
        for answer in waiting:
            if not answer.done():
                answer.set_exception(self._trouble)


def _end(until: Future[None], error: BaseException | None) -> None:
    if error is None:
        until.set_result(None)
    else:
        until.set_exception(error)


def _answer(waiting: asyncio.Future[_T] | None, answer: _T) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(answer)
