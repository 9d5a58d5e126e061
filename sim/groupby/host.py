"""A member of the simulated group-by: the shell around the cores that it has, and what it does by instruction."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sim.groupby.real import RealState
from sim.groupby.rows import Group, SimRows, SimState
from sim.loop import Violation
from skerry.exchange.groupby.contract import (
    ROWS,
    Conclude,
    Deliver,
    DeliverShare,
    Forget,
    GiveOn,
    Instruction,
    LetGo,
    Send,
)
from skerry.exchange.groupby.manager import ManagerCore, ManagerPhase
from skerry.exchange.groupby.router import RouterCore, RouterPhase
from skerry.exchange.groupby.strangers import answer
from skerry.exchange.groupby.worker import WorkerCore, WorkerPhase
from skerry.model.errors import SkerryError
from skerry.wire.groupby_messages import (
    End,
    FromManager,
    GroupByMessage,
    Recruit,
    Recruited,
    Redirect,
    ToManager,
)

if TYPE_CHECKING:
    from sim.groupby.world import World

Cores = ManagerCore | WorkerCore | RouterCore


class Host:
    def __init__(self, name: str, world: World) -> None:
        self.name = name
        self.world = world
        self.life = 1
        self.is_up = True
        self.is_paused = False
        self.has_room = True
        self.service_s = 0.001  # for some rows
        self.supply: deque[Sequence[Group]] = deque()
        self.manager: ManagerCore | None = None
        self.worker: WorkerCore | None = None
        self.router: RouterCore | None = None
        self._held: list[Callable[[], None]] = []  # came while it was paused
        self._wakes_at: float | None = None

    @property
    def cores(self) -> list[Cores]:
        return [core for core in (self.manager, self.worker, self.router) if core is not None]

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left here of what took part."""
        return (
            (self.manager is None or self.manager.phase is ManagerPhase.OVER)
            and (self.worker is None or self.worker.phase is WorkerPhase.GONE)
            and (self.router is None or self.router.phase is RouterPhase.GONE)
        )

    # --- life ------------------------------------------------------------------------------------
    def later(self, delay_s: float, happen: Callable[[], None]) -> None:
        """Within this life; while it is paused nothing happens."""
        self.world.timeline.after(delay_s, functools.partial(self.now, self.life, happen))

    def now(self, life: int, happen: Callable[[], None]) -> None:
        if life != self.life or not self.is_up:
            return
        if self.is_paused:
            self._held.append(functools.partial(self.now, life, happen))
        else:
            happen()
            self._wake()

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False
        held, self._held = self._held, []
        # The clock is looked at first in some, what has come meanwhile in others.
        if self.world.random.random() < 0.5:
            self.tick()
        for happen in held:
            happen()
        self._wake()

    def crash(self) -> None:
        self.is_up, self.is_paused, self._held, self._wakes_at = False, False, [], None
        self.life += 1
        self.manager = self.worker = self.router = None
        self.supply.clear()

    def restart(self) -> None:
        self.is_up = True

    def _wake(self) -> None:
        """At the earliest deadline of its cores."""
        times = [core.deadline for core in self.cores if core.deadline is not None]
        if times and (self._wakes_at is None or min(times) < self._wakes_at or self._wakes_at <= self.world.now):
            self._wakes_at = max(min(times), self.world.now)
            self.later(self._wakes_at - self.world.now, self.tick)

    def tick(self) -> None:
        self._wakes_at = None
        for core in self.cores:
            self.do(core.tick(self.world.now))

    # --- what comes ------------------------------------------------------------------------------
    def control(self, sender: str, message: GroupByMessage) -> None:
        now = self.world.now
        if isinstance(message, ToManager):
            if self.manager is not None:
                self.do(self.manager.received(sender, message, now))
                return
        elif isinstance(message, Recruit) and self.worker is None:
            self._recruited(sender, message)
            return
        else:
            takers = self._takers(message)
            for core in takers:
                self.do(core.received(message, now))
            if takers:
                return
        reply = answer(self.name, message)
        if reply is not None:
            self.world.send(self.name, sender, reply)

    def _takers(self, message: FromManager) -> list[WorkerCore | RouterCore]:
        cores = (self.worker, self.router) if isinstance(message, Redirect | End) else (self.worker,)
        return [core for core in cores if core is not None]

    def _recruited(self, manager: str, message: Recruit) -> None:
        if not self.has_room:
            self.world.send(self.name, manager, Recruited(message.group, is_taken=False))
            return
        self.worker = WorkerCore(
            message.group, self.name, manager, self.world.new_state(), self.world.limits, self.world.now,
            epoch=message.epoch, giver=message.giver,
        )  # fmt: skip
        self.do(self.worker.received(message, self.world.now))

    def rows(self, sender: str, lane: int, rows: SimRows | None) -> None:
        """Rows for nobody are told to be so by their channel, and dropped."""
        worker = self.worker
        if worker is None or worker.phase is WorkerPhase.GONE:
            return
        if lane == ROWS:
            assert rows is not None
            self.do(worker.rows(rows, self.world.now))
        else:
            self.do(worker.share(sender, lane, rows, self.world.now))
        state = worker.state
        if state.size_bytes > self.world.limits.memory_bytes and not worker.is_spilling:
            raise Violation(f"{self.name} holds {state.size_bytes} bytes, and does not spill")

    def lost(self, member: str, error: SkerryError) -> None:
        if self.manager is not None:
            self.do(self.manager.lost(member, error, self.world.now))
        for core in (self.worker, self.router):
            self.do(core.lost(member, error) if core is not None else [])

    def cancel(self, error: SkerryError) -> None:
        if self.manager is not None:
            self.do(self.manager.cancel(error, self.world.now))

    def broke(self, error: SkerryError, *, is_sending: bool) -> None:
        """A channel to or from here has failed."""
        if self.worker is not None:
            self.do(self.worker.failed(error))
        if self.router is not None and is_sending:
            self.do(self.router.failed(error))

    # --- what is done ----------------------------------------------------------------------------
    def do(self, instructions: Sequence[Instruction]) -> None:
        for each in instructions:
            match each:
                case Send(to=to, message=message):
                    self.world.send(self.name, to, message)
                case Deliver(to=to, rows=rows):
                    self.world.deliver(self.name, to, ROWS, rows)
                case DeliverShare(to=to, epoch=epoch, parts=parts):
                    for part in (*parts, None):
                        self.world.deliver(self.name, to, epoch, part)
                case GiveOn():
                    assert self.worker is not None
                    self.later(self.world.random.uniform(0, 0.3), functools.partial(self._give, self.worker))
                case LetGo():
                    self._forget_later()
                case Conclude(error=error):
                    self.world.concluded(error)
                case Forget():
                    self._forget_later()

    def _give(self, worker: WorkerCore) -> None:
        if worker.phase is WorkerPhase.GIVING:
            assert isinstance(worker.state, SimState | RealState)
            self.world.outputs[self.name] = list(worker.state.held.values())
            self.do(worker.given())

    def _forget_later(self) -> None:
        self.later(self.world.marker_s, self._forget)

    def _forget(self) -> None:
        if self.manager is not None and self.manager.phase is ManagerPhase.OVER:
            self.manager = None
        if self.worker is not None and self.worker.phase is WorkerPhase.GONE:
            self.worker = None
        if self.router is not None and self.router.phase is RouterPhase.GONE:
            self.router = None

    def step(self) -> None:
        """The fragment gives its next rows, if the channels have credit."""
        if self.router is None or self.router.phase is not RouterPhase.SENDING:
            return
        if not self.supply:
            self.do(self.router.done(self.world.now))
            return
        if self.world.has_credit(self.name):
            self.do(self.router.send(SimRows(self.supply.popleft())))
        self.later(self.world.random.uniform(0, self.world.pace_s), self.step)
