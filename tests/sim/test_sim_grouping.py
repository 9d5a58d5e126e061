"""Group-bys that grow over real members, in simulated clusters: whatever the network does, each group is there once."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from sim.cluster import Cluster
from sim.engine import COLUMNS, HASHED_COLUMNS, Temper
from sim.network import Weather
from sim.queries import Query, Reader
from skerry.model.fragment import EdgeLeaf, GroupHere, OperatorFragment, Output, Plan, Rows, SparkFragment
from skerry.model.ids import QueryId
from skerry.model.limits import Limits
from skerry.plan.cache import fingerprint

BATCHES, ROWS = 12, 9


def asked(seed: int, groups: int, members: int = 5) -> Query:
    """The same rows are at three sites; groups are folded by all members, from so many on."""
    chance = Random(f"group-by {seed}")
    limits = Limits(first_credits_bytes=2_000, batch_rows=4, group_by_groups=groups)
    temper = Temper(retries_tasks=seed % 3 == 2, slots=64, pause_s=chance.choice((0.001, 0.02)), deaf_share=0.0)
    weather = Weather(slow_share=0.2, slow_s=0.3, late_share=chance.choice((0.0, 0.2)), late_s=1.0)
    cluster = Cluster(seed, members, [], limits, weather, temper)
    names = tuple(chance.sample(cluster.names, members))
    sites = tuple(chance.sample(names, 3))
    lanes = chance.randint(2, 3)
    words = f"make=1 lanes={lanes} batches={BATCHES} rows={ROWS} hashed"
    scans = [
        SparkFragment(number, site, f"SELECT '{words}'", (), Output(1, names, "groups"))
        for number, site in enumerate(sites, 1)
    ]
    shape, leaf = GroupHere((0, 1, 2, 3), (), names, 3, 4), EdgeLeaf("", 1, HASHED_COLUMNS, sites)
    folds = [OperatorFragment(4 + at, name, shape, (leaf,), Output(2, (name,))) for at, name in enumerate(names)]
    above = [
        SparkFragment(20 + at, name, "SELECT 'pass'", (EdgeLeaf("e", 2, COLUMNS, (name,)),), Output(9, ("oslo",)))
        for at, name in enumerate(names)
    ]
    plan = Plan("", (*scans, *folds, *above), Rows(9, names), {})
    plan = msgspec.structs.replace(plan, plan_id=fingerprint(plan))
    made = {100 + lane: BATCHES * ROWS for lane in range(lanes)}
    query = Query(QueryId("oslo", "q0"), plan, made, "pass", Reader(), 0.0, rows=[])

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


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_each_group_is_there_once_however_often_it_was_handed_on(seed: int) -> None:
    query = asked(seed, groups=20)
    assert (query.outcome, query.wrong()) == ("complete", "")


def test_below_the_threshold_one_member_folds_all() -> None:
    query = asked(1, groups=10_000)
    assert (query.outcome, query.wrong()) == ("complete", "")
