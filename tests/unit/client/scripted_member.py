"""A member made of a real socket, the real frames, and a script: what the client's tests talk to."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pyarrow as pa

from skerry.model.ids import QueryId
from skerry.model.progress import FragmentProgress, LinkBytes, MemberState, QueryInfo
from skerry.model.results import Page, Schema
from skerry.model.table import Column
from skerry.wire.client_messages import (
    ClientAttach,
    ClientClose,
    ClientClosed,
    ClientExecute,
    ClientFetch,
    ClientMembers,
    ClientMembersReply,
    ClientPage,
    ClientQueries,
    ClientQueriesReply,
    ClientResult,
    ClientStatus,
    ClientStatusReply,
)
from skerry.wire.codec import encode_batch, encode_schema
from skerry.wire.frames import FrameReader, decode, encode_message
from skerry.wire.messages import PROTOCOL_VERSIONS, Failure, Goodbye, Hello, Message, Welcome

WAIT_S = 60.0  # nothing takes long, but the machine may be busy
SPARK_NAMES = {"int64": "bigint", "int32": "int", "double": "double", "date32[day]": "date"}
M = TypeVar("M", bound=Message)


class Peer:
    """One client's connection, as the script sees it."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def send(self, message: Message) -> None:
        self.send_bytes(b"".join(bytes(part) for part in encode_message(message)))

    def send_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def end(self) -> None:
        """A clean end of the stream, as when a process exits."""
        self._socket.shutdown(socket.SHUT_RDWR)

    def reset(self) -> None:
        """A hard end, as when a process is killed with bytes unread."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def messages(self) -> Iterator[Message]:
        reader = FrameReader(limit_bytes=1 << 26)
        while True:
            count = self._socket.recv_into(reader.get_buffer())
            if count == 0:
                return
            reader.buffer_updated(count)
            yield from map(decode, reader.frames())


Script = Callable[[Peer, Message], None]


class ScriptedMember:
    """Runs a script for each message of each client, and remembers the messages."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self.received: list[Message] = []
        self.ended = 0
        self.port: int = self._listener.getsockname()[1]
        self.url = f"skerry://127.0.0.1:{self.port}"
        self._start(self._accept)

    def of(self, kind: type[M]) -> list[M]:
        return [message for message in self.received if isinstance(message, kind)]

    def wait_for(self, kind: type[M], count: int = 1) -> list[M]:
        """Wait until `count` messages of a kind have come."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.of(kind)) >= count, WAIT_S), f"no {kind.__name__} came"
            return self.of(kind)

    def wait_for_ends(self, count: int) -> None:
        """Wait until `count` clients have gone."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.ended >= count, WAIT_S), "no client went"

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(WAIT_S)
        for sock in self._sockets:
            sock.close()

    def _start(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, name="scripted-member")
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                self._sockets.append(sock)
                self._start(self._serve, Peer(sock))

    def _serve(self, peer: Peer) -> None:
        with contextlib.suppress(OSError):
            for message in peer.messages():
                with self._changed:
                    self.received.append(message)
                    self._changed.notify_all()
                self._script(peer, message)
        with self._changed:
            self.ended += 1
            self._changed.notify_all()


@contextmanager
def member_with(script: Script) -> Iterator[ScriptedMember]:
    member = ScriptedMember(script)
    try:
        yield member
    finally:
        member.stop()


def welcome(name: str = "oslo", epoch: int = 1) -> Welcome:
    return Welcome(PROTOCOL_VERSIONS[0], "test", name, epoch)


def schema_of(table: pa.Table) -> Schema:
    columns = tuple(Column(field.name, SPARK_NAMES.get(str(field.type), str(field.type))) for field in table.schema)
    return Schema(columns, encode_schema(table.schema))


def page_of(table: pa.Table, number: int, *, is_last: bool) -> Page:
    batches = tuple(bytes(encode_batch(batch)) for batch in table.to_batches() if batch.num_rows)
    return Page(number, batches, table.num_rows, is_last)


