"""Delta on Apache Spark, warm: a session of two cores, with jars that Spark's own resolver brings on first use."""

from __future__ import annotations

from typing import Any, Self

from bench.frame import CACHE, Options

PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"


class NoDelta(Exception):
    """Delta's jars cannot be had here."""


class DeltaOnSpark:
    """`table`: the folder's table, as statements name it."""

    def __init__(self, options: Options, folder: str) -> None:
        from pyspark.sql import SparkSession

        self.table = f"delta.`{folder}`"
        settings = {
            "spark.jars.packages": PACKAGE,
            "spark.jars.ivy": str(CACHE / "ivy"),
            "spark.driver.memory": options.heap,
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.databricks.delta.snapshotPartitions": "2",  # 50 small tasks to read the log, else
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        }
        builder: Any = SparkSession.builder
        builder = builder.master("local[2]")
        for name, value in settings.items():
            builder = builder.config(name, value)
        try:
            self._session = builder.getOrCreate()
        except Exception as error:  # of the JVM's start: the jars could not be found
            raise NoDelta(f"{PACKAGE}: {str(error).splitlines()[0][:200]}") from error

    def run(self, text: str) -> None:
        rows = self._session.sql(text).collect()[0][0]
        if rows != 1:
            raise AssertionError(f"{rows} rows, not 1: {text}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.stop()
