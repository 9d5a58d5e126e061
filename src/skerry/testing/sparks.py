"""Sparks as a site has them: a standalone cluster and a Spark Connect server, by the scripts in pyspark's wheel.

Each daemon has a process group of its own, and a guard that ends the group when its input ends: it ends with whoever
started it, kill -9 included, and its executors with it.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import pyspark

from skerry.spark.jvm import LOG4J
from skerry.testing.ports import HOST, free_ports

START_S = 120.0
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
EXECUTOR = "CoarseGrainedExecutorBackend"
_SMALL = "SPARK_DAEMON_MEMORY=128m"  # a Connect server would take it for its heap as well
_GUARD = 'cat >/dev/null; kill -9 -- "-$0" 2>/dev/null'


class Daemon:
    """A JVM that Spark's own scripts start."""

    def __init__(self, name: str, folder: Path, python: str, command: Sequence[str], port: int) -> None:
        """Returns when it listens at `port`."""
        self.name = name
        self._log = folder / f"{name}.log"
        folder.joinpath("log4j2.properties").write_text(LOG4J.format(directory=folder), encoding="utf-8")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env=_environment(folder, python),
                start_new_session=True,
            )
        self._guard = subprocess.Popen(
            ["bash", "-c", _GUARD, str(self._process.pid)], stdin=subprocess.PIPE, start_new_session=True
        )
        try:
            self._wait_until_open(port)
        except BaseException:
            self.stop()
            raise

    def kill(self) -> None:
        """As a crash would: what it started is told by nobody."""
        self._process.kill()
        self._process.wait(START_S)

    def executors(self) -> list[psutil.Process]:
        """Those that this worker, or this server, has started and that still run."""
        if self._process.poll() is not None:
            return []
        found = []
        for each in psutil.Process(self._process.pid).children(recursive=True):
            with suppress(psutil.Error):
                if EXECUTOR in " ".join(each.cmdline()) and each.status() != psutil.STATUS_ZOMBIE:
                    found.append(each)
        return found

    def stop(self) -> None:
        """Ends it and all that it started; whatever state it is in."""
        # Python daemons of executors have groups of their own, and end when their executor has.
        alive = self._process.poll() is None
        started = psutil.Process(self._process.pid).children(recursive=True) if alive else []
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        for each in (self._guard, self._process):
            each.wait(START_S)
        psutil.wait_procs(started, START_S)

    def _wait_until_open(self, port: int) -> None:
        give_up = time.monotonic() + START_S
        while time.monotonic() < give_up:
            with suppress(OSError):
                socket.create_connection((HOST, port), 1.0).close()
                return
            if self._process.poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError(f"{self.name} did not start: {self._log.read_text(errors='replace')[:1500]}")


class Standalone:
    """A master and its workers, each with `cores` slots and `memory_mb`."""

    def __init__(self, folder: Path, python: str, workers: int, cores: int, memory_mb: int) -> None:
        self._python = python
        self._folder = folder
        self._cores = cores
        self._memory_mb = memory_mb
        self.workers: list[Daemon] = []
        port, page = free_ports(2)
        self.url = f"spark://{HOST}:{port}"
        self.master = self._start(
            "master", MASTER, ["--host", HOST, "--port", str(port), "--webui-port", str(page)], port
        )
        try:
            for _ in range(workers):
                self.start_worker()
        except BaseException:
            self.stop()
            raise

    def start_worker(self) -> Daemon:
        port, page = free_ports(2)
        name = f"worker-{len(self.workers)}"
        more = ["--cores", str(self._cores), "--memory", f"{self._memory_mb}M", "--work-dir", str(self._folder / name)]
        listens = ["--host", HOST, "--port", str(port), "--webui-port", str(page)]
        self.workers.append(self._start(name, WORKER, [*listens, *more, self.url], port))
        return self.workers[-1]

    def executors(self) -> list[psutil.Process]:
        return [each for worker in self.workers for each in worker.executors()]

    def stop(self) -> None:
        for daemon in (*self.workers, self.master):
            daemon.stop()

    def _start(self, name: str, main: str, arguments: Sequence[str], port: int) -> Daemon:
        folder = self._folder / name
        folder.mkdir()
        return Daemon(name, folder, self._python, ["env", _SMALL, _script("spark-class"), main, *arguments], port)


@contextmanager
def standalone(python: str, workers: int = 2, cores: int = 2, memory_mb: int = 1024) -> Iterator[Standalone]:
    """`python`: what the hosts run their Python workers with."""
    with ExitStack() as stack:
        cluster = Standalone(Path(stack.enter_context(_folder())), python, workers, cores, memory_mb)
        stack.callback(cluster.stop)
        yield cluster


class ConnectServer:
    """Spark Connect at a port that stays, so that it can be killed and started again."""

    def __init__(self, folder: Path, python: str, conf: Mapping[str, str]) -> None:
        self._folder = folder
        self._python = python
        self._conf = conf
        (self._port,) = free_ports(1)
        self.url = f"sc://{HOST}:{self._port}"
        self.start()

    def start(self) -> None:
        conf = {
            "spark.connect.grpc.binding.address": HOST,
            "spark.connect.grpc.binding.port": str(self._port),
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.ui.enabled": "false",
            "spark.log.level": "ERROR",
            "spark.local.dir": str(self._folder),
            "spark.sql.warehouse.dir": f"file:{self._folder}/warehouse",
            **self._conf,
        }
        told = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
        command = [_script("spark-submit"), "--class", CONNECT, *told, "spark-internal"]
        self.daemon = Daemon("connect", self._folder, self._python, command, self._port)

    def stop(self) -> None:
        self.daemon.stop()


@contextmanager
def connect_server(python: str, conf: Mapping[str, str]) -> Iterator[ConnectServer]:
    """`conf`: of the server, its `spark.master` among it."""
    with ExitStack() as stack:
        server = ConnectServer(Path(stack.enter_context(_folder())), python, conf)
        stack.callback(server.stop)
        yield server


@contextmanager
def _folder() -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="skerry-sparks-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _script(name: str) -> str:
    return str(Path(pyspark.__file__).parent / "bin" / name)


def _environment(folder: Path, python: str) -> dict[str, str]:
    """As on hosts of a cluster: nothing of the caller's Spark, and no Skerry, which comes with the session."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
    return kept | {
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_CONF_DIR": str(folder),
        "SPARK_LOCAL_IP": HOST,
        "PYSPARK_PYTHON": python,
        "PYTHONPATH": "",
    }
