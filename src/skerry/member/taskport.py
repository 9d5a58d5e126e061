"""Where a member's Spark tasks connect: sinks hand rows over, sources read an edge (docs/protocol.md, 6). Shell.

Every wait of a handler ends with `forget`: a Spark task that its member still lets wait would outlive its query.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol

import msgspec

from skerry.exchange.intake import Attempt, Intake, body_hash
from skerry.exchange.reader import share
from skerry.exchange.spool import Entry, Spool
from skerry.model import trace
from skerry.model.errors import PeerError, SkerryError
from skerry.model.ids import QueryId
from skerry.model.limits import ENDED_QUERIES, SPILL_WAIT_S, Limits
from skerry.model.points import reach
from skerry.wire.address import TcpAddress, parse_address
from skerry.wire.frames import BATCH, ConnectionLost, Frame, decode, encode_batch_frame, split_batch
from skerry.wire.listener import Listener
from skerry.wire.messages import Batch, Hello, Message, SinkEnd, SinkOpen, SinkTaken, SourceEnd, SourceOpen
from skerry.wire.session import Identity
from skerry.wire.tcp import Connection, receive_message
from skerry.wire.tls import Tls


class Store(Protocol):
    """Where a sink's rows go (see member/stores.py). Touched in the loop's thread only; nothing waits here."""

    def open(self, attempt: Attempt) -> None: ...
    def has_room(self, size_bytes: int) -> bool: ...
    def would_spill(self, size_bytes: int) -> bool: ...
    def subscribe_room(self, callback: Callable[[], None]) -> Callable[[], None]: ...
    def append(self, attempt: Attempt, entry: Entry) -> None: ...
    def end(self, attempt: Attempt) -> None: ...
    def drop(self, attempt: Attempt) -> None: ...


class _Sink(msgspec.Struct):
    token: str
    intake: Intake
    store: Store


class _Edge(msgspec.Struct):
    token: str
    spools: Sequence[Spool]


class _Query:
    """What tasks of one query may connect to, and who is connected."""

    def __init__(self) -> None:
        self.sinks: dict[int, _Sink] = {}
        self.edges: dict[int, _Edge] = {}
        self.tasks: dict[asyncio.Task[None], Connection] = {}
        self.parts: dict[asyncio.Task[None], tuple[str, int]] = {}  # what each one serves: ("edge", 3), ("sink", 1)
        self.waiting: dict[Connection, float] = {}  # sinks that wait for room, since when

    def is_for(self, token: str) -> bool:
        tokens = (*(sink.token for sink in self.sinks.values()), *(edge.token for edge in self.edges.values()))
        return any(_is_same(each, token) for each in tokens)

    @contextmanager
    def serving(self, line: Connection, part: tuple[str, int]) -> Iterator[None]:
        """The running asyncio task serves this Spark task: `forget` and `close` end both."""
        task = asyncio.current_task()
        assert task is not None
        self.tasks[task], self.parts[task] = line, part
        try:
            yield
        finally:
            self.tasks.pop(task, None)
            self.parts.pop(task, None)
            # A task that was cancelled keeps this frame, and so itself, and all batches that wait in the connection.
            del task


class TaskPort:
    """Serves `Hello.kind == "task"`; only used in the loop's thread."""

    def __init__(self, limits: Limits) -> None:
        self.fingerprint = ""  # of the certificate that tasks must find; "" where they come without TLS
        self._limits = limits
        self._queries: dict[QueryId, _Query] = {}
        self._ended: dict[QueryId, None] = {}  # the latest ones

    async def listen(self, address: str, identity: Identity, tls: Tls | None = None) -> Listener:
        """A listener of its own: a task may rightly not read for as long as a query lasts. `tls`: at a TCP port."""
        limits = self._limits
        # All tasks of a site may run on one machine, and begin at once: one that is dropped may end its query.
        patient = msgspec.structs.replace(
            limits,
            wait_s=limits.query_timeout_s,
            connections_per_address=limits.connections,
            connections_before_login=limits.connections,
        )
        is_tcp = isinstance(parse_address(address), TcpAddress)
        self.fingerprint = tls.fingerprint if tls is not None and is_tcp else ""
        return await Listener.start(address, patient, identity, {"task": self.serve}, tls if is_tcp else None)

    def register_sink(self, query: QueryId, fragment: int, token: str, intake: Intake, store: Store) -> None:
        """Let the tasks of a fragment deliver."""
        self._queries.setdefault(query, _Query()).sinks[fragment] = _Sink(token, intake, store)

    def register_edge(self, query: QueryId, edge: int, token: str, spools: Sequence[Spool]) -> None:
        """Let tasks read an edge, one spool a channel, from its start and as often as they like."""
        self._queries.setdefault(query, _Query()).edges[edge] = _Edge(token, spools)

    def forget(self, query: QueryId) -> None:
        """Close the query's connections at once and refuse later ones."""
        known = self._queries.pop(query, None)
        if known is not None:
            self._ended[query] = None
            if len(self._ended) > ENDED_QUERIES:
                del self._ended[next(iter(self._ended))]
        for task, connection in dict(known.tasks).items() if known else ():
            connection.abort()
            task.cancel()

    def close_edge(self, query: QueryId, edge: int) -> None:
        """The jobs that read the edge have ended. After a LIMIT their Python workers would go on waiting for rows."""
        self._close(query, {("edge", edge)})

    def close_sink(self, query: QueryId, fragment: int) -> None:
        """Nobody wants this fragment's rows any more: its tasks, now and later ones, are refused."""
        known = self._queries.get(query)
        if known is not None:
            known.sinks.pop(fragment, None)
            self._close(query, {("sink", fragment)})

    def _close(self, query: QueryId, parts: set[tuple[str, int]]) -> None:
        known = self._queries.get(query)
        for task, part in list(known.parts.items()) if known is not None else ():
            if part in parts:
                assert known is not None
                known.tasks[task].abort()
                task.cancel()

    def connections(self, query: QueryId | None = None) -> int:
        """Tasks that are connected, for one query or all."""
        queries = self._queries.values() if query is None else filter(None, [self._queries.get(query)])
        return sum(len(known.tasks) for known in queries)

    def waiting_s(self, query: QueryId) -> float:
        """For how long the query's sinks have waited for room, the longest of them; 0 when none does (D7)."""
        known = self._queries.get(query)
        if known is None or not known.waiting:
            return 0.0
        return asyncio.get_running_loop().time() - min(known.waiting.values())

    async def serve(self, connection: Connection, hello: Hello) -> None:
        """The Listener's handler; what it raises is told to the task."""
        opening = await self._opening(connection, hello.credentials)
        if isinstance(opening, SinkOpen | SourceOpen) and opening.query in self._ended:
            trace.emit(trace.TaskCameLate(opening.query))
            connection.refuse(_not_running(opening.query), is_told=True)
            return
        match opening:
            case SinkOpen():
                known = self._known(opening.query)
                sink = known.sinks.get(opening.fragment)
                _authorise(sink, hello.credentials, f"fragment {opening.fragment} of query {opening.query}")
            case SourceOpen():
                known = self._known(opening.query)
                edge = known.edges.get(opening.edge)
                _authorise(edge, hello.credentials, f"edge {opening.edge} of query {opening.query}")
            case _:
                raise PeerError(f"SinkOpen or SourceOpen was due from a task, {type(opening).__name__} came")
        if isinstance(opening, SinkOpen):
            assert sink is not None
            with known.serving(connection, ("sink", opening.fragment)):
                server = _SinkServer(connection, sink, known, opening)
                await server.serve(Attempt(opening.partition, opening.attempt))
        else:
            assert edge is not None
            with known.serving(connection, ("edge", opening.edge)):
                await _serve_source(connection, edge.spools, opening)

    async def _opening(self, connection: Connection, token: str) -> Message:
        """A stranger has to be quick. Whoever shows a query's token may be stopped here for as long as that runs."""
        known = next((known for known in self._queries.values() if known.is_for(token)), None)
        if known is None:
            return await receive_message(connection, self._limits.login_s)
        with known.serving(connection, ("opening", 0)):
            return await receive_message(connection, self._limits.query_timeout_s)

    def _known(self, query: QueryId) -> _Query:
        known = self._queries.get(query)
        if known is None:
            raise _not_running(query)
        return known


