"""The control traffic of one member pair, as a state machine (docs/protocol.md, 3): handshake, heartbeats, resending.

A Session lives at each end and outlives its links: control messages are numbered, acked by totals, resent after a
reconnect, and delivered once. A peer that restarted or forgot the session is lost, and so is the session.
Frames and `now` go in, instructions come out; the shell is wire/peers.py.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Sequence

import msgspec

from skerry.model.errors import Overloaded, PeerError, SiteError, SkerryError
from skerry.model.limits import Limits
from skerry.model.transitions import Machine, staying
from skerry.wire.frames import (
    NUMBERED,
    Buffer,
    Frame,
    decode,
    decode_numbered,
    encode_message,
    encode_numbered,
    size_of,
)
from skerry.wire.messages import CONTROL_VERSIONS, Goodbye, Hello, Message, Ping, Pong, Refused, Welcome
from skerry.wire.proof import Secret
from skerry.wire.values import error_of

# A receiver acks at the latest after so many messages, long before the sender's bound is reached.
_ACK_EVERY = 128


class Phase(enum.Enum):
    UNLINKED = "unlinked"  # not yet, or not any more
    LINKED = "linked"
    OVER = "over"


class Event(enum.Enum):
    SENT = "a message is sent"
    ACCEPTED = "the peer dialled"
    WELCOMED = "the peer answered our dial"
    HEARD = "a frame came"
    CUT = "the connection ended"
    FELL_SILENT = "heartbeats were missed"
    WAITED_OUT = "no connection for wait_s"
    REFUSED = "our dial was refused"
    RESTARTED = "the peer restarted, or forgot the session"
    STOPPED = "Goodbye came"
    BROKE = "Refused came, or the protocol was broken"
    OVERRAN = "too many messages wait for acks"


NEXT: dict[tuple[Phase, Event], Phase] = {
    # Without a link a message waits; after the end it is dropped, and so is the next reason to end.
    **staying(Phase, Event.SENT),
    (Phase.UNLINKED, Event.ACCEPTED): Phase.LINKED,
    (Phase.LINKED, Event.ACCEPTED): Phase.LINKED,  # a newer link takes the place of the present one
    (Phase.UNLINKED, Event.WELCOMED): Phase.LINKED,
    (Phase.LINKED, Event.HEARD): Phase.LINKED,
    (Phase.LINKED, Event.CUT): Phase.UNLINKED,
    (Phase.LINKED, Event.FELL_SILENT): Phase.UNLINKED,
    **staying((Phase.UNLINKED, Phase.OVER), Event.CUT),
    (Phase.UNLINKED, Event.WAITED_OUT): Phase.OVER,
    (Phase.LINKED, Event.STOPPED): Phase.OVER,
    **{
        (phase, event): Phase.OVER
        for phase in Phase
        for event in (Event.REFUSED, Event.RESTARTED, Event.BROKE, Event.OVERRAN)
    },
}


class Identity(msgspec.Struct, frozen=True):
    """Who a member is, and by what it proves that: `epoch` is new at each start of the process."""

    cluster: str
    member: str
    epoch: int
    release: str = ""
    secret: Secret | None = None  # None: only TLS can prove it


class LinkState(msgspec.Struct, frozen=True):
    """Whether a session has a link now, how many it has had, and since when it is so."""

    is_linked: bool
    links: int
    since: float


class Transmit(msgspec.Struct, frozen=True):
    """Write these buffers to the present link."""

    parts: Sequence[Buffer]


class Deliver(msgspec.Struct, frozen=True):
    """A control message arrived, for the first and only time."""

    message: Message


class PeerUp(msgspec.Struct, frozen=True):
    """The session has a link and had none since it began."""

    epoch: int


class PeerBack(msgspec.Struct, frozen=True):
    """The session has a link again; over the one before nothing came after `heard_at`."""

    heard_at: float


class Unlink(msgspec.Struct, frozen=True):
    """The present link is of no use: abort it and dial again."""

    reason: str


class PeerLost(msgspec.Struct, frozen=True):
    """The session is over: forget it."""

    error: SiteError


Instruction = Transmit | Deliver | PeerUp | PeerBack | Unlink | PeerLost


class Session:
    """`number` tells this session from earlier ones of the pair within the epoch of this member.

    `peer_seen` is that of the session before: the peer's latest epoch, and its latest number within it.
    """

    def __init__(
        self,
        identity: Identity,
        peer: str,
        number: int,
        limits: Limits,
        now: float,
        peer_seen: tuple[int, int] = (0, 0),
    ) -> None:
        self.identity = identity
        self.peer = peer
        self.number = number
        self.limits = limits
        self.wait_s = limits.wait_s  # without a link; queries that wait longer raise it
        self.peer_epoch = 0  # 0 until the first handshake
        self.peer_number = 0
        self.peer_seen = peer_seen
        self.links = 0  # links this session has had, as agreed in handshakes
        self.link_is_mine = False  # this side dialled the present link
        self.next_seq = 0
        self.acked_upto = 0
        self.received_upto = 0
        self._unacked: deque[list[Buffer]] = deque()  # frames of [acked_upto, next_seq)
        self._unacked_bytes = 0
        self._ack_told = 0
        self._since = now  # linked or unlinked since
        self._heard = now
        self._ping_at = now
        self._life = Machine("session with", peer, NEXT, Phase.UNLINKED)

    @property
    def is_linked(self) -> bool:
        return self._life.phase is Phase.LINKED

    @property
    def is_over(self) -> bool:
        return self._life.phase is Phase.OVER

    # --- handshake ---------------------------------------------------------------------------
    def hello(self) -> Hello:
        """The first frame of a link that this side dials."""
        return Hello(
            kind="control",
            versions=CONTROL_VERSIONS,
            cluster=self.identity.cluster,
            member=self.identity.member,
            epoch=self.identity.epoch,
            received_upto=self.received_upto,
            release=self.identity.release,
            session=self.number,
            peer_epoch=self.peer_epoch,
            peer_session=self.peer_number,
            links=self.links,
        )

    def is_other(self, hello: Hello) -> bool:
        """Whether the peer restarted or forgot this session: then lose it, and accept with a new one."""
        return self.peer_epoch != 0 and (hello.epoch, hello.session) != (self.peer_epoch, self.peer_number)

    def is_older(self, hello: Hello) -> bool:
        """Whether this Hello was long on its way, and the peer has begun a later session since."""
        epoch, number = self.peer_seen
        if hello.epoch == epoch:
            return hello.session < number
        # Epochs come from clocks, which may be set back: trust their order only while the later one is there.
        return self.is_linked and hello.epoch < epoch

    def is_stale(self, hello: Hello) -> bool:
        """Whether the peer still holds a session that this side has forgotten: a Welcome tells it so, no link."""
        known = (hello.peer_epoch, hello.peer_session)
        return known != (0, 0) and known != (self.identity.epoch, self.number)

    def yields_to(self, hello: Hello, is_greeting: bool) -> bool:
        """Whether the peer's new link replaces what this side has; `is_greeting`: its own Hello is out (3.2)."""
        if self.is_linked and self.link_is_mine:
            # The peer has seen the present link and dials all the same: it lost it. Else its Hello is older.
            return hello.links >= self.links
        if is_greeting:
            return self.peer < self.identity.member
        return True

    def welcome(self, version: int) -> Welcome:
        """What this side answers, before `accept`."""
        return Welcome(
            version=version,
            cluster=self.identity.cluster,
            member=self.identity.member,
            epoch=self.identity.epoch,
            received_upto=self.received_upto,
            release=self.identity.release,
            session=self.number,
            links=self.links,
        )

    def accept(self, hello: Hello, version: int, now: float) -> list[Instruction]:
        """The peer dialled: answer, then resend what it has not got."""
        assert not self.is_other(hello)
        assert not self.is_stale(hello)
        self._life.move(Event.ACCEPTED)
        self.links = max(self.links, hello.links) + 1
        welcome = Transmit(encode_message(self.welcome(version)))
        return [welcome, *self._link(hello.epoch, hello.session, hello.received_upto, now, mine=False)]

    def welcomed(self, welcome: Welcome, now: float) -> list[Instruction]:
        """The peer answered the link that this side dialled."""
        if welcome.cluster != self.identity.cluster or welcome.member != self.peer:
            where = f"{welcome.member[:100]!r} of cluster {welcome.cluster[:100]!r}"
            return self._lose(Event.BROKE, f"its address answers as {where}")
        if self.peer_epoch and (welcome.epoch, welcome.session) != (self.peer_epoch, self.peer_number):
            return self._forgotten(welcome.epoch)
        self._life.move(Event.WELCOMED)
        self.links = max(self.links, welcome.links)
        return self._link(welcome.epoch, welcome.session, welcome.received_upto, now, mine=True)

    def _link(self, epoch: int, number: int, received_upto: int, now: float, *, mine: bool) -> list[Instruction]:
        up: Instruction = PeerUp(epoch) if self.peer_epoch == 0 else PeerBack(self._heard)
        self.peer_epoch, self.peer_number = self.peer_seen = epoch, number
        self.link_is_mine = mine
        self._since = self._heard = now
        self._ping_at = now + self.limits.heartbeat_s
        try:
            self._acked(received_upto)
        except PeerError as error:
            return self._lose(Event.BROKE, error.message)
        self._ack_told = self.received_upto
        return [up, *(Transmit(parts) for parts in self._unacked)]

    # --- traffic -----------------------------------------------------------------------------
    def send(self, message: Message) -> list[Instruction]:
        """Number a control message and keep it until it is acked; Overloaded when it fits in no frame."""
        self._life.move(Event.SENT)
        if self.is_over:
            return []
        parts = encode_numbered(self.next_seq, message)
        size_bytes = size_of(parts)
        if size_bytes > self.limits.frame_bytes:
            raise Overloaded(
                f"{type(message).__name__}: a frame of {size_bytes} bytes is over the limit of"
                f" {self.limits.frame_bytes}",
                member=self.identity.member,
                suggestion="raise limits.frame_bytes at all members, or send less",
            )
        self.next_seq += 1
        self._unacked.append(parts)
        self._unacked_bytes += size_bytes
        if len(self._unacked) > self.limits.control_unacked_messages:
            return self._lose(Event.OVERRAN, f"{len(self._unacked)} control messages are waiting for it")
        if self._unacked_bytes > self.limits.control_unacked_bytes:
            return self._lose(Event.OVERRAN, f"{self._unacked_bytes} bytes of control messages are waiting for it")
        return [Transmit(parts)] if self.is_linked else []

    def receive(self, frame: Frame, now: float) -> list[Instruction]:
        """A frame came over the present link. PeerError: refuse the link, and call `broke`."""
        self._life.move(Event.HEARD)
        self._heard = now
        if frame.kind in NUMBERED:
            return self._receive_numbered(frame)
        match decode(frame):
            case Ping(received_upto):
                self._acked(received_upto)
                return [self._ack()]
            case Pong(received_upto):
                self._acked(received_upto)
                return []
            case Goodbye():
                return self._lose(Event.STOPPED, "it is stopping", f"site {self.peer} is stopping")
            case Refused(failure):
                return self.broke(error_of(failure))
            case other:
                raise PeerError(f"{type(other).__name__} does not belong on a control connection")

    def _receive_numbered(self, frame: Frame) -> list[Instruction]:
        seq, message = decode_numbered(frame)
        if seq > self.received_upto:
            raise PeerError(f"control message {seq} came where {self.received_upto} was due")
        if seq < self.received_upto:
            return []
        self.received_upto += 1
        if self.received_upto - self._ack_told >= _ACK_EVERY:
            return [Deliver(message), self._ack()]
        return [Deliver(message)]

    def _ack(self) -> Transmit:
        self._ack_told = self.received_upto
        return Transmit(encode_message(Pong(self.received_upto)))

    def _acked(self, upto: int) -> None:
        if upto > self.next_seq:
            raise PeerError(f"control messages up to {upto} are acked, {self.next_seq} were sent")
        while self.acked_upto < upto:
            self._unacked_bytes -= size_of(self._unacked.popleft())
            self.acked_upto += 1

    # --- time and loss -----------------------------------------------------------------------
    @property
    def deadline(self) -> float:
        """When to call `tick`."""
        if self.is_linked:
            return min(self._ping_at, self._silent_at)
        return self._since + self.wait_s

    @property
    def _silent_at(self) -> float:
        return self._heard + self.limits.heartbeat_s * self.limits.heartbeats_missed

    def tick(self, now: float) -> list[Instruction]:
        """Heartbeats, and the end of waiting."""
        if self.is_over:
            return []
        if not self.is_linked:
            if now >= self._since + self.wait_s:
                return self._lose(Event.WAITED_OUT, f"no connection for {self.wait_s:g} s")
            return []
        if now > self.deadline + self.limits.heartbeat_s:
            # It was this side that slept: what the peer sent meanwhile is still unread.
            self._heard = max(self._heard, now - self.limits.heartbeat_s * (self.limits.heartbeats_missed - 1))
        if now >= self._silent_at:
            self._life.move(Event.FELL_SILENT)
            self._since = now
            return [Unlink(f"silent for {self.limits.heartbeats_missed} heartbeats")]
        if now >= self._ping_at:
            self._ping_at = now + self.limits.heartbeat_s
            self._ack_told = self.received_upto
            return [Transmit(encode_message(Ping(self.received_upto)))]
        return []

    @property
    def link(self) -> LinkState:
        return LinkState(self.is_linked, self.links, self._since)

    def unlinked(self, now: float) -> None:
        """The link was reset, ended, or is silent; a new one may resume."""
        if self._life.move(Event.CUT):
            self._since = now

    def refused(self, where: str) -> list[Instruction]:
        """Nobody listens at the peer's address."""
        return self._lose(Event.REFUSED, f"connection refused at {where}")

    def broke(self, error: SkerryError) -> list[Instruction]:
        """One of the two broke the protocol or refuses the other: trying again would only end so again."""
        return self._lose(Event.BROKE, "", f"site {self.peer} cannot be used: {error.message}")

    def restarted(self, hello: Hello) -> list[Instruction]:
        """`is_other(hello)`: the session is lost."""
        return self._forgotten(hello.epoch)

    def _forgotten(self, epoch: int) -> list[Instruction]:
        return self._lose(Event.RESTARTED, "it restarted" if epoch != self.peer_epoch else "it gave up waiting")

    def _lose(self, event: Event, reason: str, message: str = "") -> list[Instruction]:
        """The first reason counts."""
        if not self._life.move(event, reason or message):
            return []
        self._unacked.clear()
        return [PeerLost(SiteError(message or f"site {self.peer} is down: {reason}", member=self.identity.member))]
