"""Any use of two spools of one query, on a small budget: what is held is what was appended, and is given back."""

from __future__ import annotations

import functools
import os
import tempfile

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from skerry.exchange.index import INDEX_BYTES
from skerry.exchange.spool import Budget, Entry, Spool
from skerry.model.errors import InternalError, Overloaded, SiteError
from skerry.model.limits import ENTRY_BYTES

MEMORY_BYTES = 2000
DISK_BYTES = 3000
WHICH = st.integers(0, 1)


class Model:
    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.first = 0
        self.finished = False
        self.error: SiteError | None = None
        self.closed = False
        self.changes = 0


class Spools(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.budget = Budget(MEMORY_BYTES, DISK_BYTES, segment_bytes=700)
        self.spools = [Spool(self.budget, self.directory.name, f"query oslo/1 edge {edge}") for edge in range(2)]
        self.models = [Model(), Model()]
        self.seen = [0, 0]
        for which in range(2):
            self.spools[which].subscribe(functools.partial(self.saw, which))

    def saw(self, which: int) -> None:
        self.seen[which] += 1

    @rule(which=WHICH, size=st.integers(0, 900), fill=st.integers(0, 255), rows=st.integers(0, 9))
    def append(self, which: int, size: int, fill: int, rows: int) -> None:
        spool, model = self.spools[which], self.models[which]
        body = bytes([fill]) * size
        if model.error is not None:
            with pytest.raises(SiteError):
                spool.append(Entry(body, rows, 2 * size))
        elif model.finished or model.closed:
            with pytest.raises(InternalError):
                spool.append(Entry(body, rows, 2 * size))
        elif not spool.has_room(size):
            with pytest.raises(Overloaded, match=r"query oslo/1 edge \d: spool full"):
                spool.append(Entry(body, rows, 2 * size))
        else:
            assert spool.append(Entry(memoryview(body), rows, 2 * size)) == len(model.bodies)
            model.bodies.append(body)
            model.changes += 1

    @rule(which=WHICH, data=st.data())
    def read(self, which: int, data: st.DataObject) -> None:
        spool, model = self.spools[which], self.models[which]
        index = data.draw(st.integers(0, len(model.bodies) + 1))
        if model.error is not None and index >= len(model.bodies):
            with pytest.raises(SiteError, match="lost"):
                spool.read(index)
        elif model.first <= index < len(model.bodies):
            entry = spool.read(index)
            assert bytes(entry.body) == model.bodies[index]
            assert entry.decoded_bytes == 2 * len(model.bodies[index])
        else:
            with pytest.raises(InternalError):
                spool.read(index)

    @rule(which=WHICH, data=st.data())
    def a_disk_that_lies_is_found_out(self, which: int, data: st.DataObject) -> None:
        """One byte of an entry on disk is another one, for a while."""
        spool = self.spools[which]
        found = {at: spool._index.get(at) for at in range(spool.first, spool.length)}
        stored = {at: entry for at, entry in found.items() if entry is not None and entry.length}
        if not stored:
            return
        index = data.draw(st.sampled_from(sorted(stored)))
        entry = stored[index]
        at = entry.offset + data.draw(st.integers(0, entry.length - 1))
        (right,) = os.pread(entry.segment._file.fileno(), 1, at)
        os.pwrite(entry.segment._file.fileno(), bytes([right ^ 1]), at)
        with pytest.raises(SiteError, match="checksum"):
            spool.read(index)
        os.pwrite(entry.segment._file.fileno(), bytes([right]), at)

    @rule(which=WHICH, data=st.data())
    def release(self, which: int, data: st.DataObject) -> None:
        model = self.models[which]
        upto = data.draw(st.integers(0, len(model.bodies)))
        self.spools[which].release(upto)
        model.first = max(model.first, upto)

    @rule(which=WHICH)
    def finish(self, which: int) -> None:
        model = self.models[which]
        self.spools[which].finish()
        if not (model.finished or model.closed):
            model.finished = True
            model.changes += 1

    @precondition(lambda self: any(len(model.bodies) > 3 for model in self.models))
    @rule(which=WHICH)
    def fail(self, which: int) -> None:
        model = self.models[which]
        error = SiteError("site bergen: lost")
        self.spools[which].fail(error)
        if model.error is None and not model.closed:
            model.error = error
            model.changes += 1

    @precondition(lambda self: any(len(model.bodies) > 5 for model in self.models))
    @rule(which=WHICH)
    def close(self, which: int) -> None:
        model = self.models[which]
        self.spools[which].close()
        model.changes += not model.closed
        model.closed = True
        model.first = len(model.bodies)

    @invariant()
    def spools_say_what_they_hold(self) -> None:
        for spool, model in zip(self.spools, self.models, strict=True):
            assert (spool.first, spool.length) == (model.first, len(model.bodies))
            assert spool.finished == (model.finished and model.error is None)
            assert spool.failed is model.error
        assert self.seen == [model.changes for model in self.models]

    @invariant()
    def budget_is_kept(self) -> None:
        held = sum(len(body) + ENTRY_BYTES for model in self.models for body in model.bodies[model.first :])
        on_disk = sum(
            spool._index.get(at) is not None for spool in self.spools for at in range(spool.first, spool.length)
        )
        assert self.budget.index_used == on_disk * INDEX_BYTES <= self.budget.index_bytes
        assert 0 <= self.budget.memory_used <= self.budget.memory_peak <= MEMORY_BYTES + self.budget.index_bytes
        assert self.budget.memory_used - self.budget.index_used <= MEMORY_BYTES
        assert 0 <= self.budget.disk_used <= self.budget.disk_peak <= DISK_BYTES
        # Disk may count more than is held: a file keeps the space of entries that were let go.
        assert self.budget.memory_used + self.budget.disk_used >= held
        if not held:
            assert (self.budget.memory_used, self.budget.disk_used) == (0, 0)

    @invariant()
    def no_file_has_a_name(self) -> None:
        assert os.listdir(self.directory.name) == []

    def teardown(self) -> None:
        for spool in self.spools:
            spool.close()
        assert (self.budget.memory_used, self.budget.disk_used) == (0, 0)
        self.directory.cleanup()


Spools.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestSpools = Spools.TestCase
