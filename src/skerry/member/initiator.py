"""Shell of one query at its initiator: carries out what QueryCore decides, serves the pages or the count of its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, assert_never

from skerry.config import FaultPolicy
from skerry.exchange.entries import ReadableSpool
from skerry.exchange.input import Signal
from skerry.member import clock
from skerry.member.caps import Caps, crowded_result
from skerry.member.faults import OPTION, Patience, Watch
from skerry.member.inputs import Inputs
from skerry.member.query import (
    TRACE_OPTION,
    Instruction,
    Phase,
    QueryCore,
    QueryEnded,
    QueryFailed,
    RowsCounted,
    SchemaKnown,
    Send,
)
from skerry.member.resources import Wakeup
from skerry.member.result import Counted, Result
from skerry.model import trace
from skerry.model.commits import Changed
from skerry.model.errors import Cancelled, EngineEnded, Overloaded, SkerryError, SqlError, UserError
from skerry.model.fragment import Count, Plan, Rows, Written
from skerry.model.ids import ChannelId, QueryId
from skerry.model.limits import Limits
from skerry.model.points import reach
from skerry.model.results import Page, Schema, Value
from skerry.wire.messages import Message


class Reading(NamedTuple):
    """How a query reads tables of our own: at which moment (0: it has none), and with what its transaction wrote."""

    read_ts: int = 0
    changes: Mapping[str, tuple[Changed, ...]] = MappingProxyType({})


class Initiated:
    """One client's query. Pages are asked for by the client's connection, one at a time."""

    def __init__(
        self,
        query: QueryId,
        plan: Plan,
        parameters: dict[str, Value],
        timeout_s: float,
        limits: Limits,
        inputs: Inputs,
        send: Callable[[str, Message], None],
        on_ended: Callable[[Initiated], None],
        policy: FaultPolicy = FaultPolicy.WAIT,
        relays: Mapping[str, tuple[ChannelId, ...]] | None = None,
        budgets: Mapping[tuple[str, str], int] | None = None,
        is_traced: bool = False,
        user: str = "",
        roles: tuple[str, ...] = (),
        share: str = "",
        reading: Reading | None = None,
        caps: Caps | None = None,
    ) -> None:
        self.query = query
        self.plan = plan
        options: dict[str, int | str] = {OPTION: policy.value}
        if is_traced:
            options[TRACE_OPTION] = 1
        reading = reading or Reading()
        self.core = QueryCore(
            query,
            plan,
            parameters,
            timeout_s,
            limits,
            clock.now(),
            options,
            relays,
            budgets,
            user,
            roles,
            reading.read_ts,
            reading.changes,
            caps,
        )
        self._caps = caps or Caps()
        self.watch = Watch(Patience.of(policy, limits, timeout_s))
        self._inputs = inputs
        self._send = send
        self._on_ended = on_ended
        self._wakeup = Wakeup()
        self._turn = asyncio.Lock()
        self._limits = limits
        self.share = share  # whose query it is
        self.may_begin_anew = False  # nobody has got anything of it, and it has not begun anew already
        self.result = self._new_result()
        self.ended = asyncio.Event()

    def start(self) -> None:
        """The receiving ends exist before any participant can send: the query is known before any check of it."""
        self._inputs.begin(self.query, self.watch.patience, self.share)
        match self.result:
            case Result():
                self._expect(self.result, self.plan.rows)
            case Counted():
                pass  # no row comes here
            case never:
                assert_never(never)
        self._do(self.core.start())

    def _new_result(self) -> Result | Counted:
        match self.plan.ends_in:
            case Rows() as rows:
                return Result(rows, self._limits, self._wakeup)
            case Count() | Written():
                return Counted(self._wakeup)
            case never:
                assert_never(never)

    def _expect(self, result: Result, rows: Rows) -> None:
        result.count_in(self._inputs.budget(self.query))
        remote = tuple(sender for sender in rows.senders if sender != self.query.initiator)
        for arriving in self._inputs.expect(self.query, rows.edge, remote, is_result=True):
            channel = arriving.channel
            result.attach(channel.channel.sender, arriving.spool, channel.consumed)

    def deliver(self, sender: str, spool: ReadableSpool) -> None:
        """Rows of this member's own fragment."""
        self._rows().attach(sender, spool, lambda _consumed: None)

    def receive(self, sender: str, message: Message) -> None:
        self._do(self.core.receive(sender, message, clock.now()))

    def peer_lost(self, member: str, error: SkerryError) -> None:
        self._do(self.core.peer_lost(member, error, clock.now()))  # type: ignore[arg-type]

    def cancel(self, error: SkerryError) -> None:
        self._do(self.core.cancel(error, clock.now()))
        reach("cancel sent")

    def tick(self, now: float) -> None:
        self._do(self.core.tick(now))
        most_s = self._caps.work_ms / 1000
        if most_s and self.core.phase is Phase.RUNNING and self.spark_s(now) > most_s:
            shown = f"query {self.query} took more than {most_s:g} s of Spark, all sites together (spark_s)"
            advice = "ask for less at once, or allow more with spark_s, up to limits.spark_s"
            self.cancel(Overloaded(shown, suggestion=advice))

        if self.may_begin_anew and self.core.phase is Phase.RUNNING:
            held_up = next((each.member for each in self.core.progress()[0] if each.state == "held up"), None)
            if held_up is not None:
                self.cancel(EngineEnded("Sail goes on with what was cancelled, and holds this up", member=held_up))

    def spark_s(self, now: float) -> float:
        """As far as it is known here: a fragment tells its time at its end."""
        since_s = now - self.core.started_at
        fragments = self.core.progress()[0]
        return sum(since_s if each.state in ("running", "held up") else each.seconds for each in fragments)

    async def wait_ended(self) -> None:
        await self.ended.wait()

    async def schema(self) -> Schema:
        """The columns, once the root runs. The query's deadline ends the wait."""
        result = self._rows()
        while result.schema is None:
            if result.error is not None:
                raise result.error
            await self._wakeup.wait()
        return result.schema

    async def count(self) -> int:
        """The number that the query ends in, once all who count are done. The query's deadline ends the wait."""
        assert isinstance(self.result, Counted), f"query {self.query} ends in rows"
        while not self.result.is_made:
            if self.result.error is not None:
                raise self.result.error
            await self._wakeup.wait()
        return self.result.rows

    def arrived(self, upto: int) -> None:
        """The client has all pages below `upto`."""
        if isinstance(self.result, Result):
            self.result.pages.arrived(upto)

    def drop_result(self) -> None:
        """The cursor is gone."""
        self.result.drop()

    async def page(self, number: int, rows_max: int, bytes_max: int) -> Page:
        """Pages are given in turn, each as soon as a batch is there."""
        async with self._turn:
            while isinstance(page := self._poll(number, rows_max, bytes_max), Signal):
                await self._wakeup.wait()
        self.may_begin_anew = False
        most = self._limits.result_rows
        if most and self._rows().rows > most:
            many = Overloaded(f"the result has more than {most} rows (limits.result_rows)", suggestion="add a LIMIT")
            self.cancel(many)
            raise many
        if (crowd := crowded_result(self._caps, self.plan, self._rows().rows)) is not None:
            self.cancel(crowd)
            raise crowd
        reach("last page" if page.is_last else "page")
        if page.is_last:
            self._do(self.core.result_complete(clock.now()))
        return page

    def _poll(self, number: int, rows_max: int, bytes_max: int) -> Page | Signal:
        try:
            return self._rows().pages.poll(number, rows_max, bytes_max)
        except SkerryError as error:
            # A damaged or over-full spool is found when its rows are read, and so is a sum that overflows.
            is_fatal = error.code >= 200 or isinstance(error, SqlError)
            if self.core.phase is Phase.RUNNING and error is not self.result.error and is_fatal:
                self.cancel(error)
            raise

    def _rows(self) -> Result:
        if isinstance(self.result, Counted):
            raise UserError(f"query {self.query} ends in a count of rows, and has none to fetch")
        return self.result

    def _do(self, instructions: list[Instruction]) -> None:
        for instruction in instructions:
            match instruction:
                case Send(member, message):
                    self._send(member, message)
                case SchemaKnown(schema):
                    self._rows().schema_known(schema)
                case RowsCounted(rows):
                    assert isinstance(self.result, Counted), "only plans that end in a count are counted"
                    self.result.known(rows)
                case QueryFailed(error):
                    if not isinstance(error, Cancelled):
                        trace.emit(trace.QueryFailed(self.query, trace.cause_of(error)))
                    self.result.fail(error)
                case QueryEnded(missing, left):
                    self._end(missing, left)
                case never:
                    assert_never(never)

    def _end(self, missing: tuple[str, ...], left: tuple[str, ...]) -> None:
        seconds = clock.now() - self.core.started_at
        how = "complete" if self.core.error is None else "failed"
        sent_bytes = sum(link.size_bytes for link in self.core.progress()[1])
        if missing:
            trace.emit(trace.ReceiptsMissed(self.query, missing))
        if left:
            trace.emit(trace.LeftBehind(self.query, left))
        trace.emit(trace.QueryEnded(self.query, how, self.result.rows, seconds, sent_bytes))
        self.result.close()
        edges = {self.plan.rows.edge} if isinstance(self.result, Result) else set()
        self._inputs.end(self.query, edges, clock.now())
        self.ended.set()
        self._on_ended(self)
