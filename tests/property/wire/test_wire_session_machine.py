"""Both ends of a session over links that delay, cut and cross: no control message is lost or doubled.

Dials may cross, links may die unseen, members may give up, restart and start afresh, frames may be sent again. Within
one pair of sessions each message arrives once and in order; across a loss a message may be missing, but never comes
twice, and what a session delivers is of one session of the peer, from its first message on.
"""

from __future__ import annotations

from collections import deque

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from skerry.model.ids import QueryId
from skerry.model.limits import Limits
from skerry.wire.frames import NUMBERED, Buffer, Frame, FrameReader, decode, encode_message
from skerry.wire.messages import Check, Hello, Welcome
from skerry.wire.session import Deliver, Identity, Instruction, PeerBack, PeerLost, PeerUp, Session, Transmit, Unlink

LIMITS = Limits(heartbeat_s=1.0, heartbeats_missed=3, wait_s=30.0)
# Both ends keep to the protocol, so none of the other reasons (docs/protocol.md, 3.3) can be.
LOSSES = ("no connection for", "it restarted", "it gave up waiting")


def frames(parts: list[Buffer]) -> list[Frame]:
    data = b"".join(bytes(part) for part in parts)
    reader = FrameReader(1 << 20)
    reader.get_buffer()[: len(data)] = data
    reader.buffer_updated(len(data))
    return reader.frames()


class Link:
    """One connection: two queues, to the dialler and to the one dialled."""

    def __init__(self, dialler: End, other: End) -> None:
        self.queues: dict[End, deque[Frame]] = {dialler: deque(), other: deque()}
        self.dialler = dialler
        self.is_up = True
        self.greeted = False  # the Hello was read


class End:
    """A member, as wire/peers.py runs its session."""

    def __init__(self, name: str, epoch: int) -> None:
        self.identity = Identity("fjords", name, epoch)
        self.session: Session | None = None
        self.numbers = 0
        self.peer_seen = (0, 0)
        self.link: Link | None = None
        self.greeting: Link | None = None
        self.sent = 0
        self.received: list[int] = []
        self.heard: dict[tuple[int, int], list[str]] = {}  # by own session: whose message, and its number there
        self.losses = 0
        self.peer = ""

    def restart(self) -> None:
        """All is forgotten, and nobody told; the test's own counts go on."""
        self.identity = Identity("fjords", self.identity.member, self.identity.epoch + 100)
        self.session, self.numbers, self.peer_seen = None, 0, (0, 0)
        self.link = self.greeting = None

    def begin(self, now: float) -> Session:
        if self.session is None:
            self.session = self.make(now)
            self.numbers = self.session.number
        return self.session

    def make(self, now: float) -> Session:
        return Session(self.identity, self.peer, self.numbers + 1, LIMITS, now, self.peer_seen)

    def perform(self, session: Session, instructions: list[Instruction]) -> None:
        for one in instructions:
            if session is not self.session:
                return
            match one:
                case Transmit(parts):
                    if self.link is not None and self.link.is_up:
                        other = next(end for end in self.link.queues if end is not self)
                        self.link.queues[other].extend(frames(list(parts)))
                case Deliver(Check(queries)):
                    self.received.append(int(queries[0].local, 16))
                    self.heard.setdefault((self.identity.epoch, session.number), []).append(queries[0].initiator)
                case PeerUp() | PeerBack():
                    pass
                case Unlink():
                    self.drop()
                case PeerLost(error):
                    assert any(reason in error.message for reason in LOSSES), error.message
                    self.peer_seen = session.peer_seen
                    self.session = None
                    self.losses += 1
                    self.drop()
                    if self.greeting is not None:
                        self.greeting.is_up = False
                        self.greeting = None
                case other_:
                    raise AssertionError(other_)

    def drop(self) -> None:
        if self.link is not None:
            self.link.is_up = False
            self.link = None


