"""Group-bys that grow, in plans and messages of a member that was taken over: rows go where a plan may send them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from skerry.exchange.spool import Budget, Spool
from skerry.member.grouping import Grouping, Port
from skerry.model.config import Leaves
from skerry.model.errors import PeerError, UserError
from skerry.model.fragment import (
    EdgeLeaf,
    GroupHere,
    MergeStep,
    OperatorFragment,
    Output,
    Plan,
    Rows,
    SparkFragment,
)
from skerry.model.ids import GroupById, QueryId
from skerry.model.limits import MIB, Limits
from skerry.model.ranges import PLACES, Range, RoutingTable
from skerry.model.table import Column
from skerry.wire.groupby_messages import End, GroupByMessage, Recruit, Redirect, SenderDone
from skerry.wire.messages import Message
from tests.attacks.hostile import HONEST, LEAF, LEAVES, TAKEN, admitted, sealed

MEMBERS = (TAKEN, HONEST)
COLUMNS = (Column("k", "bigint"), Column("n", "bigint"), Column("h", "bigint"))
SHAPE = GroupHere((0,), (MergeStep(1, "count"),), MEMBERS, 3, 4)
SENT = (
    f"SELECT part_0, part_1, xxhash64(part_0) AS h FROM (SELECT o_cust AS part_0, count(*) AS part_1 FROM {LEAF} "
    "GROUP BY o_cust) AS r"
)


def plan(shape: GroupHere = SHAPE, sent: Output | None = None, kept: Output | None = None, **leaf: Any) -> Plan:
    """Sent by the honest member, folded at both."""
    sender = SparkFragment(1, HONEST, SENT, LEAVES, sent or Output(1, MEMBERS, "groups"))
    edge = msgspec.structs.replace(EdgeLeaf("", 1, COLUMNS, (HONEST,)), **leaf)
    folding = [
        OperatorFragment(2, TAKEN, SHAPE, (edge,), Output(2, (TAKEN,))),
        OperatorFragment(3, HONEST, shape, (edge,), kept or Output(2, (HONEST,))),
    ]
    above = [
        SparkFragment(
            4 + at, who, f"SELECT k FROM x_{at}", (EdgeLeaf(f"x_{at}", 2, COLUMNS[:2], (who,)),), Output(5, (TAKEN,))
        )
        for at, who in enumerate(MEMBERS)
    ]
    return sealed(Plan("", (sender, *folding, *above), Rows(5, MEMBERS), {f"{HONEST}.orders": 7}))


def test_one_that_an_honest_planner_makes() -> None:
    assert len(admitted(plan()).fragments) == 5
    assert len(admitted(plan(), Leaves.AGGREGATED).fragments) == 5


def test_a_table_that_never_leaves_is_folded_nowhere_else() -> None:
    with pytest.raises(UserError, match="never"):
        admitted(plan(), Leaves.NEVER)


@pytest.mark.parametrize(
    "changed",
    [
        {"shape": msgspec.structs.replace(SHAPE, keys=())},
        {"shape": msgspec.structs.replace(SHAPE, keys=(0, 7))},
        {"shape": msgspec.structs.replace(SHAPE, keys=(-1,))},
        {"shape": msgspec.structs.replace(SHAPE, steps=())},
        {"shape": msgspec.structs.replace(SHAPE, steps=(MergeStep(1, "eval"),))},
        {"shape": msgspec.structs.replace(SHAPE, steps=(MergeStep(1, "avg", (1, 99)),))},
        {"shape": msgspec.structs.replace(SHAPE, members=(TAKEN, HONEST, "nobody"))},
        {"shape": msgspec.structs.replace(SHAPE, members=(TAKEN,))},
        {"shape": msgspec.structs.replace(SHAPE, members=(HONEST, TAKEN))},
        {"shape": msgspec.structs.replace(SHAPE, forwards=4)},
        {"shape": msgspec.structs.replace(SHAPE, forwards=1)},
        {"shape": msgspec.structs.replace(SHAPE, shares=5)},
        {"sent": Output(1, MEMBERS)},
        {"sent": Output(1, (HONEST, TAKEN), "groups")},
        {"kept": Output(2, (TAKEN,))},
        {"kept": Output(2, (HONEST, TAKEN))},
        {"columns": COLUMNS[:1]},
        {"senders": (TAKEN,)},
    ],
    ids=str,
)
def test_one_that_no_planner_makes(changed: dict[str, Any]) -> None:
    with pytest.raises(PeerError):
        admitted(plan(**changed))


# --- messages --------------------------------------------------------------------------------------
GROUP = GroupById(QueryId(TAKEN, "x"), 1)


def sending(act: Callable[[Grouping, list[Message], list[BaseException]], None]) -> None:
    """A member that sends rows, whose manager was taken over."""

    async def run() -> None:
        sent: list[Message] = []
        failed: list[BaseException] = []
        tasks: list[asyncio.Task[None]] = []
        budget = Budget(MIB, MIB)

        def refuse(*_: Any) -> asyncio.Task[None]:
            raise AssertionError("no row leaves")

        port = Port(
            HONEST,
            Limits(),
            budget,
            "/tmp",
            lambda to, message: sent.append(message),
            lambda name: Spool(budget, "/tmp", name),
            refuse,
            lambda work: tasks.append(asyncio.ensure_future(work)),
            failed.append,
            lambda size_bytes: True,
        )
        grouping = Grouping(GROUP, MEMBERS, port)
        grouping.will_send(lambda: None)
        act(grouping, sent, failed)
        grouping.stop()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        grouping.close()

    asyncio.run(run())


def test_a_table_sends_no_row_to_whom_the_plan_does_not_name() -> None:
    table = RoutingTable(2, (Range(0, 5, TAKEN), Range(5, PLACES, "tromso")))

    def act(grouping: Grouping, sent: list[Message], failed: list[BaseException]) -> None:
        grouping.received(TAKEN, Redirect(GROUP, table))
        assert sent == []
        assert [type(error) for error in failed] == [PeerError]

    sending(act)


@pytest.mark.parametrize(
    ("sender", "message"),
    [
        ("tromso", End(GROUP)),
        ("tromso", Redirect(GROUP, RoutingTable(2, (Range(0, PLACES, HONEST),)))),
        (HONEST, Recruit(GROUP, 2, HONEST)),
        (HONEST, SenderDone(GROUP, {TAKEN: 5})),
        ("tromso", SenderDone(GROUP, {TAKEN: 5})),
    ],
    ids=["an end", "a table", "a recruit", "a sender, and no manager is here", "a stranger"],
)
def test_only_the_manager_is_obeyed_and_only_at_the_manager_others_are_heard(
    sender: str, message: GroupByMessage
) -> None:
    def act(grouping: Grouping, sent: list[Message], failed: list[BaseException]) -> None:
        with pytest.raises(PeerError):
            grouping.received(sender, message)
        assert (sent, failed) == ([], [])

    sending(act)


def test_nobody_is_recruited_whom_the_plan_does_not_name() -> None:
    def act(grouping: Grouping, sent: list[Message], failed: list[BaseException]) -> None:
        grouping.received(TAKEN, Recruit(GROUP, 2, TAKEN))
        assert [type(error) for error in failed] == [PeerError]

    sending(act)
