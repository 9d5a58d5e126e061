"""A member without a Spark, for tests of what it keeps: `python -m tests.e2e.tables_member FILE NAME`.

It ends with its input. SKERRY_CHAOS names the file that says when it is killed (skerry/testing/points.py).
"""

from __future__ import annotations

import asyncio
import sys

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
    asyncio.run(run(*sys.argv[1:]))
