"""Staged rows at one member: what a later statement finds of their keys, and which types a load takes."""

from __future__ import annotations

import asyncio
import datetime as dt
import math
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from random import Random
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from skerry.member.bulk import chunks_of
from skerry.model.commits import Aborted, Change, Committed, Policy, Prepared, Staged, Write
from skerry.model.errors import KeyExists, PeerError, UserError
from skerry.model.sharded import BucketMap, Definition, OwnColumn
from skerry.tables import delta
from skerry.tables import spool as spools
from skerry.tables.bucket import buckets_of
from skerry.tables.checks import encode_patch
from skerry.tables.columns import CHANGE, arrow_schema, change_schema
from skerry.tables.computed import Wanted
from skerry.tables.flush import Group
from skerry.tables.laying import Layout, alike, lay_out, units_of
from skerry.tables.layouts import is_fit
from skerry.tables.loading import check_types, stored_columns
from skerry.tables.lookup import FileKeys, FoundRow, ask
from skerry.tables.manifest import laid_of
from skerry.tables.rows import decode_rows
from skerry.tables.spool import Slice, Spool
from skerry.tables.writes import deletes_of
from skerry.wire.codec import decode_batch
from tests.unit.tables.crash_story import TABLE, Member
from tests.unit.tables.table_samples import SECOND, a_table, batch_of, in_memory, laid, txn

LATEST = 1 << 62


@pytest.fixture
def member() -> Iterator[Member]:
    with in_memory() as folder:
        member = Member(folder)
        yield member
        member.store.close()


def found(member: Member, *keys: int) -> list[tuple[int, Any]]:
    """By patches, which need the row. What replaces any row reads none, but is told of a load it may not have seen."""
    encoded = [write.key for write in deletes_of(TABLE, pa.RecordBatch.from_pydict({"k": keys}))]
    patches = [Write(TABLE.id, key, encode_patch([]), is_patch=True) for key in encoded]
    rows: list[FoundRow] = FileKeys(TABLE, member.shard.folder).find(ask(member.shard, patches, LATEST))
    blind = ask(member.shard, [Write(TABLE.id, key, b"row", Policy.REPLACE) for key in encoded], LATEST)
    assert not blind.needs_files
    assert all(each.commit_ts >= row.commit_ts for each, row in zip(blind.found, rows, strict=True))
    values = [None if each.row is None else decode_rows(arrow_schema(TABLE), [each.row]) for each in rows]
    return [
        (each.commit_ts - SECOND, row and row.column("v")[0].as_py()) for each, row in zip(rows, values, strict=True)
    ]


def test_a_load_is_newer_than_what_the_overlay_remembers(member: Member) -> None:
    """Versions that are flushed stay for earlier moments, with their times: those must not hide what was loaded."""
    member.commit(1)
    member.commit(2)  # 1 is changed, 0 is gone
    member.load(3)  # 3 is new, 2 is replaced
    assert found(member, 0, 1, 2, 3, 9) == [
        (3, None),  # staged rows might have deleted it
        (3, "changed 2"),
        (3, "changed 3"),
        (3, "new 3"),
        (3, None),
    ]
    assert member.rows() == {1: "changed 2", 2: "changed 3", 3: "new 3"}  # each once
    member.commit(4)
    assert found(member, 3, 2) == [(4, "changed 4"), (4, None)]
    earlier = member.shard.read(SECOND + 2).to_pylist()
    assert {row["k"]: row["v"] for row in earlier} == {1: "changed 2", 2: "new 2"}


def test_changes_that_were_sent_ahead_become_files(member: Member) -> None:
    """Against a dict: rows are put, come, go and move, also to a place that another leaves."""
    random, rows, now = Random(7), dict[int, str](), 2

    def lay(changes: list[tuple[int, str | None, Change]]) -> Staged:
        values = [{"k": key, "v": value, CHANGE: int(change)} for key, value, change in changes]
        batch = pa.RecordBatch.from_pylist(values, change_schema(TABLE))
        staged, counted = laid(member.shard, member.flusher, batch, SECOND + now - 1, Policy.FAIL)
        wanted = len({key for key, _, change in changes if change is not Change.LEAVE})
        assert counted.rows == wanted, changes
        return staged

    for now in range(2, 14):
        changes: list[tuple[int, str | None, Change]] = []
        left = sorted(rows)
        for key in left:
            what = random.choice((None, Change.PUT, Change.DELETE, Change.LEAVE, Change.DELETE_AGAIN))
            if what is not None:
                changes += [(key, f"put {now}" if what is Change.PUT else None, what)] * (
                    1 + (what is Change.DELETE_AGAIN)
                )
            if what is Change.PUT:
                rows[key] = f"put {now}"
            elif what is not None:
                del rows[key]
        for key in random.sample([key for key in range(12) if key not in rows], 4):
            rows[key] = f"came {now}"
            changes.append((key, rows[key], Change.INSERT))
        random.shuffle(changes)
        staged = lay(changes)
        vote = Prepared(txn(now), SECOND, "bergen", SECOND + now, 1, (), (staged,))
        member.store.persist([vote]).result()
        member.decide(vote)
        assert member.rows() == rows
    there, free = next(iter(rows)), next(key for key in range(12) if key not in rows)
    now = 20
    for wrong, error in (
        ([(there, "x", Change.INSERT)], KeyExists),
        ([(there, "x", Change.PUT), (there, None, Change.DELETE)], UserError),
        ([(free, "x", Change.INSERT), (free, "y", Change.INSERT)], UserError),
        ([(free, "x", Change.PUT)], PeerError),
    ):
        with pytest.raises(error):
            lay(wrong)
    assert member.rows() == rows


