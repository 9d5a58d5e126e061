"""A network in memory: TCP as members see it, with delays, slow links, cuts, one-way cuts and hosts that vanish.

Within a connection bytes keep their order; between connections nothing does. What an endpoint does stands for its
kernel: a paused process still has its bytes received, up to the window.
"""

from __future__ import annotations

import asyncio
import zlib
from collections import deque
from collections.abc import Callable, Iterable
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from sim.loop import OWNER, Process, nobody

if TYPE_CHECKING:
    from sim.loop import SimLoop

# After so long without a sign the system gives an idle connection up: a little less than members wait for a new one,
# as with the defaults (wire/tcp.py, limits.py).
_KEEP_ALIVE_S = 6.5


class Tap(Protocol):
    """Sees every byte of a connection: as it is written, and as it is handed to the other side."""

    def wrote(self, endpoint: Endpoint, chunk: bytes) -> None: ...
    def got(self, endpoint: Endpoint, chunk: bytes) -> None: ...


class Weather(msgspec.Struct):
    """How the network of a run behaves."""

    delay_s: float = 0.005
    slow_share: float = 0.1  # of the connections
    slow_s: float = 1.0
    late_share: float = 0.0  # of the connections: their first bytes are lost, and sent again
    late_s: float = 3.0
    window_bytes: int = 16384
    write_high_bytes: int = 16384
    bytes_per_s: float = 1e6


class _Mark:
    def __init__(self, name: str) -> None:
        self.name = name


FIN, RST = _Mark("FIN"), _Mark("RST")


