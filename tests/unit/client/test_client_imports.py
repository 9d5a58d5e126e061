"""The client loads nothing of a member's, also where it is installed."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from decimal import Decimal

import pyarrow as pa

from tests.unit.client.scripted_member import Answers, member_with

TABLE = pa.table(
    {
        "n": pa.array([1, None], pa.int32()),
        "price": pa.array([Decimal("1.50"), None]),
        "at": pa.array([datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC), None]),
        "tags": pa.array([["a"], None]),
    }
)
PROGRAM = """
import json, sys
sys.modules["numpy"] = None  # pyarrow loads it where there is one; nothing of ours may
import skerry, skerry.aio, skerry.sqlalchemy
from skerry.client.reads import only_reads

with skerry.connect(sys.argv[1]) as connection:
    rows = connection.cursor().execute("SELECT all", [1, 2.5, "x"]).fetchall()
    table = connection.cursor().execute("SELECT all").fetch_arrow_table()
    batches = list(connection.cursor().execute("SELECT all").fetch_record_batch_reader())
assert len(rows) == table.num_rows == sum(batch.num_rows for batch in batches) == 2
assert only_reads("SELECT 1")
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules} | set(sys.modules))))
"""
FOLDERS = ("catalog", "cli", "config", "exchange", "member", "plan", "spark", "sql", "testing")


def test_asking_loads_neither_a_planner_nor_a_spark() -> None:
    with member_with(Answers({"SELECT all": TABLE})) as member:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM, member.url], env=environment, capture_output=True, text=True
        )
    assert ran.returncode == 0, ran.stderr
    loaded = set(json.loads(ran.stdout))
    assert "pyarrow" in loaded
    assert not loaded & {"pandas", "polars", "pyspark", "sqlglot", "uvloop", "yaml"}
    assert not loaded & {f"skerry.{folder}" for folder in FOLDERS}
