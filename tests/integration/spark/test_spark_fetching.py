"""Which functions of XML fetch what a document names: those that are refused, and no others."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from skerry.spark.engine import Engine
from skerry.spark.failures import SPARK_ERRORS
from skerry.sql.functions import admitted

pytestmark = pytest.mark.spark


class Listening:
    """Somebody who waits for rows to come by HTTP, and hangs up on whoever brings them."""

    def __init__(self, server: socket.socket) -> None:
        self.address = f"http://127.0.0.1:{server.getsockname()[1]}"
        self.came = 0
        self._server = server
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                self.came += 1
                connection.close()


@pytest.fixture
def listening() -> Iterator[Listening]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield Listening(server)
        server.shutdown(socket.SHUT_RDWR)  # wakes its thread


def ask(engine: Engine, call: str, listening: Listening) -> None:
    """Give the function documents with an external DTD, and with an external entity."""
    session: Any = engine.session  # type: ignore[attr-defined]
    for doctype in (f'a SYSTEM "{listening.address}/dtd"', f'a [<!ENTITY e SYSTEM "{listening.address}/entity">]'):
        document = f"<!DOCTYPE {doctype}><a><b>&e;</b></a>"
        for text in (
            f"SELECT {call.format('s')} AS v FROM VALUES ('{document}') AS t(s)",
            f"SELECT {call.format(repr(document))} AS v",
        ):
            with contextlib.suppress(*SPARK_ERRORS):  # a document that is refused was not fetched
                session.sql(text).collect()


def test_functions_that_are_admitted_fetch_nothing(spark_engine: Engine, listening: Listening) -> None:
    assert not any(admitted().functions[name].refused for name in ("from_xml", "schema_of_xml", "to_xml"))
    for call in ("from_xml({}, 'b STRING')", "schema_of_xml({})", "to_xml(from_xml({}, 'b STRING'))"):
        ask(spark_engine, call, listening)
        assert listening.came == 0, call


def test_those_that_fetch_are_refused(spark_engine: Engine, listening: Listening) -> None:
    assert all(admitted().functions[name].refused for name in admitted().functions if name.startswith("xpath"))
    ask(spark_engine, "xpath_string({}, 'a/b')", listening)
    assert listening.came > 0
