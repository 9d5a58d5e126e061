"""EXPLAIN as JSON and as text, with and without a run."""

from __future__ import annotations

import json

import msgspec

from skerry.catalog.topology import Topology
from skerry.config import Link
from skerry.model.fragment import Count, Ending, Written
from skerry.plan.cache import fingerprint
from skerry.plan.explain import Actual, LinkUse, Ran, describe, explain
from skerry.plan.reasons import with_reasons
from tests.plans.plan_cases import CONFIG, planned

SQL = "SELECT c_name, sum(o_total) AS total FROM orders JOIN customer ON o_cust = c_id GROUP BY c_name"
LINKS = tuple(Link(*ends, 100.0, 5.0) for ends in (("oslo", "tromso"), ("bergen", "tromso"), ("tromso", "oslo")))
TOPOLOGY = Topology(msgspec.structs.replace(CONFIG, links=LINKS))
RUN = Actual(
    {1: Ran(150_000, 4_800_000, 0.5, (7,)), 2: Ran(20, 900, 1.25, (8, 9))},
    (LinkUse("bergen", "tromso", 1_200_000, 150_000, 0.0125), LinkUse("tromso", "oslo", 1_200_000, 150_000, 0.0)),
    20,
    1.5,
)


def test_json_has_all_that_a_program_needs() -> None:
    plan = planned(SQL)
    found = json.loads(json.dumps(describe(plan, "oslo", TOPOLOGY)))
    assert {each["name"] for each in found["members"]} == {"oslo", "bergen", "tromso", "front"}
    assert found["links"][0] == {"from": "oslo", "to": "tromso", "mbit": 100.0, "ms": 5.0}
    first, second = found["fragments"]
    assert (first["member"], first["reads"], first["operators"]) == ("bergen", [{"table": "customer"}], ["scan"])
    way = {"member": "oslo", "route": ["bergen", "tromso", "oslo"], "codecs": ["zstd", "zstd"]}
    assert first["output"] == {"edge": 1, "order": "any", "to": [way]}
    assert first["estimated"]["rows"] == 150_000
    assert second["reads"] == [{"table": "orders"}, {"edge": 1, "from": ["bergen"]}]
    assert {"join", "aggregate"} <= set(second["operators"])
    assert found["finish"]["operators"][0] == "gather"
    assert "seconds" not in found


def test_json_has_prices_and_budgets_of_links() -> None:
    links = (Link("oslo", "bergen", 10.0, 0.0, 0.02, query_bytes=64), *LINKS)
    found = describe(planned(SQL), "oslo", Topology(msgspec.structs.replace(CONFIG, links=links)))["links"]
    assert (found[0]["to"], found[0]["usd_per_gb"], found[0]["query_bytes"]) == ("bergen", 0.02, 64)


def test_text_tells_the_way_and_what_happened() -> None:
    lines = explain(planned(SQL), "oslo", TOPOLOGY, RUN)
    assert any(line.startswith("    → edge 1 to oslo, by way of tromso, zstd (~150,000 rows") for line in lines)
    assert "      in fact 150,000 rows, 4.6 MiB, 0.500 s, Spark job 7" in lines
    assert "      in fact 20 rows, 900 B, 1.250 s, Spark jobs 8, 9" in lines
    assert "link bergen → tromso: 150,000 rows, 1.1 MiB sent, 0.013 s without credit" in lines
    assert lines[-1] == "result: 20 rows in 1.500 s"


def test_fragments_of_one_job_are_named() -> None:
    """Numbers of another member's Spark say nothing of this one."""
    scan, root = planned(SQL).jobs
    scans = [msgspec.structs.replace(scan, id=number) for number in (1, 2, 3, 4)]
    plan = msgspec.structs.replace(planned(SQL), fragments=(*scans, msgspec.structs.replace(root, id=5)))
    jobs = {1: (7,), 2: (7,), 3: (8, 7), 4: (9,), 5: (7,)}
    run = Actual({number: Ran(1, 8, 0.5, each) for number, each in jobs.items()}, (), 1, 0.5)
    told = [line.partition("0.500 s")[2] for line in explain(plan, "oslo", actual=run) if "in fact" in line]
    assert told == [
        ", Spark job 7 shared with fragments 2 and 3",
        ", Spark job 7 shared with fragments 1 and 3",
        ", Spark jobs 8, 7 shared with fragments 1 and 2",
        ", Spark job 9",
        ", Spark job 7",
    ]
    found = describe(plan, "oslo", actual=run)["fragments"]
    assert found[0]["actual"]["shared_with"] == [2, 3]
    assert "shared_with" not in found[3]["actual"]


