"""One seed of large writes: members with disks and clocks of their own, clients, faults, and what must hold."""

from __future__ import annotations

import asyncio
import functools
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from types import SimpleNamespace
from typing import Any

from sim.loop import OWNER, SimLoop, Violation, nobody
from sim.staged.clients import COPIES, SPREAD, Client, rows_at
from sim.staged.disk import Synced
from sim.staged.model import Rows, Said, Scan, replayed
from sim.staged.net import Links
from sim.staged.site import Lost, Site
from sim.world import Outcome
from skerry.config import parse
from skerry.member import bulk, committing, computing, own, staging
from skerry.model import points, trace
from skerry.model.errors import SkerryError
from skerry.model.limits import CommitLimits
from skerry.model.sharded import Catalogue, Definition, OwnColumn, OwnTable
from skerry.tables import delta, files, flush, flushing, laying, shard, spool
from skerry.tables.catalogue import Kept, first_map
from skerry.wire.commit_messages import State

NAMES = ("bergen", "oslo", "tromso", "alta")
LITE = "lite"
_FAULTS_S = 8.0
_SETTLE_S = 90.0


class Power(BaseException):
    """It is lost right here."""


class Loop(SimLoop):
    """What blocks in a thread takes time, and its member may be gone before it began, or before it is heard."""

    def __init__(self, random: Random) -> None:
        network: Any = SimpleNamespace()
        super().__init__(network)
        self._random = random
        self.work_s: Callable[[], float] = lambda: 0.0

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        future = self.create_future()

        def tell(set_it: Callable[[Any], None], told: Any) -> None:
            if not future.done():
                set_it(told)

        def work() -> None:
            try:
                told, set_it = func(*args), future.set_result
            except Power:
                return
            except Exception as error:
                told, set_it = error, future.set_exception
            self.call_later(self._random.random() * self.work_s(), tell, set_it, told)

        self.call_later(self._random.random() * self.work_s(), work)
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not isinstance(context.get("exception"), Power):
            super().call_exception_handler(context)


