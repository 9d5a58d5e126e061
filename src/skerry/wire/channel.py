"""One channel, as two state machines (docs/protocol.md, 4): credits, acks and resuming, in totals only (D9).

The sender keeps batches until they are acked; the receiver counts a batch once it is in its spool. Both outlive
their connections. Messages go in, messages and instructions come out; the shells are in wire/channels.py.
"""

from __future__ import annotations

from collections import deque
from enum import Enum

import msgspec

from skerry.model.errors import PeerError
from skerry.model.transitions import Machine, staying
from skerry.wire.messages import Batch, ChannelOk, ChannelPending, Grant, OpenChannel


class Phase(Enum):
    """A sender's: no link yet or any more; may send; done with, for one of the reasons in ChannelEnd."""

    OPENING = "opening"
    OPEN = "open"
    ENDED = "ended"


class Event(Enum):
    OPENED = "ChannelOk or ChannelPending came"
    SENT = "a batch is sent"
    GRANTED = "Grant came"
    UNLINKED = "the connection ended"
    ALL_ACKED = "the last batch is acked"
    STOPPED = "StopSending came"
    GONE = "ChannelGone came"


NEXT: dict[tuple[Phase, Event], Phase] = {
    (Phase.OPENING, Event.OPENED): Phase.OPEN,
    (Phase.OPEN, Event.SENT): Phase.OPEN,
    (Phase.OPEN, Event.UNLINKED): Phase.OPENING,
    # Totals may come late, and after the end nothing counts.
    **staying(Phase, Event.GRANTED),
    **staying((Phase.OPENING, Phase.ENDED), Event.UNLINKED),
    (Phase.ENDED, Event.OPENED): Phase.ENDED,
    **{(phase, event): Phase.ENDED for phase in Phase for event in (Event.ALL_ACKED, Event.STOPPED, Event.GONE)},
}


class ReceiverPhase(Enum):
    """A receiver's: `pending` while the query is not known here; `complete` with the last batch in the spool."""

    PENDING = "pending"
    RECEIVING = "receiving"
    PENDING_COMPLETE = "pending, complete"
    COMPLETE = "complete"


class ReceiverEvent(Enum):
    OPENED = "OpenChannel came"
    APPENDED = "a batch is in the spool"
    ALL_APPENDED = "the last batch is in the spool"
    PAUSED = "nothing more has come for now"
    CONSUMED = "the query has used rows"
    ACTIVATED = "the query became known"


_RECEIVING = (ReceiverPhase.PENDING, ReceiverPhase.RECEIVING)

# A batch after the last one has no row: it is the sender's mistake (`is_new`).
RECEIVER_NEXT: dict[tuple[ReceiverPhase, ReceiverEvent], ReceiverPhase] = {
    **staying(ReceiverPhase, ReceiverEvent.OPENED, ReceiverEvent.PAUSED, ReceiverEvent.CONSUMED),
    **staying(_RECEIVING, ReceiverEvent.APPENDED),
    (ReceiverPhase.PENDING, ReceiverEvent.ALL_APPENDED): ReceiverPhase.PENDING_COMPLETE,
    (ReceiverPhase.RECEIVING, ReceiverEvent.ALL_APPENDED): ReceiverPhase.COMPLETE,
    (ReceiverPhase.PENDING, ReceiverEvent.ACTIVATED): ReceiverPhase.RECEIVING,
    (ReceiverPhase.PENDING_COMPLETE, ReceiverEvent.ACTIVATED): ReceiverPhase.COMPLETE,
    **staying((ReceiverPhase.RECEIVING, ReceiverPhase.COMPLETE), ReceiverEvent.ACTIVATED),
}


class ChannelEnd(Enum):
    """Why a sender ended: all is acked; the receiver has enough; the query is over at the receiver."""

    FINISHED = "finished"
    STOPPED = "stopped"
    GONE = "gone"


class ReleaseBatches(msgspec.Struct, frozen=True):
    """The receiver has all batches below `upto`: they may be forgotten."""

    upto: int


