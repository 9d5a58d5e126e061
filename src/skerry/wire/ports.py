"""A port for each channel, from a range (docs/protocol.md, 4.6), for networks that tell traffic apart by port."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable

import msgspec

from skerry.model import trace
from skerry.model.errors import ConfigError
from skerry.model.ids import ChannelId
from skerry.model.limits import Limits
from skerry.wire.address import TcpAddress
from skerry.wire.listener import Handler, Listener
from skerry.wire.session import Identity
from skerry.wire.tls import Tls

_CONNECTIONS = 8  # at one data port


class DataPorts:
    """Listens at a port of the range for each channel that is open, and gives it back at the channel's end."""

    def __init__(
        self, host: str, ports: tuple[int, int], limits: Limits, identity: Identity, tls: Tls | None = None
    ) -> None:
        self.first, self.last = ports
        self._host = host
        # Whoever knocks here besides the sender and its connections before is not let in.
        self._limits = msgspec.structs.replace(limits, connections=_CONNECTIONS, connections_before_login=_CONNECTIONS)
        self._identity = identity
        self._tls = tls
        self._listeners: dict[ChannelId, Listener] = {}
        self._ports: dict[ChannelId, int] = {}
        self._turn = asyncio.Lock()  # two connections of one channel get one port
        self._next = self.first
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def used(self) -> int:
        """Ports that are not given back yet."""
        return len(self._listeners) + len(self._closing)

    async def port_for(
        self, channel: ChannelId, serve: Handler, when_over: Callable[[Callable[[], None]], None]
    ) -> int | None:
        """The channel's port, where `serve` answers; None when the whole range is in use.

        `when_over` takes what is to be called at the channel's end.
        """
        async with self._turn:
            if channel in self._ports:
                return self._ports[channel]
            # In turn, not always the first that is free: a late packet of an old channel finds nobody.
            size = self.last - self.first + 1
            for _ in range(size):
                port, self._next = self._next, self.first + (self._next + 1 - self.first) % size
                if port in self._ports.values():
                    continue
                try:
                    address = str(TcpAddress(self._host, port))
                    listener = await Listener.start(address, self._limits, self._identity, {"data": serve}, self._tls)
                except ConfigError as error:
                    trace.emit(trace.PortTaken(channel, error.message))  # somebody else's, or on its way back
                    continue
                self._listeners[channel], self._ports[channel] = listener, port
                when_over(functools.partial(self.give_back, channel))
                return port
            trace.emit(trace.DataPortsUsedUp(channel, self.first, self.last))
            return None

    def give_back(self, channel: ChannelId) -> None:
        """The channel is over: its sender may still read the last answer, nobody else comes in."""
        listener = self._listeners.pop(channel, None)
        if listener is not None:
            self._ports.pop(channel)
            task = asyncio.get_running_loop().create_task(listener.drain(), name=f"data port of {channel}")
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def stop(self) -> None:
        for channel in list(self._listeners):
            self.give_back(channel)
        if self._closing:
            await asyncio.wait(self._closing)
