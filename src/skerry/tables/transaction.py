"""What an open transaction has written and not committed yet, at the member that was asked. Pure.

A statement changes the rows that the transaction sees: those of its snapshot, as members have found them, and its own
before them. A statement that fails leaves nothing here. At the end each key is written once, and by as little as the
statements asked for: who may only insert, or only update, may do so in a transaction too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from skerry.model.commits import Changed, FoundAt, Part, Policy, Versions, Write
from skerry.model.errors import InternalError, KeyExists, PeerError, UserError
from skerry.model.limits import OVERLAY_ROW_BYTES
from skerry.model.sharded import OwnTable
from skerry.tables.checks import found_of
from skerry.tables.lookup import FoundRow
from skerry.tables.writes import encode_body

_PATCH = msgspec.msgpack.Decoder(list[tuple[int, msgspec.Raw]])

Place = tuple[int, bytes]  # a table, and a key of it


class Held(msgspec.Struct, frozen=True):
    """A key as the transaction sees it: `row` None is one that it deleted.

    `was_there`: at the snapshot; None if nobody had to look. `patch`: of a row that was there and only had columns set.
    """

    row: bytes | None
    was_there: bool | None
    patch: bytes | None = None

    @property
    def size_bytes(self) -> int:
        return len(self.row or b"") + len(self.patch or b"")


class Transaction:
    """`read_ts`: its snapshot. It holds so many rows at most, and bytes of all copies."""

    def __init__(self, read_ts: int, rows_max: int, bytes_max: int) -> None:
        self.read_ts = read_ts
        self._rows_max = rows_max
        self._bytes_max = bytes_max
        self._held: dict[str, dict[Place, Held]] = {}  # by member
        self._versions: dict[int, Versions] = {}
        self.rows = 0
        self.size_bytes = 0

    @property
    def memory_bytes(self) -> int:
        return self.size_bytes + self.rows * OVERLAY_ROW_BYTES

    def apply(
        self,
        parts: Mapping[str, Part],
        found: Mapping[str, tuple[FoundAt, ...]],
        table: OwnTable,
        room_bytes: int,
    ) -> int:
        """One statement: how many rows it changed, copies included. `found`: what its writes meet at the snapshot.

        KeyExists or UserError, and nothing is changed. `room_bytes`: what there is for all that is held afterwards.
        """
        for part in parts.values():
            self._check_versions(part.versions, table)
        made: dict[str, dict[Place, Held | None]] = {}
        changed = 0
        for member, part in parts.items():
            if len(found[member]) != len(part.writes):
                raise PeerError(f"{member} has answered for {len(found[member])} rows of {len(part.writes)}")
            held = self._held.get(member, {})
            made[member] = {}
            for write, met in zip(part.writes, found[member], strict=True):
                place = (write.table, write.key)
                after = _after(write, held.get(place), met, table)
                if after is not None:
                    made[member][place] = None if after.row is None and after.was_there is False else after
                    changed += write.is_counted
        self._keep(made, room_bytes)
        for part in parts.values():
            self._versions |= {each.table: each for each in part.versions}
        return changed

    def _keep(self, made: Mapping[str, Mapping[Place, Held | None]], room_bytes: int) -> None:
        rows, size_bytes = self.rows, self.size_bytes
        for member, changes in made.items():
            held = self._held.get(member, {})
            for place, after in changes.items():
                before = held.get(place)
                rows += (after is not None) - (before is not None)
                size_bytes += _size(place, after) - _size(place, before)
        grows = size_bytes > self.size_bytes or rows > self.rows
        if grows and (rows > self._rows_max or size_bytes > self._bytes_max):
            raise UserError(
                f"a transaction changes at most {self._rows_max} rows and {self._bytes_max} bytes, with all copies; "
                "nothing of this statement was written",
                suggestion="COMMIT before it, or change fewer rows",
            )
        if grows and size_bytes + rows * OVERLAY_ROW_BYTES > room_bytes:
            raise UserError(
                "open transactions of this member hold as much as they may; nothing of this statement was written",
                suggestion="COMMIT, or try again shortly",
            )
        for member, changes in made.items():
            held = self._held.setdefault(member, {})
            for place, after in changes.items():
                if after is None:
                    held.pop(place, None)
                else:
                    held[place] = after
        self.rows, self.size_bytes = rows, size_bytes

    def _check_versions(self, versions: Iterable[Versions], table: OwnTable) -> None:
        for each in versions:
            if self._versions.get(each.table, each) != each:
                raise UserError(
                    f"table {table.name} has changed since the transaction wrote to it: it cannot be committed",
                    suggestion="ROLLBACK, and begin it again",
                )

    def changes(self, tables: Callable[[int], bool]) -> dict[str, tuple[Changed, ...]]:
        """What queries of the transaction see beside their snapshot, by member, of the tables that they read."""
        told: dict[str, tuple[Changed, ...]] = {}
        for member, held in self._held.items():
            by_table: dict[int, list[Write]] = {}
            for (table, key), each in held.items():
                if tables(table):
                    by_table.setdefault(table, []).append(Write(table, key, each.row))
            if by_table:
                told[member] = tuple(
                    Changed(table, self._versions[table].version, encode_body(writes))
                    for table, writes in sorted(by_table.items())
                )
        return told

    def parts(self, user: str, roles: tuple[str, ...]) -> dict[str, Part]:
        """What COMMIT writes; nothing for a transaction that changed nothing."""
        made = {}
        for member, held in sorted(self._held.items()):
            writes = tuple(_written(place, each) for place, each in held.items())
            if writes:
                written = {write.table for write in writes}
                versions = tuple(each for table, each in sorted(self._versions.items()) if table in written)
                made[member] = Part(writes, (), versions, user, roles)
        return made


def _after(write: Write, held: Held | None, met: FoundAt, table: OwnTable) -> Held | None:
    """The key as the transaction sees it after the write; None if that does nothing. KeyExists if it must not be."""
    is_live = held.row is not None if held is not None else met.is_live
    was_there = held.was_there if held is not None else met.is_live
    if write.row is None:
        return Held(None, was_there) if is_live else None
    if write.is_patch:
        return _patched(write, held, met, table) if is_live else None
    if write.policy is Policy.REPLACE:
        # Nobody looks whether there is a row that is replaced in any case.
        return Held(write.row, held.was_there if held is not None else None)
    if not is_live:
        return Held(write.row, was_there)
    if write.policy is Policy.FAIL:
        raise KeyExists(
            f"table {table.name}: a row with the same primary key exists; nothing of this statement was written",
            suggestion="ON CONFLICT DO NOTHING or DO REPLACE",
        )
    return None


def _patched(write: Write, held: Held | None, met: FoundAt, table: OwnTable) -> Held:
    assert write.row is not None
    if held is None:
        if met.row is None:
            raise PeerError(f"table {table.name}: a row was found, and not told")
        return Held(met.row, True, write.row)
    (made,) = found_of(table, [write], [FoundRow(0, True, held.row)])
    if made.row is None:
        raise InternalError(f"table {table.name}: a change of a row that made none")
    return Held(made.row, held.was_there, None if held.patch is None else _merged(held.patch, write.row))


def _merged(first: bytes, then: bytes) -> bytes:
    return msgspec.msgpack.encode(list((dict(_PATCH.decode(first)) | dict(_PATCH.decode(then))).items()))


def _written(place: Place, held: Held) -> Write:
    table, key = place
    if held.row is None:
        return Write(table, key, None)
    if held.patch is not None:
        return Write(table, key, held.patch, is_patch=True)
    # One that was not there may have come since: then the snapshot is in the way, whatever the policy says.
    return Write(table, key, held.row, Policy.FAIL if held.was_there is False else Policy.REPLACE)


def _size(place: Place, held: Held | None) -> int:
    return len(place[1]) + held.size_bytes if held is not None else 0
