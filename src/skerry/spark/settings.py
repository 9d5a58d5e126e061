"""What a site says about its Spark, and the settings that follow from it. Imports no pyspark."""

from __future__ import annotations

import os
import re

import msgspec

from skerry.catalog.stores import spark_conf
from skerry.model.config import CatalogConfig
from skerry.model.errors import ConfigError
from skerry.model.limits import LEAST_PAGE_BYTES, SPARK_PAGES, Limits
from skerry.model.sources import Storage
from skerry.spark.catalogs import catalog_conf, packages_directory

SLOTS_PER_CORE = 4  # D7: a task that waits for its member holds a slot, so an embedded Spark has slots to spare

# Settings that must be the same at every site, or answers differ by site; nobody may override them.
FIXED = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.variable.substitute": "false",
    "spark.sql.restrictedMode.enabled": "true",
    # No path is a table, whatever text should ever reach Spark.
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    # A retried task would deliver its rows twice to a member that has sent them on (D8, policy direct).
    "spark.task.maxFailures": "1",
}
ARRAY_HEADER_BYTES = 16
_UNWATCHED = 2**31 - 1  # Spark's own word for a batch without a bound in bytes
FIXED_EMBEDDED_ONLY = ("spark.task.maxFailures",)


class SparkSettings(msgspec.Struct, frozen=True):
    """A site's Spark: `remote` (sc://…) or `sail`, else `master`. `cores` overrides the machine's, for tests."""

    master: str = "local[*]"
    remote: str = ""
    sail: bool = False
    conf: dict[str, str] = {}
    cores: int = 0
    memory_bytes: int = 0  # of Sail's process; 0: a share of the machine's
    limits: Limits = Limits()
    packages: tuple[str, ...] = ()
    jars: tuple[str, ...] = ()
    catalogs: tuple[CatalogConfig, ...] = ()
    storage: Storage = Storage()

    @property
    def is_embedded(self) -> bool:
        """Spark runs inside the member's process group."""
        return not self.remote and not self.sail and re.fullmatch(r"local(\[(\*|\d+)\])?", self.master) is not None


def core_count(settings: SparkSettings) -> int:
    """The cores Spark's scans are cut for: `local[4]` says four, everything else has the machine's."""
    if settings.cores:
        return settings.cores
    if settings.is_embedded and (count := re.fullmatch(r"local\[(\d+)\]", settings.master)):
        return max(1, int(count[1]))
    if settings.is_embedded and settings.master == "local":
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def slot_count(settings: SparkSettings) -> int | None:
    """How many tasks may run at once; None where that cannot be known (a cluster, Spark Connect)."""
    return SLOTS_PER_CORE * core_count(settings) if settings.is_embedded else None


def check_conf(settings: SparkSettings) -> None:
    """Refuse settings that would change answers."""
    for key, value in settings.conf.items():
        fixed = FIXED.get(key)
        if key in FIXED_EMBEDDED_ONLY and not settings.is_embedded:
            continue
        if fixed is not None and value.lower() != fixed.lower():
            raise ConfigError(
                f"spark.conf: {key} is {fixed} at every site, or rows would differ from site to site or get lost",
                suggestion=f"remove {key} from spark.conf",
            )


def sql_conf(settings: SparkSettings) -> dict[str, str]:
    """Settings of the session, for every kind of Spark; the user's own come last."""
    check_conf(settings)
    cores = str(core_count(settings))
    defaults = {
        **{key: value for key, value in FIXED.items() if key.startswith("spark.sql.")},
        # A scan stage has about one task per core (D7), whatever the number of slots.
        "spark.sql.leafNodeDefaultParallelism": cores,
        "spark.sql.files.maxPartitionNum": cores,
        # A broadcast waits for its edge, which takes as long as the link does; the query's own timeout is the bound.
        "spark.sql.broadcastTimeout": str(int(settings.limits.query_timeout_s)),
        # Spark's 200 suit a cluster. Twice the cores leaves the last wave short when partitions are uneven, while
        # an empty partition costs a Python worker's round trip in the sink; adaptive execution merges small ones.
        "spark.sql.shuffle.partitions": str(2 * core_count(settings)),
        # Spark 4.2 fails (key not found) where this rule moves a correlated EXISTS of a list below a union, and a table
        # with parts is one. Columns are pruned below a union by another rule. The second one would compute over rows in
        # the plan while it plans: what may fail is not to fail before anybody asks for it.
        "spark.sql.optimizer.excludedRules": ",".join(
            f"org.apache.spark.sql.catalyst.optimizer.{rule}"
            for rule in ("PushProjectionThroughUnion", "ConvertToLocalRelation")
        ),
    }
    more = catalog_conf(settings.catalogs, settings.packages, settings.jars)
    return spark_conf(settings.storage) | defaults | settings.conf | more


