"""The receiving end of channels over connections (docs/protocol.md, 4): the shell around ChannelReceiver."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from enum import Enum

from skerry.model import trace
from skerry.model.errors import InternalError, PeerError, SiteError, SkerryError
from skerry.model.ids import ChannelId
from skerry.model.limits import SPARE_S, Limits
from skerry.model.points import reach
from skerry.wire.channel import ChannelReceiver
from skerry.wire.codec import CODECS
from skerry.wire.frames import BATCH, Buffer, ConnectionLost, Frame, decode, split_batch
from skerry.wire.listener import Handler
from skerry.wire.messages import (
    Batch,
    ChannelGone,
    ChannelPort,
    Goodbye,
    Grant,
    Hello,
    Message,
    OpenChannel,
    Refused,
    StopSending,
)
from skerry.wire.ports import DataPorts
from skerry.wire.sending import ChannelOut
from skerry.wire.tcp import Connection, receive_message
from skerry.wire.values import error_of

__all__ = ["ChannelIn", "ChannelOut", "Gone", "data_handler"]


class ChannelIn:
    """Receives one channel: `append(header, body)` puts a batch into a spool, then `finish()` or `fail(error)` ends it.

    A batch is acked after `append` returned; when it raises, the channel fails. Either finish or fail is called, once,
    unless the channel was closed or stopped before. The newer of two connections counts.
    """

    def __init__(
        self,
        channel: ChannelId,
        limits: Limits,
        *,
        append: Callable[[Batch, Buffer], None],
        finish: Callable[[], None],
        fail: Callable[[SkerryError], None],
        window_bytes: int | None = None,
        grant_on_consumption: bool = False,
        pending: bool = False,
        wait_s: float | None = None,
        peer: str = "",
    ) -> None:
        """`peer`: the member that connects, when that is not the channel's sender but a relay."""
        self.channel = channel
        self.peer = peer or channel.sender
        self.opened = asyncio.Event()  # then `schema` is known
        self.append = append
        self.finish = finish
        self.fail = fail
        self.schema = b""  # as the sender opened it
        self.codec = ""
        self.received_bytes = 0  # as frames
        self.received_rows = 0
        self._limits = limits
        self._wait_s = limits.wait_s if wait_s is None else wait_s
        self._receiver = ChannelReceiver(
            window_bytes or limits.first_credits_bytes,
            limits.frame_bytes,
            grant_on_consumption=grant_on_consumption,
            pending=pending,
        )
        self._connection: Connection | None = None
        self._sender_epoch = 0
        self._is_over = False  # finished, failed or closed
        self._is_stopped = False
        self._watchdog: asyncio.TimerHandle | None = None
        self._when_over: list[Callable[[], None]] = []
        self._unlinked = asyncio.Event()
        self._unlinked.set()

    @property
    def is_pending(self) -> bool:
        """Whether `activate` was not called yet."""
        return self._receiver.pending

    @property
    def is_over(self) -> bool:
        return self._is_over

    def when_over(self, callback: Callable[[], None]) -> None:
        """Call back once when nothing more will be received; at once if that is so already."""
        if self._is_over:
            callback()
        else:
            self._when_over.append(callback)

    # --- for the member ----------------------------------------------------------------------
    def consumed(self, decoded_bytes: int) -> None:
        """The query used up so much (in headers' decoded_bytes) of what was appended: grants more."""
        self._tell(self._receiver.consumed(decoded_bytes))

    def wait_for(self, wait_s: float) -> None:
        """How long a lost connection is waited for, from the next loss on."""
        self._wait_s = wait_s

    def activate(self, *, grant_on_consumption: bool | None = None) -> None:
        """The query is known now: credit grows with it, by the policy given here or at the beginning."""
        if grant_on_consumption is None:
            grant_on_consumption = self._receiver.grant_on_consumption
        self._tell(self._receiver.activate(grant_on_consumption=grant_on_consumption))
        if self._connection is not None and self._has_settled():
            self._unlink(self._connection)  # the sender may use it for another channel from now on

    def stop_sending(self) -> None:
        """Enough: the sender ends cleanly, and what is still under way is dropped; finish and fail are not called."""
        if not self._is_over:
            self._is_stopped = True
            self._tell([StopSending()])
            self._end()

    def gone(self) -> None:
        """The query is over where the rows were to go: the sender ends; finish and fail are not called."""
        if not self._is_over:
            self._tell([ChannelGone()])
            self._end()

    async def wait_unlinked(self) -> None:
        """Until the sender has read the last answer and closed, at most `limits.login_s`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.login_s):
                await self._unlinked.wait()

    def close(self) -> None:
        """The query is over: drop the link, call nothing more."""
        self._end()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()

    def _tell(self, messages: list[Grant] | list[StopSending] | list[ChannelGone]) -> None:
        if self._connection is not None and not self._connection.is_closed:
            for message in messages:
                self._connection.send(message)

    def _end(self) -> None:
        self._is_over = True
        if self._watchdog is not None:
            self._watchdog.cancel()
            self._watchdog = None
        callbacks, self._when_over = self._when_over, []
        for callback in callbacks:
            callback()

    def _break(self, error: SkerryError) -> None:
        if not self._is_over:
            self._end()
            trace.emit(trace.ChannelFailed(self.channel, trace.cause_of(error)))
            self.fail(error)

    # --- the link ----------------------------------------------------------------------------
    def _has_settled(self) -> bool:
        """All rows are here, and the sender has been told: nobody has anything more to say about this channel."""
        return self._receiver.is_complete and not self._receiver.pending

    async def serve(self, connection: Connection, opening: OpenChannel, epoch: int = 0) -> bool:
        """Receive over a connection whose OpenChannel was read, until its end or the channel's.

        `epoch` is the sender's. Returns whether another channel may follow on the connection.
        """
        if self._is_over and not self._receiver.is_complete:
            connection.send(StopSending() if self._is_stopped else ChannelGone())
            await _farewell(connection, self._limits)
            return False
        if self._sender_epoch not in (0, epoch):
            self._break(SiteError(f"site {self.peer} restarted"))
            connection.send(ChannelGone())
            return False
        old, self._connection = self._connection, connection
        if old is not None:
            old.abort()
        if self._watchdog is not None:
            self._watchdog.cancel()
            self._watchdog = None
        self._sender_epoch, self.schema, self.codec = epoch, opening.schema, opening.codec
        self._unlinked.clear()
        self.opened.set()
        try:
            for message in self._receiver.open(opening):
                connection.send(message)
            trace.emit(trace.ChannelOpened(self.channel, self._receiver.next_seq))
            reach("channel accepted")
            while not self._has_settled() and (frame := await connection.receive()) is not None:
                if self._has_settled():  # by `activate`: the frame is of what follows
                    connection.put_back(frame)
                    break
                if connection is not self._connection:
                    return False
                self._receive(connection, frame)
                if connection.queued_bytes == 0:
                    self._tell(self._receiver.idle())
            return self._has_settled() and not connection.is_closed
        except ConnectionLost as error:
            trace.emit(trace.ChannelInterrupted(self.channel, error.message))
        except SkerryError as error:
            connection.refuse(error, self.channel.receiver)
            if connection is self._connection:
                self._break(error)
        except Exception as error:
            self._break(InternalError(f"{self.channel}: {type(error).__name__}: {error}"))
            raise
        finally:
            self._unlink(connection)
        return False

    def _receive(self, connection: Connection, frame: Frame) -> None:
        if frame.kind == BATCH:
            self.received_bytes += frame.size_bytes
            header, body = split_batch(frame)
            # Nobody wants what was under way when the channel was stopped or failed.
            is_unwanted = self._is_over and not self._receiver.is_complete
            if is_unwanted or not self._receiver.is_new(header, len(body)):
                return
            if header.rows:
                self.append(header, body)
                self.received_rows += header.rows
            grants = self._receiver.appended(header)
            if header.last:
                self._end()
                self.finish()
            reach("grant withheld")
            for grant in grants:
                connection.send(grant)
            return
        match decode(frame):
            case Goodbye() if self._is_over:
                connection.close()
            case Refused(failure):
                self._break(error_of(failure))
                connection.close()
            case other:
                raise PeerError(f"{type(other).__name__} does not belong here on a data connection")

    def _unlink(self, connection: Connection) -> None:
        if connection is not self._connection:
            return
        self._connection = None
        self._unlinked.set()
        if not self._is_over:
            self._watchdog = asyncio.get_running_loop().call_later(self._patience_s, self._give_up)

    @property
    def _patience_s(self) -> float:
        """The sender dials for `wait_s`: its last dial may be under way, and the login takes its time."""
        return self._wait_s + self._limits.login_s if self._wait_s > 0 else 0.0

    def _give_up(self) -> None:
        self._watchdog = None
        reason = f"its channel had no connection for {self._patience_s:g} s"
        self._break(SiteError(f"site {self.peer} is down: {reason}", member=self.channel.receiver))


class Gone(Enum):
    """What a lookup answers for a channel whose query is over."""

    GONE = "gone"


def data_handler(
    lookup: Callable[[OpenChannel], ChannelIn | Gone],
    limits: Limits,
    ports: DataPorts | None = None,
    sender_of: Callable[[ChannelId], str] = lambda channel: channel.sender,
) -> Handler:
    """The Listener's handler for "data": reads OpenChannel, looks the channel up and serves it, or names its port.

    `sender_of` says who may send a channel here: its sender, or the relay before this member.
    """

    async def handle(connection: Connection, hello: Hello) -> None:
        opening = _checked(await receive_message(connection, limits.login_s), hello, sender_of)
        while True:
            found = lookup(opening)
            if isinstance(found, Gone):
                connection.send(ChannelGone())
                return
            if ports is not None and not found.is_over and (port := await open_port(found, ports)) is not None:
                connection.send(ChannelPort(port))
                return
            if not await found.serve(connection, opening, hello.epoch):
                return
            following = await _following(connection)
            if following is None:
                return
            opening = _checked(following, hello, sender_of)

    async def open_port(found: ChannelIn, ports: DataPorts) -> int | None:
        async def serve(connection: Connection, hello: Hello) -> None:
            opening = _checked(await receive_message(connection, limits.login_s), hello, sender_of)
            if opening.channel == found.channel:
                if await found.serve(connection, opening, hello.epoch):
                    await _farewell(connection, limits)  # the port is this channel's
            else:
                connection.send(ChannelGone())

        port = await ports.port_for(found.channel, serve, found.when_over)
        return None if found.is_over else port

    return handle


async def _following(connection: Connection) -> Message | None:
    """What comes after a channel's end; None if the sender has nothing more to send, or nothing for long."""
    try:
        # Longer than senders keep it, who so are the ones to close it.
        frame = await connection.receive(2 * SPARE_S)
    except (TimeoutError, ConnectionLost):
        return None
    message = decode(frame) if frame is not None else None
    return None if isinstance(message, Goodbye) else message


async def _farewell(connection: Connection, limits: Limits) -> None:
    """Let the sender read the last answer and close first; it has nothing more to say."""
    try:
        async with asyncio.timeout(limits.login_s):
            while await connection.receive() is not None:
                pass
    except (TimeoutError, SkerryError):
        connection.abort()


def _checked(opening: Message, hello: Hello, sender_of: Callable[[ChannelId], str]) -> OpenChannel:
    if not isinstance(opening, OpenChannel):
        raise PeerError(f"a channel begins with OpenChannel, not {type(opening).__name__}")
    if opening.codec not in CODECS:
        raise PeerError(f"{opening.channel}: no codec {opening.codec[:100]!r} here")
    expected = sender_of(opening.channel)
    if expected != hello.member:
        how = "" if expected == opening.channel.sender else f": its rows come here from {expected}"
        raise PeerError(f"{hello.member[:100]!r} cannot send as {opening.channel.sender[:100]!r}{how}")
    return opening
