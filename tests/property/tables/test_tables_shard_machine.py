"""Any statements, flushes, trims and restarts: every moment that is kept is read as a dict has it, all types."""

from __future__ import annotations

import asyncio
import os
from contextlib import ExitStack
from decimal import Decimal
from typing import Any
from unittest import mock

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from skerry.model.commits import Aborted, Committed, Policy, Prepared, Write
from skerry.model.errors import KeyExists, SiteError
from skerry.tables import flush, laying
from skerry.tables.checks import encode_patch
from skerry.tables.columns import arrow_schema
from skerry.tables.flushing import Flusher, open_shards
from skerry.tables.lookup import FileKeys, ask
from skerry.tables.manifest import DataFile, laid_of
from skerry.tables.rows import decode_rows
from skerry.tables.store import Store
from skerry.tables.writes import deletes_of, writes_of
from tests.unit.tables.table_samples import (
    MEMBER,
    SECOND,
    TYPES,
    all_types,
    batch_of,
    committed,
    in_memory,
    laid,
    shown,
    txn,
)

TABLE = all_types()
NAN, LARGE = float("nan"), "9" * 36 + ".99"
# Few, so that they meet again, and alike.
POOL = [("", 0.0, "0"), ("", -0.0, "0"), ("a", 0.0, "0"), ("a\0", 0.0, "0"), ("a\0b", 1.5, "-1.25")]
POOL += [("🐟", NAN, LARGE), ("🐟", NAN, "-" + LARGE), ("ø", float("-inf"), "0")]
KEYS = st.sampled_from(POOL)
VALUES = st.fixed_dictionaries({f"v{n}": st.sampled_from([None, *values]) for n, values in enumerate(TYPES.values())})


def same(key: tuple[str, float, str]) -> tuple[str, str, str]:
    """Keys that Spark calls equal are one: -0.0 is 0.0, and every NaN the same."""
    return key[0], repr(key[1] + 0.0), key[2]


def files_of(vote: Prepared) -> list[DataFile]:
    return [file for staged in vote.staged for file in laid_of(staged).added]


