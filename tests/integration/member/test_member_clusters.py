"""What a Spark cluster asks of a member: tasks that come over TCP, and tasks that may run twice."""

from __future__ import annotations

import pytest

from skerry.spark.engine import Engine
from tests.integration.member.conftest import StartCluster
from tests.integration.member.member_sites import nothing_left

pytestmark = pytest.mark.spark

JOINED = "SELECT a.id FROM oslo.few a JOIN tromso.few b ON a.id = b.id ORDER BY a.id"


@pytest.mark.parametrize("setting", ["tasks_are_here", "retries_tasks"])
def test_a_cluster_s_way_gives_the_same_rows(
    spark_engine: Engine, start_members: StartCluster, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    """The same Spark, served as if it were a cluster: over TCP, or with rows kept per attempt until the job ended."""
    with start_members().connect("oslo") as connection:
        plain = connection.cursor().execute(JOINED).fetchall()
    assert plain
    monkeypatch.setattr(spark_engine, setting, not getattr(spark_engine, setting))
    members = start_members()
    assert members.members["oslo"].task_address.startswith("tcp:" if setting == "tasks_are_here" else "unix:")
    with members.connect("bergen") as connection, connection.cursor() as cursor:
        assert cursor.execute(JOINED).fetchall() == plain
        assert len(cursor.execute("SELECT id FROM tromso.few").fetchall()) == len(plain)
    nothing_left(members)
