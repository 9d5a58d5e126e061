"""A share of `python -m metamorphic --filtered`: what filters and masks hide might as well not be in the files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from metamorphic import filtered
from metamorphic.check import World
from skerry.spark.engine import Engine
from skerry.testing.topologies import FIVE

pytestmark = pytest.mark.sail


@pytest.fixture(scope="module")
def hiding(tmp_path_factory: pytest.TempPathFactory, sail_engine: Engine) -> Iterator[World]:
    with filtered.world(Path(tmp_path_factory.mktemp("hiding")), sail_engine, (FIVE,)) as found:
        yield found


# The ones of the first hundred that have rows and join, group or sort parts of tables.
@pytest.mark.parametrize("seed", [1003, 1005, 1011, 1013])
def test_hidden_rows_might_as_well_not_be_there(hiding: World, seed: int) -> None:
    outcome = filtered.check(hiding, seed)
    assert not outcome.refusal
    assert outcome.unlike == [], outcome.sql
    assert outcome.runs
