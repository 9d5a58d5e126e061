"""Control connections to all other members (docs/protocol.md, 3): the shell around one Session per peer."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any, assert_never

from skerry.model import trace
from skerry.model.errors import InternalError, PeerError, SiteError, SkerryError
from skerry.model.limits import Limits
from skerry.wire.address import parse_address
from skerry.wire.frames import ConnectionLost, encode_message
from skerry.wire.messages import Goodbye, Hello, Message
from skerry.wire.session import (
    Deliver,
    Identity,
    Instruction,
    LinkState,
    PeerBack,
    PeerLost,
    PeerUp,
    Session,
    Transmit,
    Unlink,
)
from skerry.wire.tcp import Connection, connect, login
from skerry.wire.tls import Tls


def backoff_s(attempt: int, limits: Limits, random: Random) -> float:
    """The pause before attempt `attempt` (from 0): doubling up to a bound, with jitter so that peers spread out."""
    pause_s = min(limits.reconnect_first_s * 2.0 ** min(attempt, 30), limits.reconnect_max_s)
    return pause_s * (0.5 + random.random() / 2)


class Peers:
    """One control connection per peer, kept while there is a session; dialled on the first message.

    Callbacks run in the loop's thread and may call `send`. A peer that `on_peer_lost(peer, error)` named was up or
    could not be reached; what was queued for it is dropped, and the next `send` dials anew.
    """

    def __init__(
        self,
        identity: Identity,
        addresses: dict[str, str],
        limits: Limits,
        *,
        on_message: Callable[[str, Message], None],
        on_peer_lost: Callable[[str, SiteError], None],
        on_peer_up: Callable[[str, int], None],
        on_peer_back: Callable[[str, float], None] = lambda peer, heard_at: None,
        random: Random,
        tls: Tls | None = None,
    ) -> None:
        assert identity.epoch > 0, "0 means unknown"
        self.identity = identity
        self.addresses = addresses
        self.limits = limits
        self.random = random
        self.tls = tls
        self.on_message = on_message
        self.on_peer_lost = on_peer_lost
        self.on_peer_up = on_peer_up
        self.on_peer_back = on_peer_back
        self._pairs: dict[str, _Pair] = {}
        self.is_stopping = False

    def send(self, peer: str, message: Message) -> None:
        """Deliver once, in order, or report the peer lost. Never blocks; Overloaded when it fits in no frame."""
        if not self.is_stopping:
            self._pair(peer).send(message)

    def reach(self, peer: str) -> None:
        """Dial a peer without a message for it; `on_peer_up` or `on_peer_lost` tells the outcome."""
        if not self.is_stopping:
            self._pair(peer).reach()

    def state(self, peer: str) -> str:
        """ "up": linked now; "down": lost, or without a link; "unknown": never heard of."""
        pair = self._pairs.get(peer)
        return pair.state if pair is not None else "unknown"

    def link(self, peer: str) -> LinkState | None:
        """The link to a peer as its session sees it; None without a session."""
        pair = self._pairs.get(peer)
        return pair.session.link if pair is not None and pair.session is not None else None

    def be_patient(self, waits_s: Mapping[str, float]) -> None:
        """Sessions with these peers outlast so long a time without a link, others the usual one."""
        for peer, pair in self._pairs.items():
            pair.be_patient(max(self.limits.wait_s, waits_s.get(peer, 0.0)))

    async def serve(self, connection: Connection, hello: Hello) -> None:
        """The Listener's handler for "control"."""
        if hello.member not in self.addresses or hello.member == self.identity.member or hello.epoch <= 0:
            raise PeerError(f"{hello.member[:100]!r} is no other member of this cluster")
        if not self.is_stopping:
            await self._pair(hello.member).serve(connection, hello)

    async def stop(self) -> None:
        """Say Goodbye to all, and wait for the connections' ends at most `limits.login_s`."""
        self.is_stopping = True
        pairs = list(self._pairs.values())
        if pairs:
            await asyncio.gather(*(pair.stop() for pair in pairs))

    def _pair(self, peer: str) -> _Pair:
        pair = self._pairs.get(peer)
        if pair is None:
            if peer not in self.addresses or peer == self.identity.member:
                raise InternalError(f"{peer!r} is no other member of this cluster")
            pair = self._pairs[peer] = _Pair(self, peer)
        return pair


