"""One session's rules, step by step: handshakes, heartbeats, numbers, and when a peer is lost."""

from __future__ import annotations

import msgspec
import pytest

from skerry.model.errors import Overloaded, PeerError, VersionError
from skerry.model.ids import QueryId
from skerry.model.limits import Limits
from skerry.wire.frames import Buffer, Frame, FrameReader, decode, encode_frame, encode_message, encode_numbered
from skerry.wire.greeting import choose_version, make_hello
from skerry.wire.kinds import KIND_OF
from skerry.wire.messages import Cancel, Check, Failure, Goodbye, Hello, Ping, Pong, Refused, StopSending, Welcome
from skerry.wire.session import Deliver, Identity, Instruction, PeerBack, PeerLost, PeerUp, Session, Transmit, Unlink

LIMITS = Limits(heartbeat_s=1.0, heartbeats_missed=3, wait_s=30.0, control_unacked_messages=5)
OSLO = Identity("fjords", "oslo", 11, "1.0")
BERGEN = Identity("fjords", "bergen", 22, "1.0")


def frames(parts: list[Buffer]) -> list[Frame]:
    data = b"".join(bytes(part) for part in parts)
    reader = FrameReader(1 << 20)
    reader.get_buffer()[: len(data)] = data
    reader.buffer_updated(len(data))
    return reader.frames()


def sent(instructions: list[Instruction]) -> list[Frame]:
    return [frame for one in instructions if isinstance(one, Transmit) for frame in frames(list(one.parts))]


def check(number: int) -> Check:
    return Check((QueryId("oslo", f"{number:032x}"),))


def lost(instructions: list[Instruction]) -> str:
    (loss,) = (one for one in instructions if isinstance(one, PeerLost))
    return loss.error.message


def linked(now: float = 0.0) -> tuple[Session, Session]:
    """oslo dialled bergen."""
    oslo = Session(OSLO, "bergen", 1, LIMITS, now)
    bergen = Session(BERGEN, "oslo", 1, LIMITS, now)
    link(oslo, bergen, now)
    return oslo, bergen


def link(dialler: Session, other: Session, now: float) -> list[Instruction]:
    answer, *rest = other.accept(dialler.hello(), 1, now)
    assert isinstance(answer, Transmit)
    (frame,) = sent([answer])
    welcome = decode(frame)
    assert isinstance(welcome, Welcome)
    outcome = dialler.welcomed(welcome, now)
    for frame in sent(rest):
        dialler.receive(frame, now)
    return outcome


def test_both_ends_learn_of_each_other_once() -> None:
    oslo = Session(OSLO, "bergen", 1, LIMITS, 0)
    bergen = Session(BERGEN, "oslo", 1, LIMITS, 0)
    hello = oslo.hello()
    assert PeerUp(11) in bergen.accept(hello, 1, 0)
    assert oslo.welcomed(bergen.welcome(1), 0) == [PeerUp(22)]
    oslo.unlinked(1)
    bergen.unlinked(1)
    assert link(oslo, bergen, 2) == [PeerBack(0)]


def test_a_session_that_is_linked_again_says_when_it_last_heard_its_peer() -> None:
    oslo, bergen = linked()
    (ping,) = sent(bergen.tick(1.0))
    oslo.receive(ping, 1.5)
    oslo.unlinked(4.5)
    assert link(oslo, bergen, 9) == [PeerBack(1.5)]
    # A peer that noticed first dials over a link that still seems to live.
    assert PeerBack(9) in oslo.accept(bergen.hello(), 1, 12)


def test_messages_wait_for_the_link_and_arrive_in_order() -> None:
    oslo = Session(OSLO, "bergen", 1, LIMITS, 0)
    bergen = Session(BERGEN, "oslo", 1, LIMITS, 0)
    assert oslo.send(check(1)) == []
    outcome = link(oslo, bergen, 0) + oslo.send(check(2))
    delivered = [one for frame in sent(outcome) for one in bergen.receive(frame, 0)]
    assert delivered == [Deliver(check(1)), Deliver(check(2))]


def test_what_was_not_acked_is_resent_and_delivered_once() -> None:
    oslo, bergen = linked()
    first = sent(oslo.send(check(1)))
    second = sent(oslo.send(check(2)))
    assert bergen.receive(first[0], 0) == [Deliver(check(1))]
    oslo.unlinked(1)
    bergen.unlinked(1)
    resent = sent(link(oslo, bergen, 1))
    assert [bytes(frame.payload) for frame in resent] == [bytes(second[0].payload)]
    assert bergen.receive(first[0], 1) == []
    assert bergen.receive(resent[0], 1) == [Deliver(check(2))]


