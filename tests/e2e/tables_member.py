"""A member without a Spark, for tests of what it keeps: `python -m tests.e2e.tables_member FILE NAME`.

It ends with its input. SKERRY_CHAOS names the file that says when it is killed (skerry/testing/points.py), CLOCK_S says
how far its clock is ahead.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time

from skerry.cli.logs import set_up_log
from skerry.config import load
from skerry.member.server import Member
from skerry.testing import points
from skerry.wire.proof import Secret


async def run(path: str, name: str) -> None:
    member = Member(load(path), name, None, secret=Secret([bytes(32)], lambda: bytes(32)))
    await member.start()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await member.stop()


if __name__ == "__main__":
    points.watch()
    if ahead_s := float(os.environ.get("CLOCK_S", "0")):
        right_ns, right = time.time_ns, time.time
        time.time_ns = lambda: right_ns() + int(ahead_s * 1e9)
        time.time = lambda: right() + ahead_s
    set_up_log(sys.argv[2], is_debug=False, is_json=False, logs_sql=False)
    asyncio.run(run(*sys.argv[1:]))
