"""Bytes over links: TPC-H on three sites, the planner with all its rules beside three plainer ways to run a query.

(a) columns and filters pushed to the tables, the rest at the site where the fewest bytes arrive;
(b) the same with the rest at the initiator; (c) whole tables pulled to the initiator. Each member is the initiator in
turn. All members share one Sail in this process and nothing is compressed: the bytes are those of the frames that
channels sent, and do not depend on the machine. `--shaped` also takes times, on links of 100 Mbit/s (wan_links.py).
"""

from __future__ import annotations

import logging
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.frame import CACHE, Bar, Options, Report, Samples, Skipped, seconds, tpch_files
from bench.wan_table import ALL, CHEAPEST, INITIATOR, TABLES, as_markdown
from skerry.client.dbapi import Cursor
from skerry.member.knownplans import planned_anew
from skerry.member.planning import plan_statement
from skerry.member.requests import RunStatement
from skerry.model.ids import QueryId
from skerry.plan.rules import NAMES
from skerry.testing.checkers import same_table
from skerry.testing.cluster import LocalCluster
from skerry.testing.nasty import SITES
from skerry.testing.oracle import TPCH_TABLES, tpch_queries
from skerry.testing.sites import TPCH_SITES, tpch_tables, write_config

SIDES: dict[str, dict[str, str]] = {
    ALL: {},
    CHEAPEST: {"rules": "none"},
    INITIATOR: {"rules": "none", "root": "initiator"},
}
WHOLE = {"rules": "none", "baseline": "tables"}

FEWER = {CHEAPEST: 2.5, INITIATOR: 8.0, TABLES: 60.0}
WORST = 1.05
PLANNING_MS = 50.0
PLANNED = 15  # times each query is planned, warm

# Bytes by (query, initiator, side).
Sent = dict[tuple[int, str, str], int]
# Bytes that a query sends more when a rule is off, by (query, initiator, rule); other rules may stand in for it.
Saved = dict[tuple[int, str, str], int]


@dataclass(frozen=True)
class Run:
    """One query, done."""

    rows: pa.Table
    sent_bytes: int


def run(options: Options) -> Report:
    """The bytes of each side are the report's samples; what each rule saved is kept with them and printed."""
    logging.getLogger("skerry").setLevel(logging.ERROR)
    texts = crossing(tpch_queries())
    with three_sites(options) as cluster:
        sent, saved = _measured(cluster, texts)
        sent |= _whole_tables(cluster, texts)
        planned_ms = _planning_ms(cluster)
    samples: Samples = {
        f"Q{number}": {side: [sent[number, site, side] / 1e6 for site in SITES] for side in (*SIDES, TABLES)}
        for number in texts
    }
    without: Samples = {
        f"Q{number}": {rule: [saved[number, site, rule] / 1e6 for site in SITES] for rule in NAMES} for number in texts
    }
    print("wan: megabytes of all initiators together\n", *as_markdown(samples, without), "", sep="\n")
    largest = max(planned_ms, key=lambda number: planned_ms[number])
    bars = [*_bars(texts, sent), Bar("planning_ms", planned_ms[largest], PLANNING_MS)]
    notes = [f"planning takes longest for Q{largest}: {planned_ms[largest]:.1f} ms", *_worst(texts, sent)]
    notes.append("(c) is the sum of one measured transfer of each table that the query names and its initiator lacks")
    skipped: list[Skipped] = []
    if options.shaped:
        from bench.wan_links import shaped_times  # imports what needs root

        timed = shaped_times(options, texts)
        bars, notes, skipped = [*bars, *timed.bars], [*notes, *timed.notes], timed.skipped
        for case, taken in timed.samples.items():
            samples[case] = taken
    title = f"three sites, TPC-H scale {options.scale:g}, by initiator"
    return Report("wan", title, "megabytes", samples, bars, options, notes, skipped, {"more without a rule": without})


def crossing(queries: Mapping[int, str]) -> dict[int, str]:
    """Those whose tables lie at more than one site."""
    return {number: text for number, text in queries.items() if len({TPCH_SITES[t] for t in named(text)}) > 1}


def named(text: str) -> set[str]:
    """TPC-H's tables that a query names; their names stand for nothing else in its text."""
    words = {word.strip("(),;") for word in text.split()}
    return words & set(TPCH_TABLES)


