"""What every test gets: a private temp folder, a leak check, Hypothesis profiles, and TPC-H data made once."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import venv
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_timeout
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers

from skerry.model.limits import Limits
from tests.servers.found import Missing, jars

if TYPE_CHECKING:
    from skerry.spark.engine import Engine
    from skerry.testing.sparks import ConnectServer, Standalone

# Machines differ in speed: no wall-clock deadlines. Each run tries the same examples, `make properties` SEEDS new ones.
settings.register_profile(
    "default", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "sim",
    settings.get_profile("default"),
    derandomize=False,
    max_examples=int(os.environ.get("SEEDS", "2000")),
    stateful_step_count=100,
)
# `make mutants` wants to know that there is a failure, not the smallest one.
settings.register_profile("mutants", settings.get_profile("default"), phases=(Phase.explicit, Phase.generate))
settings.load_profile("default")

SLOW_UNITS = ("cli", "member", "spark", "tables")
# Where `make test` looks for tests with these marks; for slow ones that need an engine, where it looks for that.
HOMES = {
    "spark": ("integration", "e2e"),
    "sail": ("integration", "e2e"),
    "standalone": ("integration/spark",),
    "connect": ("integration/spark",),
    "e2e": ("e2e", "integration/spark"),
    "slow": ("integration/member", "plans", "property/exchange", "sim", *(f"unit/{each}" for each in SLOW_UNITS)),
}

# Nowhere here it looks for others: to collect these folders takes seconds.
ENGINES = ("integration", "e2e")

# These hold sockets, threads and files on purpose (Spark's gateway, processes): they check their own leaks.
UNCHECKED = ("spark", "sail", "standalone", "connect", "e2e")
# A thread or a socket that is on its way out may need a moment, on a busy machine a long one; a leak stays.
GRACE_S = 30.0

# What many tests share is set up while one of them waits: a JVM, its first queries, the tables of all sites.
SHARED_S = 300.0

# For every JVM that tests start: queries that differ, over few rows. To compile them as for a long life, and to collect
# garbage beside them, took half of Spark's time; to look through the whole heap whenever the classes that queries are
# compiled to outgrew 21 MB, and a young generation of a third, a sixth of the rest. To prove anew that Spark's own
# classes are sound takes a fifth of its start. Large pages spare a twentieth of all; only Linux knows the word.
JVM_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC -XX:MetaspaceSize=256m -XX:NewRatio=1"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
    " -XX:+IgnoreUnrecognizedVMOptions -XX:+UseTransparentHugePages"
)

# For the one Spark of a run: hundreds of queries, alike in parts. Spark keeps 100 of the classes that it compiles them
# to, each named after its place in a query; and a heap that begins small looks for garbage seven times as often.
SPARK_CONF = {
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-Xms1536m -Xmn1g",
    "spark.sql.codegen.cache.maxEntries": "4000",
    "spark.sql.codegen.useIdInClassName": "false",
}

# Of a cluster with small hosts.
CLUSTER_CONF = {
    "spark.driver.memory": "1g",
    "spark.executor.memory": "768m",
    "spark.executor.cores": "2",
    "spark.cores.max": "4",
    "spark.sql.codegen.useIdInClassName": "false",
}

# The first rows of a task leave long before its last.
SHORT_BATCHES = Limits(batch_rows=500)

TESTS = Path(__file__).parent

PRIVATE_TEMP = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    """Other runs on this machine must not look like leaks of this one: temp files go to a folder of its own."""
    # A shell's background jobs ignore Ctrl-C, and so would everything the tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault("JAVA_TOOL_OPTIONS", JVM_OPTIONS)
    usual = tempfile.gettempdir()
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", usual)  # tmp_path of failed tests is kept, as always
    # A short name: paths of Unix sockets end at 108 bytes.
    private = Path(tempfile.mkdtemp(prefix="t", dir=usual))
    config.stash[PRIVATE_TEMP] = private
    os.environ["TMPDIR"] = tempfile.tempdir = str(private)
    if config.getoption("--hypothesis-profile") != "sim":
        # Hypothesis also draws constants of the modules that are loaded: what is tried would change with every line of
        # the source, and with the tests that a worker ran before. `make properties` may look that far.
        assert callable(providers._get_local_constants)
        providers._get_local_constants = lambda: providers._local_constants


def pytest_xdist_auto_num_workers() -> int:
    """As many as can run at once: a container sees all cores of its host, and may have the time of two."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):  # not Linux, or no bound: "max 100000"
        quota_us, period_us = map(int, Path("/sys/fs/cgroup/cpu.max").read_text().split())
        cores = min(cores, -(-quota_us // period_us))
    return cores


def pytest_itemcollected(item: pytest.Item) -> None:
    """Sail and Apache Spark cannot share a process: pyspark would take one for the other."""
    if "sail_engine" in getattr(item, "fixturenames", ()):
        item.add_marker("sail")
    has_engine = any(map(item.get_closest_marker, UNCHECKED))
    for mark, homes in HOMES.items():
        if mark == "slow" and has_engine:
            continue
        if item.get_closest_marker(mark) and not any(item.path.is_relative_to(TESTS / home) for home in homes):
            raise pytest.UsageError(f"{item.nodeid}: `make test` does not look here for tests marked {mark} (HOMES)")
    if item.path.is_relative_to(TESTS / "e2e") and not item.get_closest_marker("e2e"):
        raise pytest.UsageError(f"{item.nodeid}: `make test` looks here for tests marked e2e alone")
    if not any(map(item.get_closest_marker, HOMES)) and any(item.path.is_relative_to(TESTS / home) for home in ENGINES):
        raise pytest.UsageError(f"{item.nodeid}: `make test` looks here for tests that have one of {[*HOMES]} alone")


def pytest_unconfigure(config: pytest.Config) -> None:
    private = config.stash.get(PRIVATE_TEMP, None)
    if private is not None:
        shutil.rmtree(private, ignore_errors=True)


def pytest_collection_finish(session: pytest.Session) -> None:
    """All tests and modules live until the end: the collector need not look at them after every thousand objects."""
    gc.collect()
    gc.freeze()


class Watchdog(threading.Thread):
    """One thread ends whatever test takes too long; pytest-timeout would start and join one for each."""

    def __init__(self) -> None:
        super().__init__(name="watchdog", daemon=True)
        self.watched: tuple[float, pytest.Item, pytest_timeout.Settings] | None = None

    def run(self) -> None:
        while True:
            time.sleep(1)
            watched = self.watched
            if watched is not None and time.monotonic() > watched[0]:
                self.watched = None
                pytest_timeout.timeout_timer(*watched[1:])  # shows all stacks and ends the process

    def put_off(self, more_s: float) -> None:
        if self.watched is not None:
            self.watched = (self.watched[0] + more_s, *self.watched[1:])


WATCHDOG = Watchdog()


def pytest_timeout_set_timer(item: pytest.Item, settings: pytest_timeout.Settings) -> bool | None:
    """pytest-timeout's own hook: whoever answers first has set the timer."""
    if settings.method != "thread":
        return None
    if not WATCHDOG.is_alive():
        WATCHDOG.start()
    WATCHDOG.watched = (time.monotonic() + settings.timeout, item, settings)
    return True


def pytest_timeout_cancel_timer(item: pytest.Item) -> None:
    WATCHDOG.watched = None


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """The test that comes first has its time for itself, not for what the others find ready."""
    if fixturedef.scope == "function":
        return (yield)
    began = time.monotonic()
    WATCHDOG.put_off(SHARED_S)
    try:
        return (yield)
    finally:
        WATCHDOG.put_off(time.monotonic() - began - SHARED_S)


class LostTasks(logging.Handler):
    """Tasks that nobody ended: asyncio cancels them at the end of `run`, or logs that they were destroyed."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.seen: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.add(f"asyncio: {record.getMessage()}")

    def watch_runner(self) -> None:
        """asyncio has no public way to say which tasks `run` had to cancel, so its own function is wrapped."""
        cancel_all = asyncio.runners._cancel_all_tasks  # type: ignore[attr-defined]

        def recorded(loop: asyncio.AbstractEventLoop) -> None:
            self.seen |= {f"task {task.get_coro()}" for task in asyncio.all_tasks(loop)}
            cancel_all(loop)

        asyncio.runners._cancel_all_tasks = recorded  # type: ignore[attr-defined]


LOST_TASKS = LostTasks()
LOST_TASKS.watch_runner()
logging.getLogger("asyncio").addHandler(LOST_TASKS)


def _sockets() -> set[str]:
    found = set()
    for name in os.listdir("/dev/fd"):
        try:
            status = os.fstat(int(name))
        except OSError:
            continue  # the listing's own descriptor
        if stat.S_ISSOCK(status.st_mode):
            found.add(f"socket {status.st_ino} (descriptor {name})")
    return found


def _threads() -> set[str]:
    return {f"thread {thread.name} ({thread.ident})" for thread in threading.enumerate() if not thread.daemon}


def _temp_files() -> set[str]:
    return {entry.path for entry in os.scandir(tempfile.gettempdir()) if entry.name.startswith("skerry")}


def _held() -> set[str]:
    return _sockets() | _threads() | _temp_files() | LOST_TASKS.seen


@pytest.fixture(autouse=True)
def no_leaks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Nothing that a test opened outlives it. What wider fixtures hold is there before, and does not count."""
    if any(request.node.get_closest_marker(name) for name in UNCHECKED):
        yield
        return
    before = _held()
    yield
    leaked = _held() - before
    give_up = time.monotonic() + GRACE_S
    while leaked and time.monotonic() < give_up:
        gc.collect()
        time.sleep(0.01)
        leaked = _held() - before
    if leaked:
        pytest.fail("left behind by this test:\n  " + "\n  ".join(sorted(leaked)), pytrace=False)


@pytest.fixture(scope="session")
def tpch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the eight TPC-H tables at scale 0.01 as Parquet files (60,175 rows of lineitem)."""
    folder = tmp_path_factory.mktemp("tpch")
    command = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
    made = subprocess.run(
        [command, "parquet", "-s", "0.01", "--output-dir", folder], capture_output=True, text=True, timeout=250
    )
    assert made.returncode == 0, f"{command} on {sys.platform}: {made.stderr}"
    return folder


@pytest.fixture(scope="session")
def spark_engine() -> Iterator[Engine]:
    """The one Apache Spark of this run: a process can have no second one."""
    from skerry.spark import SparkSettings, start_engine

    with contextlib.suppress(Missing):  # tests that need them skip themselves
        SPARK_CONF["spark.jars"] = jars()
    engine = start_engine(SparkSettings(master="local[2]", conf=SPARK_CONF))
    yield engine
    engine.stop()


@pytest.fixture(scope="session")
def sail_engine() -> Iterator[Engine]:
    """One Sail for all tests of this run that need no other, whatever they cancel: a fresh one has other sockets."""
    from skerry.spark import SparkSettings, start_engine

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("skerry.spark.waste.SAIL_WASTE_AGE_S", float("inf"))
        engine = start_engine(SparkSettings(sail=True))
    yield engine
    engine.stop()


@pytest.fixture(scope="session")
def executors_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python of a cluster's hosts: it has what Skerry depends on, and no Skerry."""
    folder = tmp_path_factory.mktemp("executors")
    venv.create(folder)
    # Of a folder that is added in this way, files of the same kind are not read: Skerry is here by one of those.
    (folder / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages/others.pth").write_text(
        sysconfig.get_path("purelib")
    )
    return str(folder / "bin" / "python")


@pytest.fixture(scope="session")
def standalone_cluster(executors_python: str) -> Iterator[Standalone]:
    """A master and two workers, with room for another driver's executors."""
    from skerry.testing.sparks import standalone

    with standalone(executors_python, cores=4, memory_mb=2048) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def standalone_engine(standalone_cluster: Standalone, executors_python: str) -> Iterator[Engine]:
    """The one driver of this run, on that cluster."""
    from skerry.spark import SparkSettings, start_engine

    conf = CLUSTER_CONF | {"spark.pyspark.python": executors_python}
    engine = start_engine(SparkSettings(master=standalone_cluster.url, conf=conf, limits=SHORT_BATCHES))
    yield engine
    engine.stop()


@pytest.fixture(scope="session")
def connect_server(executors_python: str) -> Iterator[ConnectServer]:
    """A Spark Connect server with executors of its own."""
    from skerry.testing.sparks import connect_server

    with connect_server(executors_python, CLUSTER_CONF | {"spark.master": "local-cluster[2,2,1024]"}) as server:
        yield server


@pytest.fixture(scope="session")
def connect_engine(connect_server: ConnectServer) -> Iterator[Engine]:
    """The one client of this run."""
    from skerry.spark import SparkSettings, start_engine

    engine = start_engine(SparkSettings(remote=connect_server.url, limits=SHORT_BATCHES))
    yield engine
    engine.stop()
