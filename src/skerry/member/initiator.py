"""Shell of one query at its initiator: carries out what QueryCore decides and serves the cursor's pages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from skerry.config import FaultPolicy
from skerry.exchange.entries import ReadableSpool
from skerry.exchange.input import Signal
from skerry.member import clock
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
from skerry.member.result import Result
from skerry.model import trace
from skerry.model.errors import Cancelled, InternalError, SkerryError, SqlError
from skerry.model.fragment import Plan
from skerry.model.ids import ChannelId, QueryId
from skerry.model.limits import Limits
from skerry.model.points import reach
from skerry.model.results import Page, Schema, Value
from skerry.wire.messages import Message


class Initiated:
    """One client's query that ends in rows. Pages are asked for by the client's connection, one at a time."""

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
    ) -> None:
        self.query = query
        self.plan = plan
        options: dict[str, int | str] = {OPTION: policy.value}
        if is_traced:
            options[TRACE_OPTION] = 1
        self.core = QueryCore(query, plan, parameters, timeout_s, limits, clock.now(), options, relays, budgets)
        self.watch = Watch(Patience.of(policy, limits, timeout_s))
        self._inputs = inputs
        self._send = send
        self._on_ended = on_ended
        self._wakeup = Wakeup()
        self._turn = asyncio.Lock()
        self._limits = limits
        self.result = Result(plan.rows, limits, self._wakeup)
        self.ended = asyncio.Event()

    def start(self) -> None:
        """The receiving ends exist before any participant can send: the query is known before any check of it."""
        rows, me = self.plan.rows, self.query.initiator
        self._inputs.begin(self.query, self.watch.patience)
        self.result.count_in(self._inputs.budget(self.query))
        remote = tuple(sender for sender in rows.senders if sender != me)
        for arriving in self._inputs.expect(self.query, rows.edge, remote, is_result=True):
            channel = arriving.channel
            self.result.attach(channel.channel.sender, arriving.spool, channel.consumed)
        self._do(self.core.start())

    def deliver(self, sender: str, spool: ReadableSpool) -> None:
        """Rows of this member's own fragment."""
        self.result.attach(sender, spool, lambda _consumed: None)

    def receive(self, sender: str, message: Message) -> None:
        self._do(self.core.receive(sender, message, clock.now()))

    def peer_lost(self, member: str, error: SkerryError) -> None:
        self._do(self.core.peer_lost(member, error, clock.now()))  # type: ignore[arg-type]

    def cancel(self, error: SkerryError) -> None:
        self._do(self.core.cancel(error, clock.now()))
        reach("cancel sent")

    def tick(self, now: float) -> None:
        self._do(self.core.tick(now))

    async def wait_ended(self) -> None:
        await self.ended.wait()

    async def schema(self) -> Schema:
        """The columns, once the root runs. The query's deadline ends the wait."""
        while self.result.schema is None:
            if self.result.error is not None:
                raise self.result.error
            await self._wakeup.wait()
        return self.result.schema

    def arrived(self, upto: int) -> None:
        """The client has all pages below `upto`."""
        self.result.pages.arrived(upto)

    def drop_pages(self) -> None:
        """The cursor is gone."""
        self.result.pages.drop()

    async def page(self, number: int, rows_max: int, bytes_max: int) -> Page:
        """Pages are given in turn, each as soon as a batch is there."""
        async with self._turn:
            while isinstance(page := self._poll(number, rows_max, bytes_max), Signal):
                await self._wakeup.wait()
        reach("last page" if page.is_last else "page")
        if page.is_last:
            self._do(self.core.result_complete(clock.now()))
        return page

    def _poll(self, number: int, rows_max: int, bytes_max: int) -> Page | Signal:
        try:
            return self.result.pages.poll(number, rows_max, bytes_max)
        except SkerryError as error:
            # A damaged or over-full spool is found when its rows are read, and so is a sum that overflows.
            is_fatal = error.code >= 200 or isinstance(error, SqlError)
            if self.core.phase is Phase.RUNNING and error is not self.result.error and is_fatal:
                self.cancel(error)
            raise

    def _do(self, instructions: list[Instruction]) -> None:
        for instruction in instructions:
            match instruction:
                case Send(member, message):
                    self._send(member, message)
                case SchemaKnown(schema):
                    self.result.schema_known(schema)
                case RowsCounted():
                    raise InternalError(f"query {self.query}: its cursor gets rows, not a count")
                case QueryFailed(error):
                    if not isinstance(error, Cancelled):
                        trace.emit(trace.QueryFailed(self.query, trace.cause_of(error)))
                    self.result.fail(error)
                case QueryEnded(missing, left):
                    self._end(missing, left)

    def _end(self, missing: tuple[str, ...], left: tuple[str, ...]) -> None:
        seconds = clock.now() - self.core.started_at
        how = "complete" if self.core.error is None else "failed"
        sent_bytes = sum(link.size_bytes for link in self.core.progress()[1])
        if missing:
            trace.emit(trace.ReceiptsMissed(self.query, missing))
        if left:
            trace.emit(trace.LeftBehind(self.query, left))
        trace.emit(trace.QueryEnded(self.query, how, self.result.pages.rows, seconds, sent_bytes))
        self.result.close()
        self._inputs.end(self.query, {self.plan.rows.edge}, clock.now())
        self.ended.set()
        self._on_ended(self)