FANNED = "SELECT id, n_name FROM events JOIN nation ON id = n_id ORDER BY id DESC LIMIT 10"


def test_an_edge_with_several_receivers_names_each_and_its_way() -> None:
    """Bergen reaches oslo through tromso."""
    plan = planned(FANNED, rules="topn")
    found = describe(plan, "oslo", TOPOLOGY)["fragments"][0]["output"]
    assert [each["member"] for each in found["to"]] == ["oslo", "tromso"]
    assert [each["route"] for each in found["to"]] == [["bergen", "tromso", "oslo"], ["bergen", "tromso"]]
    (told,) = (line for line in explain(plan, "oslo") if "to each" in line)
    assert told == "    → edge 2 to oslo and tromso, through the driver (~25 rows, 700 B to each)"
    (told,) = (line for line in explain(plan, "oslo", TOPOLOGY) if "to each" in line)
    ways = "to oslo (by way of tromso, zstd) and tromso (zstd), through the driver"
    assert told == f"    → edge 2 {ways} (~25 rows, 700 B to each)"
    ran = Actual({1: Ran(25, 700, 0.5)}, (), 10, 0.5)
    assert "      in fact 25 rows, 700 B to each, 0.500 s" in explain(plan, "oslo", TOPOLOGY, ran)


def test_text_tells_the_operators_of_each_fragment() -> None:
    lines = explain(planned(SQL), "oslo")
    firsts = [index for index, line in enumerate(lines) if line.startswith("fragment ")]
    assert [lines[index + 1] for index in firsts] == ["    scan", "    scan, join, aggregate"]


def test_one_row_is_no_rows() -> None:
    plan = planned("SELECT count(*) AS n FROM orders")
    run = Actual({1: Ran(1, 8, 0.5)}, (LinkUse("oslo", "bergen", 8, 1, 0.0),), 1, 0.5)
    lines = explain(plan, "bergen", actual=run)
    assert "    → edge 1 to oslo, through the driver (~1 row, 16 B)" in lines
    assert "      in fact 1 row, 8 B, 0.500 s" in lines
    assert "link oslo → bergen: 1 row, 8 B sent" in lines
    assert lines[-1] == "result: 1 row in 0.500 s"


def test_what_a_plan_ends_in_is_told() -> None:
    plan = planned(SQL)
    endings: dict[str, tuple[Ending, dict[str, object]]] = {
        "count the rows of fragments 1, 2": (Count((1, 2)), {"fragments": [1, 2]}),
        "count the rows of fragment 2, written to lake": (Written("lake", (2,)), {"fragments": [2], "sink": "lake"}),
    }
    for text, (ends_in, said) in endings.items():
        ended = msgspec.structs.replace(plan, ends_in=ends_in)
        assert f"finish at oslo: {text}" in explain(ended, "oslo", TOPOLOGY, RUN)
        assert describe(ended, "oslo")["finish"] == {"member": "oslo", "operators": ["count"], **said}


def test_the_reason_and_the_refusal_are_told() -> None:
    plan = planned(SQL)
    first = msgspec.structs.replace(plan.fragments[0], reason="customer is there")
    plan = msgspec.structs.replace(plan, fragments=(first, *plan.fragments[1:]))
    lines = explain(plan, "oslo", refused="the table may not leave")
    assert "    because customer is there" in lines
    assert lines[-1] == "refused: the table may not leave"
    found = describe(plan, "oslo", refused="the table may not leave")
    assert (found["fragments"][0]["reason"], found["refused"]) == ("customer is there", "the table may not leave")


def test_who_has_no_reason_gets_one() -> None:
    plan = planned(SQL)
    first = msgspec.structs.replace(plan.fragments[0], reason="someone knows")
    reasons = [
        each.reason
        for each in with_reasons(msgspec.structs.replace(plan, fragments=(first, plan.fragments[1]))).fragments
    ]
    assert reasons == ["someone knows", "orders is there; about 4.6 MiB arrive from bergen"]
    assert with_reasons(planned("SELECT 1")).fragments[0].reason == "it reads no table"
    assert with_reasons(plan).plan_id == fingerprint(with_reasons(plan))
