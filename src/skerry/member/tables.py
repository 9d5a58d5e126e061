"""A member's own tables: what their files and its Spark say of them, as of the newest listing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import msgspec
import xxhash

from skerry.catalog.agreement import agreed_rows, asked_of
from skerry.catalog.footers import FOOTERS
from skerry.catalog.headers import HEADERS, check_headers
from skerry.catalog.listing import Listing
from skerry.catalog.statistics import ANALYZED
from skerry.config import Config, Leaves, MemberConfig, TableConfig
from skerry.member.gathering import Gathering, Snapshot
from skerry.member.keeping import Keeping
from skerry.member.kept import KeptTable, read_as, worth_keeping
from skerry.member.lull import Lull
from skerry.member.resources import Workers
from skerry.member.sources import Sources, State, is_absent, whole_schema
from skerry.model import trace
from skerry.model.config import SchemaConfig
from skerry.model.errors import SiteError, SkerryError
from skerry.model.limits import ASKED_PARTS, SCHEMA_TABLES, UNTOLD_PART_BYTES
from skerry.model.names import base_of, older_name, schema_of, split_older
from skerry.model.sources import CatalogTable, JdbcTable, Told
from skerry.model.table import Column, PartStats, TablePart
from skerry.spark.engine import Engine, TableFiles

Stats = TypeVar("Stats", PartStats, PartStats | None)

# A name that every catalog reads alike, but for its case.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_]+")
# Where CSV and JSON keep a record that is not as it should be, unless an option or setting names another column.
_CORRUPT = "_corrupt_record"


def schema_version(columns: tuple[Column, ...]) -> int:
    """Changes with the columns, and with nothing else."""
    return xxhash.xxh3_64_intdigest(msgspec.msgpack.encode(columns)) >> 1


def no_table(member: str, name: str) -> SiteError:
    return SiteError(f"site {member}: no table {name} here")


class LocalTables:
    """Every call lists the files anew; Spark is asked only when the listing has changed.

    Statistics of values follow in the background: `own` runs that, and `on_stats` is called when there are new ones.
    """

    def __init__(
        self,
        config: Config,
        member: MemberConfig,
        engine: Engine | None,
        sources: Sources,
        workers: Workers,
        jobs: Workers,
        lull: Lull,
        own: Callable[[Awaitable[None], str], None],
        on_stats: Callable[[], None],
        keeping: Keeping,
    ) -> None:
        self._config = config
        self._member = member
        for reads in (FOOTERS, HEADERS):
            reads.allow(config.limits.footers)
        self._engine = engine
        self._sources = sources
        self._workers = workers
        self._known: dict[str, Snapshot] = {}
        self._broken: dict[str, str] = {}  # what the log was told last
        self._on_stats = on_stats
        self._keeping = keeping
        self._gathering = Gathering(
            config.limits, engine, workers, jobs, lull, self._known.__getitem__, self._learn_stats, own, on_stats
        )
        self._locks: dict[str, asyncio.Lock] = {}
        self._offered: dict[str, tuple[str, ...]] = {}

    def has(self, name: str) -> bool:
        """Whether the configuration has it, or a schema that may; else it may be one of our own."""
        base = base_of(name).lower()
        return any(table.lower() == base for table in self._member.tables) or self._inside(base) is not None

    def find(self, name: str) -> TableConfig:
        """Also an older version, by a name of its own, and a table of a schema, which need not be there."""
        base, at = split_older(name)
        for table in self._member.tables.values():
            if table.name.lower() == base.lower():
                return table if at is None else msgspec.structs.replace(table, name=older_name(table.name, at))
        found = self._inside(base)
        if found is None:
            raise no_table(self._member.name, name)
        schema, spelled = found
        shown = f"{schema.name}.{spelled}"
        return TableConfig(
            member=self._member.name,
            name=shown if at is None else older_name(shown, at),
            format="catalog",
            path="",
            shown_path=".".join((*schema.namespace, spelled)),
            leaves=schema.leaves,
            source=CatalogTable((*schema.namespace, spelled)),
        )

    def _inside(self, name: str) -> tuple[SchemaConfig, str] | None:
        """The schema of a table, and what its catalog calls it. One that is not listed has a plain name.

        Hive's metastore takes `orders ` for `orders`, and rules that hide the one say nothing of the other.
        """
        wanted = schema_of(name)
        schema = next((each for each in self._member.schemas.values() if each.name.lower() == wanted), None)
        if schema is None:
            return None
        inside = name[len(schema.name) + 1 :]
        listed = self._offered.get(schema.name, ())
        spelled = inside if inside in listed else next((e for e in listed if e.lower() == inside.lower()), "")
        if not spelled and not _PLAIN_NAME.fullmatch(inside):
            return None
        return schema, spelled or inside

    async def offered(self) -> tuple[str, ...]:
        """The tables of this member's schemas, as their catalogs list them now. Of one that is down: none."""
        found: list[str] = []
        for schema in self._member.schemas.values():
            assert self._engine is not None, "lite members have no tables"
            try:
                listed = await self._sources.ask(whole_schema(schema), self._engine.tables_in, schema.namespace)
                self._offered[schema.name] = listed[:SCHEMA_TABLES]
                self._broken.pop(f"{schema.name}.*", None)
            except SkerryError as error:
                self._tell_broken(f"{schema.name}.*", error)
                self._offered[schema.name] = ()
            found += (f"{schema.name}.{table}" for table in self._offered[schema.name])
        return tuple(found)

    def known(self, name: str) -> TablePart | None:
        """The table as it was when somebody last looked."""
        known = self._known.get(self.find(name).name)
        return known.part if known is not None else None

    async def snapshot(self, name: str) -> Snapshot:
        """The table as its files are now."""
        return await self.reading((name,)).snapshot(name)

    def reading(self, names: Collection[str]) -> Reading:
        """For one query, these tables as their files are when it first reads one of them."""
        tables = [self.find(name) for name in names]
        return Reading(partial(self._sources.states, tables), self._as_of, self.find)

    def forget(self, names: Iterable[str]) -> None:
        """A job that reads them has failed: whoever wants them next asks their sources anew."""
        for name in names:
            if self.has(name):
                self._sources.forget(self.find(name).name)

    async def _as_of(self, table: TableConfig, state: State) -> Snapshot:
        is_named = table.name in self._member.tables
        if not is_named:
            self._forget_unnamed()
        async with self._locks.setdefault(table.name, asyncio.Lock()):  # concurrent queries ask Spark once
            known = self._known.get(table.name)
            if known is None or known.files.version != state.version:
                known = self._known[table.name] = await self._learn(table, state)
            if is_named:  # nobody looks at all values of whatever a catalog holds
                self._gathering.begin(table.name)
            return known

    def _forget_unnamed(self) -> None:
        """Of older versions and tables of schemas so many are remembered."""
        unnamed = [name for name in self._known if name not in self._member.tables]
        for name in unnamed[: max(0, len(unnamed) - ASKED_PARTS)]:
            del self._known[name]
            if not self._locks[name].locked():
                del self._locks[name]

    async def all(self) -> tuple[tuple[TablePart, ...], dict[str, str]]:
        """Every table that can be read, and why the others cannot."""
        return await self._told(list(self._member.tables))

    async def named(self, names: Sequence[str]) -> tuple[tuple[TablePart, ...], dict[str, str]]:
        """The same of some tables, without their statistics."""
        parts, broken = await self._told([self.find(name).name for name in names if self.has(name)])
        return tuple(msgspec.structs.replace(part, stats=None) for part in parts), broken

    async def _told(self, names: Sequence[str]) -> tuple[tuple[TablePart, ...], dict[str, str]]:
        answers = await asyncio.gather(*(self.snapshot(name) for name in names), return_exceptions=True)
        parts, broken = [], {}
        for name, answer in zip(names, answers, strict=True):
            match answer:
                case Snapshot():
                    parts.append(answer.part)
                    self._broken.pop(name, None)
                case SkerryError() if name not in self._member.tables and is_absent(answer):
                    continue  # whoever asked is told so by the lack of an answer
                case SkerryError():
                    # Who tells it says which table of which site.
                    reason = answer.message.removeprefix(f"site {self._member.name}: ").removeprefix(f"table {name}: ")
                    broken[name] = reason
                    self._tell_broken(name, answer, reason)
                case BaseException():
                    raise answer
        return tuple(parts), broken

    def _tell_broken(self, name: str, error: SkerryError, reason: str = "") -> None:
        """Once: every member asks, and asks again."""
        reason = reason or error.message
        if self._broken.get(name) != reason:
            if name in self._member.tables or name.endswith(".*"):
                self._broken[name] = reason
            trace.emit(trace.TableBroken(name, msgspec.structs.replace(trace.cause_of(error), text=reason)))

    def analyzed(self, name: str, files_version: int, stats: PartStats, rows: int) -> None:
        """What somebody found out about that version of the table; other columns stay as they are known."""
        if self._learn_stats(name, files_version, stats, rows):
            self._on_stats()

    def _learn_stats(self, name: str, files_version: int, stats: PartStats, rows: int | None = None) -> bool:
        """False when the table has changed since. What ANALYZE found stays, whatever others say.

        `rows`: how many were read, all columns at once; None if it was otherwise.
        """
        known = self._known.get(name)
        if known is None or known.files.version != files_version:
            return False
        is_live = isinstance(self.find(name).source, JdbcTable)  # its rows change, its version does not
        if is_live or (rows is not None and (rows != known.part.rows or self._hides_rows(known))):
            stats = PartStats(
                tuple(msgspec.structs.replace(c, nulls=None, is_exact=False) for c in stats.columns), stats.source
            )
        stats = _may_leave(self.find(name), stats)
        if known.part.rows is None and rows is not None:  # its source did not say
            known = msgspec.structs.replace(known, part=msgspec.structs.replace(known.part, rows=rows))
        before = known.part.stats or PartStats(())
        older, newer = (stats, before) if before.source == ANALYZED != stats.source else (before, stats)
        columns = {column.name: column for column in (*older.columns, *newer.columns)}
        merged = PartStats(tuple(columns.values()), newer.source)
        self._known[name] = msgspec.structs.replace(known, part=msgspec.structs.replace(known.part, stats=merged))
        if name in self._member.tables:
            self._keep(self._known[name])
        return True

    def _keep(self, known: Snapshot) -> None:
        """For the member's next start."""
        files, part = known.files, known.part
        if worth_keeping(files, part):
            way = read_as(self.find(part.table), files, self._member.spark)
            self._keeping.keep_table(part.table, KeptTable(files.version, way, part.rows, part.stats))

    def _hides_rows(self, known: Snapshot) -> bool:
        """Whether rows and values depend on the columns that are read: then a look at all of them proves nothing.

        Spark leaves out a record, or marks it, if a column that is read does not fit; a query may read fewer.
        """
        if known.files.format not in ("csv", "json"):
            return False
        options = {key.lower(): value for key, value in known.files.options.items()}
        if options.get("mode", "").lower() == "dropmalformed":
            return True
        conf = self._member.spark.conf if self._member.spark is not None else {}
        named = options.get("columnnameofcorruptrecord") or conf.get("spark.sql.columnNameOfCorruptRecord") or _CORRUPT
        return any(column.name.lower() == named.lower() for column in known.part.columns)

    async def _learn(self, table: TableConfig, state: State) -> Snapshot:
        match state:
            case Told():
                return await self._learn_told(table, state)
            case Listing():
                return await self._learn_files(table, state)

    async def _learn_told(self, table: TableConfig, told: Told) -> Snapshot:
        """Of a table that is no list of files: nobody reads its rows to count them."""
        assert self._engine is not None, "lite members have no tables"
        files = TableFiles(
            member=self._member.name,
            table=table.name,
            format=told.pinned.format,
            options=table.options,
            root=told.pinned.place,
            files=(),
            version=told.version,
            columns=told.columns,
            pinned=told.pinned,
        )
        columns = told.columns or await self._sources.ask(table, self._engine.describe, files)
        files = msgspec.structs.replace(files, columns=columns)
        way = read_as(table, files, self._member.spark)
        kept = self._keeping.table(table.name, files.version, way, columns)
        part = TablePart(
            table=table.name,
            member=self._member.name,
            columns=columns,
            rows=told.rows if told.rows is not None or kept is None else kept.rows,
            size_bytes=UNTOLD_PART_BYTES if told.size_bytes is None else told.size_bytes,
            schema_version=schema_version(columns),
            files_version=told.version,
            stats=_may_leave(table, told.stats or (kept.stats if kept is not None else None)),
        )
        snapshot = Snapshot(files, part, is_scanned=told.size_bytes is not None)
        if table.name in self._member.tables:
            self._keep(snapshot)
        return snapshot

    async def _learn_files(self, table: TableConfig, listing: Listing) -> Snapshot:
        assert self._engine is not None, "lite members have no tables"
        files = TableFiles(
            member=self._member.name,
            table=table.name,
            format=table.format,
            options=table.options,
            root=listing.root,
            files=listing.files,
            version=listing.version,
            columns=table.columns,
            storage=listing.storage,
        )
        footers_rows = None
        run = self._workers.run if listing.storage is None else partial(self._sources.ask, table)
        is_sail = self._member.spark is not None and self._member.spark.sail
        await run(check_headers, table, asked_of(listing), is_sail)
        if table.format == "parquet":
            footers_rows = await run(agreed_rows, table, listing, is_sail)
        columns = await run(self._engine.describe, files)
        files = msgspec.structs.replace(files, columns=columns)
        way = read_as(table, files, self._member.spark)
        kept = self._keeping.table(table.name, files.version, way, columns)
        rows: int | None
        if kept is not None and kept.rows is not None:
            rows = kept.rows
        elif footers_rows is not None:
            rows = footers_rows
        else:
            rows = await self._workers.run(self._engine.count_rows, files)
        part = TablePart(
            table=table.name,
            member=self._member.name,
            columns=columns,
            rows=rows,
            size_bytes=listing.size_bytes,
            schema_version=schema_version(columns),
            files_version=listing.version,
            stats=kept.stats if kept is not None else None,
        )
        snapshot = Snapshot(files, part)
        self._keep(snapshot)
        return snapshot


