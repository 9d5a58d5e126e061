"""Fragments that members run without Spark, in simulated clusters: rows of three sites merged at one of them."""

from __future__ import annotations

import msgspec
import pytest

from sim.cluster import Cluster
from sim.engine import COLUMNS, Temper
from sim.network import Weather
from sim.queries import Query, Reader
from skerry.model.fragment import (
    Count,
    EdgeLeaf,
    Ending,
    Finish,
    OperatorFragment,
    Output,
    Plan,
    Rows,
    SortKey,
    SparkFragment,
)
from skerry.model.ids import QueryId
from skerry.model.limits import Limits
from skerry.plan.cache import fingerprint

KEYS = (SortKey(0, False, True),)
SITES = ("bergen", "oslo", "tromso")
RESULT = Rows(9, ("tromso",))


def asked(operator: Finish, shape: str, batches: int = 4, ends_in: Ending = RESULT) -> Query:
    """oslo asks; all three send sorted rows to tromso, which is one of them, and finishes them."""
    limits = Limits(first_credits_bytes=2_000, batch_rows=4)
    temper = Temper(retries_tasks=False, pipelined=True, slots=64, pause_s=0.001, deaf_share=0.0)
    cluster = Cluster(1, 3, [], limits, Weather(slow_share=0.0), temper)
    scans = [
        SparkFragment(
            number, site, f"SELECT 'make={number} lanes=2 batches={batches} rows=4'", (), Output(1, ("tromso",))
        )
        for number, site in enumerate(SITES, 1)
    ]
    if operator.keys:
        scans = [
            msgspec.structs.replace(each, output=Output(1, ("tromso",), "merge", operator.keys, False))
            for each in scans
        ]
    leaf = EdgeLeaf("", 1, COLUMNS, SITES)
    operated = OperatorFragment(4, "tromso", operator, (leaf,), Output(9, ("oslo",)))
    plan = Plan("", (*scans, operated), ends_in, {})
    plan = msgspec.structs.replace(plan, plan_id=fingerprint(plan))
    lanes = {number * 100 + lane: batches * 4 for number in (1, 2, 3) for lane in (0, 1)}
    query = Query(QueryId("oslo", "q0"), plan, lanes, shape, Reader(), 0.0, limit=operator.limit, rows=[])

    async def main() -> None:
        for name in cluster.names:
            await cluster.boot(name)
        cluster.queries = {query.query: query}
        await cluster.ask(query)

    try:
        cluster.loop.run(main(), 1000.0 + 60.0)
    finally:
        cluster.dispose()
    return query


@pytest.mark.parametrize(
    ("operator", "shape"),
    [(Finish(), "pass"), (Finish(KEYS), "merge"), (Finish((), 0, 7), "some"), (Finish((), 0, 0), "some")],
    ids=["gather", "merge", "limit", "nothing"],
)
def test_rows_of_other_sites_and_its_own_go_through_a_members_operator(operator: Finish, shape: str) -> None:
    query = asked(operator, shape)
    assert query.outcome == "complete"
    assert query.wrong() == ""


def test_a_limit_at_a_member_stops_those_who_send_to_it(caplog: pytest.LogCaptureFixture) -> None:
    """Batches that were under way when they were told are dropped, all of them, and are nobody's mistake."""
    query = asked(Finish((), 0, 3), "some", batches=400)
    assert query.outcome == "complete"
    assert query.wrong() == ""
    assert "refused" not in caplog.text


@pytest.mark.parametrize(
    ("operator", "fragments", "count"),
    [(Finish(), (4,), 96), (Finish(KEYS), (4,), 96), (Finish((), 0, 7), (4,), 7), (Finish(), (1, 3, 4), 160)],
    ids=["gather", "merge", "limit", "scans-too"],
)
def test_rows_of_fragments_are_counted_and_stay_there(operator: Finish, fragments: tuple[int, ...], count: int) -> None:
    query = asked(operator, "pass", ends_in=Count(fragments))
    assert (query.outcome, query.count, query.rows) == ("complete", count, [])
