"""Many queries at once, from many initiators, one of which has no Spark."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest

from skerry.testing.cluster import LocalCluster
from tests.integration.member.member_sites import FEW, SITES, TICKS, nothing_left

pytestmark = pytest.mark.spark

ALL = len(SITES) * TICKS
JOINED = (
    "SELECT t.kind, count(*) AS n FROM ticks t JOIN bergen.few b ON b.id = t.kind "
    "JOIN tromso.few c ON c.id = t.kind GROUP BY t.kind ORDER BY t.kind"
)
KINDS = [(kind, len(range(kind, ALL, 7))) for kind in range(7)]


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT 1 AS one", [(1,)]),
        ("SELECT count(*) FROM ticks", [(ALL,)]),
        ("SELECT id FROM ticks WHERE id % 10000 = 1 ORDER BY id", [(each,) for each in range(1, ALL, 10000)]),
        (JOINED, KINDS),
    ],
)
def test_a_lite_member_begins_queries(members: LocalCluster, sql: str, rows: list[tuple[object, ...]]) -> None:
    with members.connect("kiosk") as connection:
        assert connection.cursor().execute(sql).fetchall() == rows


def test_a_lite_member_gives_whole_results(members: LocalCluster) -> None:
    with members.connect("kiosk") as connection:
        table = connection.cursor().execute("SELECT id, note FROM ticks").fetch_arrow_table()
    assert sorted(table.column("id").to_pylist()) == list(range(ALL))


def test_two_initiators_over_the_same_sites(members: LocalCluster) -> None:
    def run(at: str) -> list[object]:
        with members.connect(at) as connection:
            return [*connection.cursor().execute(JOINED).fetchall()]

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(run, ("oslo", "bergen"))) == [KINDS, KINDS]


def test_twenty_queries_at_once(members: LocalCluster) -> None:
    """More edges than there are slots for: some receive staged."""
    texts = ("SELECT count(*) FROM few", "SELECT count(*) FROM oslo.few a JOIN bergen.few b ON a.id = b.id")
    with ThreadPoolExecutor(20) as pool:

        def run(number: int, at: str) -> list[object]:
            with members.connect(at) as connection:
                return [*connection.cursor().execute(texts[number % 2]).fetchall()]

        answers = list(pool.map(run, range(20), itertools.cycle((*SITES, "kiosk"))))
    assert answers == [[(3 * FEW,)], [(FEW,)]] * 10
    nothing_left(members)
