"""Members on a standalone cluster and on Spark Connect: right answers while executors die, and cancels at both ends.

Rows are kept per attempt there, and one finished attempt of each partition counts (policy committed, D8).
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

import skerry
from skerry.testing.cluster import LocalCluster
from skerry.testing.oracle import same_answer, tpch_answers, tpch_queries
from tests.integration.member.member_sites import nothing_left, wait_until
from tests.integration.spark.cluster_sites import SLOW, Asking, Executors, Placed, ask, is_whole, wait_for_rows

# A scan, joins of three, six and eight tables, an outer join, subqueries of each kind. `make sparks` runs all 22.
SHARE = (1, 3, 5, 8, 13, 18, 21)
QUERIES = range(1, 23) if os.environ.get("SPARKS") == "all" else SHARE


@pytest.mark.parametrize("number", QUERIES)
def test_known_answer(members: LocalCluster, number: int) -> None:
    same_answer(ask(members, tpch_queries()[number]), tpch_answers(0.01)[number])


def test_an_executor_that_is_killed_costs_no_row_and_doubles_none(
    members: LocalCluster,
    executors: Executors,
    asking: Asking,
    placed: Placed,
) -> None:
    answer = asking(members, SLOW)
    wait_for_rows(members)
    for each in executors():  # the attempts of all sites are lost with rows that have come
        each.kill()
    is_whole(answer.result(), placed)


def test_a_cancel_leaves_nothing_at_either_end(members: LocalCluster) -> None:
    with members.connect("bergen") as connection, connection.cursor() as cursor, ThreadPoolExecutor() as pool:
        answer = pool.submit(lambda: cursor.execute(SLOW).fetchall())
        wait_for_rows(members)
        cursor.cancel()
        with pytest.raises(skerry.Error, match="cancelled"):
            answer.result()
    nothing_left(members)
    wait_until(lambda: not any(member.taskport.connections() for member in members.members.values()), "no task")
