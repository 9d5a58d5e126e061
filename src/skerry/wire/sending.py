"""The sending end of a channel over connections (docs/protocol.md, 4): the shell around ChannelSender."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Protocol

import pyarrow as pa

from skerry.model import trace
from skerry.model.errors import InternalError, Overloaded, PeerError, SiteError, SkerryError
from skerry.model.ids import ChannelId
from skerry.model.limits import ENTRY_BYTES, KIB, STALL_TOLD_S, Limits
from skerry.model.points import reach
from skerry.wire.address import TcpAddress, parse_address
from skerry.wire.channel import ChannelEnd, ChannelSender, Phase
from skerry.wire.codec import CODECS, decode_schema, recode_batch
from skerry.wire.frames import Buffer, ConnectionLost, decode, encode_batch_frame, size_of
from skerry.wire.greeting import make_hello
from skerry.wire.messages import (
    ChannelGone,
    ChannelOk,
    ChannelPending,
    ChannelPort,
    Goodbye,
    Grant,
    Message,
    OpenChannel,
    Refused,
    StopSending,
)
from skerry.wire.peers import backoff_s
from skerry.wire.session import Identity
from skerry.wire.spares import Spare, Spares
from skerry.wire.tcp import Connection, connect, login, receive_message
from skerry.wire.tls import Tls
from skerry.wire.values import error_of

_PACKED_HERE_BYTES = 32 * KIB  # some 0.1 ms of zstd: less than a thread's two hand-overs under load


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
        to: str = "",
        tls: Tls | None = None,
        spares: Spares | None = None,
    ) -> None:
        """`to`: the member at `address`, when that is not the channel's receiver but a relay on the way to it.

        `spares`: connections of channels that have ended; without them it dials one, and closes it at its end.
        """
        self.channel = channel
        self.to = to or channel.receiver
        self.sent_bytes = 0  # as frames, resent ones included
        self.sent_rows = 0  # each row once
        self.stalled_s = 0.0  # how long batches have waited for credit
        self._identity = identity
        self._address = address
        self._schema = schema
        assert codec in CODECS
        self._codec = codec
        self._arrow_schema: pa.Schema | None = None
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
        self._tls = tls
        self._spares = spares
        self._is_at_main = True  # the present connection, and not at a port of the channel's own
        self._dialling: asyncio.Timeout | None = None  # of the pause before a dial, and of the dial
        self._connection: Connection | None = None
        self._heard_at = 0.0  # over the present connection

    async def run(self) -> ChannelEnd:
        """Until the receiver has everything, or wants no more. Raises SiteError, or the error of the spool.

        Silence and resets are waited out for `wait_s` (default `limits.wait_s`); a refused connection is the end.
        """
        loop = asyncio.get_running_loop()
        unsubscribe = self._spool.subscribe(self._changed.set)
        self._lost_at, is_resumed = loop.time(), False
        try:
            while True:
                connection = await self._dial()
                linked_at, acked_upto = loop.time(), self._sender.acked_upto
                if is_resumed and self._sender.end is None:
                    trace.emit(trace.ChannelResumed(self.channel, self._sender.next_seq))
                is_resumed, is_kept = True, False
                try:
                    await self._use(connection)
                    is_kept = await self._leave(connection)
                except ConnectionLost as error:
                    trace.emit(trace.ChannelInterrupted(self.channel, error.message))
                finally:
                    self._sender.unlinked()
                    if not is_kept:
                        connection.abort()
                if self._sender.end is not None:
                    return self._ended(self._sender.end)
                if self._wait_s <= 0:
                    raise self._down("its connection was lost, and this query does not wait")
                # A link that was of use: wait afresh. Else it was one of those that end as soon as they begin.
                lived_s = loop.time() - linked_at
                if self._sender.acked_upto > acked_upto or lived_s > self._limits.reconnect_max_s:
                    self._lost_at, self._failures = loop.time(), 0
        finally:
            unsubscribe()

    def _ended(self, end: ChannelEnd) -> ChannelEnd:
        trace.emit(trace.ChannelEnded(self.channel, end.value, self.sent_rows, self.sent_bytes, self.stalled_s))
        return end

    def peer_is_back(self, heard_at: float) -> None:
        """The control connection to the next member was lost and is there again: do not wait for what is dead.

        A dial that waits, in a pause or for an answer to a packet that was lost, begins anew; so does a connection over
        which nothing came after `heard_at`, the last sign over the old control connection, if that fell silent: TCP
        would send again what was lost only after a pause as long as the silence.
        """
        now = asyncio.get_running_loop().time()
        if self._dialling is not None and not self._dialling.expired():
            self._failures = 0
            self._dialling.reschedule(now)
            return
        heartbeat_s = self._limits.heartbeat_s
        was_silent = now - heard_at >= heartbeat_s * self._limits.heartbeats_missed
        # A control connection hears something once a heartbeat: it may have died as much later than it last did.
        is_silent = was_silent and self._heard_at <= heard_at + heartbeat_s
        if self._connection is not None and self._wait_s > 0 and is_silent:
            self._connection.abort()

    # --- the link ----------------------------------------------------------------------------
    async def _dial(self) -> Connection:
        """A connection on which the channel is open, or ended."""
        # Only the first: one that was lost may have taken the others with it.
        while self._spares is not None and not self._peer_epoch and (spare := self._spares.take(self.to)) is not None:
            if await self._reuse(spare):
                return spare.connection
        main = parse_address(self._address)
        address, tried = main, main
        while True:
            pause_s = 0.0
            if self._failures and address == main:
                pause_s = backoff_s(self._failures - 1, self._limits, self._random)
                if asyncio.get_running_loop().time() + pause_s > self._lost_at + self._wait_s:
                    raise self._down(f"no connection to {tried.where} for {self._wait_s:g} s")
            try:
                async with asyncio.timeout(None) as self._dialling:
                    await asyncio.sleep(pause_s)
                    self._failures += address == main
                    tried = address
                    connection, port = await self._try(str(address), at_main=address == main)
                if port is None:
                    self._is_at_main = address == main
                    return connection
                assert isinstance(main, TcpAddress)
                address = TcpAddress(main.host, port)
                continue
            except (ConnectionRefusedError, FileNotFoundError):
                # A port that was given back meanwhile is no member that is down: the main port knows.
                if address == main:
                    raise self._down(f"connection refused at {main.where}") from None
            except (ConnectionLost, OSError) as error:  # TimeoutError among them
                trace.emit(trace.DialFailed(self._identity.member, self.to, f"{self.channel}: {error}"))
            finally:
                self._dialling = None
            address = main

    async def _reuse(self, spare: Spare) -> bool:
        """Open the channel on a connection that another has left. One that has died meanwhile was never this channel's:
        that is no loss, whatever the query's policy."""
        try:
            async with asyncio.timeout(None) as self._dialling:
                port = await self._ask(spare.connection, at_main=True)
        except (ConnectionLost, OSError):  # TimeoutError among them
            port = 0
        except BaseException:
            spare.connection.abort()
            raise
        finally:
            self._dialling = None
        if port is not None:
            spare.connection.abort()
            return False
        self._peer_epoch = spare.epoch
        return True

    async def _try(self, address: str, *, at_main: bool) -> tuple[Connection, int | None]:
        """One dial: a connection on which the channel is open or ended; or the port where it is to be opened."""
        connection = await connect(address, self._limits, self._tls, self.to)
        try:
            port = await self._open(connection, at_main=at_main)
        except BaseException:
            connection.abort()
            raise
        if port is not None:
            connection.abort()
        return connection, port

    async def _open(self, connection: Connection, *, at_main: bool) -> int | None:
        """None when the channel is open, or ended; else the port where it is to be opened."""
        welcome = await login(connection, make_hello(self._identity, "data"), self._identity.secret, self.to)
        if welcome.member != self.to:
            raise self._down(f"its address answers as {welcome.member[:100]!r}")
        if self._peer_epoch not in (0, welcome.epoch):
            raise self._down("it restarted")
        self._peer_epoch = welcome.epoch
        return await self._ask(connection, at_main=at_main)

    async def _ask(self, connection: Connection, *, at_main: bool) -> int | None:
        connection.send(OpenChannel(self.channel, self._schema, self._sender.acked_upto, self._codec))
        answer = await receive_message(connection, self._limits.login_s)
        match answer:
            case ChannelOk() | ChannelPending():
                self._sender.opened(answer)
            case ChannelPort(port) if at_main and 0 < port < 65536:
                return port
            case _:
                self._receive(answer)
        return None

    def _down(self, reason: str) -> SiteError:
        return SiteError(f"site {self.to} is down: {reason}", member=self._identity.member)

    async def _use(self, connection: Connection) -> None:
        """Send and listen until the channel or the connection ends."""
        self._link_error = None
        self._connection, self._heard_at = connection, asyncio.get_running_loop().time()
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
                    await self._wait()
        finally:
            self._connection = None
            listener.cancel()
            await asyncio.wait([listener])

    async def _leave(self, connection: Connection) -> bool:
        """The channel has ended. Whether its connection goes on without it: only if all that was sent is acked."""
        if connection.is_closed:
            return False
        is_clean = self._is_at_main and self._sender.end is ChannelEnd.FINISHED
        if self._spares is not None and is_clean and self._spares.keep(self.to, connection, self._peer_epoch):
            return True
        connection.send(Goodbye())
        connection.close()
        await connection.wait_closed()
        return False

    async def _wait(self) -> None:
        """Until there is a batch, or credit for the one that is there."""
        loop = asyncio.get_running_loop()
        if self._sender.next_seq >= self._spool.length:
            await self._changed.wait()
            return
        since = loop.time()
        telling = loop.call_later(STALL_TOLD_S, trace.emit, trace.ChannelStalled(self.channel, STALL_TOLD_S))
        try:
            await self._changed.wait()
        finally:
            telling.cancel()
        self.stalled_s += loop.time() - since

    async def _send_next(self, connection: Connection) -> bool:
        """One batch, or the end mark, if there is one and credit for it."""
        sender, spool = self._sender, self._spool
        if sender.next_seq < spool.length:
            if not sender.may_send(1):
                return False
            entry = spool.read(sender.next_seq)
            body, body_bytes = entry.body, size_of((entry.body,))
            decoded_bytes = max(entry.decoded_bytes, body_bytes)
            if decoded_bytes > self._limits.frame_bytes - self._limits.frame_bytes_before_login:
                raise Overloaded(
                    f"{self.channel}: a batch of {decoded_bytes} bytes is over the limit of a frame",
                    suggestion="are there single values of such a size? raise limits.frame_bytes at all members",
                )
            # A tiny batch takes more as a message, and to keep account of, than its rows do: credits count the larger.
            decoded_bytes = max(decoded_bytes, body_bytes + ENTRY_BYTES)
            if self._codec and entry.rows:
                body = await self._pack(body, body_bytes)
                if self._link_error is not None or not sender.may_send(1):
                    return True  # something happened meanwhile: look again
            if sender.next_seq == sender.sent_upto:
                self.sent_rows += entry.rows
            last = spool.finished and sender.next_seq + 1 == spool.length and sender.may_end
            parts = encode_batch_frame(sender.send(entry.rows, decoded_bytes, last=last), body)
        elif spool.finished and sender.may_send(0):
            last = True
            parts = encode_batch_frame(sender.send(0, 0, last=True))
        else:
            return False
        self.sent_bytes += size_of(parts)
        connection.send_parts(parts)
        await connection.drain()
        reach("last batch sent" if last else "batch sent")
        return True

    async def _pack(self, body: Buffer, body_bytes: int) -> Buffer:
        """Compress what leaves over a slow link; in a thread, for a large batch takes longer than the loop may be away.

        It is done again for what is sent again: losses are rare, and a second copy would be out of the budget.
        """
        if self._arrow_schema is None:
            self._arrow_schema = decode_schema(self._schema)
        if body_bytes <= _PACKED_HERE_BYTES:
            return recode_batch(body, self._arrow_schema, self._codec)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, recode_batch, body, self._arrow_schema, self._codec)

    # --- what the receiver says --------------------------------------------------------------
    async def _listen(self, connection: Connection) -> None:
        try:
            while self._sender.phase is not Phase.ENDED:
                frame = await connection.receive()
                if frame is None:
                    raise ConnectionLost(f"{connection.peer_name}: the connection ended")
                self._heard_at = asyncio.get_running_loop().time()
                self._receive(decode(frame))
                self._changed.set()
        except SkerryError as error:
            self._link_error = error
        except Exception as error:
            trace.emit(trace.WorkFailed(str(self.channel), self.channel.query), error)
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
