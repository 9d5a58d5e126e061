"""The file in which a member keeps statistics and sizes over its restarts, if the configuration names a place."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from skerry.config import Config
from skerry.config.ownfiles import NotOurs, read_own, reason, write_own
from skerry.member.kept import (
    Kept,
    KeptTable,
    Unreadable,
    decode,
    encode,
    owner_of,
    planned_over,
    sizes_of,
)
from skerry.member.resources import Workers
from skerry.model import trace
from skerry.model.fragment import Plan
from skerry.model.progress import FragmentProgress
from skerry.model.table import Column
from skerry.plan.observed import Observed, Size, VersionOf

# Tables become known one after the other, and queries end all the time: many changes make one file.
_STATISTICS_S = 0.2
_SIZES_S = 30.0


class Keeping:
    """Without a place (`state`) nothing is kept. A file that cannot be read or written is a line in the log."""

    def __init__(
        self,
        config: Config,
        member: str,
        observed: Observed,
        workers: Workers,
        own: Callable[[Awaitable[None], str], None],
    ) -> None:
        self._member = member
        self._limits = config.limits
        self._owner = owner_of(config, member)
        self._planned_over = planned_over(config)
        self._observed = observed
        self._workers = workers
        self._own = own
        self._path = config.kept_path(member)
        self._names = frozenset(config.member(member).tables)
        self._tables: dict[str, KeptTable] = {}
        self._is_changed = asyncio.Event()
        self._is_urgent = asyncio.Event()
        self._turn = asyncio.Lock()
        self._is_failing = False

    async def load(self) -> None:
        """Before anything is planned or gathered."""
        if not self._path:
            return
        try:
            kept = decode(await self._workers.run(_read, self._path, self._limits.kept_bytes), self._owner)
        except FileNotFoundError:
            kept = Kept(self._owner)
        except (OSError, NotOurs, Unreadable) as error:
            kept = Kept(self._owner)
            trace.emit(trace.KeptRefused(self._member, reason(error)))
        self._tables = {name: table for name, table in kept.tables.items() if name in self._names}
        if kept.planned_over == self._planned_over:
            self._observed.restore((each.name, Size(each.rows, each.size_bytes)) for each in kept.sizes)
        self._own(self._write_changes(), "kept statistics")

    def table(self, name: str, files_version: int, read_as: str, columns: Sequence[Column]) -> KeptTable | None:
        """What is known of these files, read in that way; nothing if it cannot be so of these columns."""
        kept = self._tables.get(name)
        if kept is None or (kept.files_version, kept.read_as) != (files_version, read_as):
            return None
        if not kept.is_sensible(columns):
            trace.emit(trace.KeptRefused(self._member, f"those of table {name} cannot be so"))
            del self._tables[name]
            return None
        return kept

    def keep_table(self, name: str, table: KeptTable) -> None:
        if self._path and self._tables.get(name) != table:
            self._tables[name] = table
            self._is_changed.set()
            self._is_urgent.set()

    def ran(self, plan: Plan, fragments: Sequence[FragmentProgress], version_of: VersionOf) -> None:
        """A query has ended well: if all of its fragments did, their sizes are those of its edges."""
        if not all(each.state == "done" for each in fragments):
            return
        before = self._observed.changes
        sizes = {each.fragment: Size(each.rows, each.size_bytes) for each in fragments}
        self._observed.learn(plan, sizes, version_of)
        if self._observed.changes != before:
            self.sizes_changed()

    def sizes_changed(self) -> None:
        if self._path:
            self._is_changed.set()

    async def close(self) -> None:
        """What has not been written yet is written now, and what is being written is waited for."""
        with suppress(TimeoutError):  # a disk that hangs must not hang the member's end as well
            await asyncio.wait_for(self._write(), self._limits.stop_s)

    async def _write_changes(self) -> None:
        while True:
            await self._is_changed.wait()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_urgent.wait(), _SIZES_S)
            await asyncio.sleep(_STATISTICS_S)
            await self._write()

    async def _write(self) -> None:
        # Whoever writes is waited for, and nobody writes the same again: a thread that writes goes on when its task is
        # cancelled, and the member's next start would read the file as it was before.
        async with self._turn:
            if not self._is_changed.is_set():
                return
            self._is_changed.clear()
            self._is_urgent.clear()
            tables, seen = dict(self._tables), self._observed.all()
            try:
                await self._workers.run(self._replace, tables, seen)
                self._is_failing = False
            except (OSError, ValueError) as error:
                if not self._is_failing:  # once, until it works again
                    trace.emit(trace.KeptUnwritten(self._member, reason(error)))
                self._is_failing = True

    def _replace(self, tables: dict[str, KeptTable], seen: list[tuple[str, Size]]) -> None:
        kept = Kept(self._owner, tables, self._planned_over, sizes_of(seen))
        _write(self._path, encode(kept, self._limits.kept_bytes))


def _read(path: str, bytes_max: int) -> bytes:
    content = read_own(path, bytes_max)
    if len(content) > bytes_max:
        raise Unreadable(f"it is larger than {bytes_max} bytes (limits.kept_bytes)")
    return content


def _write(path: str, content: bytes) -> None:
    """Values are nobody else's."""
    write_own(path, content)