def test_heartbeats_ack() -> None:
    oslo, bergen = linked()
    bergen.receive(sent(oslo.send(check(1)))[0], 0)
    (ping,) = sent(bergen.tick(bergen.deadline))
    assert decode(ping) == Ping(1)
    (pong,) = sent(oslo.receive(ping, 1))
    assert decode(pong) == Pong(0)
    assert (oslo.acked_upto, oslo.next_seq) == (1, 1)


def test_many_messages_are_acked_before_the_next_heartbeat() -> None:
    limits = msgspec.structs.replace(LIMITS, control_unacked_messages=1000)
    oslo = Session(OSLO, "bergen", 1, limits, 0)
    bergen = Session(BERGEN, "oslo", 1, limits, 0)
    link(oslo, bergen, 0)
    answers = [one for n in range(300) for f in sent(oslo.send(check(n))) for one in bergen.receive(f, 0)]
    assert [decode(frame) for frame in sent(answers)] == [Pong(128), Pong(256)]


def test_silence_unlinks_and_the_end_of_waiting_loses_the_peer() -> None:
    oslo, _ = linked()
    now, instructions = 0.0, list[Instruction]()
    while not any(isinstance(one, Unlink) for one in instructions):
        now = oslo.deadline
        instructions = oslo.tick(now)
    assert now == 3.0
    assert oslo.deadline == 33.0
    assert oslo.tick(32.9) == []
    assert lost(oslo.tick(33.0)) == "site bergen is down: no connection for 30 s"
    assert oslo.send(check(1)) == []


def test_who_slept_itself_gives_the_peer_another_heartbeat() -> None:
    oslo, _ = linked()
    assert not any(isinstance(one, Unlink) for one in oslo.tick(20.0))
    assert any(isinstance(one, Unlink) for one in oslo.tick(21.0))


@pytest.mark.parametrize(
    ("change", "reason"), [({"epoch": 12}, "it restarted"), ({"session": 2}, "it gave up waiting")]
)
def test_a_peer_that_restarted_or_forgot_is_lost(change: dict[str, int], reason: str) -> None:
    oslo, bergen = linked()
    hello = msgspec.structs.replace(oslo.hello(), **change)
    assert bergen.is_other(hello)
    assert lost(bergen.restarted(hello)) == f"site oslo is down: {reason}"
    welcome = msgspec.structs.replace(oslo.welcome(1), **change)
    bergen2 = linked()[1]
    assert lost(bergen2.welcomed(welcome, 0)) == f"site oslo is down: {reason}"


def test_a_dialler_learns_that_its_session_was_forgotten() -> None:
    oslo, _ = linked()
    bergen = Session(BERGEN, "oslo", 2, LIMITS, 40)
    assert bergen.is_stale(oslo.hello())
    assert lost(oslo.welcomed(bergen.welcome(1), 40)) == "site bergen is down: it gave up waiting"
    fresh = Session(OSLO, "bergen", 2, LIMITS, 40)
    assert not bergen.is_stale(fresh.hello())


def test_a_hello_that_was_long_on_its_way_is_told_by_its_numbers() -> None:
    _, bergen = linked()
    later = Session(BERGEN, "oslo", 2, LIMITS, 40, peer_seen=(11, 3))
    hello = make_hello(OSLO, "control")
    for session, number, epoch, is_older in (
        (later, 2, 11, True),
        (later, 3, 11, False),
        (later, 1, 12, False),
        (later, 9, 10, False),  # a clock that was set back, as far as anyone can tell
        (bergen, 9, 10, True),  # but not while the later one is there
    ):
        assert session.is_older(msgspec.structs.replace(hello, session=number, epoch=epoch)) == is_older


def test_of_two_dials_at_once_the_lesser_name_s_wins() -> None:
    bergen = Session(BERGEN, "oslo", 1, LIMITS, 0)
    oslo = Session(OSLO, "bergen", 1, LIMITS, 0)
    assert not bergen.yields_to(oslo.hello(), is_greeting=True)
    assert oslo.yields_to(bergen.hello(), is_greeting=True)
    assert bergen.yields_to(oslo.hello(), is_greeting=False)


def test_an_older_hello_does_not_replace_a_link_and_a_newer_one_does() -> None:
    oslo = Session(OSLO, "bergen", 1, LIMITS, 0)
    bergen = Session(BERGEN, "oslo", 1, LIMITS, 0)
    late = oslo.hello()
    link(bergen, oslo, 0)
    assert not bergen.yields_to(late, is_greeting=False)
    oslo.unlinked(1)  # bergen has not noticed yet
    assert bergen.yields_to(oslo.hello(), is_greeting=False)


