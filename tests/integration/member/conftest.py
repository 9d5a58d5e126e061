"""Members of one process that share the run's one Spark; a test that leaves anything of a query in them has failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from skerry.config import MemberConfig, load
from skerry.member.planning import plan_statement
from skerry.member.runs import PlanStatement
from skerry.spark.engine import Engine
from skerry.testing.cluster import LocalCluster
from tests.integration.member.member_sites import PATIENT, make_sites, nothing_left, write_sites

StartCluster = Callable[..., LocalCluster]


@pytest.fixture(scope="session")
def fault_tables(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Mapping[str, Path]]:
    return make_sites(tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="session")
def shared_members(
    spark_engine: Engine, fault_tables: Mapping[str, Mapping[str, Path]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalCluster]:
    """Three sites and a lite member, kiosk."""
    file = tmp_path_factory.mktemp("members") / "skerry.yaml"
    path = write_sites(file, fault_tables, limits=PATIENT, lite=("kiosk",))
    with LocalCluster(str(path), engine=spark_engine) as cluster:
        with cluster.connect("oslo") as connection:  # a Spark's first query takes long
            connection.cursor().execute("SELECT a.id FROM ticks a JOIN few b ON a.id = b.id").fetchall()
        yield cluster


@pytest.fixture
def members(shared_members: LocalCluster) -> Iterator[LocalCluster]:
    yield shared_members
    nothing_left(shared_members)


@pytest.fixture(scope="module")
def two_sites(
    sail_engine: Engine, fault_tables: Mapping[str, Mapping[str, Path]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalCluster]:
    """Oslo, which keeps the definitions, and bergen, with Sail and a place for tables of our own; and a lite member."""
    folder = tmp_path_factory.mktemp("own")
    tables = {name: fault_tables[name] for name in ("oslo", "bergen")}
    more = {"state": str(folder / "state")}
    path = write_sites(folder / "skerry.yaml", tables, limits=PATIENT, lite=("kiosk",), more=more)
    with LocalCluster(load(str(path)), engine=sail_engine) as cluster:
        yield cluster
        nothing_left(cluster)


@pytest.fixture
def start_sail(
    sail_engine: Engine, fault_tables: Mapping[str, Mapping[str, Path]], tmp_path: Path
) -> Iterator[StartCluster]:
    """start_sail(more=…, limits=…, lite=…, each=…, plan=…): members with Sail, for tests of what goes on between them.

    `each` is given each member's configuration and returns it changed; `plan` is how they understand statements.
    """
    started: list[LocalCluster] = []

    def start(
        more: Mapping[str, Any] | None = None,
        limits: Mapping[str, float] | None = None,
        lite: tuple[str, ...] = (),
        each: Callable[[MemberConfig], MemberConfig] = lambda member: member,
        plan: PlanStatement = plan_statement,
    ) -> LocalCluster:
        limits = {**PATIENT, **(limits or {})}
        path = write_sites(tmp_path / "skerry.yaml", fault_tables, limits=limits, lite=lite, more=more)
        config = load(path)
        members = {name: each(member) for name, member in config.members.items()}
        cluster = LocalCluster(msgspec.structs.replace(config, members=members), engine=sail_engine, plan=plan)
        cluster.start()
        started.append(cluster)
        return cluster

    try:
        yield start
        for cluster in started:
            nothing_left(cluster)
    finally:
        for cluster in started:
            cluster.stop()


@pytest.fixture
def start_members(
    spark_engine: Engine, fault_tables: Mapping[str, Mapping[str, Path]], tmp_path: Path
) -> Iterator[StartCluster]:
    """start_members(tables=…, limits=…, lite=…): a cluster of the test's own, checked and stopped at its end."""
    started: list[LocalCluster] = []

    def start(
        tables: Mapping[str, Mapping[str, Path]] = fault_tables,
        limits: Mapping[str, float] | None = None,
        lite: tuple[str, ...] = (),
    ) -> LocalCluster:
        path = write_sites(tmp_path / "skerry.yaml", tables, limits={**PATIENT, **(limits or {})}, lite=lite)
        cluster = LocalCluster(str(path), engine=spark_engine)
        cluster.start()
        started.append(cluster)
        return cluster

    try:
        yield start
        for cluster in started:
            nothing_left(cluster)
    finally:
        for cluster in started:
            cluster.stop()
