"""A member: one process's part of the cluster. Composes listener, peers, catalog, participants and cursors."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import time
from random import Random

from skerry.catalog.catalog import Catalog
from skerry.catalog.topology import Topology
from skerry.config import Config
from skerry.exchange.entries import ReadableSpool
from skerry.member import clock
from skerry.member.clients import Clients
from skerry.member.directory import Directory
from skerry.member.initiator import Initiated
from skerry.member.inputs import Inputs
from skerry.member.keeping import Keeping
from skerry.member.lull import Lull
from skerry.member.outgoing import Outgoing
from skerry.member.participant import Participant
from skerry.member.peertables import PeerTables
from skerry.member.planasks import PlanAsks
from skerry.member.query import Phase
from skerry.member.requests import Requests
from skerry.member.resources import Resources, Workers
from skerry.member.rounds import Rounds
from skerry.member.running import Surroundings
from skerry.member.tables import LocalTables
from skerry.member.taskport import TaskPort
from skerry.model.errors import PeerError, SiteError, SkerryError
from skerry.model.fragment import Plan
from skerry.model.ids import ChannelId, QueryId
from skerry.model.points import reach
from skerry.model.version import __version__
from skerry.plan.cache import PlanCache
from skerry.plan.egress import egress_rules
from skerry.plan.observed import Observed, Size
from skerry.spark.engine import Engine
from skerry.wire.channels import data_handler
from skerry.wire.listener import Listener
from skerry.wire.messages import (
    Cancel,
    Check,
    CheckResponse,
    Describe,
    Execute,
    FragmentDone,
    Message,
    PlanReply,
    PlanRequest,
    Progress,
    Receipt,
    Started,
    Tables,
)
from skerry.wire.peers import Peers
from skerry.wire.ports import DataPorts
from skerry.wire.session import Identity
from skerry.wire.tls import Tls

log = logging.getLogger("skerry.member")

_TO_INITIATOR = (PlanRequest, Started, FragmentDone, Progress, Receipt)
_THREADS = 64


class Member:
    """`engine` is None for a lite member; it is started and stopped by whoever made it, for members may share one.

    `random` and `epoch` are for simulations, which must be able to run again exactly.
    """

    def __init__(
        self, config: Config, name: str, engine: Engine | None, random: Random | None = None, epoch: int | None = None
    ) -> None:
        self.config = config
        self.name = config.member(name).name
        self.limits = config.limits
        self.engine = engine
        self.random = random or Random(secrets.randbits(64))
        # The boot epoch: a member that was restarted is another one to its peers.
        self.identity = Identity(config.cluster, self.name, epoch or time.time_ns() // 1000, __version__)
        self._directory = Directory(self.name)
        self.workers = Workers(self.name, _THREADS)
        # Jobs have threads of their own: one may wait for its reader as long as a query may last, and planning,
        # listings and cancels must not wait behind it.
        self.jobs = Workers(f"{self.name}-job", self.limits.jobs)
        self.catalog = Catalog(config)
        self._lull = Lull()
        self.observed = Observed(self.limits.observed_edges)
        self._keeping = Keeping(config, self.name, self.observed, self.workers, self.own)
        own, changed = config.member(self.name), self._statistics_changed
        self.tables = LocalTables(
            config, own, engine, self.workers, self.jobs, self._lull, self.own, changed, self._keeping
        )
        self.resources = Resources(self.limits, self._directory.path)
        self.topology = Topology(config)
        self.egress = egress_rules(config, self.topology, self.catalog.columns_of)
        files = config.member(self.name).tls
        self.tls = Tls(files) if files is not None else None
        addresses = config.addresses()
        self.outgoing = Outgoing(self.identity, addresses, self.topology, self.limits, self.random, self.tls)
        self.rounds = Rounds(self)
        self.inputs = Inputs(self.name, self.limits, self.topology, self.resources, self.rounds.suspect)
        self.plans = PlanCache(self.limits)
        self.taskport = TaskPort(self.limits)
        self._task_listener: Listener | None = None
        self.data_ports: DataPorts | None = None
        self.initiated: dict[QueryId, Initiated] = {}
        self.participants: dict[QueryId, Participant] = {}
        self.peers = Peers(
            self.identity,
            {peer: address for peer, address in addresses.items() if peer != self.name},
            self.limits,
            on_message=self._receive,
            on_peer_lost=self._peer_lost,
            on_peer_up=self._peer_up,
            on_peer_back=self._peer_back,
            random=self.random,
            tls=self.tls,
        )
        self.peer_tables = PeerTables(self)
        self.requests = Requests(self)
        self.clients = Clients(self, self.requests)
        self._listener: Listener | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._plan_asks = PlanAsks()
        self.is_stopping = False

    # --- life ------------------------------------------------------------------------------------
    async def start(self) -> None:
        """Listen, then learn the own tables. Raises when the address is taken."""
        await self._keeping.load()
        handlers = {
            "control": self.peers.serve,
            "data": data_handler(self.inputs.lookup, self.limits, self._data_ports(), self._sender_of),
            "client": self.clients.serve,
        }
        if self.engine is not None:
            # Tasks on other machines of the site need a port; a task shows its query's token (D2).
            host = self.config.member(self.name).address.rpartition(":")[0]
            here = f"unix:{os.path.join(self._directory.path, 'tasks.sock')}"
            address = here if self.engine.tasks_are_here else f"tcp:{host}:0"
            self._task_listener = await self.taskport.listen(address, self.identity)
        address = self.config.addresses()[self.name]
        self._listener = await Listener.start(address, self.limits, self.identity, handlers, self.tls)
        self.rounds.start()
        await self.peer_tables.learn_own()
        self.own(self.peer_tables.refresh(), "first look at the other sites")
        log.info("member %s of %s: up at %s, epoch %d", self.name, self.config.cluster, address, self.identity.epoch)

    async def stop(self) -> None:
        """Running queries get an error, not silence; then everything this member holds is let go."""
        if self.is_stopping:
            return
        self.is_stopping = True
        stopping = SiteError(f"site {self.name} is stopping", member=self.name)
        for initiated in list(self.initiated.values()):
            initiated.cancel(stopping)
        for participant in list(self.participants.values()):
            participant.fail(stopping)
        waits = [initiated.wait_ended() for initiated in self.initiated.values()]
        waits += [participant.wait_ended() for participant in self.participants.values()]
        if waits:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.gather(*waits), self.limits.stop_s)
        await self.clients.stop()
        await self.peers.stop()
        for closing in (self._listener, self._task_listener):
            if closing is not None:
                await closing.stop()
        if self.data_ports is not None:
            await self.data_ports.stop()
        await self._keeping.close()
        await self.rounds.stop()
        for task in list(self._background):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self.workers.stop()
        self.jobs.stop()
        self._directory.remove()
        log.info("member %s: stopped", self.name)

    def own(self, work: object, what: str) -> None:
        """Run something in the background that ends with the member; an error is logged."""

        async def run() -> None:
            try:
                await work  # type: ignore[misc]
            except SkerryError as error:
                log.warning("%s: %s", what, error.message)

        task = asyncio.ensure_future(run())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _statistics_changed(self) -> None:
        if not self.is_stopping:
            self.own(self.peer_tables.tell(), "new statistics")

    def _sender_of(self, channel: ChannelId) -> str:
        return self.topology.previous_hop(self.name, channel.sender, channel.receiver)

    def _data_ports(self) -> DataPorts | None:
        config = self.config.member(self.name)
        if config.data_ports is not None:
            host = config.address.rpartition(":")[0].strip("[]")
            self.data_ports = DataPorts(host, config.data_ports, self.limits, self.identity, self.tls)
        return self.data_ports

    @property
    def task_address(self) -> str:
        """Where this member's Spark tasks find it; empty for a lite member."""
        return self._task_listener.address if self._task_listener is not None else ""

    # --- queries of clients ------------------------------------------------------------------------
    def initiate(self, initiated: Initiated) -> None:
        self.plans.put(initiated.plan)
        self.initiated[initiated.query] = initiated
        initiated.start()

    def initiated_ended(self, initiated: Initiated) -> None:
        self.initiated.pop(initiated.query, None)
        fragments = initiated.core.progress()[0]
        if initiated.core.error is None and all(each.state == "done" for each in fragments):
            sizes = {each.fragment: Size(each.rows, each.size_bytes) for each in fragments}
            before = self.observed.changes
            self.observed.learn(initiated.plan, sizes, self.catalog.files_version)
            if self.observed.changes != before:
                self._keeping.sizes_changed()
        self.requests.query_ended(initiated)

    # --- messages ----------------------------------------------------------------------------------
    def send(self, member: str, message: Message) -> None:
        """Messages to this member itself take the same way through the cores, without the wire."""
        if member == self.name:
            asyncio.get_running_loop().call_soon(self._receive, member, message)
        else:
            self.peers.send(member, message)

    def _receive(self, sender: str, message: Message) -> None:
        try:
            self._dispatch(sender, message)
        except SkerryError as error:
            log.warning("from %s: %s: %s", sender, type(message).__name__, error.message)

    def _dispatch(self, sender: str, message: Message) -> None:
        match message:
            case Execute():
                self._execute(message)
            case PlanReply():
                self._plan_arrived(sender, message)
            case Cancel():
                self._cancel(sender, message)
            case Describe():
                self.own(self.peer_tables.answer(sender, message), "describe")
            case Tables():
                self.peer_tables.learned(sender, message)
            case Check():
                inactive = tuple(query for query in message.suspected if query not in self.initiated)
                self.send(sender, CheckResponse(inactive))
            case CheckResponse():
                for query in self.rounds.orphans.answered(sender, message.inactive):
                    self.rounds.orphaned(query)
            case PlanRequest() if message.query not in self.initiated:
                self.send(sender, PlanReply(message.query, message.request_id, message.plan_id, self._plan(message)))
            case _ if isinstance(message, _TO_INITIATOR):
                initiated = self.initiated.get(message.query)
                if initiated is not None:
                    initiated.receive(sender, message)

    def _execute(self, message: Execute) -> None:
        reach("execute received")
        if message.query in self.participants:
            return
        if self.inputs.is_gone(message.query):
            # Its cancel came first: the marker stands, nothing is started.
            self.send(message.sender, Receipt(message.query, self.name))
            return
        self.rounds.orphans.watch(message.query, clock.now())
        surroundings = Surroundings(
            identity=self.identity,
            limits=self.limits,
            outgoing=self.outgoing,
            engine=self.engine,
            workers=self.workers,
            jobs=self.jobs,
            tables=self.tables,
            taskport=self.taskport,
            task_address=self.task_address,
            inputs=self.inputs,
            resources=self.resources,
            send=self.send,
            deliver=self._deliver,
        )
        participant = Participant(message, surroundings, self._participant_released)
        self.participants[message.query] = participant
        self._lull.running(len(self.participants))
        log.info("query %s: begun here, fragments %s", message.query, ", ".join(map(str, message.fragments)))
        if self.is_stopping or (self.engine is None and message.fragments):
            why = "is stopping" if self.is_stopping else "has no Spark"
            participant.fail(SiteError(f"site {self.name} {why}", member=self.name))
            return
        plan = self.plans.get(message.plan_id)
        # A member that only passes rows on needs no plan.
        is_asked = plan is None and bool(message.fragments) and self._plan_asks.wait(message.query, message.plan_id)
        participant.do(participant.core.begin(plan, is_asked=is_asked))
        if plan is None:
            reach("plan requested")

    def _plan(self, message: PlanRequest) -> Plan | None:
        """A plan for whoever waits for it together with a query that is over."""
        running = (initiated.plan for initiated in self.initiated.values())
        known = next((p for p in running if p.plan_id == message.plan_id), None) or self.plans.get(message.plan_id)
        return known.to_run() if known is not None else None

    def _plan_arrived(self, sender: str, message: PlanReply) -> None:
        waiting = self._plan_asks.answered(sender, message.plan_id)
        participants = [self.participants[query] for query in waiting if query in self.participants]
        try:
            if message.plan is not None:
                self.plans.put(message.plan)
        except PeerError as error:
            # They wait for their plan, and no other will come.
            for participant in participants:
                participant.fail(error)
            return
        for participant in participants:
            participant.do(participant.core.plan_arrived(message.plan))

    def _cancel(self, sender: str, message: Cancel) -> None:
        initiated = self.initiated.get(message.query)
        # A participant's cancel goes to the initiator, which tells all; at one member both have the same name,
        # and the initiator that has told all no longer runs.
        is_running = initiated is not None and initiated.core.phase is Phase.RUNNING
        if message.query.initiator == self.name and (is_running or message.by != self.name):
            if initiated is not None:
                initiated.receive(sender, message)
            return
        participant = self.participants.get(message.query)
        if participant is not None:
            participant.do(participant.core.cancelled(message.error.message))
        else:
            if message.query not in self.initiated:
                self.rounds.forget(message.query)
            self.send(sender, Receipt(message.query, self.name))

    def _deliver(self, channel: ChannelId, spool: ReadableSpool) -> None:
        initiated = self.initiated.get(channel.query)
        if initiated is not None:
            initiated.deliver(channel.sender, spool)

    def _participant_released(self, participant: Participant) -> None:
        self.participants.pop(participant.query, None)
        self._lull.running(len(self.participants))
        self.rounds.orphans.forget(participant.query)
        log.info("query %s: ended here", participant.query)

    # --- peers -------------------------------------------------------------------------------------
    def _peer_up(self, peer: str, epoch: int) -> None:
        log.info("member %s: connected to %s", self.name, peer)
        self.peer_tables.ask(peer)

    def _peer_back(self, peer: str, heard_at: float) -> None:
        for participant in list(self.participants.values()):
            participant.peer_back(peer, heard_at)

    def _peer_lost(self, peer: str, error: SiteError) -> None:
        self.peer_tables.lost(peer, error)
        for initiated in list(self.initiated.values()):
            initiated.peer_lost(peer, error)
        for participant in list(self.participants.values()):
            if participant.query.initiator == peer:
                participant.do(participant.core.initiator_lost())
        for query in self.inputs.pending:
            if query.initiator == peer:
                self.rounds.forget(query)
        self.rounds.orphans.lost(peer)
        self._plan_asks.lost(peer)
