"""A member: one process's part of the cluster. Composes listener, peers, catalog, participants and cursors."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from random import Random

from skerry.access.access import Access
from skerry.access.rulebook import Rulebook
from skerry.catalog.catalog import Catalog
from skerry.catalog.topology import Topology
from skerry.config import Config
from skerry.exchange.entries import ReadableSpool
from skerry.member import clock
from skerry.member.auditing import Auditing
from skerry.member.background import Background
from skerry.member.changing import Changing, Work
from skerry.member.claims import refuse_forged
from skerry.member.clients import Clients
from skerry.member.directory import Directory
from skerry.member.drain import Drain
from skerry.member.history import ClientCursor, History
from skerry.member.initiator import Initiated
from skerry.member.inputs import Inputs
from skerry.member.keeping import Keeping
from skerry.member.knownplans import KnownPlans
from skerry.member.lull import Lull
from skerry.member.orphans import Orphans
from skerry.member.outgoing import Outgoing
from skerry.member.own import OwnTables
from skerry.member.ownreads import OwnReads
from skerry.member.peertables import PeerTables
from skerry.member.planners import Planners
from skerry.member.planning import Planner, Worker, plan_statement
from skerry.member.query import Phase
from skerry.member.requests import Answer, RunStatement
from skerry.member.resources import Resources, Workers
from skerry.member.rounds import Rounds
from skerry.member.running import Surroundings
from skerry.member.runs import PlanStatement, Runs
from skerry.member.service import Service
from skerry.member.sources import Sources
from skerry.member.tables import LocalTables
from skerry.member.takingpart import TakingPart
from skerry.member.taskport import TaskPort
from skerry.member.transactions import Transactions
from skerry.model import trace
from skerry.model.caller import Caller
from skerry.model.commits import Part
from skerry.model.config import SparkConfig
from skerry.model.errors import SiteError, SiteStopping, SkerryError
from skerry.model.fragment import Plan
from skerry.model.ids import ChannelId, QueryId
from skerry.model.limits import LOOK_THREADS
from skerry.model.rights import Rights
from skerry.model.version import __version__
from skerry.plan.admission import home_of
from skerry.plan.cache import PlanCache
from skerry.plan.observed import Observed
from skerry.plan.site import site_of
from skerry.spark.engine import Engine
from skerry.sql.statement import read_view
from skerry.sql.views import check_views, views_of
from skerry.wire.channels import data_handler
from skerry.wire.commit_messages import CommitMessage
from skerry.wire.definition_messages import (
    AskStatus,
    Define,
    Defined,
    Definitions,
    Flushed,
    FlushTable,
    KnownDefinitions,
    StatusOf,
)
from skerry.wire.finding_messages import FindRows, RowsFound
from skerry.wire.groupby_messages import GroupByMessage, Grown
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
from skerry.wire.moving_messages import GroupSent, Rebalance, Rebalanced, SendGroup
from skerry.wire.peers import Peers
from skerry.wire.ports import DataPorts
from skerry.wire.proof import Secret
from skerry.wire.session import Identity
from skerry.wire.spares import Spares
from skerry.wire.staging_messages import DropRows, RowsStaged, StageRows
from skerry.wire.tls import Tls

_TO_INITIATOR = (PlanRequest, Started, FragmentDone, Progress, Receipt, Grown)
_THREADS = 64


class Member:
    """`engine` is None for a lite member; it is started and stopped by whoever made it, for members may share one.

    `random` and `epoch` are for simulations, which must be able to run again exactly; `plan` is for tests of plans that
    no statement has yet. `planners`: processes that plan, started and stopped by whoever made them; else threads do.
    """

    def __init__(
        self,
        config: Config,
        name: str,
        engine: Engine | None,
        random: Random | None = None,
        epoch: int | None = None,
        plan: PlanStatement = plan_statement,
        secret: Secret | None = None,
        planners: Planners | None = None,
    ) -> None:
        """`secret`: without it, and without TLS, no other member is believed to be one, and none believes this one."""
        check_views(views_of(config), read_view)
        self.config = config
        self.name = config.member(name).name
        self.limits = config.limits
        self.engine = engine
        self.random = random or Random(secrets.randbits(64))
        # The boot epoch: a member that was restarted is another one to its peers.
        self.identity = Identity(config.cluster, self.name, epoch or time.time_ns() // 1000, __version__, secret)
        self.rulebook = Rulebook(config)
        self.is_stopping = False
        self._background = Background()
        self.own = self._background.own
        orphans = Orphans(self.limits.orphan_check_s)
        self._prepare_work()
        self._prepare_tables()
        self._prepare_links(orphans)
        self._prepare_peers(orphans)
        self._prepare_service(plan, planners or self.workers)
        self.rounds = Rounds(
            self.name,
            config.members,
            orphans,
            self.initiated,
            self.participants,
            self.inputs,
            self.peers,
            self.send,
            self.service.tick,
        )

    def _prepare_work(self) -> None:
        """Threads, and where files and memory of queries are."""
        self._directory = Directory(self.name)
        self.workers = Workers(self.name, _THREADS)
        # Jobs have threads of their own: one may wait for its reader as long as a query may last, and planning,
        # listings and cancels must not wait behind it.
        self.jobs = Workers(f"{self.name}-job", self.limits.jobs)
        self.looks = Workers(f"{self.name}-look", LOOK_THREADS)
        self.resources = Resources(self.limits, self._directory.path)
        self._lull = Lull()

    def _prepare_tables(self) -> None:
        """The catalog, the member's own tables, and the sizes that earlier queries were seen to have."""
        config = self.config
        self.catalog = Catalog(config)
        self.observed = Observed(self.limits.observed_edges)
        self._keeping = Keeping(config, self.name, self.observed, self.workers, self.own)
        own, jobs, changed = config.member(self.name), self.jobs, self._statistics_changed
        spark = own.spark or SparkConfig()
        files, looks = self.workers, self.looks
        self.sources = sources = Sources(
            config.data_root, spark.storage, self.engine, self.limits, files, looks, is_sail=spark.sail
        )
        self.tables = LocalTables(
            config, own, self.engine, sources, self.workers, jobs, self._lull, self.own, changed, self._keeping
        )

    def _prepare_links(self, orphans: Orphans) -> None:
        """The ways of rows: to other members, from them, and from the site's Spark."""
        self.topology = Topology(self.config)
        files = self.config.member(self.name).tls
        self.tls = Tls(files) if files is not None else None
        addresses = self.config.addresses()
        self._spares = Spares()
        way = (self.topology, self.limits, self.random, self.tls, self._spares)
        self.outgoing = Outgoing(self.identity, addresses, *way)
        self.inputs = Inputs(
            self.name,
            self.limits,
            self.topology,
            self.resources,
            # Rows came for a query that nobody began here: its initiator is asked after a while.
            lambda query: orphans.watch(query, clock.now()),
        )
        self.taskport = TaskPort(self.limits)
        self._listener: Listener | None = None
        self._task_listener: Listener | None = None
        self.data_ports: DataPorts | None = None

    def _prepare_peers(self, orphans: Orphans) -> None:
        """Queries that began here, those that the member takes part in, and with whom."""
        self.plans = PlanCache(self.limits)
        self._home = home_of(self.name, self.config)
        self.initiated: dict[QueryId, Initiated] = {}
        self.taking_part = TakingPart(
            self.inputs, self.plans, orphans, self._lull, self._surroundings, self._refusal_of_part, self.own
        )
        self.participants = self.taking_part.participants
        self.peers = Peers(
            self.identity,
            {peer: address for peer, address in self.config.addresses().items() if peer != self.name},
            self.limits,
            on_message=self._receive,
            on_peer_lost=self._peer_lost,
            on_peer_up=self._peer_up,
            on_peer_back=self._peer_back,
            random=self.random,
            tls=self.tls,
        )
        self.own_tables = OwnTables(
            self.name,
            self.config,
            self.send,
            self.own,
            self.workers,
            self.rulebook.rights_of,
            self._peers_up,
            self._wrote,
            reach=self._reach,
        )
        self.own_tables.on_flushed = self._statistics_changed
        self.transactions = Transactions(
            self.name, self.limits, self.own_tables.now, lambda: self.own_tables.tables_upto
        )
        self.own_tables.named_by = self.rulebook.names
        self.changing = Changing(
            self.name,
            self.config,
            self.own_tables,
            self.workers,
            self.send,
            self.rulebook.rights_of,
            self.transactions,
            self.own,
            self._peers_up,
        )
        self.own_reads = OwnReads(self.name, self.own_tables, self.workers, self.transactions)
        self.peer_tables = PeerTables(
            self.name, self.config, self.catalog, self.tables, self.peers, self.send, self.own_reads
        )

    def _prepare_service(self, plan: PlanStatement, workers: Worker) -> None:
        """What clients ask for, and the door that they come through."""
        self._audit = Auditing(self.config, self.name)
        self.planner = Planner(
            self.name,
            self.config,
            self.catalog,
            self.topology,
            site_of(self.name, self.config, self.topology, self.observed, self.catalog.columns_of),
            KnownPlans(workers),
            self.peer_tables,
        )
        rules = self._rights_of if self.config.access.rules else None
        self.access = Access(self.config.access, self.workers.run, rules)
        self._runs = Runs(
            self.planner,
            self.inputs,
            self.send,
            self.initiate,
            self.initiated_ended,
            self.own_reads.reading,
            self.own_tables.seen,
            self._change,
            plan,
        )
        self.service = Service(
            self.planner,
            self._runs,
            History(self.name, self.limits.history_queries, self.resources.memory),
            self.access,
            self.own,
            self._state_of,
            lambda: self._drain.refusal(),
            self._audit,
            self.transactions,
        )
        self._drain = Drain(self.name, lambda: self.service.running, self.initiated, self.participants)
        self.clients = Clients(self.service, self.access, self.name, self.limits)

    def _wrote(self, query: QueryId, part: Part, tables: list[str]) -> None:
        if (unaudited := self._audit.refusal_of_part()) is not None:
            raise unaudited
        self._audit.wrote(query, part, tables)

    def _peers_up(self) -> list[str]:
        return [name for name in self.config.members if name != self.name and self.peers.state(name) == "up"]

    def _reach(self, member: str) -> bool:
        """Whether it can be sent something now. If not, it is dialled."""
        if member == self.name or self.peers.state(member) == "up":
            return True
        self.peers.reach(member)
        return False

    async def _change(self, statement: RunStatement, cursor: ClientCursor) -> Answer:
        work = Work(self.planner, self.own_tables.defining, self._runs.gather)
        return await self.changing.answer(work, statement, cursor)

    def _rights_of(self, caller: Caller) -> Rights:
        return self.rulebook.rights_of(caller.name, caller.roles)

    # --- life ------------------------------------------------------------------------------------
    async def start(self) -> None:
        """Listen, then learn the own tables. Raises when the address is taken."""
        await self.access.load()
        self._audit.start()
        await self._keeping.load()
        await self.own_tables.start()
        handlers = {
            "control": self.peers.serve,
            "data": data_handler(self.inputs.lookup, self.limits, self._data_ports(), self._sender_of),
            "client": self.clients.serve,
        }
        if self.engine is not None:
            # Tasks on other machines of the site need a port; a task shows its query's token (D2).
            host = self.config.member(self.name).address.rpartition(":")[0]
            here = f"unix:{self._directory.tasks_socket}"
            address = here if self.engine.tasks_are_here else f"tcp:{host}:0"
            self._task_listener = await self.taskport.listen(address, self.identity, self.tls)
        address = self.config.addresses()[self.name]
        self._listener = await Listener.start(
            address, self.limits, self.identity, handlers, self.tls, self.clients.identify
        )
        self.rounds.start()
        self.own_tables.meet()
        await self.peer_tables.learn_own()
        self.own(self.peer_tables.refresh(), "first look at the other sites")
        trace.emit(trace.MemberStarted(self.name, self.config.cluster, address, self.identity.epoch))

    async def drain(self, drain_s: float, hurry: asyncio.Event) -> None:
        """Take no new query, and let those that run end: for so long at most, or until `hurry`. Then `stop`."""
        await self._drain.wait(drain_s, hurry)

    async def stop(self) -> None:
        """Running queries get an error, not silence; then everything this member holds is let go."""
        if self.is_stopping:
            return
        self.is_stopping = self._drain.has_begun = True
        stopping = SiteStopping(f"site {self.name} is stopping", member=self.name)
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
        self._spares.close()
        for closing in (self._listener, self._task_listener):
            if closing is not None:
                await closing.stop()
        if self.data_ports is not None:
            await self.data_ports.stop()
        self.service.stop()
        await self.workers.run(self._audit.close, self.limits.stop_s)
        await self._keeping.close()
        await self.rounds.stop()
        await self._background.stop()
        await self.own_tables.stop()
        await self.sources.stop()
        self.workers.stop()
        self.jobs.stop()
        self.looks.stop()
        self._directory.remove()
        trace.emit(trace.MemberStopped(self.name))

    def _state_of(self, member: str) -> str:
        if member == self.name:
            return "stopping" if self._drain.has_begun else "up"
        return self.peers.state(member)

    def _refusal_of_part(self, message: Execute) -> SiteError | None:
        """Why the member cannot take part in a query."""
        if (stopping := self._drain.refusal_of_part(message.query)) is not None:
            return stopping
        if (unaudited := self._audit.refusal_of_part()) is not None:
            return unaudited
        is_able = self.engine is not None or not message.fragments
        return None if is_able else SiteError(f"site {self.name} has no Spark", member=self.name)

    def _surroundings(self) -> Surroundings:
        return Surroundings(
            identity=self.identity,
            home=self._home,
            limits=self.limits,
            outgoing=self.outgoing,
            engine=self.engine,
            workers=self.workers,
            jobs=self.jobs,
            tables=self.tables,
            own_reads=self.own_reads,
            taskport=self.taskport,
            task_address=self.task_address,
            inputs=self.inputs,
            resources=self.resources,
            send=self.send,
            deliver=self._deliver,
            rights_of=self.rulebook.rights_of,
        )

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
        self.plans.put(initiated.plan, self.name)
        self.initiated[initiated.query] = initiated
        initiated.start()

    def initiated_ended(self, initiated: Initiated) -> None:
        self.initiated.pop(initiated.query, None)
        if initiated.core.error is None:
            self._keeping.ran(initiated.plan, initiated.core.progress()[0], self.catalog.files_version)
        self.service.query_ended(initiated)

    # --- messages ----------------------------------------------------------------------------------
    def send(self, member: str, message: Message) -> None:
        """Messages to this member itself take the same way through the cores, without the wire."""
        if member == self.name:
            asyncio.get_running_loop().call_soon(self._receive, member, message)
        else:
            self.peers.send(member, message)

    def _receive(self, sender: str, message: Message) -> None:
        try:
            refuse_forged(sender, message, self.name)
            self._dispatch(sender, message)
        except SkerryError as error:
            trace.emit(trace.MessageRefused(sender, type(message).__name__, trace.cause_of(error)))

    def _dispatch(self, sender: str, message: Message) -> None:
        match message:
            case Execute():
                self.taking_part.execute(message)
                self._audit.took_part(message, (each.table.name for each in self.own_tables.definitions.values()))
            case PlanReply():
                self.taking_part.plan_arrived(sender, message)
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
            case Define() | Defined() | Definitions() | KnownDefinitions():
                self.own_tables.defining.receive(sender, message)
            case FlushTable():
                self.own(self.changing.flush_here(sender, message), "flush")
            case Flushed():
                self.changing.flushed(sender, message)
            case StageRows() | DropRows():
                self.own_tables.receive_rows(sender, message)
            case RowsStaged():
                self.changing.bulks.receive(sender, message)
            case AskStatus():
                self.send(sender, self.changing.statuses.here(message))
            case StatusOf():
                self.changing.statuses.told(sender, message)
            case SendGroup():
                self.own(self.changing.rebalancing.send_here(sender, message), "rows that move")
            case Rebalance():
                self.own(self.changing.rebalancing.rebalance_here(sender, message), "rebalance")
            case GroupSent() | Rebalanced():
                self.changing.rebalancing.told(sender, message)
            case FindRows():
                self.own(self.changing.finding.here(sender, message), "rows of a transaction")
            case RowsFound():
                self.changing.finding.found(sender, message)
            case _ if isinstance(message, GroupByMessage):
                self.taking_part.group_by(sender, message)
            case _ if isinstance(message, CommitMessage):
                self.own_tables.receive(sender, message)
            case PlanRequest() if message.query not in self.initiated:
                self.send(sender, PlanReply(message.query, message.request_id, message.plan_id, self._plan(message)))
            case _ if isinstance(message, _TO_INITIATOR):
                initiated = self.initiated.get(message.query)
                if initiated is not None:
                    initiated.receive(sender, message)

    def _plan(self, message: PlanRequest) -> Plan | None:
        """A plan for whoever waits for it together with a query that is over."""
        running = (initiated.plan for initiated in self.initiated.values())
        known = next((p for p in running if p.plan_id == message.plan_id), None)
        known = known or self.plans.get(message.plan_id, self.name)
        return known.to_run() if known is not None else None

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

    # --- peers -------------------------------------------------------------------------------------
    def _peer_up(self, peer: str, epoch: int) -> None:
        self.peer_tables.ask(peer)
        self.own_tables.peer_up(peer)

    def _peer_back(self, peer: str, heard_at: float) -> None:
        self._spares.drop(peer)
        self.taking_part.peer_back(peer, heard_at)
        self.own_tables.peer_back(peer)

    def _peer_lost(self, peer: str, error: SiteError) -> None:
        self._spares.drop(peer)
        self.peer_tables.lost(peer, error)
        self.own_tables.peer_lost(peer, error)
        self.changing.peer_lost(peer, error)
        for initiated in list(self.initiated.values()):
            initiated.peer_lost(peer, error)
        self.taking_part.peer_lost(peer)
        for query in self.inputs.pending:
            if query.initiator == peer:
                self.rounds.forget(query)
        self.rounds.orphans.lost(peer)
