"""Many clients that come, fetch a little and vanish in every way there is: nothing of them stays.

`VANISHING=1000` runs a thousand of them; without it fewer, which take seconds.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import TypeVar
from uuid import UUID

import pyarrow as pa
import pytest

from skerry.model.ids import QueryId
from skerry.model.limits import MIB, Limits
from skerry.spark.engine import Engine
from skerry.testing.cluster import LocalCluster
from skerry.wire.blocking import BlockingConnection
from skerry.wire.client_messages import ClientClose, ClientExecute, ClientFetch, ClientPage, ClientResult
from skerry.wire.frames import decode, encode_message
from skerry.wire.messages import PROTOCOL_VERSIONS, Goodbye, Hello, Message, Ping, Pong
from tests.integration.member.member_sites import DEADLINE_S, SITES, held, large_query, write_sites

pytestmark = [pytest.mark.sail, pytest.mark.slow, pytest.mark.timeout(900)]

T = TypeVar("T", int, list[str])

CLIENTS = int(os.environ.get("VANISHING", "100"))
AT_ONCE = 8
KILLED = 3
SEED = 20_261_115
# A power cut is noticed after three heartbeats, the rest within seconds; the machine may be busy.
GONE_S = 2 * DEADLINE_S
ARROW_BYTES = 32 * MIB

TEXTS = (
    "SELECT count(*) AS n FROM few",
    "SELECT id, name FROM few ORDER BY name LIMIT 20",
    "SELECT * FROM bergen.few",
    "SELECT * FROM ticks",
    "SELECT id, note FROM oslo.ticks",
    "SELECT a.id, b.name FROM oslo.few a JOIN tromso.few b ON a.id = b.id",
    "SELECT no_such_column FROM few",
    large_query("tromso"),
)
PAGE_ROWS, PAGE_BYTES = 500, 32 * 1024

KILLED_CLIENT = """
import sys, time, skerry
cursor = skerry.connect(sys.argv[1]).cursor()
cursor.execute(sys.argv[2])
cursor.fetchone()
print("fetched", flush=True)
time.sleep(600)
"""


class RudeClient:
    """A client's connection without the client, and without its manners."""

    def __init__(self, address: str, member: str, random: Random) -> None:
        self.random = random
        self.query = QueryId(member, UUID(int=random.getrandbits(128)).hex)
        self._member = member
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), DEADLINE_S)
        self.connection = BlockingConnection(self.socket, address, Limits())
        self._asked = 0

    def login(self) -> None:
        self.connection.login(Hello("client", PROTOCOL_VERSIONS, cluster="", member="", epoch=0), DEADLINE_S)

    def execute(self) -> None:
        text = self.random.choice(TEXTS)
        self._asked = 1
        self.connection.send(
            ClientExecute(1, self.query, text, [], 0.0, PAGE_ROWS, "", page_bytes=PAGE_BYTES),
        )

    def ask(self) -> None:
        self._asked += 1
        self.connection.send(ClientFetch(self._asked, self.query, self._asked - 1, PAGE_ROWS, PAGE_BYTES))

    def answer(self) -> ClientResult | ClientPage:
        while True:
            frame = self.connection.receive(GONE_S)
            assert frame is not None
            message: Message = decode(frame)
            if isinstance(message, Ping):
                self.connection.send(Pong(0))
            elif isinstance(message, ClientResult | ClientPage):
                return message

    def fetch_a_little(self) -> None:
        """Up to three pages, or the end, or the error."""
        answer = self.answer()
        for _ in range(self.random.randrange(3)):
            if answer.error is not None or answer.page is None or answer.page.is_last:
                return
            self.ask()
            answer = self.answer()


# --- the ways to vanish; one returns its socket to keep it open, without a word, until all is over ---
Way = Callable[[RudeClient], "socket.socket | None"]


def says_goodbye(client: RudeClient) -> None:
    client.login()
    client.execute()
    client.fetch_a_little()
    client.connection.send(Goodbye())
    client.connection.close()


def says_goodbye_too_early(client: RudeClient) -> None:
    client.login()
    client.execute()
    client.connection.send(Goodbye())
    client.connection.close()


def closes_the_query_first(client: RudeClient) -> None:
    client.login()
    client.connection.send(ClientClose(99, client.query))
    client.execute()
    client.connection.send(ClientClose(100, client.query))
    client.connection.close()


def closes_its_socket(client: RudeClient) -> None:
    client.login()
    client.execute()
    client.fetch_a_little()
    client.connection.close()


def closes_its_socket_at_once(client: RudeClient) -> None:
    client.login()
    client.execute()
    client.connection.close()


def resets(client: RudeClient) -> None:
    client.login()
    client.execute()
    client.fetch_a_little()
    client.ask()
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.socket.close()


def closes_half(client: RudeClient) -> socket.socket:
    client.login()
    client.execute()
    client.fetch_a_little()
    client.socket.shutdown(socket.SHUT_WR)
    return client.socket


def reads_no_more(client: RudeClient) -> socket.socket:
    client.login()
    client.execute()
    client.fetch_a_little()
    for _ in range(5):
        client.ask()
    return client.socket


def stops_inside_a_frame(client: RudeClient) -> None:
    client.login()
    client.execute()
    whole = b"".join(bytes(part) for part in encode_message(ClientFetch(2, client.query, 1, PAGE_ROWS, PAGE_BYTES)))
    client.socket.sendall(whole[: client.random.randrange(1, len(whole))])
    client.socket.close()