class Network:
    """Hosts, listeners, connections, and which directions between hosts are cut."""

    def __init__(self, random: Random, weather: Weather, make_tap: Callable[[Endpoint, Endpoint], Tap]) -> None:
        self.loop: SimLoop
        self.random = random
        self.weather = weather
        self.make_tap = make_tap
        self.connections: list[tuple[Endpoint, Endpoint]] = []
        self.blocked: dict[tuple[str, str], int] = {}  # (from host, to host) → how many faults block it
        self.vanished: set[str] = set()  # hosts without power
        self.digest = 0
        self._listeners: dict[tuple[str, int], tuple[Process, Callable[[], Any]]] = {}
        self._ports = 40000
        self._numbers = 0

    # --- what the loop offers --------------------------------------------------------------------
    def listen(self, factory: Callable[[], Any], host: str, port: int) -> Server:
        process = OWNER.get()
        assert process is not None
        assert process.host == host
        if not port:
            self._ports += 1
            port = self._ports
        if (host, port) in self._listeners:
            raise OSError(98, "Address already in use")
        self._listeners[(host, port)] = (process, factory)
        return Server(self, host, port)

    def unlisten(self, host: str, port: int) -> None:
        self._listeners.pop((host, port), None)

    async def connect(self, factory: Callable[[], Any], host: str, port: int) -> tuple[Endpoint, Any]:
        process = OWNER.get()
        assert process is not None
        pause_s = self.delay(process.host, host)
        again_s = 1.0
        while True:
            await asyncio.sleep(pause_s)
            if self._is_open(process.host, host) and self._is_open(host, process.host):
                break
            pause_s, again_s = again_s, again_s * 2  # the system sends its SYN again
        listening = self._listeners.get((host, port))
        if listening is None:
            await asyncio.sleep(self.delay(process.host, host))
            raise ConnectionRefusedError(111, "Connection refused")
        mine, theirs = self._join(process, listening[0])
        self.loop.call_soon(theirs.accept, listening[1], context=listening[0].context)
        try:
            await asyncio.sleep(self.delay(process.host, host))
            if mine.is_gone:
                raise ConnectionResetError(104, "Connection reset by peer")
        except BaseException:
            mine.abort()
            raise
        mine.accept(factory)
        return mine, mine.protocol

    def _join(self, dialling: Process, listening: Process) -> tuple[Endpoint, Endpoint]:
        self._numbers += 1
        weather, random = self.weather, self.random
        base_s = 0.0002 if dialling.host == listening.host else weather.delay_s * random.uniform(0.2, 2)
        if dialling.host != listening.host and random.random() < weather.slow_share:
            base_s = weather.slow_s * random.random()
        mine, theirs = Endpoint(self, self._numbers, dialling, base_s), Endpoint(self, self._numbers, listening, base_s)
        if dialling.host != listening.host and random.random() < weather.late_share:
            mine._arrives = self.loop.now + weather.late_s * random.random()
        mine.peer, theirs.peer = theirs, mine
        mine.tap = theirs.tap = self.make_tap(mine, theirs)
        self.connections.append((mine, theirs))
        return mine, theirs

    def delay(self, sender: str, receiver: str) -> float:
        if sender == receiver:
            return 0.0002
        return self.weather.delay_s * self.random.uniform(0.2, 2)

    def _is_open(self, sender: str, receiver: str) -> bool:
        return not self.blocked.get((sender, receiver)) and not {sender, receiver} & self.vanished

    # --- faults ----------------------------------------------------------------------------------
    def open_pairs(self) -> list[tuple[Endpoint, Endpoint]]:
        """Connections with an end that somebody still uses."""
        self.connections = [pair for pair in self.connections if not (pair[0].is_gone and pair[1].is_gone)]
        return self.connections

    def block(self, directions: Iterable[tuple[str, str]]) -> None:
        """Nothing passes in these directions until `unblock`; TCP sends it again then."""
        for direction in directions:
            self.blocked[direction] = self.blocked.get(direction, 0) + 1
            for pair in self.open_pairs():
                for end in pair:
                    if set(direction) == {end.process.host, end.peer.process.host}:
                        self.loop.call_later(_KEEP_ALIVE_S, self._give_up, end, direction, context=nobody())

    def unblock(self, directions: Iterable[tuple[str, str]]) -> None:
        for direction in directions:
            self.blocked[direction] -= 1
        for pair in self.open_pairs():
            for end in pair:
                end.kick()

    def _give_up(self, end: Endpoint, direction: tuple[str, str]) -> None:
        if self.blocked.get(direction):
            end.reset(TimeoutError(110, "Connection timed out"))

    def cut(self, pair: tuple[Endpoint, Endpoint], *, half: bool) -> None:
        """Bytes under way are lost; both ends learn of it, or only the first."""
        first, second = pair if self.random.random() < 0.5 else (pair[1], pair[0])
        wait_s = self.random.random() * (1.5 if second.flight else 0.05)  # what is lost is sent again, and refused
        learns = not half or bool(second.flight)
        for end in pair:
            end.flight.clear()
        first.reset(ConnectionResetError(104, "Connection reset by peer"))
        if learns:
            reset = ConnectionResetError(104, "Connection reset by peer")
            self.loop.call_later(wait_s, second.reset, reset, context=nobody())
        else:
            silence = TimeoutError(110, "Connection timed out")
            self.loop.call_later(_KEEP_ALIVE_S, second.reset, silence, context=nobody())

    def kill(self, process: Process) -> None:
        """kill -9: the system closes what the process had open."""
        for key in [key for key, (owner, _) in self._listeners.items() if owner is process]:
            del self._listeners[key]
        for pair in self.open_pairs():
            for end in pair:
                if end.process is process and not end.is_gone:
                    end.close_by_kernel()

    def vanish(self, host: str) -> None:
        """The host loses its power: no word to anybody."""
        self.vanished.add(host)
        for key in [key for key in self._listeners if key[0] == host]:
            del self._listeners[key]
        for pair in self.open_pairs():
            for end in pair:
                if end.process.host == host:
                    end.is_gone = True
                    end.flight.clear()
                    end.buffer.clear()
                    error = TimeoutError(110, "Connection timed out")
                    self.loop.call_later(_KEEP_ALIVE_S, end.peer.reset, error, context=nobody())

    def power_on(self, host: str) -> None:
        self.vanished.discard(host)

    def note(self, number: int, size_bytes: int) -> None:
        """What a run did, as one number: equal for equal runs."""
        self.digest = zlib.crc32(b"%d %d %.9f" % (number, size_bytes, self.loop.now), self.digest)


