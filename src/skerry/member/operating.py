"""An operator of the member at work: the rows of its edges go through it, batch by batch, into an outgoing spool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pyarrow as pa

from skerry.exchange.entries import Feed, ReadableSpool
from skerry.exchange.finishing import Finished, finished_schema
from skerry.exchange.input import Signal
from skerry.exchange.spool import Spool
from skerry.member.inputs import Arriving
from skerry.member.resources import Wakeup
from skerry.model.errors import SiteError
from skerry.model.fragment import Finish, OperatorFragment
from skerry.model.limits import Limits
from skerry.model.results import Schema
from skerry.wire.codec import decode_schema, encode_schema


class Operation:
    """One fragment's operator. Its rows are made once every sender has said which columns it sends."""

    def __init__(self, fragment: OperatorFragment, limits: Limits) -> None:
        assert isinstance(fragment.operator, Finish), "groups that members fold have a shell of their own"
        self._fragment = fragment
        self._finish = fragment.operator
        self._limits = limits
        self._wakeup = Wakeup()
        self._feeds: dict[tuple[int, str], tuple[Feed, pa.Schema]] = {}  # by edge and sender
        self._wanted = [(leaf.edge, sender) for leaf in fragment.leaves for sender in leaf.senders]

    def attach(
        self, edge: int, sender: str, spool: ReadableSpool, schema: bytes, on_consumed: Callable[[int], None]
    ) -> None:
        """This sender's rows will be in this spool."""
        self._feeds[edge, sender] = Feed(spool, on_consumed), decode_schema(schema)
        self._wakeup()

    async def arrive(self, edge: int, arriving: Sequence[Arriving]) -> None:
        """Attach what channels bring, each as soon as it is open."""
        for each in arriving:
            await each.channel.opened.wait()  # owner: the participant, whose query has a deadline
            sender = each.channel.channel.sender
            self.attach(edge, sender, each.spool, each.channel.schema, each.channel.consumed)

    async def run(self, output: Spool, on_schema: Callable[[Schema], None]) -> tuple[int, int]:
        """All its rows into `output`; returns how many, and their bytes. The loop is let go of between batches."""
        while len(self._feeds) < len(self._wanted):
            await self._wakeup.wait()
        schema = self._agreed()
        told = Schema(self._fragment.leaves[0].columns, encode_schema(schema))
        feeds = [self._feeds[key][0] for key in self._wanted]
        on_schema(finished_schema(self._finish, told))
        made = Finished(self._finish, feeds, schema, self._limits, output.budget.change_state)
        endings = [feed.spool.subscribe(self._wakeup) for feed in feeds]
        rows = size_bytes = 0
        try:
            while (entry := made.poll()) is not Signal.END:
                if isinstance(entry, Signal):
                    await self._wakeup.wait()
                    continue
                output.append(entry)
                rows, size_bytes = rows + entry.rows, size_bytes + entry.decoded_bytes
                await asyncio.sleep(0)
        finally:
            made.close()
            for end in endings:
                end()
        output.finish()
        return rows, size_bytes

    def _agreed(self) -> pa.Schema:
        """The columns of all edges: batches pass as bytes, so another type would be read as something else."""
        (_, first), *others = self._wanted
        schema = self._feeds[self._wanted[0]][1]
        for edge, sender in others:
            if self._feeds[edge, sender][1].types != schema.types:
                raise SiteError(
                    f"sites {first} and {sender} give fragment {self._fragment.id} different columns",
                    suggestion="cast them to the types you want",
                )
        return schema
