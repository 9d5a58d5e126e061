"""One seed: a cluster, its queries, what goes wrong and when, and whether all of it held."""

from __future__ import annotations

import asyncio
import logging
from random import Random

import msgspec

from sim import check
from sim.cluster import Cluster, Complaints, LinkOf
from sim.engine import Temper
from sim.loop import Violation
from sim.network import Weather
from sim.queries import make_query, work
from skerry.model.limits import MIB, Limits

COMPLAINTS = Complaints()
_START = 1000.0  # of virtual time
_SETTLE_S = 60.0  # after the last fault every query is over by then, and nothing is left after as long again


class Outcome(msgspec.Struct, frozen=True):
    seed: int
    violation: str
    digest: int
    steps: int
    virtual_s: float
    complete: int = 0
    failed: int = 0
    story: tuple[str, ...] = ()


class World:
    """`mild` faults are waited out (docs/protocol.md, 3.3 and 4.3): no query may fail for them."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random = Random(f"skerry {seed}")
        self.mood = random.choices(["calm", "mild", "hard"], [1, 4, 5])[0]
        self.is_hard = self.mood == "hard"
        self.limits = _limits(random, self.is_hard)
        temper = Temper(
            retries_tasks=random.random() < 0.3,
            pipelined=random.random() < 0.7,
            slots=random.choice([4, 8]) if self.is_hard else 64,
            pause_s=random.choice([0.001, 0.02, 0.2]),
            deaf_share=0.1 if self.is_hard and random.random() < 0.1 else 0.0,
        )
        weather = Weather(
            delay_s=random.choice([0.0005, 0.005, 0.05]),
            slow_share=random.choice([0.0, 0.1, 0.4]),
            slow_s=random.choice([0.1, 0.6]),
            # Not where all must be waited out: after a loss that one end notices late there is little time left.
            late_share=0.04 if self.is_hard else 0.0,
            window_bytes=random.choice([1000, 16384]),
            write_high_bytes=random.choice([500, 16384]),
            bytes_per_s=random.choice([2e4, 1e6]),
        )
        count = random.randint(3, 5)
        self.cluster = Cluster(seed, count, _links(random, count), self.limits, weather, temper)
        self.story: list[str] = []

    # --- a run -----------------------------------------------------------------------------------
    async def run(self) -> None:
        cluster, random = self.cluster, self.random
        for name in cluster.names:
            await cluster.boot(name)
        queries = [
            make_query(random, number, list(cluster.names), may_fail=self.is_hard, may_quit=random.random() < 0.7)
            for number in range(random.randint(1, 4))
        ]
        if len(queries) > 1 and random.random() < 0.3:  # the same plan again: participants have it
            first = queries[0]
            queries[-1] = msgspec.structs.replace(
                first, query=msgspec.structs.replace(first.query, local=queries[-1].query.local), rows=[]
            )
        for query in queries:
            plan = "; ".join(f"{f.member}: {work(f)} → {' '.join(f.output.receivers)}" for f in query.plan.fragments)
            self._say(f"{query.query} {query.shape} {query.policy.value}, at {query.start_s:.4f}: {plan}")
        cluster.queries = {query.query: query for query in queries}
        asked = [asyncio.ensure_future(cluster.ask(query)) for query in queries]
        if self.mood != "calm":
            await self._trouble()
        self._say("the faults are over")
        await asyncio.wait(asked, timeout=_SETTLE_S)
        for query in queries:
            self._say(f"{query.query} {query.shape}: {query.outcome or 'not over'}")
            if not query.outcome:
                cluster.violated(f"query {query.query} ({query.shape}): not over")
            check.judge(cluster, query, must_succeed=not self.is_hard)
        for task in asked:
            if task.done():
                task.result()
        await self._settle()

    async def _settle(self) -> None:
        cluster = self.cluster
        until = cluster.loop.now + _SETTLE_S
        while left := check.leftovers(cluster):
            if cluster.loop.now > until:
                cluster.violated(f"left behind: {'; '.join(left[:8])}")
            await asyncio.sleep(0.5)
        if COMPLAINTS.receipts_missing and not self.is_hard:
            cluster.violated("a receipt did not come, or named something left")
        if self.random.random() < 0.2:
            await asyncio.sleep(self.limits.marker_s + 1)
            if left := check.markers(cluster) + check.leftovers(cluster):
                cluster.violated(f"left behind: {'; '.join(left)}")
        if self.random.random() < 0.3:
            await cluster.stop()

    def _say(self, what: str) -> None:
        self.story.append(f"{self.cluster.loop.now - _START:9.4f} {what}")

    # --- faults ----------------------------------------------------------------------------------
    async def _trouble(self) -> None:
        random = self.random
        kinds = [self._cut, self._half_cut, self._break_link, self._break_link, self._one_way, self._part, self._pause]
        if self.is_hard:
            kinds += [self._crash, self._crash, self._long_part]
        faults = []
        for _ in range(random.randint(1, 6)):
            await asyncio.sleep(random.random() * 1.2)
            faults.append(asyncio.ensure_future(random.choice(kinds)()))
        await asyncio.gather(*faults)

    async def _cut(self, half: bool = False) -> None:
        pairs = [pair for pair in self.cluster.network.open_pairs() if pair[0].process.host != pair[1].process.host]
        # Busy connections are where the trouble is.
        pairs = [pair for pair in pairs if pair[0].kind == "data" or self.random.random() < 0.5] or pairs
        if pairs:
            pair = self.random.choice(pairs)
            self._say(f"{'half ' if half else ''}cut {pair[0].kind} {pair[0].process}-{pair[1].process}")
            self.cluster.network.cut(pair, half=half)

    async def _break_link(self) -> None:
        """A busy link is gone for a while, and its connections with it."""
        pairs = [pair for pair in self.cluster.network.open_pairs() if pair[0].kind == "data"]
        if pairs:
            hosts = {host: name for name, host in self.cluster.hosts.items()}
            one, other = (hosts[end.process.host] for end in self.random.choice(pairs))
            for pair in pairs:
                if {hosts[end.process.host] for end in pair} == {one, other}:
                    self.cluster.network.cut(pair, half=self.random.random() < 0.3)
            await self._block([(one, other), (other, one)], self.random.uniform(0.1, 3))

    async def _half_cut(self) -> None:
        await self._cut(half=True)

    async def _one_way(self) -> None:
        one, other = self.random.sample(list(self.cluster.hosts), 2)
        await self._block([(one, other)], self.random.uniform(0.2, 3.5))

    async def _part(self) -> None:
        names = list(self.cluster.names)
        self.random.shuffle(names)
        at = self.random.randint(1, len(names) - 1)
        across = [(one, other) for one in names[:at] for other in names[at:]]
        await self._block(across + [(other, one) for one, other in across], self.random.uniform(0.1, 3))

    async def _long_part(self) -> None:
        one, other = self.random.sample(list(self.cluster.hosts), 2)
        both = [(one, other), (other, one)][: self.random.randint(1, 2)]
        seconds = self.random.choice([self.limits.wait_s + 3, 30.0])
        self.cluster.loop.create_task(self._must_notice(both[0]))
        await self._block(both, seconds)

    async def _block(self, pairs: list[tuple[str, str]], seconds: float) -> None:
        hosts = self.cluster.hosts
        directions = [(hosts[one], hosts[other]) for one, other in pairs]
        self._say(f"{', '.join(f'{one}→{other}' for one, other in pairs)} cut for {seconds:.2f} s")
        self.cluster.network.block(directions)
        await asyncio.sleep(seconds)
        self._say(f"{', '.join(f'{one}→{other}' for one, other in pairs)} open again")
        self.cluster.network.unblock(directions)

    async def _must_notice(self, direction: tuple[str, str]) -> None:
        """Who hears nothing of a peer for three heartbeats has no link to it."""
        deaf_to, name = direction
        site, pauses = self.cluster.sites.get(name), self.cluster.pauses
        is_paused = site is None or site.process.is_paused
        await asyncio.sleep(self.limits.heartbeat_s * (self.limits.heartbeats_missed + 1) + 0.2)
        if site is None or self.cluster.sites.get(name) is not site or is_paused or pauses != self.cluster.pauses:
            return  # who slept itself may listen a little longer
        if site.member.peers.state(deaf_to) == "up":
            self.cluster.violated(f"{name} has heard nothing of {deaf_to}, and calls it up")

    async def _pause(self) -> None:
        name = self.random.choice(list(self.cluster.names))
        site = self.cluster.sites.get(name)
        if site is None or site.process.is_paused or not site.is_up:
            return
        seconds = self.random.choice([0.5, 2.0, 3.5, *([9.0] if self.is_hard else [])]) * self.random.random()
        self._say(f"pause {name} for {seconds:.2f} s")
        self.cluster.pause(name)
        await asyncio.sleep(seconds)
        if self.cluster.sites.get(name) is site:
            self._say(f"{name} goes on")
            self.cluster.resume(name)

    async def _crash(self) -> None:
        name = self.random.choice(list(self.cluster.names))
        site = self.cluster.sites.get(name)
        if site is None or not site.is_up:
            return
        silently = self.random.random() < 0.4
        self._say(f"{name} {'loses its power' if silently else 'is killed'}")
        self.cluster.crash(name, silently=silently)
        await asyncio.sleep(self.random.random() ** 2 * 6)
        if silently:
            self.cluster.network.power_on(self.cluster.hosts[name])
        self._say(f"{name} starts again")
        await self.cluster.boot(name)


def _limits(random: Random, is_hard: bool) -> Limits:
    """Small windows, spools and batches, so that all of them fill; times as in a real cluster, or shorter."""
    # Now and then a spool that is smaller than what a receiver's window lets wait for an ack.
    is_tight = is_hard and random.random() < 0.1
    batch_rows = random.choice([4, 16])
    return Limits(
        batch_rows=batch_rows,
        # Few rows go into the plan of the job that reads them, in half of the runs.
        small_edge_bytes=0 if batch_rows == 4 else 2000,
        batch_bytes=2000,
        receive_bytes=random.choice([1000, 100_000]),
        first_credits_bytes=20_000 if is_tight else random.choice([1, 700, 3000, 20_000]),
        wait_s=8.0,
        login_s=random.choice([1.5, 2.5]),
        stop_s=4.0 if is_hard else 12.0,
        marker_s=20.0,
        reconnect_max_s=1.0,
        spool_memory_bytes=0 if is_tight else random.choice([0, 1500, 6000, 100_000]),
        spool_disk_bytes=2500 if is_tight else random.choice([3000, 20_000, MIB]) if is_hard else MIB,
        sink_stalled_s=2.0,
        query_timeout_s=300.0,
    )


def _paths(cluster: Cluster) -> str:
    links = [f"{link.sender}→{link.receiver}" for link in cluster.config.links]
    return f", links {' '.join(links)}" if links else ""


def _links(random: Random, count: int) -> list[LinkOf]:
    """Mostly none: every member reaches every other. Else a tree, so that rows pass relays; slow links compress."""
    if random.random() < 0.75:
        return []
    order = random.sample(range(count), count)
    return [(order[random.randrange(at)], order[at], random.choice([10.0, 10_000.0])) for at in range(1, count)]


def run_seed(seed: int) -> Outcome:
    """Run one seed to its end."""
    world = World(seed)
    cluster = world.cluster
    COMPLAINTS.cluster, COMPLAINTS.receipts_missing = cluster, False
    cluster.loop.every_steps = lambda: check.watch(cluster)
    violation = ""
    try:
        cluster.loop.run(world.run(), _START + 300)
    except Violation as error:
        violation = str(error)
    except Exception as error:
        violation = f"the simulation itself failed: {type(error).__name__}: {error}"
        logging.getLogger("sim").exception("seed %d", seed)
    finally:
        COMPLAINTS.cluster = None
        cluster.dispose()
    outcomes = [query.outcome for query in cluster.queries.values()]
    return Outcome(
        seed,
        violation,
        cluster.network.digest,
        cluster.loop.steps,
        cluster.loop.now - _START,
        outcomes.count("complete"),
        sum(outcome.startswith("error") for outcome in outcomes),
        (f"{world.mood}, {len(cluster.names)} members{_paths(cluster)}", *world.story),
    )