def test_goodbye_and_refusals_lose_the_peer_at_once() -> None:
    oslo, bergen = linked()
    (frame,) = frames(encode_message(Goodbye()))
    assert lost(oslo.receive(frame, 0)) == "site bergen is stopping"
    (frame,) = frames(encode_message(Refused(Failure(200, "no sense"))))
    assert lost(bergen.receive(frame, 0)) == "site oslo cannot be used: no sense"


def test_a_refused_dial_loses_the_peer_at_once() -> None:
    oslo, _ = linked()
    oslo.unlinked(5)
    assert lost(oslo.refused("127.0.0.1:7102")) == "site bergen is down: connection refused at 127.0.0.1:7102"
    assert oslo.refused("127.0.0.1:7102") == []  # once per loss


def test_too_many_waiting_messages_lose_the_peer() -> None:
    oslo, _ = linked()
    for number in range(5):
        assert len(oslo.send(check(number))) == 1
    assert lost(oslo.send(check(6))) == "site bergen is down: 6 control messages are waiting for it"


def test_a_message_that_fits_in_no_frame_costs_only_its_sender() -> None:
    oslo = Session(OSLO, "bergen", 1, msgspec.structs.replace(LIMITS, frame_bytes=20), 0)
    with pytest.raises(Overloaded, match=r"Check: a frame of \d+ bytes is over the limit of 20"):
        oslo.send(check(1))
    assert (oslo.next_seq, oslo.is_over) == (0, False)


@pytest.mark.parametrize(
    "parts",
    [
        encode_numbered(1, check(1)),  # a gap
        encode_message(Ping(1)),  # acks what was never sent
        encode_message(Pong(99)),
        encode_message(make_hello(OSLO, "data")),
        encode_message(StopSending()),
        encode_frame(KIND_OF[Check], b"\x00" * 8 + b"\xc1"),
    ],
)
def test_what_breaks_the_protocol_is_a_peer_error(parts: list[Buffer]) -> None:
    _, bergen = linked()
    (frame,) = frames(parts)
    with pytest.raises(PeerError):
        bergen.receive(frame, 0)


def test_a_welcome_from_somebody_else_loses_the_peer() -> None:
    oslo = Session(OSLO, "bergen", 1, LIMITS, 0)
    welcome = Welcome(1, "fjords", "tromso", 5)
    assert lost(oslo.welcomed(welcome, 0)) == "site bergen is down: its address answers as 'tromso' of cluster 'fjords'"


def test_acks_of_what_was_never_sent_lose_the_peer() -> None:
    oslo, bergen = linked()
    oslo.unlinked(0)
    bergen.unlinked(0)
    hello = msgspec.structs.replace(oslo.hello(), received_upto=9)
    assert "up to 9 are acked, 0 were sent" in lost(bergen.accept(hello, 1, 0))


def test_versions_and_clusters_must_match() -> None:
    hello = make_hello(BERGEN, "data")
    assert choose_version(hello, OSLO) == 3
    assert choose_version(msgspec.structs.replace(hello, versions=(9, 1, 2)), OSLO) == 2
    with pytest.raises(VersionError, match="bergen speaks protocol versions 7, 9 and oslo 2, 3"):
        choose_version(msgspec.structs.replace(hello, versions=(7, 9)), OSLO)
    nameless = msgspec.structs.replace(hello, cluster="")
    assert choose_version(msgspec.structs.replace(nameless, kind="client", versions=(1,)), OSLO) == 1
    with pytest.raises(PeerError, match="cluster 'fjords', not of ''"):
        choose_version(nameless, OSLO)
    with pytest.raises(PeerError, match="cluster 'fjords', not of 'lakes'"):
        choose_version(msgspec.structs.replace(hello, cluster="lakes"), OSLO)


def test_members_whose_plans_have_another_form_are_told_so() -> None:
    hello = Session(BERGEN, "oslo", 1, LIMITS, 0).hello()
    assert choose_version(hello, OSLO) == 5
    with pytest.raises(VersionError, match="bergen speaks protocol versions 1, 4 and oslo 5"):
        choose_version(msgspec.structs.replace(hello, versions=(1, 4)), OSLO)


def test_hello_fits_before_login() -> None:
    hello = Hello("control", (1,), "c" * 100, "m" * 100, 2**62, "t" * 100, 2**62, "r" * 50, 2**31, 2**62, 2**31, 2**31)
    assert sum(len(bytes(part)) for part in encode_message(hello)) < Limits().frame_bytes_before_login


def test_cancel_is_numbered() -> None:
    oslo, bergen = linked()
    cancel = Cancel(QueryId("oslo", "0" * 32), "oslo", Failure(103, "asked"))
    (frame,) = sent(oslo.send(cancel))
    assert bergen.receive(frame, 0) == [Deliver(cancel)]