def _may_leave(table: TableConfig, stats: Stats) -> Stats:
    """Statistics as others are told them: if rows never leave, neither do their values."""
    if stats is None or table.leaves is not Leaves.NEVER:
        return stats
    columns = tuple(msgspec.structs.replace(column, low=None, high=None) for column in stats.columns)
    return msgspec.structs.replace(stats, columns=columns)


class Reading:
    """What one query reads of a member's tables: all are listed in one go, once, so that it sees one state of each.

    One call of a thread, too: with one for each fragment they were an eighth of a short query's Python.
    """

    def __init__(
        self,
        list_all: Callable[[], Awaitable[Mapping[str, State | SkerryError]]],
        as_listed: Callable[[TableConfig, State], Awaitable[Snapshot]],
        find: Callable[[str], TableConfig],
    ) -> None:
        self._list_all = list_all
        self._as_listed = as_listed
        self._find = find
        self._listings: Mapping[str, State | SkerryError] | None = None
        self._lock = asyncio.Lock()

    async def snapshot(self, name: str) -> Snapshot:
        async with self._lock:  # if the first is cancelled, the next one lists
            if self._listings is None:
                self._listings = await self._list_all()
        table = self._find(name)
        listing = self._listings[table.name]
        if isinstance(listing, SkerryError):
            raise listing
        return await self._as_listed(table, listing)
