"""Servers that hold tables of sites: one of each kind for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from skerry.catalog.stores import spark_conf
from skerry.model.sources import S3Store, Storage
from skerry.spark.engine import Engine
from tests.servers.found import Missing, jars
from tests.servers.postgres import PASSWORD, Postgres
from tests.servers.store import KEY, SECRET, Store


@pytest.fixture(scope="session")
def drivers() -> str:
    try:
        return jars()
    except Missing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def postgres(drivers: str) -> Iterator[Postgres]:
    server = Postgres()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SHOP_PASSWORD", PASSWORD)
        yield server
    server.remove()


@pytest.fixture(scope="session")
def store() -> Iterator[Store]:
    server = Store()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def s3_engine(spark_engine: Engine, drivers: str, store: Store) -> Engine:
    """The Spark of this run, told of the store: its members have one Spark, whose settings it was started with."""
    hadoop = spark_engine.session.sparkContext._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
    where = S3Store(endpoint=store.endpoint, path_style=True)
    given = spark_conf(Storage(s3=where)) | {"fs.s3a.access.key": KEY, "fs.s3a.secret.key": SECRET}
    for key, value in given.items():
        hadoop.set(key.removeprefix("spark.hadoop."), value)
    return spark_engine
