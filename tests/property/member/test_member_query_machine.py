"""An initiator and its participants over queues that deliver in any order between pairs: a query always ends."""

from __future__ import annotations

import tempfile
from collections import Counter, deque
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from skerry.catalog.topology import Topology
from skerry.config import parse
from skerry.member.inputs import Inputs
from skerry.member.query import Instruction, Phase, QueryCore, QueryEnded, QueryFailed, SchemaKnown, Send
from skerry.member.resources import Resources
from skerry.member.task import Release, RunFragment, StopFragment, TaskCore, TaskInstruction
from skerry.model.errors import Cancelled, SiteError
from skerry.model.fragment import EdgeLeaf, Plan
from skerry.model.limits import Limits
from skerry.wire.messages import Cancel, Execute, Message, PlanReply, Receipt
from tests.unit.member.member_samples import PATIENCE, QUERY, SCHEMA, TIMEOUT_S, fanned_plan, plan_of

MEMBERS = ("bergen", "oslo", "tromso")  # oslo is the initiator
LIMITS = Limits()
CONFIG = parse("cluster: c\nmembers: {oslo: {address: 'h:1'}, bergen: {address: 'h:2'}, tromso: {address: 'h:3'}}")


class Site:
    """What a member's server does with messages of one query, without its sockets and jobs."""

    def __init__(self, name: str, directory: str) -> None:
        self.name = name
        self.resources = Resources(LIMITS, directory)
        self.inputs = Inputs(name, LIMITS, Topology(CONFIG), self.resources, lambda _query: None)
        self.task: TaskCore | None = None
        self.edges: set[int] = set()
        self.running: set[int] = set()
        self.untaken: set[tuple[int, str]] = set()
        self.is_letting_go = False
        self.began = 0


