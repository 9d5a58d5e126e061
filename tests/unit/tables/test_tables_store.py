"""The store: what it acknowledges is there after a restart, and a bad disk gives a clear error."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import msgspec
import pytest

from skerry.model.commits import Aborted, ClockMark, Decision, Expired, Fence, Finished, Record
from skerry.model.errors import InternalError, Overloaded, SiteError
from skerry.model.sharded import BucketMap
from skerry.tables import store as store_module
from skerry.tables.flushing import open_shards
from skerry.tables.store import FILE, Store, Unwritten
from skerry.tables.writes import writes_of
from tests.unit.tables.table_samples import MEMBER, a_table, batch_of, committed, prepared, txn

TABLE = a_table()
WRITES = writes_of(TABLE, batch_of(TABLE, [{"k": 1, "v": "one"}]))


def reopened(store: Store) -> Store:
    store.close()
    return Store(store.folder, MEMBER)


def with_table(folder: Path) -> Store:
    store = Store(str(folder), MEMBER)
    store.put_table(TABLE).result()
    return store


def test_everything_comes_back_after_a_restart(tmp_path: Path) -> None:
    store = with_table(tmp_path)
    old, new = BucketMap(1, 1, ((0, 16384, MEMBER),)), BucketMap(1, 2, ((0, 9, MEMBER), (9, 16384, "bergen")))
    store.put_map(new).result()
    store.put_map(old).result()  # one that was late
    decision = Decision(txn(5), 50, 60, 1, ("bergen",))
    store.persist([ClockMark(900), ClockMark(800)])
    store.persist([committed(1, 10, WRITES), prepared(2, 20, WRITES), prepared(3, 30, WRITES), prepared(4, 40, WRITES)])
    store.persist([committed(2, 25, []), Aborted(txn(3)), decision, Fence(txn(6).query, 70)])
    store.persist([Decision(txn(7), 71, 0), Decision(txn(8), 72, 73), Finished(txn(8))]).result()
    store = reopened(store)
    loaded = store.loaded
    assert loaded.tables == (TABLE,)
    assert loaded.maps == (new,)
    wanted: list[Record] = [ClockMark(900), committed(1, 10, []), committed(2, 25, []), prepared(4, 40, WRITES)]
    wanted += [decision, Decision(txn(7), 71, 0), Decision(txn(8), 72, 73), Finished(txn(8)), Fence(txn(6).query, 70)]
    assert [_bare(record) for record in loaded.records] == [_bare(record) for record in wanted]
    assert [(each.commit_ts, each.writes) for each in loaded.commits] == [
        (10, ((WRITES[0].key, WRITES[0].row),)),
        (25, ((WRITES[0].key, WRITES[0].row),)),
    ]
    store.close()


def _bare(record: Record) -> Record:
    """First starts, and counts of rows, are told once: by the first record of a transaction."""
    return msgspec.structs.replace(record, **{name: 0 for name in ("first_start", "rows") if hasattr(record, name)})


def test_every_record_may_be_said_twice_and_none_contradicts(tmp_path: Path) -> None:
    store = with_table(tmp_path)
    records: list[Record] = [committed(1, 10, WRITES), prepared(2, 20, WRITES), Decision(txn(2), 20, 30)]
    store.persist(records + records).result()
    for wrong in (committed(1, 11, WRITES), Aborted(txn(1)), Decision(txn(2), 20, 31)):
        with pytest.raises(InternalError):
            store.persist([wrong]).result()
    wrong_table = [each.__class__(9, each.key, each.row) for each in WRITES]
    with pytest.raises(InternalError, match="table 9"):
        store.persist([committed(3, 12, wrong_table)]).result()
    store = reopened(store)
    assert len(store.loaded.commits) == 1
    store.close()


def test_one_that_fails_does_not_take_the_others_with_it(tmp_path: Path) -> None:
    store = with_table(tmp_path)
    calls = [store.persist([committed(number, number, WRITES)]) for number in range(1, 50)]
    wrong = store.persist([committed(7, 999, WRITES)])
    calls += [store.persist([committed(number, number, WRITES)]) for number in range(50, 60)]
    for call in calls:
        call.result()
    with pytest.raises(InternalError, match="committed at 7"):
        wrong.result()
    store = reopened(store)
    assert [each.commit_ts for each in store.loaded.commits] == list(range(1, 60))
    store.close()


def test_ids_are_forgotten_when_they_have_expired_and_nothing_needs_them(tmp_path: Path) -> None:
    store = with_table(tmp_path)
    store.persist([committed(1, 10, []), committed(2, 11, WRITES), prepared(3, 12, []), committed(4, 99, [])])
    store.persist([Decision(txn(5), 13, 14, 1, ("bergen",)), Decision(txn(6), 13, 0), Fence(txn(7).query, 13)])
    store.persist([Expired(50)])
    while store.forget().result():
        pass
    store = reopened(store)
    kept = [record for record in store.loaded.records if not isinstance(record, ClockMark | Expired)]
    assert [record.txn for record in kept] == [txn(2), txn(3), txn(4), txn(5)]
    store.close()


def test_a_table_with_rows_keeps_its_columns_and_a_dropped_one_is_gone(tmp_path: Path) -> None:
    store = with_table(tmp_path)
    store.put_table(a_table(key="string")).result()
    store.put_table(TABLE).result()
    store.persist([committed(1, 10, WRITES)]).result()
    with pytest.raises(InternalError, match="cannot change"):
        store.put_table(a_table(key="string")).result()
    (tmp_path / "1").mkdir()
    store.drop_table(1).result()
    store = reopened(store)
    assert (store.loaded.tables, store.loaded.commits, store.loaded.dropped) == ((), (), (1,))
    open_shards(store, MEMBER)
    assert not (tmp_path / "1").exists()
    store = reopened(store)
    assert store.loaded.dropped == ()
    store.close()


def test_a_folder_has_one_writer(tmp_path: Path) -> None:
    store = with_table(tmp_path)
    with pytest.raises(SiteError, match=rf"site bergen: .* another process \(pid {os.getpid()}\)"):
        Store(str(tmp_path), "bergen")
    store = reopened(store)
    store.close()
    with pytest.raises(SiteError, match="closed"):
        store.put_table(TABLE).result()


def test_too_much_that_waits_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = with_table(tmp_path)
    monkeypatch.setattr(store_module, "STORE_WAITING_BYTES", 10)
    with pytest.raises(Overloaded, match="wait for the disk"):
        store.persist([committed(1, 10, WRITES)])
    store.close()


# --- bad files and disks ----------------------------------------------------------------------------------------------
def test_a_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / FILE) as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    with pytest.raises(SiteError, match=r"site oslo: .*tables\.sqlite is not a file of Skerry's tables") as caught:
        Store(str(tmp_path), MEMBER)
    assert "move it away" in caught.value.suggestion


def test_a_file_of_a_newer_release_is_refused(tmp_path: Path) -> None:
    with_table(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE) as newer:
        newer.execute("PRAGMA user_version = 99")
    newer.close()
    with pytest.raises(SiteError, match=r"newer release \(schema 99"):
        Store(str(tmp_path), MEMBER)


@pytest.mark.parametrize("at", [0, 4096 * 3])
def test_a_damaged_file_is_refused(tmp_path: Path, at: int) -> None:
    store = with_table(tmp_path)
    store.persist([committed(number, number, WRITES) for number in range(1, 200)]).result()
    store.close()
    with open(tmp_path / FILE, "r+b") as file:
        file.seek(at)
        file.write(b"\x5a" * 2000)
    with pytest.raises(SiteError, match=r"tables\.sqlite is damaged") as caught:
        Store(str(tmp_path), MEMBER)
    assert "restore" in caught.value.suggestion


def test_changed_bytes_of_a_row_are_noticed(tmp_path: Path) -> None:
    store = with_table(tmp_path)
    store.persist([committed(1, 10, WRITES)]).result()
    store.close()
    with sqlite3.connect(tmp_path / FILE) as file:
        file.execute("UPDATE writes SET body = CAST(replace(CAST(body AS TEXT), 'one', 'two') AS BLOB)")
        assert file.total_changes == 1
    file.close()
    with pytest.raises(SiteError, match="rows of transaction 1 in table 1 are damaged"):
        Store(str(tmp_path), MEMBER)


def test_a_missing_file_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    with_table(tmp_path).close()
    (tmp_path / "1").mkdir()
    (tmp_path / FILE).unlink()
    with pytest.raises(SiteError, match="is missing, but files of tables are there"):
        Store(str(tmp_path), MEMBER)


def test_a_full_disk_refuses_statements_and_keeps_the_others(tmp_path: Path) -> None:
    store = with_table(tmp_path)
    store.persist([committed(1, 1, WRITES)]).result()
    store._call(lambda file: file.execute("PRAGMA max_page_count = 20").fetchone()).result()  # all that a disk has
    large = writes_of(TABLE, batch_of(TABLE, [{"k": 1, "v": "x" * 400_000}]))
    with pytest.raises(SiteError, match="no room on the disk; nothing of the statement is written"):
        store.persist([committed(2, 2, large)]).result()
    store.persist([committed(3, 3, WRITES)]).result()
    assert store.trouble is None
    # What follows it in its turn is not written either, whether it waits already or comes later; another turn is.
    calls = [store.persist([committed(4, 4, large)], 1), store.persist([committed(5, 5, WRITES)], 1)]
    calls += [store.persist([committed(6, 6, WRITES)])]
    assert [isinstance(call.exception(), Unwritten) for call in calls] == [True, True, False]
    assert isinstance(store.persist([committed(7, 7, WRITES)], 1).exception(), Unwritten)
    store.persist([committed(8, 8, WRITES)], 2).result()
    store = reopened(store)
    assert [each.commit_ts for each in store.loaded.commits] == [1, 3, 6, 8]
    store.close()


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with pytest.raises(SiteError, match=r"tables\.sqlite cannot be written \(unable to open"):
        Store(str(tmp_path), MEMBER)


def test_a_path_that_is_no_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SiteError, match=r"file/tables cannot be written \(Not a directory\)"):
        Store(str(tmp_path / "file" / "tables"), MEMBER)
    shutil.rmtree(tmp_path, ignore_errors=True)
