"""What the queries of each user took of late: seconds of Spark, and rows that were given. Pure."""

from __future__ import annotations

from collections import OrderedDict

from skerry.model.errors import Overloaded
from skerry.model.limits import SPENDERS, SPENDING_STEPS, Limits


class Spending:
    """Added up over `limits.spending_s`, in a few steps: a step is forgotten as a whole."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._step_s = limits.spending_s / SPENDING_STEPS
        self._spent: OrderedDict[str, dict[int, tuple[float, int]]] = OrderedDict()  # who spent last stands last

    def add(self, user: str, spark_s: float, rows: int, now: float) -> None:
        if not (self._limits.spark_s_of_user or self._limits.result_rows_of_user):
            return
        steps = self._spent.setdefault(user, {})
        self._spent.move_to_end(user)
        step = int(now // self._step_s)
        seconds, given = steps.get(step, (0.0, 0))
        steps[step] = seconds + spark_s, given + rows
        if len(self._spent) > SPENDERS:
            self._spent.popitem(last=False)

    def check(self, user: str, now: float) -> None:
        """Overloaded for a user that has had its share."""
        steps = self._spent.get(user)
        if steps is None:
            return
        oldest = int(now // self._step_s) - SPENDING_STEPS
        for step in [step for step in steps if step <= oldest]:
            del steps[step]
        spark_s = sum(seconds for seconds, _ in steps.values())
        rows = sum(given for _, given in steps.values())
        limits = self._limits
        if limits.spark_s_of_user and spark_s >= limits.spark_s_of_user:
            self._refuse(user, f"{spark_s:.0f} s of Spark", "spark_s_of_user", min(steps) - oldest)
        if limits.result_rows_of_user and rows >= limits.result_rows_of_user:
            self._refuse(user, f"{rows} rows", "result_rows_of_user", min(steps) - oldest)
        if not steps:
            del self._spent[user]

    def _refuse(self, user: str, what: str, limit: str, steps: int) -> None:
        raise Overloaded(
            f"the queries of {user} have taken {what} in the last {self._limits.spending_s:g} s (limits.{limit})",
            suggestion=f"try again in {steps * self._step_s:.0f} s",
        )