class ChannelSender:
    """The sending end. Batches are numbered from 0; the last one is marked."""

    def __init__(self) -> None:
        self.end: ChannelEnd | None = None
        self.next_seq = 0  # the batch to send next on the present link
        self.sent_upto = 0  # the highest next_seq there has been
        self.acked_upto = 0
        self.credit_upto = 0
        self.sent_bytes = 0  # decoded bytes of all batches below next_seq
        self._last_upto: int | None = None  # next_seq once the last batch is sent
        # sent_bytes as it was before each batch of [acked_upto, sent_upto), to go back to it on resuming.
        self._bytes_before: deque[int] = deque()
        self._total_bytes = 0  # sent_bytes at sent_upto
        self._life = Machine("sending channel", "", NEXT, Phase.OPENING)

    @property
    def phase(self) -> Phase:
        return self._life.phase

    @property
    def remaining_credits(self) -> int:
        return max(0, self.credit_upto - self.sent_bytes)

    def opened(self, answer: ChannelOk | ChannelPending) -> None:
        """The receiver answered OpenChannel: go on from the batch it asks for."""
        if self.phase is not Phase.ENDED and not self.acked_upto <= answer.next_seq <= self.sent_upto:
            raise PeerError(
                f"the receiver asks for batch {answer.next_seq}, kept are {self.acked_upto} to {self.sent_upto}"
            )
        if not self._life.move(Event.OPENED):
            return
        self.next_seq = answer.next_seq
        self.sent_bytes = self._bytes_at(answer.next_seq)
        self.credit_upto = max(self.credit_upto, answer.credit_upto)

    def may_send(self, decoded_bytes: int) -> bool:
        """Any batch may go while credit is left (an overdraft of one batch), an empty one always."""
        return self.phase is Phase.OPEN and not self._last_sent and (decoded_bytes == 0 or self.remaining_credits > 0)

    @property
    def may_end(self) -> bool:
        """Whether the next batch may be the last: one that is sent again is what it was when it was sent first."""
        return self.next_seq == self.sent_upto or self.next_seq + 1 == self._last_upto

    @property
    def _last_sent(self) -> bool:
        return self._last_upto is not None and self.next_seq >= self._last_upto

    def send(self, rows: int, decoded_bytes: int, *, last: bool = False, lane: int = 0) -> Batch:
        """The header of batch `next_seq`, which is then counted as sent."""
        self._life.move(Event.SENT)
        assert self.may_send(decoded_bytes)
        seq = self.next_seq
        if seq == self.sent_upto:
            self._bytes_before.append(self._total_bytes)
            self._total_bytes += decoded_bytes
            self.sent_upto += 1
        self.next_seq += 1
        self.sent_bytes = self._bytes_at(self.next_seq)
        if last:
            self._last_upto = self.next_seq
        return Batch(seq, lane, last, rows, decoded_bytes, self.remaining_credits)

    def granted(self, grant: Grant) -> list[ReleaseBatches]:
        """Totals: one that is late or said twice changes nothing."""
        if grant.acked_upto > self.sent_upto:
            raise PeerError(f"batches up to {grant.acked_upto} are acked, {self.sent_upto} were sent")
        self._life.move(Event.GRANTED)
        self.credit_upto = max(self.credit_upto, grant.credit_upto)
        if grant.acked_upto <= self.acked_upto:
            return []
        for _ in range(grant.acked_upto - self.acked_upto):
            self._bytes_before.popleft()
        self.acked_upto = grant.acked_upto
        if self.acked_upto == self._last_upto:
            self._finish(Event.ALL_ACKED, ChannelEnd.FINISHED)
        return [ReleaseBatches(self.acked_upto)]

    def unlinked(self) -> None:
        """The connection is gone; `opened` resumes on a new one."""
        self._life.move(Event.UNLINKED)

    def stopped(self) -> None:
        """StopSending came."""
        self._finish(Event.STOPPED, ChannelEnd.STOPPED)

    def gone(self) -> None:
        """ChannelGone came."""
        self._finish(Event.GONE, ChannelEnd.GONE)

    def _finish(self, event: Event, end: ChannelEnd) -> None:
        if self._life.move(event):
            self.end = end

    def _bytes_at(self, seq: int) -> int:
        # Acked batches are forgotten: never go back below acked_upto.
        assert self.acked_upto <= seq <= self.sent_upto
        return self._total_bytes if seq == self.sent_upto else self._bytes_before[seq - self.acked_upto]


