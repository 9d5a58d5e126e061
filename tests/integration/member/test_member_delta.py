"""Delta on Sail, which reads it without a package: pinned to a version, older ones by AS OF, others refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skerry.config import parse
from skerry.spark.engine import Engine
from skerry.testing.cluster import LocalCluster

pytestmark = pytest.mark.sail

CONFIG = """\
cluster: c
members:
  oslo: {address: 'h:1', spark: {sail: true}, tables: {t: {format: delta, path: t}}}
  bergen: {address: 'h:2', spark: {sail: true}, tables: {t: {format: delta, path: u}}}
"""


def append(session: Any, path: Path, first: int, upto: int) -> None:
    rows = session.range(first, upto).selectExpr("id", "CAST(id AS STRING) AS name")
    rows.write.format("delta").mode("append").save(str(path))


def test_sail_reads_one_version_of_a_delta_table(sail_engine: Engine, tmp_path: Path) -> None:
    session: Any = sail_engine.session  # type: ignore[attr-defined]
    append(session, tmp_path / "t", 0, 10)
    append(session, tmp_path / "t", 10, 15)
    append(session, tmp_path / "u", 100, 103)
    with (
        LocalCluster(parse(CONFIG, base_dir=tmp_path), engine=sail_engine) as cluster,
        cluster.connect("oslo") as connection,
    ):
        cursor = connection.cursor()

        def ask(sql: str) -> list[tuple[Any, ...]]:
            return cursor.execute(sql).fetchall()

        assert ask("SELECT count(*), max(id) FROM t") == [(18, 102)]
        assert ask("SELECT count(*) FROM oslo.t VERSION AS OF 0") == [(10,)]
        between = "SELECT id FROM oslo.t LEFT ANTI JOIN oslo.t VERSION AS OF 0 AS o USING (id) ORDER BY id"
        assert ask(between) == [(10,), (11,), (12,), (13,), (14,)]
        append(session, tmp_path / "t", 15, 17)
        assert ask("SELECT count(*), max(id) FROM oslo.t") == [(17, 16)]
        log = tmp_path / "u" / "_delta_log"
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"]}
        (log / f"{1:020d}.json").write_text(json.dumps({"protocol": protocol}))
        with pytest.raises(Exception, match="site bergen: table t: Sail reads no Delta table with deletionVectors"):
            ask("SELECT count(*) FROM t")
        assert ask("SELECT count(*) FROM oslo.t") == [(17,)]
