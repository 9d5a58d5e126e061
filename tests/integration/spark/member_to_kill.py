"""A process with an embedded Spark whose job waits for its member. Prints the pids of Spark's processes, then waits.

Run by test_spark_killed.py, which kills it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys

import psutil
import pytest

from skerry.exchange.intake import Intake
from skerry.exchange.spool import Budget
from skerry.member.stores import DirectStore
from skerry.model.errors import EngineEnded
from skerry.model.limits import MIB
from skerry.spark.engine import Job
from skerry.spark.session import ClassicEngine
from skerry.spark.settings import SparkSettings
from tests.integration.spark.harness import Site, until


class OneLine(logging.Formatter):
    """A line a record: how far a call had come when the JVM died is not what the test is about."""

    def formatException(self, ei: object) -> str:
        return ""


async def main() -> None:
    engine = ClassicEngine(SparkSettings(master="local[1]", conf={"spark.driver.memory": "512m"}))
    engine.start()
    async with Site(engine) as site:
        # A JVM that runs out of memory is one clear error to its job, and is started again.
        first, directory = psutil.Process(engine.jvm_pid), engine.directory
        with pytest.raises(EngineEnded, match=r"^Spark ended \(it ran out of memory"):
            await site.drive("SELECT size(collect_list(repeat('x', 1000000) || id)) AS n FROM range(0, 10000, 1, 2)")
        await asyncio.to_thread(first.wait)
        assert (await site.drive("SELECT 1 AS x"))[1].num_rows == 1
        assert not first.is_running()
        assert not os.path.exists(directory)
        query = site.query()
        sink = site.sink(query, Intake(1, False), DirectStore(site.spool(Budget(4 * MIB, 0)), waits=True))
        sql = "SELECT id, repeat('x', 100) AS s FROM range(0, 400000, 1, 2)"
        running = asyncio.create_task(site.run(Job("stalled", sql, {}, {}, {}, sink)))
        await until(lambda: site.port.waiting_s(query) > 0)
        assert not running.done()
        jvm = psutil.Process(engine.jvm_pid)
        pids = [jvm.pid, *(child.pid for child in jvm.children(recursive=True))]
        print(json.dumps({"pids": pids, "directory": engine.directory}), flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    # As a member does; else the first word of py4j to the root logger changes how the lines after it look.
    handler = logging.StreamHandler()
    handler.setFormatter(OneLine("%(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler])
    asyncio.run(main())
