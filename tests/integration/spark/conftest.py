"""The engines of the contract suite: every test runs once with Apache Spark and once with Sail."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from skerry.spark.engine import Engine

GRACE_S = 60.0  # a job that was cancelled ends when its tasks look up, on a busy machine later


@pytest.fixture(params=[pytest.param("spark", marks=pytest.mark.spark), pytest.param("sail", marks=pytest.mark.sail)])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """The shared engine of a kind; a test that leaves a job or a view of an edge in it has failed."""
    shared: Engine = request.getfixturevalue(f"{request.param}_engine")
    yield shared
    give_up = time.monotonic() + GRACE_S
    while shared.leftovers() and time.monotonic() < give_up:  # Spark's own books lag a little
        time.sleep(0.01)
    assert shared.leftovers() == []
