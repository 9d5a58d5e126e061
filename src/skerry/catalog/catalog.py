"""The tables of the whole cluster as an initiator knows them: from the configuration, and from what sites said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from typing import Self

import msgspec

from skerry.model.columns import difference
from skerry.model.config import Config, MemberConfig
from skerry.model.errors import PeerError, SiteError, UserError, quoting
from skerry.model.limits import ASKED_PARTS
from skerry.model.names import DEFAULT_SCHEMA, TableRef, base_of, schema_of, split_older
from skerry.model.nearest import did_you_mean
from skerry.model.sharded import Definition
from skerry.model.sources import JdbcTable, PlainFiles
from skerry.model.table import Column, Spread, TablePart

# What SHOW TABLES says of tables of our own.
OWN_FORMAT = "skerry"

DOWN_UNKNOWN = "it has not told its tables yet"


class Site(msgspec.Struct, frozen=True):
    """What is known of one member's tables, by lower-case name. `down` says why they cannot be used; "" if they can.

    `own`: its parts of tables of our own, by their definitions; what the member says of them is their size.
    `asked`: of tables that nobody told of before they were asked for, older versions and those of schemas: each part,
    or why there is none. "": there is no such table. `offered`: the tables of its schemas by their own names.
    """

    parts: Mapping[str, TablePart]
    broken: Mapping[str, str]
    down: str
    own: Mapping[str, TablePart] = {}
    asked: Mapping[str, TablePart | str] = {}
    offered: tuple[str, ...] = ()

    def part(self, table: str) -> TablePart | None:
        asked = self.asked.get(table)
        return self.own.get(table) or self.parts.get(table) or (asked if isinstance(asked, TablePart) else None)


class Undescribed(SiteError):
    """A site may have a table that it has not been asked about: ask `member` about `table`, then look again."""

    table: str = ""


def undescribed(member: str, table: str) -> Undescribed:
    error = Undescribed(f"site {member}: table {table}: the site has not told of it yet", member=member)
    error.table = table
    return error


class TableLine(msgspec.Struct, frozen=True):
    """One logical table for SHOW TABLES. `problem` says why it cannot be queried; "" if it can."""

    table: str
    members: tuple[str, ...]
    rows: int | None
    size_bytes: int | None
    format: str
    problem: str


def _configured(member: MemberConfig) -> dict[str, str]:
    return {name.lower(): name for name in member.tables}


def own_version(definition: Definition) -> int:
    """The schema_version of its parts: no other table, and no other version of it or of its bucket map, has the same.

    Both versions only rise, so their sum does with each change.
    """
    return definition.table.id << 32 | definition.table.version + definition.buckets.version


def own_part(definition: Definition, member: str, rows: int | None = None, size_bytes: int = 0) -> TablePart:
    table = definition.table
    columns = tuple(Column(column.name, column.type) for column in table.columns)
    here = tuple((first, upto) for first, upto, owner in definition.buckets.groups if owner == member)
    spread = Spread(table.distributed_by, table.buckets, here) if table.distributed_by else Spread()
    # What was seen of its size counts until it has doubled.
    doubled = (rows or 0).bit_length()
    return TablePart(table.name, member, columns, rows, size_bytes, own_version(definition), doubled, own=spread)


class Catalog:
    """Names in any case mean the same. What the configuration promises and a site does not deliver is an error."""

    def __init__(self, config: Config) -> None:
        self._members = {name.lower(): member for name, member in config.members.items()}
        self._sites = {name: Site({}, {}, DOWN_UNKNOWN) for name in self._members}
        # By member: lower-case name to the member's own spelling, from the configuration and from what it told.
        self._tables = {name: _configured(member) for name, member in self._members.items()}
        self._own: tuple[Definition, ...] = ()
        self._told: dict[str, dict[str, TablePart]] = {}  # by member: what it said of tables of our own
        self._nearest: tuple[str, ...] = ()  # members, in lower case: whose copy of a table is read before others

    # --- what sites say --------------------------------------------------------------------------
    def learn(
        self,
        member: str,
        parts: Iterable[TablePart],
        broken: Mapping[str, str],
        offered: Iterable[str] = (),
        *,
        is_asked: bool = True,
    ) -> None:
        """A site described its tables: all of them, so what it told before is forgotten.

        is_asked: somebody wants to know how they are now; then what was asked by name is asked again, too.
        """
        found: dict[str, TablePart] = {}
        for part in parts:
            if part.member.lower() != member.lower():
                raise PeerError(f"site {member} described a table of {part.member}", member=member)
            if found.setdefault(part.table.lower(), part) is not part:
                raise PeerError(f"site {member} described table {part.table} twice", member=member)
        reasons = {table.lower(): reason for table, reason in broken.items()}
        name = self._known(member)
        self._told[name] = {table: part for table, part in found.items() if part.own}
        files = {table: part for table, part in found.items() if not part.own}
        schemas = {each.lower() for each in self._members[name].schemas}
        tables = tuple(each for each in offered if schema_of(each) in schemas)
        asked = {} if is_asked else self._sites[name].asked
        self._put(name, Site(files, reasons, "", self._own_parts(name), asked, tables))

    def learn_asked(self, member: str, table: str, parts: Iterable[TablePart], broken: Mapping[str, str]) -> None:
        """What a site answered that was asked about one table. Until it describes all of its tables again."""
        name = self._known(member)
        found = (part for part in parts if part.table.lower() == table.lower() and part.member.lower() == name)
        reasons = (reason for each, reason in broken.items() if each.lower() == table.lower())
        answer = next(found, None) or next(reasons, "")
        asked = {**self._sites[name].asked, table.lower(): answer}
        while len(asked) > ASKED_PARTS:
            del asked[next(iter(asked))]
        self._put(name, msgspec.structs.replace(self._sites[name], asked=asked))

    def define(self, definitions: Iterable[Definition]) -> None:
        """All tables of our own: which members have parts of them is not for these to say."""
        self._own = tuple(definitions)
        for name, site in self._sites.items():
            own = self._own_parts(name)
            if own != site.own:
                self._put(name, msgspec.structs.replace(site, own=own))

    def _own_parts(self, name: str) -> dict[str, TablePart]:
        found: dict[str, TablePart] = {}
        for definition in self._own:
            table, member = definition.table, self._members[name].name
            if member not in table.members:
                continue
            told = self._told.get(name, {}).get(table.name.lower())
            if told is not None and told.schema_version == own_version(definition):
                found[table.name.lower()] = own_part(definition, member, told.rows, told.size_bytes)
            else:
                found[table.name.lower()] = own_part(definition, member)
        return found

    def _put(self, name: str, site: Site) -> None:
        self._sites[name] = site
        told = {table: part.table for table, part in (*site.parts.items(), *site.own.items())}
        self._tables[name] = told | _configured(self._members[name])

    def lose(self, member: str, reason: str) -> None:
        """A site is down; its tables stay known, so that a query can say which site it misses."""
        name = self._known(member)
        self._sites[name] = msgspec.structs.replace(self._sites[name], down=reason or "no reason given")

    @property
    def sites(self) -> Mapping[str, Site]:
        """What is known of each, for another catalog of the same configuration to `adopt`."""
        return self._sites

    def adopt(self, sites: Mapping[str, Site]) -> None:
        for name, site in sites.items():
            self._put(name, site)

    def _known(self, member: str) -> str:
        if member.lower() not in self._members:
            raise PeerError(f"site {member} is not in the configuration", member=member)
        return member.lower()

    # --- names -----------------------------------------------------------------------------------
    def lookup(self, parts: tuple[str, ...], default_schema: str = "") -> TableRef | None:
        """`orders` or `default.orders` with all its parts, `oslo.orders` alone; None when nobody has such a table.

        The same of `sales.orders`, of a schema: `oslo.sales.orders` is the part at one member.

        SiteError when a site that should have it is down, cannot read it, or has other columns than the rest.
        """
        if len(parts) not in (1, 2, 3):
            return None
        first, *rest = parts
        if any("." in part for part in parts[: -1 if self._is_schema(parts[-2:-1]) else None]):
            return None  # `sales.orders` in quotes is one name, and no table outside a schema has a dot in its own
        if rest and first.lower() == DEFAULT_SCHEMA:
            return self._any_of(".".join(rest))
        if rest and first.lower() in self._members:
            name = ".".join(rest)
            return self._part_ref(first, name) if self._has(first, name) else None
        # A mistyped schema must not silently mean the rows of all sites.
        within = self.schema(default_schema or DEFAULT_SCHEMA)
        if rest:
            name = ".".join(parts)
            is_named = len(parts) == 2 and first.lower() in self._named_schemas()
            return (self._within(within, name) or self._any_of(name)) if is_named else None
        if within.lower() in self._named_schemas() and (found := self._any_of(f"{within}.{first}")) is not None:
            return found
        return self._within(within, first) or self._any_of(first)

    def _within(self, member: str, name: str) -> TableRef | None:
        return self._part_ref(member, name) if self._has(member, name) else None

    def _any_of(self, name: str) -> TableRef | None:
        return self._logical_ref(name) if self._holders(name) else None

    def _is_schema(self, parts: tuple[str, ...]) -> bool:
        return bool(parts) and parts[0].lower() in self._named_schemas()

    def _named_schemas(self) -> dict[str, str]:
        """Of the configuration, by lower-case name: those that are no members."""
        return {name.lower(): name for member in reversed(self._members.values()) for name in member.schemas}

    def names(self) -> list[str]:
        """Every table once by each name that is worth proposing: `orders`, `oslo.orders`, …"""
        logical = {table: self._spelled(table) for member in self._members for table in self._tables[member]}
        parts = [f"{self._members[m].name}.{self._tables[m][t]}" for m in self._members for t in self._tables[m]]
        offered = {table: None for member in self._members for table in self._sites[member].offered}
        return sorted(logical.values(), key=str.lower) + sorted(offered) + sorted(parts, key=str.lower)

    def _has(self, member: str, table: str) -> bool:
        """Of a table of a schema, or of an older version of one: unless the site has said that it has not."""
        member = member.lower()
        if member not in self._members:
            return False
        base = base_of(table).lower()
        if base in self._tables[member]:
            return True
        is_offered = schema_of(base) in {name.lower() for name in self._members[member].schemas}
        return is_offered and self._sites[member].asked.get(table.lower()) != ""

    def _holders(self, table: str) -> list[str]:
        # Who has rows of a table of our own is for its definition to say, whatever a member tells.
        own = [member for member in self._members if table.lower() in self._sites[member].own]
        return own or [member for member in self._members if self._has(member, table)]

    def _spelled(self, table: str) -> str:
        holder = self._holders(table)[0]
        part = self._sites[holder].part(table.lower())
        return self._tables[holder].get(table.lower()) or (part.table if part is not None else table)

    # --- tables ----------------------------------------------------------------------------------
    def parts(self, ref: TableRef) -> tuple[TablePart, ...]:
        """The parts that `ref` stands for, in the order of the configuration; of copies the one that is read."""
        holders = [ref.member.lower()] if ref.member else self._read_at(ref.name)
        self._check_buckets(ref)
        return tuple(self._part(member, ref.name) for member in holders)

    def is_copied(self, ref: TableRef) -> bool:
        """Whether all its holders have the same rows, and any of them will do."""
        return ref.member is None and self._is_copied(ref.name)

    def spread(self, ref: TableRef) -> dict[str, Spread]:
        """By member, which rows of a table of our own each has; empty for any other, and for one part alone."""
        if ref.member is not None or self._is_copied(ref.name):
            return {}
        own = (self._sites[member].own.get(ref.name.lower()) for member in self._holders(ref.name))
        return {part.member: part.own for part in own if part is not None and part.own is not None}

    def beside(self, ref: TableRef) -> tuple[TablePart, ...]:
        """All parts of a table of our own, every copy of one that is copied; () for any other.

        Nothing is said of one of which rows or values are hidden: masked keys are not where their buckets are.
        """
        holders = self._holders(ref.name)
        own = [part for each in holders if (part := self._sites[each].own.get(ref.name.lower())) is not None]
        is_hidden = any(self.is_veiled(each, ref.name) for each in holders)
        return tuple(own) if len(own) == len(holders) and not is_hidden else ()

    def nearest(self, members: Iterable[str]) -> Self:
        """The same catalog for a query that reads copies at the first of these that has one."""
        near = copy(self)
        near._nearest = tuple(member.lower() for member in members)
        return near

    def _is_copied(self, table: str) -> bool:
        own = [self._sites[member].own.get(table.lower()) for member in self._holders(table)]
        return bool(own) and all(part is not None and part.is_copy for part in own)

    def _read_at(self, table: str) -> list[str]:
        holders = self._holders(table)
        if not self._is_copied(table):
            return holders
        # One that is down may come back while the query is planned; then another was as good.
        order = [*self._nearest, *(member for member in holders if member not in self._nearest)]
        return sorted(holders, key=lambda member: (bool(self._sites[member].down), order.index(member)))[:1]

    def files_version(self, member: str, table: str) -> int | None:
        """The version of the files of that member's part, as it was last told."""
        site = self._sites.get(member.lower())
        part = site.part(table.lower()) if site is not None else None
        return part.files_version if part is not None else None

    def is_veiled(self, member: str, table: str) -> bool:
        """Whether rows or values of that part are hidden from whoever asks."""
        return False

    def columns_of(self, member: str, table: str) -> tuple[Column, ...] | None:
        """The same of its columns."""
        site = self._sites.get(member.lower())
        part = site.part(table.lower()) if site is not None else None
        return part.columns if part is not None else None

    def schemas(self) -> tuple[str, ...]:
        """Every name that `schema` takes: `default`, the members in the order of the configuration, and schemas."""
        return (DEFAULT_SCHEMA, *(member.name for member in self._members.values()), *self._named_schemas().values())

    def schema(self, name: str) -> str:
        """The member's own spelling or a schema's, "" for `default`; UserError for a name that is none."""
        if name.lower() == DEFAULT_SCHEMA:
            return ""
        known = self._members.get(name.lower())
        if known is None and name.lower() in self._named_schemas():
            return self._named_schemas()[name.lower()]
        if known is None:
            hint = did_you_mean(name, self.schemas()) or f"; there are {', '.join(self.schemas())}"
            raise UserError(f"there is no schema {name[:100]}{hint}")
        return known.name

    def show_tables(self, schema: str | None = None) -> tuple[TableLine, ...]:
        """Every logical table by name, or the parts at one member; sums are None where a part is not known."""
        within = self.schema(schema or DEFAULT_SCHEMA).lower()
        member = within if within in self._members else None
        members = [member] if member else list(self._members)
        tables = {table.lower() for each in members for table in (*self._tables[each], *self._sites[each].offered)}
        if within and member is None:
            tables = {table for table in tables if schema_of(table) == within}
        return tuple(self._line(table, member) for table in sorted(tables))

    def _line(self, table: str, member: str | None) -> TableLine:
        holders = self._holders(table) if member is None else [member]
        try:
            ref = self._logical_ref(table) if member is None else self._part_ref(member, table)
            parts, problem = self.parts(ref), ""
        except Undescribed:
            parts, problem = (), ""
        except SiteError as error:
            parts, problem = (), error.message
        rows = [part.rows for part in parts]
        known_rows = [count for count in rows if count is not None]
        configured = [self._members[member].tables for member in holders]
        formats = {each.format for tables in configured for name, each in tables.items() if name.lower() == table}
        formats |= {"catalog" for _ in holders if schema_of(table)}
        formats |= {OWN_FORMAT for each in holders if table in self._sites[each].own}
        return TableLine(
            table=self._spelled(table),
            members=tuple(self._members[member].name for member in holders),
            rows=sum(known_rows) if parts and len(known_rows) == len(parts) else None,
            size_bytes=sum(part.size_bytes for part in parts) if parts else None,
            format=", ".join(sorted(formats)),
            problem=problem,
        )

    def _part_ref(self, member: str, table: str) -> TableRef:
        part = self._part(member.lower(), table)
        return TableRef(part.table, self._members[member.lower()].name, part.columns, part.own is not None)

    def _logical_ref(self, table: str) -> TableRef:
        own = self._sites[self._holders(table)[0]].own.get(table.lower())
        if own is not None:  # a member that is down may not be needed
            self._check_clash(own)
            return TableRef(own.table, None, own.columns, is_own=True)
        first, *others = [self._part(member, table) for member in self._holders(table)]
        for other in others:
            how = difference(other.columns, first.columns)
            if how:
                raise SiteError(
                    f"table {first.table} has different columns at sites {first.member} and {other.member}: {how} "
                    f"(here: {other.member}, there: {first.member}); query {first.member}.{first.table} or declare "
                    f"columns in both",
                    member=other.member,
                )
        return TableRef(self._spelled(table), None, first.columns)

    def _part(self, member: str, table: str) -> TablePart:
        """The part at one site, or the reason why it cannot be used."""
        site, name = self._sites[member], self._members[member].name
        spelled = self._tables[member].get(table.lower(), table)
        if site.down:
            raise SiteError(f"site {name} is down: {site.down}; table {spelled} is there", member=name)
        if table.lower() in site.own:
            self._check_clash(site.own[table.lower()])
            return site.own[table.lower()]
        reason = site.broken.get(table.lower())
        if reason is None and table.lower() in site.parts:
            return site.parts[table.lower()]
        prefix = f"site {name}: table {spelled}: "
        if reason:  # in the words of its Spark, maybe: nobody says over the wire whose they are
            raise quoting(SiteError(prefix + reason.removeprefix(prefix), member=name))
        if base_of(table) != table or table.lower() not in self._tables[member]:
            self._check_versions(member, table)
            answer = site.asked.get(table.lower())
            if isinstance(answer, TablePart):
                return answer
            if answer:
                raise quoting(SiteError(prefix + answer.removeprefix(prefix), member=name))
            raise undescribed(name, table)
        unknown = f"the site does not know it (has it the same configuration? see members.{name}.tables)"
        raise SiteError(prefix + unknown, member=name)

    def _check_versions(self, member: str, table: str) -> None:
        base, at = split_older(table)
        found = (each for name, each in self._members[member].tables.items() if name.lower() == base.lower())
        if at is not None and any(isinstance(each.source, PlainFiles | JdbcTable) for each in found):
            raise UserError(f"AS OF is for tables of our own and those of Delta: {base} is read as it is now")

    def _check_buckets(self, ref: TableRef) -> None:
        """A member that was taken out of the configuration took its rows along: the rest is not the table."""
        spread = self.spread(ref)
        here = sum(upto - first for each in spread.values() for first, upto in each.here)
        buckets = next((each.buckets for each in spread.values()), 0)
        if here < buckets:
            groups = [group for each in self._own if each.table.name == ref.name for group in each.buckets.groups]
            gone = ", ".join(sorted({owner for *_, owner in groups if owner.lower() not in self._members}))
            raise SiteError(
                f"table {ref.name}: {buckets - here} of its {buckets} buckets are at {gone}, which is not configured",
                suggestion=f"put {gone} back into skerry.yaml; skerry rebalance --leave {gone} moves its rows away",
            )

    def _check_clash(self, part: TablePart) -> None:
        """Rows of one would be taken for rows of the other. CREATE TABLE sees to it, a later configuration may not."""
        for member in self._members.values():
            if part.table.lower() in _configured(member):
                raise SiteError(
                    f"table {part.table} is one of our own, and members.{member.name}.tables has one of that name",
                    suggestion="give the one in the configuration another name",
                )
