"""Channels over connections (docs/protocol.md, 4): the shells around ChannelSender and ChannelReceiver."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from enum import Enum
from random import Random
from typing import Protocol

from skerry.errors import InternalError, Overloaded, PeerError, SiteError, SkerryError
from skerry.ids import ChannelId
from skerry.limits import Limits
from skerry.wire.address import parse_address
from skerry.wire.channel import ChannelEnd, ChannelReceiver, ChannelSender, Phase
from skerry.wire.frames import BATCH, Buffer, ConnectionLost, Frame, decode, encode_batch_frame, size_of, split_batch
from skerry.wire.listener import Handler
from skerry.wire.messages import (
    Batch,
    ChannelGone,
    ChannelOk,
    ChannelPending,
    Goodbye,
    Grant,
    Hello,
    Message,
    OpenChannel,
    Refused,
    StopSending,
)
from skerry.wire.peers import backoff_s
from skerry.wire.session import Identity, make_hello
from skerry.wire.tcp import Connection, connect, login, receive_message
from skerry.wire.values import error_of

log = logging.getLogger("skerry.wire")


class EntryLike(Protocol):
    """A batch in a spool."""

    @property
    def body(self) -> Buffer: ...
    @property
    def rows(self) -> int: ...
    @property
    def decoded_bytes(self) -> int: ...


class SpoolLike(Protocol):
    """What a channel reads from: exchange/spool.py."""

    @property
    def length(self) -> int: ...
    @property
    def finished(self) -> bool: ...
    @property
    def failed(self) -> SkerryError | None: ...
    def read(self, index: int) -> EntryLike: ...
    def release(self, upto: int) -> None: ...
    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]: ...


class ChannelOut:
    """Sends a spool to the receiving member, and resumes over new connections until the end mark is acked."""

    def __init__(
        self,
        identity: Identity,
        channel: ChannelId,
        address: str,
        schema: bytes,
        spool: SpoolLike,
        limits: Limits,
        random: Random,
        *,
        wait_s: float | None = None,
        codec: str = "",
    ) -> None:
        self.channel = channel
        self.sent_bytes = 0  # as frames, resent ones included
        self.sent_rows = 0  # each row once
        self._identity = identity
        self._address = address
        self._schema = schema
        self._codec = codec
        self._spool = spool
        self._limits = limits
        self._random = random
        self._wait_s = limits.wait_s if wait_s is None else wait_s
        self._sender = ChannelSender()
        self._changed = asyncio.Event()  # the spool, the credit, the link: look again
        self._link_error: SkerryError | None = None
        self._lost_at = 0.0
        self._failures = 0  # dials in a row that came to nothing
        self._peer_epoch = 0

    async def run(self) -> ChannelEnd:
        """Until the receiver has everything, or wants no more. Raises SiteError, or the error of the spool.

        Silence and resets are waited out for `wait_s` (default `limits.wait_s`); a refused connection is the end.
        """
        loop = asyncio.get_running_loop()
        unsubscribe = self._spool.subscribe(self._changed.set)
        self._lost_at = loop.time()
        try:
            while True:
                connection = await self._dial()
                linked_at, acked_upto = loop.time(), self._sender.acked_upto
                try:
                    await self._use(connection)
                except ConnectionLost as error:
                    log.info("%s: %s", self.channel, error.message)
                finally:
                    self._sender.unlinked()
                    connection.abort()
                if self._sender.end is not None:
                    return self._sender.end
                # A link that was of use: wait afresh. Else it was one of those that end as soon as they begin.
                lived_s = loop.time() - linked_at
                if self._sender.acked_upto > acked_upto or lived_s > self._limits.reconnect_max_s:
                    self._lost_at, self._failures = loop.time(), 0
        finally:
            unsubscribe()

    # --- the link ----------------------------------------------------------------------------
    async def _dial(self) -> Connection:
        """A connection on which the channel is open, or ended."""
        where = parse_address(self._address).where
        while True:
            if self._failures:
                pause_s = backoff_s(self._failures - 1, self._limits, self._random)
                if asyncio.get_running_loop().time() + pause_s > self._lost_at + self._wait_s:
                    raise self._down(f"no connection to {where} for {self._wait_s:g} s")
                await asyncio.sleep(pause_s)
            self._failures += 1
            try:
                connection = await connect(self._address, self._limits)
                try:
                    await self._open(connection)
                except BaseException:
                    connection.abort()
                    raise
                return connection
            except (ConnectionRefusedError, FileNotFoundError):
                raise self._down(f"connection refused at {where}") from None
            except (ConnectionLost, OSError) as error:  # TimeoutError among them
                log.debug("%s: %s", self.channel, error)

    async def _open(self, connection: Connection) -> None:
        welcome = await login(connection, make_hello(self._identity, "data"))
        if welcome.member != self.channel.receiver:
            raise self._down(f"its address answers as {welcome.member[:100]!r}")
        if self._peer_epoch not in (0, welcome.epoch):
            raise self._down("it restarted")
        self._peer_epoch = welcome.epoch
        connection.send(OpenChannel(self.channel, self._schema, self._sender.acked_upto, self._codec))
        answer = await receive_message(connection, self._limits.login_s)
        match answer:
            case ChannelOk() | ChannelPending():
                self._sender.opened(answer)
            case _:
                self._receive(answer)

    def _down(self, reason: str) -> SiteError:
        return SiteError(f"site {self.channel.receiver} is down: {reason}", member=self._identity.member)

    async def _use(self, connection: Connection) -> None:
        """Send and listen until the channel or the connection ends."""
        self._link_error = None
        listener = asyncio.create_task(self._listen(connection), name=f"grants of {self.channel}")
        try:
            while self._sender.phase is not Phase.ENDED:
                self._changed.clear()
                if self._link_error is not None:
                    raise self._link_error
                if self._spool.failed is not None:
                    connection.refuse(self._spool.failed, self._identity.member)
                    await connection.wait_closed()
                    raise self._spool.failed
                if not await self._send_next(connection):
                    await self._changed.wait()
            if not connection.is_closed:
                connection.send(Goodbye())
                connection.close()
                await connection.wait_closed()
        finally:
            listener.cancel()
            await asyncio.wait([listener])

    async def _send_next(self, connection: Connection) -> bool:
        """One batch, or the end mark, if there is one and credit for it."""
        sender, spool = self._sender, self._spool
        if sender.next_seq < spool.length:
            if not sender.may_send(1):
                return False
            entry = spool.read(sender.next_seq)
            body_bytes = size_of((entry.body,))
            # A tiny batch is larger as a message than in memory: credits count what must be kept, so the larger.
            decoded_bytes = max(entry.decoded_bytes, body_bytes)
            if decoded_bytes > self._limits.frame_bytes - self._limits.frame_bytes_before_login:
                raise Overloaded(
                    f"{self.channel}: a batch of {decoded_bytes} bytes is over the limit of a frame",
                    suggestion="are there single values of such a size? raise limits.frame_bytes at all members",
                )
            if sender.next_seq == sender.sent_upto:
                self.sent_rows += entry.rows
            parts = encode_batch_frame(sender.send(entry.rows, decoded_bytes), entry.body)
        elif spool.finished and sender.may_send(0):
            parts = encode_batch_frame(sender.send(0, 0, last=True))
        else:
            return False
        self.sent_bytes += size_of(parts)
        connection.send_parts(parts)
        await connection.drain()
        return True

    # --- what the receiver says --------------------------------------------------------------
    async def _listen(self, connection: Connection) -> None:
        try:
            while self._sender.phase is not Phase.ENDED:
                frame = await connection.receive()
                if frame is None:
                    raise ConnectionLost(f"{connection.peer_name}: the connection ended")
                self._receive(decode(frame))
                self._changed.set()
        except SkerryError as error:
            self._link_error = error
        except Exception as error:
            log.exception("%s: failed", self.channel)
            self._link_error = InternalError(f"{self.channel}: {type(error).__name__}: {error}")
        finally:
            self._changed.set()

    def _receive(self, message: Message) -> None:
        match message:
            case Grant():
                for release in self._sender.granted(message):
                    # The end mark is acked like a batch, and is none.
                    self._spool.release(min(release.upto, self._spool.length))
            case StopSending():
                self._sender.stopped()
            case ChannelGone():
                self._sender.gone()
            case Refused(failure):
                raise error_of(failure)
            case other:
                raise PeerError(f"{type(other).__name__} does not belong on a data connection")


class ChannelIn:
    """Receives one channel: `append(header, body)` puts a batch into a spool, then `finish()` or `fail(error)` ends it.

    A batch is acked after `append` returned; when it raises, the channel fails. Either finish or fail is called, once,
    unless the channel was closed or stopped before. Of two connections the newer one counts.
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
    ) -> None:
        self.channel = channel
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

    @property
    def is_pending(self) -> bool:
        """Whether `activate` was not called yet."""
        return self._receiver.pending

    @property
    def is_over(self) -> bool:
        return self._is_over

    # --- for the member ----------------------------------------------------------------------
    def consumed(self, decoded_bytes: int) -> None:
        """The query used up so much (in headers' decoded_bytes) of what was appended: grants more."""
        self._tell(self._receiver.consumed(decoded_bytes))

    def activate(self, *, grant_on_consumption: bool | None = None) -> None:
        """The query is known now: credit grows with it, by the policy given here or at the beginning."""
        if grant_on_consumption is None:
            grant_on_consumption = self._receiver.grant_on_consumption
        self._tell(self._receiver.activate(grant_on_consumption=grant_on_consumption))

    def stop_sending(self) -> None:
        """Enough: the sender ends cleanly, and what is still under way is dropped; finish and fail are not called."""
        if not self._is_over:
            self._is_stopped = True
            self._tell([StopSending()])
            self._end()

    def close(self) -> None:
        """The query is over: drop the link, call nothing more."""
        self._end()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()

    def _tell(self, messages: list[Grant] | list[StopSending]) -> None:
        if self._connection is not None and not self._connection.is_closed:
            for message in messages:
                self._connection.send(message)

    def _end(self) -> None:
        self._is_over = True
        if self._watchdog is not None:
            self._watchdog.cancel()
            self._watchdog = None

    def _break(self, error: SkerryError) -> None:
        if not self._is_over:
            self._end()
            log.info("%s: %s", self.channel, error.message)
            self.fail(error)

    # --- the link ----------------------------------------------------------------------------
    async def serve(self, connection: Connection, opening: OpenChannel, epoch: int = 0) -> None:
        """Receive over a connection whose OpenChannel was read; returns at its end. `epoch` is the sender's."""
        if self._is_over and not self._receiver.is_complete:
            connection.send(StopSending() if self._is_stopped else ChannelGone())
            await self._farewell(connection)
            return
        if self._sender_epoch not in (0, epoch):
            self._break(SiteError(f"site {self.channel.sender} restarted"))
            connection.send(ChannelGone())
            return
        old, self._connection = self._connection, connection
        if old is not None:
            old.abort()
        if self._watchdog is not None:
            self._watchdog.cancel()
            self._watchdog = None
        self._sender_epoch, self.schema, self.codec = epoch, opening.schema, opening.codec
        try:
            for message in self._receiver.open(opening):
                connection.send(message)
            while (frame := await connection.receive()) is not None:
                if connection is not self._connection:
                    return
                self._receive(connection, frame)
                if self._receiver.is_complete:
                    await self._farewell(connection)
                    break
        except ConnectionLost as error:
            log.info("%s: %s", self.channel, error.message)
        except SkerryError as error:
            connection.refuse(error, self.channel.receiver)
            if connection is self._connection:
                self._break(error)
        except Exception as error:
            self._break(InternalError(f"{self.channel}: {type(error).__name__}: {error}"))
            raise
        finally:
            self._unlink(connection)

    def _receive(self, connection: Connection, frame: Frame) -> None:
        if frame.kind == BATCH:
            self.received_bytes += frame.size_bytes
            header, body = split_batch(frame)
            if not self._receiver.is_new(header, len(body)) or self._is_over:
                return
            if header.rows:
                self.append(header, body)
                self.received_rows += header.rows
            grants = self._receiver.appended(header)
            if header.last:
                self._end()
                self.finish()
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

    async def _farewell(self, connection: Connection) -> None:
        """Let the sender read the last answer and close first; it has nothing more to say."""
        try:
            async with asyncio.timeout(self._limits.login_s):
                while await connection.receive() is not None:
                    pass
        except (TimeoutError, SkerryError):
            connection.abort()

    def _unlink(self, connection: Connection) -> None:
        if connection is not self._connection:
            return
        self._connection = None
        if not self._is_over:
            loop = asyncio.get_running_loop()
            self._watchdog = loop.call_later(self._wait_s, self._give_up)

    def _give_up(self) -> None:
        self._watchdog = None
        reason = f"its channel had no connection for {self._wait_s:g} s"
        self._break(SiteError(f"site {self.channel.sender} is down: {reason}", member=self.channel.receiver))


class Gone(Enum):
    """What a lookup answers for a channel whose query is over."""

    GONE = "gone"


def data_handler(lookup: Callable[[OpenChannel], ChannelIn | Gone], limits: Limits) -> Handler:
    """The Listener's handler for "data": reads OpenChannel, looks the channel up and serves it."""

    async def handle(connection: Connection, hello: Hello) -> None:
        opening = await receive_message(connection, limits.login_s)
        if not isinstance(opening, OpenChannel):
            raise PeerError(f"a data connection begins with OpenChannel, not {type(opening).__name__}")
        if opening.channel.sender != hello.member:
            raise PeerError(f"{hello.member[:100]!r} cannot send as {opening.channel.sender[:100]!r}")
        found = lookup(opening)
        if isinstance(found, Gone):
            connection.send(ChannelGone())
        else:
            await found.serve(connection, opening, hello.epoch)

    return handle
