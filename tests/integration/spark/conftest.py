"""The engines of the contract suite: every test runs with each of them. A process can have one kind only."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from skerry.spark.engine import Engine
from skerry.testing.cluster import LocalCluster
from skerry.testing.sparks import ConnectServer, Standalone
from tests.integration.member.member_sites import PATIENT, nothing_left, write_sites
from tests.integration.spark.cluster_sites import Asking, Executors, Placed, ask, make_tables

GRACE_S = 60.0  # a job that was cancelled ends when its tasks look up, on a busy machine later


ENGINES = ("spark", "sail", "standalone", "connect")


@pytest.fixture(params=[pytest.param(kind, marks=getattr(pytest.mark, kind)) for kind in ENGINES])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """The shared engine of a kind; a test that leaves a job or a view of an edge in it has failed."""
    shared: Engine = request.getfixturevalue(f"{request.param}_engine")
    yield shared
    give_up = time.monotonic() + GRACE_S
    while shared.leftovers() and time.monotonic() < give_up:  # Spark's own books lag a little
        time.sleep(0.01)
    assert shared.leftovers() == []


@pytest.fixture(scope="session")
def placed(tmp_path_factory: pytest.TempPathFactory) -> Placed:
    return make_tables(tmp_path_factory.mktemp("clusters"))


@pytest.fixture(
    scope="module",
    params=[pytest.param(kind, marks=getattr(pytest.mark, kind)) for kind in ("standalone", "connect")],
)
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture(scope="module")
def shared(
    kind: str,
    request: pytest.FixtureRequest,
    placed: Placed,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[LocalCluster]:
    engine: Engine = request.getfixturevalue(f"{kind}_engine")
    path = write_sites(
        tmp_path_factory.mktemp("yaml") / "skerry.yaml", placed, limits={**PATIENT, "small_job_bytes": 1}
    )
    with LocalCluster(str(path), engine=engine) as cluster:
        yield cluster


@pytest.fixture
def members(shared: LocalCluster) -> Iterator[LocalCluster]:
    yield shared
    nothing_left(shared)


@pytest.fixture
def executors(kind: str, request: pytest.FixtureRequest) -> Executors:
    if kind == "standalone":
        cluster: Standalone = request.getfixturevalue("standalone_cluster")
        return cluster.executors
    server: ConnectServer = request.getfixturevalue("connect_server")
    return lambda: server.daemon.executors()


@pytest.fixture
def asking() -> Iterator[Asking]:
    """ask(…) in a thread of its own."""
    with ThreadPoolExecutor() as pool:
        yield lambda members, sql: pool.submit(ask, members, sql)
