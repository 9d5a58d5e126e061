"""A participant of transactions: locks, checks, prepares, votes, and does as the decider says. Pure (protocol, 11.2).

Reads at a timestamp are told here when to begin: after all commits that may be as old as that are known.
"""

from __future__ import annotations

import msgspec

from skerry.model.commits import (
    Aborted,
    Committed,
    Layouts,
    Part,
    Policy,
    Prepared,
    Staged,
    TransactionId,
    Write,
    is_blind,
)
from skerry.model.errors import (
    KeyExists,
    Overloaded,
    PeerError,
    RolledBack,
    SiteError,
    SkerryError,
    StaleSchema,
    TimedOut,
    UserError,
)
from skerry.model.limits import CommitLimits
from skerry.model.transitions import Machine, Step, staying
from skerry.tables.clock import At, HybridClock
from skerry.tables.instructions import (
    AloneWritten,
    Apply,
    CommitWritten,
    Discard,
    EndedAlone,
    Found,
    Instruction,
    Look,
    Looked,
    Persist,
    PrepareAlone,
    PrepareWritten,
    ReadReady,
    ReadRefused,
    Send,
)
from skerry.tables.locks import Died, Granted, Lock, LockTable
from skerry.tables.outcomes import Known, Outcomes
from skerry.wire.commit_messages import Decided, Done, Prepare, Refusal, Vote
from skerry.wire.values import failure_of


class TakingPhase(Step):
    LOCKING = "locking"  # others hold its locks
    LOOKING = "looking"  # the store looks at its keys
    WRITING = "writing"  # its writes are on their way to disk
    PREPARED = "prepared"  # voted: only the decider can end it
    COMMITTED = "committed"  # seen by readers; its commit is on its way to disk
    GONE = "gone"


class TakingEvent(Step):
    LOCKED = "it has its locks"
    PASSED = "the checks let it pass"
    REFUSED = "it died, waited too long, the checks refused it, or the disk had no room"
    PREPARED = "its writes are on disk"
    COMMIT = "the decider says commit"
    ABORT = "the decider says abort"
    WRITTEN = "its commit is on disk"


_P, _E = TakingPhase, TakingEvent
NEXT: dict[tuple[TakingPhase, TakingEvent], TakingPhase] = {
    (_P.LOCKING, _E.LOCKED): _P.LOOKING,
    (_P.LOCKING, _E.REFUSED): _P.GONE,
    (_P.LOOKING, _E.PASSED): _P.WRITING,
    (_P.LOOKING, _E.REFUSED): _P.GONE,
    (_P.WRITING, _E.PREPARED): _P.PREPARED,
    (_P.WRITING, _E.REFUSED): _P.GONE,
    # One alone is committed by the same write.
    (_P.WRITING, _E.WRITTEN): _P.GONE,
    (_P.PREPARED, _E.COMMIT): _P.COMMITTED,
    **staying((_P.COMMITTED,), _E.COMMIT),
    (_P.COMMITTED, _E.WRITTEN): _P.GONE,
    # The decider may give up before the vote; after it, nobody else may.
    **{(phase, _E.ABORT): _P.GONE for phase in (_P.LOCKING, _P.LOOKING, _P.WRITING, _P.PREPARED)},
}
_UNDECIDED = (TakingPhase.WRITING, TakingPhase.PREPARED)
_HOLDING = (TakingPhase.LOOKING, *_UNDECIDED)


class _Taking:
    """One transaction here. `decider` is this member itself for one that is alone."""

    def __init__(self, txn: TransactionId, first_start: int, read_ts: int, part: Part, decider: str) -> None:
        self.txn = txn
        self.first_start = first_start
        self.read_ts = read_ts
        self.part = part
        self.decider = decider
        self.is_alone = False
        self.look = 0
        self.prepare_ts = 0
        self.rows = 0
        self.writes: tuple[Write, ...] = ()
        self.staged: tuple[Staged, ...] = ()
        self.layouts: Layouts = ()
        self.locks = _locks_of(part)
        self.tables = frozenset([table for table, _ in self.locks])
        self.until = 0.0
        self.repeat_at = 0.0
        self.life = Machine("transaction", txn, NEXT, TakingPhase.LOCKING)


