"""The commands as a user runs them."""

from __future__ import annotations

import subprocess

import pytest

from tests.e2e.processes import STOP_S, Sites, skerry_command
from tests.integration.member.member_sites import FEW

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.timeout(1200)]


def run(*arguments: object, given: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(skerry_command(*arguments), input=given, capture_output=True, text=True, timeout=2 * STOP_S)


def test_sql_prints_an_aligned_table(sites: Sites) -> None:
    ran = run(
        "sql", sites.url("kiosk"), "SELECT n_nationkey AS number, n_name FROM nation WHERE n_nationkey IN (0, 23)"
    )
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert "number" in ran.stdout
    rows = [line for line in lines if "ALGERIA" in line or "UNITED KINGDOM" in line]
    assert len(rows) == 2
    assert rows[0].index("ALGERIA") == rows[1].index("UNITED KINGDOM")
    assert rows[0].index("0") == rows[1].index("3")  # numbers are aligned to the right
    assert "2 rows" in lines[-1]


def test_sql_across_sites(sites: Sites) -> None:
    statement = (
        "SELECT r_name, count(*) AS orders FROM orders JOIN customer ON c_custkey = o_custkey "
        "JOIN nation ON n_nationkey = c_nationkey JOIN region ON r_regionkey = n_regionkey GROUP BY r_name"
    )
    ran = run("sql", sites.url("tromso"), "--format", "csv", statement)
    assert ran.returncode == 0, ran.stderr
    head, *rows = ran.stdout.splitlines()
    assert head == "r_name,orders"
    assert sum(int(row.split(",")[1]) for row in rows) == 15000
    assert len(rows) == 5


def test_sql_reads_a_script(sites: Sites) -> None:
    ran = run("sql", sites.url("oslo"), "--format", "json", given="SELECT count(*) AS n FROM few; SELECT 2 AS two;\n")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["[", f'{{"n":{3 * FEW}}}', "]", "[", '{"two":2}', "]"]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELECT nothing FROM orders", "nothing"),
        ("SELECT * FROM ordrs", "ordrs"),
        ("SELECT 1 / (o_orderkey - 1) FROM orders", "[DIVIDE_BY_ZERO]"),
        ("DROP TABLE orders", "DROP"),
    ],
)
def test_sql_says_what_is_wrong(sites: Sites, statement: str, said: str) -> None:
    ran = run("sql", sites.url("bergen"), statement)
    assert ran.returncode == 1
    assert ran.stderr.startswith("error: ")
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr


def test_sql_without_a_member() -> None:
    ran = run("sql", "skerry://127.0.0.1:1", "SELECT 1")
    assert ran.returncode == 1
    assert ran.stderr.startswith("error: no member answers at 127.0.0.1:1")


def test_up_at_a_taken_port(sites: Sites) -> None:
    ran = run("up", sites.file, "--member", "oslo")
    assert ran.returncode == 1
    assert ran.stdout == ""
    where = f"127.0.0.1:{sites.ports['oslo']}"
    assert ran.stderr.splitlines() == [
        f"error: cannot listen at {where}: Address already in use",
        "hint: is another member running there?",
    ]


def test_up_of_all_at_taken_ports(sites: Sites) -> None:
    ran = run("up", sites.file)
    assert ran.returncode == 1
    assert "Address already in use" in ran.stderr
    assert "ended with status 1" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_up_of_an_unknown_member(sites: Sites) -> None:
    ran = run("up", sites.file, "--member", "olso")
    assert ran.returncode == 1
    assert "olso" in ran.stderr
    assert "oslo" in ran.stderr


def test_check(sites: Sites) -> None:
    ran = run("check", sites.file)
    assert ran.returncode == 0
    assert ran.stdout.startswith(f"{sites.file}: ok: cluster faults, 4 members, 10 tables")