class SessionOverCrossingLinks(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.now = 0.0
        self.ends = (End("bergen", 22), End("oslo", 11))
        self.ends[0].peer, self.ends[1].peer = "oslo", "bergen"
        self.links: list[Link] = []

    def other(self, end: End) -> End:
        return self.ends[0] if end is self.ends[1] else self.ends[1]

    @rule(side=st.integers(0, 1))
    def send(self, side: int) -> None:
        end = self.ends[side]
        session = end.begin(self.now)
        end.sent += 1
        whose = f"{end.identity.epoch} {session.number} {session.next_seq}"
        end.perform(session, session.send(Check((QueryId(whose, f"{end.sent:032x}"),))))

    @rule(side=st.integers(0, 1))
    def dial(self, side: int) -> None:
        end = self.ends[side]
        if end.session is None or end.session.is_linked or end.greeting is not None:
            return
        link = Link(end, self.other(end))
        self.links.append(link)
        end.greeting = link
        link.queues[self.other(end)].extend(frames(encode_message(end.session.hello())))

    @precondition(lambda self: self.links)
    @rule(which=st.integers(0, 100), side=st.integers(0, 1))
    def arrive(self, which: int, side: int) -> None:
        link, end = self.links[which % len(self.links)], self.ends[side]
        if not link.queues[end]:
            return
        frame = link.queues[end].popleft()
        if link.dialler is not end and not link.greeted:
            link.greeted = True
            hello = decode(frame)
            assert isinstance(hello, Hello)
            self.serve(end, link, hello)
        elif end.greeting is link:
            end.greeting = None
            welcome = decode(frame)
            assert isinstance(welcome, Welcome)
            if end.session is None or end.session.is_linked:
                link.is_up = False
                return
            end.link = link
            end.perform(end.session, end.session.welcomed(welcome, self.now))
        elif end.link is link and end.session is not None:
            end.perform(end.session, end.session.receive(frame, self.now))

    @precondition(lambda self: self.links)
    @rule(which=st.integers(0, 100), side=st.integers(0, 1))
    def arrive_twice(self, which: int, side: int) -> None:
        """A peer that cannot know what arrived sends it again: the number says that it is the same."""
        link, end = self.links[which % len(self.links)], self.ends[side]
        if end.link is link and link.queues[end] and link.queues[end][0].kind in NUMBERED:
            link.queues[end].appendleft(link.queues[end][0])
            self.arrive(which, side)
            self.arrive(which, side)

    @rule(side=st.integers(0, 1))
    def all_goes_well_for_a_while(self, side: int) -> None:
        """Else few walks would come far: both have something to say, one dials, and what is under way arrives."""
        for one in (0, 1):
            self.notice_a_dead_link(one)
            self.send(one)
        self.dial(side)
        for _ in range(4):
            for which in range(len(self.links)):
                for one in (0, 1):
                    self.arrive(which, one)

    @rule(side=st.integers(0, 1))
    def restart(self, side: int) -> None:
        """Its connections end with it, and what was under way to it is lost."""
        end = self.ends[side]
        for link in self.links:
            link.is_up = False
            link.queues[end].clear()
        end.restart()
        end.losses += 1

    def serve(self, end: End, link: Link, hello: Hello) -> None:
        session = end.session or end.make(self.now)
        if session.is_older(hello):
            link.is_up = False
            return
        if session.is_other(hello):
            end.perform(session, session.restarted(hello))
            session = end.session or end.make(self.now)
        if session.is_stale(hello):
            link.queues[self.other(end)].extend(frames(encode_message(session.welcome(1))))
            link.is_up = False
            return
        if not session.yields_to(hello, end.greeting is not None):
            link.is_up = False
            return
        session = end.begin(self.now)
        end.drop()
        if end.greeting is not None:
            end.greeting.is_up = False
            end.greeting = None
        end.link = link
        end.perform(session, session.accept(hello, 1, self.now))

    @precondition(lambda self: self.links)
    @rule(which=st.integers(0, 100), keep=st.integers(0, 3))
    def cut(self, which: int, keep: int) -> None:
        """What is under way is lost, but for a few frames that were already there."""
        link = self.links[which % len(self.links)]
        link.is_up = False
        for queue in link.queues.values():
            while len(queue) > keep:
                queue.pop()

    @rule(side=st.integers(0, 1))
    def notice_a_dead_link(self, side: int) -> None:
        end = self.ends[side]
        if end.link is not None and not end.link.is_up and not end.link.queues[end]:
            end.link = None
            if end.session is not None:
                end.session.unlinked(self.now)
        if end.greeting is not None and not end.greeting.is_up and not end.greeting.queues[end]:
            end.greeting = None

    @rule(seconds=st.sampled_from([0.5, 1.0, 4.0, 31.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        for end in self.ends:
            if end.session is not None:
                end.perform(end.session, end.session.tick(self.now))

    @invariant()
    def nothing_comes_twice_or_out_of_order(self) -> None:
        for end in self.ends:
            assert end.received == sorted(set(end.received))
            if end.losses == self.other(end).losses == 0:
                assert end.received == list(range(1, len(end.received) + 1))

    @invariant()
    def a_session_hears_one_session_from_its_first_message_on(self) -> None:
        for end in self.ends:
            for heard in end.heard.values():
                whose = heard[0].rpartition(" ")[0]
                assert heard == [f"{whose} {number}" for number in range(len(heard))]

    def teardown(self) -> None:
        """Once links hold, both ends link within a few steps, and what is sent then arrives."""
        if not hasattr(self, "ends"):
            return
        lossless = all(end.losses == 0 for end in self.ends)
        for link in self.links:
            link.is_up = False
            if lossless:
                # Old Hellos may still cost a session here; without them nothing may be lost.
                for queue in link.queues.values():
                    queue.clear()
        for turn in range(12):
            for side in (0, 1):
                self.notice_a_dead_link(side)
            if turn == 6:
                for side in (0, 1):
                    self.send(side)
            self.dial(turn % 2)
            for _ in range(40):
                for which in range(len(self.links)):
                    for side in (0, 1):
                        self.arrive(which, side)
            if turn > 6:
                self.now += 1.0
                for end in self.ends:
                    if end.session is not None:
                        end.perform(end.session, end.session.tick(self.now))
        for end in self.ends:
            assert end.session is not None
            assert end.session.is_linked
            assert end.received[-1:] == [self.other(end).sent]
            if lossless and all(one.losses == 0 for one in self.ends):
                assert end.received == list(range(1, self.other(end).sent + 1))
        if lossless:
            assert all(end.losses == 0 for end in self.ends)


TestSessionOverCrossingLinks = SessionOverCrossingLinks.TestCase
