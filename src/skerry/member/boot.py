"""Start a member as a process: its Spark, its loop, its signals."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import secrets
import signal
import socket
import threading
import time

import uvloop

from skerry.config import Config, MemberConfig
from skerry.config.exposed import refuse_exposed
from skerry.config.private import read_secret, refuse_public
from skerry.member.planners import Planners
from skerry.member.server import Member
from skerry.model import trace
from skerry.model.errors import ConfigError
from skerry.model.limits import END_S, Limits
from skerry.model.points import reach
from skerry.spark import SparkSettings, make_engine
from skerry.spark.engine import Engine
from skerry.wire.address import TcpAddress, parse_address
from skerry.wire.proof import NONCE_BYTES, Secret


def new_event_loop() -> asyncio.AbstractEventLoop:
    return uvloop.new_event_loop()


def engine_for(member: MemberConfig, limits: Limits) -> Engine:
    """The Spark that the configuration gives this member, not yet started."""
    assert member.spark is not None
    spark = member.spark
    return make_engine(
        SparkSettings(
            master=spark.master or "local[*]",
            remote=spark.remote or "",
            sail=spark.sail,
            memory_bytes=spark.memory_bytes,
            conf=spark.conf,
            limits=limits,
            packages=spark.packages,
            jars=spark.jars,
            catalogs=spark.catalogs,
            storage=spark.storage,
        )
    )


def new_nonce() -> bytes:
    return secrets.token_bytes(NONCE_BYTES)


def _wait_for_end(loop: asyncio.AbstractEventLoop, stopping: asyncio.Event) -> None:
    while os.read(0, 4096):
        pass
    loop.call_soon_threadsafe(stopping.set)


def _refuse_taken(address: str) -> None:
    """Spark takes long to start: say before that the member could not listen anyway."""
    target = parse_address(address)
    assert isinstance(target, TcpAddress)
    family = socket.AF_INET6 if ":" in target.host else socket.AF_INET
    try:
        socket.create_server((target.host, target.port), family=family).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"cannot listen at {target.where}: {os.strerror(errno.EADDRINUSE)}",
                suggestion="is another member running there?",
            ) from None


def run_member(config: Config, name: str, *, until_input_ends: bool = False) -> None:
    """Run one member until SIGTERM or SIGINT, or the end of its input. SkerryError when it cannot start.

    Queries that run may end first (`limits.drain_s`); a second signal is for who does not want to wait for them.
    """
    member_config = config.member(name)
    refuse_exposed(config, member_config)
    if member_config.tls is not None:
        refuse_public(member_config.tls.key, "tls")
    planners = Planners(config, name)
    # A copy of this process, made before there is a thread, a socket or a secret that it could inherit.
    planners.start(is_first=True)
    try:
        _run(config, member_config, planners, until_input_ends)
    finally:
        planners.stop()


def _run(config: Config, member_config: MemberConfig, planners: Planners, until_input_ends: bool) -> None:
    name = member_config.name
    secret = Secret(read_secret(config.secret), new_nonce) if config.secret else None
    _refuse_taken(config.addresses()[name])
    engine = engine_for(member_config, config.limits) if member_config.spark is not None else None

    async def run() -> None:
        stopping, hurry = asyncio.Event(), asyncio.Event()

        def told() -> None:
            (hurry if stopping.is_set() else stopping).set()

        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, told)
        if until_input_ends:
            watch = threading.Thread(target=_wait_for_end, args=(asyncio.get_running_loop(), stopping), daemon=True)
            watch.start()
        member = Member(config, name, engine, secret=secret, planners=planners)
        try:
            if engine is not None:
                await member.workers.run(engine.start)
            if not stopping.is_set():
                reach("member starting")
                await member.start()
                if engine is not None:
                    # The first query would wait for this otherwise; nobody waits for it here.
                    member.own(member.workers.run(engine.warm_up), "warm-up")
                # Modules are most of what is alive here. To look through them for garbage takes a tenth of a second,
                # in which nobody is served.
                gc.collect()
                gc.freeze()
                # Whoever started this process waits for this line. Files of TLS may be elsewhere at clients.
                print(f"skerry: {member.name} is ready at {member_config.url.partition('?')[0]}", flush=True)
                await stopping.wait()
                await member.drain(config.limits.drain_s, hurry)
        finally:
            await member.stop()
            planners.stop()  # before the engine, which may take its time

    loop = new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(run())
    finally:
        _end_in_time()
        try:
            loop.close()
        finally:
            if engine is not None:
                engine.stop()


def _end_in_time() -> None:
    """A job that its Spark does not end would keep this process, though nothing of it is wanted any more."""

    def end() -> None:
        time.sleep(END_S)
        trace.emit(trace.ProcessLeft(END_S))
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()
