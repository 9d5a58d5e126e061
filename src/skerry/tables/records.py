"""What a member's SQLite file holds, and each way to change it. Every change may be said twice. Pure but for the file.

Records of commits (`model/commits.py`) are kept as what they come to: a Committed changes its Prepared, an Aborted
removes it. A flush moves `flushed_ts` on and names files in one transaction; writes up to it are no overlay from then
on. They are deleted when history no longer needs them (`trim`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter
from typing import assert_never

import msgspec
import xxhash

from skerry.model.commits import (
    Aborted,
    ClockMark,
    Committed,
    Decision,
    Expired,
    Fence,
    Finished,
    Layouts,
    Policy,
    Prepared,
    Record,
    Staged,
    TransactionId,
    Write,
)
from skerry.model.errors import InternalError, SiteError
from skerry.model.ids import QueryId
from skerry.model.limits import IDS_FORGOTTEN
from skerry.model.sharded import BucketMap, OwnTable, numbered
from skerry.tables.catalogue import Kept
from skerry.tables.manifest import DataFile, Flush, Laid, Manifest, Named
from skerry.tables.mapping import is_followed
from skerry.tables.writes import decode_body, encode_body

# Its own statement: a file of an earlier release gets it when it is opened.
STAGED_SCHEMA = """CREATE TABLE IF NOT EXISTS staged (number INTEGER NOT NULL, table_id INTEGER NOT NULL,
  policy INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (number, table_id))"""
# The keeper's: maps of moves that it has decided, until its definitions have them.
MOVED_SCHEMA = "CREATE TABLE IF NOT EXISTS moved (table_id INTEGER PRIMARY KEY, body BLOB NOT NULL)"
APPLICATION = 1397441874  # "SKER": SQLite's place for whose file it is
SCHEMA_VERSION = 1
SCHEMA = """
BEGIN;
CREATE TABLE clock (one INTEGER PRIMARY KEY CHECK (one = 1), upto INTEGER NOT NULL, expired INTEGER NOT NULL);
INSERT INTO clock VALUES (1, 0, 0);
CREATE TABLE tables (id INTEGER PRIMARY KEY, body BLOB NOT NULL, flushed_ts INTEGER NOT NULL DEFAULT 0,
  kept_ts INTEGER NOT NULL DEFAULT 0, generation INTEGER NOT NULL DEFAULT 0, published INTEGER NOT NULL DEFAULT 0,
  published_ts INTEGER NOT NULL DEFAULT 0, delta_version INTEGER NOT NULL DEFAULT -1);
