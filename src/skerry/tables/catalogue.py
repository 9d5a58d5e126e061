"""Who keeps the definitions of our own tables, and who follows. Pure (docs/protocol.md, 12; docs/adr/0049).

One member is the keeper. It numbers tables and versions, and tells everybody; nobody else is believed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from skerry.model.errors import Overloaded, PeerError, SiteError, SkerryError, SqlError, StaleSchema, UserError
from skerry.model.ids import QueryId
from skerry.model.limits import (
    DEFINE_WAIT_S,
    DEFINED_KEPT,
    DEFINES_WAITING,
    DEFINITIONS_AHEAD,
    DEFINITIONS_BYTES,
    OWN_BUCKETS,
    OWN_COLUMNS,
    OWN_NAME_CHARS,
    OWN_TABLES,
)
from skerry.model.sharded import (
    Alter,
    BucketMap,
    Catalogue,
    Create,
    Definition,
    Drop,
    Fill,
    OwnColumn,
    OwnTable,
    Recall,
    Wish,
    numbered,
)
from skerry.sql.constants import Misfit, Unsure
from skerry.tables.columns import fault_of
from skerry.tables.moves import copies_of
from skerry.tables.ways import default_of
from skerry.wire.definition_messages import Define, Defined, Definitions, KnownDefinitions
from skerry.wire.values import failure_of


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """What a member has on its disk. The keeper also has `done`, statements and the versions they led to, and `had`,
    the version that each member with a disk is known to have had on it.

    `lost_upto`: of tables that are not newer than this version, rows were lost here with an earlier disk.
    """

    catalogue: Catalogue = Catalogue()
    done: tuple[tuple[QueryId, int], ...] = ()
    had: tuple[tuple[str, int], ...] = ()
    lost_upto: int = 0


class Keep(msgspec.Struct, frozen=True):
    """Write this, then call `kept`."""

    kept: Kept


class Send(msgspec.Struct, frozen=True):
    to: str
    message: Defined | Definitions | KnownDefinitions


Instruction = Keep | Send


class _Pending(msgspec.Struct):
    """A statement that waits for `version` on disk, and then for these members. `askers` are answered."""

    version: int
    askers: set[str]
    awaited: set[str]
    until: float


class Keeper:
    """`configured`: names of tables of the configuration, in lower case. `members`: those that can hold tables."""

    def __init__(self, member: str, kept: Kept, configured: frozenset[str], members: frozenset[str]) -> None:
        self.catalogue = kept.catalogue  # as it shall be; `_durable` is as it is
        self._durable = kept.catalogue
        self._member = member
        self._configured = configured
        self._members = members
        self._done = dict(kept.done)
        self._had = dict(kept.had)
        self._known: dict[str, int] = {}
        self._pending: dict[QueryId, _Pending] = {}
        self._ahead = ""

    def named(self, wish: Drop | Alter | Fill) -> list[Definition]:
        """The table that is meant, if it is still there."""
        number = wish.table.id if isinstance(wish, Alter) else wish.table
        return [each for each in self.catalogue.definitions if each.table.id == number]

    def define(self, asker: str, message: Define, up: Iterable[str], now: float, ts: int = 0) -> list[Instruction]:
        """A Defined for the asker follows. `up`: members that can be told now. `ts`: a new table's history begins."""
        pending = self._pending.get(message.query)
        if pending is not None:
            pending.askers.add(asker)
            return []
        version, kept = self._done.get(message.query), []
        if version is None and isinstance(message.wish, Recall):
            return [Send(asker, Defined(message.query, 0))]
        if version is None:
            try:
                self._check()
                kept = self._obey(message, ts)
            except SkerryError as error:
                return [Send(asker, Defined(message.query, failure=failure_of(error, self._member)))]
            version = self.catalogue.version
        self._pending[message.query] = _Pending(version, {asker}, set(up) - {self._member}, now + DEFINE_WAIT_S)
        return [*kept, *self._answers(now)]

    # --- moves ----------------------------------------------------------------------------------------------------
    def moved(self, buckets: BucketMap) -> list[Instruction]:
        """A move is decided, and on this member's disk: its map becomes one of the definitions. Said again, nothing."""
        return self._with(buckets.table, lambda each: _with_map(each, buckets))

    def placed(self, number: int, members: tuple[str, ...]) -> list[Instruction]:
        """Which members have the table: one that comes gets no rows by that, one that goes has none."""
        return self._with(number, lambda each: _with_members(each, members))

    def _with(self, number: int, change: Callable[[Definition], Definition]) -> list[Instruction]:
        now = self.catalogue
        changed = tuple(change(each) if each.table.id == number else each for each in now.definitions)
        if changed == now.definitions:
            return []
        self.catalogue = Catalogue(now.version + 1, now.next_id, changed)
        return [self._keep()]

    def is_known(self, member: str) -> bool:
        """Whether the member has said that all definitions, as they are now, are on its disk."""
        if member == self._member:
            return self._durable.version >= self.catalogue.version
        return self._known.get(member, -1) >= self.catalogue.version

    def check(self) -> None:
        """SiteError if this keeper may decide nothing: others know more than it."""
        self._check()

    def _check(self) -> None:
        if self._ahead:
            raise SiteError(
                f"site {self._member}: {self._ahead} knows later definitions of tables than their keeper",
                member=self._member,
                suggestion=f"restore the newest copy of the folder of {self._member}'s tables, and start it again",
            )
        if len(self._pending) >= DEFINES_WAITING:
            raise Overloaded(f"site {self._member}: {len(self._pending)} definitions wait already; try again shortly")

    def _obey(self, message: Define, ts: int) -> list[Instruction]:
        changed = self._changed(message.wish, ts)
        if changed is None:
            return []
        if len(msgspec.msgpack.encode(changed)) > DEFINITIONS_BYTES:
            raise UserError(f"all definitions together are larger than {DEFINITIONS_BYTES} bytes: drop some tables")
        self.catalogue = changed
        self._done[message.query] = changed.version
        for query in list(self._done)[:-DEFINED_KEPT]:
            del self._done[query]
        return [self._keep()]

    def _keep(self) -> Keep:
        return Keep(Kept(self.catalogue, tuple(self._done.items()), self._told_had()))

    def _told_had(self) -> tuple[tuple[str, int], ...]:
        return tuple(sorted(self._had.items()))

    def _changed(self, wish: Wish, ts: int) -> Catalogue | None:
        """The definitions as they shall be; None if they are so. UserError if they cannot be."""
        now = self.catalogue
        match wish:
            case Create(table, if_not_exists, making):
                table = msgspec.structs.replace(table, next_column=0, made=0)  # nobody else's to say
                there = [each for each in now.definitions if each.table.name.lower() == table.name.lower()]
                if there:
                    if not there[0].is_seen:
                        raise UserError(f"table {table.name} is being made by another statement; try again shortly")
                    if if_not_exists:
                        return None
                    raise UserError(f"table {table.name} exists already (say IF NOT EXISTS, or drop it first)")
                if table.name.lower() in self._configured:
                    raise UserError(f"table {table.name} is in the configuration already: choose another name")
                if len(now.definitions) >= OWN_TABLES:
                    raise UserError(f"there are {OWN_TABLES} tables of our own already: drop one first")
                if fault := fault_of(table) or self._fault_of(table):
                    raise UserError(f"table {table.name[:100]}: {fault}")
                made = msgspec.structs.replace(table, id=now.next_id, version=now.version + 1)
                made_here = Definition(made, msgspec.structs.replace(first_map(made), since=ts), making)
                return Catalogue(now.version + 1, now.next_id + 1, (*now.definitions, made_here))
            case Drop(number):
                left = tuple(each for each in now.definitions if each.table.id != number)
                changed = Catalogue(now.version + 1, now.next_id, left)
                return changed if len(left) < len(now.definitions) else None
            case Alter(wanted):
                before = next((each.table for each in now.definitions if each.table.id == wanted.id), None)
                if before is None or before.version != wanted.version:
                    raise StaleSchema(f"table {wanted.name[:100]} has changed, or is gone", member=self._member)
                table = msgspec.structs.replace(altered(before, wanted), version=now.version + 1)
                if fault := fault_of(table) or self._fault_of(table):
                    raise UserError(f"table {table.name}: {fault}")
                changed_here = tuple(
                    msgspec.structs.replace(each, table=table) if each.table.id == table.id else each
                    for each in now.definitions
                )
                return Catalogue(now.version + 1, now.next_id, changed_here)
            case Fill():
                if not self.named(wish):
                    raise UserError("the table was dropped while its rows were written")
                filled = tuple(_filled(each) if each.table.id == wish.table else each for each in now.definitions)
                return Catalogue(now.version + 1, now.next_id, filled) if filled != now.definitions else None
            case Recall():
                return None

    def _fault_of(self, table: OwnTable) -> str:
        """What the member that was asked would have refused already."""
        names = [table.name, *(column.name for column in table.columns)]
        if any(not name.isprintable() or not 0 < len(name) <= OWN_NAME_CHARS for name in names) or "." in table.name:
            return f"a name has at most {OWN_NAME_CHARS} printable characters"
        if len(table.columns) > OWN_COLUMNS or table.buckets > OWN_BUCKETS:
            return f"it has more than {OWN_COLUMNS} columns, or {OWN_BUCKETS} buckets"
        if (
            not table.members
            or len(set(table.members)) < len(table.members)
            or not self._members.issuperset(table.members)
        ):
            return f"its members are not among {', '.join(sorted(self._members))}"
        return "" if len(table.members) <= table.buckets else "it has fewer buckets than members"

    def kept(self, catalogue: Catalogue, up: Iterable[str], now: float) -> list[Instruction]:
        """It is on disk: whoever is up is told."""
        if catalogue.version <= self._durable.version:
            return []
        self._durable = catalogue
        message = Definitions(catalogue, self._told_had())
        told = [Send(member, message) for member in sorted(set(up) - {self._member})]
        return [*told, *self._answers(now)]

    def known(self, sender: str, message: KnownDefinitions, now: float) -> list[Instruction]:
        if message.member != sender:
            raise PeerError(f"{sender} speaks for {message.member[:100]!r}")
        if message.version > self.catalogue.version:
            if message.version > self.catalogue.version + DEFINITIONS_AHEAD:
                raise PeerError(f"{sender} knows definitions of version {message.version}, which cannot be")
            self._ahead = sender
            return []
        if self._ahead == sender:
            self._ahead = ""  # its folder is another one by now, or it was damaged
        self._known[sender] = message.version
        is_behind = message.version < self._durable.version
        # What is on its way to disk is told to all when it is there: who asks waits for that.
        is_answered = message.asks and self._durable.version == self.catalogue.version
        newer = [Send(sender, Definitions(self._durable, self._told_had()))] if is_behind or is_answered else []
        noted: list[Instruction] = []
        if sender in self._members and message.version > self._had.get(sender, 0):
            self._had[sender] = message.version
            noted = [self._keep()]
        return [*newer, *noted, *self._answers(now)]

    def lost(self, member: str, now: float) -> list[Instruction]:
        """It learns when it is back."""
        self._known.pop(member, None)
        for pending in self._pending.values():
            pending.awaited.discard(member)
        return self._answers(now)

    def tick(self, now: float) -> list[Instruction]:
        return self._answers(now)

    def _answers(self, now: float) -> list[Instruction]:
        answers: list[Instruction] = []
        for query, pending in list(self._pending.items()):
            version = pending.version
            is_known = all(self._known.get(member, -1) >= version for member in pending.awaited)
            # Members that are slow learn before they touch the table: nothing goes wrong without them.
            if self._durable.version >= version and (is_known or now >= pending.until):
                del self._pending[query]
                answers += [Send(asker, Defined(query, version)) for asker in sorted(pending.askers)]
        return answers