def _not_running(query: QueryId) -> PeerError:
    return PeerError(f"query {query} is not running at this member")


def _authorise(registered: _Sink | _Edge | None, token: str, what: str) -> None:
    # One answer for both: a task that guesses learns nothing.
    if registered is None or not _is_same(registered.token, token):
        raise PeerError(f"{what} is not open to this task")


def _is_same(token: str, shown: str) -> bool:
    return hmac.compare_digest(token.encode(), shown.encode())


class _SinkServer:
    """One sink task's connection."""

    def __init__(self, connection: Connection, sink: _Sink, known: _Query, opening: SinkOpen) -> None:
        self._connection = connection
        self._opening = opening
        self._intake = sink.intake
        self._store = sink.store
        self._known = known

    async def serve(self, attempt: Attempt) -> None:
        self._intake.open(attempt)
        self._store.open(attempt)
        try:
            end = await self._take(attempt)
            self._intake.end(attempt, end.batches, end.rows, end.checksum)
        except asyncio.CancelledError:
            raise  # forgotten: the books are closed
        except BaseException:
            self._lost(attempt)
            raise
        self._store.end(attempt)
        self._connection.send(SinkTaken(end.batches))

    async def _take(self, attempt: Attempt) -> SinkEnd:
        seq = 0
        while (frame := await self._receive()).kind == BATCH:
            header, body = split_batch(frame)
            if header.seq != seq:
                raise PeerError(f"batch {seq} was due from a sink, {header.seq} came")
            seq += 1
            if self._store.would_spill(len(body)):
                await self._memory(len(body))
            if not self._store.has_room(len(body)):
                await self._room(len(body))
            self._store.append(attempt, Entry(body, header.rows, header.decoded_bytes))
            reach("job running")
            self._intake.batch(attempt, header.rows, len(body), body_hash(body))
        end = decode(frame)
        if not isinstance(end, SinkEnd):
            raise PeerError(f"Batch or SinkEnd was due from a sink, {type(end).__name__} came")
        return end

    async def _receive(self) -> Frame:
        frame = await self._connection.receive()
        if frame is None:
            raise ConnectionLost("a sink's connection ended without its end mark")
        return frame

    async def _memory(self, size_bytes: int) -> None:
        """A quick reader is waited for: to write rows to disk and read them again costs more than all else here."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SPILL_WAIT_S):
                await self._until(lambda: not self._store.would_spill(size_bytes))

    async def _room(self, size_bytes: int) -> None:
        """Not reading on is the back pressure: the task blocks in its write."""
        self._known.waiting[self._connection] = asyncio.get_running_loop().time()
        try:
            await self._until(lambda: self._store.has_room(size_bytes))
        finally:
            self._known.waiting.pop(self._connection, None)

    async def _until(self, is_so: Callable[[], bool]) -> None:
        changed = asyncio.Event()
        unsubscribe = self._store.subscribe_room(changed.set)
        try:
            while not is_so():
                changed.clear()
                await changed.wait()
        finally:
            unsubscribe()

    def _lost(self, attempt: Attempt) -> None:
        """In direct mode the intake keeps the loss as the fragment's error; here the first error is what counts."""
        try:
            if self._intake.lost(attempt):
                self._store.drop(attempt)
        except SkerryError as error:
            trace.emit(trace.AttemptLost(self._opening.query, self._opening.fragment, trace.cause_of(error)))