CREATE TABLE dropped (id INTEGER PRIMARY KEY);
CREATE TABLE catalogue (one INTEGER PRIMARY KEY CHECK (one = 1), body BLOB NOT NULL);
CREATE TABLE maps (table_id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE transactions (number INTEGER PRIMARY KEY, initiator TEXT NOT NULL, local TEXT NOT NULL,
  attempt INTEGER NOT NULL, first_start INTEGER NOT NULL, decider TEXT NOT NULL, prepare_ts INTEGER NOT NULL,
  commit_ts INTEGER NOT NULL, rows INTEGER NOT NULL, UNIQUE (local, initiator, attempt));
CREATE TABLE writes (number INTEGER NOT NULL, table_id INTEGER NOT NULL, body BLOB NOT NULL, checksum TEXT NOT NULL,
  PRIMARY KEY (number, table_id));
CREATE TABLE decisions (number INTEGER PRIMARY KEY, initiator TEXT NOT NULL, local TEXT NOT NULL,
  attempt INTEGER NOT NULL, first_start INTEGER NOT NULL, commit_ts INTEGER NOT NULL, rows INTEGER NOT NULL,
  participants BLOB NOT NULL, is_finished INTEGER NOT NULL, UNIQUE (local, initiator, attempt));
CREATE TABLE fences (initiator TEXT NOT NULL, local TEXT NOT NULL, first_start INTEGER NOT NULL,
  PRIMARY KEY (local, initiator)) WITHOUT ROWID;
CREATE TABLE files (table_id INTEGER NOT NULL, name TEXT NOT NULL, since_ts INTEGER NOT NULL, upto_ts INTEGER,
  body BLOB NOT NULL, PRIMARY KEY (table_id, name)) WITHOUT ROWID;
CREATE TABLE flushes (table_id INTEGER NOT NULL, generation INTEGER NOT NULL, upto_ts INTEGER NOT NULL,
  PRIMARY KEY (table_id, generation)) WITHOUT ROWID;
PRAGMA application_id = 1397441874;
PRAGMA user_version = 1;
COMMIT;
"""


class Commit(msgspec.Struct, frozen=True):
    """Keys and rows that a transaction wrote to one table; a row of None is deleted. `ids`: of the rows' columns."""

    table: int
    commit_ts: int
    writes: tuple[tuple[bytes, bytes | None], ...]
    ids: tuple[int, ...] = ()


class Loaded(msgspec.Struct, frozen=True):
    """All that a member knows when it starts.

    `records`: for the cores of commits. Committed ones are without their writes: `commits` has those that history
    needs, in the order of their times. `moved`: maps that the keeper has decided, and may not have told yet.
    """

    tables: tuple[OwnTable, ...]
    dropped: tuple[int, ...]
    maps: tuple[BucketMap, ...]
    records: tuple[Record, ...]
    commits: tuple[Commit, ...]
    manifests: dict[int, Manifest]
    kept: Kept = Kept()
    moved: tuple[BucketMap, ...] = ()


_pack, _unpack = msgspec.msgpack.encode, msgspec.msgpack.decode


def load(file: sqlite3.Connection, place: str) -> Loaded:
    """SiteError if what was kept is damaged."""
    commits = []
    prepared: dict[int, list[Write]] = {}
    layouts: dict[int, Layouts] = {}
    staged: dict[int, list[Staged]] = {}
    for number, table, policy, body in file.execute("SELECT number, table_id, policy, body FROM staged"):
        staged.setdefault(number, []).append(Staged(table, (), Policy(policy), body=body))
    rows = file.execute(
        "SELECT number, commit_ts, table_id, body, checksum FROM writes JOIN transactions USING (number)"
        " ORDER BY commit_ts, number, table_id"
    )
    for number, commit_ts, table, body, checksum in rows:
        if _checksum(body) != checksum:
            raise SiteError(
                f"{place}: the rows of transaction {number} in table {table} are damaged",
                suggestion="restore the folder from a copy; the disk has changed bytes that were written",
            )
        ids, pairs = decode_body(body)
        if commit_ts:
            commits.append(Commit(table, commit_ts, pairs, ids))
        else:
            prepared.setdefault(number, []).extend(Write(table, key, row) for key, row in pairs)
            layouts[number] = (*layouts.get(number, ()), *([(table, ids)] if ids else []))
    return Loaded(
        tables=tuple(_unpack(body, type=OwnTable) for (body,) in file.execute("SELECT body FROM tables ORDER BY id")),
        dropped=tuple(number for (number,) in file.execute("SELECT id FROM dropped")),
        maps=tuple(_unpack(body, type=BucketMap) for (body,) in file.execute("SELECT body FROM maps")),
        records=tuple(_records(file, prepared, staged, layouts)),
        commits=tuple(commits),
        manifests=_manifests(file),
        kept=_kept(file),
        moved=tuple(_unpack(body, type=BucketMap) for (body,) in file.execute("SELECT body FROM moved")),
    )


def _kept(file: sqlite3.Connection) -> Kept:
    row = file.execute("SELECT body FROM catalogue").fetchone()
    return Kept() if row is None else _unpack(row[0], type=Kept)


def _records(
    file: sqlite3.Connection,
    prepared: dict[int, list[Write]],
    staged: dict[int, list[Staged]],
    layouts: dict[int, Layouts],
) -> Iterable[Record]:
    upto, expired = file.execute("SELECT upto, expired FROM clock").fetchone()
    yield ClockMark(upto)
    for number, initiator, local, attempt, first_start, decider, prepare_ts, commit_ts, rows in file.execute(
        "SELECT number, initiator, local, attempt, first_start, decider, prepare_ts, commit_ts, rows"
        " FROM transactions ORDER BY number"
    ):
        txn = TransactionId(QueryId(initiator, local), attempt)
        if commit_ts:
            yield Committed(txn, first_start, commit_ts, rows)
        else:
            writes, files = tuple(prepared.get(number, ())), tuple(staged.get(number, ()))
            yield Prepared(txn, first_start, decider, prepare_ts, rows, writes, files, layouts.get(number, ()))
    for initiator, local, attempt, first_start, commit_ts, rows, participants, is_finished in file.execute(
        "SELECT initiator, local, attempt, first_start, commit_ts, rows, participants, is_finished"
        " FROM decisions ORDER BY number"
    ):
        txn = TransactionId(QueryId(initiator, local), attempt)
        yield Decision(txn, first_start, commit_ts, rows, _unpack(participants, type=tuple[str, ...]))
        if is_finished:
            yield Finished(txn)
    for initiator, local, first_start in file.execute("SELECT initiator, local, first_start FROM fences"):
        yield Fence(QueryId(initiator, local), first_start)
    if expired:
        yield Expired(expired)


def _manifests(file: sqlite3.Connection) -> dict[int, Manifest]:
    manifests = {}
    tables = "SELECT id, flushed_ts, kept_ts, generation, published, published_ts, delta_version FROM tables"
    for table, flushed_ts, kept_ts, generation, published, published_ts, version in file.execute(tables).fetchall():
        files = file.execute(
            "SELECT body, since_ts, upto_ts FROM files WHERE table_id = ? ORDER BY since_ts, name", (table,)
        )
        flushes = file.execute("SELECT upto_ts FROM flushes WHERE table_id = ? ORDER BY generation", (table,))
        named = tuple(Named(_unpack(body, type=DataFile), since, upto) for body, since, upto in files)
        moments = tuple(upto for (upto,) in flushes)
        staged = file.execute(
            "SELECT commit_ts FROM staged JOIN transactions USING (number) WHERE table_id = ? AND commit_ts > 0"
            " ORDER BY commit_ts",
            (table,),
        )
        loads = tuple(commit_ts for (commit_ts,) in staged)
        manifests[table] = Manifest(
            flushed_ts, kept_ts, generation, published, published_ts, version, named, moments, loads
        )
    return manifests


# --- tables and the clock ---------------------------------------------------------------------------------------------
def keep(file: sqlite3.Connection, kept: Kept, member: str) -> None:
    """All definitions; tables that are new here come with them, those that are gone go. An older version is nothing,
    the same one says what else has become known."""
    before = _kept(file).catalogue.version
    if kept.catalogue.version < before:
        return
    if kept.catalogue.version == before:
        file.execute("INSERT OR REPLACE INTO catalogue VALUES (1, ?)", (_pack(kept),))
        return
    # Of a table that has left this member nothing but history is here. It goes with the table.
    here = {number for (number,) in file.execute("SELECT id FROM tables")}
    own = {
        each.table.id: each
        for each in kept.catalogue.definitions
        if member in each.table.members or each.table.id in here
    }
    for number in here - own.keys():
        drop_table(file, number)
    for definition in own.values():
        put_table(file, definition.table)
        _follow_map(file, definition.buckets, member)
    file.execute("INSERT OR REPLACE INTO catalogue VALUES (1, ?)", (_pack(kept),))
    versions = {each.table.id: each.buckets.version for each in kept.catalogue.definitions}
    for number, body in file.execute("SELECT table_id, body FROM moved").fetchall():
        if number not in versions or _unpack(body, type=BucketMap).version <= versions[number]:
            file.execute("DELETE FROM moved WHERE table_id = ?", (number,))


def put_table(file: sqlite3.Connection, table: OwnTable) -> None:
    """A table, or its next version. What its key is stays while it has rows: these are found by it."""
    found = file.execute("SELECT body FROM tables WHERE id = ?", (table.id,)).fetchone()
    if found is not None:
        before = _unpack(found[0], type=OwnTable)
        is_used = file.execute(
            "SELECT EXISTS (SELECT * FROM files WHERE table_id = ?1)"
            " OR EXISTS (SELECT * FROM writes WHERE table_id = ?1)"
            " OR EXISTS (SELECT * FROM staged WHERE table_id = ?1)",
            (table.id,),
        ).fetchone()[0]
        if is_used and _layout(before) != _layout(table):
            raise InternalError(f"table {table.name} has rows: its key and buckets cannot change")
    body = _pack(table)
    file.execute("INSERT INTO tables (id, body) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET body = ?2", (table.id, body))


def _layout(table: OwnTable) -> tuple[object, ...]:
    columns = {column.name: (column.id, column.type) for column in numbered(table).columns}
    key, spread = ([columns[name] for name in names] for names in (table.primary_key, table.distributed_by))
    return key, spread, table.buckets


def drop_table(file: sqlite3.Connection, table: int) -> None:
    """All of it but the folder; `dropped` says that this is to be removed."""
    file.execute("DELETE FROM tables WHERE id = ?", (table,))
    for name in ("maps", "writes", "staged", "files", "flushes"):
        file.execute(_DROP[name], (table,))
    file.execute("INSERT OR IGNORE INTO dropped VALUES (?)", (table,))


_DROP = {
    "maps": "DELETE FROM maps WHERE table_id = ?",
    "writes": "DELETE FROM writes WHERE table_id = ?",
    "staged": "DELETE FROM staged WHERE table_id = ?",
    "files": "DELETE FROM files WHERE table_id = ?",
    "flushes": "DELETE FROM flushes WHERE table_id = ?",
}


def folder_gone(file: sqlite3.Connection, table: int) -> None:
    file.execute("DELETE FROM dropped WHERE id = ?", (table,))


def put_map(file: sqlite3.Connection, buckets: BucketMap) -> None:
    """An older version never replaces a newer one."""
    found = file.execute("SELECT body FROM maps WHERE table_id = ?", (buckets.table,)).fetchone()
    if found is None or _unpack(found[0], type=BucketMap).version <= buckets.version:
        file.execute("INSERT OR REPLACE INTO maps VALUES (?, ?)", (buckets.table, _pack(buckets)))


def _follow_map(file: sqlite3.Connection, buckets: BucketMap, member: str) -> None:
    """A map of the definitions. One that a move of this member's own makes comes with that, and not before."""
    found = file.execute("SELECT body FROM maps WHERE table_id = ?", (buckets.table,)).fetchone()
    if found is None or is_followed(_unpack(found[0], type=BucketMap), buckets, member):
        put_map(file, buckets)


# --- records of commits -----------------------------------------------------------------------------------------------
_IS_TXN = " WHERE local = ? AND initiator = ? AND attempt = ?"
_NUMBER_OF_STAGED = "SELECT DISTINCT number FROM transactions JOIN staged USING (number)"


def persist(file: sqlite3.Connection, records: Iterable[Record]) -> None:
    """All of them, or none."""
    for record in records:
        match record:
            case ClockMark():
                file.execute("UPDATE clock SET upto = max(upto, ?)", (record.upto,))
            case Prepared():
                _prepare(file, record)
            case Committed():
                _commit(file, record)
            case Aborted():
                _abort(file, record)
            case Decision():
                _decide(file, record)
            case Finished():
                file.execute("UPDATE decisions SET is_finished = 1" + _IS_TXN, _txn(record.txn))
            case Fence():
                query = record.query
                file.execute(
                    "INSERT OR IGNORE INTO fences VALUES (?, ?, ?)", (query.initiator, query.local, record.first_start)
                )
            case Expired():
                file.execute("UPDATE clock SET expired = max(expired, ?)", (record.before,))
            case _:
                assert_never(record)


def _prepare(file: sqlite3.Connection, record: Prepared) -> None:
    values = (record.first_start, record.decider, record.prepare_ts, 0, record.rows)
    _put(file, record.txn, values, record.writes, record.staged, record.layouts)


def _commit(file: sqlite3.Connection, record: Committed) -> None:
    if not record.writes and not record.staged and _commit_prepared(file, record):
        return
    values = (record.first_start, "", 0, record.commit_ts, record.rows)
    number = _put(file, record.txn, values, record.writes, record.staged, record.layouts)
    if number is not None:
        if record.staged:
            _name_staged(file, number, record.commit_ts)
        return
    known = _known(file, record.txn)
    assert known is not None
    if known[1] == 0:
        file.execute("UPDATE transactions SET commit_ts = ? WHERE number = ?", (record.commit_ts, known[0]))
        _name_staged(file, known[0], record.commit_ts)
    elif known[1] != record.commit_ts:
        raise InternalError(f"transaction {record.txn} is committed at {known[1]}, not at {record.commit_ts}")


def _commit_prepared(file: sqlite3.Connection, record: Committed) -> bool:
    """What was prepared is committed, in two statements: each commit over several members comes here. False if it was
    not prepared, or is committed already."""
    txn = _txn(record.txn)
    sql = "UPDATE transactions SET commit_ts = ?" + _IS_TXN + " AND commit_ts = 0"
    if not file.execute(sql, (record.commit_ts, *txn)).rowcount:
        return False
    for (number,) in file.execute(_NUMBER_OF_STAGED + _IS_TXN, txn).fetchall():
        _name_staged(file, number, record.commit_ts)
    return True


def _abort(file: sqlite3.Connection, record: Aborted) -> None:
    known = _known(file, record.txn)
    if known is not None:
        if known[1]:
            raise InternalError(f"transaction {record.txn} cannot be aborted: it is committed at {known[1]}")
        file.execute("DELETE FROM writes WHERE number = ?", (known[0],))
        file.execute("DELETE FROM staged WHERE number = ?", (known[0],))
        file.execute("DELETE FROM transactions WHERE number = ?", (known[0],))


def _decide(file: sqlite3.Connection, record: Decision) -> None:
    local, initiator, attempt = _txn(record.txn)
    put = file.execute(
        "INSERT INTO decisions (initiator, local, attempt, first_start, commit_ts, rows, participants, is_finished)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, 0) ON CONFLICT (local, initiator, attempt) DO NOTHING",
        (initiator, local, attempt, record.first_start, record.commit_ts, record.rows, _pack(record.participants)),
    )
    if not put.rowcount:
        (commit_ts,) = file.execute("SELECT commit_ts FROM decisions" + _IS_TXN, _txn(record.txn)).fetchone()
        if commit_ts != record.commit_ts:
            raise InternalError(f"transaction {record.txn} was decided otherwise before")
        return
    if record.moved is not None:
        file.execute("INSERT OR REPLACE INTO moved VALUES (?, ?)", (record.moved.table, _pack(record.moved)))


def _name_staged(file: sqlite3.Connection, number: int, commit_ts: int) -> None:
    """Staged files count from their commit on, as those of a flush at that moment."""
    for table, body in file.execute("SELECT table_id, body FROM staged WHERE number = ?", (number,)).fetchall():
        laid = _unpack(body, type=Laid)
        (generation,) = file.execute("SELECT generation FROM tables WHERE id = ?", (table,)).fetchone()
        flushed(file, table, Flush(generation + 1, commit_ts, laid.added, laid.removed))
        if laid.buckets is not None:
            put_map(file, msgspec.structs.replace(laid.buckets, since=commit_ts))


def _put(
    file: sqlite3.Connection,
    txn: TransactionId,
    values: tuple[int, str, int, int, int],
    writes: tuple[Write, ...],
    staged: tuple[Staged, ...],
    layouts: Layouts,
) -> int | None:
    """Gives its number; None if it is known."""
    local, initiator, attempt = _txn(txn)
    put = file.execute(
        "INSERT INTO transactions (initiator, local, attempt, first_start, decider, prepare_ts, commit_ts, rows)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (local, initiator, attempt) DO NOTHING",
        (initiator, local, attempt, *values),
    )
    if not put.rowcount:
        return None
    number = put.lastrowid
    by_table = attrgetter("table")
    for table, group in groupby(sorted(writes, key=by_table), by_table):
        body = encode_body(group, dict(layouts).get(table, ()))
        row = (number, body, _checksum(body), table)
        if not file.execute("INSERT INTO writes SELECT ?, id, ?, ? FROM tables WHERE id = ?", row).rowcount:
            _check_dropped(file, table, txn)
    for each in staged:
        files = (number, each.policy, each.body, each.table)
        if not file.execute("INSERT INTO staged SELECT ?, id, ?, ? FROM tables WHERE id = ?", files).rowcount:
            _check_dropped(file, each.table, txn)
    return number


def _check_dropped(file: sqlite3.Connection, table: int, txn: TransactionId) -> None:
    """The table was dropped meanwhile, and its rows with it; InternalError if there never was one."""
    if table >= _kept(file).catalogue.next_id:
        raise InternalError(f"transaction {txn} writes table {table}, which this member does not have")


def _txn(txn: TransactionId) -> tuple[str, str, int]:
    return txn.query.local, txn.query.initiator, txn.attempt


def _known(file: sqlite3.Connection, txn: TransactionId) -> tuple[int, int] | None:
    """Its number, and its commit's time, 0 if it is prepared."""
    row: tuple[int, int] | None = file.execute(
        "SELECT number, commit_ts FROM transactions" + _IS_TXN, _txn(txn)
    ).fetchone()
    return row


def forget(file: sqlite3.Connection) -> bool:
    """Some of the ids that have expired; True if there may be more. Nothing that a row or another member needs."""
    (before,) = file.execute("SELECT expired FROM clock").fetchone()
    gone = file.execute(
        "DELETE FROM transactions WHERE number IN (SELECT number FROM transactions ORDER BY number LIMIT ?)"
        " AND first_start < ? AND commit_ts > 0"
        " AND NOT EXISTS (SELECT * FROM writes WHERE writes.number = transactions.number)"
        " AND NOT EXISTS (SELECT * FROM staged WHERE staged.number = transactions.number)",
        (IDS_FORGOTTEN, before),
    ).rowcount
    decided = file.execute(
        "DELETE FROM decisions WHERE number IN (SELECT number FROM decisions ORDER BY number LIMIT ?)"
        " AND first_start < ? AND (is_finished OR commit_ts = 0)",
        (IDS_FORGOTTEN, before),
    ).rowcount
    fenced = file.execute("DELETE FROM fences WHERE first_start < ?", (before,)).rowcount
    return max(gone, decided, fenced) > 0


# --- files ------------------------------------------------------------------------------------------------------------
def flushed(file: sqlite3.Connection, table: int, flush: Flush) -> None:
    """Names the new files, ends the old ones, and with them the overlay up to the flush."""
    row = file.execute("SELECT generation FROM tables WHERE id = ?", (table,)).fetchone()
    if row is None:
        raise SiteError(f"table number {table} was dropped while it was flushed")
    if row[0] == flush.generation:
        return
    if row[0] != flush.generation - 1:
        raise InternalError(f"table {table}: flush {flush.generation} after {row[0]}")
    file.executemany(
        "UPDATE files SET upto_ts = ? WHERE table_id = ? AND name = ?",
        [(flush.upto_ts, table, name) for name in flush.removed],
    )
    file.executemany(
        "INSERT INTO files VALUES (?, ?, ?, NULL, ?)",
        [(table, each.name, flush.upto_ts, _pack(each)) for each in flush.added],
    )
    file.execute("INSERT INTO flushes VALUES (?, ?, ?)", (table, flush.generation, flush.upto_ts))
    file.execute(
        "UPDATE tables SET flushed_ts = ?, generation = ? WHERE id = ?", (flush.upto_ts, flush.generation, table)
    )


def published(file: sqlite3.Connection, table: int, generation: int, upto_ts: int, delta_version: int) -> None:
    file.execute(
        "UPDATE tables SET published = ?, published_ts = ?, delta_version = ? WHERE id = ?",
        (generation, upto_ts, delta_version, table),
    )


def trim(file: sqlite3.Connection, table: int, kept_ts: int, names: Iterable[str]) -> None:
    """Forgets what only reads before `kept_ts`, the moment of a flush, would need. The files are removed afterwards."""
    file.execute("UPDATE tables SET kept_ts = ? WHERE id = ?", (kept_ts, table))
    file.executemany("DELETE FROM files WHERE table_id = ? AND name = ?", [(table, name) for name in names])
    file.execute("DELETE FROM flushes WHERE table_id = ? AND upto_ts < ?", (table, kept_ts))
    file.execute(
        "DELETE FROM writes WHERE table_id = ? AND number IN"
        " (SELECT number FROM transactions JOIN writes USING (number)"
        " WHERE table_id = ? AND commit_ts BETWEEN 1 AND ?)",
        (table, table, kept_ts),
    )
    # Those at `kept_ts` itself stay: they may be the last that wrote a key.
    file.execute(
        "DELETE FROM staged WHERE table_id = ? AND number IN"
        " (SELECT number FROM transactions JOIN staged USING (number)"
        " WHERE table_id = ? AND commit_ts BETWEEN 1 AND ?)",
        (table, table, kept_ts - 1),
    )


def _checksum(body: bytes) -> str:
    return xxhash.xxh3_128_hexdigest(body)
