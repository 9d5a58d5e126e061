"""Any use of a spool by several readers: each gets every entry, and what all have is given back at once."""

from __future__ import annotations

import tempfile

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from skerry.exchange.fan import Fan
from skerry.exchange.spool import Budget, Entry, Spool
from skerry.model.limits import ENTRY_BYTES

READERS = 3
WHICH = st.integers(0, READERS - 1)


class Readers(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        # Most of what waits is on disk.
        self.budget = Budget(2000, 1_000_000, segment_bytes=700)
        self.spool = Spool(self.budget, self.directory.name, "query oslo/1 fragment 1")
        self.readers = Fan(self.spool, READERS).readers
        self.bodies: list[bytes] = []
        self.acked = [0] * READERS
        self.is_closed = [False] * READERS

    def teardown(self) -> None:
        self.spool.close()
        assert self.budget.memory_used == self.budget.disk_used == 0
        self.directory.cleanup()

    @precondition(lambda self: not self.spool.finished)
    @rule(size=st.integers(0, 900))
    def rows_come(self, size: int) -> None:
        body = len(self.bodies).to_bytes(2, "big") + bytes(size)
        self.bodies.append(body)
        self.spool.append(Entry(body, 1, size))

    @rule()
    def the_job_ends(self) -> None:
        self.spool.finish()

    @rule(which=WHICH, data=st.data())
    def a_reader_acks(self, which: int, data: st.DataObject) -> None:
        """Late and repeated acks among them."""
        upto = data.draw(st.integers(0, len(self.bodies)))
        self.readers[which].release(upto)
        self.acked[which] = max(self.acked[which], upto)

    @rule(which=WHICH)
    def a_reader_leaves(self, which: int) -> None:
        self.readers[which].close()
        self.is_closed[which] = True

    @invariant()
    def each_reader_can_go_on_from_what_it_acked(self) -> None:
        for which, reader in enumerate(self.readers):
            assert (reader.length, reader.finished, reader.failed) == (len(self.bodies), self.spool.finished, None)
            if not self.is_closed[which]:
                assert reader.first == self.acked[which]
                wanted = self.bodies[self.acked[which] :]
                assert [reader.read(at).body for at in range(reader.first, reader.length)] == wanted

    @invariant()
    def nothing_is_kept_that_all_have(self) -> None:
        open_acks = [acked for acked, gone in zip(self.acked, self.is_closed, strict=True) if not gone]
        assert self.spool.first == min(open_acks, default=len(self.bodies))
        if self.spool.first == len(self.bodies):
            assert self.budget.memory_used == 0
        assert self.budget.memory_used <= 2000 + ENTRY_BYTES + self.budget.index_used


TestReaders = Readers.TestCase
TestReaders.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
