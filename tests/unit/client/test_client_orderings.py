"""Every ordering of execute, fetch, close and disconnect for one cursor, on the pure cores of both sides."""

from __future__ import annotations

import copy
from collections import Counter, deque
from itertools import count, permutations

import pytest

from skerry.client.cursor import CursorCore, PageSize, Phase
from skerry.member.cursors import NO_LEASE, Cursors, Lease
from skerry.model.errors import Cancelled, SiteError, SkerryError
from skerry.model.ids import QueryId
from skerry.model.limits import Limits
from skerry.model.results import Page, Schema
from skerry.wire.client_messages import (
    ClientAttach,
    ClientClose,
    ClientClosed,
    ClientExecute,
    ClientFetch,
    ClientPage,
    ClientResult,
)
from skerry.wire.messages import Message
from skerry.wire.values import failure_of
from tests.unit.client.orderings import LEASED, PLAIN

QUERY = QueryId("oslo", "0" * 32)
SIZE = PageSize(10, 1000)
SCHEMA = Schema((), b"")
PAGES = 4
RESUME = Lease(30.0)


class MemberSide:
    """What a member answers, decided by its own core of cursors; the rows are page numbers."""

    def __init__(self, lease: Lease = NO_LEASE) -> None:
        self.cursors = Cursors(Limits())
        self.lease = lease
        self.closed = 0

    def answer(self, owner: object, message: Message, now: float = 0.0) -> list[Message]:
        match message:
            case ClientExecute(request):
                try:
                    self.cursors.open(QUERY, owner, now, self.lease)
                except SkerryError as error:
                    return [ClientResult(request, error=failure_of(error))]
                return [ClientResult(request, SCHEMA, self._page(0, now))]
            case ClientFetch(request):
                if not self._is_open():
                    return [ClientPage(request, error=failure_of(Cancelled("not open")))]
                numbers = range(message.page_number, min(message.page_number + message.pages, PAGES))
                return [ClientPage(request, self._page(number, now)) for number in numbers]
            case ClientAttach(request):
                try:
                    self.cursors.attach(QUERY, owner)
                except SkerryError as error:
                    return [ClientResult(request, error=failure_of(error))]
                return [ClientResult(request, SCHEMA, self._page(message.page_number, now))]
            case ClientClose(request):
                self.cursors.close(QUERY, now)
                self.closed += 1
                return [ClientClosed(request)]
        raise AssertionError(message)

    def gone(self, owner: object, now: float = 0.0) -> None:
        for query in self.cursors.gone(owner, now, is_goodbye=False):
            self.cursors.close(query, now)

    def _is_open(self) -> bool:
        return len(self.cursors) == 1

    def _page(self, number: int, now: float) -> Page:
        is_last = number == PAGES - 1
        if is_last and not self.cursors.keeps(QUERY):
            self.cursors.close(QUERY, now)
        return Page(number, (), 1, is_last)


# --- the member's core alone: the tables ---------------------------------------------------------------
def test_the_tables_hold_every_ordering() -> None:
    assert set(PLAIN) == {"".join(each) for each in permutations("EFCD")}
    assert set(LEASED) == {"".join(each) for each in permutations("EACD")}


@pytest.mark.parametrize("ordering", [*PLAIN, *LEASED])
def test_what_the_member_answers(ordering: str) -> None:
    is_leased = "A" in ordering
    member, answers, owner = MemberSide(RESUME if is_leased else NO_LEASE), {}, "first"
    for event in ordering:
        match event:
            case "E":
                message: Message = ClientExecute(1, QUERY, "q", [], 0.0, 1, "")
            case "F":
                message = ClientFetch(2, QUERY, 1, 1)
            case "A":
                message = ClientAttach(2, QUERY, 0, 1)
            case "C":
                message = ClientClose(3, QUERY)
            case _:
                member.gone("first")
                owner = "second"
                continue
        (answer,) = member.answer("second" if event == "A" else owner, message)
        answers[event] = answer
    expected = LEASED[ordering] if is_leased else PLAIN[ordering]
    assert (outcome(answers["E"]), outcome(answers["A" if is_leased else "F"])) == expected
    assert isinstance(answers["C"], ClientClosed)
    assert len(member.cursors) == 0
    assert member.cursors.markers == 0 or ordering.index("C") > ordering.index("E")


def outcome(answer: Message) -> str:
    assert isinstance(answer, ClientResult | ClientPage)
    if answer.page is not None:
        return "page"
    assert answer.error is not None
    return {103: "cancelled"}[answer.error.code]


