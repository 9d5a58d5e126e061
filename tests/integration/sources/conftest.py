"""Servers that hold tables of sites: one of each kind for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.found import Missing, jars
from tests.servers.postgres import PASSWORD, Postgres
from tests.servers.store import Store


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
def store(drivers: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    server = Store(tmp_path_factory.mktemp("store"))
    yield server
    server.stop()
