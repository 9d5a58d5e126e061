"""Members as processes of their own, each with its own temp folder, log and Spark; and what they leave behind."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

import skerry
from skerry.client.dbapi import Connection
from skerry.testing.points import VARIABLE
from skerry.testing.ports import free_ports
from tests.integration.member.member_sites import SITES, make_sites, wait_until, write_sites

START_S = 400.0  # three Sparks at once, on a busy machine
STOP_S = 90.0
# A client's connection to a member whose JVM, and whose neighbours', may have the machine for themselves for a while.
CONNECT_S = 60.0
LITE = "kiosk"
TPCH = {
    "oslo": ("orders", "lineitem"),
    "bergen": ("customer", "nation", "region"),
    "tromso": ("part", "partsupp", "supplier"),
}


def skerry_command(*arguments: object, chaos: bool = False) -> list[str]:
    return [sys.executable, "-m", "skerry.testing.points" if chaos else "skerry.cli", *map(str, arguments)]


def tree_of(pid: int) -> list[psutil.Process]:
    """The process and all that it started: its JVM, and the JVM's Python workers."""
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def command_of(process: psutil.Process) -> str:
    """ "" when it is gone, or not quite there."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def wait_gone(processes: Sequence[psutil.Process], what: str) -> None:
    wait_until(lambda: not any(_lives(each) for each in processes), f"all processes of {what} are gone", STOP_S)


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Site:
    """One `skerry up FILE --member NAME`."""

    def __init__(self, file: Path, name: str, folder: Path, temp: Path, chaos: Path | None = None) -> None:
        """`chaos`: the file that says when it is killed (skerry/testing/points.py)."""
        self.name = name
        self.temp = temp
        self._log_path = folder / f"{name}-{time.monotonic_ns()}.log"
        self._out_path = self._log_path.with_suffix(".out")
        with self._log_path.open("wb") as log, self._out_path.open("wb") as out:
            self.process = subprocess.Popen(
                skerry_command("up", file, "--member", name, "--until-input-ends", chaos=chaos is not None),
                stdin=subprocess.PIPE,  # it ends with this process, whatever happens
                stdout=out,
                stderr=log,
                env={**os.environ, "TMPDIR": str(self.temp)} | ({VARIABLE: str(chaos)} if chaos is not None else {}),
            )

    @property
    def log(self) -> str:
        return self._log_path.read_text(errors="replace")

    def wait_ready(self) -> None:
        def is_ready() -> bool:
            assert self.process.poll() is None, f"{self.name} ended with {self.process.returncode}:\n{self.log}"
            return "is ready at" in self._out_path.read_text()

        wait_until(is_ready, f"{self.name} is ready", START_S)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """From when it is ready; at the end it is gone, whatever a test did."""
        try:
            self.wait_ready()
            yield
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.close()

    def end(self, number: signal.Signals) -> int:
        """Send the signal, and wait for the end of the process and of all that it started; returns its status."""
        tree = tree_of(self.process.pid)
        self.process.send_signal(number)
        status = self.process.wait(STOP_S)
        self.close()
        wait_gone(tree, self.name)
        return status

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def queries_under_way(self) -> set[str]:
        """Queries that this member takes part in, by its own account."""
        begun = re.findall(r"query (\S+): begun here", self.log)
        ended = re.findall(r"query (\S+): ended here", self.log)
        return set(begun) - set(ended)

    def spool_files(self) -> list[str]:
        """Spool files have no name: they are found among the open ones."""
        links = []
        with contextlib.suppress(FileNotFoundError):  # the member may just have ended,
            for each in Path(f"/proc/{self.process.pid}/fd").iterdir():
                with contextlib.suppress(FileNotFoundError):  # or have closed that file
                    links.append(os.readlink(each))
        return [link for link in links if link.startswith(str(self.temp)) and link.endswith("(deleted)")]

    def links(self, ports: set[int]) -> int:
        """Connections with members and clients."""
        found = psutil.Process(self.process.pid).net_connections("tcp")
        mine = [each for each in found if each.status not in (psutil.CONN_LISTEN, psutil.CONN_TIME_WAIT)]
        return sum(1 for each in mine if each.laddr.port in ports or (each.raddr and each.raddr.port in ports))


class Sites:
    """Three sites with TPC-H and the tables of the fault tests, and a lite member."""

    def __init__(self, folder: Path, tpch: Path) -> None:
        self._folder = folder
        names = (*SITES, LITE)
        self.ports = dict(zip(names, free_ports(len(names)), strict=True))
        data = folder / "data"
        tables: dict[str, dict[str, Path]] = make_sites(data)
        for site, placed in TPCH.items():
            for table in placed:
                path = data / site / f"{table}.parquet"
                shutil.copyfile(tpch / f"{table}.parquet", path)
                tables[site][table] = path
        spark: Mapping[str, Any] = {"master": "local[2]", "conf": {"spark.driver.memory": "1g"}}
        # Queries of these tests last for minutes: a member that is told to stop would wait for them.
        limits = {"drain_s": 1.0}
        path = folder / "skerry.yaml"
        self.file = write_sites(path, tables, ports=self.ports, spark=spark, limits=limits, lite=(LITE,))
        self.running: dict[str, Site] = {}
        # Short paths, for they hold Unix sockets.
        self._temps = {name: Path(tempfile.mkdtemp(prefix="e")) for name in names}

    def start(self, *names: str) -> None:
        for name in names:
            self.running[name] = Site(self.file, name, self._folder, self._temps[name])
        for name in names:
            self.running[name].wait_ready()

    def end(self, name: str, number: signal.Signals) -> tuple[Site, int]:
        site = self.running.pop(name)
        return site, site.end(number)

    def stop(self) -> None:
        for site in self.running.values():
            site.process.terminate()
        for site in self.running.values():
            try:
                site.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                site.process.kill()
                site.process.wait()
            site.close()

    def url(self, name: str) -> str:
        return f"skerry://127.0.0.1:{self.ports[name]}"

    def connect(self, name: str) -> Connection:
        return skerry.connect(self.url(name), timeout_s=CONNECT_S)

    def ask(self, name: str, sql: str) -> list[tuple[Any, ...]]:
        with self.connect(name) as connection, connection.cursor() as cursor:
            return cursor.execute(sql).fetchall()

    def state_of(self, name: str, at: str) -> str:
        """As the other member sees it."""
        with self.connect(at) as connection:
            return next(member.state for member in connection.members() if member.name == name)

    def count_at(self, name: str) -> int:
        """How many queries that member takes part in."""
        return len(self.running[name].queries_under_way())

    def nothing_left(self) -> None:
        """No query, spool file, connection or folder beyond what an idle cluster has."""
        give_up = time.monotonic() + STOP_S
        while left := [what for site in self.running.values() for what in self._left_at(site)]:
            assert time.monotonic() < give_up, "\n".join(["left behind:", *left])
            time.sleep(0.02)

    def _left_at(self, site: Site) -> Iterator[str]:
        log = site.log
        yield from (f"{site.name}: query {query}" for query in site.queries_under_way())
        yield from (f"{site.name}: spool file {path}" for path in site.spool_files())
        # One control connection with each other member, and none with a client.
        links = site.links(set(self.ports.values()))
        if links >= len(self.running):
            yield f"{site.name}: {links} connections"
        folders = {re.sub(r"-[^-]*$", "", each.name) for each in site.temp.iterdir()}
        yield from (f"{site.name}: {name}" for name in folders - {f"skerry-member-{site.name}", "skerry-spark"})
        assert " ERROR " not in log, log
        # A Spark error's trace stands in the log on purpose; any other is one that nobody expected.
        for record in re.split(r"^(?=\d{4}-\d\d-\d\d )", log, flags=re.MULTILINE):
            is_sparks = re.match(r".* skerry\.spark .*Spark failed: ", record) is not None
            assert "Traceback" not in record or is_sparks, log
