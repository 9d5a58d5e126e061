"""Sail is a process of its own: nobody else reaches it, it ends with its member, and its end is not the member's."""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from skerry.model.errors import Cancelled, EngineEnded, SiteError
from skerry.model.limits import MIB
from skerry.model.results import Schema
from skerry.spark.engine import Job
from skerry.spark.sail import SailEngine
from skerry.spark.settings import SparkSettings
from skerry.testing.oracle import make_tpch

pytestmark = pytest.mark.sail

ROOT = Path(__file__).parents[3]
GRACE_S = 60.0
NOBODY = 65534
# By itself it takes ten seconds of a core.
PAIRS = "SELECT count(*) AS n FROM line a JOIN line b ON a.l_suppkey = b.l_suppkey WHERE a.l_comment < b.l_comment"
# Values of 60 MB, of which Sail holds those of many rows at once.
ENDLESS = "SELECT max(length(repeat(CAST(id AS STRING), 20000000))) AS n FROM range(100, 200, 1, 4)"


@pytest.fixture(scope="module")
def own_sail() -> Iterator[SailEngine]:
    """A Sail that tests may end, with little memory."""
    engine = SailEngine(SparkSettings(sail=True, memory_bytes=768 * MIB))
    engine.start()
    yield engine
    engine.stop()


def rows_of(
    engine: SailEngine, sql: str, tag: str = "t", on_schema: Callable[[Schema], None] = lambda schema: None
) -> list[dict[str, object]]:
    table = engine.run(Job(tag, sql, {}, {}, {}, None), on_schema).table
    assert isinstance(table, pa.Table)
    return table.to_pylist()  # type: ignore[no-any-return]


def until(is_so: object, what: str) -> None:
    assert callable(is_so)
    give_up = time.monotonic() + GRACE_S
    while not is_so():
        assert time.monotonic() < give_up, what
        time.sleep(0.01)


def port_of(pid: int) -> int:
    listening = [each for each in psutil.Process(pid).net_connections("tcp") if each.status == psutil.CONN_LISTEN]
    (address,) = {each.laddr for each in listening}
    assert address.ip == "127.0.0.1"
    return int(address.port)


@pytest.mark.skipif(sys.platform != "linux", reason="no filter for sockets: `skerry check` says so")
def test_nobody_but_its_member_reaches_sail(own_sail: SailEngine) -> None:
    """Not a process that knows the port, of another user if we may be one, and from no address of the host."""
    assert own_sail.pid is not None
    port = port_of(own_sail.pid)
    program = f"""
import os, socket
if os.getuid() == 0:
    os.setuid({NOBODY})
for host in ("127.0.0.1", "127.0.0.2"):
    line = socket.socket()
    line.settimeout(1)
    line.bind((host, 0))
    print(line.connect_ex(("127.0.0.1", {port})) == 0)
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert told.split() == ["False", "False"]
    with socket.socket() as line:  # nor a member that does not come by the socket file
        line.settimeout(1)
        assert line.connect_ex(("127.0.0.1", port)) != 0
    assert own_sail._process is not None
    path = own_sail._process.target.removeprefix("unix:")
    assert stat.S_ISSOCK(os.stat(path).st_mode)
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    assert rows_of(own_sail, "SELECT 1 AS n") == [{"n": 1}]


@pytest.mark.skipif(sys.platform != "linux", reason="huge pages are Linux's")
def test_sail_uses_no_huge_pages(own_sail: SailEngine) -> None:
    """Each job of Python would keep one, for a few small values."""
    own_sail.warm_up()
    (told,) = re.findall(r"AnonHugePages: +(\d+) kB", Path(f"/proc/{own_sail.pid}/smaps_rollup").read_text())
    assert int(told) == 0


def test_sail_ends_with_its_member_even_by_kill_9() -> None:
    program = """
from skerry.spark.sail import SailEngine
from skerry.spark.settings import SparkSettings
from skerry.testing.oracle import make_tpch
engine = SailEngine(SparkSettings(sail=True))
engine.start()
print(engine.pid, engine._process.target.removeprefix("unix:"), flush=True)
input()
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    member = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
    assert member.stdout is not None
    try:
        pid, path = member.stdout.readline().decode().split()
        assert os.path.exists(path)
    finally:
        member.kill()
        member.communicate()
    until(lambda: not psutil.pid_exists(int(pid)) or psutil.Process(int(pid)).status() == "zombie", "Sail is left")
    until(lambda: not os.path.exists(os.path.dirname(path)), "its directory is left")


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT true{' = true' * 600} AS yes",
        "SELECT id FROM range(1)" + "".join(f" LATERAL VIEW explode(array(1)) t{i} AS c{i}" for i in range(300)),
    ],
    ids=["600 comparisons", "300 lateral views"],
)
def test_a_deep_statement_runs(own_sail: SailEngine, sql: str) -> None:
    before = own_sail.pid
    assert len(rows_of(own_sail, sql)) == 1
    assert own_sail.pid == before


