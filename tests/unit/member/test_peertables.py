"""What a member learns of the tables of others, when they take long to answer."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path

import msgspec

from skerry.config import parse
from skerry.member.server import Member
from skerry.model.errors import SiteError
from skerry.model.names import TableRef
from skerry.model.table import Column
from skerry.spark.engine import TableFiles
from skerry.testing.ports import free_ports
from tests.unit.member.table_world import COLUMNS, Spark
from tests.unit.wire.looping import SECRET

DEADLINE_S = 60.0


class SlowSpark(Spark):
    """Describes tables once `gate` is open."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = threading.Event()

    def describe(self, table: TableFiles) -> tuple[Column, ...]:
        self.is_asked.set()
        self.gate.wait()
        return self.columns


def columns(member: Member) -> tuple[Column, ...]:
    """The columns of bergen's table; none before it was heard of."""
    try:
        (part,) = member.catalog.parts(TableRef("t", "bergen", ()))
    except SiteError:
        return ()
    return part.columns


def test_a_site_that_is_linked_may_take_longer_than_a_login(tmp_path: Path) -> None:
    async def test() -> None:
        (tmp_path / "a.csv").write_text("1,a\n")
        ports = free_ports(2)
        config = parse(
            f"cluster: c\ndata_root: {tmp_path}\nlimits: {{stats_scan_bytes: 0, heartbeats_missed: 60}}\nmembers:\n"
            f"  oslo: {{address: '127.0.0.1:{ports[0]}', role: lite}}\n"
            f"  bergen: {{address: '127.0.0.1:{ports[1]}', tables: {{t: {{format: csv, path: '*.csv'}}}}}}"
        )
        spark = SlowSpark()
        bergen, oslo = Member(config, "bergen", spark, secret=SECRET), Member(config, "oslo", None, secret=SECRET)
        try:
            await bergen.start()
            await oslo.start()
            async with asyncio.timeout(DEADLINE_S):
                while columns(oslo) != COLUMNS:
                    await oslo.peer_tables.refresh(("bergen",))
            (tmp_path / "b.csv").write_text("2,b\n")
            spark.columns = (*COLUMNS, Column("new", "int"))
            spark.gate.clear()
            spark.is_asked.clear()
            oslo.limits = msgspec.structs.replace(oslo.limits, login_s=0.02, wait_s=DEADLINE_S)
            asking = asyncio.ensure_future(oslo.peer_tables.refresh(("bergen",)))
            await asyncio.to_thread(spark.is_asked.wait, DEADLINE_S)
            await asyncio.wait({asking}, timeout=0.2)  # far longer than its login would have
            spark.gate.set()
            await asking
            assert columns(oslo) == spark.columns
        finally:
            spark.gate.set()
            await oslo.stop()
            await bergen.stop()

    asyncio.run(test())


def test_a_site_without_a_link_is_not_waited_for(tmp_path: Path) -> None:
    async def test() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, and says nothing
            port = silent.getsockname()[1]
            config = parse(
                f"cluster: c\ndata_root: {tmp_path}\nlimits: {{login_s: 0.1, wait_s: 1000000}}\nmembers:\n"
                f"  oslo: {{address: '127.0.0.1:{free_ports(1)[0]}', role: lite}}\n"
                f"  bergen: {{address: '127.0.0.1:{port}', tables: {{t: {{format: csv, path: '*.csv'}}}}}}"
            )
            oslo = Member(config, "oslo", None, secret=SECRET)
            try:
                await asyncio.wait_for(oslo.peer_tables.refresh(("bergen",)), DEADLINE_S)
                assert oslo.peers.state("bergen") == "unknown"
            finally:
                await oslo.stop()

    asyncio.run(test())


def test_who_stops_waiting_leaves_nothing_behind(tmp_path: Path) -> None:
    async def test() -> None:
        (tmp_path / "a.csv").write_text("1,a\n")
        with socket.create_server(("127.0.0.1", 0)) as silent:
            table = "tables: {t: {format: csv, path: '*.csv'}}"
            config = parse(
                f"cluster: c\ndata_root: {tmp_path}\nmembers:\n"
                f"  oslo: {{address: '127.0.0.1:{free_ports(1)[0]}', {table}}}\n"
                f"  bergen: {{address: '127.0.0.1:{silent.getsockname()[1]}', {table}}}"
            )
            spark = SlowSpark()
            spark.gate.clear()
            oslo = Member(config, "oslo", spark, secret=SECRET)
            try:
                asking = asyncio.ensure_future(oslo.peer_tables.refresh())
                await asyncio.to_thread(spark.is_asked.wait, DEADLINE_S)
                asking.cancel()
                await asyncio.wait({asking}, timeout=DEADLINE_S)
                assert asking.cancelled()
                names = {getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks()}
                assert "PeerTables.learn_own" not in names
            finally:
                spark.gate.set()
                await oslo.stop()

    asyncio.run(test())
