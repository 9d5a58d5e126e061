"""A transaction and tables that were made since it began, whatever the members' clocks say."""

from __future__ import annotations

import asyncio

import pytest

from skerry.member.requests import RunStatement
from skerry.member.transactions import Transactions
from skerry.model.errors import SiteError
from skerry.model.ids import QueryId
from skerry.model.limits import Limits


def test_a_table_that_was_made_since_it_began_is_refused_by_its_number() -> None:
    """Its clock is far ahead of that of who made the table: time alone would let it read an empty one."""
    upto = 7

    async def story() -> None:
        nonlocal upto
        transactions = Transactions("oslo", Limits(), lambda: 1 << 60, lambda: upto)
        begun = transactions.begin(RunStatement(QueryId("oslo", "begin"), "BEGIN", {}), "client", 0.0)
        begun.check_made(6, "t")
        upto = 8  # dropped, and made again
        with pytest.raises(SiteError, match=r"table t .*it was made later than that began"):
            begun.check_made(7, "t")
        again = transactions.begin(RunStatement(QueryId("oslo", "again"), "BEGIN", {}), "client", 0.0)
        again.check_made(7, "t")

    asyncio.run(story())