class World:
    def __init__(self, seed: int, folder: str) -> None:
        self.random = random = Random(f"skerry staged {seed}")
        self._folder = folder
        self.loop = Loop(Random(f"skerry staged threads {seed}"))  # type: ignore[abstract]
        self.loop.work_s = self._work_s
        self.story: list[str] = []
        self.digest = 0
        self.complete = self.failed = 0
        self.are_faults_over = False
        self.said: list[Said] = []
        self.scans: list[Scan] = []
        self.synced = Synced()
        self.works: list[Coroutine[Any, Any, None]] = []  # that members have begun: what did not run is closed
        self.disks = tuple(NAMES[: random.randint(2, 4)])
        lite = [LITE] if random.random() < 0.5 else []
        members = ", ".join(
            f"{name}: {{address: '127.0.1.{i}:7100'{', role: lite' if name == LITE else ''}}}"
            for i, name in enumerate((*self.disks, *lite), 1)
        )
        self.config = parse(f"cluster: sim\nstate: {folder}\nmembers: {{{members}}}")
        self.limits = CommitLimits(
            lock_wait_s=1.0,
            vote_wait_s=2.0,
            read_wait_s=2.0,
            answer_wait_s=5.0,
            staged_wait_s=2.0,
            repeat_s=random.choice((0.2, 0.5)),
        )
        columns = (OwnColumn("k", "bigint", is_nullable=False), OwnColumn("v", "string"))
        spread = OwnTable(SPREAD, "spread", 1, columns, ("k",), ("k",), self.disks, buckets=16)
        copies = OwnTable(COPIES, "copies", 1, columns, ("k",), (), self.disks, buckets=16)
        self.tables = {SPREAD: spread, COPIES: copies}
        self.kept = Kept(Catalogue(1, 3, tuple(Definition(each, first_map(each)) for each in (spread, copies))))
        self.sites: dict[str, Site] = {}
        for name in (*self.disks, *lite):
            self.sites[name] = Site(self, name, Random(random.random()))
        self.links = Links(self.loop, Random(random.random()), self.sites)
        self.is_stormy = random.random() < 0.3
        self._ids = Random(random.random())
        self.clients = [Client(f"c{n}", self, Random(random.random())) for n in range(random.randint(2, 4))]

    def _work_s(self) -> float:
        process = OWNER.get()
        return self.sites[process.host].work_s if process is not None else 0.0

    def tell(self, line: str) -> None:
        line = line.replace(self._folder, "…")  # it is another one in each run
        self.story.append(f"{self.loop.now - 1000:9.4f} {line}")
        self.digest = zlib.crc32(f"{self.loop.now:.6f} {self.loop.steps} {line}".encode(), self.digest)

    def violated(self, what: str) -> None:
        self.loop.errors.append(what)

    # --- one run --------------------------------------------------------------------------------------
    async def run(self) -> None:
        for site in self.sites.values():
            await site.start()
        clients = [asyncio.ensure_future(client.run()) for client in self.clients]
        self._plan_faults()
        await asyncio.sleep(_FAULTS_S)
        self._heal()
        await asyncio.wait(clients, timeout=_SETTLE_S)
        for client in clients:
            if not client.done():
                self.violated("a client is still waiting")
            client.result()
        await self._until(lambda: all(site.is_idle for site in self.sites.values()), "members are busy")
        await self._ask()
        await self._until(lambda: all(site.is_idle for site in self.sites.values()), "members are busy")
        await self._until(lambda: not self._left_over(), "files are left")
        await self._judge()
        # What counts is on the disks: all of them lose their power, and it is still there.
        for site in self.sites.values():
            site.fuse = None
            site.lose_power()
        await self._until(lambda: all(site.is_idle for site in self.sites.values()), "members are busy after a start")
        await self._until(lambda: not self._left_over(), "files are left after a start")
        await self._judge()

    async def _until(self, is_so: Callable[[], bool], what: str) -> None:
        until = self.loop.now + _SETTLE_S
        while not is_so():
            if self.loop.now > until:
                self.violated(f"{_SETTLE_S:g} s after the last fault {what}: {self._open()}")
            await asyncio.sleep(0.1)

    def _open(self) -> str:
        busy = [name for name, site in self.sites.items() if not site.is_idle]
        stages = {name: list(site.own._staging._stages) for name, site in self.sites.items() if site.own._staging}
        return f"{busy} busy, staged {stages}, left over {self._left_over()}"

    def _left_over(self) -> dict[str, list[str]]:
        found = {name: self.sites[name].left_over() for name in self.disks}
        return {name: names for name, names in found.items() if names}

    async def _ask(self) -> None:
        """What became of those that nobody has told of."""
        for said in self.said:
            for _ in range(30 if not said.is_over and said.first_start else 0):
                site = self.sites[self.random.choice(self.disks)]
                answer, _ = site.call(
                    lambda at=site, s=said: at.own._core.inquire(s.query, s.first_start, frozenset(self.disks))  # type: ignore[misc]
                )
                try:
                    told: Any = await answer
                except (SkerryError, Lost) as error:
                    told = error
                    await asyncio.sleep(0.5)
                    continue
                if told.state is not State.UNKNOWN:
                    said.is_over, said.commit_ts = True, told.commit_ts
                    self.tell(f"{said.query} ({said.kind}) was {told.state.name} at {told.commit_ts}")
                    break
                await asyncio.sleep(0.5)
            else:
                if not said.is_over and said.first_start:
                    self.violated(f"how {said.query} ended can still not be told: {told}")

    async def _judge(self) -> None:
        """Each row is where it belongs, once, and at all copies."""
        due = replayed(self.said, self.scans, (SPREAD, COPIES))
        spread: Rows = {}
        for name in self.disks:
            site = self.sites[name]
            for table in (SPREAD, COPIES):
                rows = await self._rows(site, table)
                if table == COPIES and rows != due[COPIES]:
                    self.violated(f"the copy at {name} is {_differ(rows, due[COPIES])}")
                if table == SPREAD and spread.keys() & rows.keys():
                    self.violated(f"keys {sorted(spread.keys() & rows.keys())} are at two members")
                spread |= rows if table == SPREAD else {}
        if spread != due[SPREAD]:
            self.violated(f"the table is {_differ(spread, due[SPREAD])}")

    async def _rows(self, site: Site, table: int) -> Rows:
        for _ in range(150):  # clocks may have been far ahead
            answer, _leave = site.call(lambda: _read_now(site, table))
            try:
                rows: Rows = await answer
                return rows
            except (SkerryError, Lost) as error:
                why = error
                await asyncio.sleep(0.5)
        raise Violation(f"table {table} cannot be read at {site.name}: {why}")

    # --- faults ---------------------------------------------------------------------------------------
    def _plan_faults(self) -> None:
        random = self.random
        kinds = [self._lose_power, self._light_fuse, self._cut, self._lose_link, self._jump, self._fill_disk]
        weights = [random.choice((0, 1, 3)) for _ in kinds]
        if not any(weights):
            return  # a quiet seed
        if self.is_stormy:
            weights[kinds.index(self._light_fuse)] = 10
        for _ in range(random.randint(10, 25) if self.is_stormy else random.randint(1, 10)):
            fault = random.choices(kinds, weights)[0]
            self.loop.call_later(random.uniform(0, _FAULTS_S), self._unless_over, fault, context=nobody())

    def _unless_over(self, fault: Callable[[], None]) -> None:
        if not self.are_faults_over:
            fault()

    def _any(self) -> Site:
        return self.sites[self.random.choice(list(self.sites))]

    def _lose_power(self) -> None:
        self._any().lose_power()

    def _light_fuse(self) -> None:
        """Power is lost at one of the next named moments, or within a sync of SQLite's file."""
        site = self._any()
        if self.random.random() < 0.6:
            site.fuse = self.random.randint(1, 25)
        elif site.store is not None:
            site.store.sync_fuse = self.random.randint(1, 6)

    def reached(self, _point: str) -> None:
        process = OWNER.get()
        site = self.sites.get(process.host) if process is not None else None
        if site is None or site.fuse is None or not site.process.is_alive:
            return
        site.fuse -= 1
        if site.fuse <= 0:
            self.tell(f"{site.name} has come to {_point}")
            site.lose_power()
            raise Power

    def after_crash(self, site: Site) -> None:
        if not site.unkept_ts and self.random.random() < 0.5:
            site.wall_offset_s = max(-4.0, site.wall_offset_s - self.random.uniform(0, 3.0))
        down_s = 0.05 if self.is_stormy else self.random.choice((0.05, 0.3, 2.5))

        def restart() -> None:
            self.tell(f"{site.name} starts")
            self.loop.create_task(site.start(), context=nobody().copy())

        self.loop.call_later(down_s, restart, context=nobody())

    def _cut(self) -> None:
        one, other = self.random.sample(list(self.sites), 2)
        self.tell(f"cut: {one}, {other}")
        self.links.cut(one, other, self.random.choice((0.3, 1.0, 3.0)))

    def _lose_link(self) -> None:
        one, other = self.random.sample(list(self.sites), 2)
        self.tell(f"the link of {one} and {other} is lost")
        self.links.lose(one, other)

    def _jump(self) -> None:
        by_s = self.random.choice((-1, 1)) * self.random.choice((0.2, 2.0, 2.0, 12.0))
        site = self._any()
        if by_s > 0 or site.may_be_set_back:
            self.tell(f"the clock of {site.name} jumps by {by_s} s")
            site.wall_offset_s += by_s

    def _fill_disk(self) -> None:
        site = self._any()
        self.tell(f"the disk of {site.name} is full")
        site.is_full = True

        def room() -> None:
            site.is_full = False

        self.loop.call_later(self.random.uniform(0.1, 2.0), room, context=nobody())

    def _heal(self) -> None:
        self.tell("the faults are over")
        self.are_faults_over = True
        self.links.loss = self.links.twice = 0.0
        for site in self.sites.values():
            site.fuse, site.is_full = None, False
            if site.store is not None:
                site.store.sync_fuse = None
            self._set_clock(site)

    def _set_clock(self, site: Site) -> None:
        """As soon as that may be, if it goes back."""
        if site.wall_offset_s <= 0 or site.may_be_set_back:
            site.wall_rate, site.wall_offset_s = 1.0, 0.0
        else:
            self.loop.call_later(0.1, self._set_clock, site, context=nobody())

    def dispose(self) -> None:
        for site in self.sites.values():
            site.process.is_alive = False
            if site.store is not None:
                site.store.crash()
        self.loop.dispose()
        for work in self.works:
            work.close()
        self.synced.close()

    # --- what members believe to be the world ---------------------------------------------------------
    def patches(self) -> list[tuple[Any, str, Any]]:
        random = self.random
        wall = SimpleNamespace(time=self._wall_s, time_ns=lambda: int(self._wall_s() * 1e6) * 1000)
        ids = SimpleNamespace(uuid4=lambda: SimpleNamespace(hex=f"{self._ids.getrandbits(128):032x}"))
        few = random.choice((2, 100))
        group = random.choice((4, 1000))
        return [
            (os, "fsync", self.synced.fsync),
            (points, "watch", self.reached),
            *((module, "time", wall) for module in (own, committing, flushing)),
            *((module, "uuid", ids) for module in (own, bulk, committing, computing, staging)),
            (own, "Store", lambda folder, member: self.sites[member].open_store(folder, member)),
            (laying, "remove_files", functools.partial(_if_alive, files.remove_files)),
            # Few rows are many here.
            (bulk, "STAGED_CHUNK_ROWS", few),
            (spool, "STAGED_CUT_BYTES", random.choice((1, 1 << 20))),
            (staging, "STAGED_MEMORY_BYTES", random.choice((1, 1 << 20))),
            *((module, "GROUP_ROWS", group) for module in (flush, laying)),
            (laying, "STAGED_UNIT_ROWS", random.choice((3, 1000))),
            (shard, "HISTORY_S", random.choice((1.0, 600.0))),
            (delta, "DELTA_CHECKPOINT", random.choice((2, 50))),
        ]

    def _wall_s(self) -> float:
        process = OWNER.get()
        return self.sites[process.host].wall_s if process is not None else 0.0


