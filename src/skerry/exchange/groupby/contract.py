"""What the cores of an elastic group-by ask of rows, of the state, and of their shell (docs/protocol.md, 16).

Rows on a channel keep their order: so rows for a new worker wait behind its share, within the channel's credits and
then in its spool.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from skerry.model.errors import SkerryError
from skerry.wire.groupby_messages import GroupByMessage

ROWS = 0  # the lane of rows; a share's is its epoch, which is greater


class Rows(Protocol):
    """Some rows, sent or partial, with the places of their keys."""

    @property
    def weight(self) -> int:
        """How many rows that were sent these are made of."""

    def parts(self, bounds: Sequence[int]) -> Sequence[Any]:
        """The rows whose place lies between each bound and the next, exclusive: as many Rows as there are gaps."""


class State(Protocol):
    """Groups of a worker, as partial rows with weights."""

    @property
    def groups(self) -> int: ...

    @property
    def size_bytes(self) -> int: ...

    @property
    def weight(self) -> int: ...

    def fold(self, rows: Any) -> None: ...

    def middle(self) -> int | None:
        """A place with about half of the state below it. None if one key has so much of it that no cut would help."""

    def take(self, first: int, upto: int) -> Any:
        """Groups of these places, to be sent piece by piece: they count no longer here, though some may be on disk."""

    def spill(self) -> None:
        """From now on what does not fit goes to disk."""

    def clear(self) -> None:
        """Nobody wants any of it."""


# --- instructions --------------------------------------------------------------------------------
class Send(msgspec.Struct, frozen=True):
    """On a control connection. What may be lost with it is said again."""

    to: str
    message: GroupByMessage


class Deliver(msgspec.Struct, frozen=True):
    """Rows, on the channel to this member, behind all that was delivered before."""

    to: str
    rows: Any


class DeliverShare(msgspec.Struct, frozen=True):
    """All that `take` gave, in the lane `epoch`, then the end of that lane: before all that is delivered later."""

    to: str
    epoch: int
    parts: Any


class GiveOn(msgspec.Struct, frozen=True):
    """Give the state's groups to what follows; call `given` when that has all of them."""


class LetGo(msgspec.Struct, frozen=True):
    """This part is over: end its channels and forget it after `marker_s`. The error if it is not complete."""

    error: SkerryError | None


class Conclude(msgspec.Struct, frozen=True):
    """At the manager, once: the group-by is complete, or failed."""

    error: SkerryError | None


class Forget(msgspec.Struct, frozen=True):
    """At the manager, last: nothing is left anywhere, but for members that did not answer."""

    silent: tuple[str, ...]


Instruction = Send | Deliver | DeliverShare | GiveOn | LetGo | Conclude | Forget