def batch_conf(limits: Limits, is_narrow: bool) -> dict[str, str]:
    """How Spark cuts a job's rows into the batches that its tasks hand over.

    Spark looks at the bytes of a batch after each row, which takes a third of a plain scan's time (seen in a
    profile, bench fetch: 0.6 of toArrow() with it, 1.0 without): a job of short rows is cut by number only.
    """
    rows, size_bytes = limits.batch_rows, 4 * limits.batch_bytes
    if is_narrow:
        rows, size_bytes = min(rows, limits.narrow_batch_rows), _UNWATCHED
    prefix = "spark.sql.execution.arrow"
    return {f"{prefix}.maxRecordsPerBatch": str(rows), f"{prefix}.maxBytesPerBatch": str(size_bytes)}


def embedded_conf(settings: SparkSettings, directory: str) -> dict[str, str]:
    """Everything an embedded Spark is started with; all its files stay under `directory`."""
    fixed = {
        "spark.master": f"local[{slot_count(settings)}]",
        "spark.app.name": "skerry",
        "spark.submit.deployMode": "client",
        # Its ports on loopback are for its own tasks: others of this host lack the secret, which Spark makes itself.
        "spark.authenticate": "true",
    }
    defaults = {
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "false",
        "spark.local.dir": directory,
        "spark.sql.warehouse.dir": f"file:{directory}/warehouse",
        "spark.python.worker.reuse": "true",
        # What a task gives its Python worker at once. Spark's 64 KiB wake the worker ten times a batch; more would
        # hold back the first rows of an edge that comes slowly.
        "spark.buffer.size": str(settings.limits.worker_buffer_bytes),
        # It records the place of each call in this program, for messages about programs: we have none to debug.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.task.maxFailures": FIXED["spark.task.maxFailures"],
        "spark.log.level": "ERROR",
        # Fewer generations of finished jobs and queries are kept in the heap: nobody looks at them.
        "spark.ui.retainedJobs": "100",
        "spark.ui.retainedStages": "200",
        "spark.ui.retainedTasks": "10000",
        "spark.sql.ui.retainedExecutions": "20",
    }
    chosen = defaults | sql_conf(settings) | fixed
    if settings.packages:
        chosen = {"spark.jars.ivy": packages_directory()} | chosen
    return _page_conf(chosen["spark.driver.memory"]) | chosen


def _page_conf(heap: str) -> dict[str, str]:
    """Each sort, hash table and broadcast begins with a page of the heap.

    Spark 4.2 takes 64 MiB for a broadcast of ten rows, and the last query's broadcasts are still there when the next
    one makes its own (ADR 42). A task may have 8,192 pages, so a large heap has larger ones.
    """
    found = re.fullmatch(r"(\d+)([kmgt])b?", heap.strip().lower())
    if found is None:
        return {}
    heap_bytes = int(found[1]) << {"k": 10, "m": 20, "g": 30, "t": 40}[found[2]]
    page_bytes = LEAST_PAGE_BYTES
    while page_bytes * SPARK_PAGES < heap_bytes:
        page_bytes *= 2
    # An array's header must fit beside it into one region of the heap, or it takes two.
    return {"spark.buffer.pageSize": str(page_bytes - ARRAY_HEADER_BYTES)}


def cluster_conf(settings: SparkSettings) -> dict[str, str]:
    """What a driver in the member's process needs on a cluster; the cluster's own defaults stay."""
    defaults = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.executor.extraJavaOptions": "-Duser.timezone=UTC",  # as the driver's (jvm.py)
    }
    return defaults | sql_conf(settings) | {"spark.master": settings.master, "spark.app.name": "skerry"}