class Follower:
    """A member's copy. Of what is written, the newest is on its way to disk."""

    def __init__(self, member: str, keeper: str, kept: Kept) -> None:
        self.catalogue = kept.catalogue
        self._member = member
        self._keeper = keeper
        self._writing = kept.catalogue.version
        self._lost_upto = kept.lost_upto

    def up(self, *, asks: bool = False) -> list[Instruction]:
        """The keeper can be reached (again); or is asked, and tells whether there is more or not."""
        return [Send(self._keeper, KnownDefinitions(self._member, self.catalogue.version, asks))]

    def told(self, sender: str, message: Definitions) -> list[Instruction]:
        """PeerError unless the keeper says it, and it can be so."""
        if sender != self._keeper:
            raise PeerError(f"{sender} tells of definitions, which only {self._keeper} keeps")
        catalogue = message.catalogue
        check_catalogue(catalogue)
        if catalogue.version <= self._writing:
            return self.up() if catalogue.version <= self.catalogue.version else []
        had = dict(message.had).get(self._member, 0)
        if had > self.catalogue.version:  # it had said so of another disk, or of a later state of this one
            self._lost_upto = max(self._lost_upto, had)
        self._writing = catalogue.version
        return [Keep(Kept(catalogue, lost_upto=self._lost_upto))]

    def failed(self) -> None:
        """It could not be written: whoever tells it again is heard."""
        self._writing = self.catalogue.version

    def kept(self, catalogue: Catalogue) -> list[Instruction]:
        """It is on disk."""
        if catalogue.version > self.catalogue.version:
            self.catalogue = catalogue
        return self.up()


