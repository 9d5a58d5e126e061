"""What has been said and not answered: it is said again, after twice as long each time. Pure."""

from __future__ import annotations

from skerry.exchange.groupby.contract import Instruction, Send
from skerry.wire.groupby_messages import GroupByMessage


class Sayings:
    """One of each kind of message to each member: the newest. Said again after `first_s`, then each `most_s`."""

    def __init__(self, first_s: float, most_s: float) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._open: dict[tuple[type[GroupByMessage], str], Send] = {}
        self._due: dict[tuple[type[GroupByMessage], str], tuple[float, float]] = {}

    @property
    def deadline(self) -> float | None:
        return min((due for due, _ in self._due.values()), default=None)

    def say(self, to: str, message: GroupByMessage, now: float) -> Send:
        key = (type(message), to)
        self._open[key] = Send(to, message)
        self._due[key] = (now + self._first_s, self._first_s)
        return self._open[key]

    def answered(self, kind: type[GroupByMessage], to: str) -> None:
        self._open.pop((kind, to), None)
        self._due.pop((kind, to), None)

    def clear(self) -> None:
        self._open.clear()
        self._due.clear()

    def again(self, now: float) -> list[Instruction]:
        """What is to be said again now."""
        said: list[Instruction] = []
        for key, (due, pause_s) in list(self._due.items()):
            if now >= due:
                longer_s = min(2 * pause_s, self._most_s)
                self._due[key] = (now + longer_s, longer_s)
                said.append(self._open[key])
        return said
