"""One round: a query, one fault at a named moment, what the client got, what is left, and whether it works again."""

from __future__ import annotations

import itertools
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from chaos.cluster import LEFT_S, LIMITS, STOP_S, Asking, Broken, Cluster, wait_until
from chaos.points import BYSTANDER, POINTS, Point, Where
from chaos.shapes import ASKED_AT, SHAPES, SITES, Shape

NOTICED_S = 5.0  # a killed member is noticed by the clients that wait for it
GONE_S = 15.0  # a JVM whose member was killed notices that and ends
HOLD_S = 2.2  # longer than three heartbeats, shorter than wait_s
LONG_S = LIMITS["wait_s"] + 3.0
HANGS_S = 30.0
HANGS_ON_SPARK_S = 120.0  # the first query of a JVM takes its time on a busy machine
LONG_POINTS = ("half of the batches sent", "half of the pages")


@dataclass(frozen=True)
class Round:
    """`action` is kill, stop (shorter than wait_s) or long (a stop that outlasts it)."""

    action: str
    point: Point
    shape: Shape
    on_spark: bool = False  # the engine of bergen is Apache Spark

    @property
    def name(self) -> str:
        return f"{self.action}@{self.point.name}@{self.shape.name}{' on Spark' if self.on_spark else ''}"

    def victim(self, seed: int) -> str:
        """The same one when the round is run alone."""
        if self.point.where is Where.BYSTANDER:
            return next(site for site in SITES if site not in (ASKED_AT, *self.shape.others))
        others = ("bergen",) if self.on_spark else self.shape.others
        return ASKED_AT if self.point.where is Where.INITIATOR else Random(f"{seed} {self.name}").choice(others)

    def run(self, runner: Runner) -> Outcome:
        return runner.fault(self)


@dataclass
class Outcome:
    name: str
    victim: str
    result: str = ""
    seconds: float = 0.0
    violations: list[str] = field(default_factory=list)


def fault_rounds() -> list[Round]:
    """20 points × 4 shapes × kill and stop; points at which a stop outlasts the wait; members that are not needed."""
    rounds = [Round(action, point, shape) for point in POINTS for shape in SHAPES for action in ("kill", "stop")]
    rounds += [Round("long", point, shape) for point in POINTS if point.name in LONG_POINTS for shape in SHAPES]
    simple = [shape for shape in SHAPES if len(shape.others) < len(SITES) - 1]
    return rounds + [Round(action, BYSTANDER, shape) for shape in simple for action in ("kill", "stop")]


def spark_rounds() -> list[Round]:
    """A handful with a JVM and its Python workers: these must go with their member."""
    points, shapes = {point.name: point for point in POINTS}, {shape.name: shape for shape in SHAPES}
    chosen = (
        ("kill", "job running", "large"),
        ("stop", "job running", "join"),
        ("kill", "settling", "ordered"),
        ("stop", "half of the batches sent", "large"),
        ("kill", "half of the batches sent", "one site"),
        ("kill", "cancel sent", "large"),
    )
    return [Round(action, points[point], shapes[shape], on_spark=True) for action, point, shape in chosen]


