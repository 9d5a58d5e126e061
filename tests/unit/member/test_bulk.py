"""Rows of a large write at its initiator."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from skerry.member.bulk import Bulk, Bulks
from skerry.model.commits import Policy
from skerry.model.ids import QueryId
from skerry.model.rights import EVERYTHING
from skerry.model.sharded import BucketMap, Definition, OwnColumn, OwnTable
from skerry.wire.messages import Message
from skerry.wire.staging_messages import DropRows, RowsStaged, StageRows

TABLE = OwnTable(1, "t", 1, (OwnColumn("id", "bigint"),), ("id",), ("id",), ("bergen",))
DEFINITION = Definition(TABLE, BucketMap(1, 1, ((0, 16384, "bergen"),)))
QUERY = QueryId("oslo", "q")
ROWS = pa.RecordBatch.from_pydict({"id": [1, 2, 3]})


class Here:
    """In the place of the workers: at once."""

    async def run(self, work: Callable[..., Any], *arguments: object) -> Any:
        return work(*arguments)


def test_what_a_member_says_of_rows_that_were_dropped_is_not_said_of_those_sent_again() -> None:
    async def act() -> None:
        sent: list[Message] = []
        bulks = Bulks("oslo", lambda _to, message: sent.append(message), Here())  # type: ignore[arg-type]

        async def begun() -> tuple[Bulk, int]:
            bulk = bulks.begin(DEFINITION, Policy.FAIL, QUERY)
            await bulk.add(lambda: ROWS, EVERYTHING)
            rows = sent[-1]
            assert isinstance(rows, StageRows)
            return bulk, rows.stage

        first, old = await begun()
        first.drop()
        assert sent[-1] == DropRows(QUERY, old)
        again, stage = await begun()
        finishing = asyncio.ensure_future(again.finish(EVERYTHING, is_ordered=True))
        bulks.receive("bergen", RowsStaged(QUERY, old, "bergen", 1))
        await asyncio.sleep(0)
        assert not finishing.done()
        bulks.receive("bergen", RowsStaged(QUERY, stage, "bergen", 1))
        (part,) = (await finishing).parts.values()
        assert part.staged[0].files == (str(stage),)

    asyncio.run(act())
