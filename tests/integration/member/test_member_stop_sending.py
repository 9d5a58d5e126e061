"""A LIMIT that is full ends the fragments that feed it, at every site, while its rows still wait for their reader."""

from __future__ import annotations

import pytest

from skerry.client.cursor import PageSize
from skerry.client.dbapi import Cursor
from skerry.model.limits import MIB
from skerry.model.progress import FragmentProgress
from skerry.testing.cluster import LocalCluster
from tests.integration.member.member_sites import TICKS, wait_until

pytestmark = pytest.mark.spark

# The first of tromso's rows come soon, more than a batch has, and fill the limit (Spark fills it from every partition).
# The others, which nobody needs then, take minutes.
SQL = """
SELECT id, note FROM (
  SELECT id, note FROM oslo.ticks
  UNION ALL
  SELECT id, note FROM tromso.ticks
  WHERE sha2(repeat(note, CASE WHEN id < 57000 THEN 1 ELSE 40000 END), 512) <> 'x'
) LIMIT 1000
"""


def participants(members: LocalCluster, name: str) -> int:
    async def ask() -> int:
        return len(members.members[name].participants)

    return members.call(ask())


def fed(cursor: Cursor) -> FragmentProgress:
    (found,) = [each for each in cursor.status().fragments if each.member == "tromso"]
    return found


def test_a_full_limit_ends_what_feeds_it_while_the_query_lives(members: LocalCluster) -> None:
    with members.connect("oslo") as connection:
        cursor = connection.cursor()
        cursor._size = PageSize(100, 1 * MIB)  # small pages: the reader has not had all of them
        cursor.execute(SQL)
        wait_until(lambda: participants(members, "tromso") == 0, "tromso was told to stop, and gave its receipt")
        wait_until(lambda: fed(cursor).state == "done" and cursor.status().links, "oslo has heard of it")
        status = cursor.status()
        assert status.state == "running"
        (link,) = status.links
        assert 0 < link.rows < TICKS
        assert len(cursor.fetchall()) == 1000
