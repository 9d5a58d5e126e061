"""Planning in processes of its own: the same plans, and an end to those that take too long."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

import skerry.aio
from skerry.config import Config, parse
from skerry.member.computing import PlanChange, planned_change
from skerry.member.knownplans import planned_anew
from skerry.member.planner_process import Forked
from skerry.member.planners import Planners, _Process
from skerry.member.planning import Planned, _plan, plan_statement
from skerry.member.requests import RunStatement
from skerry.member.server import Member
from skerry.model.caller import Caller
from skerry.model.errors import Overloaded, SqlError
from skerry.model.fragment import Plan
from skerry.model.ids import QueryId
from skerry.model.sharded import OwnColumn, OwnTable
from skerry.model.table import Column, TablePart
from skerry.testing.long_statements import LONG
from skerry.testing.ports import free_ports

pytestmark = pytest.mark.slow

TABLE = "t: {format: parquet, path: t, columns: {id: bigint}}"
PART = TablePart("t", "oslo", (Column("id", "bigint"),), 1000, 8000, 1, 1)
BOB = Caller("", "test", "desk:8", "test")
SMALL = "SELECT id, count(*) FROM t WHERE id > 3 GROUP BY id"
OWN = OwnTable(1, "copy", 1, (OwnColumn("k", "int", False),), ("k",), ("k",), ("oslo",))
WRITE = "INSERT INTO copy SELECT id FROM t WHERE id > 3 ON CONFLICT DO REPLACE"
# Takes minutes, wherever it is planned.
WORST = " ".join(["SELECT 1 FROM t t0", *(f"JOIN t t{n} ON t{n}.id = t{n - 1}.id" for n in range(1, 3000))])


def config_of(limits: str, address: str = "h:1") -> Config:
    return parse(f"cluster: c\nmembers: {{oslo: {{address: '{address}', tables: {{{TABLE}}}}}}}\nlimits: {{{limits}}}")


def member_of(limits: str = "", planners: Planners | None = None) -> Member:
    member = Member(config_of(limits), "oslo", None, planners=planners)
    member.catalog.learn("oslo", (PART,), {})
    return member


@asynccontextmanager
async def planning(limits: str = "") -> AsyncIterator[tuple[Member, Planners]]:
    planners = Planners(config_of(limits), "oslo")
    planners.start()
    member = member_of(limits, planners)
    try:
        yield member, planners
    finally:
        await member.stop()
        planners.stop()


async def planned(member: Member, sql: str, share: str = "ann") -> Plan:
    """By a process, or a thread, each time: a plan that is known needs neither."""
    planner = planned_anew(member.planner)
    found = await plan_statement(planner, RunStatement(QueryId("oslo", "a"), sql, share=share))
    assert isinstance(found, Planned)
    return found.plan


def test_a_process_makes_the_same_plan_of_what_the_member_knows_now() -> None:
    async def run() -> None:
        threads = member_of()
        async with planning() as (member, planners):
            assert await planned(member, SMALL) == await planned(threads, SMALL)
            for casts in (False, True):
                write = PlanChange(
                    RunStatement(QueryId("oslo", "a"), WRITE, share="ann"), {"copy": OWN}, ("oslo",), casts
                )
                made = [await planned_change(planned_anew(each.planner), write) for each in (member, threads)]
                assert made[0] == made[1]
            with pytest.raises(SqlError, match="nothing") as raised:
                await planners.run(_plan, member.planner, RunStatement(QueryId("oslo", "a"), "SELECT nothing FROM t"))
            assert raised.value.place
            wider = TablePart("t", "oslo", (*PART.columns, Column("more", "string")), 5, 50, 2, 2)
            for each in (member, threads):
                each.catalog.learn("oslo", (wider,), {})
            assert await planned(member, "SELECT more FROM t") == await planned(threads, "SELECT more FROM t")
        await threads.stop()

    asyncio.run(run())


def test_a_copy_of_the_process_plans_until_it_is_ended_and_another_takes_its_place() -> None:
    planners = Planners(config_of("planners: 1"), "oslo")
    planners.start(is_first=True)
    first = planners._parent
    assert isinstance(first, Forked)

    async def run() -> None:
        member, threads = member_of("planners: 1", planners), member_of()
        assert await planned(member, SMALL) == await planned(threads, SMALL)
        first.kill()
        assert first.wait(20) == -signal.SIGKILL
        planners._idle.pop().writer.close()
        assert await planned(member, SMALL) == await planned(threads, SMALL)
        await member.stop()
        await threads.stop()
        planners.stop()

    asyncio.run(run())
    # It has nothing of this process but what it says goes wrong, and ends when its owner does.
    planners.start(is_first=True)
    last = planners._parent
    assert isinstance(last, Forked)
    while len(files := os.listdir(f"/proc/{last.pid}/fd")) > 4:
        time.sleep(0.01)
    assert {*files} >= {"0", "1", "2"}
    assert os.readlink(f"/proc/{last.pid}/fd/0") == os.devnull
    planners.stop()
    assert last.returncode == 0


def test_a_planner_whose_time_is_up_is_ended_and_others_go_on() -> None:
    async def run() -> None:
        async with planning("planners: 1, planning_s: 5") as (member, planners):
            await planned(member, SMALL)
            (first,) = planners._idle
            with pytest.raises(Overloaded, match=r"longer than 5 s \(limits.planning_s\)"):
                await planned(member, WORST)
            assert await planned(member, SMALL)
            assert await _is_gone(first.pid)

    asyncio.run(run())


def test_whoever_gives_up_ends_its_planner() -> None:
    async def run() -> None:
        async with planning("planners: 1") as (member, planners):
            await planned(member, SMALL)
            (first,) = planners._idle
            worst = asyncio.ensure_future(planned(member, WORST))
            while planners._idle:
                await asyncio.sleep(0.01)
            worst.cancel()
            await asyncio.gather(worst, return_exceptions=True)
            assert await planned(member, SMALL)
            assert await _is_gone(first.pid)

    asyncio.run(run())


def test_those_who_come_and_go_leave_no_planner_that_nobody_knows() -> None:
    async def run() -> None:
        async with planning("planners: 2") as (member, planners):
            for _ in range(10):
                asked = asyncio.ensure_future(planned(member, SMALL))
                await asyncio.sleep(0.01)  # it has begun, and its planner is on its way or at work
                asked.cancel()
                await asyncio.gather(asked, return_exceptions=True)
            assert await planned(member, SMALL)
            assert planners._parent is not None
            async with asyncio.timeout(20):
                while _children(planners._parent.pid) != sorted(each.pid for each in planners._idle):
                    await asyncio.sleep(0.01)

    asyncio.run(run())


def test_one_user_leaves_a_planner_to_the_others() -> None:
    async def run() -> None:
        async with planning("planners: 2") as (member, _):
            worst = [asyncio.ensure_future(planned(member, WORST, "ann")) for _ in range(70)]
            assert await planned(member, SMALL, "bob")
            assert not any(each.done() for each in worst)
            for each in worst:
                each.cancel()
            await asyncio.gather(*worst, return_exceptions=True)

    asyncio.run(run())


def test_a_client_logs_in_and_is_answered_beside_seventy_of_the_worst() -> None:
    """All of them from one host, and without names: they share what they have."""

    async def run() -> None:
        (port,) = free_ports(1)
        config = config_of("", f"127.0.0.1:{port}")
        planners = Planners(config, "oslo")
        planners.start()
        member = Member(config, "oslo", None, planners=planners)
        await member.start()
        member.catalog.learn("oslo", (PART,), {})
        url = f"skerry://127.0.0.1:{port}"
        worst = [asyncio.ensure_future(_execute(url, WORST)) for _ in range(70)]
        while len(member.service.queries(BOB)) < 70:
            await asyncio.sleep(0.05)
        assert await _execute(url, "SHOW SCHEMAS LIKE 'd*'") == [("default",)]
        assert not any(each.done() for each in worst)
        for each in worst:
            each.cancel()
        await asyncio.gather(*worst, return_exceptions=True)
        await member.stop()
        planners.stop()

    asyncio.run(run())


async def _execute(url: str, sql: str) -> list[tuple[object, ...]]:
    async with skerry.aio.connect(url) as connection, connection.cursor() as cursor:
        await cursor.execute(sql)
        return await cursor.fetchall()


def test_a_statement_takes_so_much_memory() -> None:
    async def run() -> None:
        async with planning("planning_bytes: 20000000") as (member, _):
            with pytest.raises(Overloaded, match=r"19 MiB \(limits.planning_bytes\)|the process that planned"):
                await planned(member, LONG["IN"](30_000, "t", "id"))
            assert await planned(member, SMALL)

    asyncio.run(run())


def test_planners_that_are_killed_are_started_again() -> None:
    async def run() -> None:
        async with planning() as (member, planners):
            await planned(member, SMALL)
            assert planners._parent is not None
            await _killed(planners._idle[0])
            assert await planned(member, SMALL)
            os.kill(planners._parent.pid, signal.SIGKILL)
            planners._parent.wait()
            await _killed(planners._idle[0])
            assert await planned(member, SMALL)
            worst = asyncio.ensure_future(planned(member, WORST))
            while planners._idle:
                await asyncio.sleep(0.01)
            assert planners._parent is not None
            os.kill(_children(planners._parent.pid)[0], signal.SIGKILL)
            with pytest.raises(Overloaded, match="the process that planned the statement ended"):
                await worst
            assert await planned(member, SMALL)

    asyncio.run(run())


async def _killed(planner: _Process) -> None:
    with suppress(ProcessLookupError):  # it may have ended with its parent
        os.kill(planner.pid, signal.SIGKILL)
    while not planner.reader.at_eof():
        await asyncio.sleep(0.01)


async def _is_gone(pid: int) -> bool:
    while os.path.exists(f"/proc/{pid}"):
        await asyncio.sleep(0.01)
    return True


def _children(pid: int) -> list[int]:
    """Those too that have ended, and nobody has asked how."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return sorted(int(each) for each in file.read().split())
