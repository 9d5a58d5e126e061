"""A member that asks two initiators about its queries, over links with delay: no live query ends, no orphan stays.

Time is in sixteenths of a period. Members tick four times a period, as the shell does. Where a message takes at most an
eighth of a period, two periods are enough for every orphan; on slow links it takes longer, and is as safe.
"""

from __future__ import annotations

from collections import deque

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from skerry.member.orphans import Orphans
from skerry.model.ids import QueryId
from skerry.wire.messages import Check, CheckResponse, Message

PERIOD = 16
TICK = 4
DELAY_MAX = 2
INITIATORS = ("bergen", "oslo")
WHO = st.sampled_from(INITIATORS)
DELAYS = st.integers(0, DELAY_MAX)


class OrphansMachine(RuleBasedStateMachine):
    """Tromso holds queries of bergen and oslo, who forget them in silence or end them with a word."""

    @initialize(slowness=st.sampled_from([1, 1, 12]))
    def start(self, slowness: int) -> None:
        self.slowness = slowness
        self.now = 0
        self.count = 0
        self.orphans = Orphans(PERIOD)
        self.known: set[QueryId] = set()  # at their initiators
        self.held: set[QueryId] = set()  # at tromso
        self.forgotten_at: dict[QueryId, int] = {}
        # In order, as a session delivers: when, and what.
        self.to: dict[str, deque[tuple[int, Message]]] = {name: deque() for name in INITIATORS}
        self.back: dict[str, deque[tuple[int, Message]]] = {name: deque() for name in INITIATORS}
        self.delay = 0

    # --- the initiators --------------------------------------------------------------------------
    @rule(initiator=WHO, comes_here=st.booleans())
    def a_query_begins(self, initiator: str, comes_here: bool) -> None:
        """It is known there before anyone else can hear of it."""
        self.count += 1
        query = QueryId(initiator, f"{self.count:032x}")
        self.known.add(query)
        if comes_here:
            self.hold(query)

    @precondition(lambda self: self.known)
    @rule(choice=st.randoms(use_true_random=False))
    def an_initiator_forgets(self, choice: object) -> None:
        """It gave up waiting for a receipt, or its Execute is on no way at all."""
        query = choice.choice(sorted(self.known))  # type: ignore[attr-defined]
        self.known.discard(query)
        self.forgotten_at[query] = self.now

    # --- tromso ----------------------------------------------------------------------------------
    @precondition(lambda self: self.known or self.forgotten_at)
    @rule(choice=st.randoms(use_true_random=False))
    def rows_or_an_execute_come(self, choice: object) -> None:
        """They are of any query there ever was, also late."""
        query = choice.choice(sorted(self.known | set(self.forgotten_at)))  # type: ignore[attr-defined]
        self.hold(query)

    @precondition(lambda self: self.held)
    @rule(choice=st.randoms(use_true_random=False))
    def a_query_ends_here(self, choice: object) -> None:
        query = choice.choice(sorted(self.held))  # type: ignore[attr-defined]
        self.let_go(query)

    @rule(initiator=WHO, other=WHO)
    def an_answer_that_nobody_asked_for(self, initiator: str, other: str) -> None:
        """About another's queries: whoever is not asked cannot end anything."""
        if initiator != other:
            claimed = [query for query in self.held if query.initiator == other]
            if not self.to[initiator] and not self.back[initiator]:
                assert self.orphans.answered(initiator, claimed) == []

    # --- time and links --------------------------------------------------------------------------
    @rule(units=st.integers(1, TICK), delay=DELAYS)
    def time_passes(self, units: int, delay: int) -> None:
        self.delay = delay
        for _ in range(units):
            self.step()

    @precondition(lambda self: self.held)
    @rule(delay=st.integers(1, DELAY_MAX), back=st.booleans())
    def a_question_or_an_answer_is_on_its_way(self, delay: int, back: bool) -> None:
        """Time stops there: what other rules do now, they do in between."""
        self.delay = delay
        for _ in range(3 * PERIOD):
            self.step()
            if any((self.back if back else self.to).values()):
                break

    @rule(delay=DELAYS)
    def three_periods_pass(self, delay: int) -> None:
        self.delay = delay
        for _ in range(3 * PERIOD):
            self.step()

    @rule(initiator=WHO)
    def an_initiator_is_lost(self, initiator: str) -> None:
        """With the session goes what was under way; its queries end here for that reason."""
        self.to[initiator].clear()
        self.back[initiator].clear()
        self.orphans.lost(initiator)
        for query in [query for query in self.held if query.initiator == initiator]:
            self.let_go(query)

    def step(self) -> None:
        self.now += 1
        self.deliver()
        if self.now % TICK == 0:
            for initiator, queries in self.orphans.due(self.now).items():
                assert not self.to[initiator], "one question at a time"
                assert not self.back[initiator], "one question at a time"
                assert set(queries) <= self.held
                self.put(self.to[initiator], Check(queries))
            self.deliver()
        for query in self.held - self.known if self.slowness == 1 else ():
            assert self.now - self.forgotten_at[query] <= 2 * PERIOD, f"{query} is still here after two periods"

    def put(self, link: deque[tuple[int, Message]], message: Message) -> None:
        at = self.now + self.delay * self.slowness
        link.append((max(at, link[-1][0]) if link else at, message))

    def deliver(self) -> None:
        for initiator in INITIATORS:
            while self.to[initiator] and self.to[initiator][0][0] <= self.now:
                _, check = self.to[initiator].popleft()
                assert isinstance(check, Check)
                inactive = tuple(query for query in check.suspected if query not in self.known)
                self.put(self.back[initiator], CheckResponse(inactive))
            while self.back[initiator] and self.back[initiator][0][0] <= self.now:
                _, response = self.back[initiator].popleft()
                assert isinstance(response, CheckResponse)
                for query in self.orphans.answered(initiator, response.inactive):
                    assert query not in self.known, f"{query} lives at {initiator}, and was ended"
                    assert query in self.held
                    self.let_go(query)

    def hold(self, query: QueryId) -> None:
        if query not in self.held and query in self.forgotten_at:
            self.forgotten_at[query] = self.now
        self.held.add(query)
        self.orphans.watch(query, self.now)  # said again it changes nothing

    def let_go(self, query: QueryId) -> None:
        self.held.discard(query)
        self.orphans.forget(query)

    # --- what always holds -----------------------------------------------------------------------
    @invariant()
    def what_is_watched_is_what_is_held(self) -> None:
        if hasattr(self, "orphans"):
            assert set(self.orphans.watched) == self.held


TestOrphans = OrphansMachine.TestCase
