"""Any statements, ALTERs, flushes, trims, restarts: every moment that is kept is read as a dict has it, all types."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import ExitStack
from decimal import Decimal
from typing import Any
from unittest import mock

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from skerry.model.commits import Aborted, Committed, Layouts, Policy, Prepared, Write
from skerry.model.errors import KeyExists, SiteError
from skerry.model.sharded import OwnColumn, numbered
from skerry.tables import flush, laying
from skerry.tables.catalogue import altered
from skerry.tables.checks import encode_patch
from skerry.tables.columns import arrow_schema
from skerry.tables.flushing import Flusher, open_shards
from skerry.tables.layouts import ids_of, is_fit, relaid_pairs
from skerry.tables.lookup import FileKeys, ask
from skerry.tables.manifest import DataFile, laid_of
from skerry.tables.rows import decode_rows
from skerry.tables.store import Store
from skerry.tables.ways import default_of
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
    prepared,
    shown,
    txn,
)

TABLE = all_types()
NAN, LARGE = float("nan"), "9" * 36 + ".99"
# Few, so that they meet again, and alike.
POOL = [("", 0.0, "0"), ("", -0.0, "0"), ("a", 0.0, "0"), ("a\0", 0.0, "0"), ("a\0b", 1.5, "-1.25")]
POOL += [("🐟", NAN, LARGE), ("🐟", NAN, "-" + LARGE), ("ø", float("-inf"), "0")]
KEYS = st.sampled_from(POOL)
# Columns that are added: names that others have had, in another case too; values of rows that are written then.
NAMES = ["v0", "V1", "v7", "new", "a", "older"]
NEW: list[Callable[[str], OwnColumn]] = [
    lambda name: OwnColumn(name, "int"),
    lambda name: OwnColumn(name, "decimal(20,2)", False, "1.5"),
    lambda name: OwnColumn(name, "date", True, "DATE '2024-02-29'"),
    lambda name: OwnColumn(name, "string", True, "'smør'"),
]
ADDED = {"int": 5, "decimal(20,2)": Decimal(3), "string": ""}
VALUES = st.fixed_dictionaries({f"v{n}": st.sampled_from([None, *values]) for n, values in enumerate(TYPES.values())})


SOME_KEYS = st.lists(KEYS, min_size=1, max_size=4, unique_by=lambda key: same(key))


def same(key: tuple[str, float, str]) -> tuple[str, str, str]:
    """Keys that Spark calls equal are one: -0.0 is 0.0, and every NaN the same."""
    return key[0], repr(key[1] + 0.0), key[2]


def files_of(vote: Prepared) -> list[DataFile]:
    return [file for staged in vote.staged for file in laid_of(staged).added]


Rows = dict[tuple[str, str, str], dict[int, Any]]  # by the numbers of columns: what a row lacks came later


class Shards(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = in_memory()
        self.ts = SECOND
        self.commits = 0
        self.table = numbered(TABLE)
        self.pending: tuple[int, Rows, list[tuple[str, str, str]]] | None = None
        self.is_held = False  # what is pending are staged rows, which lock the table
        self.moments: dict[int, Rows] = {self.ts: {}}
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
            assert numbered(self.shards[1].table) == self.table
            self.table_opened()

    def table_opened(self) -> None:
        self.files = FileKeys(self.shards[1].table, self.shards[1].folder)

    def row(self, key: tuple[str, float, str], values: dict[str, Any]) -> dict[int, Any]:
        given = dict(zip((1, 2, 3), (key[0], key[1], Decimal(key[2])), strict=True))
        given |= {4 + number: values.get(f"v{number}") for number in range(len(TYPES))}
        return {column.id: given.get(column.id, ADDED.get(column.type)) for column in self.table.columns}

    def named(self, row: dict[int, Any]) -> dict[str, Any]:
        """As the table has it now."""
        columns = self.table.columns
        return {column.name: row[column.id] if column.id in row else default_of(column) for column in columns}

    def writes_of(self, rows: list[dict[int, Any]]) -> list[Write]:
        return writes_of(self.shards[1].table, batch_of(self.table, [self.named(row) for row in rows]))

    def deletes_of(self, keys: list[tuple[str, float, str]]) -> list[Write]:
        table = self.shards[1].table
        rows = [self.named(self.row(key, {})) for key in keys]
        return deletes_of(table, batch_of(table, rows).select(list(table.primary_key)))

    @rule(keys=SOME_KEYS, values=VALUES, step=st.integers(1, 3))
    def upsert(self, keys: list[tuple[str, float, str]], values: dict[str, Any], step: int) -> None:
        if self.is_held:
            return
        rows = [self.row(key, values) for key in keys]
        self.commit(self.writes_of(rows), step)
        self.now.update({same(key): row for key, row in zip(keys, rows, strict=True)})

    @rule(keys=st.lists(KEYS, min_size=1, max_size=3, unique_by=same), step=st.integers(1, 3))
    def delete(self, keys: list[tuple[str, float, str]], step: int) -> None:
        if self.is_held:
            return
        self.commit(self.deletes_of(keys), step)
        for key in keys:
            self.now.pop(same(key), None)

    @rule(keys=SOME_KEYS, values=VALUES, gone=KEYS)
    def prepare(self, keys: list[tuple[str, float, str]], values: dict[str, Any], gone: Any) -> None:
        """Committed later, whatever becomes of the table meanwhile."""
        if self.pending is not None or same(gone) in map(same, keys):
            return
        rows = [self.row(key, values) for key in keys]
        writes = [*self.writes_of(rows), *self.deletes_of([gone])]
        self.commits += 1
        record = msgspec.structs.replace(prepared(self.commits, self.ts, writes), layouts=self.layouts())
        self.store.persist([record]).result()
        self.reopen()  # so that it is read back
        self.pending = self.commits, {same(key): row for key, row in zip(keys, rows, strict=True)}, [same(gone)]

    @rule(step=st.integers(1, 3))
    def decide(self, step: int) -> None:
        if self.pending is None:
            return
        number, rows, gone = self.pending
        self.reopen()
        (record,) = (each for each in self.store.loaded.records if isinstance(each, Prepared))
        self.moments[self.ts + step], self.ts, self.pending = dict(self.now), self.ts + step, None
        self.is_held = False
        for _ in range(2):  # a commit may be said again
            self.store.persist([committed(number, self.ts, [])]).result()
        for staged in record.staged:
            self.shards[1].load(self.ts, laid_of(staged))
        if record.writes:
            pairs = [(write.key, write.row) for write in record.writes]
            self.shards[1].apply(self.ts, relaid_pairs(pairs, dict(record.layouts).get(1, ()), self.shards[1].table))
        self.now.update(rows)
        for key in gone:
            self.now.pop(key, None)

    @rule(what=st.sampled_from(["add", "drop", "rename"]), name=st.sampled_from(NAMES), place=st.integers(0, 24))
    def alter(self, what: str, name: str, place: int) -> None:
        columns, is_taken = [*self.table.columns], name.lower() in (each.name.lower() for each in self.table.columns)
        if what == "add" and not is_taken:
            columns.append(NEW[place % len(NEW)](name))
        elif what == "drop" and len(columns) > 4:
            columns.pop(3 + place % (len(columns) - 3))
        elif what == "rename" and not is_taken:
            place %= len(columns)
            columns[place] = msgspec.structs.replace(columns[place], name=name)
        if tuple(columns) == self.table.columns:
            return
        made = altered(self.table, msgspec.structs.replace(self.table, columns=tuple(columns)))
        self.table = msgspec.structs.replace(made, version=self.table.version + 1)
        self.store.put_table(self.table).result()
        self.shards[1].alter(self.table)
        self.table_opened()

    def layouts(self) -> Layouts:
        table = self.shards[1].table
        return ((1, ids_of(table)),) if table.next_column else ()

    def commit(self, writes: list[Write], step: int) -> None:
        before = self.now
        self.ts += step
        self.commits += 1
        record = msgspec.structs.replace(committed(self.commits, self.ts, writes), layouts=self.layouts())
        self.store.persist([record]).result()
        self.shards[1].apply(self.ts, [(write.key, write.row) for write in writes])
        self.moments[self.ts] = dict(before)

    @rule(
        rows=st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=6),
        policy=st.sampled_from(Policy),
        step=st.integers(1, 3),
        then=st.sampled_from(["commit", "restart", "abort", "later"]),
    )
    def load(self, rows: list[tuple[Any, dict[str, Any]]], policy: Policy, step: int, then: str) -> None:
        """Staged: cut after every second row, and groups written anew when they have two files.

        `later`: committed by `decide`, and the table may be altered meanwhile.
        """
        if self.pending is not None:
            return
        new = dict(self.now)
        for key, values in rows:
            if policy is Policy.REPLACE or same(key) not in new:
                new[same(key)] = self.row(key, values)
        twice = len({same(key) for key, _ in rows}) < len(rows)
        is_refused = policy is Policy.FAIL and (twice or any(same(key) in self.now for key, _ in rows))
        written = len(new) - len(self.now) if policy is Policy.NOTHING else len({same(key) for key, _ in rows})
        batch = batch_of(self.table, [self.named(self.row(*each)) for each in rows])
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
        if then == "later":
            self.pending, self.is_held = (self.commits, new, []), True
            return
        self.ts += step
        for _ in range(2):  # a commit may be said again
            self.store.persist([Committed(vote.txn, self.ts, self.ts, written)]).result()
        self.shards[1].load(self.ts, laid_of(staged))
        self.moments[self.ts] = new

    @property
    def now(self) -> Rows:
        return self.moments[max(self.moments)]

    @rule(back=st.integers(0, 2))
    def flush(self, back: int) -> None:
        """Splits groups of three rows already."""
        shard = self.shards[1]
        with mock.patch.object(flush, "GROUP_ROWS", 3):
            done = asyncio.run(self.flusher.flush(shard, self.ts - back, lambda: self.is_held))
        assert done is None or all(is_fit(file, self.table) for file in shard.manifest.live)

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
            wanted = shown(batch_of(self.table, [self.named(row) for row in self.moments[moment].values()]))
            assert shown(shard.read(moment)) == wanted
            self.rows_are_found(moment)
            seen = shard.snapshot(moment)
            assert len(seen.rows) <= len(wanted) <= len(seen.rows) + sum(f.rows for f in seen.plain + seen.touched)

    def rows_are_found(self, moment: int) -> None:
        """By key, whether there or not."""
        keys = [*POOL, ("", 1.5, "0")]
        deletes = self.deletes_of(keys)
        patches = [Write(1, write.key, encode_patch([]), is_patch=True) for write in deletes]
        found = self.files.find(ask(self.shards[1], [*patches, *deletes], moment))
        for key, patched, deleted in zip(keys, found, found[len(keys) :], strict=False):
            row = self.moments[moment].get(same(key))
            assert patched.is_live == deleted.is_live == (row is not None)
            assert (patched.row is None) == (row is None)
            if patched.row is not None and row is not None:
                wanted = shown(batch_of(self.table, [self.named(row)]))
                assert shown(decode_rows(arrow_schema(self.table), [patched.row])) == wanted

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()


# A few here; `make properties` looks further.
FEW = settings(max_examples=6, stateful_step_count=12)
Shards.TestCase.settings = settings() if settings.get_current_profile_name() == "sim" else FEW
TestShards = Shards.TestCase