def _with_map(definition: Definition, buckets: BucketMap) -> Definition:
    is_newer = buckets.version > definition.buckets.version
    return msgspec.structs.replace(definition, buckets=buckets) if is_newer else definition


def _with_members(definition: Definition, members: tuple[str, ...]) -> Definition:
    before, copies = definition.buckets, copies_of(definition)
    is_so = definition.table.members == members and before.members == copies
    if is_so or not {*copies, *(owner for *_, owner in before.groups)} <= set(members):
        return definition
    table = msgspec.structs.replace(definition.table, members=members)
    after = msgspec.structs.replace(before, version=before.version + 1, members=copies)
    return msgspec.structs.replace(definition, table=table, buckets=after)


def _filled(definition: Definition) -> Definition:
    making = definition.making
    if making is None:
        return definition
    return msgspec.structs.replace(definition, making=msgspec.structs.replace(making, is_filled=True))


def altered(before: OwnTable, wanted: OwnTable) -> OwnTable:
    """The table, with numbers for its new columns; UserError unless columns alone come, go or are named otherwise."""
    before = numbered(before)
    known, next_column, columns = {column.id: column for column in before.columns}, before.next_column, []
    for column in wanted.columns:
        old = known.get(column.id)
        if old is None and column.id:
            raise UserError(f"table {before.name}: column {column.name[:100]} has a number that is none")
        if old is not None and msgspec.structs.replace(old, name=column.name) != column:
            raise UserError(f"table {before.name}: of column {old.name} only the name can change")
        if old is None:
            _check_added(before, column)
            column, next_column = msgspec.structs.replace(column, id=next_column), next_column + 1
        columns.append(column)
    names = {known[column.id].name: column.name for column in columns if column.id in known}
    for name in before.primary_key:
        if name not in names:
            raise UserError(f"table {before.name}: column {name} is part of the PRIMARY KEY, and stays")
    return msgspec.structs.replace(
        before,
        columns=tuple(columns),
        primary_key=tuple(names[name] for name in before.primary_key),
        distributed_by=tuple(names[name] for name in before.distributed_by),
        next_column=next_column,
        made=before.made or before.version,
    )


