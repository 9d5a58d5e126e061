"""Tables of other formats than Parquet have statistics without ANALYZE TABLE: from their member's own Spark."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from pyarrow import orc

from skerry.model.table import ColumnStats, PartStats
from skerry.spark.engine import Engine
from skerry.testing.cluster import LocalCluster
from tests.integration.member.member_sites import (
    PATIENT,
    make_sites,
    nothing_left,
    slow_query,
    stats_of,
    wait_until,
)

pytestmark = pytest.mark.spark

ROWS = 400  # of each part
COLUMNS = {"id": "bigint", "day": "date", "cost": "decimal(9,2)", "load": "double", "word": "string", "rare": "int"}
SITES = ("oslo", "bergen")
# A site scans one table after the other, each in a moment without queries, and tells of all of them at once.
SCANNED_S = 180.0
# What ANALYZE TABLE is asked about, and where.
KEPT = (("oslo", "t_csv"), ("bergen", "t_csv"), ("oslo", "ticks"))


def rows(first: int, count: int = ROWS) -> list[dict[str, Any]]:
    return [
        {
            "id": n,
            "day": f"2024-{1 + n % 12:02d}-05",
            "cost": f"{n}.25",
            "load": n % 10 / 4,
            "word": f"wörd {n % 50:02d}",
            "rare": n if n % 4 == 0 else None,
        }
        for n in range(first, first + count)
    ]


def write(folder: Path, kind: str, name: str, made: list[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "csv":
        lines = [",".join("" if value is None else str(value) for value in row.values()) for row in made]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    elif kind == "json":
        texts = [json.dumps(row | {"cost": float(row["cost"])}, ensure_ascii=False) for row in made]
        (folder / f"{name}.json").write_text("\n".join(texts) + "\n", encoding="utf-8")
    else:
        types = {"id": pa.int64(), "day": pa.date32(), "cost": pa.decimal128(9, 2), "rare": pa.int32()}
        columns = {key: pa.array([row[key] for row in made]) for key in COLUMNS}
        columns |= {key: columns[key].cast(kind) for key, kind in types.items()}
        orc.write_table(pa.table(columns), folder / f"{name}.orc")


class Sites:
    """Parts of `t_<format>` at both sites: ids 0 to 399 and 400 to 799."""

    def __init__(self, root: Path, engine: Engine, formats: tuple[str, ...], spark: dict[str, Any]) -> None:
        self.root, self.engine, self.spark = root, engine, spark
        self.more: dict[str, Any] = {}
        self.members: dict[str, Any] = {
            site: {"address": f"127.0.0.1:{7101 + place}", "spark": spark, "tables": {}}
            for place, site in enumerate(SITES)
        }
        for kind in formats:
            for place, site in enumerate(SITES):
                self.add(site, f"t_{kind}", kind)
                write(root / site / f"t_{kind}", kind, "a", rows(place * ROWS))

    def add(self, site: str, name: str, kind: str, **more: Any) -> Path:
        table = {"format": kind, "path": f"{site}/{name}", "columns": COLUMNS} | more
        self.members[site]["tables"][name] = {key: value for key, value in table.items() if value}
        return self.root / site / name

    def start(self, **limits: float) -> LocalCluster:
        text = {
            "cluster": "scanned",
            "data_root": str(self.root),
            "members": self.members,
            "limits": {**PATIENT, **limits},
        } | self.more
        path = self.root / "skerry.yaml"
        path.write_text(yaml.safe_dump(text, sort_keys=False), encoding="utf-8")
        cluster = LocalCluster(str(path), engine=self.engine)
        cluster.start()
        return cluster


def known(cluster: LocalCluster) -> list[PartStats | None]:
    return [stats_of(cluster, site, site, name) for site, name in KEPT]


def told(cluster: LocalCluster, at: str, site: str, table: str) -> dict[str, ColumnStats]:
    seen: list[PartStats] = []

    def is_told() -> bool:
        stats = stats_of(cluster, at, site, table)
        seen[:] = [] if stats is None else [stats]
        return bool(seen)

    wait_until(is_told, f"statistics of {table}", SCANNED_S)
    assert seen[0].source == "spark"
    return {column.name: column for column in seen[0].columns}


def ask(cluster: LocalCluster, sql: str, rules: str = "all") -> list[tuple[Any, ...]]:
    with cluster.connect("bergen") as connection, connection.cursor() as cursor:
        return cursor.execute(sql, planning={"rules": rules}).fetchall()


def left_out(cluster: LocalCluster, sql: str) -> list[str]:
    ((text,),) = ask(cluster, f"EXPLAIN FORMAT JSON {sql}")
    return [each["member"] for each in json.loads(text).get("left_out", ())]


def check_found(cluster: LocalCluster, table: str) -> None:
    found = told(cluster, "bergen", "oslo", table)
    assert list(found) == list(COLUMNS)
    assert (found["id"].low, found["id"].high, found["id"].nulls) == (0, ROWS - 1, 0)
    assert found["id"].ndv == pytest.approx(ROWS, rel=0.15)
    assert (found["word"].low, found["word"].high) == ("wörd 00", "wörd 49")
    assert found["word"].ndv == pytest.approx(50, abs=6)
    assert found["word"].width_bytes == pytest.approx(8 + 4)
    assert (found["cost"].low, found["cost"].high) == ("0.25", f"{ROWS - 1}.25")
    assert (found["load"].low, found["load"].high) == (0.0, 2.25)
    assert found["load"].ndv == pytest.approx(10, abs=2)
    assert found["rare"].nulls == ROWS - ROWS // 4
    assert all(found[name].is_exact for name in ("id", "day", "cost", "word", "rare"))


def check_used(cluster: LocalCluster, sites: Sites, kind: str) -> None:
    """The planner goes by it, and is right; files that came later are counted in."""
    table = f"t_{kind}"
    told(cluster, "bergen", "oslo", table)
    told(cluster, "bergen", "bergen", table)
    for condition, without in ((f"id < {ROWS}", ["bergen"]), ("cost > 399.25", ["oslo"]), ("word > 'wörd 2'", [])):
        sql = f"SELECT id, word FROM {table} WHERE {condition}"
        assert left_out(cluster, sql) == without, condition
        assert sorted(ask(cluster, sql)) == sorted(ask(cluster, sql, rules="none"))
    write(sites.root / "oslo" / table, kind, "b", rows(5000, 4))
    assert len(ask(cluster, f"SELECT id FROM {table} WHERE id > 4000")) == 4
    wait_until(lambda: told(cluster, "bergen", "oslo", table)["id"].high == 5003, "new statistics", SCANNED_S)
    assert left_out(cluster, f"SELECT id FROM {table} WHERE id > 4000") == ["bergen"]


def test_on_spark(spark_engine: Engine, tmp_path: Path) -> None:
    formats = ("csv", "json", "orc")
    sites = Sites(tmp_path, spark_engine, formats, {"master": "local[2]"})
    # Seen: of a record that is dropped for one column the others are there for a query that reads only them.
    for place, site in enumerate(SITES):
        folder = sites.add(site, "loose", "csv", columns={"a": "int", "b": "int"}, options={"mode": "DROPMALFORMED"})
        folder.mkdir(parents=True)
        (folder / "a.csv").write_text(f"{1 + place * 100},2\n{7 + place * 100},x\n")
    cluster = sites.start()
    try:
        for kind in formats:
            check_found(cluster, f"t_{kind}")
        check_used(cluster, sites, "orc")
        told(cluster, "bergen", "oslo", "loose")
        assert sorted(ask(cluster, "SELECT a FROM loose WHERE a > 5")) == [(7,), (101,), (107,)]
        ask(cluster, "ANALYZE TABLE loose")
        assert sorted(ask(cluster, "SELECT a FROM loose WHERE a > 5")) == [(7,), (101,), (107,)]
        nothing_left(cluster)
    finally:
        cluster.stop()


@pytest.fixture
def sail_sites(sail_engine: Engine, tmp_path: Path) -> Sites:
    return Sites(tmp_path, sail_engine, ("csv", "json"), {"sail": True})


def test_on_sail(sail_sites: Sites) -> None:
    write(sail_sites.add("oslo", "secret", "csv", leaves="never"), "csv", "a", rows(0))
    cluster = sail_sites.start()
    try:
        for kind in ("csv", "json"):
            check_found(cluster, f"t_{kind}")
            check_used(cluster, sail_sites, kind)
        secret = told(cluster, "bergen", "oslo", "secret")["id"]
        assert (secret.low, secret.high) == (None, None)
        assert secret.ndv == pytest.approx(ROWS, rel=0.15)
        nothing_left(cluster)
    finally:
        cluster.stop()


def test_broken_and_large_tables_go_without(sail_sites: Sites, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "skerry")
    folder = sail_sites.add("oslo", "broken", "csv", columns={"a": "int", "b": "int"})
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("1,2\n3,x\n")
    size = sum(file.stat().st_size for file in (sail_sites.root / "oslo" / "t_csv").iterdir())
    write(sail_sites.add("oslo", "large", "csv"), "csv", "a", rows(0, 2 * ROWS))
    cluster = sail_sites.start(stats_scan_bytes=3 * size // 2)
    try:
        told(cluster, "bergen", "oslo", "t_csv")
        wait_until(
            lambda: [text for text in caplog.messages if text.startswith("statistics of broken: ")],
            "the line",
            SCANNED_S,
        )
        assert ask(cluster, "SELECT a FROM broken ORDER BY a") == [(1,), (3,)]
        wait_until(lambda: not cluster.members["oslo"].tables._gathering._under_way, "the end of all", SCANNED_S)
        assert stats_of(cluster, "oslo", "oslo", "broken") is None
        assert stats_of(cluster, "oslo", "oslo", "large") is None
        lines = [record for record in caplog.records if "statistics" in record.getMessage()]
        assert [record.levelname for record in lines] == ["WARNING"]
        assert not [record for record in caplog.records if record.exc_info]
    finally:
        cluster.stop()


def test_a_busy_member_waits(sail_sites: Sites) -> None:
    for site, tables in make_sites(sail_sites.root / "ticks").items():
        for name in tables if site in SITES else ():
            sail_sites.members[site]["tables"][name] = {"format": "parquet", "path": f"ticks/{site}/{name}"}
    cluster = sail_sites.start()
    try:
        oslo = cluster.members["oslo"]
        told(cluster, "oslo", "oslo", "t_csv")
        wait_until(lambda: not oslo.tables._gathering._under_way, "the first statistics", SCANNED_S)
        with cluster.connect("bergen") as connection:
            cursor = connection.cursor().execute(slow_query("oslo"), detach=True)
            wait_until(lambda: oslo.participants, "the query")
            write(sail_sites.root / "oslo" / "t_csv", "csv", "b", rows(5000, 4))
            assert cluster.call(oslo.tables.snapshot("t_csv")).part.stats is None
            wait_until(lambda: oslo.tables._gathering._waiting == {"t_csv"}, "waiting")
            assert not [name for name in sail_sites.engine.leftovers() if "oslo-statistics" in name]
            assert oslo.participants
            cursor.cancel()
        wait_until(lambda: not oslo.participants, "the query's end")
        assert told(cluster, "oslo", "oslo", "t_csv")["id"].high in (ROWS - 1, 5003)
        wait_until(lambda: told(cluster, "oslo", "oslo", "t_csv")["id"].high == 5003, "new statistics", SCANNED_S)
        nothing_left(cluster)
    finally:
        cluster.stop()


def test_a_query_that_comes_ends_the_job(sail_sites: Sites) -> None:
    for name in make_sites(sail_sites.root / "ticks")["oslo"]:
        sail_sites.members["oslo"]["tables"][name] = {"format": "parquet", "path": f"ticks/oslo/{name}"}
    cluster = sail_sites.start()
    try:
        oslo = cluster.members["oslo"]
        told(cluster, "oslo", "oslo", "t_csv")
        wait_until(lambda: not oslo.tables._gathering._under_way, "the first statistics", SCANNED_S)
        waiting, under_way = oslo.tables._gathering._waiting, oslo.tables._gathering._under_way
        folder = sail_sites.root / "oslo" / "t_csv"
        write(folder, "csv", "b", rows(5000, 20_000))
        text = (folder / "b.csv").read_text(encoding="utf-8")

        def is_scanned() -> bool:
            return any("oslo-statistics" in name for name in sail_sites.engine.leftovers())

        with cluster.connect("bergen") as connection:
            for _ in range(10):
                # Seconds of work, if nobody ended it; but this thread may have no turn for as long.
                with (folder / "b.csv").open("a", encoding="utf-8") as file:
                    for _ in range(100):
                        file.write(text)
                cluster.call(oslo.tables.snapshot("t_csv"))
                wait_until(lambda: is_scanned() or not under_way, "the job", SCANNED_S)
                cursor = connection.cursor().execute(slow_query("oslo"), detach=True)
                wait_until(lambda: waiting == {"t_csv"} or not under_way, "the job's end")
                if waiting:
                    break
                cursor.cancel()
                wait_until(lambda: not oslo.participants, "the query's end")
            assert waiting == {"t_csv"}
            assert not is_scanned()
            assert oslo.participants
            cursor.cancel()
        wait_until(lambda: not oslo.participants, "the query's end")
        wait_until(lambda: told(cluster, "oslo", "oslo", "t_csv")["id"].high == 24_999, "new statistics", SCANNED_S)
        nothing_left(cluster)
    finally:
        cluster.stop()


def test_a_member_that_starts_again_knows_what_it_knew(sail_sites: Sites) -> None:
    for name in make_sites(sail_sites.root / "ticks")["oslo"]:
        sail_sites.members["oslo"]["tables"][name] = {"format": "parquet", "path": f"ticks/oslo/{name}"}
    sail_sites.more = {"state": "state"}
    join = "SELECT t.word, count(*) AS n FROM oslo.t_csv t JOIN bergen.t_csv u ON t.word = u.word GROUP BY t.word"
    cluster = sail_sites.start(stats_scan_bytes=0)
    try:
        wait_until(lambda: not cluster.members["oslo"].tables._gathering._under_way, "statistics of files")
        ask(cluster, "ANALYZE TABLE t_csv")
        ask(cluster, "ANALYZE TABLE ticks FOR COLUMNS kind")
        wait_until(lambda: all(each and each.source == "analyze" for each in known(cluster)), "what was found")
        before = known(cluster)
        answer = sorted(ask(cluster, join))
        wait_until(lambda: cluster.members["bergen"].observed.all(), "sizes of edges")
        seen = cluster.members["bergen"].observed.all()
    finally:
        cluster.stop()
    write(sail_sites.root / "bergen" / "t_json", "json", "b", rows(9000, 3))
    cluster = sail_sites.start(stats_scan_bytes=0)
    try:
        # At once: nothing was gathered.
        assert known(cluster) == before
        assert dict(seen).items() <= dict(cluster.members["bergen"].observed.all()).items()
        assert left_out(cluster, f"SELECT id FROM t_csv WHERE id < {ROWS}") == ["bergen"]
        assert sorted(ask(cluster, join)) == answer
        assert ask(cluster, "SELECT count(*) FROM bergen.t_json") == [(ROWS + 3,)]
        # A changed file voids what is kept of its table, for proofs too.
        write(sail_sites.root / "bergen" / "t_csv", "csv", "b", rows(0, 4))
        assert len(ask(cluster, f"SELECT id FROM t_csv WHERE id < {ROWS}")) == ROWS + 4
        cluster.stop_member("bergen")
        write(sail_sites.root / "oslo" / "t_csv", "csv", "b", rows(9000, 4))
        cluster.stop_member("oslo")
        for site in SITES:
            cluster.start_member(site)
        assert stats_of(cluster, "oslo", "oslo", "t_csv") is None
        assert len(ask(cluster, "SELECT id FROM t_csv WHERE id >= 9000")) == 4
    finally:
        cluster.stop()
