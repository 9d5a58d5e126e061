"""`skerry submit`, `ps`, `attach`, `cancel` and `sql --format` with real members; queries at a member without Spark."""

from __future__ import annotations

import csv
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from skerry.cli.main import main
from skerry.testing.cluster import LocalCluster
from tests.integration.member.member_sites import FEW, SITES, TICKS, large_query, nothing_left, slow_query, wait_until

pytestmark = pytest.mark.sail


def skerry(command: str, cluster: LocalCluster, *arguments: str, at: str = "oslo") -> Result:
    result = CliRunner().invoke(main, [command, f"skerry://{cluster.config.member(at).address}", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result


def read(result: Result, output_format: str) -> pa.Table:
    file = pa.BufferReader(result.stdout_bytes)
    return pa.ipc.open_stream(file).read_all() if output_format == "arrow" else pq.read_table(file)


def test_a_query_is_submitted_listed_and_attached_to(cluster: LocalCluster) -> None:
    submitted = skerry("submit", cluster, "SELECT id, name FROM few", "--lease", "60")
    query = submitted.stdout.strip()
    assert (submitted.exit_code, query.startswith("oslo/")) == (0, True)
    listed = skerry("ps", cluster, "--all", at="bergen").stdout  # any member knows all of them
    assert query[:17] in listed
    attached = skerry("attach", cluster, query, "--format", "csv", at="tromso")
    rows = list(csv.reader(io.StringIO(attached.stdout)))
    assert rows[0] == ["id", "name"]
    assert sorted(rows[1:]) == sorted([str(n), f"{site} {n}"] for site in SITES for n in range(FEW))
    again = skerry("attach", cluster, query)
    assert again.exit_code != 0
    assert "has ended: all of its rows were given" in again.output


@pytest.mark.parametrize("output_format", ["arrow", "parquet"])
def test_an_attached_result_as_a_file(cluster: LocalCluster, output_format: str) -> None:
    query = skerry("submit", cluster, "SELECT id FROM oslo.ticks").stdout.strip()
    attached = skerry("attach", cluster, query, "--format", output_format)
    assert attached.exit_code == 0
    assert sorted(read(attached, output_format)["id"].to_pylist()) == list(range(TICKS))


def test_who_attaches_too_late_is_told(cluster: LocalCluster) -> None:
    query = skerry("submit", cluster, "SELECT id FROM oslo.few", "--lease", "0.2").stdout.strip()
    nothing_left(cluster)  # its lease ended
    late = skerry("attach", cluster, query, at="bergen")
    assert late.exit_code == 1
    assert late.stderr == f"error: nobody came for the result of query {query[:17]} within its lease (0.2 s)\n"
    never = skerry("attach", cluster, f"oslo/{'0' * 32}")
    assert "it ended, was closed, or nobody came for it within its lease" in never.stderr


def test_a_query_is_cancelled_from_another_member(cluster: LocalCluster) -> None:
    query = skerry("submit", cluster, slow_query("bergen")).stdout.strip()
    wait_until(lambda: "running" in skerry("ps", cluster, at="tromso").stdout, "it is listed as running")
    (line,) = [line for line in skerry("ps", cluster, at="tromso").stdout.splitlines() if query[:17] in line]
    shown = line.split("|")[0].strip()
    assert "is cancelled" in skerry("cancel", cluster, shown, at="tromso").stdout
    nothing_left(cluster)
    assert "was not running: cancelled" in skerry("cancel", cluster, shown).stdout
    never = skerry("cancel", cluster, f"oslo/{'0' * 32}")
    assert (never.exit_code, never.stdout) == (1, "")
    assert "it ended long ago, or never began" in never.stderr
    (line,) = [line for line in skerry("ps", cluster).stdout.splitlines() if query[:17] in line]
    assert "running" not in line


@pytest.mark.parametrize("output_format", ["arrow", "parquet"])
def test_rows_as_a_file(cluster: LocalCluster, output_format: str) -> None:
    result = skerry("sql", cluster, "SELECT id, note FROM oslo.ticks", "--format", output_format)
    assert result.exit_code == 0
    table = read(result, output_format)
    assert table.column_names == ["id", "note"]
    assert sorted(table["id"].to_pylist()) == list(range(TICKS))


def test_a_member_without_spark_takes_queries_and_streams_their_rows_through(cluster: LocalCluster) -> None:
    with cluster.connect("kiosk") as connection, connection.cursor() as cursor:
        assert cursor.execute("SELECT count(*) AS n, sum(id) AS s FROM ticks").fetchall() == [
            (3 * TICKS, sum(range(3 * TICKS)))
        ]
        table = cursor.execute("SELECT id, note FROM ticks").fetch_arrow_table()
        assert sorted(table["id"].to_pylist()) == list(range(3 * TICKS))
        joined = "SELECT count(*) FROM oslo.few a JOIN bergen.few b ON a.id = b.id"
        assert cursor.execute(joined).fetchall() == [(FEW,)]
        cursor.execute(large_query("tromso"))
        assert cursor.fetchone() is not None
        assert {fragment.member for fragment in cursor.progress.fragments} == {"tromso"}
        cursor.cancel()
    nothing_left(cluster)
