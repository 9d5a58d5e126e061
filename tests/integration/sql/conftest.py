"""The tests of the SQL layer share the run's Spark, in a session of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.sql.sql_fidelity import Fidelity

if TYPE_CHECKING:
    from skerry.spark.engine import Engine


@pytest.fixture(scope="module")
def sql_spark(spark_engine: Engine) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    usual = SparkSession.builder.getOrCreate()
    session = usual.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "2")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.variable.substitute", "false")
    # Rows of VALUES stay expressions in the plan, so that they can be compared.
    session.conf.set("spark.sql.parser.eagerEvalOfUnresolvedInlineTable", "false")
    # Spark's parser asks the thread's active session whether ${…} is substituted.
    active = session._jvm.org.apache.spark.sql.classic.SparkSession
    active.setActiveSession(session._jsparkSession)
    yield session
    active.setActiveSession(usual._jsparkSession)


@pytest.fixture(scope="module")
def fidelity(sql_spark: Any) -> Fidelity:
    return Fidelity(sql_spark)
