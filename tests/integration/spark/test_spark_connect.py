"""A Spark Connect server that is killed, or closes the session of a member: a clear error, and then answers again."""

from __future__ import annotations

from typing import Any

import pytest

import skerry
from skerry.model.errors import SiteError
from skerry.spark import SparkSettings, start_engine
from skerry.testing.cluster import LocalCluster
from skerry.testing.sparks import ConnectServer
from tests.integration.member.member_sites import TICKS
from tests.integration.spark.cluster_sites import SLOW, Asking, Placed, ask, wait_for_rows
from tests.integration.spark.harness import files

pytestmark = pytest.mark.connect
COUNT = "SELECT count(*) AS n FROM ticks"
COUNTED = [{"n": 3 * TICKS}]


@pytest.fixture(scope="module")
def kind() -> str:
    return "connect"


def test_a_session_that_its_server_closed_is_made_again(members: LocalCluster, placed: Placed) -> None:
    """Servers close sessions that nobody used for an hour."""
    assert ask(members, COUNT).to_pylist() == COUNTED
    engine: Any = members.engine
    engine.session.client.release_session()
    assert ask(members, COUNT).to_pylist() == COUNTED
    # A new file is looked at before any query is.
    engine.session.client.release_session()
    folder = placed["oslo"]["few"]
    listing = files(folder, "few", folder / "part.parquet")
    with pytest.raises(SiteError, match="table few"):
        engine.describe(listing)
    assert [column.name for column in engine.describe(listing)] == ["id", "name"]


def test_a_server_that_is_killed_is_an_error_until_it_is_back(
    connect_server: ConnectServer, members: LocalCluster, asking: Asking
) -> None:
    answer = asking(members, SLOW)
    wait_for_rows(members)
    connect_server.daemon.kill()
    for question in (answer.result, lambda: ask(members, COUNT)):
        with pytest.raises(skerry.Error, match=rf"Spark Connect at {connect_server.url}: .*(refused|reset|closed)"):
            question()
    with pytest.raises(SiteError, match=rf"Spark Connect at {connect_server.url}: "):
        start_engine(SparkSettings(remote=connect_server.url))
    connect_server.stop()
    connect_server.start()
    assert ask(members, COUNT).to_pylist() == COUNTED
