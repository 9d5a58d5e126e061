"""Shell of a member's SQLite file: one thread owns it, and commits all calls that have gathered in one transaction.

Every call gives a future, done when its change is on the disk. Calls take effect in the order in which they were made.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from skerry.model.commits import Committed, Prepared, Record, Write
from skerry.model.errors import InternalError, Overloaded, SiteError, SkerryError
from skerry.model.limits import STORE_TOGETHER, STORE_WAITING, STORE_WAITING_BYTES
from skerry.model.points import reach
from skerry.model.sharded import BucketMap, OwnTable
from skerry.tables import records
from skerry.tables.catalogue import Kept
from skerry.tables.durable import Lock, make_folder, sync_folder
from skerry.tables.manifest import Flush
from skerry.tables.records import APPLICATION, MOVED_SCHEMA, SCHEMA, SCHEMA_VERSION, STAGED_SCHEMA, Loaded

FILE = "tables.sqlite"

_WITH_WRITES = (Prepared, Committed)

_T = TypeVar("_T")
_Change = Callable[[sqlite3.Connection], Any]
_Told = Callable[[Any, BaseException | None], None]


class Unwritten(SiteError):
    """Surely nothing of it is on the disk, which may have room again later."""


class _Call:
    """`turn`: if one of a turn is not written, none that was called after it in the same turn is; None: by itself."""

    __slots__ = ("_is_over", "_told", "change", "size_bytes", "turn")

    def __init__(self, change: _Change, size_bytes: int, turn: int | None, told: _Told) -> None:
        self.turn = turn
        self.change = change
        self.size_bytes = size_bytes
        self._told = told
        self._is_over = False

    def end(self, answer: Any, error: BaseException | None = None) -> None:
        """Once: whoever waits is told."""
        if not self._is_over:
            self._is_over = True
            self._told(answer, error)


class Store:
    """`loaded` is what the file held when it was opened. Whoever opens it is the folder's one writer until `close`."""

    loaded: Loaded

    def __init__(self, folder: str, member: str) -> None:
        """Blocks until the file is open and read; SiteError if it cannot be."""
        self.folder = folder
        self.path = os.path.join(folder, FILE)
        self._member = member
        self._turn = threading.Condition()
        self._waiting: deque[_Call] = deque()
        self._waiting_bytes = 0
        self._is_closing = False
        self._broken: SkerryError | None = None
        self._failed_turn: int | None = None
        self._failed_by: SkerryError | None = None
        try:
            make_folder(folder)
            self._lock = Lock(folder, member)
        except OSError as error:
            raise self._site_error(f"{folder} cannot be written ({error.strerror})", _ROOM) from error
        opened: Future[Loaded] = Future()
        self._thread = threading.Thread(target=self._run, args=(opened,), name=f"{member}-tables", daemon=True)
        self._thread.start()
        try:
            self.loaded = opened.result()
        except BaseException:
            self._thread.join()
            self._lock.release()
            raise

    @property
    def trouble(self) -> SkerryError | None:
        """Why nothing can be written until the file is opened anew; None if it can."""
        return self._broken

    def close(self) -> None:
        """What was called before is written; blocks until then."""
        with self._turn:
            self._is_closing = True
            self._turn.notify()
        self._thread.join()
        self._lock.release()

    # --- calls --------------------------------------------------------------------------------------------------------
    def keep(self, kept: Kept) -> Future[None]:
        """All definitions, and with them the tables that are here or no longer."""
        return self._call(partial(records.keep, kept=kept, member=self._member))

    def put_table(self, table: OwnTable) -> Future[None]:
        return self._call(partial(records.put_table, table=table))

    def drop_table(self, table: int) -> Future[None]:
        return self._call(partial(records.drop_table, table=table))

    def folder_gone(self, table: int) -> Future[None]:
        return self._call(partial(records.folder_gone, table=table))

    def put_map(self, buckets: BucketMap) -> Future[None]:
        return self._call(partial(records.put_map, buckets=buckets))

    def persist(self, entries: Iterable[Record], turn: int | None = None) -> Future[None]:
        """All of them or none, after all that were given before. Unwritten if they can be given again, and then all
        that were given since in the same turn fail as well: records keep their order."""
        kept = tuple(entries)
        return self._call(partial(records.persist, records=kept), _size_of(kept), turn)

    def hand(self, entries: Iterable[Record], turn: int, told: Callable[[BaseException | None], None]) -> None:
        """The same for whoever is told, in the thread of the store or at once: each commit comes here, and a future has
        locks of its own. What `told` does must be short, and raise nothing."""
        kept = tuple(entries)
        change = partial(records.persist, records=kept)
        self._add(_Call(change, _size_of(kept), turn, lambda _, error: told(error)))

    def forget(self) -> Future[bool]:
        """Some of the ids that a record said are expired; True: call again."""
        return self._call(records.forget)

    def flushed(self, table: int, flush: Flush) -> Future[None]:
        return self._call(partial(records.flushed, table=table, flush=flush))

    def published(self, table: int, generation: int, upto_ts: int, delta_version: int) -> Future[None]:
        return self._call(
            partial(records.published, table=table, generation=generation, upto_ts=upto_ts, delta_version=delta_version)
        )

    def trim(self, table: int, kept_ts: int, names: Iterable[str]) -> Future[None]:
        return self._call(partial(records.trim, table=table, kept_ts=kept_ts, names=tuple(names)))

    def _call(
        self, change: Callable[[sqlite3.Connection], _T], size_bytes: int = 0, turn: int | None = None
    ) -> Future[_T]:
        """Overloaded when too much waits for the disk; else a future that ends, whatever happens."""
        answer: Future[_T] = Future()
        answer.set_running_or_notify_cancel()  # what is on its way to the disk cannot be called back
        self._add(_Call(change, size_bytes, turn, partial(_settle, answer)))
        return answer

    def _add(self, call: _Call) -> None:
        refused: SkerryError | None = None
        with self._turn:
            if self._is_closing:
                refused = self._site_error("the tables are closed", "start the member")
            elif self._broken is not None:
                refused = self._broken
            elif len(self._waiting) >= STORE_WAITING or self._waiting_bytes + call.size_bytes > STORE_WAITING_BYTES:
                raise Overloaded(
                    f"site {self._member}: {len(self._waiting)} writes ({self._waiting_bytes} bytes) wait for the disk",
                    member=self._member,
                    suggestion="try again shortly",
                )
            else:
                self._waiting.append(call)
                self._waiting_bytes += call.size_bytes
                if len(self._waiting) == 1:  # else the thread was told, and has not looked yet
                    self._turn.notify()
        if refused is not None:
            call.end(None, refused)

    # --- the thread ---------------------------------------------------------------------------------------------------
    def _run(self, opened: Future[Loaded]) -> None:
        file: sqlite3.Connection | None = None
        try:
            file = self._open()
            opened.set_result(records.load(file, f"site {self._member}: {self.path}"))
        except BaseException as error:
            if file is not None:
                file.close()
            opened.set_exception(self._explained(error) if isinstance(error, sqlite3.Error | OSError) else error)
            return
        calls: list[_Call] = []
        try:
            while calls := self._take():
                self._commit(file, calls)
        except BaseException as error:  # a mistake of ours: nobody may wait for a thread that is gone
            self._break(self._site_error(f"the thread of the tables ended ({error!r})", _RESTART), calls)
        finally:
            with suppress(sqlite3.Error):
                file.close()

    def _take(self) -> list[_Call]:
        """All that has gathered, as far as one transaction goes; [] at the end."""
        with self._turn:
            self._turn.wait_for(lambda: self._waiting or self._is_closing)
            taken = [self._waiting.popleft() for _ in range(min(len(self._waiting), STORE_TOGETHER))]
            self._waiting_bytes -= sum(call.size_bytes for call in taken)
            return taken

    def _commit(self, file: sqlite3.Connection, calls: list[_Call]) -> None:
        if self._broken is not None:
            _fail(calls, self._broken)
            return
        calls = self._without_failed(calls)
        if not calls:
            return
        try:
            file.execute("BEGIN IMMEDIATE")
            answers = [call.change(file) for call in calls]
            reach("store.committing")
        except (sqlite3.Error, SkerryError) as error:
            self._undo(file)
            if len(calls) > 1:  # one of them is to blame: the others are written without it
                for call in calls:
                    self._commit(file, [call])
            else:
                self._not_written(calls, error if isinstance(error, SkerryError) else self._explained(error))
            return
        try:
            file.execute("COMMIT")
        except sqlite3.Error as error:
            self._undo(file)
            if error.sqlite_errorname == "SQLITE_FULL":  # its last page did not fit: surely nothing is committed
                self._not_written(calls, self._explained(error))
            else:
                # Nobody knows which bytes are on the disk when a sync has failed. Only a fresh look tells.
                why = f"{self.path} cannot be written ({error}): whether the last statements were is not known"
                self._break(self._site_error(why, _UNKNOWN), calls)
            return
        reach("store.committed")
        for call, answer in zip(calls, answers, strict=True):
            call.end(answer)

    def _without_failed(self, calls: list[_Call]) -> list[_Call]:
        """Those of the turn that failed are not written: what they follow is not."""
        if self._failed_by is None:
            return calls
        _fail((call for call in calls if call.turn == self._failed_turn), self._failed_by)
        return [call for call in calls if call.turn != self._failed_turn]

    def _not_written(self, calls: list[_Call], error: SkerryError) -> None:
        for call in calls:
            if call.turn is not None:
                self._failed_turn, self._failed_by = call.turn, error
        _fail(calls, error)

    def _undo(self, file: sqlite3.Connection) -> None:
        with suppress(sqlite3.Error):
            if file.in_transaction:
                file.execute("ROLLBACK")

    def _break(self, error: SkerryError, calls: list[_Call]) -> None:
        with self._turn:
            self._broken = error
            waiting, self._waiting, self._waiting_bytes = list(self._waiting), deque(), 0
        _fail([*calls, *waiting], error)

    # --- opening ------------------------------------------------------------------------------------------------------
    def _open(self) -> sqlite3.Connection:
        is_new = not os.path.exists(self.path)
        if is_new and any(name.isdigit() for name in os.listdir(self.folder)):
            raise self._site_error(
                f"{self.path} is missing, but files of tables are there",
                f"restore {FILE} from a copy, or move the folder away to begin without tables",
            )
        file = sqlite3.connect(self.path, isolation_level=None, cached_statements=256)
        try:
            self._set_up(file, is_new)
        except BaseException:
            file.close()
            raise
        return file

    def _set_up(self, file: sqlite3.Connection, is_new: bool) -> None:
        file.execute("PRAGMA locking_mode = EXCLUSIVE")  # no other process reads: no shared memory, no file locks
        (application,) = file.execute("PRAGMA application_id").fetchone()
        (version,) = file.execute("PRAGMA user_version").fetchone()
        (count,) = file.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application != APPLICATION and (application or version or count):
            raise self._site_error(
                f"{self.path} is not a file of Skerry's tables", "move it away, or name another folder"
            )
        if version > SCHEMA_VERSION:
            raise self._site_error(
                f"{self.path} was written by a newer release (schema {version}, this one knows {SCHEMA_VERSION})",
                "start that release",
            )
        (mode,) = file.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise self._site_error(f"{self.path}: SQLite cannot keep a write-ahead log there", _ROOM)
        file.execute("PRAGMA synchronous = FULL")
        file.execute("PRAGMA fullfsync = ON")
        file.execute("PRAGMA checkpoint_fullfsync = ON")
        if version == 0:
            file.executescript(SCHEMA)
        file.execute(STAGED_SCHEMA)
        file.execute(MOVED_SCHEMA)
        (found,) = file.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise self._site_error(f"{self.path} is damaged ({found})", _COPY)
        try:  # a disk that is read-only shows here, not at the first statement
            file.execute("BEGIN IMMEDIATE")
            file.execute("UPDATE clock SET upto = upto")
            file.execute("COMMIT")
        except sqlite3.Error as error:
            self._undo(file)
            if error.sqlite_errorname != "SQLITE_FULL" or is_new:  # without room tables can be read
                raise
        if is_new:
            sync_folder(self.folder)

    def _explained(self, error: Exception) -> SkerryError:
        name = getattr(error, "sqlite_errorname", None) or ""
        if name == "SQLITE_FULL":
            what = f"{self.path}: no room on the disk; nothing of the statement is written"
            return Unwritten(f"site {self._member}: {what}", member=self._member, suggestion=_ROOM)
        if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
            what = f"{self.path} cannot be written ({error})"
            return Unwritten(f"site {self._member}: {what}", member=self._member, suggestion=_ROOM)
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return self._site_error(f"{self.path} is open in another program ({error})", "close that program")
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            return self._site_error(f"{self.path} is damaged, or no SQLite file ({error})", _COPY)
        if name.startswith("SQLITE_IOERR") or isinstance(error, OSError):
            return self._site_error(
                f"{self.path}: the disk failed ({error})", "look after the disk, then restart the member"
            )
        return InternalError(f"{self.path}: {name} {error}", member=self._member)

    def _site_error(self, what: str, suggestion: str) -> SiteError:
        return SiteError(f"site {self._member}: {what}", member=self._member, suggestion=suggestion)


_ROOM = "make room on that disk, or let the member's user write there"
_COPY = "restore the folder from a copy; other members go on without this one"
_RESTART = "restart the member; every acknowledged row is kept"
_UNKNOWN = (
    "restart the member when its disk is well, and ask again with the statement's id; every acknowledged row is kept"
)


def _settle(answer: Future[Any], result: Any, error: BaseException | None) -> None:
    if error is None:
        answer.set_result(result)
    else:
        answer.set_exception(error)


def _size_of(kept: tuple[Record, ...]) -> int:
    return sum([_size(record.writes) for record in kept if isinstance(record, _WITH_WRITES)])


def _size(writes: Iterable[Write]) -> int:
    return sum([len(write.key) + (len(write.row) if write.row else 0) for write in writes])


def _fail(calls: Iterable[_Call], error: Exception) -> None:
    for call in calls:
        call.end(None, error)
