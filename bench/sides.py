"""Ways to a table, each with its client in a process of its own, as users have it: Skerry, Spark Connect, Thrift.

In one process the clients would share an interpreter with each other, or with the member.
"""

from __future__ import annotations

import multiprocessing
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import skerry

START_S = 120.0
WORK_S = 600.0
# Rows that impyla asks for at once; more than its 1024, which would make the Thrift server look slower than it is.
THRIFT_ROWS = 10_000

Folders = Mapping[str, str]


class Side(ABC):
    """One client's session; made in the process that uses it."""

    @abstractmethod
    def fetch(self, text: str) -> int:
        """Rows of the whole result, once all of them are here."""

    @abstractmethod
    def first(self, text: str) -> int:
        """1 once the first row is here; the rest is not wanted."""

    @abstractmethod
    def close(self) -> None:
        """The end of the session."""


class SkerrySide(Side):
    def __init__(self, address: str, folders: Folders) -> None:
        self._connection = skerry.connect(f"skerry://{address}")
        self._cursor = self._connection.cursor()

    def fetch(self, text: str) -> int:
        return int(self._cursor.execute(text).fetch_arrow_table().num_rows)

    def first(self, text: str) -> int:
        with self._connection.cursor() as cursor:
            return int(cursor.execute(text).fetchone() is not None)

    def close(self) -> None:
        self._connection.close()


class ConnectSide(Side):
    def __init__(self, address: str, folders: Folders) -> None:
        from pyspark.sql import SparkSession

        self._session: Any = SparkSession.builder.remote(f"sc://{address}").create()
        for table, folder in folders.items():
            self._session.read.parquet(folder).createOrReplaceTempView(table)

    def fetch(self, text: str) -> int:
        return int(self._session.sql(text).toArrow().num_rows)

    def first(self, text: str) -> int:
        rows = self._session.sql(text).toLocalIterator()
        return int(next(iter(rows), None) is not None)

    def close(self) -> None:
        self._session.stop()


class ThriftSide(Side):
    def __init__(self, address: str, folders: Folders) -> None:
        from impala.dbapi import connect

        host, port = address.split(":")
        self._connection: Any = connect(host, int(port), auth_mechanism="NOSASL")
        self._cursor = self._connection.cursor()
        self._cursor.arraysize = THRIFT_ROWS
        for table, folder in folders.items():
            self._cursor.execute(f"CREATE TEMPORARY VIEW {table} USING parquet OPTIONS (path '{folder}')")

    def fetch(self, text: str) -> int:
        self._cursor.execute(text)
        return len(self._cursor.fetchall())

    def first(self, text: str) -> int:
        self._cursor.execute(text)
        found = self._cursor.fetchone() is not None
        self._cursor.close_operation()
        return int(found)

    def close(self) -> None:
        self._connection.close()


MakeSide = Callable[[str, Folders], Side]


class Client:
    """The other process, as this one sees it."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def fetch(self, text: str) -> int:
        return self._ask("fetch", text)

    def first(self, text: str) -> int:
        return self._ask("first", text)

    def ready(self) -> None:
        self._answer(START_S)

    def _ask(self, what: str, text: str) -> int:
        self._pipe.send((what, text))
        return self._answer(WORK_S)

    def _answer(self, wait_s: float) -> int:
        if not self._pipe.poll(wait_s):
            raise TimeoutError(f"the client said nothing for {wait_s:.0f} s")
        answer = self._pipe.recv()
        if isinstance(answer, str):
            raise RuntimeError(f"the client failed: {answer}")
        rows: int = answer
        return rows


def serve(make: MakeSide, address: str, folders: Folders, pipe: Connection) -> None:
    """The client's process: (what, text) comes in, a number of rows goes out; None ends it."""
    try:
        side = make(address, folders)
        pipe.send(0)
        while (asked := pipe.recv()) is not None:
            what, text = asked
            pipe.send(side.fetch(text) if what == "fetch" else side.first(text))
        side.close()
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")


@contextmanager
def client_process(make: MakeSide, address: str, folders: Folders) -> Iterator[Client]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(make, address, dict(folders), theirs), daemon=True)
    process.start()
    client = Client(ours)
    try:
        client.ready()
        yield client
    finally:
        if process.is_alive():
            ours.send(None)
        process.join(START_S)
        process.kill()
