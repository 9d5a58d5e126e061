"""One Spark for the tests of the SQL layer: that of the run if it has one, else a small one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.sql.sql_fidelity import Fidelity


@pytest.fixture(scope="session")
def sql_spark(request: pytest.FixtureRequest) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    request.getfixturevalue("spark_engine")
    # The engine's own session must keep its settings: these tests get a session of their own in the same Spark.
    active = SparkSession.getActiveSession()
    assert active is not None
    session = active.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "2")
    session.conf.set("spark.sql.variable.substitute", "false")
    yield session


@pytest.fixture(scope="session")
def fidelity(sql_spark: Any) -> Fidelity:
    return Fidelity(sql_spark)
