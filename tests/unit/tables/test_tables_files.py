"""Files, flushes and Delta's log: damage and strangers are noticed, readers of Delta see the last flush."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from unittest import mock

import deltalake
import duckdb
import duckdb_extension_delta
import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skerry.model import points
from skerry.model.commits import Policy, Write
from skerry.model.errors import InternalError, SiteError
from skerry.model.limits import FLUSH_BYTES, FLUSH_ROWS, GROUP_ROWS, HISTORY_S
from skerry.model.sharded import BucketMap, OwnColumn, numbered
from skerry.tables import delta, flush, lookup
from skerry.tables import overlay as overlay_module
from skerry.tables import shard as shard_module
from skerry.tables.bucket import buckets_of
from skerry.tables.catalogue import altered
from skerry.tables.checks import encode_patch
from skerry.tables.clock import COUNTER_BITS
from skerry.tables.columns import arrow_schema
from skerry.tables.files import read_file
from skerry.tables.flush import cuts, groups_of
from skerry.tables.flushing import Flusher, open_shards
from skerry.tables.keys import encode_keys
from skerry.tables.lookup import LATEST, FileKeys, FoundRow, ask, ask_blind
from skerry.tables.manifest import DataFile, Flush, Manifest
from skerry.tables.rows import decode_rows
from skerry.tables.shard import Shard
from skerry.tables.store import Store, Unwritten
from skerry.tables.writes import Pair, deletes_of, writes_of
from tests.unit.tables.table_samples import (
    KEY_TYPES,
    MEMBER,
    SECOND,
    TYPES,
    a_table,
    all_types,
    batch_of,
    committed,
    in_memory,
    shown,
)

TABLE = a_table()
NOW = 1_700_000_000 * SECOND


class Member:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.count = 0
        self.store = Store(folder, MEMBER)
        self.store.put_table(TABLE).result()
        self.reopen()

    def reopen(self) -> None:
        self.store.close()
        self.store = Store(self.folder, MEMBER)
        self.opened = open_shards(self.store, MEMBER)
        self.flusher = Flusher(self.store, MEMBER)

    @property
    def shard(self) -> Shard:
        return self.opened.shards[1]

    def write(self, *keys: int, ts: int = 0, value: str = "x") -> int:
        self.count += 1
        ts = ts or SECOND + self.count
        writes = writes_of(TABLE, batch_of(TABLE, [{"k": key, "v": value} for key in keys]))
        self.store.persist([committed(self.count, ts, writes)]).result()
        self.shard.apply(ts, [(write.key, write.row) for write in writes])
        return ts

    def flush(self, upto_ts: int) -> None:
        asyncio.run(self.flusher.flush(self.shard, upto_ts))

    def trim(self, horizon_ts: int) -> None:
        asyncio.run(self.flusher.trim(self.shard, horizon_ts))

    def keys(self, ts: int = 2 * SECOND) -> list[int]:
        return sorted(self.shard.read(ts).column("k").to_pylist())

    @property
    def names(self) -> list[str]:
        return sorted(name for name in os.listdir(self.shard.folder) if name.endswith(".parquet"))


@pytest.fixture
def member() -> Iterator[Member]:
    with in_memory() as folder:
        made = Member(folder)
        yield made
        made.store.close()


# --- files ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("damage", ["gone", "shorter", "changed"])
def test_a_damaged_file_is_noticed_and_nothing_is_written_over_it(member: Member, damage: str) -> None:
    member.flush(member.write(1, 2))
    path = os.path.join(member.shard.folder, member.names[0])
    whole = Path(path).read_bytes()
    if damage == "gone":
        os.unlink(path)
    else:
        changed = whole[:40] + bytes([whole[40] ^ 1]) + whole[41:]
        Path(path).write_bytes(whole[:-1] if damage == "shorter" else changed)
    later = member.write(3)
    with pytest.raises(SiteError, match=rf"{path} is damaged") as caught:
        member.flush(later)
    assert "restore this file" in caught.value.suggestion
    if damage != "changed":  # a change inside is found when the file is read whole
        member.reopen()
        assert list(member.opened.faults) == [1]
    Path(path).write_bytes(whole)
    member.reopen()
    assert member.keys() == [1, 2, 3]


def test_a_disk_without_room_for_files_leaves_all_rows(member: Member) -> None:
    ts = member.write(1, 2)
    full = mock.patch("skerry.tables.durable.sync", side_effect=OSError(28, "No space left on device"))
    with full, pytest.raises(SiteError, match=r"cannot be written \(No space left on device\); the rows stay"):
        member.flush(ts)
    assert os.listdir(member.shard.folder) == []
    member.flush(ts)
    assert member.keys() == [1, 2]
    assert len(member.names) == 1


def test_a_flush_that_is_cancelled_ends_before_the_next_one_begins(member: Member) -> None:
    """Its thread goes on: beside another one of the same number it would write over what that has named."""
    ts = member.write(1, 2)
    began, may_end = threading.Event(), threading.Event()

    def hold(point: str) -> None:
        if point == "flush.file":
            began.set()
            assert may_end.wait(60)

    async def cancel_and_flush() -> None:
        first = asyncio.create_task(member.flusher.flush(member.shard, ts))
        await asyncio.to_thread(began.wait, 60)
        first.cancel()
        second = asyncio.create_task(member.flusher.flush(member.shard, member.write(3)))
        for _ in range(5):
            await asyncio.sleep(0)
        assert (first.done(), second.done()) == (False, False)
        may_end.set()
        await second
        assert first.cancelled()

    with mock.patch.object(points, "watch", hold):
        asyncio.run(cancel_and_flush())
    assert member.shard.manifest.generation == 2
    member.reopen()
    assert member.keys() == [1, 2, 3]


def test_old_files_stay_while_a_read_needs_them(member: Member) -> None:
    first = member.write(1)
    member.flush(first)
    second = member.write(2)
    member.flush(second)
    member.shard.pin(first)
    member.trim(second)
    assert (member.keys(first), len(member.names)) == ([1], 2)
    member.reopen()  # whoever pinned it is gone
    assert (member.keys(first), len(member.names)) == ([1], 2)
    member.trim(second)
    assert (member.keys(), len(member.names)) == ([1, 2], 1)
    with pytest.raises(SiteError, match="history begins"):
        member.shard.pin(first)


def test_a_flush_is_due_by_rows_bytes_or_age(member: Member) -> None:
    ts = member.write(1)
    now_us = ts >> COUNTER_BITS
    assert not member.shard.is_due(now_us + 59_000_000)
    assert member.shard.is_due(now_us + 60_000_000)
    member.flush(2 * SECOND)
    assert not member.shard.is_due(now_us + 3600_000_000)
    assert flush.is_due(FLUSH_ROWS, 0, 0.0)
    assert flush.is_due(1, FLUSH_BYTES, 0.0)
    assert not flush.is_due(FLUSH_ROWS - 1, FLUSH_BYTES - 1, 59.9)


def test_history_is_bounded_by_time_and_by_room(member: Member) -> None:
    ts = member.write(1, 2, 3)
    member.flush(ts)
    now_us = (ts >> COUNTER_BITS) + 10**9
    late = (now_us - int(HISTORY_S * 1e6)) << COUNTER_BITS
    assert member.shard.horizon(now_us) == late
    assert member.shard.overlay.has_room(1, 1)
    with mock.patch.object(shard_module, "OVERLAY_ROWS_MAX", 4):
        assert member.shard.horizon(now_us) == ts
        member.shard.pin(ts - 1)
        assert member.shard.horizon(now_us) == ts - 1
    with mock.patch.object(overlay_module, "OVERLAY_ROWS_MAX", 3):
        assert not member.shard.overlay.has_room(1, 1)


def test_untouched_files_are_read_plain_and_groups_follow_the_bucket_map(member: Member) -> None:
    member.store.put_map(BucketMap(1, 1, ((0, 8192, MEMBER), (8192, 12000, "bergen"), (12000, 16384, MEMBER)))).result()
    member.reopen()
    here = [key for key in range(400) if _is_here(key)]
    with mock.patch.object(flush, "GROUP_ROWS", 50):
        member.flush(member.write(*here))
    ranges = [(each.first, each.upto) for each in member.shard.manifest.live]
    assert len(ranges) > 4
    assert not any(first < 12000 and upto > 8192 for first, upto in ranges)
    snapshot = member.shard.snapshot(member.write(here[0]))
    assert len(snapshot.touched) == 1
    assert len(snapshot.plain) == len(ranges) - 1
    assert snapshot.keys.to_pylist() == [{"k": here[0]}]
    with pytest.raises(InternalError, match="none of this member's"):
        member.shard.snapshot(member.write(next(key for key in range(400) if key not in here)))


def _is_here(key: int) -> bool:
    return not 8192 <= int(buckets_of([pa.array([key])], 16384)[0]) < 12000


def test_groups_are_cut_where_rows_are() -> None:
    rng = np.random.default_rng(3)
    ordered = np.sort(rng.integers(0, 16384, 300_000))
    found = cuts(ordered, 0, 16384)
    assert [found[0][0], *(upto for _, upto in found)] == [*(first for first, _ in found), 16384]
    assert max(int(((ordered >= first) & (ordered < upto)).sum()) for first, upto in found) <= GROUP_ROWS
    assert cuts(np.full(100_000, 7), 7, 8) == [(7, 8)]
    skewed = cuts(np.full(100_000, 7), 0, 16384)
    assert all(first < upto for first, upto in skewed)
    apart = [DataFile("a", 0, 4, 1, 1, "", ()), DataFile("b", 3, 8, 1, 1, "", ())]
    with pytest.raises(InternalError, match="overlap"):
        groups_of(apart, [(0, 8)])


def test_a_row_is_found_by_its_key_with_the_time_that_history_knows(member: Member) -> None:
    first = member.write(1, 2, value="old")
    member.flush(first)
    second = member.write(2, value="new")
    gone = deletes_of(TABLE, batch_of(TABLE, [{"k": 1}]))
    member.shard.apply(second + 1, [(write.key, write.row) for write in gone])
    replaced = writes_of(TABLE, batch_of(TABLE, [{"k": key} for key in (1, 2, 3)]))
    patches = [Write(1, write.key, encode_patch([]), is_patch=True) for write in replaced]
    deleted = [Write(1, write.key, None) for write in replaced]
    added = [Write(1, write.key, write.row, policy) for write in replaced for policy in (Policy.FAIL, Policy.NOTHING)]
    files = FileKeys(TABLE, member.shard.folder)

    def found(ts: int) -> list[tuple[int, str | None]]:
        each = files.find(ask(member.shard, patches, ts))
        there = files.find(ask(member.shard, deleted, ts))
        assert [one[:2] for one in each] == [one[:2] for one in there]
        assert files.find(ask(member.shard, added, ts)) == [one for one in there for _ in range(2)]
        assert not any(one.row for one in there), "only a patch needs the row"
        assert not ask(member.shard, replaced, ts).needs_files, "what replaces any row asks no file"
        values = [shown_value(one.row) for one in each]
        return [(one.commit_ts, value) for one, value in zip(each, values, strict=True)]

    def shown_value(row: bytes | None) -> str | None:
        found = None if row is None else decode_rows(arrow_schema(TABLE), [row]).column("v")[0].as_py()
        assert found is None or isinstance(found, str)
        return found

    assert found(first) == [(first, "old"), (first, "old"), (0, None)]
    assert found(second) == [(first, "old"), (second, "new"), (0, None)]
    assert found(second + 1) == [(second + 1, None), (second, "new"), (0, None)]
    member.flush(second)
    assert found(second) == [(first, "old"), (second, "new"), (0, None)]
    member.trim(second)
    assert found(second) == [(second, "old"), (second, "new"), (0, None)]
    assert found(second + 1) == [(second + 1, None), (second, "new"), (0, None)]
    # Two that no file has yet, and that nobody has read.
    third, fourth = member.write(3, value="third"), member.write(2, value="fourth")
    assert found(fourth) == [(second + 1, None), (fourth, "fourth"), (third, "third")]


def test_indexes_in_memory_say_that_a_key_is_new(member: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    last = member.write(1, 2, value="old")
    member.flush(last)
    member.trim(last)
    one, _, new = (
        Write(1, write.key, write.row, Policy.FAIL)
        for write in writes_of(TABLE, batch_of(TABLE, [{"k": key} for key in (1, 2, 3)]))
    )
    files = FileKeys(TABLE, member.shard.folder)
    asked, there = ask(member.shard, [new], LATEST), ask(member.shard, [new, one], LATEST)
    assert files.find_absent(asked) is None, "its file was never read"
    assert files.find(asked) == [FoundRow()]
    assert files.find_absent(asked) == [FoundRow()]
    assert files.find_absent(there) is None, "whether it is the same key only the file tells"
    assert [row.is_live for row in files.find(there)] == [False, True]
    monkeypatch.setattr(lookup, "LOOKED_GROUPS", 0)
    assert files.find_absent(asked) is None


def test_rows_that_replace_any_other_are_asked_about_at_once(member: Member) -> None:
    first, second = member.write(1, 2), member.write(2)
    blind = writes_of(TABLE, batch_of(TABLE, [{"k": key} for key in (1, 2, 3)]))
    for writes, newest in ((blind, second), (blind[:1], first), (blind[2:], 0)):
        assert ask_blind(member.shard, writes) == FoundRow(newest)
        assert max(row.commit_ts for row in ask(member.shard, writes, LATEST).found) == newest
    key, row = blind[0].key, blind[0].row
    for other in (Write(1, key, row, Policy.FAIL), Write(1, key, None), Write(1, key, row, is_patch=True)):
        assert ask_blind(member.shard, [*blind, other]) is None


def test_a_second_thread_at_the_overlay_is_refused(member: Member) -> None:
    overlay, refused = member.shard.overlay, list[str]()

    class Meanwhile(list[Pair]):
        """Others come while these are taken."""

        def __iter__(self) -> Iterator[Pair]:
            with pytest.raises(InternalError, match="a second thread") as error:
                overlay.add(10, [(b"b", None)])
            refused.append(str(error.value))
            return super().__iter__()

    overlay.add(9, Meanwhile([(encode_keys(["k"], [pa.array([1])])[0], None)]))
    assert refused
    assert len(overlay) == overlay.at(10, 0).touched.num_rows == 1


# --- Delta ------------------------------------------------------------------------------------------------------------
def log_of(member: Member) -> str:
    return os.path.join(member.shard.folder, delta.LOG)


def replayed(folder: str) -> tuple[pa.Table, int]:
    """What a reader of Delta sees, by the book: the last checkpoint, then commits; and how far the app was."""
    log = os.path.join(folder, delta.LOG)
    live: set[str] = set()
    app = -1
    actions: list[dict[str, dict[str, object]]] = []
    first = -1
    if os.path.exists(os.path.join(log, "_last_checkpoint")):
        first = json.loads(Path(log, "_last_checkpoint").read_text())["version"]
        actions += pq.read_table(os.path.join(log, f"{first:020d}.checkpoint.parquet")).to_pylist()
    for name in sorted(name for name in os.listdir(log) if name.endswith(".json") and int(name[:20]) > first):
        actions += map(json.loads, Path(log, name).read_text().splitlines())
    for action in actions:
        if action.get("add"):
            live.add(str(action["add"]["path"]))
        if action.get("remove"):
            live.discard(str(action["remove"]["path"]))
        if action.get("txn"):
            app = int(str(action["txn"]["version"]))
    parts = [pq.read_table(os.path.join(folder, name)) for name in sorted(live)]
    return (pa.concat_tables(parts) if parts else pa.table({"k": []})), app


def test_delta_shows_the_last_flush_over_checkpoints(member: Member) -> None:
    with mock.patch.object(delta, "DELTA_CHECKPOINT", 3), mock.patch.object(delta, "DELTA_KEPT", 2):
        for number in range(8):
            member.flush(member.write(number, number + 1))
            found, app = replayed(member.shard.folder)
            assert sorted(found.column("k").to_pylist()) == list(range(number + 2))
            assert app == number + 1
            member.trim(2 * SECOND)
    names = sorted(os.listdir(log_of(member)))
    assert f"{6:020d}.checkpoint.parquet" in names
    assert f"{3:020d}.json" not in names
    member.write(100)
    assert 100 not in replayed(member.shard.folder)[0].column("k").to_pylist()


def test_a_foreign_commit_is_refused_and_the_table_goes_on(member: Member) -> None:
    member.flush(member.write(1))
    foreign = os.path.join(log_of(member), f"{1:020d}.json")
    Path(foreign).write_text('{"commitInfo": {"operation": "WRITE"}}\n')
    with pytest.raises(SiteError, match=f"{foreign} was not written by this member") as caught:
        member.flush(member.write(2))
    assert "remove that commit" in caught.value.suggestion
    member.reopen()
    assert member.keys() == [1, 2]
    member.trim(2 * SECOND)  # Delta's readers still need what is replaced
    assert replayed(member.shard.folder)[0].column("k").to_pylist() == [1]
    os.unlink(foreign)
    member.flush(member.write(3))
    assert sorted(replayed(member.shard.folder)[0].column("k").to_pylist()) == [1, 2, 3]
    member.trim(2 * SECOND)
    assert len(member.names) == 1


def test_a_log_that_is_gone_and_a_store_that_is_older_are_noticed(member: Member) -> None:
    member.flush(member.write(1))
    older = Path(member.store.path)
    member.store.close()
    copy = older.read_bytes()
    member.reopen()
    member.flush(member.write(2))
    files = member.names
    member.store.close()
    newer = older.read_bytes()
    older.write_bytes(copy)
    member.reopen()
    assert "this member knows 1 alone" in member.opened.faults[1].message
    member.store.close()
    older.write_bytes(newer)
    member.reopen()
    assert member.names == files  # nothing was swept meanwhile
    os.unlink(os.path.join(log_of(member), f"{1:020d}.json"))
    with pytest.raises(SiteError, match="commit 1, which was made here, is gone"):
        member.flush(member.write(3))
    assert member.keys() == [1, 2, 3]


def test_a_file_of_all_types_is_read_back_as_it_was(tmp_path: Path) -> None:
    table = all_types()
    rows = [{"a": "x", "b": 1.0, "c": 1} | {f"v{at}": values[0] for at, values in enumerate(TYPES.values())}]
    rows.append({"a": "y", "b": -0.0, "c": 2})
    shard = Shard(table, str(tmp_path / "1"))
    writes = writes_of(table, batch_of(table, rows))
    shard.apply(SECOND, [(write.key, write.row) for write in writes])
    plan = shard.plan_flush(SECOND)
    assert plan is not None
    done = flush.carry_out(plan)
    assert shown(read_file(shard.folder, done.added[0], table)) == shown(batch_of(table, rows))
    low = {column.name: column.low for column in done.added[0].columns}
    assert (low["v1"], low["v5"], low["v9"], low["a"]) == (-128, None, -719162, "x")
    # Arrow's bounds leave NaN out, and a reader that goes by them would leave its rows out: there are none.
    footer = pq.read_metadata(os.path.join(shard.folder, done.added[0].name)).row_group(0)
    bounded = {column.path_in_schema for column in map(footer.column, range(footer.num_columns)) if column.statistics}
    assert bounded == {"a", "b", "c", *(f"v{at}" for at in range(len(KEY_TYPES)) if at not in (5, 6))}
    shard.flushed(done, table)
    actions = delta.commit_of(table, MEMBER, shard.manifest, 0, is_first=True, is_new=True)
    assert [next(iter(action)) for action in actions] == ["commitInfo", "protocol", "metaData", "txn", "add"]
    assert Manifest().live == ()


def test_a_table_is_dropped_while_it_is_flushed(member: Member) -> None:
    upto = member.write(1)
    member.store.drop_table(TABLE.id).result()
    with pytest.raises(SiteError, match="table number 1 was dropped while it was flushed"):
        member.flush(upto)
    asyncio.run(member.flusher.remove(member.shard))
    with pytest.raises(SiteError, match="t1 was dropped"):
        member.flush(upto)
    assert not os.path.exists(member.shard.folder)


def test_deleting_the_last_row_leaves_no_file(member: Member) -> None:
    member.flush(member.write(1))
    writes = deletes_of(TABLE, batch_of(TABLE, [{"k": 1}]))
    member.store.persist([committed(9, SECOND + 9, writes)]).result()
    member.shard.apply(SECOND + 9, [(write.key, write.row) for write in writes])
    member.flush(SECOND + 9)
    assert (member.keys(), member.shard.manifest.live) == ([], ())
    assert replayed(member.shard.folder)[0].num_rows == 0
    member.flush(member.write(2, ts=SECOND + 10))
    assert member.keys() == [2]


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """delta-rs, which is also Polars' reader, and DuckDB's: both keep threads and sockets when they have read once."""
    table = a_table()
    shard = Shard(table, str(tmp_path_factory.mktemp("delta") / "1"))
    delta.publish(shard.folder, table, MEMBER, shard.manifest.after(Flush(1, NOW, (), ())))
    assert deltalake.DeltaTable(shard.folder).to_pyarrow_table().num_rows == 0
    extension = Path(duckdb_extension_delta.__file__).parent / "extensions" / "v1.5.5" / "delta.duckdb_extension"
    with duckdb.connect() as database:
        database.load_extension(str(extension))
        assert database.execute("SELECT * FROM delta_scan(?)", [shard.folder]).fetchall() == []
        yield database


def test_readers_of_delta_see_all_types(tmp_path: Path, readers: duckdb.DuckDBPyConnection) -> None:
    """Over a checkpoint, flushes that replace files, and a deletion."""
    table = all_types()
    shard = Shard(table, str(tmp_path / "1"))
    with mock.patch.object(delta, "DELTA_CHECKPOINT", 2):
        for number in range(4):
            values = [[*some, None] for some in TYPES.values()]
            rows = [
                {"a": f"{at + number}", "b": 1.0, "c": 2}
                | {f"v{place}": some[(at + number) % len(some)] for place, some in enumerate(values)}
                for at in range(9)
            ]
            batch = batch_of(table, rows)
            writes = writes_of(table, batch) if number < 3 else deletes_of(table, batch.select(["a", "b", "c"]))
            shard.apply(NOW + number, [(write.key, write.row) for write in writes])
            plan = shard.plan_flush(NOW + number)
            assert plan is not None
            shard.flushed(flush.carry_out(plan), table)
            done = delta.publish(shard.folder, table, MEMBER, shard.manifest)
            shard.published(*done)
    wanted = shard.read(NOW + 3)
    assert wanted.num_rows == 3
    found = deltalake.DeltaTable(shard.folder)
    assert (found.version(), found.transaction_version(delta.APP)) == (3, 4)
    scanned = readers.execute("SELECT * FROM delta_scan(?)", [shard.folder]).to_arrow_table()
    for rows_found in (found.to_pyarrow_table(), scanned):
        assert shown(rows_found.select(wanted.column_names).cast(wanted.schema)) == shown(wanted)

    # Columns that come, go, and take the names of others.
    first, *others = numbered(table).columns
    names = {"v0": "renamed", "v1": "v0", "c": "key"}
    columns = [msgspec.structs.replace(each, name=names.get(each.name, each.name)) for each in (first, *others)]
    columns = [
        *(each for each in columns if each.name != "v7"),
        OwnColumn("v7", "int", False, "5"),
        OwnColumn("n", "date"),
    ]
    made = altered(table, msgspec.structs.replace(table, columns=tuple(columns)))
    shard.alter(msgspec.structs.replace(made, version=2))
    plan = shard.plan_flush(NOW + 4)
    assert plan is not None
    shard.flushed(flush.carry_out(plan), shard.table)
    shard.published(*delta.publish(shard.folder, shard.table, MEMBER, shard.manifest))
    assert shard.plan_flush(NOW + 5) is None
    wanted = shard.read(NOW + 5)
    assert {"renamed", "key", "v7", "n"} < set(wanted.column_names)
    assert set(wanted.column("v7").to_pylist()) == {5}
    # And one that has another name, and nothing else.
    columns = [msgspec.structs.replace(each, name="w" if each.name == "v2" else each.name) for each in made.columns]
    shard.alter(msgspec.structs.replace(made, version=3, columns=tuple(columns)))
    plan = shard.plan_flush(NOW + 6)
    assert plan is not None
    shard.flushed(flush.carry_out(plan), shard.table)
    shard.published(*delta.publish(shard.folder, shard.table, MEMBER, shard.manifest))
    wanted = shard.read(NOW + 6)
    found = deltalake.DeltaTable(shard.folder)
    scanned = readers.execute("SELECT * FROM delta_scan(?)", [shard.folder]).to_arrow_table()
    for rows_found in (found.to_pyarrow_table(), scanned):
        assert set(rows_found.column_names) == set(wanted.column_names)
        assert shown(rows_found.select(wanted.column_names).cast(wanted.schema)) == shown(wanted)


# --- a disk that is full for a while ----------------------------------------------------------------------------------
def _full(store: Store, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """Such calls fail, as on a full disk."""

    def fail(*_: object) -> Future[None]:
        answer: Future[None] = Future()
        answer.set_exception(Unwritten("no room"))
        return answer

    monkeypatch.setattr(store, call, fail)


def test_files_that_a_full_disk_could_not_forget_go_with_the_next_trim(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    member.flush(member.write(1))
    member.flush(member.write(2))
    before = member.names
    _full(member.store, monkeypatch, "trim")
    with pytest.raises(Unwritten):
        member.trim(NOW)
    assert member.names == before
    monkeypatch.undo()
    member.trim(NOW)
    assert len(member.names) < len(before)
    assert member.keys() == [1, 2]


def test_files_of_a_flush_that_found_no_room_are_removed(member: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    ts = member.write(1)
    _full(member.store, monkeypatch, "flushed")
    with pytest.raises(Unwritten):
        member.flush(ts)
    assert member.names == []
    monkeypatch.undo()
    member.flush(ts)
    assert member.keys() == [1]


def test_a_flush_that_fails_after_its_caller_was_cancelled_is_no_stray_error(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    ts = member.write(1)
    told: list[dict[str, Any]] = []

    async def cancelled() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(context))
        answer: Future[None] = Future()
        named = asyncio.Event()
        monkeypatch.setattr(member.store, "flushed", lambda *_: (loop.call_soon(named.set), answer)[1])
        flushing = asyncio.ensure_future(member.flusher.flush(member.shard, ts))
        await named.wait()
        flushing.cancel()
        await asyncio.sleep(0)
        answer.set_exception(Unwritten("no room"))
        with pytest.raises(asyncio.CancelledError):
            await flushing
        del flushing
        gc.collect()

    asyncio.run(cancelled())
    assert told == []
