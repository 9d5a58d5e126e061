"""Both ends of a channel over a link that delays, cuts and repeats: each batch once, in order, never without credit."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from skerry.model.errors import PeerError
from skerry.model.ids import ChannelId, QueryId
from skerry.wire.channel import ChannelEnd, ChannelReceiver, ChannelSender, Phase
from skerry.wire.messages import Batch, ChannelOk, ChannelPending, Grant, OpenChannel

CHANNEL = ChannelId(QueryId("oslo", "0" * 32), 1, "bergen", "oslo")
WINDOW = 100
LARGEST = 300


class ChannelOverCuttingLink(RuleBasedStateMachine):
    """The link is two queues. A cut empties both, whatever was under way."""

    @initialize(consumption=st.booleans(), pending=st.booleans())
    def begin(self, consumption: bool, pending: bool) -> None:
        self.sender = ChannelSender()
        self.receiver = ChannelReceiver(WINDOW, LARGEST, grant_on_consumption=consumption, pending=pending)
        self.consumption = consumption
        self.sizes: list[int] = []  # of the batches in the sending spool
        self.released = 0
        self.finished = False
        self.spool: list[int] = []  # seqs in the receiving spool
        self.consumed = 0
        self.up: deque[OpenChannel | Batch] = deque()
        self.down: deque[ChannelOk | ChannelPending | Grant] = deque()
        self.linked = False
        self.grants: list[Grant] = []
        self.told = 0  # the most credit that the sender has heard of

    # --- the spools --------------------------------------------------------------------------
    @precondition(lambda self: not self.finished)
    @rule(size=st.sampled_from([WINDOW // 2, WINDOW]) | st.integers(1, LARGEST))
    def produce(self, size: int) -> None:
        self.sizes.append(size)

    @precondition(lambda self: len(self.sizes) > 2)
    @rule()
    def finish(self) -> None:
        self.finished = True

    @precondition(lambda self: self.consumed < len([seq for seq in self.spool if seq < len(self.sizes)]))
    @rule()
    def consume(self) -> None:
        self.tell(self.receiver.consumed(self.sizes[self.consumed]))
        self.consumed += 1

    @rule()
    def activate(self) -> None:
        self.tell(self.receiver.activate(grant_on_consumption=self.consumption))

    def tell(self, grants: list[Grant]) -> None:
        self.grants += grants
        if self.linked:
            self.down.extend(grants)

    # --- the link ----------------------------------------------------------------------------
    @precondition(lambda self: not self.linked and self.sender.phase is not Phase.ENDED)
    @rule()
    def dial(self) -> None:
        self.linked = True
        self.up.append(OpenChannel(CHANNEL, b"", self.sender.acked_upto))

    @rule()
    def all_goes_well_for_a_while(self) -> None:
        """Else few walks would come far: what is there is sent, and arrives."""
        if not self.linked and self.sender.phase is not Phase.ENDED:
            self.dial()
        for _ in range(4):
            while self.up:
                self.arrive_up()
            while self.down:
                self.arrive_down()
            self.send()

    @precondition(lambda self: self.linked)
    @rule()
    def cut(self) -> None:
        self.linked = False
        self.up.clear()
        self.down.clear()
        self.sender.unlinked()

    @precondition(lambda self: self.linked and self.grants)
    @rule(which=st.integers(0, 1000))
    def repeat_an_old_grant(self, which: int) -> None:
        self.down.append(self.grants[which % len(self.grants)])

    # --- the ends ----------------------------------------------------------------------------
    @rule()
    def send(self) -> None:
        seq = self.sender.next_seq
        if seq < len(self.sizes):
            if self.sender.may_send(self.sizes[seq]):
                assert self.sender.remaining_credits > 0
                self.up.append(self.sender.send(1, self.sizes[seq]))
        elif self.finished and self.sender.may_send(0):
            self.up.append(self.sender.send(0, 0, last=True))

    @precondition(lambda self: self.up)
    @rule()
    def arrive_up(self) -> None:
        message = self.up.popleft()
        if isinstance(message, OpenChannel):
            answers = self.receiver.open(message)
            self.grants += [one for one in answers if isinstance(one, Grant)]
            self.down.extend(answers)
        elif self.receiver.is_new(message, message.decoded_bytes):
            self.spool.append(message.seq)
            self.tell(self.receiver.appended(message))

    @precondition(lambda self: self.up and isinstance(self.up[0], Batch))
    @rule()
    def arrive_up_twice(self) -> None:
        message = self.up[0]
        assert isinstance(message, Batch)
        self.arrive_up()
        assert not self.receiver.is_new(message, message.decoded_bytes)

    @precondition(lambda self: self.down)
    @rule()
    def arrive_down(self) -> None:
        message = self.down.popleft()
        self.told = max(self.told, message.credit_upto)
        if isinstance(message, Grant):
            # A grant that is repeated before this link's answer is of an older link: totals make it harmless.
            for release in self.sender.granted(message):
                assert release.upto > self.released
                self.released = release.upto
        else:
            self.sender.opened(message)

    # --- what always holds -------------------------------------------------------------------
    @invariant()
    def each_batch_once_and_in_order(self) -> None:
        assert self.spool == list(range(len(self.spool)))

    @invariant()
    def nothing_is_released_before_it_is_in_the_spool(self) -> None:
        assert self.released <= self.receiver.next_seq == len(self.spool)
        assert self.sender.acked_upto <= self.receiver.next_seq

    @invariant()
    def the_receiver_is_bounded_by_its_credit_and_one_batch(self) -> None:
        assert self.receiver.received_bytes <= self.receiver.credit_upto + LARGEST
        if self.consumption:
            held = self.receiver.received_bytes - self.receiver.consumed_bytes
            assert held <= WINDOW + LARGEST

    @invariant()
    def a_batch_without_credit_is_refused(self) -> None:
        receiver = self.receiver
        if receiver.received_bytes >= receiver.credit_upto and not receiver.is_complete:
            with pytest.raises(PeerError, match="without credit"):
                receiver.is_new(Batch(receiver.next_seq, 0, False, 1, 1, 0), 1)

    @invariant()
    def the_sender_knows_the_credit_that_was_given_and_no_more(self) -> None:
        assert self.sender.credit_upto == self.told <= self.receiver.credit_upto

    def progress(self) -> tuple[object, ...]:
        sender = self.sender
        return sender.phase, sender.next_seq, sender.acked_upto, sender.credit_upto, len(self.spool), self.consumed

    def teardown(self) -> None:
        """Once the link holds and all is consumed, everything arrives and the sender ends."""
        if not hasattr(self, "sender"):
            return
        self.finish()
        self.activate()
        if self.linked:
            self.cut()
        while self.sender.phase is not Phase.ENDED:
            before = self.progress()
            if not self.linked:
                self.dial()
            self.send()
            while self.up:
                self.arrive_up()
            while self.down:
                self.arrive_down()
            while self.consumed < min(len(self.spool), len(self.sizes)):
                self.consume()
            while self.down:
                self.arrive_down()
            assert before != self.progress(), "stuck"
        assert self.sender.end is ChannelEnd.FINISHED
        assert len(self.spool) == len(self.sizes) + 1
        assert self.receiver.is_complete


if settings.default.max_examples < 400:
    ChannelOverCuttingLink.TestCase.settings = settings(max_examples=400)
TestChannelOverCuttingLink = ChannelOverCuttingLink.TestCase
