"""Rounds in which members lose each other: partitions in both directions or one, and connections reset every second."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from chaos.cluster import LIMITS, Asking, Broken, wait_until
from chaos.rounds import HANGS_S, NOTICED_S, Allowed, Outcome, Runner
from chaos.shapes import ASKED_AT, SHAPES, Shape

SHORT_S = 3.0  # three heartbeats are missed, wait_s is not over
LONG_S = LIMITS["wait_s"] + 4.0
MBIT = {"one site": 2.0, "join": 2.0, "ordered": 2.0, "large": 8.0}  # so that a query takes some seconds
CRAWL_MBIT = 0.5  # so that it outlasts a minute
# A connection whose other end went while nothing passed is found by the system's keep-alive, after about 25 s.
LEFT_S = 40.0

_SHAPES = {shape.name: shape for shape in SHAPES}


@dataclass(frozen=True)
class LinkRound:
    """`cuts` are directions; none means that all of `away`'s links are cut, to its clients as well."""

    point: str
    shape: Shape
    policy: str
    seconds: float
    cuts: tuple[tuple[str, str], ...]
    away: str
    gives_answer: bool
    in_tenth: bool = False

    @property
    def name(self) -> str:
        return f"{self.policy}@{self.point}@{self.shape.name}"

    def victim(self, _seed: int) -> str:
        return self.away

    def run(self, runner: Runner) -> Outcome:
        outcome = Outcome(self.name, self.away)
        try:
            with _slowed(runner, MBIT[self.shape.name], *self.shape.others):
                asking = runner.ask(self.shape, self.policy)
                _wait_begun(runner, asking, self.away)
                happened_at = time.monotonic()
                self._cut(runner)
                try:
                    asking.wait(self.seconds)
                finally:
                    self._heal(runner)
            within_s = NOTICED_S + (0.0 if self.policy == "fail" else LIMITS["wait_s"])
            names = sorted({self.away, *(end for cut in self.cuts for end in cut if end != ASKED_AT)})
            allowed = Allowed(self.gives_answer, not self.gives_answer, names, within_s)
            runner.judge(outcome, self.shape, asking, happened_at, allowed)
            outcome.violations += runner.after(self.shape, self.away, LEFT_S)
        except Broken as error:
            outcome.violations.append(str(error))
        runner.mend()
        return outcome

    def _cut(self, runner: Runner) -> None:
        for sender, receiver in self.cuts:
            runner.cluster.net.cut(sender, receiver)
        if not self.cuts:
            runner.cluster.net.isolate(self.away)

    def _heal(self, runner: Runner) -> None:
        for sender, receiver in self.cuts:
            runner.cluster.net.heal(sender, receiver)
        if not self.cuts:
            runner.cluster.net.rejoin(self.away)


@dataclass(frozen=True)
class ResetRound:
    """All TCP connections between two members are killed once a second (`ss -K`), while a query crawls over them."""

    seconds: float
    shape: Shape = _SHAPES["large"]
    in_tenth: bool = True

    @property
    def name(self) -> str:
        return f"wait@reset every second for {self.seconds:g} s@{self.shape.name}"

    def victim(self, _seed: int) -> str:
        return "bergen"

    def run(self, runner: Runner) -> Outcome:
        outcome = Outcome(self.name, "bergen")
        resets = cuts = 0
        try:
            with _slowed(runner, CRAWL_MBIT, "bergen"):
                asking = runner.ask(self.shape)
                _wait_begun(runner, asking, "bergen")
                began_at = time.monotonic()
                while time.monotonic() < began_at + self.seconds and not asking.wait(1.0):
                    ends = (ASKED_AT, "bergen") if cuts % 2 else ("bergen", ASKED_AT)
                    resets, cuts = resets + runner.cluster.net.reset(*ends), cuts + 1
            if asking.is_over:
                raise Broken(f"the query was over after {cuts} cuts: {runner.said(asking)}")
            allowed = Allowed(True, False, ["bergen"], HANGS_S)
            runner.judge(outcome, self.shape, asking, time.monotonic(), allowed)
            outcome.result += f", {resets} connections reset in {cuts} cuts"
            if resets < cuts:
                outcome.violations.append(f"only {resets} connections were there to be reset in {cuts} cuts")
            outcome.violations += runner.after(self.shape, "bergen", LEFT_S)
        except Broken as error:
            outcome.violations.append(str(error))
        runner.mend()
        return outcome


@contextmanager
def _slowed(runner: Runner, mbit: float, *names: str) -> Iterator[None]:
    """What these members send goes out slowly, so that a query lasts until something happens to it."""
    try:
        for name in names:
            runner.cluster.net.slow(name, mbit)
        yield
    finally:
        for name in names:
            runner.cluster.net.full_speed(name)


def _wait_begun(runner: Runner, asking: Asking, name: str) -> None:
    """The query runs there, and the first of its rows are on their way."""
    site = runner.cluster.sites[name]

    def begun() -> bool:
        if asking.is_over:
            raise Broken(f"the query was over before its link was cut: {runner.said(asking)}")
        log = site.log
        ids = re.findall(r"query (\S+): begun here", log)
        return bool(ids) and f"query {ids[-1]}: ended here" not in log

    wait_until(begun, "the query has begun", HANGS_S)
    asking.wait(0.7)


def link_rounds(reset_s: float) -> list[LinkRound | ResetRound]:
    there, back = ((ASKED_AT, "bergen"),), (("bergen", ASKED_AT),)
    between = (("bergen", "tromso"), ("tromso", "bergen"))
    rounds: list[LinkRound | ResetRound] = [ResetRound(reset_s)]
    for shape in SHAPES:
        in_tenth = shape.name == "large"
        rounds += [
            LinkRound("partition", shape, "wait", SHORT_S, there + back, "bergen", True, in_tenth),
            LinkRound("long partition", shape, "wait", LONG_S, there + back, "bergen", False),
            LinkRound("long partition", shape, "buffer", LONG_S, there + back, "bergen", True),
            LinkRound("partition", shape, "fail", SHORT_S, there + back, "bergen", False, shape.name == "join"),
            LinkRound("one way, to the site", shape, "wait", SHORT_S, there, "bergen", True),
            LinkRound("one way, from the site", shape, "wait", SHORT_S, back, "bergen", True),
        ]
    large, join, ordered = _SHAPES["large"], _SHAPES["join"], _SHAPES["ordered"]
    rounds += [
        LinkRound("long one way, to the site", large, "wait", LONG_S, there, "bergen", False),
        LinkRound("long one way, from the site", large, "wait", LONG_S, back, "bergen", False),
        LinkRound("alone", ordered, "wait", SHORT_S, (), "tromso", True),
        LinkRound("long alone", ordered, "wait", LONG_S, (), "tromso", False),
        LinkRound("long alone", ordered, "buffer", LONG_S, (), "tromso", True),
        # Two participants that need not talk to each other, or only when the join runs at one of them.
        LinkRound("participants apart", ordered, "wait", LONG_S, between, "bergen", True),
        LinkRound("participants apart", join, "wait", SHORT_S, between, "bergen", True),
    ]
    return rounds