class QueryMachine(RuleBasedStateMachine):
    """One query from execute to the last receipt."""

    @initialize(
        shape=st.sampled_from(
            [
                plan_of("oslo"),
                plan_of("bergen"),
                plan_of("bergen", "oslo"),
                plan_of("oslo", "bergen", "tromso"),
                plan_of("tromso", "bergen", "bergen"),
                fanned_plan(),
            ]
        )
    )
    def start(self, shape: Plan) -> None:
        self.directory = tempfile.TemporaryDirectory(prefix="machine")
        self.plan = shape
        self.now = 0.0
        self.queues: dict[tuple[str, str], deque[Message]] = {}
        self.sites = {name: Site(name, self.directory.name) for name in MEMBERS}
        self.core = QueryCore(QUERY, self.plan, {}, TIMEOUT_S, LIMITS, self.now)
        self.is_initiated = True
        self.outcomes: list[str] = []
        self.cancels: Counter[tuple[str, str]] = Counter()
        self.lost: set[str] = set()  # the initiator has given them up
        self.unaware: set[str] = set()  # given up, and not aware of it yet
        self.knows_schema = False
        self.sites["oslo"].inputs.begin(QUERY, PATIENCE)
        self.do(self.core.start())

    def teardown(self) -> None:
        if hasattr(self, "directory"):
            self.come_to_rest()
            self.directory.cleanup()

    # --- the world ---------------------------------------------------------------------------------
    def send(self, sender: str, receiver: str, message: Message) -> None:
        if isinstance(message, Cancel):
            self.cancels[(sender, receiver)] += 1
        if not {sender, receiver} & self.lost:
            self.queues.setdefault((sender, receiver), deque()).append(message)

    def do(self, instructions: list[Instruction]) -> None:
        for instruction in instructions:
            assert self.is_initiated, "nothing is said after the end"
            match instruction:
                case Send(member, message):
                    self.send("oslo", member, message)
                case SchemaKnown():
                    assert not self.knows_schema
                    self.knows_schema = True
                case QueryFailed():
                    self.outcomes.append("error")
                case QueryEnded(missing):
                    assert set(missing) <= set(self.core.participants)
                    self.is_initiated = False
                    self.sites["oslo"].inputs.end(QUERY, {self.plan.rows.edge}, self.now)

    def do_task(self, site: Site, instructions: list[TaskInstruction]) -> None:
        for instruction in instructions:
            match instruction:
                case Send(member, message):
                    self.send(site.name, member, message)
                case RunFragment(fragment):
                    assert not site.is_letting_go, "nothing begins while a query is let go"
                    site.running.add(fragment.id)
                    site.untaken |= {(fragment.id, receiver) for receiver in fragment.output.receivers}
                    for leaf in fragment.leaves:
                        if isinstance(leaf, EdgeLeaf):
                            site.edges.add(leaf.edge)
                            site.inputs.expect(QUERY, leaf.edge, leaf.senders, is_result=False)
                case StopFragment(number):
                    assert number in site.running
                    assert all(other != number for other, _ in site.untaken), "somebody wants its rows"
                    site.running.discard(number)
                case Release():
                    assert not site.is_letting_go, "let go twice"
                    site.is_letting_go = True

    def receive(self, sender: str, site: Site, message: Message, has_plan: bool) -> None:
        match message:
            case Execute():
                self.execute(site, message, has_plan)
            case PlanReply():
                if site.task is not None:
                    self.do_task(site, site.task.plan_arrived(message.plan))
            case Cancel():
                self.cancel(sender, site, message)
            case _ if self.is_initiated:
                self.do(self.core.receive(sender, message, self.now))

    def execute(self, site: Site, message: Execute, has_plan: bool) -> None:
        assert site.task is None
        if site.inputs.is_gone(QUERY):
            self.send(site.name, message.sender, Receipt(QUERY, site.name))
            return
        site.began += 1
        site.inputs.begin(QUERY, PATIENCE)
        site.task = TaskCore(message, site.name, self.now)
        self.do_task(site, site.task.begin(self.plan if has_plan else None))

    def cancel(self, sender: str, site: Site, message: Cancel) -> None:
        is_running = self.is_initiated and self.core.phase is Phase.RUNNING
        if site.name == "oslo" and (is_running or message.by != "oslo"):
            if self.is_initiated:
                self.do(self.core.receive(sender, message, self.now))
            return
        if site.task is not None:
            self.do_task(site, site.task.cancelled(message.error.message))
            return
        if not (site.name == "oslo" and self.is_initiated):
            site.inputs.forget(QUERY, self.now)
        self.send(site.name, sender, Receipt(QUERY, site.name))

    def let_go(self, site: Site) -> None:
        assert site.task is not None
        site.is_letting_go = False
        site.running.clear()
        site.untaken.clear()
        site.inputs.end(QUERY, site.edges, self.now)
        self.do_task(site, site.task.released())
        site.task = None

    def busy(self) -> list[Site]:
        """Also those that are letting go: what was going on there may still report."""
        return [site for site in self.sites.values() if site.task is not None]

    # --- what may happen ---------------------------------------------------------------------------
    @precondition(lambda self: any(self.queues.values()))
    @rule(data=st.data(), has_plan=st.booleans())
    def a_message_arrives(self, data: st.DataObject, has_plan: bool) -> None:
        pair = data.draw(st.sampled_from(sorted(pair for pair, queue in self.queues.items() if queue)))
        sender, receiver = pair
        self.receive(sender, self.sites[receiver], self.queues[pair].popleft(), has_plan)

    @precondition(lambda self: any(self.overtaking()))
    @rule(data=st.data())
    def a_cancel_overtakes(self, data: st.DataObject) -> None:
        pair = data.draw(st.sampled_from(self.overtaking()))
        cancel = self.queues[pair].pop()
        self.queues[pair].appendleft(cancel)

    def overtaking(self) -> list[tuple[str, str]]:
        """Not at the initiator itself, whose messages to itself keep their order."""
        return sorted(
            pair
            for pair, queue in self.queues.items()
            if len(queue) > 1 and isinstance(queue[-1], Cancel) and isinstance(queue[0], Execute) and pair[1] != "oslo"
        )

    @precondition(lambda self: any(site.running for site in self.busy()))
    @rule(data=st.data(), says_schema=st.booleans())
    def a_fragment_is_done(self, data: st.DataObject, says_schema: bool) -> None:
        site = data.draw(st.sampled_from([site for site in self.busy() if site.running]))
        fragment = data.draw(st.sampled_from(sorted(site.running)))
        assert site.task is not None
        if says_schema:
            self.do_task(site, site.task.fragment_started(fragment, SCHEMA))
        site.running.discard(fragment)
        self.do_task(site, site.task.fragment_done(fragment, 1, 1, 0.1))

    @precondition(lambda self: any(site.untaken for site in self.busy()))
    @rule(data=st.data())
    def rows_are_taken(self, data: st.DataObject) -> None:
        site = data.draw(st.sampled_from([site for site in self.busy() if site.untaken]))
        fragment, receiver = data.draw(st.sampled_from(sorted(site.untaken)))
        site.untaken.discard((fragment, receiver))
        assert site.task is not None
        if data.draw(st.booleans()):
            self.do_task(site, site.task.output_taken(fragment, receiver))
        else:
            self.do_task(site, site.task.output_stopped(fragment, receiver, 1, 1, 0.1))

    @precondition(lambda self: self.busy())
    @rule(data=st.data())
    def a_participant_fails(self, data: st.DataObject) -> None:
        site = data.draw(st.sampled_from(self.busy()))
        assert site.task is not None
        self.do_task(site, site.task.failed(SiteError("disk full")))

    @precondition(lambda self: any(site.is_letting_go for site in self.sites.values()))
    @rule(data=st.data())
    def a_participant_has_let_go(self, data: st.DataObject) -> None:
        self.let_go(data.draw(st.sampled_from([site for site in self.sites.values() if site.is_letting_go])))

    @rule()
    def the_client_closes(self) -> None:
        self.do(self.core.cancel(Cancelled("closed"), self.now) if self.is_initiated else [])

    @precondition(lambda self: self.knows_schema and self.is_initiated)
    @rule()
    def the_last_page_is_read(self) -> None:
        if self.core.phase is Phase.RUNNING:
            self.outcomes.append("complete")
        self.do(self.core.result_complete(self.now))

    @rule(seconds=st.sampled_from([0.1, LIMITS.stop_s, TIMEOUT_S, TIMEOUT_S + 1]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        if self.is_initiated:
            self.do(self.core.tick(self.now))
        for site in self.sites.values():
            if site.task is not None:
                self.do_task(site, site.task.tick(self.now))

    @precondition(lambda self: len(self.lost) < 2)
    @rule(data=st.data())
    def a_member_is_lost(self, data: st.DataObject) -> None:
        member = data.draw(st.sampled_from(sorted({"bergen", "tromso"} - self.lost)))
        self.lost.add(member)
        self.unaware.add(member)
        for pair in self.queues:
            if member in pair:
                self.queues[pair].clear()
        self.do(self.core.peer_lost(member, SiteError(f"site {member} is down"), self.now) if self.is_initiated else [])

    @precondition(lambda self: self.unaware)
    @rule(data=st.data())
    def a_member_notices(self, data: st.DataObject) -> None:
        site = self.sites[data.draw(st.sampled_from(sorted(self.unaware)))]
        self.unaware.discard(site.name)
        if site.task is not None:
            self.do_task(site, site.task.initiator_lost())

    # --- what always holds -------------------------------------------------------------------------
    @invariant()
    def all_is_well(self) -> None:
        if not hasattr(self, "core"):
            return
        self.core.validate()
        assert len(self.outcomes) <= 1
        assert self.outcomes or self.core.phase is Phase.RUNNING
        participants = len(self.core.participants)
        assert all(count == 1 for pair, count in self.cancels.items() if pair != ("oslo", "oslo"))
        assert self.cancels[("oslo", "oslo")] <= 2  # one as participant, one as initiator
        assert sum(self.cancels.values()) <= 2 * participants
        for site in self.sites.values():
            assert site.began <= 1
            if site.task is not None:
                site.task.validate()

    def come_to_rest(self) -> None:
        """No more faults: whatever was going on ends, and nothing is left anywhere."""
        self.the_client_closes()
        for member in sorted(self.unaware):
            task = self.sites[member].task
            if task is not None:
                self.do_task(self.sites[member], task.initiator_lost())
        for _ in range(200):
            for (sender, receiver), queue in list(self.queues.items()):
                while queue:
                    self.receive(sender, self.sites[receiver], queue.popleft(), True)
            for site in self.sites.values():
                if site.is_letting_go:
                    self.let_go(site)
            if not any(self.queues.values()):
                break
        assert self.core.phase is Phase.ENDED
        assert not self.is_initiated
        assert len(self.outcomes) == 1
        for site in self.sites.values():
            assert site.task is None
            assert site.inputs.pending == []
            assert site.resources.queries == 0
        self.all_is_well()


QueryMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=30)
TestQueryMachine: Any = QueryMachine.TestCase
