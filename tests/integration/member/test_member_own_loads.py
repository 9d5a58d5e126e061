"""Rows by the hundred thousand: staged where they will be kept, seen all at once or never, kept over a restart."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pyarrow as pa
import pytest

import skerry
from skerry.testing.cluster import LocalCluster
from tests.integration.member.member_sites import wait_until
from tests.integration.member.test_member_own_reads import wait_for

ROWS = 140_000  # more than one unit of rows at each member
SUMS = "SELECT count(*), count(DISTINCT id), sum(amount), min(name), max(name) FROM goods"
CREATE = "CREATE TABLE Goods (id INT, name STRING NOT NULL DEFAULT 'none', amount BIGINT) PRIMARY KEY (id)"


def rows(first: int, upto: int, name: str) -> pa.Table:
    """With a smaller type for the amount than the table's, and without order."""
    ids = pa.array(range(first, upto))
    return pa.table({"amount": ids.cast(pa.int32()), "ID": ids.cast(pa.int64()), "name": pa.repeat(name, upto - first)})


def left_in(two_sites: LocalCluster) -> list[str]:
    """Files that a load has left beside those that manifests name; for a moment also one that a flush is writing."""
    left = []
    for member in ("oslo", "bergen"):
        own = two_sites.members[member].own_tables
        for shard in own._shards.values():
            named = {each.file.name for each in shard.manifest.named}
            found = os.listdir(shard.folder) if os.path.isdir(shard.folder) else []
            left += [name for name in found if name.endswith(".parquet") and name not in named]
        staging = os.path.join(own._folder, "staging")
        left += os.listdir(staging) if os.path.isdir(staging) else []
    return left


def test_rows_are_loaded_whole_or_not_at_all(two_sites: LocalCluster) -> None:
    cursor, other = two_sites.connect("oslo").cursor(), two_sites.connect("bergen").cursor()
    kiosk = two_sites.connect("kiosk").cursor()
    cursor.execute(f"{CREATE} DISTRIBUTED BY (id)")
    cursor.execute("INSERT INTO goods VALUES (7, 'overlaid', 70), (9, 'gone', 90)")
    cursor.execute("DELETE FROM goods WHERE id = 9")
    said: list[int] = []
    assert kiosk.load("goods", rows(10, ROWS, "first"), progress=said.append).rowcount == ROWS - 10
    assert said[-1] == ROWS - 10
    all_ids = sum(range(10, ROWS))
    assert other.execute(SUMS).fetchall() == [(ROWS - 9, ROWS - 9, all_ids + 70, "first", "overlaid")]
    # Some exist, two rows have one key, a text too many, none where one must be: nothing of it is written.
    twice = pa.concat_tables([rows(ROWS, ROWS + 5000, "x"), rows(ROWS, ROWS + 1, "y")])
    for wrong, why in (
        (rows(5, 6000, "x"), "exist with the same primary key"),
        (twice, "two rows of the statement have the same primary key"),
        (rows(0, 5000, "x").set_column(2, "name", pa.nulls(5000, pa.string())), "column name of Goods is NOT NULL"),
        (rows(0, 9, "x").rename_columns(["amount", "ID", "nam"]), "table Goods has no column nam"),
        (rows(0, 9, "x").drop_columns(["ID"]), "column id is NOT NULL and has no default"),
        (rows(0, 9, "x").set_column(0, "amount", pa.array(["9"] * 9)), "amount is bigint, and takes no string"),
        (rows(0, 9, "x").set_column(1, "ID", pa.array([1 << 40] * 9)), "column id is int, and a value does not fit"),
    ):
        with pytest.raises(skerry.Error, match=why) as refused:
            cursor.load("goods", wrong)
        assert "INSERT" not in str(refused.value)  # nobody has written one
    assert other.execute("SELECT count(*) FROM goods").fetchall() == [(ROWS - 9,)]
    # Rows that exist stay, or are replaced, by the last of those with one key; also those that no file holds yet.
    cursor.execute("UPDATE goods SET name = 'between' WHERE id IN (8, 7, 12)")
    both = pa.concat_tables([rows(0, 6000, "x"), rows(5000, 7000, "second")])
    assert cursor.load("goods", both, on_conflict="nothing").rowcount == 9
    assert other.load("goods", both, on_conflict="replace").rowcount == 7000
    assert kiosk.load("goods", rows(3, 5, "few"), on_conflict="replace").rowcount == 2
    cursor.execute("DELETE FROM goods WHERE id = 6999")
    want = [("few", 2), ("first", ROWS - 7000), ("second", 1999), ("x", 4998)]
    assert cursor.execute("SELECT name, count(*) FROM goods GROUP BY name ORDER BY name").fetchall() == want
    wait_until(lambda: left_in(two_sites) == [], "nothing is left of the rows")
    for member in ("oslo", "bergen"):
        two_sites.stop_member(member)
        two_sites.start_member(member)
    asked = "SELECT name, count(*) FROM goods GROUP BY name ORDER BY name"
    assert wait_for(lambda: two_sites.connect("oslo").cursor().execute(asked).fetchall()) == want


