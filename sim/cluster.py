"""A cluster of real members in one simulated network, its queries and its readers."""

from __future__ import annotations

import asyncio
import functools
import logging
import traceback
from collections.abc import Callable
from random import Random
from typing import Any, assert_never

import msgspec

from sim.engine import SimEngine, Temper, rows_of
from sim.loop import Process, SimLoop
from sim.network import Network, Weather
from sim.queries import Query
from sim.taps import Ledger, tap_maker
from skerry.config import Config, Link, parse
from skerry.member.initiator import Initiated
from skerry.member.inputs import Arriving
from skerry.member.relay import relays_of
from skerry.member.result import Counted, Result
from skerry.member.server import Member
from skerry.model.errors import Cancelled, SiteError, SkerryError
from skerry.model.ids import ChannelId, QueryId
from skerry.model.limits import Limits
from skerry.wire.proof import NONCE_BYTES, Secret

NAMES = ("oslo", "bergen", "tromso", "bodo", "molde")
_PORT = 7100
# Why a peer may be lost (docs/protocol.md, 3.3), between members that keep to the protocol.
_LOSSES = ("connection refused at", "no connection for", "it restarted", "it gave up waiting", "is stopping")

LinkOf = tuple[int, int, float]  # two members, by number, and Mbit/s


class Site:
    """One incarnation of a member, with its Spark."""

    def __init__(self, member: Member, engine: SimEngine, process: Process, epoch: int) -> None:
        self.member = member
        self.engine = engine
        self.process = process
        self.epoch = epoch
        self.is_up = False
        self.begun: set[QueryId] = set()  # here, when the checks last looked
        self.over: dict[QueryId, float] = {}  # no longer here, since when


