"""A share of `python -m metamorphic --sail --changes N`: a table of our own has the rows of a dict, after anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from metamorphic.changes import Story, world
from skerry.spark.engine import Engine

pytestmark = pytest.mark.sail


def test_stories_end_with_the_rows_of_a_dict(sail_engine: Engine, tmp_path: Path) -> None:
    with world(tmp_path, sail_engine) as cluster:
        for seed in (1000, 1005):  # keys are doubles, and texts with doubles: NaN, -0.0, two ways to write é
            story = Story(seed, cluster)
            story.run(10)
            assert story.looks