def test_files_that_a_load_was_made_of_are_not_written_anew_before_its_commit(member: Member) -> None:
    """A flush whose moment was chosen before the vote may come after it, and after the table was altered."""
    member.commit(1)
    batch = batch_of(TABLE, [{"k": 1, "v": "loaded"}])
    staged, _ = laid(member.shard, member.flusher, batch, SECOND + 2, Policy.REPLACE)
    vote, before = Prepared(txn(2), SECOND, "bergen", SECOND + 5, 1, (), (staged,)), member.shard.manifest
    member.store.persist([vote]).result()
    member.alter()
    assert asyncio.run(member.flusher.flush(member.shard, SECOND + 3, lambda: True)) is None
    assert member.shard.manifest == before  # nor told to readers of Delta, who would find other columns there
    member.decide(vote)
    assert member.rows() == {0: "changed 1", 1: "loaded"}
    member.flush(6)
    assert member.rows() == {0: "changed 1", 1: "loaded"}
    assert all(is_fit(file, member.shard.table) for file in member.shard.manifest.live)
    assert member.shard.manifest.published == member.shard.manifest.generation


def test_readers_of_delta_hear_of_a_load_when_its_commit_is_on_disk(member: Member) -> None:
    """It may be seen here while a flush writes files: told at once, a power cut would take back what Delta has."""
    member.commit(1)
    staged, _ = laid(member.shard, member.flusher, batch_of(TABLE, [{"k": 5, "v": "x"}]), SECOND + 2, Policy.REPLACE)
    vote, told = Prepared(txn(2), SECOND, "bergen", SECOND + 5, 1, (), (staged,)), list[int | None]()
    member.store.persist([vote]).result()
    told_upto = partial(delta.newest_of, member.shard.folder)
    before = told_upto()

    async def named() -> None:
        told.append(told_upto())
        if len(told) == 2:  # what was flushed before is to be told
            member.shard.load(SECOND + 5, laid_of(staged))
            await asyncio.wrap_future(member.store.persist([Committed(vote.txn, SECOND, SECOND + 5, 1)]))

    asyncio.run(member.flusher.flush(member.shard, SECOND + 3, named=named))
    assert told == [before, before]
    assert told_upto() == member.shard.manifest.generation
    assert member.rows() == {0: "changed 1", 1: "new 1", 5: "x"}


def test_an_abort_leaves_nothing_of_staged_files(member: Member) -> None:
    """Numbers of records are used again."""
    batch = batch_of(TABLE, [{"k": 1, "v": "x"}])
    for number in (1, 2):
        staged, _ = laid(member.shard, member.flusher, batch, SECOND + number, Policy.FAIL)
        vote = Prepared(txn(number), SECOND, "bergen", SECOND + 5, 1, (), (staged,))
        member.store.persist([vote]).result()
        if number == 1:
            member.store.persist([Aborted(vote.txn)]).result()
    member.store.persist([Committed(vote.txn, SECOND, SECOND + 5, 1)]).result()
    member.shard.load(SECOND + 5, laid_of(staged))
    assert member.rows() == {1: "x"}


