"""Members with Sail that the client's tests share; what a test leaves of a query in them is a failure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skerry.spark.engine import Engine
from skerry.testing.cluster import LocalCluster
from tests.integration.client.kinds import KINDS
from tests.integration.member.member_sites import PATIENT, make_sites, nothing_left, write_sites


@pytest.fixture(scope="session")
def client_cluster(sail_engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """oslo, bergen and tromso, each with a part of `ticks` and `few`; oslo has `kinds` as well."""
    tables = make_sites(tmp_path_factory.mktemp("clients"))
    tables["oslo"]["kinds"] = _kinds(tmp_path_factory.mktemp("kinds"))
    file = tmp_path_factory.mktemp("members") / "skerry.yaml"
    path = write_sites(file, tables, limits=PATIENT, lite=("kiosk",))
    with LocalCluster(str(path), engine=sail_engine) as cluster:
        yield cluster


@pytest.fixture
def cluster(client_cluster: LocalCluster) -> Iterator[LocalCluster]:
    yield client_cluster
    nothing_left(client_cluster)


def _kinds(folder: Path) -> Path:
    columns = {kind: pa.array(values, arrow) for kind, (arrow, values) in KINDS.items()}
    pq.write_table(pa.table(columns), folder / "kinds.parquet")
    return folder