def _if_alive(work: Callable[..., None], *args: Any) -> None:
    process = OWNER.get()
    if process is None or process.is_alive:
        work(*args)


async def _read_now(site: Site, table: int) -> Rows:
    return await rows_at(site, table, site.own.now())


def _differ(found: Rows, due: Rows) -> str:
    keys = sorted(key for key in {*found, *due} if found.get(key) != due.get(key))
    return "; ".join(f"{key}: {found.get(key)!r} instead of {due.get(key)!r}" for key in keys)


@contextmanager
def _patched(module: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def run_seed(seed: int) -> Outcome:
    """Run one seed to its end."""
    folder = tempfile.mkdtemp(prefix="staged-")
    world = World(seed, folder)
    violation = ""

    def heard(event: trace.Event) -> None:
        if isinstance(event, trace.WorkFailed):
            world.violated(f"failed: {event}")

    try:
        with ExitStack() as patches:
            for patch in world.patches():
                patches.enter_context(_patched(*patch))
            trace.listeners.append(heard)
            patches.callback(trace.listeners.remove, heard)
            try:
                world.loop.run(world.run(), 1000.0 + _FAULTS_S + 6 * _SETTLE_S)
            finally:
                world.dispose()
    except Violation as error:
        violation = str(error)
    except Exception as error:
        violation = f"{type(error).__name__}: {error}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    mood = f"{len(world.sites)} members, {len(world.clients)} clients, large writes"
    return Outcome(
        seed, violation, world.digest, world.loop.steps, world.loop.now - 1000.0, world.complete, world.failed,
        (mood, *world.story),
    )  # fmt: skip