class _Pair:
    """This member and one peer: at most one session, one link and one task that dials."""

    def __init__(self, owner: Peers, peer: str) -> None:
        self.owner = owner
        self.peer = peer
        self.session: Session | None = None
        self._loop = asyncio.get_running_loop()
        self._numbers = 0
        self._peer_seen = (0, 0)
        self._was_lost = False
        self._is_refused = False  # nobody listened at its address when it was dialled last
        self._connection: Connection | None = None
        self._linked_at = 0.0
        self._failures = 0  # links and dials in a row that came to nothing
        self._dialer: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()  # those that dial, or read a link they dialled
        self._greeting: Connection | None = None  # our Hello is out on a link we dialled
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._todo: deque[tuple[Session, Instruction]] = deque()
        self._performing = False

    @property
    def state(self) -> str:
        if self.session is not None and self.session.is_linked:
            return "up"
        return "down" if self._was_lost or (self.session is not None and self.session.peer_epoch) else "unknown"

    def send(self, message: Message) -> None:
        session = self._begin()
        self._perform(session, session.send(message))
        self._dial()

    def reach(self) -> None:
        self._begin()
        self._dial()

    def be_patient(self, wait_s: float) -> None:
        if self.session is not None and self.session.wait_s != wait_s:
            self.session.wait_s = wait_s
            self._arm()

    def _begin(self) -> Session:
        if self.session is None:
            self.session = self._make_session()
            self._numbers = self.session.number
            self._arm()
        return self.session

    def _make_session(self) -> Session:
        owner, number = self.owner, self._numbers + 1
        return Session(owner.identity, self.peer, number, owner.limits, self._loop.time(), self._peer_seen)

    # --- instructions ------------------------------------------------------------------------
    def _perform(self, session: Session, instructions: Iterable[Instruction]) -> None:
        """In order, also when a callback leads to more of them: else a resent message could follow a newer one."""
        self._todo.extend((session, instruction) for instruction in instructions)
        if self._performing:
            return
        self._performing = True
        try:
            while self._todo:
                self._do(*self._todo.popleft())
        finally:
            self._performing = False
        self._arm()

    def _do(self, session: Session, instruction: Instruction) -> None:
        if session is not self.session:
            return  # of a session that was lost meanwhile
        match instruction:
            case Transmit(parts):
                if self._connection is not None and not self._connection.is_closed:
                    self._connection.send_parts(parts)
            case Deliver(message):
                self._call(self.owner.on_message, message)
            case PeerUp(epoch):
                trace.emit(trace.PeerConnected(self.owner.identity.member, self.peer))
                self._call(self.owner.on_peer_up, epoch)
            case PeerBack(heard_at):
                self._call(self.owner.on_peer_back, heard_at)
            case Unlink(reason):
                trace.emit(trace.PeerInterrupted(self.owner.identity.member, self.peer, reason))
                self._drop_link()
                self._dial()
            case PeerLost(error):
                self._lose(error)
            case never:
                assert_never(never)

    def _lose(self, error: SiteError) -> None:
        if self.session is not None:
            self._peer_seen = self.session.peer_seen
        if self._is_refused and not any(self._peer_seen):
            # Members that are started together dial before all of them listen: nothing is wrong.
            trace.emit(trace.PeerAwaited(self.owner.identity.member, self.peer))
        else:
            trace.emit(trace.PeerLost(self.owner.identity.member, self.peer, error.message))
        self.session = None
        self._was_lost = True
        self._failures = 0
        self._drop_link()
        self._stop_dialing()
        self._call(self.owner.on_peer_lost, error)

    def _call(self, callback: Callable[[str, Any], None], argument: object) -> None:
        try:
            callback(self.peer, argument)
        except Exception as error:
            # One message that fails here must not cost the connection, nor the messages behind it.
            what = f"{self.owner.identity.member}: handling of {type(argument).__name__} from {self.peer}"
            trace.emit(trace.WorkFailed(what), error)

    # --- time --------------------------------------------------------------------------------
    def _arm(self) -> None:
        if self.session is None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            return
        deadline = self.session.deadline
        # A timer that is early only ticks in vain: no new one for each message that moves the deadline on.
        if self._timer is not None and self._timer_at <= deadline:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        self._timer = self._loop.call_at(deadline, self._tick)

    def _tick(self) -> None:
        self._timer = None
        session = self.session
        if session is not None:
            self._perform(session, session.tick(self._loop.time()))
            self._arm()

    # --- links -------------------------------------------------------------------------------
    def _drop_link(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()
            if self._loop.time() - self._linked_at > self.owner.limits.reconnect_max_s:
                self._failures = 0  # not one of those that end as soon as they begin

    def _stop_dialing(self) -> None:
        dialer, self._dialer = self._dialer, None
        self._greeting = None
        if dialer is not None and dialer is not asyncio.current_task():
            dialer.cancel()

    def _dial(self) -> None:
        session = self.session
        if session is None or session.is_linked or self._dialer is not None or self.owner.is_stopping:
            return
        self._dialer = self._loop.create_task(self._keep_dialing(session), name=f"dial {self.peer}")
        self._tasks.add(self._dialer)
        self._dialer.add_done_callback(self._tasks.discard)

    async def _keep_dialing(self, session: Session) -> None:
        """Until the session has a link (which this task then reads) or is lost."""
        address = self.owner.addresses[self.peer]
        while session is self.session and not session.is_linked:
            try:
                if self._failures > 1:  # a link that was lost is tried again at once
                    await asyncio.sleep(backoff_s(self._failures - 2, self.owner.limits, self.owner.random))
                self._failures += 1
                connection = await connect(address, self.owner.limits, self.owner.tls, self.peer)
                self._is_refused = False
                await self._greet(session, connection)
                return await self._read(session, connection)
            except (ConnectionRefusedError, FileNotFoundError):
                self._is_refused = True
                return self._perform(session, session.refused(parse_address(address).where))
            except (ConnectionLost, OSError) as error:  # TimeoutError among them
                trace.emit(trace.DialFailed(self.owner.identity.member, self.peer, str(error)))
            except SkerryError as error:
                return self._perform(session, session.broke(error))

    async def _greet(self, session: Session, connection: Connection) -> None:
        self._greeting = connection
        try:
            welcome = await login(connection, session.hello(), self.owner.identity.secret, self.peer)
            if session is not self.session or session.is_linked:
                raise ConnectionLost(f"{connection.peer_name}: another link was quicker")
        except BaseException:
            connection.abort()
            raise
        finally:
            if self._greeting is connection:
                self._greeting = None
        self._connection, self._linked_at = connection, self._loop.time()
        self._dialer = None  # this task now reads, and another may dial after the link's end
        self._perform(session, session.welcomed(welcome, self._loop.time()))

    async def serve(self, connection: Connection, hello: Hello) -> None:
        """A peer dialled. Returning closes its connection."""
        # A session begins only with a link, or with a wish for one: else its loss would be told for nothing.
        session = self.session or self._make_session()
        if session.is_older(hello):
            return
        if session.is_other(hello):
            self._perform(session, session.restarted(hello))
            session = self.session or self._make_session()
        if session.is_stale(hello):
            connection.send(session.welcome(connection.version))
            return
        if not session.yields_to(hello, self._greeting is not None):
            return
        session = self._begin()
        self._drop_link()
        self._stop_dialing()
        self._connection, self._linked_at = connection, self._loop.time()
        self._perform(session, session.accept(hello, connection.version, self._loop.time()))
        await self._read(session, connection)

    async def _read(self, session: Session, connection: Connection) -> None:
        """Until the link ends; then dial again, unless another link has taken its place or the session is over."""
        try:
            while (frame := await connection.receive()) is not None:
                if connection is not self._connection:
                    return
                self._perform(session, session.receive(frame, self._loop.time()))
        except ConnectionLost as error:
            trace.emit(trace.PeerInterrupted(self.owner.identity.member, self.peer, error.message))
        except PeerError as error:
            connection.refuse(error, self.owner.identity.member)
            if connection is self._connection:
                self._connection = None  # it lingers, so that the peer can read the refusal
                self._perform(session, session.broke(error))
        if connection is self._connection:
            self._drop_link()
            session.unlinked(self._loop.time())
            self._arm()
            self._dial()

    async def stop(self) -> None:
        self._stop_dialing()
        self.session = None
        self._arm()
        connection, self._connection = self._connection, None
        if connection is not None and not connection.is_closed:
            connection.send_parts(encode_message(Goodbye()))
            connection.close()
            await connection.wait_closed()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self.owner.limits.stop_s)
