"""Groups of buckets move between members while queries and writes run on Sail: every answer is right, or an error."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import skerry
from skerry.member import moving
from skerry.testing.cluster import LocalCluster

ROWS = 3000


def rebalanced(cursor: Any, without: str = "") -> int:
    """All moves, one after the other; how many."""
    moves = 0
    while cursor.execute(f"REBALANCE TABLES{without}").fetchall():
        moves += 1
    return moves


def test_queries_and_writes_go_on_while_rows_move(two_sites: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "MOVE_BYTES", 30_000)  # several moves
    cursor, kiosk = two_sites.connect("oslo").cursor(), two_sites.connect("kiosk").cursor()
    cursor.execute("CREATE TABLE stock (id INT, name STRING) PRIMARY KEY (id) DISTRIBUTED BY (id)")
    cursor.execute("CREATE TABLE sold (id INT, amount INT) PRIMARY KEY (id) DISTRIBUTED BY (id)")
    cursor.execute("CREATE TABLE rates (code INT, rate INT) PRIMARY KEY (code) DISTRIBUTED GLOBALLY")
    cursor.execute("INSERT INTO rates VALUES (1, 10), (2, 20)")
    for table, value in (("stock", "'item'"), ("sold", "id")):
        cursor.execute(f"INSERT INTO {table} SELECT id, {value} FROM (SELECT explode(sequence(1, {ROWS})) AS id)")
    before = two_sites.connect("oslo").cursor()
    before.execute("BEGIN")
    before.execute("INSERT INTO stock VALUES (-1, 'never')")
    moment = cursor.connection.last_commit
    is_over, written, wrong = threading.Event(), [0], list[Any]()

    def write() -> None:
        own = two_sites.connect("bergen").cursor()
        while not is_over.is_set():
            own.execute("INSERT INTO stock VALUES (?, 'later')", (ROWS + written[0] + 1,))
            written[0] += 1

    def read() -> None:
        own = two_sites.connect("bergen").cursor()
        query = "SELECT count(*), count(DISTINCT id), min(rate) FROM sold JOIN stock USING (id) CROSS JOIN rates"
        while not is_over.is_set():
            rows = own.execute(query).fetchall()
            wrong.extend(row for row in rows if row != (2 * ROWS, ROWS, 10))

    threads = [threading.Thread(target=each) for each in (write, read)]
    for each in threads:
        each.start()
    try:
        moves = rebalanced(kiosk, " WITHOUT (bergen)")
        assert {line[1] for line in kiosk.execute("SHOW TABLE STATUS").fetchall()} == {"oslo"}
        moves += rebalanced(kiosk)
    finally:
        is_over.set()
        for each in threads:
            each.join()
    assert moves >= 6
    assert not wrong
    assert cursor.execute("SELECT count(*), count(DISTINCT id) FROM stock").fetchall() == [(ROWS + written[0],) * 2]
    assert written[0]
    buckets = {line[:2]: line[2] for line in cursor.execute("SHOW TABLE STATUS").fetchall()}
    assert buckets["stock", "oslo"] == buckets["sold", "bergen"] == 8192
    assert cursor.execute("SELECT name FROM stock WHERE id = 7").fetchall() == [("item",)]
    # Who began before the last move is told so: of an earlier moment nobody has all rows.
    with pytest.raises(skerry.OperationalError, match="its history begins at"):
        cursor.execute(f"SELECT count(*) FROM stock VERSION AS OF {moment}")
    with pytest.raises(skerry.OperationalError, match="rolled back, and nothing of it was written"):
        before.execute("COMMIT")
    assert cursor.execute("SHOW REBALANCE").fetchall() == []
    with pytest.raises(skerry.Error, match="WITHOUT: unknown member bergn"):
        cursor.execute("REBALANCE TABLES WITHOUT (bergn)")
