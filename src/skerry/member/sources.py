"""What the tables of one member are now: files are listed, every other source is asked, within a deadline."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from skerry.catalog.deltalog import look as look_at_delta
from skerry.catalog.listing import Listing, check_inside, list_table
from skerry.catalog.stores import list_store
from skerry.config import TableConfig
from skerry.member import clock
from skerry.member.resources import Workers
from skerry.model.config import SchemaConfig
from skerry.model.errors import SiteError, SkerryError, UserError
from skerry.model.limits import LOOKS_AT_ONCE, Limits
from skerry.model.names import Moment, base_of, split_older
from skerry.model.sources import (
    CatalogTable,
    JdbcTable,
    PlainFiles,
    Storage,
    Told,
    VersionedFolder,
    is_remote,
    split_url,
)
from skerry.spark.engine import Engine

State = Listing | Told
Answer = TypeVar("Answer")


class _Seen(NamedTuple):
    answer: asyncio.Task[State]
    until: float


class Sources:
    """One that hangs holds up the tables that it has, and no others: it has threads of its own, so many and no more.

    A look whose time is up goes on in its thread until its source answers; then the next one has its turn.
    """

    def __init__(
        self,
        data_root: str,
        storage: Storage,
        engine: Engine | None,
        limits: Limits,
        files: Workers,
        looks: Workers,
        *,
        is_sail: bool = False,
    ) -> None:
        self._is_sail = is_sail
        self._data_root = data_root
        self._storage = storage
        self._engine = engine
        self._limits = limits
        self._files = files
        self._looks = looks
        self._turns: dict[str, asyncio.Semaphore] = {}
        self._answered: dict[str, float] = {}  # when each source did so last
        # What stores and databases said of their tables lately, or are being asked; by name.
        self._seen: dict[str, _Seen] = {}
        self._asked: set[asyncio.Task[State]] = set()

    async def states(self, tables: Sequence[TableConfig]) -> Mapping[str, State | SkerryError]:
        """By name, which says the version too; files are listed in one go of one thread: most queries need no more."""
        asked = [table for table in tables if not table.is_listed]
        if not asked:
            return await self._files.run(self._list, tables)
        plain = [table for table in tables if table.is_listed]
        found = await self._files.run(self._list, plain) if plain else {}
        answers = await asyncio.gather(*(self._told(table) for table in asked))
        found |= {table.name: answer for table, answer in zip(asked, answers, strict=True)}
        return found

    def _list(self, tables: Sequence[TableConfig]) -> dict[str, State | SkerryError]:
        return {table.name: self._listing(table) for table in tables}

    def _listing(self, table: TableConfig) -> State | SkerryError:
        if split_older(table.name)[1] is not None:
            base, words = base_of(table.name), "AS OF is for tables of our own and those of Delta"
            return UserError(f"site {table.member}: table {base}: {words}", member=table.member)
        try:
            return list_table(self._data_root, table, self._limits.table_files)
        except SkerryError as error:
            return error

    async def _told(self, table: TableConfig) -> State | SkerryError:
        try:
            at = split_older(table.name)[1]
            if at is not None or not isinstance(table.source, PlainFiles | JdbcTable):
                return await self.ask(table, self._look, table, at)
            return await self._lately(table)
        except SkerryError as error:
            return error

    async def _lately(self, table: TableConfig) -> State:
        """What was said less than `limits.look_again_s` ago: to ask costs more than most statements, and a store money.

        Who comes while it is asked waits for the same answer. A mistake is not kept.
        """
        seen = self._seen.get(table.name)
        if seen is None or (seen.answer.done() and clock.now() >= seen.until):
            answer = asyncio.ensure_future(self.ask(table, self._look, table, None))
            self._asked.add(answer)
            answer.add_done_callback(self._asked.discard)
            answer.add_done_callback(partial(self._keep, table.name))
            seen = self._seen[table.name] = _Seen(answer, 0.0)
        return await asyncio.shield(seen.answer)

    def _keep(self, name: str, answer: asyncio.Task[State]) -> None:
        if answer.cancelled() or answer.exception() is not None:
            self.forget(name)
        else:
            self._seen[name] = _Seen(answer, clock.now() + self._limits.look_again_s)

    async def stop(self) -> None:
        """Nobody waits for an answer any more; a thread whose source does not answer is left to it."""
        for answer in (asked := list(self._asked)):
            answer.cancel()
        if asked:
            await asyncio.wait(asked)

    def forget(self, name: str) -> None:
        """Ask anew: what was said of the table is not so."""
        self._seen.pop(name, None)

    async def ask(self, table: TableConfig, function: Callable[..., Answer], *arguments: object) -> Answer:
        """A call that waits for the table's source; SiteError when it takes longer than `limits.look_s`.

        The wait for a turn is over when the source has answered nobody for so long: it may be busy, and is not late.
        """
        source = source_of(table)
        turn = self._turns.setdefault(source, asyncio.Semaphore(LOOKS_AT_ONCE))
        deadline = clock.now() + self._limits.look_s
        while True:
            try:
                await asyncio.wait_for(turn.acquire(), max(0.0, deadline - clock.now()))
                break
            except TimeoutError:
                answered_by = self._answered.get(source, 0.0) + self._limits.look_s
                if answered_by <= clock.now():
                    raise self._late(table) from None
                deadline = answered_by
        deadline = max(deadline, self._answered.get(source, 0.0) + self._limits.look_s)
        work = self._looks.begin(function, *arguments)
        work.add_done_callback(partial(self._over, source, turn))
        try:
            return await asyncio.wait_for(asyncio.shield(work), max(0.0, deadline - clock.now()))
        except TimeoutError:
            raise self._late(table) from None

    def _over(self, source: str, turn: asyncio.Semaphore, work: asyncio.Future[Any]) -> None:
        turn.release()
        if not work.cancelled():
            work.exception()  # nobody may wait for it any more
            self._answered[source] = clock.now()

    def _late(self, table: TableConfig) -> SiteError:
        return SiteError(
            f"site {table.member}: table {table.name}: {source_of(table)} has not answered in "
            f"{self._limits.look_s:g} s (limits.look_s)",
            member=table.member,
        )

    def _look(self, table: TableConfig, at: Moment | None) -> State:
        """Blocks. Every kind of source has its line here."""
        if at is not None and isinstance(table.source, PlainFiles | JdbcTable):
            raise UserError(f"{source_of(table)} keeps no older version: the table is read as it is now")
        if isinstance(table.source, PlainFiles):
            return list_store(table, self._storage, self._limits.table_files)
        assert self._engine is not None, "lite members have no tables"
        if isinstance(table.source, VersionedFolder) and table.format == "delta" and not is_remote(table.path):
            path = os.path.normpath(os.path.join(self._data_root, table.path))
            check_inside(self._data_root, path, table)
            told = look_at_delta(path, table, at)
            if self._is_sail and told.needs != ():  # it says nothing of what it does not know, and reads other rows
                what = ", ".join(told.needs) if told.needs else "a log that Skerry cannot read"
                raise SiteError(
                    f"site {table.member}: table {table.name}: Sail reads no Delta table with {what}; use Apache Spark "
                    "at this member",
                    member=table.member,
                )
            return told
        return self._engine.look(table, at)


def whole_schema(schema: SchemaConfig) -> TableConfig:
    """What all tables of a schema have in common, for `ask`."""
    source = CatalogTable(schema.namespace)
    return TableConfig(
        schema.member, f"{schema.name}.*", "catalog", "", shown_path=".".join(schema.namespace), source=source
    )


def is_absent(error: SkerryError) -> bool:
    """Whether a catalog says that it has no such table, rather than nothing."""
    return error.condition.startswith(("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND"))


def source_of(table: TableConfig) -> str:
    """For messages, and for whose turn it is: what hangs together when it hangs."""
    match table.source:
        case CatalogTable(name):
            return f"catalog {name[0]}"
        case JdbcTable(database):
            return f"database {database.name}"
        case PlainFiles() if is_remote(table.path):
            scheme, bucket, _ = split_url(table.path)
            return f"store {scheme}://{bucket}"
        case PlainFiles() | VersionedFolder():
            return table.shown_path or table.path