def _check_added(table: OwnTable, column: OwnColumn) -> None:
    """Rows that are there get its default."""
    try:
        default = default_of(column)
    except (SqlError, Misfit, Unsure):
        raise UserError(f"table {table.name}: the default of {column.name[:100]} is no constant of its type") from None
    if default is None and not column.is_nullable:
        raise UserError(
            f"table {table.name}: column {column.name[:100]} is NOT NULL, and rows that are there have no value: give "
            "it a DEFAULT"
        )


def first_map(table: OwnTable) -> BucketMap:
    """Equal ranges, one a member; none for a table that is whole at each."""
    count = len(table.members) if table.distributed_by else 0
    ends = [table.buckets * place // count for place in range(count + 1)] if count else []
    groups = tuple((ends[place], ends[place + 1], table.members[place]) for place in range(count))
    return BucketMap(table.id, 1, groups)


def check_catalogue(catalogue: Catalogue) -> None:
    """PeerError unless these are tables that can be, with buckets that are all somewhere."""
    names: set[str] = set()
    numbers: set[int] = set()
    for table, buckets in ((each.table, each.buckets) for each in catalogue.definitions):
        fault = fault_of(table)
        firsts = [first for first, _, _ in buckets.groups] + [table.buckets]
        ends = [0] + [upto for _, upto, _ in buckets.groups]
        if not fault and table.distributed_by and (firsts != ends or firsts != sorted(set(firsts))):
            fault = "its buckets have holes"
        if not fault and not {*buckets.members, *(owner for *_, owner in buckets.groups)} <= set(table.members):
            fault = "its buckets are at members that do not have it"
        if fault or table.name.lower() in names or table.id in numbers or not 0 < table.id < catalogue.next_id:
            raise PeerError(f"definition of table {table.name[:100]!r}: {fault or 'its name or number is taken'}")
        names.add(table.name.lower())
        numbers.add(table.id)
