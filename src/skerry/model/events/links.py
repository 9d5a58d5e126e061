"""What happens between members, and between a member and its clients."""

from __future__ import annotations

import logging

from skerry.model.events.event import Cause, Event
from skerry.model.ids import ChannelId


class PeerConnected(Event, frozen=True):
    layer = "wire"

    member: str
    peer: str

    def line(self) -> str:
        return f"{self.member}: {self.peer} is up"


class PeerInterrupted(Event, frozen=True):
    """The control connection broke; it is dialled again, and what was not acked is sent again."""

    layer = "wire"

    member: str
    peer: str
    reason: str

    def line(self) -> str:
        return f"{self.member}: {self.peer}: {self.reason}"


class PeerAwaited(Event, frozen=True):
    """It has not been heard of since this member started, and refuses connections: it may be starting too."""

    layer = "wire"

    member: str
    peer: str

    def line(self) -> str:
        return f"{self.member}: {self.peer} does not listen yet"


class PeerLost(Event, frozen=True):
    """It is waited for no longer: queries that need it end."""

    layer = "wire"
    level = logging.WARNING

    member: str
    peer: str
    reason: str

    def line(self) -> str:
        return f"{self.member}: {self.reason}"


class DialFailed(Event, frozen=True):
    layer = "wire"
    level = logging.DEBUG

    member: str
    peer: str
    reason: str

    def line(self) -> str:
        return f"{self.member}: cannot reach {self.peer}: {self.reason}"


class ListeningBegun(Event, frozen=True):
    layer = "wire"

    member: str
    address: str

    def line(self) -> str:
        return f"{self.member}: listening at {self.address}"


class ConnectionAccepted(Event, frozen=True):
    layer = "wire"
    level = logging.DEBUG

    member: str
    kind: str
    address: str
    by: str

    def line(self) -> str:
        return f"{self.address}: {self.kind} connection of {self.by or 'nobody by name'}"


class ConnectionRefused(Event, frozen=True):
    """The other side was told why, and the connection was closed."""

    layer = "wire"
    level = logging.WARNING

    address: str
    reason: Cause

    def line(self) -> str:
        return f"{self.address}: refused: {self.reason}"


class ConnectionBroken(Event, frozen=True):
    """Its other side went without a word."""

    layer = "wire"

    reason: str

    def line(self) -> str:
        return self.reason


class PortTaken(Event, frozen=True):
    layer = "wire"
    level = logging.DEBUG

    channel: ChannelId
    reason: str

    def line(self) -> str:
        return f"{self.channel}: {self.reason}"


class DataPortsUsedUp(Event, frozen=True):
    layer = "wire"
    level = logging.WARNING

    channel: ChannelId
    first: int
    last: int

    def line(self) -> str:
        ports = f"all data ports from {self.first} to {self.last} are in use"
        return f"{self.channel}: {ports}: it shares the main port"


class ClientDropped(Event, frozen=True):
    layer = "client"

    address: str
    heartbeats: int

    def line(self) -> str:
        return f"{self.address}: dropped: silent for {self.heartbeats} heartbeats"


class LoginRefused(Event, frozen=True):
    """`user`: as it called itself. Attempts that come too soon after others are not told of."""

    layer = "wire"
    level = logging.WARNING

    user: str
    address: str
    reason: str

    def line(self) -> str:
        return f"login {f'of {self.user} ' if self.user else ''}from {self.address} refused: {self.reason}"


class AccessFileRefused(Event, frozen=True):
    """Nobody can log in with what stands in this file, until it is right again."""

    layer = "wire"
    level = logging.ERROR

    reason: str

    def line(self) -> str:
        return self.reason
