"""Locks: nobody shares, nobody is forgotten, and who waits is older than all it waits for."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from skerry.model.commits import TransactionId
from skerry.model.ids import QueryId
from skerry.tables.locks import Died, Granted, Lock, LockTable, Waiting

LOCKS = [(table, key) for table in (1, 2) for key in (None, b"a", b"b", b"c")]


def overlap(one: set[Lock], other: set[Lock]) -> bool:
    return any(t == u and (k == m or None in (k, m)) for t, k in one for u, m in other)


class Locking(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.table = LockTable()
        self.number = 0
        self.wanted: dict[TransactionId, tuple[int, set[Lock]]] = {}
        self.held: set[TransactionId] = set()

    def age(self, txn: TransactionId) -> tuple[int, TransactionId]:
        return self.wanted[txn][0], txn

    def in_the_way(self, txn: TransactionId) -> set[TransactionId]:
        return {each for each in self.held - {txn} if overlap(self.wanted[each][1], self.wanted[txn][1])}

    def younger_that_wait(self, txn: TransactionId) -> set[TransactionId]:
        waiting = set(self.wanted) - self.held - {txn}
        wanted = self.wanted[txn][1]
        return {each for each in waiting if self.age(each) > self.age(txn) and overlap(self.wanted[each][1], wanted)}

    @rule(start=st.integers(0, 5), locks=st.sets(st.sampled_from(LOCKS), min_size=1, max_size=4))
    def ask(self, start: int, locks: set[Lock]) -> None:
        self.number += 1
        txn = TransactionId(QueryId("oslo", str(self.number)))
        self.wanted[txn] = (start, locks)
        owners, overtaken = self.in_the_way(txn), self.younger_that_wait(txn)
        answer = self.table.ask(txn, start, locks)
        match answer:
            case Granted():
                assert not owners | overtaken
                self.held.add(txn)
            case Waiting(owner):
                assert owner == min(owners | overtaken, key=self.age)
                assert self.table.owner_before(txn) == min(owners, key=self.age, default=None)
            case Died(owner):
                assert self.age(owner) < self.age(txn)
                assert owner in owners
                del self.wanted[txn]

    @precondition(lambda self: self.wanted)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        txn = data.draw(st.sampled_from(sorted(self.wanted)))
        granted = self.table.release(txn)
        del self.wanted[txn]
        self.held = (self.held - {txn}) | set(granted)

    @invariant()
    def who_waits_is_older(self) -> None:
        for txn in set(self.wanted) - self.held:
            owners = self.in_the_way(txn)
            assert owners | self.younger_that_wait(txn)
            assert all(self.age(txn) < self.age(owner) for owner in owners)

    @invariant()
    def nobody_shares(self) -> None:
        assert not any(self.in_the_way(txn) for txn in self.held)
        assert len(self.table) == len(self.wanted)


TestLocking = Locking.TestCase
TestLocking.settings = settings(max_examples=40, stateful_step_count=25)