@contextmanager
def three_sites(options: Options) -> Iterator[LocalCluster]:
    folders = tpch_files(options.scale)
    with tempfile.TemporaryDirectory() as scratch:
        path = write_config(Path(scratch) / "skerry.yaml", CACHE, tpch_tables(folders), spark={"sail": True})
        with LocalCluster(str(path)) as cluster:
            yield cluster


def ask(cursor: Cursor, text: str, planning: Mapping[str, str]) -> Run:
    rows = cursor.execute(text, planning=planning).fetch_arrow_table()
    # The last receipts tell what the links carried.
    while (status := cursor.status()).state == "running":
        time.sleep(0.002)
    assert status.state == "done", status
    return Run(rows, status.size_bytes)


def _measured(cluster: LocalCluster, texts: Mapping[int, str]) -> tuple[Sent, Saved]:
    sent: Sent = {}
    saved: Saved = {}
    for number, text in texts.items():
        for site in SITES:
            with cluster.connect(site) as connection, connection.cursor() as cursor:
                runs = {side: ask(cursor, text, planning) for side, planning in SIDES.items()}
                for side, each in runs.items():
                    # A quick wrong answer is no answer.
                    same_table(each.rows, runs[CHEAPEST].rows, ordered=False)
                    sent[number, site, side] = each.sent_bytes
                plan = _plan(cursor, text, {})
                for rule in NAMES:
                    without = {"rules": f"-{rule}"}
                    more = 0
                    if _plan(cursor, text, without) != plan:
                        more = ask(cursor, text, without).sent_bytes - runs[ALL].sent_bytes
                    saved[number, site, rule] = more
    return sent, saved


def _plan(cursor: Cursor, text: str, planning: Mapping[str, str]) -> Any:
    return cursor.execute(f"EXPLAIN {text}", planning=planning).fetchall()


def _whole_tables(cluster: LocalCluster, texts: Mapping[int, str]) -> Sent:
    """Every table once over a link; a query of (c) is the sum of those that its initiator lacks."""
    table_bytes = {}
    for table, home in TPCH_SITES.items():
        elsewhere = next(site for site in SITES if site != home)
        with cluster.connect(elsewhere) as connection, connection.cursor() as cursor:
            table_bytes[table] = ask(cursor, f"SELECT count(*) FROM {table}", WHOLE).sent_bytes
    return {
        (number, site, TABLES): sum(table_bytes[table] for table in named(text) if TPCH_SITES[table] != site)
        for number, text in texts.items()
        for site in SITES
    }


def _bars(texts: Mapping[int, str], sent: Sent) -> list[Bar]:
    pairs = [(number, site) for number in texts for site in SITES]
    bars = []
    for side, bound in FEWER.items():
        ratios = [sent[number, site, side] / sent[number, site, ALL] for number, site in pairs]
        bars.append(Bar(f"fewer_than_{side[1]}", statistics.geometric_mean(ratios), bound, at_most=False))
    worst = max(sent[number, site, ALL] / sent[number, site, CHEAPEST] for number, site in pairs)
    return [*bars, Bar("worst_of_a", worst, WORST)]


def _worst(texts: Mapping[int, str], sent: Sent) -> list[str]:
    found = [
        f"Q{number} at {site}: {sent[number, site, ALL]} bytes, (a) {sent[number, site, CHEAPEST]}"
        for number in texts
        for site in SITES
        if sent[number, site, ALL] > WORST * sent[number, site, CHEAPEST]
    ]
    return ["more than (a): " + "; ".join(found)] if found else []


def _planning_ms(cluster: LocalCluster) -> dict[int, float]:
    """From text to plan in a worker thread of the member, warm; the median for each of the 22 queries."""
    member = cluster.members[SITES[0]]
    taken = {}
    for number, text in tpch_queries().items():
        statement = RunStatement(QueryId(SITES[0], f"planned-{number}"), text)

        def plan(statement: RunStatement = statement) -> None:
            cluster.call(plan_statement(planned_anew(member.planner), statement))

        plan()
        taken[number] = 1000 * statistics.median(seconds(plan) for _ in range(PLANNED))
    return taken
