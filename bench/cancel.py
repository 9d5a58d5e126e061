"""From a cancel to the last receipt of three members with running Spark jobs, beside the cancel of one bare job."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.frame import BARE, CACHE, SKERRY, Bar, Options, Report, tpch_files
from skerry.member.initiator import Initiated
from skerry.model.errors import Cancelled
from skerry.model.limits import MIB
from skerry.spark import start_engine
from skerry.spark.settings import SparkSettings
from skerry.testing.cluster import LocalCluster
from skerry.testing.nasty import SITES, SampleTable
from skerry.testing.sites import write_config

# Every site has a whole lineitem and little room, and the client reads one page: the tasks run until they are ended.
TEXT = "SELECT * FROM lineitem"
LITTLE_ROOM = {"spool_memory_bytes": 16 * MIB, "spool_disk_bytes": 16 * MIB}
BARE_ROWS = 1 << 45  # nobody counts to the end of them
CANCELS = 200
BARE_EVERY = 10
WARM_UPS = 5
BOUND = 20.0
WAIT_S = 60.0


def run(options: Options) -> Report:
    """200 cancels; one of ten is followed by a bare one, so that both see the same machine."""
    folder = tpch_files(options.scale)["lineitem"]
    with _three_sites(options, folder) as (cluster, session):
        connection = cluster.connect(SITES[0])
        jobs, complaints = Jobs(session), Complaints()
        for _ in range(WARM_UPS):
            cancel_query(cluster, connection, jobs)
            cancel_bare(session, jobs)
        ours: list[float] = []
        bare: list[float] = []
        for number in range(CANCELS):
            ours.append(cancel_query(cluster, connection, jobs))
            if number % BARE_EVERY == 0:
                bare.append(cancel_bare(session, jobs))
        if complaints.said:
            raise AssertionError("; ".join(complaints.said))
    p99 = statistics.quantiles(ours, n=100)[98]
    return Report(
        "cancel",
        f"from cancel to the last of {len(SITES)} receipts, {CANCELS} times",
        "seconds",
        {"cancel": {BARE: bare, SKERRY: ours}},
        [Bar("p99", p99 / statistics.median(bare), BOUND)],
        options,
        [f"Skerry: p99 {p99:.3f} s, longest {max(ours):.3f} s; bare: one job, until its thread has returned"],
    )


class Complaints(logging.Handler):
    """What members say of receipts that are missing, or that name what is left: such a cancel does not count."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []
        logging.getLogger("skerry").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


class Jobs:
    """What runs in the Spark that all share."""

    def __init__(self, session: Any) -> None:
        self._tracker = session.sparkContext.statusTracker()

    def wait(self, count: int) -> None:
        """Until so many jobs have tasks at work; or, for 0, until none is left."""
        give_up = time.monotonic() + WAIT_S
        while self._busy() != count:
            if time.monotonic() > give_up:
                raise TimeoutError(f"{self._busy()} jobs run, not {count}")
            time.sleep(0.02)

    def _busy(self) -> int:
        stages = [self._tracker.getStageInfo(stage) for stage in self._tracker.getActiveStageIds()]
        return sum(1 for stage in stages if stage is not None and stage.numActiveTasks)


def cancel_query(cluster: LocalCluster, connection: Any, jobs: Jobs) -> float:
    """Seconds between the cancel and the last receipt, at the initiator."""
    jobs.wait(0)
    with connection.cursor() as cursor:
        cursor.execute(TEXT)
        jobs.wait(len(SITES))
        (initiated,) = cluster.members[SITES[0]].initiated.values()
        return cluster.call(_cancel(initiated))


async def _cancel(initiated: Initiated) -> float:
    loop = asyncio.get_running_loop()
    started = loop.time()
    initiated.cancel(Cancelled("enough"))
    async with asyncio.timeout(WAIT_S):
        await initiated.wait_ended()
    return loop.time() - started


def cancel_bare(session: Any, jobs: Jobs) -> float:
    """Seconds between the cancel of one job and the return of its thread."""
    jobs.wait(0)
    context = session.sparkContext

    def work() -> None:
        context.addJobTag("bare")
        context.setInterruptOnCancel(True)
        with contextlib.suppress(Exception):  # Spark says that it was cancelled
            session.range(0, BARE_ROWS, 1, context.defaultParallelism).selectExpr("max(id % 7)").collect()

    thread = threading.Thread(target=work)
    thread.start()
    jobs.wait(1)
    started = time.perf_counter()
    context.cancelJobsWithTag("bare")
    thread.join(WAIT_S)
    return time.perf_counter() - started


@contextmanager
def _three_sites(options: Options, folder: Path) -> Iterator[tuple[LocalCluster, Any]]:
    # Spark tells what runs at once, not when something else happens.
    conf = {"spark.driver.memory": options.heap, "spark.ui.liveUpdate.period": "0"}
    engine: Any = start_engine(SparkSettings(conf=conf))
    try:
        with tempfile.TemporaryDirectory() as scratch:
            tables = [SampleTable("lineitem", site, str(folder)) for site in SITES]
            path = write_config(Path(scratch) / "skerry.yaml", CACHE, tables, limits=LITTLE_ROOM)
            with LocalCluster(str(path), engine=engine) as cluster:
                yield cluster, engine.session.newSession()
    finally:
        engine.stop()
