"""A member's tables of our own, as a member has them (`OwnTables`), with lives, a clock and a disk that fails."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from typing import TYPE_CHECKING, Any

from sim.loop import Process, nobody
from sim.staged.disk import SimStore
from skerry.member.background import Background
from skerry.member.own import OwnTables
from skerry.model.errors import PeerError, SiteError
from skerry.model.rights import EVERYTHING
from skerry.tables.clock import COUNTER_BITS
from skerry.wire.commit_messages import CommitMessage
from skerry.wire.staging_messages import DropRows, RowsStaged, StageRows

if TYPE_CHECKING:
    from sim.staged.world import World

EPOCH_S = 1_700_000_000.0


class Lost(Exception):
    """Nobody answers any more."""


class Threads:
    """In the place of `Workers`."""

    async def run(self, function: Callable[..., Any], *arguments: object) -> Any:
        return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)


class Site:
    def __init__(self, world: World, name: str, random: Random) -> None:
        self.name = name
        self.is_up = False
        self.life = 0
        self.process = Process(name, name)
        self.own: OwnTables
        self.store: SimStore | None = None
        self.is_full = False
        self.fuse: int | None = None  # named moments until it loses its power
        self.unkept_ts = 0
        self.wall_offset_s = random.uniform(-1.5, 1.5)
        self.wall_rate = random.choice((1.0, 0.97, 1.03))
        self.sync_s = random.choice((0.001, 0.005, 0.03, 0.2))
        self.work_s = random.choice((0.001, 0.01, 0.2))
        self.folder = world.config.tables_path(name)
        self._world = world
        self._random = random
        self._calls: list[asyncio.Future[Any]] = []  # in their order: addresses differ each run

    @property
    def wall_s(self) -> float:
        return EPOCH_S + (self._world.loop.now - 1000.0) * self.wall_rate + self.wall_offset_s

    def now(self) -> int:
        """By the member's clock, whoever asks."""
        return self.process.context.copy().run(self.own.now)

    # --- power ----------------------------------------------------------------------------------------
    def open_store(self, folder: str, member: str) -> SimStore:
        assert member == self.name
        self.store = SimStore(folder, member, self._random, self.sync_s, lambda: self.is_full)
        self.store.blow = self.lose_power
        return self.store

    async def start(self) -> None:
        world, background = self._world, Background()
        self.process = Process(f"{self.name}.{self.life}", self.name)

        async def begin() -> None:
            self.own = OwnTables(
                self.name,
                world.config,
                lambda to, message: world.links.send(self.name, to, message),
                lambda work, what: self._begin_work(background, work, what),
                Threads(),  # type: ignore[arg-type]
                lambda *_: EVERYTHING,
                lambda: [name for name, site in world.sites.items() if site.is_up and name != self.name],
                lambda *_: None,
                world.limits,
            )
            await self.own.start()
            if not self.own.version:
                await self.own.keep(world.kept)
            self.is_up = True

        life = self.life
        task = world.loop.create_task(begin(), context=self.process.context.copy())
        while not task.done() and self.life == life:
            await asyncio.sleep(0.01)
        if task.done():
            task.result()

    def _begin_work(self, background: Background, work: Coroutine[Any, Any, None], what: str) -> None:
        if self.process.is_alive:
            self._world.works.append(work)
            background.own(work, what)
        else:
            work.close()

    def lose_power(self) -> None:
        """All that was not synced is gone; so are all that waited for an answer from here."""
        if not self.process.is_alive:
            return
        self._world.tell(f"{self.name} loses its power")
        self.process.is_alive = False
        self._keep_clock()
        self.is_up, self.fuse = False, None
        self.life += 1
        if self.store is not None:
            self.store.crash()
            self.store = None
        if self.folder:
            self._world.synced.lose(self.folder, self._random)
        self._world.links.lose_all(self.name)
        calls, self._calls = self._calls, []
        for answer in calls:
            if not answer.done():
                answer.set_exception(Lost(self.name))
        self._world.after_crash(self)

    @property
    def may_be_set_back(self) -> bool:
        if not self.is_up:
            return not self.unkept_ts
        clock = self.own._core._core.clock
        return not clock.is_unkept and clock.last >= self.unkept_ts

    def _keep_clock(self) -> None:
        """Where reads were answered that no mark on disk knows of, the clock is not set back (sim/tables/world.py)."""
        if self.is_up:
            clock = self.own._core._core.clock
            is_unkept = clock.is_unkept or self.unkept_ts > clock.durable
            self.unkept_ts = max(self.unkept_ts, clock.last) if is_unkept else 0
        if self.unkept_ts:
            self.wall_offset_s += max(0.0, (self.unkept_ts >> COUNTER_BITS) / 1e6 - self.wall_s + 0.001)

    # --- messages -------------------------------------------------------------------------------------
    def receive(self, sender: str, message: object) -> None:
        try:
            if isinstance(message, CommitMessage):
                self.own.receive(sender, message)
            elif isinstance(message, StageRows | DropRows):
                self.own.receive_rows(sender, message)
            elif isinstance(message, RowsStaged):
                self.own.bulks.receive(sender, message)
        except PeerError as error:
            self._world.violated(f"{self.name} accuses {sender}: {error.message}")

    def peer_lost(self, peer: str) -> None:
        error = SiteError(f"site {peer} is down", member=peer)
        self.own.bulks.peer_lost(peer, error)
        self.own.peer_lost(peer, error)

    # --- clients --------------------------------------------------------------------------------------
    def call(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> tuple[Awaitable[Any], Callable[[], None]]:
        """What the member answers, or Lost; and how to go away before it does."""
        loop = self._world.loop
        answer = loop.create_future()
        if not self.is_up:
            answer.set_exception(Lost(self.name))
            return answer, lambda: None

        async def run() -> None:
            try:
                told = await work()
            except asyncio.CancelledError:
                if not answer.done():
                    answer.set_exception(Lost("cancelled"))
            except Exception as error:
                if not answer.done():
                    answer.set_exception(error)
            else:
                if not answer.done():
                    answer.set_result(told)

        self._calls.append(answer)
        task = loop.create_task(run(), context=self.process.context.copy())

        def leave() -> None:
            loop.call_soon(task.cancel, context=nobody())

        return answer, leave

    # --- what is left ---------------------------------------------------------------------------------
    @property
    def is_idle(self) -> bool:
        if not self.is_up:
            return False
        core, staging = self.own._core, self.own._staging
        assert staging is not None
        return (
            core._core.is_idle
            and not core._queue
            and not core._in_flight
            and not staging._stages
            and not self.own.bulks._open
            and (self.store is None or self.store.is_idle)
        )

    def left_over(self) -> list[str]:
        """Files that nobody names."""
        found: list[str] = []
        for shard in self.own._shards.values():
            named = {each.file.name for each in shard.manifest.named}
            there = os.listdir(shard.folder) if os.path.isdir(shard.folder) else []
            found += [
                name for name in sorted(there) if name.removesuffix(".aside").endswith(".parquet") and name not in named
            ]
        staging = os.path.join(self.folder, "staging")
        return found + (sorted(os.listdir(staging)) if os.path.isdir(staging) else [])
