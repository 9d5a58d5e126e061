"""Locks on keys and whole tables of one member, by wait-die: who started first may wait, who started later dies. Pure.

A transaction asks for all its locks at once, and holds none while it waits. Every waiter is older than whoever it waits
for, here and at all other members, so no circle of waits can come about.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from skerry.model.commits import TransactionId

Lock = tuple[int, bytes | None]  # a table and a key; without a key the whole table


class Granted(msgspec.Struct, frozen=True):
    pass


class Waiting(msgspec.Struct, frozen=True):
    owner: TransactionId


class Died(msgspec.Struct, frozen=True):
    """`owner` is older: to wait for it could close a circle."""

    owner: TransactionId


class _Asked(msgspec.Struct, frozen=True):
    txn: TransactionId
    first_start: int
    locks: frozenset[Lock]
    tables: frozenset[int]

    @property
    def age(self) -> tuple[int, TransactionId]:
        """The smaller the older; the same at all members and for all attempts."""
        return self.first_start, self.txn


class LockTable:
    def __init__(self) -> None:
        self._held: dict[TransactionId, _Asked] = {}
        self._waiting: dict[TransactionId, _Asked] = {}
        self._owners: dict[Lock, TransactionId] = {}
        self._of_table: dict[int, set[TransactionId]] = {}

    def __len__(self) -> int:
        return len(self._held) + len(self._waiting)

    def ask(self, txn: TransactionId, first_start: int, locks: Iterable[Lock]) -> Granted | Waiting | Died:
        assert txn not in self._held, txn
        assert txn not in self._waiting, txn
        asked = _asked(txn, first_start, locks)
        in_the_way = self._in_the_way(asked)
        if not in_the_way:
            self._grant(asked)
            return Granted()
        eldest = min(in_the_way, key=lambda other: other.age)
        if eldest.age < asked.age:
            return Died(eldest.txn)
        self._waiting[txn] = asked
        return Waiting(eldest.txn)

    def take(self, txn: TransactionId, first_start: int, locks: Iterable[Lock]) -> None:
        """What a transaction held before its member started anew. Prepared ones never overlap."""
        asked = _asked(txn, first_start, locks)
        assert not self._owners_of(asked), txn
        self._grant(asked)

    def owner_before(self, txn: TransactionId) -> TransactionId | None:
        """The eldest owner of what a waiting transaction waits for."""
        owners = self._owners_of(self._waiting[txn])
        return min(owners, key=lambda owner: owner.age).txn if owners else None

    def release(self, txn: TransactionId) -> list[TransactionId]:
        """Lets go of what it holds or waits for; gives those whose turn has come."""
        self._waiting.pop(txn, None)
        asked = self._held.pop(txn, None)
        if asked is None:
            return []
        for lock in asked.locks:
            self._owners.pop(lock, None)
        for table in asked.tables:
            self._of_table[table].discard(txn)
            if not self._of_table[table]:
                del self._of_table[table]
        return self._serve()

    def _serve(self) -> list[TransactionId]:
        """The youngest first: so all who go on waiting are older than the new owner, and none has to die."""
        if not self._waiting:
            return []
        granted = []
        for asked in sorted(self._waiting.values(), key=lambda asked: asked.age, reverse=True):
            if not self._in_the_way(asked):
                del self._waiting[asked.txn]
                self._grant(asked)
                granted.append(asked.txn)
        return granted

    def _grant(self, asked: _Asked) -> None:
        self._held[asked.txn] = asked
        self._owners.update(dict.fromkeys(asked.locks, asked.txn))
        for table in asked.tables:
            self._of_table.setdefault(table, set()).add(asked.txn)

    def _in_the_way(self, asked: _Asked) -> list[_Asked]:
        """Owners, and the younger ones that wait: to overtake them would let them wait for someone older."""
        younger = [other for other in self._waiting.values() if other.age > asked.age and _overlap(asked, other)]
        return [*self._owners_of(asked), *younger]

    def _owners_of(self, asked: _Asked) -> list[_Asked]:
        owners: set[TransactionId] = set()
        for table in asked.tables:
            if (table, None) in asked.locks:
                owners |= self._of_table.get(table, set())
            elif (table, None) in self._owners:
                owners.add(self._owners[table, None])
        if not self._owners.keys().isdisjoint(asked.locks):  # nearly always it is
            owners.update(self._owners[lock] for lock in asked.locks if lock in self._owners)
        return [self._held[owner] for owner in owners]


def _asked(txn: TransactionId, first_start: int, locks: Iterable[Lock]) -> _Asked:
    unique = frozenset(locks)
    return _Asked(txn, first_start, unique, frozenset([table for table, _ in unique]))


def _overlap(one: _Asked, other: _Asked) -> bool:
    shared = one.tables & other.tables
    if any((table, None) in one.locks or (table, None) in other.locks for table in shared):
        return True
    return not one.locks.isdisjoint(other.locks)
