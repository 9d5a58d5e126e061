"""The engines of the contract suite: every test runs with each of them. A process can have one kind only."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from skerry.spark.engine import Engine

GRACE_S = 60.0  # a job that was cancelled ends when its tasks look up, on a busy machine later


ENGINES = ("spark", "sail", "standalone", "connect")


@pytest.fixture(params=[pytest.param(kind, marks=getattr(pytest.mark, kind)) for kind in ENGINES])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """The shared engine of a kind; a test that leaves a job or a view of an edge in it has failed."""
    shared: Engine = request.getfixturevalue(f"{request.param}_engine")
    yield shared
    give_up = time.monotonic() + GRACE_S
    while shared.leftovers() and time.monotonic() < give_up:  # Spark's own books lag a little
        time.sleep(0.01)
    assert shared.leftovers() == []
