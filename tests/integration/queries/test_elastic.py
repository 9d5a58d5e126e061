"""Groups that members fold, one member at first and then all: exactly one engine's answer, whatever the keys."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import skerry
from skerry.spark.engine import Engine
from skerry.testing.checkers import same_table
from skerry.testing.cluster import LocalCluster

pytestmark = pytest.mark.sail

# The fourth has no part of the table: it folds groups of others alone.
SITES = ("oslo", "bergen", "tromso", "narvik")
ROWS = 2400
THRESHOLD = 100
ELASTIC = {"group_by": "elastic"}
WIDE = Decimal(10**30)

QUERIES = [
    "SELECT k, sum(x) AS s, count(*) AS n FROM t GROUP BY k HAVING sum(x) > 20",
    "SELECT k, sum(x), avg(x), min(d), max(s), count(d), stddev(d), var_pop(x) FROM t GROUP BY k",
    "SELECT k, sum(x) * 2 - count(*) AS q FROM t WHERE x > -50 GROUP BY k ORDER BY q DESC, k LIMIT 7 OFFSET 2",
    "SELECT k, sum(x) AS s FROM t GROUP BY k ORDER BY k LIMIT 12",
    "SELECT k, max(x) AS m FROM t GROUP BY k ORDER BY k",
    "SELECT s, k % 3 AS j, bit_xor(x), bool_or(x > 98) FROM t GROUP BY s, k % 3",
    "SELECT k, count(DISTINCT s), count(DISTINCT x) FROM t GROUP BY k HAVING count(*) > 2",
    "SELECT DISTINCT k, s FROM t",
    "SELECT w, sum(w) AS s, sum(c) AS a FROM t GROUP BY w HAVING count(*) > 0",
    "SELECT k, count(DISTINCT s, c), sum(x) FROM t GROUP BY k HAVING count(DISTINCT d) > 1",
    "SELECT date_add(DATE '2020-01-01', CAST(k AS INT)) AS day, sum(c) FROM t GROUP BY 1",
    "SELECT k, s, min(b) FROM t WHERE k IS NOT NULL GROUP BY k, s HAVING min(x) < max(x)",
    "SELECT t.k, sum(t.x) AS s FROM t JOIN u ON t.k = u.k GROUP BY t.k HAVING sum(t.x) <> 0",
]


def rows(first: int) -> pa.Table:
    """Each key is at every site; some are NULL, and of the decimals many are wide."""
    ids = range(first, first + ROWS)
    mixed = [(i * 7919 + i // 7) % 1201 for i in ids]
    columns: dict[str, Any] = {
        "k": pa.array([None if m == 11 else m for m in mixed], pa.int64()),
        "x": pa.array([None if i % 29 == 0 else (i * 31) % 200 - 100 for i in ids], pa.int32()),
        "s": pa.array([None if m % 401 == 3 else f"ß{m % 401}" for m in mixed]),
        "d": pa.array([i / 8 for i in ids], pa.float64()),
        "r": pa.array([(math.nan, 0.0, -0.0, float(m))[min(m % 60, 3)] for m in mixed], pa.float64()),
        "w": pa.array([WIDE * (m - 600) for m in mixed], pa.decimal128(38, 2)),
        "c": pa.array([Decimal(i % 977) / 100 for i in ids], pa.decimal128(9, 2)),
        "b": pa.array([bytes([m % 7, m % 251]) for m in mixed], pa.binary()),
    }
    return pa.table(columns)


def place(root: Path, links: list[dict[str, Any]] | None = None, **limits: Any) -> Path:
    """A table with parts at three of four sites, which is whole at the first as `whole`."""
    members: dict[str, Any] = {
        site: {"address": f"127.0.0.1:{7101 + index}", "spark": {"sail": True}, "tables": {}}
        for index, site in enumerate(SITES)
    }

    def put(site: str, table: str, found: pa.Table) -> None:
        folder = root / site / table
        folder.mkdir(parents=True)
        pq.write_table(found, folder / "1.parquet")
        members[site]["tables"][table] = {"format": "parquet", "path": f"{site}/{table}"}

    parts = [rows(index * ROWS) for index in range(3)]
    for site, part in zip(SITES, parts, strict=False):
        put(site, "t", part)
    put("oslo", "whole", pa.concat_tables(parts))
    put("bergen", "u", pa.table({"k": pa.array(range(0, 1201, 2), pa.int64())}))
    path = root / "skerry.yaml"
    found: dict[str, Any] = {"cluster": "elastic", "data_root": str(root), "members": members}
    found["limits"] = {"group_by_groups": THRESHOLD, **limits}
    if links:
        found["links"] = links
    path.write_text(yaml.safe_dump(found))
    return path


@pytest.fixture(scope="module")
def cluster(sail_engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(str(place(tmp_path_factory.mktemp("elastic"))), engine=sail_engine) as found:
        yield found


def ask(cluster: LocalCluster, query: str, planning: dict[str, str] | None = None, at: str = "oslo") -> pa.Table:
    with cluster.connect(at) as connection, connection.cursor() as cursor:
        return cursor.execute(query, planning=planning or {}).fetch_arrow_table()


def told(cluster: LocalCluster, query: str) -> str:
    return "\n".join(ask(cluster, query, ELASTIC).column(0).to_pylist())


def let_go(cluster: LocalCluster) -> None:
    """Until no member holds anything of a query."""
    give_up = time.monotonic() + 30
    while held := [name for name, member in cluster.members.items() if member.resources.queries]:
        assert time.monotonic() < give_up, held
        time.sleep(0.01)


@pytest.mark.parametrize("query", QUERIES)
def test_members_fold_what_one_engine_answers(cluster: LocalCluster, query: str) -> None:
    assert "group, elastic" in told(cluster, f"EXPLAIN {query}")
    at_one, is_ordered = query.replace("FROM t", "FROM whole AS t"), "ORDER BY" in query
    same_table(ask(cluster, query, ELASTIC), ask(cluster, at_one), is_ordered)
    # Asked at a member that folds nothing of its own rows.
    same_table(ask(cluster, query, ELASTIC, "narvik"), ask(cluster, at_one), is_ordered)


def test_zeros_and_nans_are_one_key_each(cluster: LocalCluster) -> None:
    # Sail itself takes -0.0 for another key than 0.0 (Spark does not).
    found = ask(cluster, "SELECT r, count(*) AS n FROM t GROUP BY r HAVING r = 0 OR isnan(r)", ELASTIC).to_pylist()
    kinds = sorted("nan" if math.isnan(each["r"]) else "zero" for each in found)
    assert kinds == ["nan", "zero"]
    counts = {("nan" if math.isnan(each["r"]) else "zero"): each["n"] for each in found}
    values = [value for index in range(3) for value in rows(index * ROWS).column("r").to_pylist()]
    assert counts == {"nan": sum(map(math.isnan, values)), "zero": values.count(0.0)}


def test_what_it_did_is_told(cluster: LocalCluster) -> None:
    text = told(cluster, "EXPLAIN ANALYZE SELECT k, sum(x) FROM t GROUP BY k")
    assert "recruited 3 members in 2 splits" in text
    few = told(cluster, "EXPLAIN ANALYZE SELECT k % 5, sum(x) FROM t GROUP BY k % 5")
    assert few.count("was not recruited") == 3


def test_without_the_setting_nothing_is_another(cluster: LocalCluster) -> None:
    plain = "\n".join(
        ask(cluster, "EXPLAIN SELECT k, sum(x) FROM t GROUP BY k HAVING sum(x) > 1").column(0).to_pylist()
    )
    assert "elastic" not in plain
    with pytest.raises(skerry.Error, match="group_by is one of merge, elastic"):
        ask(cluster, "SELECT 1", {"group_by": "always"})


def test_what_has_no_kernel_is_merged_as_ever(cluster: LocalCluster) -> None:
    query = "SELECT k, size(collect_list(x)) AS n FROM t GROUP BY k"
    assert "elastic" not in told(cluster, f"EXPLAIN {query}")
    same_table(ask(cluster, query, ELASTIC), ask(cluster, query.replace("FROM t", "FROM whole AS t")), False)


def test_groups_that_are_made_in_several_ways_are_merged_as_ever(cluster: LocalCluster) -> None:
    query = "SELECT k, s, sum(x) FROM t GROUP BY ROLLUP (k, s)"
    assert "elastic" not in told(cluster, f"EXPLAIN {query}")
    same_table(ask(cluster, query, ELASTIC), ask(cluster, query.replace("FROM t", "FROM whole AS t")), False)


def test_a_sum_that_is_too_large_is_an_error(cluster: LocalCluster) -> None:
    query = "SELECT k, sum(9000000000000000000 + k) AS s FROM t GROUP BY k"
    with pytest.raises(skerry.Error, match=r"(?i)overflow|out of range"):
        ask(cluster, query, ELASTIC)
    assert ask(cluster, "SELECT count(*) AS n FROM whole").to_pylist() == [{"n": 3 * ROWS}]


def test_rows_do_not_go_where_they_may_not(sail_engine: Engine, tmp_path: Path) -> None:
    """To tromso a query may send next to nothing; narvik is reached by no link that leads back."""
    fast = {"mbit": 1000, "ms": 1}
    links: list[dict[str, Any]] = [
        {"from": "oslo", "to": "bergen", **fast},
        {"from": "bergen", "to": "oslo", **fast},
        {"from": "tromso", "to": "oslo", **fast},
        {"from": "tromso", "to": "bergen", **fast},
        {"from": "oslo", "to": "tromso", "query_bytes": 2000, **fast},
        {"from": "bergen", "to": "tromso", "query_bytes": 2000, **fast},
        {"from": "oslo", "to": "narvik", **fast},
        {"from": "bergen", "to": "narvik", **fast},
    ]
    with LocalCluster(str(place(tmp_path, links)), engine=sail_engine) as cluster:
        query = "SELECT k, sum(x) AS s FROM t GROUP BY k HAVING sum(x) > 0"
        text = told(cluster, f"EXPLAIN ANALYZE {query}")
        (members,) = {line.strip() for line in text.splitlines() if "group, elastic" in line}
        assert "tromso" not in members
        assert "narvik" not in members
        assert "recruited 1 members" in text
        assert not any(f"→ {away}:" in text for away in ("tromso", "narvik"))
        same_table(ask(cluster, query, ELASTIC), ask(cluster, query.replace("FROM t", "FROM whole AS t")), False)


def test_groups_that_nobody_has_room_for_go_to_disk(sail_engine: Engine, tmp_path: Path) -> None:
    limits = {"group_by_members": 2, "group_by_memory_bytes": 200_000, "batch_rows": 200, "narrow_batch_rows": 200}
    with LocalCluster(str(place(tmp_path, **limits)), engine=sail_engine) as cluster:
        query = "SELECT d, s, k, count(*) AS n, max(b) AS b FROM t GROUP BY d, s, k"
        assert "went to disk" in told(cluster, f"EXPLAIN ANALYZE {query}")
        same_table(ask(cluster, query, ELASTIC), ask(cluster, query.replace("FROM t", "FROM whole AS t")), False)
        let_go(cluster)


def test_a_group_by_that_is_cancelled_or_loses_a_member_ends_clean(sail_engine: Engine, tmp_path: Path) -> None:
    with LocalCluster(str(place(tmp_path)), engine=sail_engine) as cluster:
        query = "SELECT t.k, t.s, w.k, sum(t.x * w.x) FROM t JOIN whole AS w ON t.k % 40 = w.k % 40 GROUP BY 1, 2, 3"
        for lost in ("", "bergen"):
            errors: list[BaseException] = []

            def run(found: list[BaseException] = errors) -> None:
                try:
                    ask(cluster, query, ELASTIC)
                except skerry.Error as error:
                    found.append(error)

            with cluster.connect("oslo") as connection:
                thread = threading.Thread(target=run)
                thread.start()
                while not (running := [each for each in connection.queries() if each.state == "running"]):
                    time.sleep(0.01)
                if lost:
                    cluster.stop_member(lost)
                else:
                    connection.cancel(running[0].query)
                thread.join(60)
            assert len(errors) == 1
            let_go(cluster)
