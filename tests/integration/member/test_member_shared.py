"""Scans of one query that a member's Spark keeps planned share a job: each user has its own rows all the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from skerry.config import load
from skerry.model.errors import Overloaded
from skerry.spark.engine import Engine
from skerry.testing.asking import ask
from skerry.testing.cluster import LocalCluster

pytestmark = pytest.mark.spark

RULES = """
roles:
  north: [{on: sales, select: true}, {on: "*", select: true, where: "region = 'north'", masks: {name: "upper(name)"}}]
  some: [{on: sales, select: true}, {on: "*", select: [k, name]}]
  all: [{on: "*", select: true}]
users: {ann: [north], bob: [some], sue: [all]}
"""
SALES, KEYS = 20_000, 10
SCANNED = ("bergen.buyers", "bergen.goods", "tromso.buyers", "tromso.goods")
SQL = (
    f"SELECT {', '.join(f'min(t{n}.name) AS n{n}' for n in range(4))}, count(*) AS c FROM oslo.sales s "
    + " ".join(f"JOIN {table} t{n} ON t{n}.k = s.k{n}" for n, table in enumerate(SCANNED))
    + " WHERE s.id >= :first"
)


def seen(user: str, first: int) -> list[tuple[Any, ...]]:
    """What the query gives, by what the rules say. Row i of the sales has the key i in all four columns."""
    letter = "T" if user == "ann" else "t"
    count = sum(user != "ann" or n % KEYS % 3 > 0 for n in range(first, SALES))
    return [(*(f"{letter}{n}" for n in range(4)), count)]


@pytest.fixture(scope="module")
def sharing(spark_engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Three members on one Spark; two of them have two small tables each."""
    root = tmp_path_factory.mktemp("sharing")
    (root / "rules.yaml").write_text(RULES)
    ids = pa.array(range(SALES), pa.int32())
    keys = pa.array([key % KEYS for key in range(SALES)], pa.int32())
    tables = {"oslo.sales": pa.table({"id": ids, **{f"k{n}": keys for n in range(4)}})}
    for n, table in enumerate(SCANNED):
        regions = ["north" if key % 3 else "south" for key in range(KEYS)]
        tables[table] = pa.table({"k": keys[:KEYS], "name": [f"t{n}"] * KEYS, "region": regions})
    members: dict[str, Any] = {}
    for number, (name, rows) in enumerate(tables.items()):
        (root / name).mkdir()
        pq.write_table(rows, root / name / "0.parquet")
        member, _, table = name.partition(".")
        members.setdefault(member, {"address": f"127.0.0.1:{7101 + number}", "tables": {}})
        members[member]["tables"][table] = {"format": "parquet", "path": name}
    text = {"cluster": "sharing", "data_root": str(root), "members": members, "state": str(root / "state")}
    text["access"] = {"rules": "rules.yaml"}
    (root / "skerry.yaml").write_text(yaml.safe_dump(text, sort_keys=False))
    with LocalCluster(load(root / "skerry.yaml"), engine=spark_engine) as cluster:
        for each in members:
            ask(cluster, each, "sue", "SHOW TABLES")  # all have told their tables
        yield cluster


def rows(cluster: LocalCluster, user: str, sql: str = SQL, first: int = 0) -> list[tuple[Any, ...]]:
    found = ask(cluster, "oslo", user, sql.replace(":first", str(first)))
    return [tuple(row.values()) for row in found.to_pylist()]


def sharers(cluster: LocalCluster, user: str, first: int = 0) -> dict[str, list[list[int]]]:
    """By member: with whom each fragment there shared its Spark job."""
    ((text,),) = rows(cluster, user, f"EXPLAIN ANALYZE FORMAT JSON {SQL}", first)
    found: dict[str, list[list[int]]] = {}
    for each in json.loads(text)["fragments"]:
        found.setdefault(each["member"], []).append(each["actual"].get("shared_with", []))
    return found


def test_each_user_has_its_own_rows_of_shared_jobs(sharing: LocalCluster) -> None:
    """How many rows ann sees nobody knows before, so hers do not return through the driver, and share nothing."""
    users = ("ann", "bob", "sue")
    for user in users:
        for _ in range(2):
            assert rows(sharing, user) == seen(user, 0)
    for user in ("bob", "sue"):
        found = sharers(sharing, user)
        assert [[len(each) for each in found[at]] for at in ("bergen", "tromso")] == [[1, 1], [1, 1]], found
    with ThreadPoolExecutor(6) as pool:
        asked = [(user, first) for first in (0, 7, 19_990) for user in users * 3]
        given = list(pool.map(lambda each: rows(sharing, each[0], first=each[1]), asked))
    assert given == [seen(*each) for each in asked]


def test_a_cap_ends_all_of_a_shared_job(sharing: LocalCluster) -> None:
    for _ in range(3):
        assert rows(sharing, "sue", first=1) == seen("sue", 1)
    with pytest.raises(Overloaded, match="edge_rows"):
        ask(sharing, "oslo", "sue", SQL.replace(":first", "1"), edge_rows=f"{KEYS - 1}")
    assert rows(sharing, "sue", first=1) == seen("sue", 1)
