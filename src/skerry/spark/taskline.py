"""The connection of one Spark task to its member (docs/protocol.md, 6), over a blocking socket."""

from __future__ import annotations

import time
from collections.abc import Sequence
from queue import Queue
from threading import Thread
from types import TracebackType
from typing import TypeVar

from skerry.exchange.spool import Body
from skerry.model.errors import PeerError, TimedOut
from skerry.model.limits import Limits
from skerry.wire.blocking import BlockingConnection
from skerry.wire.frames import Buffer, ConnectionLost, Frame, decode, encode_batch_frame
from skerry.wire.messages import PROTOCOL_VERSIONS, Batch, Hello, Message, Refused, SinkEnd, SinkTaken
from skerry.wire.values import error_of

M = TypeVar("M", bound=Message)

_AHEAD = 2


class TaskLine:
    """Logged in with the query's token. A task waits as long as its member lets it: the member ends the wait."""

    def __init__(self, address: str, cluster: str, token: str, limits: Limits, fingerprint: str = "") -> None:
        """`fingerprint`: of the certificate that the member must show before it is told the token."""
        hello = Hello("task", PROTOCOL_VERSIONS, cluster, "", 0, credentials=token)
        give_up = time.monotonic() + limits.query_timeout_s
        while True:
            began = time.monotonic()
            try:
                self._connection = _logged_in(address, hello, limits, fingerprint)
                return
            except (ConnectionLost, TimedOut, TimeoutError):
                # A task may be stopped at any moment, and nobody waits long for a Hello: it is said again.
                if not limits.login_s <= time.monotonic() - began < give_up - began:
                    raise

    def send(self, message: Message) -> None:
        try:
            self._connection.send(message)
        except ConnectionLost as error:
            raise self._reason(error) from None

    def send_parts(self, parts: Sequence[Buffer]) -> None:
        try:
            self._connection.send_parts(parts)
        except ConnectionLost as error:
            raise self._reason(error) from None

    def receive_frame(self) -> Frame:
        """The next frame; the end of the connection is an error, never an end (D8)."""
        frame = self._connection.receive()
        if frame is None:
            raise ConnectionLost("the member closed the connection of this task before its end")
        return frame

    def receive(self, wanted: type[M]) -> M:
        return expect(self.receive_frame(), wanted)

    def __enter__(self) -> TaskLine:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """From any thread; a send that waits ends at once."""
        self._connection.close()

    def _reason(self, lost: ConnectionLost) -> Exception:
        """A member that refuses says why before it closes: that is worth more than a broken pipe."""
        try:
            expect(self.receive_frame(), Refused)
        except Exception as error:
            return lost if isinstance(error, ConnectionLost) else error
        return lost


def _logged_in(address: str, hello: Hello, limits: Limits, fingerprint: str) -> BlockingConnection:
    # The same time bounds writes, and a member may stop reading for as long as a query may last.
    connection = BlockingConnection.connect(address, limits.query_timeout_s, limits, fingerprint)
    try:
        connection.login(hello, limits.query_timeout_s)
    except BaseException:
        connection.close()
        raise
    return connection


class Outbox:
    """Sends in a thread of its own, so that Spark makes the next batch while the member takes this one.

    Seen: a sink that sent by itself spent a fifth of its time in waiting for its member's loop. At most
    `_AHEAD` batches wait here; an error of the thread is raised by the next `put`, or by `end`.
    """

    def __init__(self, line: TaskLine) -> None:
        self._line = line
        self._queue: Queue[Sequence[Buffer] | None] = Queue(_AHEAD)
        self._error: BaseException | None = None
        self._thread = Thread(target=self._send, name="skerry-sink", daemon=True)
        self._thread.start()

    def put(self, header: Batch, body: Body) -> None:
        if self._error is not None:
            raise self._error
        self._queue.put(encode_batch_frame(header, body))

    def end(self, end: SinkEnd) -> None:
        """Returns when the member has everything."""
        self._stop()
        if self._error is not None:
            raise self._error
        self._line.send(end)
        taken = self._line.receive(SinkTaken)
        if taken.batches != end.batches:
            raise PeerError(f"the member took {taken.batches} of {end.batches} batches")

    def __enter__(self) -> Outbox:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """When the task fails, what waits is dropped with the connection."""
        self._line.close()
        self._stop()

    def _stop(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _send(self) -> None:
        # After an error the queue is emptied on, or `put` would wait for ever.
        while (parts := self._queue.get()) is not None:
            if self._error is None:
                try:
                    self._line.send_parts(parts)
                except BaseException as error:
                    self._error = error


def expect(frame: Frame, wanted: type[M]) -> M:
    """The message in the frame; raises what the member refused with."""
    message = decode(frame)
    if isinstance(message, Refused):
        raise error_of(message.error)
    if not isinstance(message, wanted):
        raise PeerError(f"{wanted.__name__} was due from the member, {type(message).__name__} came")
    return message