class Server:
    """What create_server gives."""

    def __init__(self, network: Network, host: str, port: int) -> None:
        self._network = network
        self._name = (host, port)
        self.sockets = [self]

    def getsockname(self) -> tuple[str, int]:
        return self._name

    def close(self) -> None:
        self._network.unlisten(*self._name)


class Endpoint(asyncio.Transport):
    """One end of a connection, and what it has sent that the other end has not read."""

    def __init__(self, network: Network, number: int, process: Process, base_s: float) -> None:
        super().__init__()
        self.network = network
        self.number = number
        self.process = process
        self.peer: Endpoint
        self.tap: Tap
        self.protocol: Any = None
        self.kind = ""  # of the Hello
        self.buffer: deque[bytes] = deque()  # written, and not yet with the system
        self.buffered_bytes = 0
        self.flight: deque[tuple[float, bytes | _Mark]] = deque()
        self.is_gone = False  # the socket is closed
        self._base_s = base_s
        self._unread: deque[bytes | _Mark] = deque()
        self._window_used = 0  # bytes under way, or unread by the peer
        self._arrives = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._is_closing = False
        self._fin_wanted = False
        self._fin_sent = False
        self._reading_paused = False
        self._reading = False
        self._writing_paused = False
        self._high_bytes = network.weather.write_high_bytes

    def accept(self, factory: Callable[[], Any]) -> None:
        """The process has the connection now."""
        self.protocol = factory()
        self.protocol.connection_made(self)
        if self.is_gone and not self._is_closing:
            self._schedule_lost(ConnectionResetError(104, "Connection reset by peer"))
        self._wake()

    # --- asyncio's interface -----------------------------------------------------------------------
    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is not None:
            self._high_bytes = min(high, self.network.weather.write_high_bytes)

    def is_closing(self) -> bool:
        return self._is_closing

    def can_write_eof(self) -> bool:
        return True

    def write(self, data: Any) -> None:
        if self._is_closing or self.is_gone or self._fin_wanted:
            return
        chunk = bytes(data)
        if not chunk:
            return
        self.tap.wrote(self, chunk)
        self.buffer.append(chunk)
        self.buffered_bytes += len(chunk)
        self._pump()
        if self.buffered_bytes > self._high_bytes and not self._writing_paused:
            self._writing_paused = True
            self.protocol.pause_writing()

    def writelines(self, parts: Iterable[Any]) -> None:
        self.write(b"".join(parts))

    def write_eof(self) -> None:
        self._fin_wanted = True
        self._pump()

    def pause_reading(self) -> None:
        self._reading_paused = True

    def resume_reading(self) -> None:
        self._reading_paused = False
        self._wake()

    def close(self) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        if self._has_unread():
            self._end(RST)
        else:
            self._fin_wanted = True
            self._pump()

    def abort(self) -> None:
        if self.is_gone:
            return
        self._is_closing = True
        self.buffer.clear()
        self.buffered_bytes = 0
        self._end(RST if self._has_unread() else FIN)

    # --- sending -----------------------------------------------------------------------------------
    def _pump(self) -> None:
        """Give the system what fits its window."""
        if self.is_gone:
            return
        while self.buffer and self._window_used < self.network.weather.window_bytes:
            chunk = self.buffer.popleft()
            room = self.network.weather.window_bytes - self._window_used
            if len(chunk) > room:
                self.buffer.appendleft(chunk[room:])
                chunk = chunk[:room]
            self._window_used += len(chunk)
            self.buffered_bytes -= len(chunk)
            self._transmit(chunk)
        if self._writing_paused and self.buffered_bytes <= self._high_bytes // 4:
            self._writing_paused = False
            self._call(self.protocol.resume_writing)
        if self._fin_wanted and not self.buffer:
            if self._is_closing:
                self._end(FIN)
            elif not self._fin_sent:
                self._fin_sent = True
                self._transmit(FIN)

    def _end(self, mark: _Mark) -> None:
        if self.is_gone:
            return
        self.is_gone = True
        if not (self._fin_sent and mark is FIN):
            self._transmit(mark)
        self._schedule_lost(None)

    def close_by_kernel(self) -> None:
        """The process is dead: what its system has goes out, then the end."""
        self.is_gone = True
        self.buffer.clear()
        self._transmit(RST if self._has_unread() else FIN)

    def _transmit(self, item: bytes | _Mark) -> None:
        network, size = self.network, len(item) if isinstance(item, bytes) else 0
        delay_s = self._base_s * network.random.uniform(0.7, 1.5) + size / network.weather.bytes_per_s
        self._arrives = max(self._arrives, network.loop.now + delay_s)
        self.flight.append((self._arrives, item))
        self._arm()

    def _arm(self) -> None:
        if self._timer is None and self.flight:
            self._timer = self.network.loop.call_at(self.flight[0][0], self._arrive, context=nobody())

    def kick(self) -> None:
        """The direction is open again: what waited is sent once more."""
        if self.flight and self._timer is None:
            wait_s = self.network.random.random()
            self._timer = self.network.loop.call_later(wait_s, self._arrive, context=nobody())

    def _arrive(self) -> None:
        self._timer = None
        network = self.network
        here, there = self.process.host, self.peer.process.host
        if here != there and not network._is_open(here, there):
            if there in network.vanished:
                self.flight.clear()
            return
        while self.flight and self.flight[0][0] <= network.loop.now:
            _, item = self.flight.popleft()
            network.note(self.number, len(item) if isinstance(item, bytes) else -1)
            self.peer.receive(item)
        self._arm()

    # --- receiving ---------------------------------------------------------------------------------
    def receive(self, item: bytes | _Mark) -> None:
        """The system has got it."""
        if item is RST:
            self.reset(ConnectionResetError(104, "Connection reset by peer"))
        elif self.is_gone:
            if item is not FIN:
                self._transmit(RST)  # nobody knows this connection here
        else:
            self._unread.append(item)
            self._wake()

    def reset(self, error: OSError) -> None:
        if self.is_gone:
            return
        self.is_gone = True
        self.buffer.clear()
        self.buffered_bytes = 0
        self._unread.clear()
        self._schedule_lost(error)

    def _has_unread(self) -> bool:
        return any(isinstance(item, bytes) for item in self._unread)

    def _wake(self) -> None:
        if self.protocol is not None and self._unread and not self._reading and not self._reading_paused:
            self._reading = True
            self._call(self._read)

    def _read(self) -> None:
        self._reading = False
        if self._reading_paused or self._is_closing or self.is_gone or not self._unread:
            return
        item = self._unread.popleft()
        if isinstance(item, bytes):
            self.peer._window_used -= len(item)
            self.tap.got(self, item)
            self._feed(item)
            self.peer._pump()
        elif not self.protocol.eof_received():
            self.close()
        self._wake()

    def _feed(self, chunk: bytes) -> None:
        view = memoryview(chunk)
        while view and not self._is_closing:
            buffer = self.protocol.get_buffer(-1)
            size = min(len(buffer), len(view))
            buffer[:size] = view[:size]
            self.protocol.buffer_updated(size)
            view = view[size:]

    def _schedule_lost(self, error: OSError | None) -> None:
        if self.protocol is not None:
            self._call(self.protocol.connection_lost, error)

    def _call(self, callback: Callable[..., None], *arguments: object) -> None:
        self.network.loop.call_soon(callback, *arguments, context=self.process.context)
