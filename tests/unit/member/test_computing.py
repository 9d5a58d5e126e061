"""Writes whose rows a query gives, attempt after attempt."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from skerry.member.computing import Computing, PlanChange
from skerry.member.requests import RunStatement
from skerry.model.commits import Part, TransactionId
from skerry.model.ids import QueryId
from skerry.model.rights import EVERYTHING
from skerry.model.sharded import OwnColumn, OwnTable
from skerry.tables.routing import Routed
from skerry.wire.commit_messages import Outcome, State

TABLE = OwnTable(1, "t", 1, (OwnColumn("id", "bigint"),), ("id",), ("id",), ("bergen",))


def test_a_statement_said_again_has_new_attempts_though_the_clock_stands_still() -> None:
    async def act() -> None:
        tried: list[TransactionId] = []

        async def submit(txn: TransactionId, *_: object) -> Outcome:
            tried.append(txn)
            return Outcome(txn, State.COMMITTED, commit_ts=1)

        own: Any = SimpleNamespace(now=lambda: 1_700_000_000_000_000 << 11, submit=submit, definitions={})
        nothing: Any = SimpleNamespace()
        said = PlanChange(RunStatement(QueryId("oslo", "q"), "…", {"again": "1"}, rights=EVERYTHING), {}, ())
        for _ in range(2):
            writing = Computing(own, nothing, nothing).filling(TABLE, nothing, lambda: said, nothing, nothing)
            await writing.commit(Routed({"bergen": Part(())}, 1, "t"), 0)
        assert len(set(tried)) == 2

    asyncio.run(act())