class Cluster:
    """`violated` notes what must not happen; the loop stops at it."""

    def __init__(
        self,
        seed: int,
        count: int,
        links: list[tuple[int, int, float]],
        limits: Limits,
        weather: Weather,
        temper: Temper,
    ) -> None:
        """Without `links` all members reach all."""
        self.seed = seed
        self.limits = limits
        self.temper = temper
        self.network = Network(Random(f"{seed} network"), weather, tap_maker(self))
        self.loop = SimLoop(self.network)  # type: ignore[abstract]  # members use no more of a loop than it has
        self.names = NAMES[:count]
        both = [(NAMES[one], NAMES[other], mbit) for one, other, mbit in links]
        both += [(other, one, mbit) for one, other, mbit in both]
        known = tuple(Link(one, other, mbit) for one, other, mbit in both)
        self.config = msgspec.structs.replace(_config(count), limits=limits, links=known)
        self.sites: dict[str, Site] = {}
        self.ledgers: dict[tuple[Any, ...], Ledger] = {}
        self.queries: dict[QueryId, Query] = {}
        self.hosts = {name: self.config.members[name].address.rpartition(":")[0] for name in self.names}
        self.pauses = 0
        self._epochs = 0
        self._dead: list[Site] = []  # kept whole: a finaliser that runs early is a run that differs

    def violated(self, what: str) -> None:
        self.loop.errors.append(what)

    # --- members ---------------------------------------------------------------------------------
    async def boot(self, name: str) -> None:
        """Start a member, or start it again under a new epoch."""
        self._epochs += 1
        epoch, host = self._epochs, self.hosts[name]
        process, spark = Process(f"{name}.{epoch}", host), Process(f"{name}.{epoch} spark", host)

        async def start() -> None:
            engine = SimEngine(self, spark, self.temper, self.limits, f"{self.seed} {name} {epoch}")
            random = Random(f"{self.seed} {name} {epoch}")
            nonces = Random(f"{self.seed} {name} {epoch} nonces")
            secret = Secret([b"simulated"], lambda: nonces.randbytes(NONCE_BYTES))
            member = Member(self.config, name, engine, random, epoch, secret=secret)
            member.peers.on_peer_lost = functools.partial(self._lost, name, member.peers.on_peer_lost)
            site = self.sites[name] = Site(member, engine, process, epoch)
            await site.member.start()
            site.is_up = True

        await self.loop.create_task(start(), context=process.context.copy())

    def _lost(self, name: str, tell: Callable[[str, SiteError], None], peer: str, error: SiteError) -> None:
        """Faults of links and hosts are what a peer may be lost to; that somebody broke the protocol is none."""
        if not any(reason in error.message for reason in _LOSSES):
            self.violated(f"{name} has lost {peer}: {error.message}")
        tell(peer, error)

    def crash(self, name: str, *, silently: bool) -> None:
        """kill -9, or the host's power: everything of the member is gone at once."""
        site = self.sites.pop(name)
        self._dead.append(site)
        for process in (site.process, site.engine.process):
            process.is_alive = False
            process.held.clear()
            if not silently:
                self.network.kill(process)
        if silently:
            self.network.vanish(self.hosts[name])
        site.member._directory.remove()
        for query in self.queries.values():
            if query.query.initiator == name and not query.outcome and query.start_s < self.loop.now - 1000:
                query.outcome = "lost"

    def pause(self, name: str) -> None:
        self.pauses += 1
        self.sites[name].process.is_paused = True

    def resume(self, name: str) -> None:
        if name in self.sites:
            self.loop.resume(self.sites[name].process)

    def arriving(self, channel: ChannelId, process: Process) -> Arriving | None:
        """The channel as its receiver has it, if it still does."""
        for site in self.sites.values():
            if site.process is process:
                return site.member.inputs._arriving.get(channel.query, {}).get(channel)
        return None

    # --- queries ---------------------------------------------------------------------------------
    async def ask(self, query: Query) -> None:
        """Start the query when its time comes, and read it as its reader does. Ends with the query's outcome."""
        await asyncio.sleep(max(0.0, query.start_s - (self.loop.now - 1000)))
        site = self.sites.get(query.query.initiator)
        if site is None or not site.is_up:
            query.outcome = "lost"
            return
        reading = self.loop.create_task(self._read(site, query), context=site.process.context.copy())
        while not query.outcome and not reading.done():
            await asyncio.sleep(0.05)
        if reading.done():
            reading.result()

    async def _read(self, site: Site, query: Query) -> None:
        member = site.member
        initiated = Initiated(
            query.query,
            query.plan,
            {},
            query.timeout_s,
            member.limits,
            member.inputs,
            member.send,
            member.initiated_ended,
            query.policy,
            relays_of(query.plan, query.query, member.topology),
        )
        member.initiate(initiated)
        reader = query.reader
        quitting = None
        if reader.quits_after_s is not None:
            quitting = self.loop.call_later(reader.quits_after_s, self._quit, initiated)
        try:
            if reader.is_absent:
                await initiated.ended.wait()
                query.outcome = "absent"
                return
            match initiated.result:
                case Result():
                    await initiated.schema()
                    await self._pages(initiated, query)
                case Counted():
                    query.count = await initiated.count()
                case never:
                    assert_never(never)
            query.outcome = "complete"
        except SkerryError as error:
            # As member/clients.py does.
            initiated.cancel(error)
            query.outcome, query.error_code = f"error: {error.message}", error.code
        finally:
            if quitting is not None:
                quitting.cancel()

    async def _pages(self, initiated: Initiated, query: Query) -> None:
        reader, number, is_last = query.reader, 0, False
        while not is_last:
            if number == reader.quits_after_pages:
                raise Cancelled("the client has enough")
            if reader.pause_s:
                await asyncio.sleep(reader.pause_s)
            if number == 1 and reader.stall_s:
                await asyncio.sleep(reader.stall_s)
            initiated.arrived(number)
            page = await initiated.page(number, reader.page_rows, reader.page_bytes)
            rows = [row for body in page.batches for row in rows_of(body)]
            if len(rows) != page.rows:
                self.violated(f"{query.query}: page {number} has {len(rows)} rows and says {page.rows}")
            query.rows += rows
            is_last, number = page.is_last, number + 1

    def _quit(self, initiated: Initiated) -> None:
        initiated.cancel(Cancelled("the client closed the query"))

    async def stop(self) -> None:
        """A clean end of all members."""
        for site in list(self.sites.values()):
            await self.loop.create_task(site.member.stop(), context=site.process.context.copy())

    def dispose(self) -> None:
        self.loop.dispose()
        for site in [*self.sites.values(), *self._dead]:
            site.member._directory.remove()
            for held in site.member.resources._held.values():
                for segment in list(held.budget._open.values()):
                    segment.close()


@functools.cache
def _config(count: int) -> Config:
    # Loopback, so that no rule for other addresses (certificates) asks for more.
    members = ", ".join(f"{name}: {{address: '127.0.1.{i}:{_PORT}'}}" for i, name in enumerate(NAMES[:count], 1))
    return parse(f"cluster: sim\nmembers: {{{members}}}")


class Complaints(logging.Handler):
    """Errors that members log. Some are what a log is for; the others are mistakes of ours."""

    EXPECTED = ("no receipt from", "Spark has not ended", "not let go of in time")

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.cluster: Cluster | None = None
        self.receipts_missing = False

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if "no receipt from" in text or "not let go of in time" in text:
            self.receipts_missing = True
        if self.cluster is not None and not any(known in text for known in self.EXPECTED):
            trace = "".join(traceback.format_exception(record.exc_info[1])[-4:]) if record.exc_info else ""
            self.cluster.violated(f"logged: {text}\n{trace}".rstrip())