# --- both cores, and a wire on which everything may be under way -----------------------------------------
class Pair:
    """A client's cursor, a member, and what is on its way between them, in order in each direction."""

    def __init__(self, resumes: bool) -> None:
        self.core = CursorCore(QUERY, count(1), resumes=resumes)
        self.member = MemberSide(RESUME if resumes else NO_LEASE)
        self.up: deque[Message] = deque()
        self.down: deque[Message] = deque()
        self.connection = 1
        self.is_connected = True
        self.taken: list[int] = []
        self.done: Counter[str] = Counter()

    def actions(self) -> list[str]:
        """What may happen next: what the application and the network may do once or twice, and what arrives."""
        phase, possible = self.core.phase, []
        if phase is Phase.NEW:
            possible.append("execute")
        if self.core.is_live and phase is not Phase.NEW and self.done["fetch"] < 2 - self.core.resumes:
            possible.append("fetch")
        if phase is not Phase.NEW and not self.done["close"]:
            possible.append("close")
        if self.is_connected and self.done["disconnect"] < 1 + self.core.resumes and phase is not Phase.NEW:
            possible.append("disconnect")
        if not self.is_connected and self.core.resumes:
            possible.append("reconnect")
        possible += ["up"] if self.up else []
        possible += ["down"] if self.down else []
        return possible

    def do(self, action: str) -> None:
        self.done[action] += 1
        match action:
            case "execute":
                self.send([self.core.execute("q", [], size=SIZE, now=0.0)])
            case "fetch":
                self.take_and_ask(2)
            case "close":
                close = self.core.close()
                self.send([close] if close else [])
            case "disconnect":
                self.is_connected = False
                self.up.clear()
                self.down.clear()
                self.member.gone(self.connection)
                self.core.lost(SiteError("gone"))
            case "reconnect":
                self.is_connected = True
                self.connection += 1
                request = self.core.resume(0.0)
                self.send([request] if request else [])
            case "up":
                self.down += self.member.answer(self.connection, self.up.popleft())
            case "down":
                self.arrive(self.down.popleft())

    def send(self, messages: list[Message]) -> None:
        if self.is_connected:
            self.up += messages

    def arrive(self, message: Message) -> None:
        if isinstance(message, ClientResult | ClientPage):
            self.send(self.core.receive(message, 0.0))

    def take_and_ask(self, ahead: int) -> None:
        while self.core.ready and self.core.is_live:
            page = self.core.take()
            assert page is not None
            self.taken.append(page.number)
        self.send([*self.core.ask(ahead, SIZE)])

    def finish(self) -> None:
        """No more surprises: the application reads to the end."""
        for _ in range(100):
            if not self.is_connected and self.core.resumes:
                self.do("reconnect")
            while self.up or self.down:
                self.do("up" if self.up else "down")
            if self.core.phase in (Phase.NEW, Phase.CLOSED):
                return
            if self.core.ready:
                try:
                    page = self.core.take()
                except SkerryError:
                    return
                if page is None:
                    return
                self.taken.append(page.number)
            self.send([*self.core.ask(2, SIZE)])
            assert self.core.ready or self.up or self.down, f"{self.core!r} waits for nothing"
        raise AssertionError("no end")


@pytest.mark.parametrize("resumes", [False, True], ids=["plain", "resume_s"])
def test_every_interleaving_of_both_sides_ends_well(resumes: bool) -> None:
    """Nobody waits for ever, no page is lost or doubled, and the member keeps nothing that its client has done with."""
    seen, outcomes = 0, set()
    stories: list[tuple[tuple[str, ...], Pair]] = [((), Pair(resumes))]
    while stories:
        story, pair = stories.pop()
        ending = copy.deepcopy(pair)
        ending.finish()
        seen += 1
        check(story, ending)
        outcomes.add((ending.core.phase, tuple(ending.taken)))
        for action in pair.actions():
            following = copy.deepcopy(pair)
            following.do(action)
            stories.append(((*story, action), following))
    assert seen > 300
    whole = (Phase.ENDED, tuple(range(PAGES)))
    assert whole in outcomes
    assert ((Phase.FAILED, ()) in outcomes) is not resumes  # only without resume_s is a lost connection the end


def check(story: tuple[str, ...], pair: Pair) -> None:
    assert pair.taken == list(range(len(pair.taken))), story
    phase = pair.core.phase
    if phase is Phase.ENDED:
        assert len(pair.taken) == PAGES, story
    if phase is Phase.FAILED:
        assert "disconnect" in story, story
        assert not pair.core.resumes, story
    # With a lease a close that was lost with its connection leaves the query to it; the link says such closes again.
    was_lost = "disconnect" in story and pair.core.resumes
    if phase is not Phase.NEW and not was_lost:
        assert len(pair.member.cursors) == 0, story
