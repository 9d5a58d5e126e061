"""Three sites that share one Spark, and that same Spark alone as the oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skerry.spark.engine import Engine
from skerry.testing.cluster import LocalCluster
from skerry.testing.corpus import part_view
from skerry.testing.nasty import SITES, SampleTable, make_nasty
from skerry.testing.oracle import SparkOracle, make_tpch
from skerry.testing.sites import tpch_tables, write_config
from tests.integration.member.member_sites import stats_of, wait_until

Ask = Callable[..., pa.Table]
Known = Callable[..., pa.Table]
# Statistics come from footers and samples, one table after the other, beside whatever else the machine has to do.
STATISTICS_S = 90.0

# One row a batch and one byte of credit: every batch waits for its own grant.
TINY = {"batch_rows": 1, "first_credits_bytes": 1, "page_rows": 3}
# So slow that every byte saved pays.
SLOW_LINKS = [{"between": [one, other], "mbit": 0.01} for one in SITES for other in SITES if one < other]


def wait_for_statistics(cluster: LocalCluster) -> None:
    """Every member knows those of all Parquet tables: plans do not depend on how far the background has come."""
    told = [
        (at, site, table)
        for at in cluster.members
        for site, member in cluster.config.members.items()
        for table, each in member.tables.items()
        if each.format == "parquet"
    ]
    wait_until(lambda: all(stats_of(cluster, *each) for each in told), "statistics", STATISTICS_S)


@contextmanager
def started(path: Path, engine: Engine) -> Iterator[LocalCluster]:
    """A cluster whose plans are those of a cluster that has been there for a while."""
    with LocalCluster(str(path), engine=engine) as cluster:
        wait_for_statistics(cluster)
        yield cluster


@pytest.fixture(scope="session")
def data_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sites")


@pytest.fixture(scope="session")
def sample_tables(data_root: Path) -> tuple[SampleTable, ...]:
    """TPC-H at scale 0.01 and the nasty tables."""
    return (*tpch_tables(make_tpch(data_root / "tpch", 0.01)), *make_nasty(data_root))


@pytest.fixture(scope="session")
def oracle(spark_engine: Any, sample_tables: tuple[SampleTable, ...]) -> SparkOracle:
    """Every table whole by its name, and each part by its site's name too."""
    oracle = SparkOracle(spark_engine.session)
    for name in {table.name: None for table in sample_tables}:
        parts = [table for table in sample_tables if table.name == name]
        _add(oracle, name, parts)
        for part in parts:
            _add(oracle, part_view(part.site, name), [part])
    return oracle


@pytest.fixture(scope="session")
def cluster(spark_engine: Engine, data_root: Path, sample_tables: tuple[SampleTable, ...]) -> Iterator[LocalCluster]:
    path = write_config(data_root / "skerry.yaml", data_root, sample_tables)
    with started(path, spark_engine) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def tiny_cluster(
    spark_engine: Engine, data_root: Path, sample_tables: tuple[SampleTable, ...]
) -> Iterator[LocalCluster]:
    """The same sites with the smallest batches, credits and pages that are allowed."""
    path = write_config(data_root / "tiny.yaml", data_root, sample_tables, limits=TINY)
    with started(path, spark_engine) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def slow_cluster(
    spark_engine: Engine, data_root: Path, sample_tables: tuple[SampleTable, ...]
) -> Iterator[LocalCluster]:
    """The same sites with slow links."""
    path = write_config(data_root / "slow.yaml", data_root, sample_tables, links=SLOW_LINKS)
    with started(path, spark_engine) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def sail_cluster(
    sail_engine: Engine, data_root: Path, sample_tables: tuple[SampleTable, ...]
) -> Iterator[LocalCluster]:
    """The same sites on Sail: no JVM."""
    path = write_config(data_root / "sail.yaml", data_root, sample_tables, spark={"sail": True})
    with started(path, sail_engine) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def known() -> Known:
    """What Spark answers to a statement of a corpus, kept so that tests on Sail need no JVM. `known(name, answer)`
    writes it where it is missing; the test that does so fails, so that somebody looks at it."""

    def read(name: str, answer: pa.Table | None = None) -> pa.Table:
        path = Path(__file__).parent / f"known/{name}.parquet"
        if answer is not None and not path.exists():
            pq.write_table(answer, path)
            pytest.fail(f"{path.name} was missing and is written: look at it and commit it")
        return pq.read_table(path)

    return read


@pytest.fixture(scope="session")
def ask(cluster: LocalCluster) -> Ask:
    """ask(sql, parameters=None, at="oslo") → the whole result."""
    return _asker(cluster)


@pytest.fixture(scope="session")
def ask_tiny(tiny_cluster: LocalCluster) -> Ask:
    return _asker(tiny_cluster)


@pytest.fixture(scope="session")
def ask_sail(sail_cluster: LocalCluster) -> Ask:
    return _asker(sail_cluster)


def _asker(cluster: LocalCluster) -> Ask:
    def ask(sql: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None, at: str = "oslo") -> pa.Table:
        with cluster.connect(at) as connection, connection.cursor() as cursor:
            return cursor.execute(sql, parameters).fetch_arrow_table()

    return ask


def _add(oracle: SparkOracle, name: str, parts: list[SampleTable]) -> None:
    first = parts[0]
    ddl = ", ".join(f"`{column}` {kind}" for column, kind in first.columns)
    oracle.add_table(name, [part.path for part in parts], first.format, ddl, first.options)
