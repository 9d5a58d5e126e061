"""One seed of commits: members with disks and clocks of their own, clients, faults, and what must hold at the end."""

from __future__ import annotations

import functools
from random import Random

import msgspec

from sim.loop import Violation
from sim.tables import check
from sim.tables.altering import WIDE, first_table, next_table
from sim.tables.clients import (
    ACCOUNTS,
    CLAIMS,
    LISTS,
    Attempt,
    Client,
    Commit,
    Inquire,
    Pause,
    Rows,
    Scan,
    Snapshot,
    Waiting,
    Wish,
    rows_of,
)
from sim.tables.moving import MovedShard, Mover, ReadMoved, first_map
from sim.tables.site import Fact, Place, ReadRows, RowsRead, Site
from sim.tables.time import Timeline
from sim.world import Outcome
from skerry.model.commits import TransactionId
from skerry.model.errors import SiteError
from skerry.model.limits import CommitLimits
from skerry.model.sharded import OwnTable
from skerry.tables.clock import COUNTER_BITS
from skerry.tables.instructions import Tell
from skerry.wire.commit_messages import State

NAMES = ("bergen", "oslo", "tromso", "alta")
LITE = "lite"
_FAULTS_S = 8.0
_SETTLE_S = 90.0
_READ_S = 4.0
_SLACK_S = 1.0


class _Waits(msgspec.Struct):
    """A client that waits: for answers named `keys`; asked through `member`, whose crash ends the wait."""

    client: Client
    going: Waiting
    member: str
    keys: set[str]
    replies: list[RowsRead]
    is_commit: bool


