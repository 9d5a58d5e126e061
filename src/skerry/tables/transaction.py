"""What a transaction of one or several statements has gathered, where it began, until it is committed. Pure.

All its statements read at one timestamp. What it has written itself is here: its reader lays that over the snapshot.
"""

from __future__ import annotations

import msgspec

from skerry.model.commits import Part, Policy, Staged, Versions, Write
from skerry.model.errors import KeyExists, UserError
from skerry.model.ids import QueryId


class _Gathered(msgspec.Struct):
    writes: dict[tuple[int, bytes], Write]
    staged: list[Staged]
    versions: dict[int, Versions]


class Transaction:
    """`query` is the id that its outcome can be asked by; `first_start` decides who waits for whom, at any attempt."""

    def __init__(self, query: QueryId, read_ts: int, first_start: int) -> None:
        self.query = query
        self.read_ts = read_ts
        self.first_start = first_start
        self._at: dict[str, _Gathered] = {}

    def add(self, member: str, part: Part) -> None:
        """One statement's writes at one member. UserError if they cannot follow those before; then nothing is added."""
        gathered = self._at.get(member, _Gathered({}, [], {}))
        writes = dict(gathered.writes)
        for write in part.writes:
            place = write.table, write.key
            writes[place] = _after(writes[place], write) if place in writes else write
        staged = [*gathered.staged, *part.staged]
        if mixed := {write.table for write in writes.values()} & {each.table for each in staged}:
            raise UserError(
                f"table {min(mixed)}: one transaction cannot write both single rows and files",
                suggestion="write them in two transactions",
            )
        versions = dict(gathered.versions)
        for each in part.versions:
            if versions.setdefault(each.table, each) != each:
                raise UserError(
                    f"table {each.table} has changed since this transaction began", suggestion="begin again"
                )
        self._at[member] = _Gathered(writes, staged, versions)

    def own(self, member: str, table: int) -> dict[bytes, Write]:
        """Its own writes to a table at a member, by key."""
        gathered = self._at.get(member)
        return {key: write for (of, key), write in gathered.writes.items() if of == table} if gathered else {}

    def parts(self) -> dict[str, Part]:
        """For `Commits.submit`; empty if nothing was written, and then there is nothing to commit."""
        return {
            member: Part(tuple(each.writes.values()), tuple(each.staged), tuple(each.versions.values()))
            for member, each in sorted(self._at.items())
            if each.writes or each.staged
        }


def _after(first: Write, second: Write) -> Write:
    """Two writes of one key as one. What the first one demands of the snapshot stays; the last row counts."""
    exists = first.row is not None  # after the first, whatever was there before
    if not exists:
        # A row that this transaction has deleted: any insert is a new row. Its own FAIL still has to hold.
        return Write(second.table, second.key, second.row, first.policy)
    match second.policy:
        case Policy.FAIL:
            raise KeyExists(
                f"table {second.table}: this transaction has written a row with the same primary key before"
            )
        case Policy.NOTHING:
            return first
        case Policy.REPLACE:
            # Replaced in any case, whether an insert that does nothing about conflicts has taken place or not.
            policy = Policy.FAIL if first.policy is Policy.FAIL else Policy.REPLACE
            return Write(second.table, second.key, second.row, policy)
