"""A small Spark for the differential tests of the SQL layer."""

from __future__ import annotations

import os
import sys
from typing import Any


def start_session() -> Any:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.variable.substitute": "false",
        "spark.sql.shuffle.partitions": "2",
        # Rows of VALUES stay expressions in the plan, so that they can be compared.
        "spark.sql.parser.eagerEvalOfUnresolvedInlineTable": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("skerry-sql-tests")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)
    return session
