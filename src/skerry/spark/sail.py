"""Sail: a Spark Connect server without Java, inside the member's own process."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from skerry.errors import SiteError
from skerry.spark.connect import ConnectEngine
from skerry.spark.settings import SparkSettings, check_conf
from skerry.spark.source import SourceSpec, source_function
from skerry.spark.types import struct_of


class SailEngine(ConnectEngine):
    """Runs tasks once, in threads of this process; has no task context, so partitions have no numbers."""

    # Nor does it sort within partitions where SORT BY says so (seen with 0.7.2).
    numbers_lanes = False

    retries_tasks = False

    def __init__(self, settings: SparkSettings) -> None:
        check_conf(settings)
        super().__init__(settings)
        self._server: Any = None

    def _open(self) -> SparkSession:
        try:
            from pysail.spark import SparkConnectServer
        except ImportError:
            raise SiteError("Sail is not installed", suggestion="pip install 'skerry[sail]'") from None
        self._server = SparkConnectServer("127.0.0.1", 0)
        self._server.start(background=True)
        host, port = self._server.listening_address
        try:
            return self._connect(f"sc://{host}:{port}")
        except BaseException:
            self._close()
            raise

    def _close(self) -> None:
        super()._close()
        if self._server is not None:
            self._server.stop()
            self._server = None

    def _edge_frame(self, spec: SourceSpec) -> DataFrame:
        count = spec.edge.partitions
        shares = self._spark().range(0, count, 1, count)
        return shares.mapInArrow(source_function(spec), struct_of(spec.edge.columns))
