"""What a query is told when its Spark's process ends."""

from __future__ import annotations

import pytest

from skerry.model.errors import EngineEnded
from skerry.spark.engine import Job
from skerry.spark.jvm import OUT_OF_MEMORY
from skerry.spark.session import ClassicEngine
from skerry.spark.settings import SparkSettings


class _Process:
    """A JVM as `Process` sees it. PySpark closes the session of one that is gone while calls still wait for it."""

    def __init__(self, how: str) -> None:
        self.is_alive = not how
        self._how = how

    def how_ended(self, wait_s: float) -> str:
        return self._how


class _Closed(ClassicEngine):
    """Every call of the session's context fails as it does after its end."""

    def __init__(self, how: str) -> None:
        super().__init__(SparkSettings(cores=1))
        self._process = _Process(how)

    def _engine_process(self) -> _Process:  # type: ignore[override]
        return self._process

    def _settings_of(self, job: Job) -> object:  # type: ignore[override]
        raise AttributeError("'NoneType' object has no attribute 'setCallSite'")


JOB = Job("tag", "SELECT 1", {}, {}, {}, None)


def test_a_session_that_was_closed_under_its_job_is_the_engines_end() -> None:
    with pytest.raises(EngineEnded, match="ran out of memory"):
        _Closed(OUT_OF_MEMORY).run(JOB, lambda _schema: None)


def test_the_same_error_beside_a_living_process_is_ours() -> None:
    with pytest.raises(AttributeError, match="setCallSite"):
        _Closed("").run(JOB, lambda _schema: None)