def test_a_query_that_read_before_hears_of_later_writes(member: Member) -> None:
    member.commit(1)
    member.flush(1)
    shard = member.shard
    spool = Spool(TABLE, shard.folder + "-aside", shard.ranges)
    spool.add(batch_of(TABLE, [{"k": 1, "v": "x"}, {"k": 7, "v": "x"}, {"k": 1, "v": "x"}]))
    spool.end()
    groups = (Group(*shard.ranges[0], shard.manifest.live),)
    layout = Layout(TABLE, shard.folder, "0" * 16, groups, FileKeys(TABLE, shard.folder), shard.overlay.since(0), 0)
    staged, _ = laid(shard, member.flusher, batch_of(TABLE, []), SECOND + 1, Policy.REPLACE)
    assert lay_out(spool, layout, msgspec.structs.replace(staged, is_ordered=False))[1:] == (2, SECOND + 1)
    late = layout._replace(since={}, loaded_ts=77, name="1" * 16)
    assert lay_out(spool, late, staged)[1:] == (2, 77)
    # A query has no order: of rows that differ none is the last.
    spool.add(batch_of(TABLE, [{"k": 1, "v": "y"}]))
    spool.end()
    with pytest.raises(UserError, match="two rows of the query have the same primary key"):
        lay_out(spool, layout, msgspec.structs.replace(staged, is_ordered=False))


