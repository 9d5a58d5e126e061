"""Who ran when an engine ended: refused after two ends, alone among suspects before."""

from __future__ import annotations

import threading

import pytest

from skerry.model.errors import Cancelled, SiteError
from skerry.spark.suspects import Suspects


def nothing() -> None:
    """Nobody cancels."""


def runs(suspects: Suspects, statement: str, query: str = "q") -> None:
    with suspects.turn(statement, query, nothing):
        pass


def test_a_statement_is_refused_after_two_ends_and_no_other_is() -> None:
    suspects = Suspects("Sail")
    suspects.ran_at_end("bad")
    suspects.ran_at_end("beside")
    runs(suspects, "bad")
    runs(suspects, "beside")
    suspects.acquit("beside")
    suspects.ran_at_end("bad")
    suspects.ran_at_end("beside")
    with pytest.raises(SiteError, match="Sail ended 2 times while it ran this statement"):
        runs(suspects, "bad")
    runs(suspects, "beside")
    runs(suspects, "new")


def test_an_end_of_an_engine_that_was_full_before_says_nothing_of_a_statement() -> None:
    suspects = Suspects("Sail")
    for _ in range(3):
        suspects.ran_at_end("beside", was_full=True)
    runs(suspects, "beside")
    suspects.ran_at_end("bad")
    suspects.ran_at_end("bad", was_full=True)  # nor for it
    runs(suspects, "bad")
    suspects.ran_at_end("bad")
    with pytest.raises(SiteError, match="Sail ended 2 times while it ran this statement"):
        runs(suspects, "bad")


def test_suspects_run_one_after_the_other_but_for_those_of_one_query() -> None:
    suspects = Suspects("Sail")
    for statement in ("one", "two", "three"):
        suspects.ran_at_end(statement)
    came = threading.Event()

    def second() -> None:
        with suspects.turn("two", "other", nothing):
            came.set()

    waits = threading.Thread(target=second)
    with suspects.turn("one", "q", nothing):
        waits.start()
        runs(suspects, "three")  # of the same query, which may wait for its rows
        runs(suspects, "new", "another")
        assert not came.wait(0.3)
    waits.join(30)
    assert came.is_set()


def test_a_cancel_ends_the_wait_for_a_turn() -> None:
    suspects = Suspects("Sail")
    suspects.ran_at_end("one")
    suspects.ran_at_end("two")

    def cancelled() -> None:
        raise Cancelled("it was")

    with suspects.turn("one", "q", nothing), pytest.raises(Cancelled), suspects.turn("two", "other", cancelled):
        pass
    runs(suspects, "two", "other")
