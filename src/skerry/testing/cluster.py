"""A whole cluster in this process, on free ports: for tests, notebooks and benchmarks.

    with LocalCluster("skerry.yaml") as cluster:
        cursor = cluster.connect("oslo").cursor()

All members share one Spark (`engine`, or one made from the first data member's settings).
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import secrets
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

import skerry
from skerry.client.dbapi import Connection
from skerry.config import Config, Role, load
from skerry.member.boot import engine_for, new_event_loop, new_nonce
from skerry.member.planners import Planners
from skerry.member.planning import plan_statement
from skerry.member.runs import PlanStatement
from skerry.member.server import Member
from skerry.model.limits import Limits
from skerry.spark.engine import Engine
from skerry.testing.ports import free_ports
from skerry.wire.proof import Secret

T = TypeVar("T")
_START_S = 120.0
_CONNECT_S = 60.0


class LocalCluster:
    """Members on one event loop in a thread of its own."""

    def __init__(
        self,
        config: Config | str,
        engine: Engine | None = None,
        limits: Limits | None = None,
        plan: PlanStatement = plan_statement,
        has_planners: bool = False,
    ) -> None:
        """`plan`: how members understand statements. `has_planners`: in processes, as with `skerry up`."""
        loaded = load(config) if isinstance(config, str) else config
        ports = iter(free_ports(len(loaded.members)))
        members = {
            name: msgspec.structs.replace(member, address=f"127.0.0.1:{next(ports)}")
            for name, member in loaded.members.items()
        }
        self.config = msgspec.structs.replace(loaded, members=members, limits=limits or loaded.limits)
        self._given_engine = engine
        self.engine = engine
        self._plan = plan
        has_tls = all(member.tls is not None for member in members.values())
        self._secret = None if has_tls else Secret([secrets.token_bytes(32)], new_nonce)
        self._has_planners = has_planners
        self._planners: dict[str, Planners] = {}
        self.members: dict[str, Member] = {}
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="skerry-cluster", daemon=True)
        self._connections: list[Connection] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        if self.engine is None:
            first = next(member for member in self.config.members.values() if member.role is Role.DATA)
            self.engine = engine_for(first, self.config.limits)
            self.engine.start()
        self._thread.start()
        try:
            for name in self.config.members:
                self.start_member(name)
            if self._has_planners:  # as members that are processes of their own, these look for garbage of queries only
                gc.collect()
                gc.freeze()
        except BaseException:
            self.stop()
            raise

    def start_member(self, name: str) -> Member:
        """Start one member (again)."""
        engine = self.engine if self.config.member(name).role is Role.DATA else None
        if self._has_planners:
            self._planners[name] = Planners(self.config, name)
            self._planners[name].start()

        async def start() -> Member:
            member = Member(
                self.config, name, engine, plan=self._plan, secret=self._secret, planners=self._planners.get(name)
            )
            await member.start()
            return member

        self.members[name] = self.call(start())
        return self.members[name]

    def stop_member(self, name: str) -> None:
        self.call(self.members.pop(name).stop())
        if (planners := self._planners.pop(name, None)) is not None:
            self._loop.call_soon_threadsafe(planners.stop)

    def connect(self, member: str = "", **options: Any) -> Connection:
        """A client's connection to that member (default: the first), closed with the cluster."""
        name = member or next(iter(self.config.members))
        # Members, Spark and clients share this process: a busy machine may let one of them wait for seconds.
        options = {"timeout_s": _CONNECT_S} | options
        connection = skerry.connect(f"skerry://{self.config.member(name).address}", **options)
        self._connections.append(connection)
        return connection

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the members' loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_START_S)

    def stop(self) -> None:
        for connection in self._connections:
            with contextlib.suppress(skerry.Error):
                connection.close()
        if self._thread.is_alive():
            for name in list(self.members):
                self.stop_member(name)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_START_S)
        self._loop.close()
        if self._given_engine is None and self.engine is not None:
            self.engine.stop()