def test_a_spool_gives_back_what_it_took_from_memory_and_from_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each slice in the order in which its rows came, whatever was on disk when the last of them did."""
    monkeypatch.setattr(spools, "STAGED_CUT_BYTES", 1)
    rows = [batch_of(TABLE, [{"k": number + at, "v": str(at)} for number in range(50)]) for at in range(0, 200, 50)]
    with in_memory() as folder:
        room = [1, 1, 1 << 30, 1 << 30]
        spool = Spool(TABLE, f"{folder}/aside", ((0, TABLE.buckets),), lambda: room[0])
        for batch in rows:
            spool.add(batch)
            room.pop(0) if len(room) > 1 else None
        spool.end()
        assert any(part.is_on_disk and part.batches for part in spool.slices)
        for part in spool.slices:
            keys = [key for batch in spool.read(part) for key in batch.column("k").to_pylist()]
            assert keys == sorted(keys)
            assert len(keys) == part.rows
            buckets = buckets_of([pa.array(keys, pa.int64())], TABLE.buckets)
            assert all(part.first <= bucket < part.upto for bucket in buckets.tolist())
        assert sum(part.rows for part in spool.slices) == spool.rows == 200
        spool.remove()


_ASCENDING: dict[str, list[Any]] = {
    "bigint": [-3, 0, 7],
    "int": [1, 2, 3],
    "string": ["", "a", "ä"],
    "binary": [b"", b"a", b"a\0"],
    "boolean": [False, True],
    "double": [float("-inf"), -0.0, 1.5],
    "decimal(12,2)": [Decimal("-1.25"), Decimal("0.00"), Decimal("9.99")],
    "date": [dt.date(1969, 1, 1), dt.date(2024, 2, 29)],
    "timestamp": [dt.datetime(1969, 1, 1, tzinfo=dt.UTC), dt.datetime(2024, 2, 29, tzinfo=dt.UTC)],
    "timestamp_ntz": [dt.datetime(1969, 1, 1), dt.datetime(2024, 2, 29)],
}


@pytest.mark.parametrize("kind", _ASCENDING)
def test_a_spool_knows_whether_keys_ascend(kind: str) -> None:
    """Then no key comes twice, and nobody looks for one: equal ones in two batches are as much twice as in one."""
    table, keys = a_table(key=kind), _ASCENDING[kind]
    nan = [math.nan] if kind == "double" else []
    for wrong, orders in (
        (False, [keys]),
        (True, [[*keys, keys[-1]], keys[::-1], *([[*keys, *nan, *nan]] if nan else [])]),
    ):
        for order in orders:
            for size in (1, 2, len(order)):
                spool = Spool(table, "nowhere", ((0, table.buckets),))
                for at in range(0, len(order), size):
                    spool.add(batch_of(table, [{"k": key, "v": "x"} for key in order[at : at + size]]))
                assert spool.is_ascending is not wrong


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("is_twice", [False, True])
def test_keys_that_ascend_are_still_compared_with_those_that_are_there(
    member: Member, is_there: bool, is_twice: bool
) -> None:
    member.commit(1)
    member.flush(1)
    shard = member.shard
    first = 1 if is_there else 10
    keys = [first, 20, 20 if is_twice else 30]
    rows = batch_of(TABLE, [{"k": key, "v": "x"} for key in keys])
    if is_there or is_twice:
        with pytest.raises(KeyExists):
            laid(shard, member.flusher, rows, SECOND + 1, Policy.FAIL)
    else:
        assert laid(shard, member.flusher, rows, SECOND + 1, Policy.FAIL)[1].rows == 3


@pytest.mark.parametrize("count", [0, 1, 2, 300, 20_000])
def test_hashes_that_are_alike_are_found(count: int) -> None:
    random = np.random.default_rng(count)
    hashes = random.integers(0, 1 << 63, count, dtype=np.uint64) * np.uint64(2)
    for twice in (0, 1, 7):
        hashes[random.integers(0, max(1, count), twice if count else 0)] = hashes[:1]
        counts = dict(zip(*(each.tolist() for each in np.unique(hashes, return_counts=True)), strict=True))
        assert alike(hashes).tolist() == [at for at, each in enumerate(hashes.tolist()) if counts[each] > 1]


def test_units_cover_their_group_and_end_where_slices_do() -> None:
    slices = [Slice(at, at + 10) for at in range(0, 100, 10)]
    group = Group(5, 95, ())
    assert units_of(slices, group) == []
    for each in slices:
        each.rows = 30_000
    assert units_of(slices, group) == [(5, 20), (20, 40), (40, 60), (60, 80), (80, 95)]
    slices[3].rows = 1_000_000
    assert units_of(slices, group)[1:4] == [(20, 30), (30, 40), (40, 60)]


def test_rows_go_to_the_member_of_their_bucket() -> None:
    table = a_table()
    rows = batch_of(table, [{"k": number, "v": "x" * 2000} for number in range(3000)])
    halves = BucketMap(1, 1, ((0, table.buckets // 2, "oslo"), (table.buckets // 2, table.buckets, "bergen")))
    chunks = list(chunks_of(Definition(table, halves), rows, "oslo"))
    assert [chunk.member for chunk in chunks].count("oslo") == 1  # as they are, in one piece
    assert len(chunks) > 3
    came: dict[str, list[int]] = {"oslo": [], "bergen": []}
    for chunk in chunks:
        batch = chunk.rows
        if isinstance(batch, bytes):
            batch = decode_batch(batch, arrow_schema(table), 1 << 22)
        came[chunk.member] += batch.column("k").to_pylist()
    for member, keys in came.items():
        buckets = buckets_of([pa.array(keys, pa.int64())], table.buckets)
        assert set((buckets < table.buckets // 2).tolist()) == {member == "oslo"}
        assert keys == sorted(keys)
    assert sorted(came["oslo"] + came["bergen"]) == list(range(3000))
    spool = Spool(table, "nowhere", ((0, table.buckets // 2),))
    spool.add(rows.slice(0, 100))
    with pytest.raises(PeerError, match="a bucket that is not here"):
        spool.end()


TAKEN = {
    "int": [pa.array([1], pa.int64()), pa.array([1], pa.uint8()), pa.nulls(1)],
    "double": [pa.array([1.5], pa.float32()), pa.array([3], pa.int32())],
    "decimal(10,2)": [pa.array([Decimal("1.5")]), pa.array([3], pa.int32())],
    "string": [pa.array(["a"], pa.large_string())],
    "timestamp": [pa.array([1000], pa.timestamp("ns", tz="Europe/Oslo"))],
    "timestamp_ntz": [pa.array([1], pa.timestamp("s"))],
    "date": [pa.array([86_400_000], pa.date64())],
    "array<int>": [pa.array([[1]], pa.large_list(pa.int64()))],
}
REFUSED = {
    "int": [pa.array([1.0]), pa.array(["1"]), pa.array([1 << 40])],
    "float": [pa.array([0.1])],
    "decimal(4,2)": [pa.array([Decimal("0.125")]), pa.array([1000]), pa.array([1.5])],
    "timestamp": [pa.array([1], pa.timestamp("us")), pa.array([1], pa.timestamp("ns", tz="UTC"))],
    "string": [pa.array([b"a"]), pa.array([1])],
    "struct<a:int>": [pa.array([{"b": 1}])],
}


@pytest.mark.parametrize("kind", [*TAKEN, *(kind for kind in REFUSED if kind not in TAKEN)])
def test_a_column_takes_what_it_can_hold_as_it_is(kind: str) -> None:
    table = msgspec.structs.replace(a_table(), columns=(OwnColumn("k", kind),), primary_key=("k",))
    wanted = Wanted("insert", table, (0,))

    def stored(array: pa.Array) -> pa.Array:
        batch = pa.RecordBatch.from_arrays([array], names=["K"])
        check_types(wanted, batch.schema)
        return stored_columns(wanted, batch)[0]

    for array in TAKEN.get(kind, ()):
        assert stored(array).type == arrow_schema(table).field(0).type
    for array in REFUSED.get(kind, ()):
        with pytest.raises(UserError, match=r"column k is .*, and (takes no|a value does not fit)"):
            stored(array)
