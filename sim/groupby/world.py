"""One seed of an elastic group-by: senders, a manager, workers, faults, and what must hold."""

from __future__ import annotations

import functools
from collections import deque
from random import Random
from typing import get_args

import msgspec

from sim.groupby.host import Host
from sim.groupby.real import RealState
from sim.groupby.rows import GROUP_BYTES, Group, SimRows, SimState, folded, place_of
from sim.loop import Violation
from sim.tables.time import Timeline
from sim.world import Outcome
from skerry.exchange.groupby.manager import ManagerCore
from skerry.exchange.groupby.router import RouterCore
from skerry.exchange.groupby.worker import WorkerCore
from skerry.model.errors import Cancelled, InternalError, PeerError, SiteError, SkerryError
from skerry.model.ids import GroupById, QueryId
from skerry.model.limits import GroupByLimits
from skerry.model.ranges import first_table
from skerry.wire.groupby_messages import GroupByMessage

BOSS = "boss"
GROUP = GroupById(QueryId(BOSS, "0123456789abcdef0123456789abcdef"), 3)
_FAULTS_S = 6.0
_SETTLE_S = 60.0
_WAIT_S = 3.0  # without a connection a peer is lost
_WINDOW = 8  # batches on their way to a worker, of one sender
_REAL_EVERY = 20  # of so many seeds one runs on the members' own state
_ENCODER = msgspec.msgpack.Encoder()


