"""Tools of the wire tests: a bounded loop, conditions to wait for, and a link that can be cut."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import warnings
from collections.abc import Callable, Coroutine
from typing import Any

import uvloop

from skerry.model.limits import Limits
from skerry.wire.address import TcpAddress, parse_address
from skerry.wire.proof import NONCE_BYTES, Secret
from skerry.wire.session import Identity

GIVE_UP_S = 60.0  # nothing takes long, but the machine may be busy
# Quick to notice silence and to dial again, but patient: a busy machine may keep a process waiting for seconds. Tests
# that wait for the end of a wait have a shorter one.
QUICK = Limits(heartbeat_s=0.1, login_s=30.0, wait_s=30.0, reconnect_first_s=0.01, reconnect_max_s=0.1, stop_s=30.0)
SECRET = Secret([b"the secret of the fjords"], lambda: secrets.token_bytes(NONCE_BYTES))
OSLO = Identity("fjords", "oslo", 11, secret=SECRET)
BERGEN = Identity("fjords", "bergen", 22, secret=SECRET)


def run(
    main: Coroutine[Any, Any, None], factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(GIVE_UP_S):
            await main

    with asyncio.Runner(loop_factory=factory) as runner, warnings.catch_warnings():
        try:
            runner.run(bounded())
        except BaseException:
            # What a failed test left open makes uvloop warn while it closes, where an exception would hang it.
            warnings.simplefilter("ignore", ResourceWarning)
            runner.close()
            raise


async def until(condition: Callable[[], object]) -> None:
    """Wait until something is true; the test's own bound ends it."""
    while not condition():
        await asyncio.sleep(0.002)


class Cutter:
    """TCP links in front of members that can be cut (connections reset) or frozen (silence)."""

    def __init__(self) -> None:
        self._servers: list[asyncio.Server] = []
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.accepted = 0
        self.forwarded_bytes = 0
        self.cut_after_bytes: int | None = None
        self.is_frozen = False

    async def front(self, target: Callable[[], str]) -> str:
        """An address that leads to `target()`."""

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            self.accepted += 1
            task.add_done_callback(self._tasks.discard)
            await self._forward(reader, writer, target())

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        self._servers.append(server)
        return f"tcp:127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        self.is_frozen = False
        while self._tasks:
            self.cut()
            await asyncio.wait(self._tasks, timeout=0.1)

    def cut(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str) -> None:
        address = parse_address(target)
        assert isinstance(address, TcpAddress)
        writers = {writer}
        self._writers.add(writer)
        try:
            far_reader, far_writer = await asyncio.open_connection(address.host, address.port)
            writers.add(far_writer)
            self._writers.add(far_writer)
            copies = [self._copy(reader, far_writer), self._copy(far_reader, writer)]
            await asyncio.wait([asyncio.ensure_future(copy) for copy in copies])
        except (OSError, RuntimeError):
            pass
        finally:
            self._writers -= writers
            for one in writers:
                one.transport.abort()
                with contextlib.suppress(OSError):
                    await one.wait_closed()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            while data := await reader.read(65536):
                while self.is_frozen:
                    await asyncio.sleep(0.01)
                self.forwarded_bytes += len(data)
                if self.cut_after_bytes is not None and self.forwarded_bytes >= self.cut_after_bytes:
                    self.cut_after_bytes = None
                    writer.write(data[: len(data) // 2])  # in the middle of a frame
                    self.cut()
                    return
                writer.write(data)
                await writer.drain()
            writer.write_eof()