class Runner:
    """Runs rounds on one standing cluster. A round that fails leaves the cluster whole for the next one."""

    def __init__(
        self, cluster: Cluster, answers: dict[str, list[tuple[object, ...]]], seed: int, hangs_s: float = HANGS_S
    ) -> None:
        self.cluster = cluster
        self.hangs_s = hangs_s  # a client that waits so long will wait for ever
        self._answers = answers
        self.seed = seed
        self._numbers = itertools.count(1)

    def ask(self, shape: Shape, policy: str = "wait", *, cancels: bool = False) -> Asking:
        return Asking(self.cluster, shape, next(self._numbers), policy, cancels=cancels)

    def warm_up(self) -> None:
        """Every shape once, without a fault: what fails here is no fault's doing."""
        for shape in SHAPES:
            asking = self.ask(shape)
            if not asking.wait(2 * self.hangs_s) or asking.rows is None or asking.answer() != self._answers[shape.name]:
                raise SystemExit(f"{shape.name}, before any fault: {self.said(asking)}; logs in {self.cluster.folder}")

    # --- the fault ---------------------------------------------------------------------------------
    def fault(self, each: Round) -> Outcome:
        victim = each.victim(self.seed)
        outcome = Outcome(each.name, victim)
        try:
            if each.point.name == "member starting":
                self._start_fault(each, outcome)
            else:
                self._fault(each, outcome)
            outcome.violations += self.after(each.shape, victim)
        except Broken as error:
            outcome.violations.append(str(error))
        self.mend()  # not after Ctrl-C
        return outcome

    def _fault(self, each: Round, outcome: Outcome) -> None:
        site = self.cluster.sites[outcome.victim]
        action = "stop" if each.action == "long" else each.action
        number = signal.SIGKILL if action == "kill" else signal.SIGSTOP
        if each.point.name == "idle":
            site.signal(number)
            wait_until(lambda: site.has_ended or site.is_stopped, "it is dead or stopped", NOTICED_S)
            asking = self.ask(each.shape)
        elif each.point.where is Where.BYSTANDER:
            asking = self.ask(each.shape)
            wait_until(lambda: asking.pages or asking.is_over, "the first page", self.hangs_s)
            site.signal(number)
        else:
            site.arm(each.point.hook, action, each.point.count)
            asking = self.ask(each.shape, cancels=each.point.cancels)
            wait_until(lambda: not site.armed.exists() or asking.is_over, "the point is reached", self.hangs_s)
            if asking.is_over:  # some points come after the client has all it wants
                wait_until(lambda: not site.armed.exists(), f"the point is reached ({self.said(asking)})", NOTICED_S)
        happened_at = time.monotonic()
        if action == "stop":
            wait_until(lambda: site.is_stopped, f"{site.name} is stopped", NOTICED_S)
            time.sleep(LONG_S if each.action == "long" else HOLD_S)
            site.signal(signal.SIGCONT)
        else:
            wait_until(lambda: site.has_ended, f"{site.name} is dead", NOTICED_S)
        self.judge(outcome, each.shape, asking, happened_at, self._allowed(each, outcome.victim))

    def _start_fault(self, each: Round, outcome: Outcome) -> None:
        """It dies, or hangs, while it starts: nobody listens at its address."""
        old = self.cluster.sites[outcome.victim]
        old.end()
        site = self.cluster.launch(outcome.victim, ("member starting", each.action))
        wait_until(lambda: site.has_ended or site.is_stopped, "the point is reached", self.hangs_s)
        happened_at = time.monotonic()
        asking = self.ask(each.shape)
        self.judge(outcome, each.shape, asking, happened_at, Allowed(False, True, [outcome.victim], NOTICED_S))
        if each.action == "stop":
            site.signal(signal.SIGCONT)
            site.wait_ready()

    def _allowed(self, each: Round, victim: str) -> Allowed:
        """Rows that the initiator has already, nobody can take from it; without its participants it cannot get more."""
        if each.action == "stop" or each.point.where is Where.BYSTANDER:
            return Allowed(True, False, [victim], self.hangs_s)
        if each.action == "long" and each.point.where is Where.INITIATOR:
            return Allowed(True, True, [victim, *each.shape.others], LONG_S + NOTICED_S)
        if each.action == "long":
            return Allowed(False, True, [victim], LONG_S + NOTICED_S)
        return Allowed(True, True, [victim], NOTICED_S)

    # --- the verdict -------------------------------------------------------------------------------
    def judge(self, outcome: Outcome, shape: Shape, asking: Asking, since: float, allowed: Allowed) -> None:
        if not asking.wait(max(0.0, since + self.hangs_s - time.monotonic())):
            outcome.result, outcome.seconds = "hangs", time.monotonic() - since
            outcome.violations.append(f"the client still waits {self.hangs_s:g} s after the fault")
            return
        outcome.result = self.said(asking)
        outcome.seconds = max(0.0, asking.ended_at - since)
        if asking.rows is not None and asking.answer() != self._answers[shape.name]:
            outcome.result = "wrong answer"
            outcome.violations.append(f"{len(asking.rows)} rows, not the right {len(self._answers[shape.name])}")
        if asking.rows is not None and not allowed.answer:
            outcome.violations.append("an answer, where an error was due")
        if asking.error is not None:
            outcome.violations += allowed.faults(asking.error.message, self.cluster)
        late = asking.rows is None and asking.error is not None and outcome.seconds > allowed.within_s
        if late:
            outcome.violations.append(
                f"its error came after {outcome.seconds:.1f} s, {allowed.within_s:g} were allowed"
            )

    def said(self, asking: Asking) -> str:
        if asking.error is not None:
            return f"error: {asking.error.message}"
        if asking.rows is not None:
            return "right answer"
        return "cancelled" if asking.is_over else "waits"

    # --- after it ----------------------------------------------------------------------------------
    def after(self, shape: Shape, victim: str, left_s: float = LEFT_S) -> list[str]:
        """Nothing is left, at nobody; the killed member comes back, and the same query gives the right answer."""
        violations = self.cluster.left(left_s)
        site = self.cluster.sites[victim]
        if site.has_ended:
            site.close()
            try:
                wait_until(lambda: not self.cluster.processes_of(victim), f"processes of {victim} are gone", GONE_S)
            except Broken:
                violations += [f"{victim} was killed, its {each} lives" for each in self.cluster.processes_of(victim)]
            self.cluster.start(victim)
        asking = self.ask(shape)
        if not asking.wait(self.hangs_s):
            violations.append("the query after it hangs")
        elif asking.rows is None or asking.answer() != self._answers[shape.name]:
            violations.append(f"the query after it: {self.said(asking)}")
        violations += self.cluster.left(left_s)
        return violations + [what for each in self.cluster.sites.values() for what in each.new_trouble()]

    def end(self) -> Outcome:
        """After all that, every member stops when it is told to, and leaves nothing behind."""
        outcome, began_at = Outcome("term@end@all", "all", "stopped"), time.monotonic()
        for site in self.cluster.sites.values():
            site.signal(signal.SIGTERM)
        for name, site in self.cluster.sites.items():
            try:
                site.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                outcome.violations.append(f"{name} has not stopped within {STOP_S:g} s")
                continue
            if site.process.returncode:
                outcome.violations.append(f"{name} ended with {site.process.returncode}")
            outcome.violations += [f"{name} left {path}" for path in site.temp.iterdir()]
            outcome.violations += [f"{name} left process {each}" for each in self.cluster.processes_of(name)]
            outcome.violations += site.new_trouble()
        outcome.seconds = time.monotonic() - began_at
        return outcome

    def mend(self) -> None:
        """All members run, and nothing is armed."""
        for name, site in list(self.cluster.sites.items()):
            site.armed.unlink(missing_ok=True)
            site.signal(signal.SIGCONT)
            if site.has_ended:
                site.close()
                self.cluster.start(name)
            elif not site.is_ready:
                site.wait_ready()


@dataclass(frozen=True)
class Allowed:
    answer: bool
    error: bool
    names: Sequence[str]  # sites of which an error has to name one
    within_s: float

    def faults(self, message: str, cluster: Cluster) -> list[str]:
        """An error says where; that of a client whose own member is gone says its address."""
        if not self.error:
            return [f"an error, where the right answer was due: {message}"]
        if any(f"site {name}" in message or cluster.net.address(name) in message for name in self.names):
            return []
        return [f"the error does not name {' or '.join(self.names)}: {message}"]
