"""Apache Spark's word, for answers of several Sail sites that one Sail does not give."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pyarrow as pa

from skerry.spark import SparkSettings, start_engine
from skerry.testing.checkers import same_table
from skerry.testing.oracle import SparkOracle
from skerry.testing.topologies import Files

_oracle: SparkOracle  # of the child process alone


class LastWord:
    """A Spark in a process of its own (a process has one kind of Spark), which starts with the first question."""

    def __init__(self, files: Files) -> None:
        self._child = ProcessPoolExecutor(1, get_context("spawn"), initializer=_start, initargs=(files,))

    def is_right(self, sql: str, rows: pa.Table, keys: Sequence[int] = ()) -> bool:
        return self._child.submit(_is_right, sql, rows, keys).result()

    def refuses(self, sql: str) -> bool:
        """It is an error in Spark too."""
        return self._child.submit(_refuses, sql).result()

    def close(self) -> None:
        self._child.shutdown()


def _start(files: Files) -> None:
    global _oracle
    os.environ["PYSPARK_PYTHON"] = sys.executable
    for name in [each for each in os.environ if each.startswith("SPARK_")]:  # as PySpark set them for Sail
        del os.environ[name]
    engine = start_engine(SparkSettings(conf={"spark.driver.memory": "1g"}))
    _oracle = SparkOracle(engine.session)  # type: ignore[attr-defined]
    files.add_to(_oracle)


def _is_right(sql: str, rows: pa.Table, keys: Sequence[int]) -> bool:
    try:
        same_table(rows, _oracle.run(sql), ordered=False, keys=keys)
    except Exception:  # another answer, or none
        return False
    return True


def _refuses(sql: str) -> bool:
    try:
        _oracle.run(sql)
    except Exception:
        return True
    return False
