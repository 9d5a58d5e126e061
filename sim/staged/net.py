"""Links between members: sessions deliver once and in order, or both ends hear that the other is lost.

Messages of commits are also lost, doubled and overtaken: their cores need no session.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from sim.loop import SimLoop, nobody
from skerry.member.staging import RowsHere
from skerry.wire.commit_messages import CommitMessage

if TYPE_CHECKING:
    from sim.staged.site import Site


class _Session:
    """Between two lives of two members."""

    def __init__(self) -> None:
        self.is_lost = False
        self.due: dict[str, float] = {}  # by receiver: when its last message arrives
        self.unaware: set[str] = set()  # ends that have not heard yet that it is lost


class Links:
    def __init__(self, loop: SimLoop, random: Random, sites: dict[str, Site]) -> None:
        self.loss = random.choice((0.0, 0.02, 0.1))
        self.twice = random.choice((0.0, 0.1))
        self._delay_s = random.choice((0.002, 0.02, 0.1))
        self._loop = loop
        self._random = random
        self._sites = sites
        self._sessions: dict[frozenset[str], _Session] = {}
        self._cut_until: dict[frozenset[str], float] = {}

    def send(self, sender: str, to: str, message: Any) -> None:
        if sender == to:
            self._later(0.0, to, lambda: self._arrive(sender, to, message))
            return
        assert not isinstance(message, RowsHere), "it never leaves"
        pair = frozenset((sender, to))
        session = self._sessions.get(pair)
        if session is None or (session.is_lost and sender not in session.unaware):
            if session is not None:
                self._hear(session, to, sender)
            session = self._sessions[pair] = _Session()
        if session.is_lost or not self._sites[to].is_up:
            if not session.is_lost:
                self.lose(sender, to)
            return
        if isinstance(message, CommitMessage):
            if self._random.random() < self.loss:
                return
            if self._random.random() < self.twice:
                self._carry(session, sender, to, message, self._random.uniform(0, 3.0))
        delay_s = self._random.expovariate(1 / self._delay_s)
        at = max(self._loop.now + delay_s, session.due.get(to, 0.0), self._cut_until.get(pair, 0.0))
        session.due[to] = at
        self._carry(session, sender, to, message, at - self._loop.now)

    def _carry(self, session: _Session, sender: str, to: str, message: Any, delay_s: float) -> None:
        again = msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=type(message))

        def arrive() -> None:
            if not session.is_lost:
                self._arrive(sender, to, again)

        self._later(delay_s, to, arrive)

    def _later(self, delay_s: float, to: str, happen: Callable[[], None]) -> None:
        """In the life that the receiver has now, or never."""
        site, life = self._sites[to], self._sites[to].life

        def if_alive() -> None:
            if site.is_up and site.life == life:
                happen()

        self._loop.call_later(delay_s, if_alive, context=nobody())

    def _arrive(self, sender: str, to: str, message: Any) -> None:
        site = self._sites[to]
        self._loop.call_soon(site.receive, sender, message, context=site.process.context.copy())

    # --- faults ---------------------------------------------------------------------------------------
    def cut(self, one: str, other: str, seconds: float) -> None:
        """What is sent meanwhile arrives later; those who noticed nothing lose nothing."""
        pair = frozenset((one, other))
        self._cut_until[pair] = max(self._cut_until.get(pair, 0.0), self._loop.now + seconds)

    def lose(self, one: str, other: str) -> None:
        """What is on its way is gone, and each end hears of it sooner or later."""
        session = self._sessions.get(frozenset((one, other)))
        if session is None or session.is_lost:
            return
        session.is_lost, session.unaware = True, {one, other}
        for name, peer in ((one, other), (other, one)):
            later_s = self._random.choice((0.0, 0.1, 1.0))
            self._loop.call_later(later_s, self._hear, session, name, peer, context=nobody())

    def lose_all(self, name: str) -> None:
        """Its life is over."""
        for other in sorted(self._sites):
            if other != name:
                self.lose(name, other)
                session = self._sessions.get(frozenset((name, other)))
                if session is not None:
                    session.unaware.discard(name)

    def _hear(self, session: _Session, name: str, peer: str) -> None:
        if name in session.unaware:
            session.unaware.discard(name)
            site = self._sites[name]
            if site.is_up:
                self._loop.call_soon(site.peer_lost, peer, context=site.process.context.copy())
