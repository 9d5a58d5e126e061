"""Logins that fail are slowed down, each user from each address, in bounded memory."""

from __future__ import annotations

import pytest

from skerry.access.attempts import Attempts
from skerry.model.limits import LOGIN_FAILURES, LOGIN_FAILURES_KEPT, LOGIN_FAILURES_S, LOGIN_WAIT_MAX_S


def fail(attempts: Attempts, times: int, user: str = "anna", now: float = 0.0) -> list[float]:
    return [attempts.failed("10.0.0.1", user, now) for _ in range(times)]


def test_the_wait_grows_and_has_an_end() -> None:
    waits = fail(Attempts(), 40)
    assert waits[: LOGIN_FAILURES + 3] == [0.0] * (LOGIN_FAILURES - 1) + [1.0, 2.0, 4.0, 8.0]
    assert waits[-1] == LOGIN_WAIT_MAX_S


def test_time_passes() -> None:
    attempts = Attempts()
    fail(attempts, LOGIN_FAILURES + 2)
    assert attempts.wait_s("10.0.0.1", "anna", 1.0) == pytest.approx(3.0)
    assert attempts.wait_s("10.0.0.1", "anna", 4.0) == 0.0
    assert attempts.failed("10.0.0.1", "anna", 4.0) == 8.0
    assert attempts.wait_s("10.0.0.1", "anna", 4.0 + LOGIN_FAILURES_S) == 0.0
    assert len(attempts) == 0


def test_others_are_not_held_up_and_success_forgets() -> None:
    attempts = Attempts()
    fail(attempts, 10)
    assert attempts.wait_s("10.0.0.2", "anna", 0.0) == 0.0
    assert attempts.wait_s("10.0.0.1", "bob", 0.0) == 0.0
    attempts.succeeded("10.0.0.1", "anna")
    assert attempts.wait_s("10.0.0.1", "anna", 0.0) == 0.0


def test_many_names_take_bounded_memory() -> None:
    attempts = Attempts()
    fail(attempts, 10, "anna", 1.0)
    for number in range(3 * LOGIN_FAILURES_KEPT):
        attempts.failed("10.0.0.1", f"user {number}", 1.0)
    assert len(attempts) == LOGIN_FAILURES_KEPT