def says_nothing_at_all(client: RudeClient) -> None:
    client.socket.close()


WAYS: tuple[Way, ...] = (
    says_goodbye,
    says_goodbye_too_early,
    closes_the_query_first,
    closes_its_socket,
    closes_its_socket_at_once,
    resets,
    closes_half,
    reads_no_more,
    stops_inside_a_frame,
    says_nothing_at_all,
)


@pytest.fixture
def members(
    sail_engine: Engine, fault_tables: Mapping[str, Mapping[str, Path]], tmp_path: Path
) -> Iterator[LocalCluster]:
    """Three sites on Sail, with so little room that results of any size meet the end of it."""
    limits = {"spool_memory_bytes": MIB, "spool_disk_bytes": 8 * MIB}
    path = write_sites(tmp_path / "skerry.yaml", fault_tables, spark={"sail": True}, limits=limits)
    with LocalCluster(str(path), engine=sail_engine) as cluster:
        yield cluster


def test_clients_that_vanish_leave_nothing(members: LocalCluster) -> None:
    random = Random(SEED)
    for each in vanish(members, random, AT_ONCE * len(WAYS)):  # pools and connections between members grow once
        each.close()
    settle(lambda: leftovers(members), [])
    settle(lambda: without_link(members), [])  # one that comes back later would look like something left behind
    files, threads, tasks, arrow = descriptors(), lone_threads(members), tasks_of(members), pa.total_allocated_bytes()

    silent = vanish(members, random, CLIENTS)
    kill_processes(members)
    try:
        settle(lambda: leftovers(members), [])
        settle(lambda: tasks_of(members), tasks)
    finally:
        for each in silent:
            each.close()
    settle(descriptors, files)
    loose = pa.total_allocated_bytes() - arrow
    gc.collect()  # pyspark's clients end their threads with their last reference
    settle(lambda: len(lone_threads(members)), len(threads))
    grown = pa.total_allocated_bytes() - arrow
    assert grown <= ARROW_BYTES
    print(f"{CLIENTS} clients: Arrow's pool grew by {grown} bytes ({loose} before garbage was collected)")
    for site in SITES:  # and whoever stays is served
        with members.connect(site) as connection:
            assert connection.cursor().execute("SELECT count(*) FROM few").fetchall() == [(300,)]


def vanish(members: LocalCluster, random: Random, count: int) -> list[socket.socket]:
    """So many clients, some at once; returns the sockets of those that only fell silent."""
    numbers = [(random.getrandbits(64), WAYS[number % len(WAYS)]) for number in range(count)]

    def come_and_go(seed: int, way: Way) -> socket.socket | None:
        own = Random(seed)
        site = own.choice(SITES)
        return way(RudeClient(members.config.member(site).address, site, own))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        kept = list(pool.map(come_and_go, *zip(*numbers, strict=True)))
    return [each for each in kept if each is not None]


def kill_processes(members: LocalCluster) -> None:
    for number in range(KILLED):
        url = f"skerry://{members.config.member(SITES[number % len(SITES)]).address}"
        command = [sys.executable, "-c", KILLED_CLIENT, url, large_query("tromso")]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"fetched\n"
            process.send_signal(signal.SIGKILL)


def settle(look: Callable[[], T], upto: T) -> None:
    """Waits until no more is seen than there was; fails with what is there instead."""
    give_up = time.monotonic() + GONE_S
    while not (seen := look()) <= upto:
        assert time.monotonic() < give_up, f"{upto} at first, now {seen}"
        time.sleep(0.05)


def leftovers(members: LocalCluster) -> list[str]:
    """What members hold of any client or query, the work of their threads included."""
    found = held(members)
    for name, member in members.members.items():
        if count := len(member.clients._connections):
            found.append(f"{name}: {count} connections of clients")
        if busy := sum(busy_threads(workers._executor) for workers in (member.jobs, member.workers)):
            found.append(f"{name}: {busy} busy threads")
    return found


def busy_threads(pool: ThreadPoolExecutor) -> int:
    """Those that are not where a thread of a pool waits for work: its own count of them is a guess."""
    frames = sys._current_frames()
    seen = [frames[each.ident] for each in [*pool._threads] if each.ident in frames]
    return sum(frame.f_code.co_name != "_worker" for frame in seen) + pool._work_queue.qsize()


def without_link(members: LocalCluster) -> list[str]:
    """Pairs of members that are not connected right now."""

    async def look() -> list[str]:
        pairs = [(one, other) for one in members.members for other in members.members if one != other]
        return [f"{one}-{other}" for one, other in pairs if members.members[one].peers.state(other) != "up"]

    return members.call(look())


def lone_threads(members: LocalCluster) -> list[str]:
    """Threads outside the members' pools, which keep theirs; Sail's own are none of Python's, but dummies."""
    pools = [each._executor for member in members.members.values() for each in (member.jobs, member.workers)]
    pooled = set().union(*(pool._threads for pool in pools))
    found = (each for each in threading.enumerate() if not isinstance(each, threading._DummyThread))
    return sorted(each.name for each in found if each not in pooled)


def tasks_of(members: LocalCluster) -> int:
    async def count() -> int:
        return len(asyncio.all_tasks())

    return members.call(count())


def descriptors() -> int:
    """Open files and sockets of this process; spools are files without a name."""
    return len(os.listdir("/proc/self/fd"))
