"""One cluster of processes for all tests here; a test that leaves anything of a query in it has failed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.processes import LITE, Sites
from tests.integration.member.member_sites import SITES


@pytest.fixture(scope="session")
def shared_sites(tmp_path_factory: pytest.TempPathFactory, tpch: Path) -> Iterator[Sites]:
    sites = Sites(tmp_path_factory.mktemp("e2e"), tpch)
    try:
        sites.start(*SITES, LITE)
        yield sites
    finally:
        sites.stop()


@pytest.fixture
def sites(shared_sites: Sites) -> Iterator[Sites]:
    """All members run, before and after."""
    yield shared_sites
    shared_sites.start(*(name for name in shared_sites.ports if name not in shared_sites.running))
    shared_sites.nothing_left()
