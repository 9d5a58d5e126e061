"""The catalog as one user sees it: what the user may not read is not there, and nothing tells of it."""

from __future__ import annotations

import msgspec

from skerry.catalog.catalog import Catalog, Site, TableLine, undescribed
from skerry.model.errors import UserError
from skerry.model.limits import VEILED_PART_BYTES
from skerry.model.names import TableRef, schema_of
from skerry.model.rights import Rights
from skerry.model.table import TablePart


class SeenCatalog(Catalog):
    """A copy, as of now. Tables and columns without a right are unknown, in the same words as names nobody has.

    A part is veiled if the user sees only some of its rows, or masked values: it has no statistics, its sizes are
    always the same, and its version is no version, so that nothing is remembered of it.
    """

    def __init__(self, whole: Catalog, rights: Rights) -> None:
        self._veiled: set[tuple[str, str]] = set()
        # Logical tables of which the user sees some parts, or some columns in one part and others in another.
        self._uneven: set[str] = set()
        self._members, self._sites, self._tables = {}, {}, {}
        self._own, self._told, self._nearest = (), {}, whole._nearest
        columns: dict[str, set[object]] = {}
        for member, config in whole._members.items():
            site, tables = whole._sites[member], {}
            parts: dict[str, TablePart] = {}
            own: dict[str, TablePart] = {}
            for table, name in whole._tables[member].items():
                seen = rights.seen(member, table)
                part = site.part(table)
                left = seen.columns(part.columns) if part is not None else ()
                if seen.is_hidden or (part is not None and not left):
                    columns.setdefault(table, set()).add(None)
                    continue
                tables[table] = name
                if seen.is_veiled:
                    self._veiled.add((member, table))
                if part is not None:
                    shown = _as_seen(msgspec.structs.replace(part, columns=left), part, seen.is_veiled)
                    (own if part.own else parts)[table] = shown
                    hidden = {each.name.lower() for each in part.columns} - {each.name.lower() for each in left}
                    # One copy is read, whichever: all of them must show the same rows and values.
                    shows = tuple((each.where, tuple(each.masks.items())) for each in seen.sights if part.is_copy)
                    columns.setdefault(table, set()).add((frozenset(hidden), shows))
            asked = {name: each for name, each in site.asked.items() if self._may_see(member, name, each, rights)}
            offered = tuple(name for name in site.offered if not rights.seen(member, name).is_hidden)
            for name, each in site.asked.items():
                seen = rights.seen(member, name)
                if seen.is_veiled:
                    self._veiled.add((member, name))
                if isinstance(each, TablePart) and name in asked:
                    left = seen.columns(each.columns)
                    asked[name] = _as_seen(msgspec.structs.replace(each, columns=left), each, seen.is_veiled)
                    hidden = {c.name.lower() for c in each.columns} - {c.name.lower() for c in left}
                    columns.setdefault(name, set()).add((frozenset(hidden), ()))
                elif name not in asked and each:  # also one that the site cannot read now
                    columns.setdefault(name, set()).add(None)
            if tables or any(rights.sees_into(member, schema) for schema in config.schemas):
                broken = {table: reason for table, reason in site.broken.items() if table in tables}
                self._members[member] = config
                self._sites[member] = Site(parts, broken, site.down, own, asked, offered)
                self._tables[member] = tables
        self._rights, self._whole_members, self._whole_sites = rights, whole._members, dict(whole._sites)
        self._uneven = {table for table, kinds in columns.items() if len(kinds) > 1}

    @staticmethod
    def _may_see(member: str, table: str, answer: TablePart | str, rights: Rights) -> bool:
        seen = rights.seen(member, table)
        return not seen.is_hidden and (isinstance(answer, str) or bool(seen.columns(answer.columns)))

    def _has(self, member: str, table: str) -> bool:
        """Nobody asks a site about a table for a user who may not see it."""
        return not self._rights.seen(member, table).is_hidden and super()._has(member, table)

    def _named_schemas(self) -> dict[str, str]:
        found = super()._named_schemas()
        return {
            schema: name
            for schema, name in found.items()
            if any(self._rights.sees_into(member, schema) for member in self._members)
        }

    def is_veiled(self, member: str, table: str) -> bool:
        return (member.lower(), table.lower()) in self._veiled

    def files_version(self, member: str, table: str) -> int | None:
        return None if self.is_veiled(member, table) else super().files_version(member, table)

    def _line(self, table: str, member: str | None) -> TableLine:
        if member is None and table in self._uneven:
            line = super()._line(table, self._holders(table)[0])
            members = tuple(self._members[each].name for each in self._holders(table))
            return msgspec.structs.replace(
                line, members=members, rows=None, size_bytes=None, problem=self._refusal(table).message
            )
        line = super()._line(table, member)
        if any(self.is_veiled(each, table) for each in line.members):
            return msgspec.structs.replace(line, rows=None, size_bytes=None)
        return line

    def _logical_ref(self, table: str) -> TableRef:
        """A shorter answer in silence would be a wrong one."""
        if table.lower() in self._uneven:
            raise self._refusal(table)
        for member, config in self._whole_members.items():
            is_asked = table.lower() in self._whole_sites[member].asked
            if schema_of(table) not in map(str.lower, config.schemas) or is_asked:
                continue
            if self._rights.seen(member, table).is_hidden:
                raise undescribed(config.name, table)
        return super()._logical_ref(table)

    def _refusal(self, table: str) -> UserError:
        names = [f"{self._members[each].name}.{self._spelled(table)}" for each in self._holders(table)]
        return UserError(
            f"table {self._spelled(table)}: your rights differ between its parts; ask for those you may read by name: "
            f"{', '.join(names)}"
        )


def _as_seen(part: TablePart, whole: TablePart, is_veiled: bool) -> TablePart:
    if is_veiled:
        return msgspec.structs.replace(part, rows=None, size_bytes=VEILED_PART_BYTES, files_version=0, stats=None)
    if whole.stats is None or part.columns == whole.columns:
        return part
    shown = {column.name.lower() for column in part.columns}
    told = tuple(each for each in whole.stats.columns if each.name.lower() in shown)
    return msgspec.structs.replace(part, stats=msgspec.structs.replace(whole.stats, columns=told))


def seen_by(catalog: Catalog, rights: Rights) -> Catalog:
    """The catalog itself where there are no rules."""
    return catalog if rights.is_open else SeenCatalog(catalog, rights)
