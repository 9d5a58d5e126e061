"""One channel's rules, step by step: credits with an overdraft, acks after the spool, resuming, and ends."""

from __future__ import annotations

import pytest

from skerry.model.errors import PeerError
from skerry.model.ids import ChannelId, QueryId
from skerry.wire.channel import ChannelEnd, ChannelReceiver, ChannelSender, Phase, ReleaseBatches
from skerry.wire.messages import Batch, ChannelOk, ChannelPending, Grant, OpenChannel

CHANNEL = ChannelId(QueryId("oslo", "0" * 32), 1, "bergen", "oslo")


def opening(resume_seq: int = 0) -> OpenChannel:
    return OpenChannel(CHANNEL, b"", resume_seq)


def batch(seq: int, decoded_bytes: int = 100, *, last: bool = False) -> Batch:
    return Batch(seq, 0, last, 1 if decoded_bytes else 0, decoded_bytes, 0)


def receiver(window: int = 400, **options: bool) -> ChannelReceiver:
    return ChannelReceiver(window, 10_000, **options)


def put(end: ChannelReceiver, header: Batch) -> list[Grant]:
    assert end.is_new(header, header.decoded_bytes)
    return end.appended(header)


# --- sender --------------------------------------------------------------------------------------
def test_nothing_is_sent_before_the_channel_is_open() -> None:
    sender = ChannelSender()
    assert not sender.may_send(0)
    sender.opened(ChannelPending(0, 100))
    assert sender.may_send(1)


def test_the_overdraft_is_one_batch() -> None:
    sender = ChannelSender()
    sender.opened(ChannelOk(0, 100))
    assert sender.send(5, 99) == Batch(0, 0, False, 5, 99, 1)
    assert sender.may_send(10_000)
    assert sender.send(5, 10_000).remaining_credits == 0
    assert not sender.may_send(1)
    assert sender.may_send(0)  # the end mark costs nothing
    sender.granted(Grant(0, 10_099))
    assert not sender.may_send(1)
    sender.granted(Grant(0, 10_100))
    assert sender.may_send(1)


def test_grants_are_totals() -> None:
    sender = ChannelSender()
    sender.opened(ChannelOk(0, 1000))
    for _ in range(4):
        sender.send(1, 10)
    assert sender.granted(Grant(3, 2000)) == [ReleaseBatches(3)]
    assert sender.granted(Grant(3, 2000)) == []
    assert sender.granted(Grant(1, 500)) == []
    assert (sender.acked_upto, sender.credit_upto) == (3, 2000)


def test_a_sender_resumes_where_the_receiver_says() -> None:
    sender = ChannelSender()
    sender.opened(ChannelOk(0, 1000))
    for size in (10, 20, 30, 40):
        sender.send(1, size)
    sender.granted(Grant(1, 1000))
    sender.unlinked()
    assert not sender.may_send(0)
    sender.opened(ChannelOk(2, 1000))
    assert (sender.next_seq, sender.sent_bytes, sender.sent_upto) == (2, 30, 4)
    assert sender.send(1, 30).seq == 2
    assert sender.sent_bytes == 60
    assert [sender.send(1, 40).seq, sender.send(1, 50).seq] == [3, 4]
    assert sender.sent_bytes == 150


@pytest.mark.parametrize("next_seq", [0, 4])
def test_a_receiver_cannot_ask_for_what_is_not_kept(next_seq: int) -> None:
    sender = ChannelSender()
    sender.opened(ChannelOk(0, 1000))
    for _ in range(3):
        sender.send(1, 10)
    sender.granted(Grant(1, 1000))
    sender.unlinked()
    with pytest.raises(PeerError, match=f"asks for batch {next_seq}"):
        sender.opened(ChannelOk(next_seq, 1000))


def test_acks_of_what_was_not_sent_are_refused() -> None:
    sender = ChannelSender()
    sender.opened(ChannelOk(0, 1000))
    with pytest.raises(PeerError, match="up to 1 are acked, 0 were sent"):
        sender.granted(Grant(1, 1000))


def test_the_end_is_the_ack_of_the_last_batch() -> None:
    sender = ChannelSender()
    sender.opened(ChannelOk(0, 1000))
    sender.send(1, 10)
    sender.send(0, 0, last=True)
    assert not sender.may_send(0)
    sender.granted(Grant(1, 1000))
    assert sender.phase is Phase.OPEN
    sender.unlinked()
    sender.opened(ChannelOk(1, 1000))
    assert sender.may_send(0)
    assert sender.send(0, 0, last=True).seq == 1
    sender.granted(Grant(2, 1000))
    assert (sender.phase, sender.end) == (Phase.ENDED, ChannelEnd.FINISHED)