def test_a_value_of_any_size_ends_sail_and_a_second_time_is_refused(own_sail: SailEngine) -> None:
    """And whoever runs beside it goes on, when it is asked again."""
    limit = r"Sail ended \(its memory limit of 768 MiB was reached, .* in use\) while it ran the query"
    for _ in range(2):
        before = own_sail.pid
        with pytest.raises(EngineEnded, match=limit):
            rows_of(own_sail, ENDLESS)
        assert rows_of(own_sail, "SELECT 1 AS n") == [{"n": 1}]
        assert own_sail.pid != before
    with pytest.raises(SiteError, match="Sail ended 2 times while it ran this statement, which is refused for 5 min"):
        rows_of(own_sail, ENDLESS)


def test_the_end_of_sail_is_told_to_all_that_run_and_it_starts_by_itself(own_sail: SailEngine) -> None:
    rows_of(own_sail, "SELECT 1 AS n")
    before = own_sail.pid
    assert before is not None
    slow = "SELECT count(*) AS n FROM range(0, 4000000000, 1, 4) WHERE id % 7 = id % 11"
    begun: list[Schema] = []
    with ThreadPoolExecutor() as threads:
        asked = [
            threads.submit(rows_of, own_sail, f"{slow} AND id > {number}", f"t{number}", begun.append)
            for number in range(2)
        ]
        until(lambda: len(begun) == 2, "this Sail knows both: one that has not begun would go to the next")
        os.kill(before, signal.SIGSEGV)
        for each in asked:
            with pytest.raises(EngineEnded, match=r"Sail ended \(signal 11, SIGSEGV\) while it ran the query"):
                each.result()
    until(lambda: own_sail.pid not in (None, before), "nobody asked for it")
    assert rows_of(own_sail, "SELECT 1 AS n") == [{"n": 1}]


class KilledAtStart(SailEngine):
    def _connect(self, what: str, create: Callable[[], SparkSession]) -> SparkSession:
        assert self.pid is not None
        os.kill(self.pid, signal.SIGKILL)
        return super()._connect(what, create)


def test_the_end_of_sail_while_it_starts_is_no_error_of_a_connection() -> None:
    engine = KilledAtStart(SparkSettings(sail=True, memory_bytes=768 * MIB))
    with pytest.raises(EngineEnded, match=r"^Sail ended \(signal 9, SIGKILL\) while it started$"):
        engine.start()
    assert engine.pid is None


def test_a_job_that_ignores_its_cancel_is_ended_with_sail(own_sail: SailEngine) -> None:
    """Sail looks for no cancel while it plans: each of these is twice the one before."""
    rows_of(own_sail, "SELECT 1 AS n")
    before = own_sail.pid
    sail = psutil.Process(before)
    idle_s = sum(sail.cpu_times()[:2])
    chain = ", ".join(f"t{i} AS (SELECT * FROM t{i - 1} UNION ALL SELECT * FROM t{i - 1})" for i in range(1, 26))
    sql = f"WITH t0 AS (SELECT 1 AS n), {chain} SELECT count(*) AS n FROM t25"
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            rows_of(own_sail, sql, "stuck")
        except (Cancelled, EngineEnded) as error:
            errors.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    until(lambda: sum(sail.cpu_times()[:2]) > idle_s + 0.5, "it is planned, and planned")
    own_sail.cancel("stuck")
    own_sail.give_up("stuck")
    asking.join(GRACE_S)
    assert [type(error) for error in errors] == [Cancelled]
    assert rows_of(own_sail, "SELECT 1 AS n") == [{"n": 1}]
    assert own_sail.pid != before


def test_joins_that_compute_keep_nobody_else_waiting(tmp_path: Path) -> None:
    """Five of them kept all of Sail's threads when it had four a core, and a small query had to wait for their end."""
    engine = SailEngine(SparkSettings(sail=True))
    engine.start()
    with ThreadPoolExecutor(5) as pool:
        try:
            lineitem = make_tpch(tmp_path, 0.05)["lineitem"]
            engine.session.read.parquet(f"file://{lineitem}").createOrReplaceTempView("line")
            joins = [pool.submit(rows_of, engine, PAIRS, f"pairs-{number}") for number in range(5)]
            process, cores = psutil.Process(engine.pid), os.cpu_count() or 1

            def used_s() -> float:
                return sum(process.cpu_times()[:2])

            def are_busy() -> bool:
                return sum(each.user_time > 0.2 for each in process.threads()) >= 4 * cores

            until(are_busy, "the joins compute")
            before_s = used_s()
            groups = rows_of(engine, "SELECT l_linestatus, count(*) AS n FROM line GROUP BY l_linestatus")
            assert len(groups) == 2
            assert not any(join.done() for join in joins)
            assert used_s() - before_s < 2 * cores  # else the joins had all threads for a while
            for number in range(5):
                engine.cancel(f"pairs-{number}")
            for join in joins:
                with pytest.raises(Cancelled):
                    join.result(GRACE_S)
        finally:
            engine.stop()  # some compute on, until their process ends
