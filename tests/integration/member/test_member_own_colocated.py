"""Joins of tables of our own stay at the members where these are spread alike, and answer as those of plain rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from skerry.client.dbapi import Cursor
from skerry.config import load
from skerry.spark.engine import Engine
from skerry.testing.cluster import LocalCluster
from tests.integration.member.member_sites import PATIENT, nothing_left, write_sites

MADE = (
    "CREATE TABLE lefts (k DOUBLE, n INT, d STRING, v INT) PRIMARY KEY (k, d, n) DISTRIBUTED BY (k, d)",
    "CREATE TABLE rights (k DOUBLE, n INT, d STRING, w INT) PRIMARY KEY (k, d, n) DISTRIBUTED BY (k, d)",
    "CREATE TABLE names (id INT, name STRING) PRIMARY KEY (id) DISTRIBUTED GLOBALLY",
    "INSERT INTO names VALUES (0, 'none'), (1, 'one'), (2, NULL)",
)
KEYS = ("0.0", "-0.0", "'NaN'", "1.5", "2", "-7.25", "1e300")
JOIN = "lefts l {} rights r ON l.k = r.k AND r.d = l.d"
JOINED = (
    *(
        f"SELECT l.k, l.n, v, r.k, w FROM {JOIN.format(kind)}"
        for kind in ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
    ),
    *(f"SELECT l.k, l.n, v FROM {JOIN.format(kind)} AND w > v" for kind in ("LEFT SEMI JOIN", "LEFT ANTI JOIN")),
    "SELECT k, d, count(*), count(DISTINCT w), max(v) FROM lefts FULL JOIN rights USING (k, d) GROUP BY k, d",
    "SELECT v, name FROM lefts l LEFT JOIN names ON id = v WHERE EXISTS "
    "(SELECT 1 FROM rights r WHERE r.k = l.k AND r.d = l.d)",
    "SELECT k, n FROM lefts l WHERE (d, k) NOT IN (SELECT d, k FROM rights WHERE w > 1)",
    "SELECT k, d, (SELECT sum(w) FROM rights r WHERE r.k = l.k AND r.d = l.d) FROM lefts l",
    "SELECT k, n, row_number() OVER (PARTITION BY d, k ORDER BY n) FROM lefts",
    "SELECT DISTINCT d, v, k FROM lefts",
    "SELECT d, k, count(*), max(v) AS m FROM lefts GROUP BY k, d ORDER BY count(*) DESC, m, d",
    "SELECT l.n, v, w FROM " + JOIN.format("JOIN") + " ORDER BY l.n DESC, v, w LIMIT 4 OFFSET 1",
)
MERGED = "SELECT name, sum(w), count(*) FROM " + JOIN.format("LEFT JOIN") + " LEFT JOIN names ON id = v GROUP BY name"


@pytest.fixture(scope="module")
def cluster(
    sail_engine: Engine, fault_tables: Mapping[str, Mapping[str, Path]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalCluster]:
    folder = tmp_path_factory.mktemp("colocated")
    tables = {"oslo": fault_tables["oslo"], "bergen": {}, "tromso": {}}
    path = write_sites(folder / "skerry.yaml", tables, limits=PATIENT, more={"state": str(folder / "state")})
    with LocalCluster(load(path), engine=sail_engine) as cluster:
        yield cluster
        nothing_left(cluster)


def ask(cursor: Cursor, sql: str, rules: str = "all") -> list[str]:
    return sorted(map(repr, cursor.execute(sql, planning={"rules": rules}).fetchall()))


def test_what_is_spread_alike_stays(cluster: LocalCluster) -> None:
    cursor = cluster.connect("oslo").cursor()
    for statement in MADE:
        cursor.execute(statement)
    for sql in JOINED[:2]:
        assert ask(cursor, sql) == []
    # One key at first: two members have no row.
    for number, some in enumerate((KEYS[:1], KEYS)):
        for table, step in (("lefts", 1), ("rights", 2)):
            rows = [f"(DOUBLE({key}), {n}, '{'ab'[n % 2]}', {n % 3 or 'NULL'})" for n, key in enumerate(some[::step])]
            rows += [f"(DOUBLE({key}), {9 + n}, 'a', {n % 3})" for n, key in enumerate(some)]
            cursor.execute(f"INSERT INTO {table} VALUES {', '.join(rows)} ON CONFLICT DO REPLACE")
        if number:
            cursor.execute("FLUSH TABLE rights")
        for sql in (*JOINED, MERGED) if number else JOINED[:7]:
            assert ask(cursor, sql) == ask(cursor, sql, "none"), sql
    for sql in (*JOINED, MERGED):
        told = "\n".join(line for (line,) in cursor.execute(f"EXPLAIN {sql}").fetchall())
        assert "are there" in told, told
        assert told.count("\nfragment") == 3, told
        assert not re.search(r"reads .*edge", told), told
    # Over the links nothing goes but the answer, or its groups, to whoever asked.
    for sql in (JOINED[0], MERGED):
        told = "\n".join(line for (line,) in cursor.execute(f"EXPLAIN ANALYZE {sql}").fetchall())
        sent, made = (re.findall(rf"{words} ([\d,]+) rows?", told) for words in (r"link \w+ → oslo:", "in fact"))
        assert sum(map(_number, sent)) <= sum(map(_number, made)), told
        assert not re.search(r"link \w+ → (bergen|tromso)", told), told


def _number(text: str) -> int:
    return int(text.replace(",", ""))