def test_a_query_writes_more_than_a_message_holds(two_sites: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skerry.member.computing.COMPUTED_ROWS", 10_000)
    cursor = two_sites.connect("oslo").cursor()
    count = 12_000
    query = f"SELECT id, 'x' AS name FROM range({count})"
    made = "CREATE TABLE big PRIMARY KEY (id) DISTRIBUTED BY (id) AS "
    assert cursor.execute(made + query).rowcount == count
    assert cursor.execute("SELECT count(*), count(DISTINCT id) FROM big").fetchall() == [(count, count)]
    with pytest.raises(skerry.Error, match="exist with the same primary key"):
        cursor.execute(f"INSERT INTO big {query}")
    assert cursor.execute(f"INSERT INTO big {query} ON CONFLICT DO NOTHING").rowcount == 0
    assert cursor.execute("INSERT INTO big SELECT id, 'y' FROM big WHERE id > 50 ON CONFLICT DO REPLACE").rowcount > 0
    assert cursor.execute("SELECT count(*) FROM big WHERE name = 'x'").fetchall() == [(51,)]
    # UPDATE, DELETE and MERGE of as many: rows stay, move, go and come.
    # Others come between the read and the commit: a row is changed, and one is gone. It is computed again.
    own, other = two_sites.members["oslo"].own_tables, two_sites.connect("bergen").cursor()
    submit, between = own.submit, ["UPDATE big SET name = 'late' WHERE id = 5", "DELETE FROM big WHERE id = 6"]

    async def late(*args: Any, **kwargs: Any) -> Any:
        if between:
            await asyncio.to_thread(other.execute, between.pop(0))
        return await submit(*args, **kwargs)

    with monkeypatch.context() as hurried:
        hurried.setattr(own, "submit", late)
        assert cursor.execute("UPDATE big SET id = id + 1").rowcount == count - 1
    assert between == []
    assert cursor.execute("SELECT id, name FROM big WHERE id < 9 ORDER BY id").fetchall() == [
        (id, "late" if id == 6 else "x") for id in (1, 2, 3, 4, 5, 6, 8)
    ]
    cursor.execute("UPDATE big SET name = 'x' WHERE id = 6")
    cursor.execute("INSERT INTO big VALUES (7, 'x')")
    merge = (
        f"MERGE INTO big b USING (SELECT id FROM range({count + 3})) s ON b.id = s.id"
        " WHEN MATCHED AND b.id % 100 = 0 THEN DELETE WHEN MATCHED AND b.id > 10 THEN UPDATE SET name = 'y'"
        " WHEN NOT MATCHED THEN INSERT (id, name) VALUES (id, 'new')"
    )
    assert cursor.execute(merge).rowcount == count - 10 + 3
    names = cursor.execute("SELECT name, count(*), min(id) FROM big GROUP BY name ORDER BY name").fetchall()
    assert names == [("new", 3, 0), ("x", 10, 1), ("y", count - 10 - count // 100, 11)]
    assert cursor.execute("DELETE FROM big").rowcount == count + 3 - count // 100
    assert cursor.execute("SELECT count(*) FROM big").fetchall() == [(0,)]
    assert cursor.execute(f"INSERT INTO big {query}").rowcount == count
    # A copy at each member, of few rows that are large.
    cursor.execute("CREATE TABLE fat (id INT, n INT, body STRING) PRIMARY KEY (id) DISTRIBUTED GLOBALLY")
    assert cursor.execute("INSERT INTO fat SELECT id, 0, repeat('x', 20000) FROM range(300)").rowcount == 300
    merge = (
        "MERGE INTO fat USING (SELECT id FROM range(100, 400)) s ON fat.id = s.id"
        " WHEN MATCHED THEN UPDATE SET body = concat(body, 'y')"
        " WHEN NOT MATCHED THEN INSERT (id, n, body) VALUES (id, 1, repeat('z', 20000))"
        " WHEN NOT MATCHED BY SOURCE THEN DELETE"
    )
    assert cursor.execute(merge).rowcount == 400
    for name in ("oslo", "bergen"):
        found = cursor.execute(f"SELECT count(*), sum(n), min(id), sum(length(body)) FROM {name}.fat").fetchall()
        assert found == [(300, 100, 100, 300 * 20_000 + 200)]
    # Columns have other names than in the files, and there is one more.
    cursor.execute("ALTER TABLE big RENAME COLUMN id TO no")
    cursor.execute("ALTER TABLE big ADD COLUMN extra INT DEFAULT 3")
    told = cursor.execute("EXPLAIN ANALYZE INSERT INTO big (name, no) SELECT 'z', no + 1000000 FROM big").fetchall()
    assert "rows sent ahead, which became files there" in str(told)
    assert f"{count:,} rows changed" in str(told)
    sums = "SELECT count(*), count(DISTINCT no), sum(extra), count_if(name = 'z') FROM big"
    assert two_sites.connect("bergen").cursor().execute(sums).fetchall() == [(2 * count, 2 * count, 6 * count, count)]
    wait_until(lambda: left_in(two_sites) == [], "nothing is left of the rows")