async def _serve_source(connection: Connection, spools: Sequence[Spool], opening: SourceOpen) -> None:
    """Send the share of each spool as it comes; SourceEnd when all spools are finished. A failed one is refused."""
    if not 0 <= opening.partition < opening.partitions:
        raise PeerError(f"a source asks for share {opening.partition} of {opening.partitions}")
    changed = asyncio.Event()
    unsubscribes = [spool.subscribe(changed.set) for spool in spools]
    watcher = asyncio.create_task(_watch(connection, changed, opening), name="watch a source")
    positions = [0] * len(spools)
    batches = rows = 0
    try:
        while not connection.is_closed:
            changed.clear()
            for number, spool in enumerate(spools):
                while (index := positions[number]) < spool.length and not spool.failed:
                    positions[number] += 1
                    # Spools begin with different shares: many short ones would all go to the first otherwise.
                    if share(index + number, opening.partition, opening.partitions):
                        entry = spool.read(index)
                        header = Batch(batches, number, False, entry.rows, entry.decoded_bytes, 0)
                        connection.send_parts(encode_batch_frame(header, entry.body))
                        batches += 1
                        rows += entry.rows
                        await connection.drain()
                        await asyncio.sleep(0)  # others have their turn, however fast this task reads
                if spool.failed:
                    raise spool.failed
            if all(spool.finished and at == spool.length for spool, at in zip(spools, positions, strict=True)):
                connection.send(SourceEnd(batches, rows))
                # Until the task has read all of it and closes, is gone, or is forgotten: a close from here is cut off
                # after `login_s`, and a task that is stopped for as long would lose its last rows.
                await watcher
                return
            if watcher.done():
                return
            await changed.wait()
    finally:
        watcher.cancel()
        for unsubscribe in unsubscribes:
            unsubscribe()


async def _watch(connection: Connection, changed: asyncio.Event, opening: SourceOpen) -> None:
    """A source that has enough (a LIMIT) closes its connection: notice that while waiting for rows."""
    try:
        await connection.receive()
    except SkerryError as error:
        trace.emit(trace.ReaderGone(opening.query, opening.edge, error.message))
    connection.abort()
    changed.set()