class ChannelReceiver:
    """The receiving end. `window_bytes` of credit are kept open beyond what was received, or consumed.

    While `pending` (the query is not known here yet) credit stays at the first window.
    """

    def __init__(
        self,
        window_bytes: int,
        batch_bytes_max: int,
        *,
        grant_on_consumption: bool = False,
        pending: bool = False,
    ) -> None:
        assert window_bytes > 0
        self.window_bytes = window_bytes
        self.batch_bytes_max = batch_bytes_max
        self.grant_on_consumption = grant_on_consumption
        self.next_seq = 0  # all batches below it are in the spool
        self.received_bytes = 0
        self.consumed_bytes = 0
        self.credit_upto = window_bytes  # as last told
        self._bytes_told = 0  # received_bytes when the sender was last told
        self._seq_told = 0
        first = ReceiverPhase.PENDING if pending else ReceiverPhase.RECEIVING
        self._life = Machine("receiving channel", "", RECEIVER_NEXT, first)

    @property
    def phase(self) -> ReceiverPhase:
        return self._life.phase

    @property
    def pending(self) -> bool:
        return self.phase in (ReceiverPhase.PENDING, ReceiverPhase.PENDING_COMPLETE)

    @property
    def is_complete(self) -> bool:
        """Whether the last batch is in the spool."""
        return self.phase in (ReceiverPhase.PENDING_COMPLETE, ReceiverPhase.COMPLETE)

    def open(self, opening: OpenChannel) -> list[ChannelOk | ChannelPending | Grant]:
        """A connection for this channel began: say where to go on."""
        if not 0 <= opening.resume_seq <= self.next_seq:
            raise PeerError(f"the sender keeps batches from {opening.resume_seq} on, {self.next_seq} is due")
        self._life.move(ReceiverEvent.OPENED)
        self.credit_upto = self._credit()
        answer = ChannelPending if self.pending else ChannelOk
        messages: list[ChannelOk | ChannelPending | Grant] = [answer(self.next_seq, self.credit_upto)]
        if self.next_seq > opening.resume_seq and not self.pending:
            messages.append(self._grant())
        return messages

    def is_new(self, header: Batch, body_bytes: int) -> bool:
        """Whether to append this batch (then call `appended`) or to drop a repeat; PeerError on anything else."""
        if header.seq < self.next_seq:
            return False
        is_taken = self._life.takes(ReceiverEvent.APPENDED)
        if header.seq > self.next_seq or not is_taken:
            due = str(self.next_seq) if is_taken else "none"
            raise PeerError(f"batch {header.seq} came where {due} was due")
        if header.decoded_bytes < body_bytes:
            raise PeerError(f"batch {header.seq} counts {header.decoded_bytes} bytes and has {body_bytes}")
        if header.decoded_bytes > self.batch_bytes_max:
            raise PeerError(f"batch {header.seq} of {header.decoded_bytes} bytes is over {self.batch_bytes_max}")
        if header.decoded_bytes > 0 and self.received_bytes >= self.credit_upto:
            raise PeerError(f"batch {header.seq} came without credit")
        return True

    def appended(self, header: Batch) -> list[Grant]:
        """The batch is in the spool: only now it may be acked (D11)."""
        assert header.seq == self.next_seq
        self._life.move(ReceiverEvent.ALL_APPENDED if header.last else ReceiverEvent.APPENDED)
        self.next_seq += 1
        self.received_bytes += header.decoded_bytes
        if self.pending:
            # Acked rows are nobody's but ours, and a restart before the query begins here would lose them unseen.
            return []
        if self.is_complete or (self.received_bytes - self._bytes_told) * 4 >= self.window_bytes:
            return [self._grant()]
        return self._grant_if_due()

    def idle(self) -> list[Grant]:
        """Nothing more has come for now. A sender whose spool is full of unacked batches waits for an ack."""
        self._life.move(ReceiverEvent.PAUSED)
        return [self._grant()] if self.next_seq > self._seq_told and not self.pending else []

    def consumed(self, decoded_bytes: int) -> list[Grant]:
        """The query has used so many bytes of what was appended."""
        self._life.move(ReceiverEvent.CONSUMED)
        self.consumed_bytes += decoded_bytes
        assert self.consumed_bytes <= self.received_bytes
        return self._grant_if_due()

    def activate(self, *, grant_on_consumption: bool) -> list[Grant]:
        """The query became known: credit follows it from now on."""
        if not self._life.move(ReceiverEvent.ACTIVATED):
            return []
        self.grant_on_consumption = grant_on_consumption
        return [self._grant()]

    def _credit(self) -> int:
        if self.pending:
            return max(self.credit_upto, self.window_bytes)
        used = self.consumed_bytes if self.grant_on_consumption else self.received_bytes
        return max(self.credit_upto, used + self.window_bytes)

    def _grant_if_due(self) -> list[Grant]:
        if not self.is_complete and (self._credit() - self.credit_upto) * 4 >= self.window_bytes:
            return [self._grant()]
        return []

    def _grant(self) -> Grant:
        self.credit_upto = self._credit()
        self._bytes_told = self.received_bytes
        self._seq_told = self.next_seq
        return Grant(self.next_seq, self.credit_upto)