class _Read(msgspec.Struct, frozen=True):
    read_ts: int
    tables: frozenset[int]
    until: float


class Participant:
    """All transactions and waiting reads of one member."""

    def __init__(self, member: str, clock: HybridClock, outcomes: Outcomes, limits: CommitLimits) -> None:
        self._member = member
        self._clock = clock
        self._outcomes = outcomes
        self._limits = limits
        self._locks = LockTable()
        self._taking: dict[TransactionId, _Taking] = {}
        self._reads: dict[str, _Read] = {}
        self._looks = 0

    @property
    def is_idle(self) -> bool:
        return not self._taking and not self._reads and not len(self._locks)

    # --- after a start ---------------------------------------------------------------------------
    def restore(self, record: Prepared | Committed | Aborted) -> None:
        match record:
            case Prepared():
                self._clock.raise_to(record.prepare_ts)
                part = Part(record.writes, record.staged)
                taking = _Taking(record.txn, record.first_start, 0, part, record.decider)
                taking.prepare_ts, taking.rows = record.prepare_ts, record.rows
                taking.writes, taking.staged, taking.layouts = record.writes, record.staged, record.layouts
                taking.life.phase = TakingPhase.PREPARED
                self._taking[record.txn] = taking
            case Committed():
                self._clock.raise_to(record.commit_ts)
                self._taking.pop(record.txn, None)
                self._outcomes.add(record.txn, Known(record.first_start, record.commit_ts, record.rows))
            case Aborted():
                self._taking.pop(record.txn, None)

    def restored(self) -> None:
        """All records are read: what is still prepared has its locks again, and asks at the next tick."""
        for taking in self._taking.values():
            self._locks.take(taking.txn, taking.first_start, taking.locks)

    # --- prepare ---------------------------------------------------------------------------------
    def prepare(self, decider: str, message: Prepare, at: At) -> list[Instruction]:
        txn = message.txn
        if (taking := self._taking.get(txn)) is not None:
            return [self._vote(taking)] if taking.life.phase is TakingPhase.PREPARED else []
        known = self._outcomes.of(txn)
        if known is not None and known.commit_ts:
            return [Send(decider, Done(txn, self._member))]
        taking = _Taking(txn, message.first_start, message.read_ts, message.part, decider)
        return self._begin(taking, at)

    def prepare_alone(self, message: PrepareAlone, at: At) -> list[Instruction]:
        taking = _Taking(message.txn, message.first_start, message.read_ts, message.part, self._member)
        taking.is_alone = True
        return self._begin(taking, at)

    def _begin(self, taking: _Taking, at: At) -> list[Instruction]:
        if len(taking.locks) < len(taking.part.writes):
            return self._refuse(taking, PeerError(f"transaction {taking.txn}: a key stands twice in its writes"))
        if not self._outcomes.is_kept(taking.first_start):
            return self._refuse(taking, UserError(f"transaction {taking.txn}: it began too long ago"))
        if len(self._taking) >= self._limits.transactions:
            text = f"site {self._member}: {len(self._taking)} transactions are under way; try again shortly"
            return self._refuse(taking, Overloaded(text), is_retryable=True)
        answer = self._locks.ask(taking.txn, taking.first_start, taking.locks)
        if isinstance(answer, Died):
            text = f"transaction {answer.owner}, which began earlier, writes the same rows at {self._member}"
            return self._refuse(taking, UserError(text, suggestion="try again"), is_retryable=True)
        self._taking[taking.txn] = taking
        taking.until = at.s + self._limits.lock_wait_s
        return self._look(taking) if isinstance(answer, Granted) else []

    def _look(self, taking: _Taking) -> list[Instruction]:
        taking.life.move(TakingEvent.LOCKED)
        self._looks += 1
        taking.look = self._looks
        return [Look(taking.txn, taking.look, taking.part, taking.read_ts)]

    def looked(self, txn: TransactionId, number: int, looked: Looked, at: At) -> list[Instruction]:
        """What the store found, under the locks; nothing comes of it if the decider has given up since."""
        taking = self._taking.get(txn)
        if taking is None or taking.look != number:
            return []
        if looked.stale:
            return self._refuse(taking, StaleSchema(looked.stale, member=self._member), is_retryable=True)
        if looked.error is not None:
            return self._refuse(taking, looked.error, is_retryable=isinstance(looked.error, Overloaded))
        if taking.read_ts and taking.read_ts < looked.kept_from:
            text = f"transaction {txn}: its snapshot is older than what {self._member} keeps"
            return self._refuse(taking, RolledBack(text, suggestion="begin it again"), is_retryable=True)
        found = [*looked.writes, *looked.staged]
        newest_ts = max([each.commit_ts for each in found], default=0)
        if taking.read_ts and newest_ts > taking.read_ts:
            text = f"another transaction has written the same rows at {self._member} since this one began"
            return self._refuse(taking, RolledBack(text, suggestion="begin it again"), is_retryable=True)
        asked: tuple[Write | Staged, ...] = (*taking.part.writes, *taking.part.staged)
        if any(each.is_live and write.policy is Policy.FAIL for write, each in zip(asked, found, strict=True)):
            text = f"a row with the same primary key exists at {self._member}; nothing was written"
            return self._refuse(taking, KeyExists(text, suggestion="ON CONFLICT DO NOTHING or DO REPLACE"))
        taking.writes = _in_effect(taking.part.writes, looked.writes)
        taking.staged = looked.laid or taking.part.staged
        taking.layouts = looked.layouts
        counted = sum([write.is_counted for write in taking.writes])
        taking.rows = counted + sum([each.rows for each in looked.staged])
        taking.life.move(TakingEvent.PASSED)
        # Greater than every timestamp that was read at here, and than every commit to its keys.
        taking.prepare_ts = self._clock.tick(at)
        assert newest_ts < taking.prepare_ts, txn
        return [self._written_first(taking)]

    def _written_first(self, taking: _Taking) -> Persist:
        if taking.is_alone:
            committed = Committed(
                taking.txn,
                taking.first_start,
                taking.prepare_ts,
                taking.rows,
                taking.writes,
                taking.staged,
                taking.layouts,
            )
            return Persist((committed,), (AloneWritten(taking.txn),))
        prepared = Prepared(
            taking.txn,
            taking.first_start,
            taking.decider,
            taking.prepare_ts,
            taking.rows,
            taking.writes,
            taking.staged,
            taking.layouts,
        )
        return Persist((prepared,), (PrepareWritten(taking.txn, taking.prepare_ts),))

    def prepare_written(self, written: PrepareWritten, at: At) -> list[Instruction]:
        taking = self._taking.get(written.txn)
        if taking is None or taking.prepare_ts != written.prepare_ts:
            return []  # the decider has given up since; an Aborted follows the Prepared to disk
        taking.life.move(TakingEvent.PREPARED)
        taking.repeat_at = at.s + self._limits.repeat_s
        return [self._vote(taking)]

    def alone_written(self, txn: TransactionId) -> list[Instruction]:
        taking = self._taking[txn]
        taking.life.move(TakingEvent.WRITTEN)
        applied = Apply(txn, taking.prepare_ts, taking.writes, taking.staged, taking.layouts)
        return [applied, EndedAlone(txn, taking.prepare_ts, taking.rows), *self._let_go(taking)]

    def unwritten(self, txn: TransactionId, prepare_ts: int | None, error: SkerryError) -> list[Instruction]:
        """Its writes are surely not on disk: it is as if they had never been asked for. `prepare_ts` None: alone."""
        taking = self._taking.get(txn)
        if taking is None or prepare_ts not in (None, taking.prepare_ts):
            return []  # the decider has given up since
        return self._refuse(taking, error)

    def _vote(self, taking: _Taking) -> Instruction:
        vote = Vote(taking.txn, self._member, taking.first_start, taking.prepare_ts, taking.rows)
        return Send(taking.decider, vote)

    def _refuse(self, taking: _Taking, error: SkerryError, *, is_retryable: bool = False) -> list[Instruction]:
        taking.life.move(TakingEvent.REFUSED)
        refusal = Refusal(taking.txn, self._member, failure_of(error, self._member), is_retryable)
        return [Send(taking.decider, refusal), *self._discarded(taking), *self._let_go(taking)]

    # --- decisions -------------------------------------------------------------------------------
    def decided(self, sender: str, message: Decided) -> list[Instruction]:
        """Repeatable: what is over is only acknowledged."""
        taking = self._taking.get(message.txn)
        if taking is None:
            return [Send(sender, Done(message.txn, self._member))] if message.commit_ts else []
        event = TakingEvent.COMMIT if message.commit_ts else TakingEvent.ABORT
        if sender != taking.decider or taking.is_alone or not taking.life.takes(event):
            raise PeerError(f"transaction {message.txn}: {sender} may not say {event.name} to {taking.life}")
        if message.commit_ts:
            return self._commit(taking, message)
        is_written = taking.life.phase in _UNDECIDED
        taking.life.move(event)
        # Behind its Prepared, if that is still on its way.
        records = [Persist((Aborted(taking.txn),), is_urgent=False)] if is_written else []
        return [*records, *self._discarded(taking), *self._let_go(taking)]

    def _commit(self, taking: _Taking, decided: Decided) -> list[Instruction]:
        if not taking.life.move(TakingEvent.COMMIT):
            return []  # acknowledged when it is on disk
        # Whoever votes on these keys next votes a later time than this.
        self._clock.raise_to(decided.commit_ts)
        self._outcomes.add(taking.txn, Known(taking.first_start, decided.commit_ts, decided.rows))
        committed = Committed(taking.txn, taking.first_start, decided.commit_ts, decided.rows)
        lazily = Persist((committed,), (CommitWritten(taking.txn),), is_urgent=False)
        applied = Apply(taking.txn, decided.commit_ts, taking.writes, taking.staged, taking.layouts)
        return [lazily, applied, *self._unlock(taking)]

    def commit_written(self, txn: TransactionId) -> list[Instruction]:
        taking = self._taking.pop(txn)
        taking.life.move(TakingEvent.WRITTEN)
        return [Send(taking.decider, Done(txn, self._member))]

    @staticmethod
    def _discarded(taking: _Taking) -> list[Instruction]:
        staged = taking.staged or taking.part.staged
        return [Discard(taking.txn, staged)] if staged else []

    def _let_go(self, taking: _Taking) -> list[Instruction]:
        self._taking.pop(taking.txn, None)
        return self._unlock(taking)

    def _unlock(self, taking: _Taking) -> list[Instruction]:
        granted = self._locks.release(taking.txn)
        looks = [look for txn in granted for look in self._look(self._taking[txn])]
        return [*looks, *self.reads_ready()]

    # --- reads -----------------------------------------------------------------------------------
    def read(self, read: str, read_ts: int, tables: frozenset[int], at: At) -> list[Instruction]:
        """ReadReady or ReadRefused follows, within `read_wait_s`."""
        if read in self._reads:
            return []
        try:
            # Whoever prepares after this votes a later time: what is read now stays as it is.
            self._clock.observe(read_ts, at, "the reader")
        except SiteError as error:
            return [ReadRefused(read, failure_of(error, self._member))]
        if len(self._reads) >= self._limits.reads_waiting:
            full = Overloaded(f"site {self._member}: {len(self._reads)} reads wait already; try again shortly")
            return [ReadRefused(read, failure_of(full))]
        self._reads[read] = _Read(read_ts, tables, at.s + self._limits.read_wait_s)
        return self.reads_ready()

    def is_held(self, table: int) -> bool:
        """Whether staged rows have locked the table, and are not committed yet."""
        return any(
            staged.table == table and taking.life.phase in _HOLDING
            for taking in self._taking.values()
            for staged in taking.part.staged
        )

    def is_named_late(self, table: int) -> bool:
        """Whether readers see staged rows whose commit is still on its way to disk."""
        return any(
            staged.table == table and taking.life.phase is TakingPhase.COMMITTED
            for taking in self._taking.values()
            for staged in taking.part.staged
        )

    def is_in_doubt(self, read_ts: int, tables: frozenset[int]) -> bool:
        """Whether a commit at or before that time may be missing here."""
        return bool(self._in_doubt(_Read(read_ts, tables, 0.0)))

    def reads_ready(self) -> list[Instruction]:
        if not self._reads:
            return []
        ready = [name for name, read in self._reads.items() if self._is_ready(read)]
        for name in ready:
            del self._reads[name]
        return [ReadReady(name) for name in ready]

    def _is_ready(self, read: _Read) -> bool:
        # A clock that forgot this read over a restart would let later writes into its past.
        is_kept = read.read_ts <= self._clock.durable or self._clock.is_unkept
        return is_kept and not self._in_doubt(read)

    def _in_doubt(self, read: _Read) -> list[_Taking]:
        """Transactions that may turn out to be committed at or before the read; those prepared later cannot."""
        return [
            taking
            for taking in self._taking.values()
            if taking.life.phase in _UNDECIDED
            and taking.prepare_ts <= read.read_ts
            and not read.tables.isdisjoint(taking.tables)
        ]

    # --- time ------------------------------------------------------------------------------------
    def tick(self, at: At) -> list[Instruction]:
        instructions: list[Instruction] = []
        for taking in list(self._taking.values()):
            if taking.life.phase is TakingPhase.LOCKING and at.s >= taking.until:
                instructions += self._refuse(taking, self._locked_too_long(taking), is_retryable=True)
            elif taking.life.phase is TakingPhase.PREPARED and at.s >= taking.repeat_at:
                taking.repeat_at = at.s + self._limits.repeat_s
                instructions.append(self._vote(taking))
        for name, read in list(self._reads.items()):
            if at.s >= read.until:
                del self._reads[name]
                instructions.append(ReadRefused(name, failure_of(self._read_too_long(read), self._member)))
        return instructions

    def _locked_too_long(self, taking: _Taking) -> SkerryError:
        owner = self._locks.owner_before(taking.txn)
        holder = self._taking.get(owner) if owner is not None else None
        waits = f", which waits for {holder.decider}" if holder is not None else ""
        return TimedOut(
            f"site {self._member}: rows are locked by transaction {owner}{waits}; waited {self._limits.lock_wait_s:g} s"
        )

    def _read_too_long(self, read: _Read) -> SkerryError:
        waited = f"waited {self._limits.read_wait_s:g} s"
        doubts = self._in_doubt(read)
        if not doubts:
            return TimedOut(f"site {self._member}: its clock's mark is not written yet; {waited}")
        deciders = ", ".join(sorted({taking.decider for taking in doubts}))
        return TimedOut(
            f"site {self._member}: only {deciders} can tell whether {doubts[0].txn} was committed; {waited}",
            suggestion=f"check that {deciders} runs and can be reached from {self._member}, then try again",
        )


def _locks_of(part: Part) -> frozenset[Lock]:
    keys: list[Lock] = [(write.table, write.key) for write in part.writes]
    keys += [(staged.table, None) for staged in part.staged]
    return frozenset(keys)


def _in_effect(writes: tuple[Write, ...], found: tuple[Found, ...]) -> tuple[Write, ...]:
    """As they are written; without those that change nothing."""
    if is_blind(writes):
        return writes
    pairs = zip(writes, found, strict=True)
    return tuple([_as_found(write, each) for write, each in pairs if _takes_effect(write, each)])


def _takes_effect(write: Write, found: Found) -> bool:
    if write.row is None or write.is_patch:
        return found.is_live
    return not (write.policy is Policy.NOTHING and found.is_live)


def _as_found(write: Write, found: Found) -> Write:
    """A patch is kept as the row that it makes."""
    if not write.is_patch:
        return write
    return Write(write.table, write.key, found.row, write.policy, is_counted=write.is_counted)
