"""The table of `bench wan`: megabytes of all initiators, and the rules that spare some."""

from __future__ import annotations

from bench.wan_table import ALL, CHEAPEST, INITIATOR, TABLES, as_markdown


def test_a_line_a_query_with_what_each_rule_saved() -> None:
    sent = {
        "Q3": {ALL: [0.2, 0.3, 0.2], CHEAPEST: [0.6, 0.6, 0.6], INITIATOR: [1.0, 20.0, 30.5], TABLES: [400.0] * 3},
        "Q3 shaped": {ALL: [1.5], CHEAPEST: [2.5]},
    }
    more = {
        "Q3": {"semijoin": [0.1, 0.0, 0.2], "filters": [0.3, 0.3, 0.5], "prune": [0.0] * 3, "sets": [0.0, 0.0, 1e-5]}
    }
    lines = as_markdown(sent, more)
    assert lines[2:] == ["| Q3 | 0.700 | 1.8 | 51.5 | 1200 | `filters` 1.1, `semijoin` 0.300 |"]
    assert all(line.count("|") == 7 for line in lines)


def test_a_query_that_no_rule_alone_makes_smaller_says_so() -> None:
    sent = {"Q1": {ALL: [0.1], CHEAPEST: [0.1], INITIATOR: [0.1], TABLES: [0.1]}}
    assert as_markdown(sent, {"Q1": {"filters": [0.0]}})[2].endswith("| no rule alone |")
