"""The connection of one Spark task to its member (docs/protocol.md, 6), over a blocking socket."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TypeVar

from skerry.errors import PeerError
from skerry.limits import Limits
from skerry.wire.blocking import BlockingConnection
from skerry.wire.frames import Buffer, ConnectionLost, Frame, decode
from skerry.wire.messages import PROTOCOL_VERSIONS, Hello, Message, Refused
from skerry.wire.values import error_of

M = TypeVar("M", bound=Message)


class TaskLine:
    """Logged in with the query's token. A task waits as long as its member lets it: the member ends the wait."""

    def __init__(self, address: str, cluster: str, token: str, limits: Limits) -> None:
        self._limits = limits
        # The same time bounds writes, and a member may stop reading for as long as a query may last.
        self._connection = BlockingConnection.connect(address, limits.query_timeout_s, limits)
        try:
            hello = Hello("task", PROTOCOL_VERSIONS, cluster, "", 0, credentials=token)
            self._connection.login(hello, limits.wait_s)
        except BaseException:
            self._connection.close()
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
        self._connection.close()

    def _reason(self, lost: ConnectionLost) -> Exception:
        """A member that refuses says why before it closes: that is worth more than a broken pipe."""
        try:
            expect(self.receive_frame(), Refused)
        except Exception as error:
            return lost if isinstance(error, ConnectionLost) else error
        return lost


def expect(frame: Frame, wanted: type[M]) -> M:
    """The message in the frame; raises what the member refused with."""
    message = decode(frame)
    if isinstance(message, Refused):
        raise error_of(message.error)
    if not isinstance(message, wanted):
        raise PeerError(f"{wanted.__name__} was due from the member, {type(message).__name__} came")
    return message