class World:
    """`mild` faults are waited out: no group-by may fail for them. In `calm` there are none."""

    def __init__(self, seed: int) -> None:
        self._is_real = seed % _REAL_EVERY == _REAL_EVERY - 1
        self.random = random = Random(f"skerry group-by {seed}")
        self.timeline = Timeline()
        self.story: list[str] = []
        self.mood = random.choices(["calm", "mild", "hard"], [1, 4, 5])[0]
        self.keys = random.randint(80, 300)
        self.is_fat = random.random() < 0.15
        self.limits = self._limits()
        self.marker_s = random.choice((1.0, 30.0))
        self.pace_s = random.choice((0.01, 0.05, 0.1))
        senders = [f"sender{number}" for number in range(random.randint(1, 4))]
        recruits = [f"recruit{number}" for number in range(random.randint(5, 9))]
        if self.is_scarce:
            recruits = recruits[: random.randint(0, 3)]
        # Members that have rows are recruited too, and the manager's member may have rows.
        candidates = recruits + [name for name in senders if random.random() < 0.4 and not self.is_scarce]
        self.senders = [*senders, BOSS] if random.random() < 0.3 else senders
        self.candidates = {name: random.randint(1, 4) for name in candidates}
        self.hosts = {name: Host(name, self) for name in dict.fromkeys((BOSS, *senders, *recruits))}
        for host in self.hosts.values():
            host.service_s = random.choice((0.0005, 0.002, 0.02))
            host.has_room = random.random() < 0.95
        self.expected = self._supply()
        self.outputs: dict[str, list[Group]] = {}
        self.answer: SkerryError | None = None
        self.is_concluded = self.are_faults_over = False
        self.splits = 0
        self._delay_s = random.choice((0.002, 0.02, 0.1))
        self._twice = random.choice((0.0, 0.1, 0.3))
        self._loss = random.choice((0.0, 0.0, 0.05))
        # In some, rows vanish without a word of anybody. No channel does that; weights are there in case that one does.
        self.leaks = self.mood == "hard" and random.random() < 0.15
        self.rows_leaked = 0
        self._cut: dict[tuple[str, str], int] = {}
        self._streams: dict[tuple[str, str], deque[tuple[int, SimRows | None]]] = {}
        self._pumping: set[tuple[str, str]] = set()
        self._kept: dict[tuple[str, str], list[bytes]] = {}

    def _limits(self) -> GroupByLimits:
        random = self.random
        self.is_scarce = random.random() < 0.12
        groups = self.keys // random.randint(6, 9)
        large = groups * GROUP_BYTES
        return GroupByLimits(
            split_groups=groups,
            split_bytes=large if self.is_fat else 100 * large,
            memory_bytes=2 * large if self.is_fat else 200 * large,
            first_recruits=random.choice((2, 2, 3)),
            recruit_s=1.5,
            repeat_s=0.2,
            alive_s=1.0,
            lease_s=7.0,
            recount_s=0.1,
            count_s=7.0,
            end_s=5.0,
        )

    def _supply(self) -> dict[int, Group]:
        random = self.random
        hot = random.randrange(self.keys) if self.is_fat or random.random() < 0.3 else None
        sent: list[Group] = []
        for name in self.senders:
            rows: list[Group] = []
            for _ in range(random.randint(self.keys, 2 * self.keys)):
                key = hot if hot is not None and random.random() < 0.5 else random.randrange(self.keys)
                value = random.randint(-1000, 1000)
                fat_bytes = 64 if self.is_fat and key == hot else 0
                rows.append(Group(key, value, value, value, 1, fat_bytes))
            sent += rows
            while rows:
                count = random.randint(1, 12)
                self.hosts[name].supply.append(rows[:count])
                rows = rows[count:]
        return folded(sent)

    @property
    def now(self) -> float:
        return self.timeline.now

    def tell(self, line: str) -> None:
        self.story.append(f"{self.now:9.4f} {line}")

    def new_state(self) -> SimState | RealState:
        """In some seeds the state that members have; it knows no keys that cannot be folded."""
        return RealState(self.limits) if self._is_real and not self.is_fat else SimState()

    # --- one run ---------------------------------------------------------------------------------
    def run(self) -> None:
        boss = self.hosts[BOSS]
        boss.manager = ManagerCore(GROUP, BOSS, self.senders, self.candidates, self.limits, self.now)
        state = self.new_state()
        boss.worker = WorkerCore(GROUP, BOSS, BOSS, state, self.limits, self.now, epoch=1, table=first_table(BOSS))
        for name in self.senders:
            host = self.hosts[name]
            host.router = RouterCore(GROUP, BOSS, self.limits, self.now)
            host.later(self.random.uniform(0, 0.1), host.step)
        boss.later(0.0, boss.tick)
        if self.mood != "calm":
            self._plan_faults()
        self.timeline.after(_FAULTS_S, self._heal)
        if not self.timeline.run(self._is_over, _FAULTS_S + _SETTLE_S):
            raise Violation(f"not over {_SETTLE_S:.0f} s after the last fault: {self._open()}")
        # What comes late may begin something again; that has an end, too.
        self.timeline.run(lambda: False, self.now + self.limits.lease_s + _SETTLE_S / 2)
        self._check_left()

    def _is_over(self) -> bool:
        return self.are_faults_over and self.is_concluded and all(host.is_idle for host in self.hosts.values())

    def _open(self) -> str:
        cores = [f"{host.name} {core!r}" for host in self.hosts.values() if not host.is_idle for core in host.cores]
        return f"concluded: {self.is_concluded}; {'; '.join(cores)}"

    # --- what must hold --------------------------------------------------------------------------
    def concluded(self, error: SkerryError | None) -> None:
        if self.is_concluded:
            raise Violation("it was concluded twice")
        self.is_concluded, self.answer = True, error
        manager = self.hosts[BOSS].manager
        assert manager is not None
        self.splits = manager.splits
        self.tell(f"{'complete' if error is None else error}; {manager.splits} splits")
        if error is None:
            self._check_answer(manager)
        elif isinstance(error, PeerError | InternalError):
            raise Violation(f"somebody broke the protocol: {error}")
        elif self.mood != "hard":
            raise Violation(f"it failed, and nothing was wrong that is not waited out: {error}")

    def _check_answer(self, manager: ManagerCore) -> None:
        alone = self.hosts[BOSS].worker
        if not self.candidates and len(self.expected) > self.limits.split_groups:
            assert alone is not None
            assert isinstance(alone.state, SimState | RealState)
            if not alone.state.is_spilled:
                raise Violation("nobody could be recruited, and nothing was spilled")
        found: dict[int, Group] = {}
        for name, groups in self.outputs.items():
            for group in groups:
                if group.key in found:
                    raise Violation(f"key {group.key} has two groups, one of them at {name}")
                if manager.table.owner(place_of(group.key)) != name:
                    raise Violation(f"key {group.key} was folded by {name}, whose it is not")
                found[group.key] = group
        if self._is_real and not self.is_fat:  # a drained state has no weights: they are proven before
            unweighed = {key: msgspec.structs.replace(group, weight=0) for key, group in self.expected.items()}
            is_wrong = {key: msgspec.structs.replace(group, weight=0) for key, group in found.items()} != unweighed
        else:
            is_wrong = found != self.expected
        if is_wrong:
            wrong = [key for key in self.expected if found.get(key) != self.expected[key]]
            sent = sum(group.weight for group in self.expected.values())
            came = sum(group.weight for group in found.values())
            raise Violation(f"{sent} rows were sent, {came} are in the answer; wrong are {len(wrong)} groups")

    def _check_left(self) -> None:
        if not self._is_over():
            raise Violation(f"something has begun again, and stays: {self._open()}")
        for host in self.hosts.values():
            if host.worker is not None and host.worker.state.groups:
                raise Violation(f"{host.name} still holds {host.worker.state.groups} groups")

    # --- control messages ------------------------------------------------------------------------
    def send(self, sender: str, to: str, message: GroupByMessage) -> None:
        """As bytes: once, or twice, some time later, in any order; those that a cut holds up come after it."""
        body = _ENCODER.encode((type(message).__name__, message))
        times = 2 if self.random.random() < self._twice else 1
        if sender != to and self.random.random() < self._loss:
            times -= 1
        for _ in range(times):
            self._post(sender, to, body)

    def _post(self, sender: str, to: str, body: bytes) -> None:
        if self._cut.get((sender, to)):
            self._kept.setdefault((sender, to), []).append(body)
            return
        delay_s = 0.0 if sender == to else self.random.expovariate(1 / self._delay_s)
        host, life = self.hosts[to], self.hosts[to].life
        arrive = functools.partial(self._arrive, sender, to, body)
        self.timeline.after(delay_s, functools.partial(host.now, life, arrive))

    def _arrive(self, sender: str, to: str, body: bytes) -> None:
        if self._cut.get((sender, to)):
            self._kept.setdefault((sender, to), []).append(body)
            return
        name, _ = msgspec.msgpack.decode(body)
        kind = _KINDS[name]
        message = msgspec.msgpack.decode(body, type=tuple[str, kind])[1]  # type: ignore[valid-type]
        self.hosts[to].control(sender, message)

    # --- channels --------------------------------------------------------------------------------
    def deliver(self, sender: str, to: str, lane: int, rows: SimRows | None) -> None:
        """In order, however late."""
        if sender == to:
            self.hosts[to].later(0.0, functools.partial(self.hosts[to].rows, sender, lane, rows))
            return
        if not self.hosts[to].is_up:
            self._break_later(sender, to, is_sending=True)
            return
        self._streams.setdefault((sender, to), deque()).append((lane, rows))
        self._pump((sender, to))

    def has_credit(self, sender: str) -> bool:
        return all(len(stream) < _WINDOW for (one, _), stream in self._streams.items() if one == sender)

    def _pump(self, pair: tuple[str, str]) -> None:
        if pair in self._pumping or not self._streams.get(pair) or self._cut.get(pair):
            return
        self._pumping.add(pair)
        host = self.hosts[pair[1]]
        delay_s = host.service_s + self.random.expovariate(1 / self._delay_s) / 4
        self.timeline.after(delay_s, functools.partial(self._pass, pair))

    def _pass(self, pair: tuple[str, str]) -> None:
        self._pumping.discard(pair)
        host = self.hosts[pair[1]]
        stream = self._streams.get(pair)
        if not stream or self._cut.get(pair):
            return
        if host.is_paused:
            self._pumping.add(pair)
            self.timeline.after(0.05, functools.partial(self._pass, pair))
            return
        lane, rows = stream.popleft()
        if self.leaks and rows is not None and not self.rows_leaked and self.random.random() < 0.05:
            self.rows_leaked = rows.weight
            self.tell(f"{self.rows_leaked} rows from {pair[0]} to {pair[1]} vanish")
            rows = SimRows(())
        host.now(host.life, functools.partial(host.rows, pair[0], lane, rows))
        self._pump(pair)

    # --- faults ----------------------------------------------------------------------------------
    def _plan_faults(self) -> None:
        random = self.random
        kinds = [self._pause, self._cut_link, self._cut_link]
        if self.mood == "hard":
            kinds += [self._crash, self._isolate, self._cancel] if random.random() < 0.7 else [self._isolate]
        within_s = random.choice((1.0, 2.0, _FAULTS_S - 2))
        for _ in range(random.randint(1, 3)):
            self.timeline.after(random.uniform(0, within_s), random.choice(kinds))

    def _any(self) -> Host:
        """Those that have a part in it, mostly."""
        busy = [host for host in self.hosts.values() if host.is_up and not host.is_idle]
        some = busy if busy and self.random.random() < 0.9 else list(self.hosts.values())
        return self.random.choice(some)

    def _for_s(self) -> float:
        return self.random.choice((0.2, 0.8, 1.5) if self.mood == "mild" else (0.3, 1.5, 4.0, 9.0))

    def _pause(self) -> None:
        host, for_s = self._any(), self._for_s()
        if host.is_up and not host.is_paused:
            self.tell(f"pause {host.name} for {for_s} s")
            host.pause()
            self.timeline.after(for_s, functools.partial(self._resume, host, host.life))

    @staticmethod
    def _resume(host: Host, life: int) -> None:
        if host.life == life and host.is_paused:
            host.resume()

    def _cut_link(self) -> None:
        one = self._any().name
        other = self.random.choice([name for name in self.hosts if name != one] or [one])
        pairs = [(one, other), (other, one)]
        self._block(pairs if self.random.random() < 0.5 else [self.random.choice(pairs)])

    def _isolate(self) -> None:
        one = self._any().name
        self._block([pair for other in self.hosts if other != one for pair in ((one, other), (other, one))])

    def _block(self, pairs: list[tuple[str, str]]) -> None:
        for_s = self._for_s()
        self.tell(f"cut for {for_s} s: {', '.join(f'{sender}→{to}' for sender, to in pairs)}")
        for pair in pairs:
            self._cut[pair] = self._cut.get(pair, 0) + 1
        if for_s > _WAIT_S:
            self.timeline.after(_WAIT_S, functools.partial(self._notice, pairs))
        self.timeline.after(for_s, functools.partial(self._join, pairs))

    def _notice(self, pairs: list[tuple[str, str]]) -> None:
        """Who has no connection for so long loses the peer, and the channels with it."""
        for sender, to in pairs:
            if not self._cut.get((sender, to)):
                continue
            for one, other in ((sender, to), (to, sender)):
                self._lose_later(one, other)
            self._kept.pop((sender, to), None)
            if self._streams.pop((sender, to), None):
                self._break_later(sender, to, is_sending=True)
                self._break_later(to, sender, is_sending=False)

    def _join(self, pairs: list[tuple[str, str]]) -> None:
        for pair in pairs:
            if not self._cut.get(pair):
                continue
            self._cut[pair] -= 1
            if not self._cut[pair]:
                self._reconnect(pair)

    def _reconnect(self, pair: tuple[str, str]) -> None:
        """What was kept comes now; some of it had come before."""
        for body in self._kept.pop(pair, []):
            for _ in range(1 if self.random.random() < 0.5 else 2):
                self._post(*pair, body)
        self._pump(pair)

    def _lose_later(self, name: str, member: str) -> None:
        host, error = self.hosts[name], SiteError(f"site {member} is down", member=member)
        host.later(self.random.uniform(0, 0.5), functools.partial(host.lost, member, error))

    def _break_later(self, name: str, member: str, *, is_sending: bool) -> None:
        host, error = self.hosts[name], SiteError(f"the channel with {member} failed", member=member)
        host.later(self.random.uniform(0, 0.5), functools.partial(host.broke, error, is_sending=is_sending))

    def _crash(self) -> None:
        host = self._any()
        if self.are_faults_over or not host.is_up:
            return
        self.tell(f"crash {host.name}")
        host.crash()
        if host.name == BOSS and not self.is_concluded:
            self.is_concluded, self.answer = True, SiteError("the manager is gone")
        for sender, to in [pair for pair in self._streams if host.name in pair]:
            had = self._streams.pop((sender, to))
            other = to if sender == host.name else sender
            if had:
                self._break_later(other, host.name, is_sending=other == sender)
        for pair in [pair for pair in self._kept if host.name in pair]:
            del self._kept[pair]
        # Some have no session with it, and find out by what it answers after its start, or by its silence.
        for name in self.hosts:
            if name != host.name and self.random.random() < 0.7:
                self._lose_later(name, host.name)
        self.timeline.after(self.random.choice((0.05, 0.3, 2.5)), host.restart)

    def _cancel(self) -> None:
        self.tell("cancel")
        boss = self.hosts[BOSS]
        boss.now(boss.life, functools.partial(boss.cancel, Cancelled("nobody wants it any more")))

    def _heal(self) -> None:
        self.tell("the faults are over")
        self.are_faults_over = True
        self._loss = self._twice = 0.0
        for pair in [pair for pair, count in self._cut.items() if count]:
            self._cut[pair] = 0
            self._reconnect(pair)
        for host in self.hosts.values():
            host.restart()
            if host.is_paused:
                host.resume()


_KINDS: dict[str, type[GroupByMessage]] = {kind.__name__: kind for kind in get_args(GroupByMessage)}


def run_seed(seed: int) -> Outcome:
    """Run one seed to its end."""
    world = World(seed)
    violation = ""
    try:
        world.run()
    except Violation as error:
        violation = str(error)
    except Exception as error:
        # A core that stumbles over its own assertion, or accuses a peer, is caught all the same.
        violation = f"{type(error).__name__}: {error}"
    timeline = world.timeline
    is_complete = world.is_concluded and world.answer is None
    mood = f"{world.mood}, {len(world.hosts)} members, {world.keys} keys"
    return Outcome(
        seed, violation, timeline.digest, timeline.steps, timeline.now, int(is_complete), int(not is_complete),
        (mood, *world.story),
    )  # fmt: skip