class Shards(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = in_memory()
        self.ts = SECOND
        self.commits = 0
        self.moments: dict[int, dict[tuple[str, str, str], dict[str, Any]]] = {self.ts: {}}
        self.open()
        self.store.put_table(TABLE).result()
        self.reopen()

    def open(self) -> None:
        self.store = Store(self.folder.name, MEMBER)
        opened = open_shards(self.store, MEMBER)
        assert opened.faults == {}
        self.shards = opened.shards
        for shard in self.shards.values():
            named = {each.file.name for each in shard.manifest.named}
            named |= {
                f.name for each in self.store.loaded.records if isinstance(each, Prepared) for f in files_of(each)
            }
            there = os.listdir(shard.folder) if os.path.isdir(shard.folder) else []
            assert {name for name in there if name.endswith(".parquet")} == named
        self.flusher = Flusher(self.store, MEMBER)
        if self.shards:
            self.files = FileKeys(TABLE, self.shards[1].folder)

    def row(self, key: tuple[str, float, str], values: dict[str, Any]) -> dict[str, Any]:
        return {"a": key[0], "b": key[1], "c": Decimal(key[2]), **values}

    @rule(keys=st.lists(KEYS, min_size=1, max_size=4, unique_by=same), values=VALUES, step=st.integers(1, 3))
    def upsert(self, keys: list[tuple[str, float, str]], values: dict[str, Any], step: int) -> None:
        rows = [self.row(key, values) for key in keys]
        self.commit(writes_of(TABLE, batch_of(TABLE, rows)), step)
        self.now.update({same(key): row for key, row in zip(keys, rows, strict=True)})

    @rule(keys=st.lists(KEYS, min_size=1, max_size=3, unique_by=same), step=st.integers(1, 3))
    def delete(self, keys: list[tuple[str, float, str]], step: int) -> None:
        names = batch_of(TABLE, [self.row(key, {}) for key in keys]).select(["a", "b", "c"])
        self.commit(deletes_of(TABLE, names), step)
        for key in keys:
            self.now.pop(same(key), None)

    def commit(self, writes: list[Any], step: int) -> None:
        before = self.now
        self.ts += step
        self.commits += 1
        self.store.persist([committed(self.commits, self.ts, writes)]).result()
        self.shards[1].apply(self.ts, [(write.key, write.row) for write in writes])
        self.moments[self.ts] = dict(before)

    @rule(
        rows=st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=6),
        policy=st.sampled_from(Policy),
        step=st.integers(1, 3),
        then=st.sampled_from(["commit", "restart", "abort"]),
    )
    def load(self, rows: list[tuple[Any, dict[str, Any]]], policy: Policy, step: int, then: str) -> None:
        """Staged: cut after every second row, and groups written anew when they have two files."""
        new = dict(self.now)
        for key, values in rows:
            if policy is Policy.REPLACE or same(key) not in new:
                new[same(key)] = self.row(key, values)
        twice = len({same(key) for key, _ in rows}) < len(rows)
        is_refused = policy is Policy.FAIL and (twice or any(same(key) in self.now for key, _ in rows))
        written = len(new) - len(self.now) if policy is Policy.NOTHING else len({same(key) for key, _ in rows})
        batch = batch_of(TABLE, [self.row(*each) for each in rows])
        small = {"GROUP_ROWS": 3, "GROUP_FILES": 2, "STAGED_UNIT_ROWS": 2}
        with mock.patch.multiple(laying, **small), mock.patch.object(flush, "GROUP_ROWS", 3), ExitStack() as refused:
            if is_refused:
                refused.enter_context(pytest.raises(KeyExists))
            staged, counted = laid(self.shards[1], self.flusher, batch, self.ts, policy)
        if is_refused:
            return
        assert counted.rows == written
        self.commits += 1
        vote = Prepared(txn(self.commits), self.ts, "bergen", self.ts, written, (), (staged,))
        self.store.persist([vote]).result()
        if then != "commit":
            self.reopen()
            (again,) = [each for each in self.store.loaded.records if isinstance(each, Prepared)]
            (staged,) = again.staged
        if then == "abort":
            self.store.persist([Aborted(vote.txn)]).result()
            self.reopen()  # which sweeps its files
            return
        self.ts += step
        for _ in range(2):  # a commit may be said again
            self.store.persist([Committed(vote.txn, self.ts, self.ts, written)]).result()
        self.shards[1].load(self.ts, laid_of(staged))
        self.moments[self.ts] = new

    @property
    def now(self) -> dict[tuple[str, str, str], dict[str, Any]]:
        return self.moments[max(self.moments)]

    @rule(back=st.integers(0, 2))
    def flush(self, back: int) -> None:
        """Splits groups of three rows already."""
        with mock.patch.object(flush, "GROUP_ROWS", 3):
            asyncio.run(self.flusher.flush(self.shards[1], self.ts - back))

    @rule(back=st.integers(0, 6))
    def trim(self, back: int) -> None:
        asyncio.run(self.flusher.trim(self.shards[1], self.ts - back))

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.open()

    @invariant()
    def moments_are_read(self) -> None:
        shard = self.shards[1]
        for moment in sorted(self.moments)[-3::2]:
            if moment < shard.manifest.kept_ts:
                with pytest.raises(SiteError, match="history begins"):
                    shard.snapshot(moment)
                continue
            wanted = shown(batch_of(TABLE, list(self.moments[moment].values())))
            assert shown(shard.read(moment)) == wanted
            self.rows_are_found(moment)
            seen = shard.snapshot(moment)
            assert len(seen.rows) <= len(wanted) <= len(seen.rows) + sum(f.rows for f in seen.plain + seen.touched)

    def rows_are_found(self, moment: int) -> None:
        """By key, whether there or not."""
        keys = [*POOL, ("", 1.5, "0")]
        deletes = deletes_of(TABLE, batch_of(TABLE, [self.row(key, {}) for key in keys]).select(["a", "b", "c"]))
        patches = [Write(1, write.key, encode_patch([]), is_patch=True) for write in deletes]
        found = self.files.find(ask(self.shards[1], [*patches, *deletes], moment))
        for key, patched, deleted in zip(keys, found, found[len(keys) :], strict=False):
            row = self.moments[moment].get(same(key))
            assert patched.is_live == deleted.is_live == (row is not None)
            assert (patched.row is None) == (row is None)
            if patched.row is not None and row is not None:
                assert shown(decode_rows(arrow_schema(TABLE), [patched.row])) == shown(batch_of(TABLE, [row]))

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()


# A few here; `make properties` looks further.
FEW = settings(max_examples=6, stateful_step_count=12)
Shards.TestCase.settings = settings() if settings.get_current_profile_name() == "sim" else FEW
TestShards = Shards.TestCase
