"""EXPLAIN ANALYZE runs the query; egress rules refuse one before it runs."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from click.testing import CliRunner

import skerry
from skerry.cli.main import main
from skerry.config import Leaves, MemberConfig
from skerry.testing.cluster import LocalCluster
from tests.integration.member.conftest import StartCluster
from tests.integration.member.member_sites import FEW, TICKS, wait_until

pytestmark = pytest.mark.spark

JOIN = "SELECT t.id, f.name FROM oslo.ticks t JOIN bergen.few f ON t.id = f.id"


def check_analyze(cluster: LocalCluster) -> dict[str, object]:
    """Every edge has its rows, and the link its bytes."""
    cursor = cluster.connect("oslo").cursor()
    (text,) = cursor.execute(f"EXPLAIN ANALYZE FORMAT JSON {JOIN}").fetchall()[0]
    found = json.loads(text)
    assert found["rows"] == FEW
    assert found["seconds"] > 0
    by_member = {each["member"]: each for each in found["fragments"]}
    assert by_member["bergen"]["actual"]["rows"] == FEW
    assert by_member["bergen"]["actual"]["bytes"] > 0
    (link,) = found["links_used"]
    assert (link["from"], link["to"], link["rows"]) == ("bergen", "oslo", FEW)
    assert link["bytes"] > FEW
    lines = [line for (line,) in cursor.execute(f"EXPLAIN ANALYZE {JOIN}").fetchall()]
    assert any(line.startswith(f"      in fact {FEW} rows") for line in lines)
    assert lines[-1].startswith(f"result: {FEW} rows in ")
    # Nothing of it is left, and it can be asked again.
    assert len(cursor.execute(JOIN).fetchall()) == FEW
    return by_member


def test_explain_analyze_on_spark_names_its_jobs(members: LocalCluster) -> None:
    by_member = check_analyze(members)
    assert all(each["actual"]["spark_jobs"] for each in by_member.values())  # type: ignore[index]


def test_a_failure_while_it_is_tried_is_the_querys_own(members: LocalCluster) -> None:
    cursor = members.connect("oslo").cursor()
    with pytest.raises(skerry.Error, match=r"(?i)divi(de|sion)[ _]by[ _]zero"):
        cursor.execute("EXPLAIN ANALYZE SELECT id DIV (id - id) AS x FROM bergen.few").fetchall()


def test_explain_analyze_on_sail(start_sail: StartCluster) -> None:
    check_analyze(start_sail())


def test_a_detached_one_keeps_its_plan_for_who_attaches(start_sail: StartCluster) -> None:
    connection = start_sail().connect("oslo")
    cursor = connection.cursor()
    cursor.execute(f"EXPLAIN ANALYZE {JOIN}", detach=True)
    assert cursor.query_id is not None
    with connection.attach(cursor.query_id) as attached:
        lines = [line for (line,) in attached.fetchall()]
    assert lines[0].startswith("plan ")
    assert lines[-1].startswith(f"result: {FEW} rows in ")


def test_what_an_edge_carried_is_the_next_estimate(start_sail: StartCluster) -> None:
    cluster = start_sail()
    cursor = cluster.connect("oslo").cursor()
    query = "SELECT t.id, f.name FROM oslo.ticks t JOIN bergen.few f ON t.id = f.id WHERE f.id % 10 > 2"

    def estimated() -> int:
        found = json.loads(cursor.execute(f"EXPLAIN FORMAT JSON {query}").fetchall()[0][0])
        (few,) = [each for each in found["fragments"] if each["member"] == "bergen"]
        return int(few["estimated"]["rows"])

    assert estimated() != FEW * 7 // 10
    assert len(cursor.execute(query).fetchall()) == FEW * 7 // 10
    wait_until(lambda: estimated() == FEW * 7 // 10, "the estimate")


def test_the_command_draws_and_tells(start_sail: StartCluster, tmp_path: Path) -> None:
    cluster = start_sail()
    url, picture = f"skerry://{cluster.config.member('oslo').address}", tmp_path / "plan.svg"
    ran = CliRunner().invoke(main, ["explain", "--analyze", "--json", "--svg", str(picture), url, JOIN])
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["rows"] == FEW
    assert "bergen" in ElementTree.parse(picture).getroot().itertext()
    ran = CliRunner().invoke(main, ["explain", url, JOIN])
    assert ran.stdout.startswith("plan ")
    other = CliRunner().invoke(main, ["explain", "--rules", "none", "--strategy", "bottom-up", url, JOIN])
    assert other.exit_code == 0, other.output
    assert "all its rows come to oslo" in other.stdout
    unknown = CliRunner().invoke(main, ["explain", "--rules", "semijion", url, JOIN])
    assert unknown.exit_code == 1
    assert "subtrees" in unknown.output
    assert CliRunner().invoke(main, ["explain", url, "SELECT nope FROM few"]).exit_code == 1


def test_rows_that_may_not_leave_do_not(start_sail: StartCluster) -> None:
    def marked(member: MemberConfig) -> MemberConfig:
        few = msgspec.structs.replace(member.tables["few"], leaves=Leaves.AGGREGATED)
        return msgspec.structs.replace(member, tables={**member.tables, "few": few})

    cluster = start_sail(each=marked)
    cursor = cluster.connect("oslo").cursor()
    with pytest.raises(skerry.ProgrammingError, match="rows of few that are not aggregated from bergen to oslo"):
        cursor.execute("SELECT name FROM bergen.few")
    lines = [line for (line,) in cursor.execute("EXPLAIN SELECT name FROM bergen.few").fetchall()]
    assert lines[-1].startswith("refused: the query would send rows of few")
    assert cursor.execute("SELECT count(*) FROM bergen.few").fetchall() == [(FEW,)]
    with pytest.raises(skerry.Error, match="fragment"):
        cursor.execute("SELECT a.name FROM few a JOIN few b ON a.id = b.id")
    here = cluster.connect("bergen").cursor()
    assert len(here.execute("SELECT name FROM bergen.few").fetchall()) == FEW


def test_a_link_has_a_budget_for_each_query(start_sail: StartCluster) -> None:
    links = [
        {"between": ["oslo", "bergen"], "mbit": 1000, "query_bytes": "64 KiB"},
        {"between": ["oslo", "tromso"], "mbit": 1000},
    ]
    cursor = start_sail(more={"links": links}).connect("oslo").cursor()
    with pytest.raises(skerry.Error, match="query_bytes"):
        cursor.execute("SELECT a.note, b.note FROM oslo.ticks a JOIN bergen.ticks b ON a.kind = b.kind")
    joined = "SELECT count(*) FROM oslo.ticks a JOIN bergen.ticks b ON a.note = b.note"
    with pytest.raises(skerry.Error, match="query_bytes"):  # by statistics none of these notes need travel
        cursor.execute(joined, planning={"rules": "none"})
    assert cursor.execute("SELECT count(*) FROM bergen.ticks").fetchall() == [(TICKS,)]
    assert len(cursor.execute("SELECT id, note FROM tromso.ticks").fetchall()) == TICKS