class Answers:
    """A script that answers each statement with a table, a count, an error, or nothing until it is closed.

    Pages can be asked for again, over any connection, until a later fetch says that they arrived.
    """

    def __init__(
        self,
        answers: dict[str, pa.Table | int | Failure | None],
        page_rows: int = 0,
        name: str = "oslo",
        epoch: int = 1,
    ) -> None:
        self.answers = answers
        self.page_rows = page_rows  # 0: as many as the client asks for
        self.name = name
        self.epoch = epoch
        self.members: tuple[MemberState, ...] = (MemberState("oslo", "127.0.0.1:1", "data", "up"),)
        self._open: dict[str, _Open] = {}

    def __call__(self, peer: Peer, message: Message) -> None:
        match message:
            case Hello():
                peer.send(welcome(self.name, self.epoch))
            case ClientExecute():
                self._execute(peer, message)
            case ClientFetch():
                self._fetch(peer, message)
            case ClientAttach():
                self._attach(peer, message)
            case ClientClose():
                self._open.pop(message.query.local, None)
                peer.send(ClientClosed(message.request))
            case ClientStatus():
                fragments = (
                    FragmentProgress(0, "oslo", "done", 1200, 9000),
                    FragmentProgress(1, "bergen", "running", 34, 800),
                )
                links = (LinkBytes("bergen", "oslo", 1_500_000, 34),)
                peer.send(ClientStatusReply(message.request, "running", 1.5, fragments, links, "the plan"))
            case ClientMembers():
                peer.send(ClientMembersReply(message.request, self.members))
            case ClientQueries():
                queries = tuple(
                    QueryInfo(QueryId(self.name, local), each.sql, "::1", "running", 1.5, 10, 100, (), ("oslo",))
                    for local, each in self._open.items()
                )
                peer.send(ClientQueriesReply(message.request, queries))
            case Goodbye():
                peer.end()

    def _execute(self, peer: Peer, message: ClientExecute) -> None:
        answer = self.answers.get(message.sql, Failure(101, f"cannot parse {message.sql!r}", "oslo", "write SELECT"))
        if message.query.local in self._open:
            peer.send(ClientResult(message.request, error=Failure(100, "this id was used before", "oslo")))
            return
        match answer:
            case Failure():
                peer.send(ClientResult(message.request, error=answer))
            case int():
                peer.send(ClientResult(message.request, update_count=answer))
            case pa.Table():
                is_kept = bool({"detach", "resume_s"} & set(message.options))
                opened = self._open[message.query.local] = _Open(message.sql, answer, is_kept)
                if "detach" in message.options:
                    peer.send(ClientResult(message.request))
                else:
                    self._first(peer, message, opened, 0)

    def _attach(self, peer: Peer, message: ClientAttach) -> None:
        opened = self._open.get(message.query.local)
        if opened is None:
            peer.send(ClientResult(message.request, error=Failure(103, "that query is not open here", "oslo")))
        else:
            self._first(peer, message, opened, message.page_number)

    def _first(self, peer: Peer, message: ClientExecute | ClientAttach, opened: _Open, number: int) -> None:
        page = opened.page(number, self.page_rows or message.page_rows)
        peer.send(ClientResult(message.request, schema_of(opened.table), page))
        self._ended(message.query, page)

    def _fetch(self, peer: Peer, message: ClientFetch) -> None:
        for number in range(message.page_number, message.page_number + message.pages):
            opened = self._open.get(message.query.local)
            if opened is None:
                peer.send(ClientPage(message.request, error=Failure(100, "no such cursor", "oslo")))
                return
            page = opened.page(number, self.page_rows or message.page_rows)
            opened.arrived(message.page_number)
            peer.send(ClientPage(message.request, page))
            self._ended(message.query, page)
            if page.is_last:
                return

    def _ended(self, query: QueryId, page: Page) -> None:
        """The last page closes a cursor, but not one that outlives its connection: its client does."""
        if page.is_last and not self._open[query.local].is_kept:
            del self._open[query.local]


class _Open:
    """A cursor: where its pages begin, from the first that may still be asked for."""

    def __init__(self, sql: str, table: pa.Table, is_kept: bool) -> None:
        self.sql = sql
        self.table = table
        self.is_kept = is_kept
        self._pages: dict[int, tuple[int, int]] = {}
        self._made = 0
        self._rows = 0

    def page(self, number: int, rows_max: int) -> Page:
        if number == self._made:
            upto = min(self._rows + (rows_max or self.table.num_rows), self.table.num_rows)
            self._pages[number] = (self._rows, upto)
            self._made, self._rows = number + 1, upto
        first, upto = self._pages[number]
        return page_of(self.table.slice(first, upto - first), number, is_last=upto == self.table.num_rows)

    def arrived(self, upto: int) -> None:
        self._pages = {number: rows for number, rows in self._pages.items() if number >= upto}
