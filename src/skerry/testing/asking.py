"""A statement of some user, given to a member's service as a door gives it: for tests of what users may see."""

from __future__ import annotations

import uuid

import pyarrow as pa

from skerry.member.requests import CountAnswer, GivePage, RowsAnswer, RunStatement
from skerry.model.caller import Caller
from skerry.model.ids import QueryId
from skerry.model.limits import Limits
from skerry.testing.cluster import LocalCluster
from skerry.wire.codec import decode_batch, decode_schema

_LIMITS = Limits()


def ask(cluster: LocalCluster, member: str, user: str, sql: str, **planning: str) -> pa.Table:
    """All rows of the answer, or one with the count; whatever is refused or fails is raised as the member raised it."""
    return cluster.call(_ask(cluster, member, user, sql, planning))


async def _ask(cluster: LocalCluster, member: str, user: str, sql: str, planning: dict[str, str]) -> pa.Table:
    service, query = cluster.members[member].service, QueryId(member, uuid.uuid4().hex)
    caller = Caller(user, "test", "here", query.local)
    statement = RunStatement(query, sql, options=planning)
    answer = await service.execute(caller, statement)
    if isinstance(answer, CountAnswer):
        return pa.table({"changed": [answer.rows]})
    assert isinstance(answer, RowsAnswer)
    schema, page = decode_schema(answer.schema.arrow), answer.page
    batches = []
    while True:
        batches += [decode_batch(body, schema, _LIMITS.frame_bytes) for body in page.batches]
        if page.is_last:
            return pa.Table.from_batches(batches, schema)
        page = await service.fetch(caller, GivePage(query, page.number + 1))
