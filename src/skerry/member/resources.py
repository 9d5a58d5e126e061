"""What one query holds at one member, and what every shell of a member shares."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec

from skerry.config import FaultPolicy
from skerry.exchange.share import SpoolShare
from skerry.exchange.spool import Budget, Spool
from skerry.model import trace
from skerry.model.ids import QueryId
from skerry.model.limits import Limits
from skerry.model.progress import Memory

T = TypeVar("T")


class Held(msgspec.Struct):
    """A query's budget and token at this member; shared by its initiator's and its participant's half.

    `share`: whose query it is; "" until one of these halves has begun.
    """

    budget: Budget
    token: str
    users: int = 0
    share: str = ""


class Resources:
    """Budgets by query; a query's entry goes with its last user."""

    def __init__(self, limits: Limits, directory: str) -> None:
        self._limits = limits
        self.directory = directory
        self._held: dict[QueryId, Held] = {}
        names = ("spool_memory_bytes_in_all", "spool_disk_bytes_in_all")
        self._in_all = SpoolShare("all users", limits.spool_memory_bytes_in_all, limits.spool_disk_bytes_in_all, names)
        self._of_users: dict[str, SpoolShare] = {}

    def take(self, query: QueryId) -> Held:
        held = self._held.get(query)
        if held is None:
            budget = Budget(self._limits.spool_memory_bytes, self._limits.spool_disk_bytes)
            held = self._held[query] = Held(budget, secrets.token_hex(16))
        held.users += 1
        return held

    def allow(self, held: Held, policy: FaultPolicy) -> None:
        """A query that buffers may fill the disk, down to a floor of free space."""
        if policy is FaultPolicy.BUFFER:
            held.budget.disk_bytes = 2**63
            held.budget.floor_bytes = self._limits.buffer_floor_bytes

    def share(self, held: Held, user: str) -> None:
        """The query takes part of what the user's queries may hold together, and of what all may."""
        if held.share:
            return
        held.share = user
        if user not in self._of_users:
            limits, names = self._limits, ("spool_memory_bytes_of_user", "spool_disk_bytes_of_user")
            memory_bytes, disk_bytes = limits.spool_memory_bytes_of_user, limits.spool_disk_bytes_of_user
            self._of_users[user] = SpoolShare(user, memory_bytes, disk_bytes, names)
        held.budget.take_share(self._of_users[user], self._in_all)

    def give_back(self, query: QueryId) -> None:
        held = self._held[query]
        held.users -= 1
        if held.users == 0:
            del self._held[query]
            held.budget.leave_share()
            if held.share and not self._of_users[held.share].queries:
                del self._of_users[held.share]
            if held.budget.memory_used or held.budget.disk_used:
                trace.emit(trace.SpoolLeft(query, held.budget.memory_used + held.budget.disk_used))

    def spool(self, held: Held, name: str, *, gives_way: bool = False) -> Spool:
        return Spool(held.budget, self.directory, name, gives_way=gives_way)

    def memory(self, query: QueryId, member: str) -> Memory | None:
        """What the query holds here, as messages say it; None when it holds nothing any more."""
        held = self._held.get(query)
        if held is None:
            return None
        used = held.budget
        return Memory(member, used.memory_used, used.memory_peak, used.disk_used, used.disk_peak)

    def has_memory(self, size_bytes: int) -> bool:
        """Whether all queries together may hold so much more."""
        return self.memory_used + size_bytes <= max(self._limits.spool_memory_bytes_in_all, size_bytes)

    @property
    def queries(self) -> int:
        return len(self._held)

    @property
    def memory_used(self) -> int:
        return sum(held.budget.memory_used for held in self._held.values())

    @property
    def disk_used(self) -> int:
        return sum(held.budget.disk_used for held in self._held.values())


class Workers:
    """Threads for what blocks: Spark, file listings. Owned by the member, bounded."""

    def __init__(self, name: str, threads: int) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=f"skerry-{name}")

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        return await self.begin(function, *arguments)

    def begin(self, function: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        """It goes on in its thread if nobody waits for it any more."""
        return asyncio.get_running_loop().run_in_executor(self._executor, function, *arguments)

    def stop(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)


class Wakeup:
    """Lets one coroutine wait until any of several spools has changed."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def __call__(self) -> None:
        self._event.set()

    async def wait(self, timeout_s: float | None = None) -> bool:
        """False when the time was up."""
        try:
            await asyncio.wait_for(self._event.wait(), timeout_s)
        except TimeoutError:
            return False
        self._event.clear()
        return True
