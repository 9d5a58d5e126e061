"""Members that start in a tenth of a second: forks of one process, `python -m chaos.forks`, that has loaded all.

Each line of its input, `FILE NAME NAMESPACE LOG ARMED ENGINE`, starts one; the answer is its process id. They end with
it.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import importlib
import os
import signal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from chaos.net import enter
from skerry.cli.logs import set_up_log
from skerry.config import load
from skerry.config.private import read_secret
from skerry.member.boot import engine_for, new_event_loop, new_nonce
from skerry.member.server import Member
from skerry.testing import points
from skerry.wire.proof import Secret

READY = "is ready"
# What an engine loads when it is made; none of them starts a thread by that.
LOADED = ("skerry.spark.engine", "skerry.spark.sail", "pyspark.sql.connect.session")
_PR_SET_PDEATHSIG = 1


async def _run(path: str, name: str, has_engine: bool) -> None:
    config = load(path)
    engine = engine_for(config.member(name), config.limits) if has_engine else None
    member = Member(config, name, engine, secret=Secret(read_secret(config.secret), new_nonce))
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    if engine is not None:
        await member.workers.run(engine.start)
    await member.start()
    print(f"{name} {READY}", flush=True)
    await stopping.wait()
    await member.stop()
    if engine is not None:
        engine.stop()


def _member(path: str, name: str, space: str, log: str, armed: str, engine: str) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with open(f"/run/netns/{space}") as there:
        enter(there.fileno())
    descriptor = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ[points.VARIABLE] = armed
    os.environ["TMPDIR"] = str(Path(armed).parent)
    points.watch()
    set_up_log(name)
    loop = new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(_run(path, name, engine == "1"))


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them here
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pa.array([0])
    for name in LOADED:  # half a second of each start, where an engine is
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    orders = os.fdopen(0, "rb", buffering=0)  # nothing is read ahead that a fork would have too
    while line := orders.readline():
        words = line.decode().split()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                _member(*words)
                status = 0
            finally:
                os._exit(status)
        print(pid, flush=True)


if __name__ == "__main__":
    main()
