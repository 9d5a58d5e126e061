"""A site's Spark. Importing this package does not import pyspark; starting an engine does."""

from __future__ import annotations

from skerry.spark.engine import Engine
from skerry.spark.settings import SparkSettings

__all__ = ["SparkSettings", "make_engine", "start_engine"]


def make_engine(settings: SparkSettings) -> Engine:
    """The engine for these settings, not yet started."""
    if settings.sail:
        from skerry.spark.recycled import RecycledSail

        return RecycledSail(settings)
    if settings.remote:
        from skerry.spark.connect import ConnectEngine

        return ConnectEngine(settings)
    from skerry.spark.session import ClassicEngine

    return ClassicEngine(settings)


def start_engine(settings: SparkSettings) -> Engine:
    """Blocks until Spark answers: about 10 s for an embedded Apache Spark, 2 s for Sail."""
    engine = make_engine(settings)
    engine.start()
    return engine