class World:
    def __init__(self, seed: int) -> None:
        self.random = random = Random(f"skerry tables {seed}")
        self.timeline = Timeline()
        self.story: list[str] = []
        # Some mistakes show only where members lose their power again and again, just when they write.
        self.is_stormy = random.random() < 0.25
        # In a few seeds ids are forgotten while clients still ask: then they must be told that nobody knows.
        self.forgets = random.random() < 0.1
        self.limits = CommitLimits(
            lock_wait_s=1.0,
            vote_wait_s=2.0,
            read_wait_s=2.0,
            answer_wait_s=4.0,
            reach_wait_s=1.0,
            staged_wait_s=1.0,
            repeat_s=random.choice((0.2, 0.5)),
            ids_asked_s=3.0 if self.forgets else 3600.0,
            ids_kept_s=4.0 if self.forgets else 4000.0,
        )
        self._linking = Random(f"skerry tables linking {seed}")  # who notices that a link is gone
        names = list(NAMES[: random.randint(2, 4)])
        self.disks = tuple(names)
        self._commits_on_disk: set[Fact] = set()
        self.wide = first_table(self.disks)
        self.sites = {name: self._site(name) for name in [*names, *([LITE] if random.random() < 0.5 else [])]}
        self.accounts: list[Place] = [(ACCOUNTS, f"account {n}".encode()) for n in range(random.randint(3, 6))]
        self.lists: list[Place] = [(LISTS, f"list {n}".encode()) for n in range(random.randint(2, 4))]
        self.claims: list[Place] = [(CLAIMS, f"claim {n}".encode()) for n in range(random.randint(2, 4))]
        self.planned_version = 1
        # Beside all that: a disk that is full for a while, a table that is altered.
        self.beside = beside = Random(f"skerry tables beside {seed}")
        self.fills = beside.random() < 0.3
        self.wides: list[Place] = [(WIDE, f"wide {n}".encode()) for n in range(3)]
        self.wide_of: dict[TransactionId, OwnTable] = {}
        self.are_faults_over = False
        self.scans: list[tuple[str, int, dict[bytes, bytes]]] = []
        self.appended: list[tuple[TransactionId, bytes, bytes]] = []
        self.acknowledged: set[TransactionId] = set()
        self.attempts: list[Attempt] = []
        self.looks: list[tuple[str, int, Snapshot]] = []
        self.complete = self.failed = 0
        self.clients = [Client(f"c{n}", self, Random(random.random())) for n in range(random.randint(2, 5))]
        if beside.random() < 0.4:
            self.clients += [Client(f"a{n}", self, Random(beside.random()), alters=True) for n in range(2)]
        # And in half of the seeds a table whose buckets move.
        moving = Random(f"skerry tables moving {seed}")
        self.moves = moving.random() < 0.5
        if self.moves:
            self.clients += [Client(f"m{n}", self, Random(moving.random()), moves=True) for n in range(3)]
            mover = Mover(self, Random(moving.random()))
            for site in self.sites.values():
                site.mover, site.keeper = mover, self.disks[0]
            self.mover = mover
        self._cut: dict[tuple[str, str], int] = {}
        self._loss = random.choice((0.0, 0.02, 0.15))
        self._twice = random.choice((0.0, 0.1))
        self._delay_s = random.choice((0.002, 0.02, 0.1))
        self._waits: dict[int, _Waits] = {}
        self._waiting_for: dict[str, int] = {}
        self._numbers = 0

    def _site(self, name: str) -> Site:
        random = Random(self.random.random())
        site = Site(
            name, self.timeline, random, self.limits, self._send, functools.partial(self._answered, name),
            has_disk=name != LITE,
        )  # fmt: skip
        site.commits_on_disk = self._commits_on_disk
        site.wide = self.wide
        site.moved = MovedShard(name, first_map(self.disks))
        site.reach = functools.partial(self._reaches, name)
        site.blow = functools.partial(self._crash, site)
        site.wall_offset_s = self.random.uniform(-1.5, 1.5)
        site.wall_rate = self.random.choice((1.0, 0.97, 1.03))
        return site

    def home(self, place: Place) -> str:
        """The member that has this key."""
        table, key = place
        return self.disks[(table * 31 + sum(key)) % len(self.disks)]

    def tell(self, line: str) -> None:
        self.story.append(f"{self.timeline.now:9.4f} {line}")

    # --- one run ---------------------------------------------------------------------------------
    def run(self) -> None:
        for site in self.sites.values():
            site.start()
        for client in self.clients:
            self._go_on(client, client.run(), None)
        self._plan_faults()
        self.timeline.after(_FAULTS_S, self._heal)
        if not self.timeline.run(self._is_over, _FAULTS_S + _SETTLE_S):
            raise Violation(f"not over {_SETTLE_S:.0f} s after the last fault: {self._open()}")
        check.final(self)

    def _is_over(self) -> bool:
        return (
            self.are_faults_over
            and all(client.is_over for client in self.clients)
            and all(site.is_up and site.commits.is_idle for site in self.sites.values())
            and len({self.sites[name].moved.buckets for name in self.disks}) == 1
        )

    def _open(self) -> str:
        clients = [client.name for client in self.clients if not client.is_over]
        busy = [name for name, site in self.sites.items() if not (site.is_up and site.commits.is_idle)]
        return f"clients {clients}, members {busy}"

    # --- clients ---------------------------------------------------------------------------------
    def _go_on(self, client: Client, going: Waiting, answer: object) -> None:
        try:
            wish = going.send(answer)
        except StopIteration:
            return
        self._fulfil(client, going, wish)

    def _fulfil(self, client: Client, going: Waiting, wish: Wish) -> None:
        if isinstance(wish, Pause):
            self.timeline.after(wish.seconds, lambda: self._go_on(client, going, None))
            return
        site = self.sites[wish.member]
        if not site.is_up:
            self.timeline.after(0.1, lambda: self._go_on(client, going, None))
            return
        self._numbers += 1
        number = self._numbers
        waits = self._waits[number] = _Waits(client, going, wish.member, set(), [], isinstance(wish, Commit))
        match wish:
            case Rows():
                self._read(site, number, waits, wish)
                self.timeline.after(_READ_S, lambda: self._give_up(number))
            case Scan():
                for member in sorted({owner for *_, owner in wish.buckets.groups}):
                    read = f"{number} {member}"
                    self._await(waits, number, f"read {read}")
                    self._send(site.name, member, ReadMoved(read, wish.read_ts, wish.buckets.version))
                self.timeline.after(_READ_S, lambda: self._give_up(number))
            case Commit():
                self._await(waits, number, f"commit {wish.txn}")
                self.tell(f"{client.name} commits {wish.txn} at {sorted(wish.parts)} through {site.name}")
                until = self.limits.reach_wait_s + self.limits.answer_wait_s + self.limits.staged_wait_s + _SLACK_S
                self.timeline.after(until, lambda: self._unanswered(number, f"{wish.txn} at {site.name}"))
                site.do(site.commits.submit(wish.txn, wish.first_start, wish.read_ts, wish.parts, site.at))
            case Inquire():
                self._await(waits, number, f"outcome {wish.query}")
                until = self.limits.answer_wait_s + _SLACK_S
                self.timeline.after(until, lambda: self._unanswered(number, f"{wish.query} asked at {site.name}"))
                site.do(site.commits.inquire(wish.query, wish.first_start, frozenset(self.disks), site.at))

    def _read(self, site: Site, number: int, waits: _Waits, wish: Rows) -> None:
        for member in sorted({self.home(place) for place in wish.places}):
            places = tuple(place for place in wish.places if self.home(place) == member)
            read = f"{number} {member}"
            self._await(waits, number, f"read {read}")
            self._send(site.name, member, ReadRows(read, wish.read_ts, places))

    def _await(self, waits: _Waits, number: int, key: str) -> None:
        waits.keys.add(key)
        self._waiting_for[f"{waits.member} {key}"] = number

    def carry(self, sender: str, to: str, message: object) -> None:
        """For who moves rows."""
        self._send(sender, to, message)

    def _answered(self, member: str, key: str, answer: object) -> None:
        if self.moves and member == self.disks[0] and self.mover.answered(key, answer):
            self.tell(f"the keeper is told {answer}")
            return
        number = self._waiting_for.pop(f"{member} {key}", None)
        waits = self._waits.get(number) if number is not None else None
        if number is None or waits is None:
            return
        if isinstance(answer, RowsRead):
            waits.replies.append(answer)
            waits.keys.discard(key)
            if answer.failure:
                self._end(number, None)
            elif not waits.keys:
                self._end(number, rows_of(waits.replies))
            return
        self.tell(f"{waits.client.name} is told {answer}")
        self._end(number, answer)

    def _end(self, number: int, answer: object) -> None:
        """The client goes on a little later: what the member still does in the same breath comes first."""
        waits = self._waits.pop(number)
        for key in waits.keys:
            self._waiting_for.pop(f"{waits.member} {key}", None)
        self.timeline.after(0.001, lambda: self._go_on(waits.client, waits.going, answer))

    def _give_up(self, number: int) -> None:
        if number in self._waits:
            self._end(number, None)

    def _unanswered(self, number: int, what: str) -> None:
        if number in self._waits:
            raise Violation(f"nobody has answered about {what}")

    # --- network ---------------------------------------------------------------------------------
    def _send(self, sender: str, to: str, message: object) -> None:
        if sender == to:
            self._carry(sender, to, message, 0.0)
        elif not self._cut.get((sender, to)) and self.random.random() >= self._loss:
            self._carry(sender, to, message, self.random.expovariate(1 / self._delay_s))
            if self.random.random() < self._twice:
                self._carry(sender, to, message, self.random.uniform(0, self.random.choice((0.1, 3.0))))

    def _carry(self, sender: str, to: str, message: object, delay_s: float) -> None:
        life = self.sites[to].crashes

        def arrive() -> None:
            # A session ends with the life of its member. Commits do without that, but for a disk that is full.
            if self.sites[to].is_up and not (self.fills and self.sites[to].crashes != life):
                self.sites[to].receive(sender, message)

        self.timeline.after(delay_s, arrive)

    def _is_linked(self, one: str, other: str) -> bool:
        return self.sites[other].is_up and not self._cut.get((one, other)) and not self._cut.get((other, one))

    def _reaches(self, sender: str, to: str) -> bool:
        """Some have not noticed that a link is gone, and send; the others dial, and may hear what comes of it."""
        if self._is_linked(sender, to) or self._linking.random() < 0.3:
            return True
        self.timeline.after(self._linking.expovariate(5), functools.partial(self._dialled, sender, to))
        return False

    def _dialled(self, sender: str, to: str) -> None:
        site = self.sites[sender]
        if site.is_up and self._is_linked(sender, to):
            site.do(site.commits.up(to, site.at))
        elif site.is_up and self._linking.random() < 0.5:
            site.do(site.commits.lost(to, SiteError(f"site {to} is down"), site.at))

    # --- faults ----------------------------------------------------------------------------------
    def _plan_faults(self) -> None:
        random = self.random
        for _ in range(self.beside.randint(1, 5) if self.fills else 0):
            self.timeline.after(self.beside.uniform(0, _FAULTS_S), self._fill_disk)
        kinds = [self._lose_power, self._light_fuse, self._cut_link, self._isolate, self._jump, self._change_tables]
        weights = [random.choice((0, 1, 3)) for _ in kinds]
        if not any(weights):
            return  # a quiet seed
        if self.is_stormy:
            weights[kinds.index(self._light_fuse)] = 10
        for _ in range(random.randint(15, 40) if self.is_stormy else random.randint(1, 12)):
            fault = random.choices(kinds, weights)[0]
            self.timeline.after(random.uniform(0, _FAULTS_S), fault)

    def _fill_disk(self) -> None:
        site = self.sites[self.beside.choice(self.disks)]
        if not self.are_faults_over:
            self.tell(f"the disk of {site.name} is full")
            site.is_full = True
            self.timeline.after(self.beside.uniform(0.1, 3.0), functools.partial(self._make_room, site))

    def _make_room(self, site: Site) -> None:
        self.tell(f"the disk of {site.name} has room")
        site.is_full = False

    def alter(self, random: Random) -> None:
        """ALTER TABLE: whoever writes next plans with it, members learn of it one after the other."""
        self.wide = next_table(self.wide, random)
        self.tell(f"wide has {[f'{column.name} {column.id}' for column in self.wide.columns]}")
        for site in self.sites.values():
            self.timeline.after(random.uniform(0, 0.3), functools.partial(site.learn, self.wide))

    def _any(self) -> Site:
        return self.random.choice(list(self.sites.values()))

    def _lose_power(self) -> None:
        site = self._any()
        if site.is_up and not self.are_faults_over:
            self._crash(site)

    def _light_fuse(self) -> None:
        """Power is lost at one of the next instructions, between a sync and what follows it, or within a sync."""
        site = self._any()
        if site.is_up and not self.are_faults_over:
            if self.random.random() < 0.5:
                site.fuse = self.random.randint(1, 12)
            else:
                site.sync_fuse = self.random.randint(1, 4)

    def _crash(self, site: Site) -> None:
        self.tell(f"{site.name} loses its power")
        # Nothing but its clock keeps reads in their order that no mark on disk knows of, in this life or in one before:
        # then that is not set back.
        clock = site.commits.clock
        is_unkept = clock.is_unkept or site.unkept_ts > clock.durable
        site.unkept_ts = max(site.unkept_ts, clock.last) if is_unkept else 0
        if is_unkept:
            behind_us = (site.unkept_ts >> COUNTER_BITS) - site.at.wall_us
            site.wall_offset_s += max(0.0, behind_us / 1e6 + 0.001)
        site.crash()
        for number, waits in list(self._waits.items()):
            if waits.member == site.name:
                self._end(number, None)
        if self.random.random() < 0.5 and not is_unkept:
            # A clock without a battery; but time goes on, and nobody is as wrong as that for ever.
            site.wall_offset_s = max(-4.0, site.wall_offset_s - self.random.uniform(0, 3.0))
        down_s = 0.05 if self.is_stormy else self.random.choice((0.05, 0.3, 2.5))
        self.timeline.after(down_s, lambda: self._restart(site))

    def _restart(self, site: Site) -> None:
        if not site.is_up:
            self.tell(f"{site.name} starts")
            site.start()

    def _cut_link(self) -> None:
        sender, to = self.random.sample(list(self.sites), 2)
        self._block([(sender, to)] if self.random.random() < 0.5 else [(sender, to), (to, sender)])

    def _isolate(self) -> None:
        one = self._any().name
        self._block([pair for other in self.sites if other != one for pair in ((one, other), (other, one))])

    def _block(self, pairs: list[tuple[str, str]]) -> None:
        self.tell(f"cut: {', '.join(f'{sender}→{to}' for sender, to in pairs)}")
        for pair in pairs:
            self._cut[pair] = self._cut.get(pair, 0) + 1
        # Some notice at once that a link is gone, others by silence.
        for sender, to in pairs:
            site = self.sites[to]
            if site.is_up and self.random.random() < 0.3:
                site.do(site.commits.lost(sender, SiteError(f"site {sender} is down"), site.at))

        def join() -> None:
            for pair in pairs:
                self._cut[pair] = max(0, self._cut.get(pair, 0) - 1)

        self.timeline.after(self.random.choice((0.3, 1.5, 5.0)), join)

    def _jump(self) -> None:
        site = self._any()
        by_s = self.random.choice((-1, 1)) * self.random.choice((0.2, 2.0, 2.0, 12.0))
        if not self.are_faults_over and (by_s > 0 or site.may_be_set_back):
            self.tell(f"the clock of {site.name} jumps by {by_s} s")
            site.wall_offset_s += by_s

    def _change_tables(self) -> None:
        self.planned_version += 1
        for site in self.sites.values():
            version = self.planned_version
            self.timeline.after(self.random.uniform(0, 0.3), functools.partial(self._know, site, version))

    @staticmethod
    def _know(site: Site, version: int) -> None:
        site.version = max(site.version, version)

    def _heal(self) -> None:
        self.tell("the faults are over")
        self.are_faults_over = True
        self._loss = self._twice = 0.0
        self._cut.clear()
        for site in self.sites.values():
            site.fuse = site.sync_fuse = None
            site.is_full = False
            self._set_clock(site)
            self._restart(site)

    def _set_clock(self, site: Site) -> None:
        """As soon as that may be, if it goes back."""
        if site.wall_offset_s <= 0 or site.may_be_set_back:
            site.wall_rate, site.wall_offset_s = 1.0, 0.0
        else:
            self.timeline.after(0.1, functools.partial(self._set_clock, site))

    # --- what must hold at any time --------------------------------------------------------------
    def check_total(self, client: str, rows: Snapshot) -> None:
        total = sum(int(row or b"0") for row in rows.values())
        if total:
            raise Violation(f"{client} read accounts whose sum is {total}, not 0: {rows}")

    def check_agrees(self, before: State, told: Tell) -> None:
        if before is not told.state:
            raise Violation(f"{told.query} was said to be {before.name}, and then {told.state.name}")


def run_seed(seed: int) -> Outcome:
    """Run one seed to its end."""
    world = World(seed)
    violation = ""
    try:
        world.run()
    except Violation as error:
        violation = str(error)
    except Exception as error:
        # A core that stumbles over its own assertion is caught all the same.
        violation = f"{type(error).__name__}: {error}"
    timeline = world.timeline
    mood = f"{len(world.sites)} members, {len(world.clients)} clients"
    return Outcome(
        seed, violation, timeline.digest, timeline.steps, timeline.now, world.complete, world.failed,
        (mood, *world.story),
    )  # fmt: skip
