"""What happens to the channels that carry a query's rows."""

from __future__ import annotations

import logging

from skerry.model.amounts import counted
from skerry.model.events.event import Cause, Event
from skerry.model.ids import ChannelId


class ChannelOpened(Event, frozen=True):
    """At its receiver; `next_seq` above 0: rows came over an earlier connection."""

    layer = "wire"
    level = logging.DEBUG

    channel: ChannelId
    next_seq: int

    def line(self) -> str:
        return f"{self.channel}: opened" + (f" again, from batch {self.next_seq}" if self.next_seq else "")


class ChannelInterrupted(Event, frozen=True):
    """Its connection was lost; the sender dials again."""

    layer = "wire"

    channel: ChannelId
    reason: str

    def line(self) -> str:
        return f"{self.channel}: {self.reason}"


class ChannelResumed(Event, frozen=True):
    layer = "wire"

    channel: ChannelId
    next_seq: int

    def line(self) -> str:
        return f"{self.channel}: resumed from batch {self.next_seq}"


class ChannelStalled(Event, frozen=True):
    """Batches wait for credit: the receiver is slower than the sender."""

    layer = "wire"
    level = logging.DEBUG

    channel: ChannelId
    waited_s: float

    def line(self) -> str:
        return f"{self.channel}: has waited {self.waited_s:g} s for credit"


class ChannelEnded(Event, frozen=True):
    """At its sender. `outcome`: "finished", "stopped" (the receiver has enough) or "gone" (its query is over)."""

    layer = "wire"
    level = logging.DEBUG

    channel: ChannelId
    outcome: str
    rows: int
    sent_bytes: int
    stalled_s: float

    def line(self) -> str:
        return f"{self.channel}: {self.outcome}, {counted(self.rows)}, {self.sent_bytes:,} bytes sent"


class ChannelFailed(Event, frozen=True):
    """At its receiver: its rows cannot all arrive."""

    layer = "wire"

    channel: ChannelId
    error: Cause

    def line(self) -> str:
        return f"{self.channel}: {self.error}"
