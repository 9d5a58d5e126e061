"""The one pull interface of the exchange layer: whatever gives rows is an Input."""

from __future__ import annotations

import enum
from typing import Final, Literal, Protocol, TypeAlias

import pyarrow as pa


class Signal(enum.Enum):
    """What an Input says when it gives no batch."""

    WAIT = "wait"  # nothing yet: poll again after a spool below it has changed
    END = "end"  # nothing ever again; every later poll says END too


WAIT: Final[Literal[Signal.WAIT]] = Signal.WAIT
END: Final[Literal[Signal.END]] = Signal.END

Polled: TypeAlias = pa.RecordBatch | Signal


class Input(Protocol):
    """A stream of batches that never blocks; it raises the error that ended the stream."""

    def poll(self) -> Polled: ...
