"""Tables of our own as a participant reads them: what is here of each, and its rows at a query's moment."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress

from skerry.catalog.catalog import own_part, own_version
from skerry.member.gathering import Snapshot as TableSnapshot
from skerry.member.initiator import Reading
from skerry.member.own import OwnTables
from skerry.member.requests import RunStatement
from skerry.member.resources import Workers
from skerry.member.tables import no_table
from skerry.member.transactions import Transactions
from skerry.model.commits import Changed
from skerry.model.errors import SkerryError, UserError
from skerry.model.fragment import Plan, TableLeaf
from skerry.model.sharded import Definition, OwnTable
from skerry.model.table import TablePart
from skerry.plan.admission import stale
from skerry.spark.engine import Older, Overlaid, TableFiles
from skerry.tables.clock import moment_text
from skerry.tables.files import Checked
from skerry.tables.layouts import default_text, ids_of, places_of
from skerry.tables.manifest import DataFile
from skerry.tables.shard import Snapshot


class OwnReads:
    """Belongs to the member's loop, as `own` does."""

    def __init__(self, member: str, own: OwnTables, workers: Workers, transactions: Transactions) -> None:
        self._member = member
        self._transactions = transactions
        self._own = own
        self._workers = workers
        self._checked = Checked()

    def definitions(self) -> tuple[Definition, ...]:
        return tuple(self._own.definitions.values())

    @property
    def keeper(self) -> str:
        """The member that keeps all definitions; "" if nobody does."""
        return self._own.keeper

    @property
    def is_informed(self) -> bool:
        """Whether it was ever told of definitions, or keeps them."""
        return self._own.version > 0

    async def catch_up(self) -> None:
        """Learn what was defined elsewhere meanwhile."""
        await self._own.catch_up()

    def reading(self, statement: RunStatement, plan: Plan, as_of: int) -> Reading:
        """How a query reads all its tables of our own."""
        if not statement.transaction:
            return Reading(self.moment(plan, as_of))
        numbers = {name: table.id for name, table in self._own.tables.items()}
        return self._transactions.reading(statement, plan, as_of, numbers)

    def moment(self, plan: Plan, as_of: int = 0) -> int:
        """When a query reads all its tables of our own; 0 if it has none. UserError for a moment that is to come."""
        if as_of:
            if as_of > (now := self._own.now()):
                raise UserError(
                    f"AS OF: the moment is to come: the last one is {now} ({moment_text(now)})",
                    suggestion="leave AS OF out to read what is there now",
                )
            return as_of
        leaves = (leaf for fragment in plan.fragments for leaf in fragment.leaves if isinstance(leaf, TableLeaf))
        known = (self._own.definitions.get(leaf.table.lower()) for leaf in leaves)
        since = [each.buckets.since for each in known if each is not None]
        # Not before the last move, whatever the clock here says: with the map of now rows were elsewhere then.
        return self._own.now(max(since)) if since else 0

    # --- what is here -------------------------------------------------------------------------------
    @property
    def known(self) -> Mapping[str, Definition]:
        """All tables, by name in lower case."""
        return self._own.definitions

    def parts(self) -> tuple[TablePart, ...]:
        """This member's, as large as they are now."""
        return tuple(self.part(each) for each in self.definitions() if self._member in each.table.members)

    def part(self, definition: Definition) -> TablePart:
        return own_part(definition, self._member, *self._own.size_of(definition.table.id))

    async def current(self, name: str, schema_info: Mapping[str, int]) -> Definition:
        """The table that a plan was made for. StaleSchema if it is another by now; SiteError for a plan of none."""
        planned = {place.lower(): version for place, version in schema_info.items()}
        version = planned.get(f"{self._member}.{name}".lower())
        found = self._own.definitions.get(name.lower())
        if found is None or own_version(found) != version:
            await self.catch_up()
            found = self._own.definitions.get(name.lower())
            if found is not None and version is not None and own_version(found) < version:
                with suppress(SkerryError):  # a move that this member has voted for, and whose end it has not heard yet
                    await self._own.settled(found.table.id, self._own.now())
                found = self._own.definitions.get(name.lower())
        if version is None:
            raise no_table(self._member, name)
        if found is None or own_version(found) != version or self._member not in found.table.members:
            raise stale(self._member, name)
        return found

    # --- rows ---------------------------------------------------------------------------------------
    async def open(self, definition: Definition, read_ts: int, changes: Iterable[Changed] = ()) -> TableSnapshot:
        """The rows of the table here, as they were at that moment. They stay until `close`.

        `changes`: of the transaction that reads.
        """
        table = definition.table
        if not read_ts:  # its initiator took it for another table
            raise stale(self._member, table.name)
        changed = next((each for each in changes if each.table == table.id), None)
        snapshot = await self._own.open(definition, read_ts, changed)
        try:
            folder = self._own.folder_of(table.id)
            await self._workers.run(_check_files, self._checked, folder, (*snapshot.plain, *snapshot.touched))
            return as_files(self._member, definition, folder, snapshot)
        except BaseException:
            self.close(definition, read_ts)
            raise

    def close(self, definition: Definition, read_ts: int) -> None:
        self._own.close(definition.table.id, read_ts)


def _check_files(checked: Checked, folder: str, files: Iterable[DataFile]) -> None:
    """SiteError for one that is gone, cut short or changed: Sail would read the others, or what is there, and say
    nothing."""
    for file in files:
        if (fault := checked.fault_of(folder, file)) is not None:
            raise fault


def as_files(member: str, definition: Definition, folder: str, snapshot: Snapshot) -> TableSnapshot:
    """The snapshot as an engine reads it."""
    table, files = definition.table, (*snapshot.plain, *snapshot.touched)
    now = (ids_of(table), tuple(column.name for column in table.columns))
    paths: dict[_Layout, tuple[list[str], list[str]]] = {now: ([], [])}
    for which, some in enumerate((snapshot.plain, snapshot.touched)):
        for file in some:
            layout = (file.ids, tuple(column.name for column in file.columns))
            paths.setdefault(layout, ([], []))[which].append(os.path.join(folder, file.name))
    plain, touched = map(tuple, paths.pop(now))
    rows = sum(file.rows for file in files) + snapshot.rows.num_rows  # at most: some of the files' are gone
    size_bytes = sum(file.size_bytes for file in files) + snapshot.keys.nbytes + snapshot.rows.nbytes
    part = own_part(definition, member, rows, size_bytes)
    listing = TableFiles(
        member,
        table.name,
        "parquet",
        {},
        folder,
        plain,
        snapshot.last_ts,
        part.columns,
        overlaid=Overlaid(touched, table.primary_key, snapshot.keys, snapshot.rows),
        older=tuple(_older(table, layout, *some) for layout, some in paths.items()),
        definition=table.version,
    )
    return TableSnapshot(listing, part)


def _older(table: OwnTable, layout: _Layout, plain: list[str], touched: list[str]) -> Older:
    ids, names = layout
    places = places_of(ids, len(names), table)
    found = tuple(None if place is None else names[place] for place in places)
    return Older(tuple(plain), tuple(touched), found, tuple(map(default_text, table.columns)))


_Layout = tuple[tuple[int, ...], tuple[str, ...]]  # numbers and names of a file's columns
