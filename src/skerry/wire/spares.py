"""Data connections whose channel has ended, kept for a moment for the next channel to the same member.

A login and its proof cost more than the rows of a small edge (docs/protocol.md, 4.9).
"""

from __future__ import annotations

import asyncio

import msgspec

from skerry.model.limits import SPARE_CONNECTIONS, SPARE_S
from skerry.wire.messages import NEXT_CHANNEL_VERSION, Goodbye
from skerry.wire.tcp import Connection


class Spare(msgspec.Struct, frozen=True):
    """`epoch`: of the member that it leads to, as its login said."""

    connection: Connection
    epoch: int
    until: asyncio.TimerHandle


class Spares:
    """Of one member that sends, by the member that receives. Nobody reads from a connection that is here."""

    def __init__(self, idle_s: float = SPARE_S, each_max: int = SPARE_CONNECTIONS) -> None:
        self._idle_s = idle_s
        self._each_max = each_max
        self._idle: dict[str, list[Spare]] = {}
        self._is_closed = False

    def count(self, member: str) -> int:
        return len(self._idle.get(member, ()))

    def keep(self, member: str, connection: Connection, epoch: int) -> bool:
        """Whether it is kept, for all that was said over it is answered; else its owner closes it."""
        if self._is_closed or connection.version < NEXT_CHANNEL_VERSION or self.count(member) >= self._each_max:
            return False
        until = asyncio.get_running_loop().call_later(self._idle_s, self._expire, member, connection)
        self._idle.setdefault(member, []).append(Spare(connection, epoch, until))
        return True

    def take(self, member: str) -> Spare | None:
        """The one that was used last, and seems to be alive."""
        idle = self._idle.get(member, [])
        while idle:
            spare = idle.pop()
            spare.until.cancel()
            if not spare.connection.is_closed and not spare.connection.queued_bytes:
                return spare
            spare.connection.abort()  # what came unasked can only be about its end
        return None

    def drop(self, member: str) -> None:
        """The member is lost, or was out of reach: whatever was joined with it may be dead, and not know it."""
        for spare in self._idle.pop(member, []):
            spare.until.cancel()
            spare.connection.abort()

    def close(self) -> None:
        self._is_closed = True
        for member in list(self._idle):
            self.drop(member)

    def _expire(self, member: str, connection: Connection) -> None:
        self._idle[member] = [spare for spare in self._idle[member] if spare.connection is not connection]
        if not connection.is_closed:
            connection.send(Goodbye())
            connection.close()