def test_stop_and_gone_end_a_sender_for_good() -> None:
    for end, tell in ((ChannelEnd.STOPPED, ChannelSender.stopped), (ChannelEnd.GONE, ChannelSender.gone)):
        sender = ChannelSender()
        sender.opened(ChannelOk(0, 1000))
        tell(sender)
        sender.unlinked()
        sender.opened(ChannelOk(0, 1000))
        assert (sender.end, sender.may_send(0)) == (end, False)


# --- receiver ------------------------------------------------------------------------------------
def test_credit_is_granted_when_a_quarter_is_used() -> None:
    end = receiver(400)
    assert end.open(opening()) == [ChannelOk(0, 400)]
    assert put(end, batch(0, 60)) == []
    assert put(end, batch(1, 60)) == [Grant(2, 520)]


def test_what_came_is_acked_when_nothing_follows_however_little_it_is() -> None:
    end = receiver(400)
    end.open(opening())
    assert end.idle() == []
    assert put(end, batch(0, 10)) == []
    assert end.idle() == [Grant(1, 410)]
    assert end.idle() == []


def test_credit_can_follow_consumption_and_acks_do_not_wait_for_it() -> None:
    end = receiver(400, grant_on_consumption=True)
    assert put(end, batch(0, 200)) == [Grant(1, 400)]
    assert put(end, batch(1, 200)) == [Grant(2, 400)]
    with pytest.raises(PeerError, match="without credit"):
        end.is_new(batch(2), 100)
    assert end.consumed(99) == []
    assert end.consumed(101) == [Grant(2, 600)]
    assert put(end, batch(2)) == [Grant(3, 600)]


def test_a_pending_channel_keeps_to_its_first_credits() -> None:
    end = receiver(400, pending=True)
    assert end.open(opening()) == [ChannelPending(0, 400)]
    # Not acked: rows that a restart would lose unseen stay with their sender until the query has begun.
    assert put(end, batch(0, 400)) == []
    assert end.idle() == []
    with pytest.raises(PeerError, match="without credit"):
        end.is_new(batch(1), 100)
    assert end.open(opening()) == [ChannelPending(1, 400)]
    assert end.activate(grant_on_consumption=False) == [Grant(1, 800)]
    assert end.activate(grant_on_consumption=False) == []
    assert end.open(opening(1)) == [ChannelOk(1, 800)]


def test_a_pending_channel_may_turn_to_credit_on_consumption() -> None:
    end = receiver(400, pending=True)
    put(end, batch(0, 300))
    assert end.activate(grant_on_consumption=True) == [Grant(1, 400)]
    assert end.consumed(300) == [Grant(1, 700)]


def test_an_overdraft_of_one_batch_is_accepted() -> None:
    end = receiver(100, grant_on_consumption=True)
    put(end, batch(0, 99))
    assert put(end, batch(1, 5000)) == [Grant(2, 100)]
    with pytest.raises(PeerError, match="batch 2 came without credit"):
        end.is_new(batch(2, 1), 1)


def test_a_new_connection_learns_where_to_go_on() -> None:
    end = receiver(400)
    for seq in range(3):
        put(end, batch(seq, 10))
    assert end.open(opening(1)) == [ChannelOk(3, 430), Grant(3, 430)]
    with pytest.raises(PeerError, match="keeps batches from 4 on, 3 is due"):
        end.open(opening(4))


def test_repeats_are_dropped_and_gaps_refused() -> None:
    end = receiver()
    put(end, batch(0))
    assert not end.is_new(batch(0), 100)
    with pytest.raises(PeerError, match="batch 2 came where 1 was due"):
        end.is_new(batch(2), 100)


def test_nothing_follows_the_last_batch() -> None:
    end = receiver()
    assert put(end, batch(0, 0, last=True)) == [Grant(1, 400)]
    assert end.is_complete
    assert not end.is_new(batch(0, 0, last=True), 0)
    with pytest.raises(PeerError, match="batch 1 came where none was due"):
        end.is_new(batch(1), 100)


def test_sizes_must_be_honest_and_bounded() -> None:
    end = receiver()
    with pytest.raises(PeerError, match="counts 100 bytes and has 101"):
        end.is_new(batch(0), 101)
    with pytest.raises(PeerError, match="over 10000"):
        end.is_new(batch(0, 10_001), 5)
