"""Three members as processes, each in a namespace of its own; what they hold; a client that asks them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import yaml

import skerry
from chaos.net import Net
from chaos.shapes import ASKED_AT, Shape
from skerry.cli.secret import ensure_secret
from skerry.client.dbapi import Connection
from skerry.config import load
from skerry.testing.points import VARIABLE

PORT = 7101
START_S = 120.0
STOP_S = 30.0
LEFT_S = 20.0  # for the last receipts
LIMITS = {
    # Small enough that small tables have many batches, grants, pages and spool files.
    "batch_bytes": 16 * 1024,
    "first_credits_bytes": 64 * 1024,
    "spool_memory_bytes": 256 * 1024,
    "heartbeat_s": 0.5,
    "wait_s": 6,
    "stop_s": 5,
}
_SPARKS_TRACE = re.compile(r".* skerry\.spark .*Spark failed: ")  # in the log on purpose
_TCP_GONE = {"06", "0A"}  # TIME_WAIT and LISTEN, as /proc/net/tcp writes them


class Broken(Exception):
    """The cluster does not do what a round needs; the round is a violation."""


def wait_until(condition: Callable[[], object], what: str, deadline_s: float) -> None:
    give_up = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > give_up:
            raise Broken(f"not within {deadline_s:g} s: {what}")
        time.sleep(0.01)


class Site:
    """One `skerry up FILE --member NAME` in its namespace."""

    def __init__(self, net: Net, file: Path, name: str, folder: Path, temp: Path) -> None:
        self.name = name
        self.temp = temp
        self.armed = temp / "armed"
        self.log_path = folder / f"{name}-{time.monotonic_ns()}.log"
        self._out_path = self.log_path.with_suffix(".out")
        self._log_from = 0
        up = [sys.executable, "-m", "skerry.testing.points", "up", str(file), "--member", name, "--until-input-ends"]
        env = {**os.environ, "TMPDIR": str(temp), VARIABLE: str(self.armed), "SPARK_LOCAL_IP": "127.0.0.1"}
        with self.log_path.open("wb") as log, self._out_path.open("wb") as out:
            self.process = subprocess.Popen(
                net.command(name, *up),
                stdin=subprocess.PIPE,  # it ends with this process, whatever happens
                stdout=out,
                stderr=log,
                env=env,
                start_new_session=True,  # Ctrl-C is for the runner
            )

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    @property
    def is_ready(self) -> bool:
        return "is ready at" in self._out_path.read_text()

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    @property
    def is_stopped(self) -> bool:
        try:
            return psutil.Process(self.process.pid).status() == psutil.STATUS_STOPPED
        except psutil.NoSuchProcess:
            return False

    def wait_ready(self) -> None:
        def is_ready() -> bool:
            if self.has_ended:
                raise Broken(f"{self.name} ended with {self.process.returncode}, see {self.log_path}")
            return self.is_ready

        wait_until(is_ready, f"{self.name} is ready", START_S)

    def arm(self, point: str, action: str, count: int) -> None:
        new = self.armed.with_suffix(".new")
        new.write_text(f"{point}|{action}|{count}")
        new.rename(self.armed)

    def signal(self, number: signal.Signals) -> None:
        if not self.has_ended:
            self.process.send_signal(number)

    def end(self) -> None:
        """However it is: stopped, or not quite started."""
        self.signal(signal.SIGKILL)
        self.process.wait(STOP_S)
        self.close()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    # --- what it holds -----------------------------------------------------------------------------
    def new_trouble(self) -> list[str]:
        """Errors and traces in the log since the last call."""
        text = self.log
        new, self._log_from = text[self._log_from :], len(text)
        found = []
        for record in re.split(r"^(?=\d{4}-\d\d-\d\d )", new, flags=re.MULTILINE):
            first = record.partition("\n")[0]
            if " ERROR " in first or ("Traceback" in record and not _SPARKS_TRACE.match(first)):
                found.append(f"{self.name} logged: {first}")
        return found

    def left(self, links_max: int) -> Iterator[str]:
        """What an idle member does not have: queries, spool files, connections beyond one to each peer, tasks."""
        log = self.log
        begun = {("takes part in", q) for q in re.findall(r"query (\S+): begun here", log)}
        begun |= {("runs", q) for q in re.findall(r"query (\S+): planned in", log)}
        ended = {("takes part in", q) for q in re.findall(r"query (\S+): ended here", log)}
        ended |= {("runs", q) for q in re.findall(r"query (\S+): ended, ", log)}
        yield from (f"{self.name} {how} query {query}" for how, query in begun - ended)
        proc = Path(f"/proc/{self.process.pid}")
        for link in _links(proc / "fd"):
            if link.startswith(str(self.temp)) and link.endswith("(deleted)"):
                yield f"{self.name} has spool file {link}"
        links = _connections(proc)
        if len(links) > links_max:
            yield f"{self.name} has {len(links)} connections: {', '.join(links)}"
        tasks = sum(line.endswith("tasks.sock") for line in (proc / "net/unix").read_text().splitlines())
        if tasks > 1:
            yield f"{self.name} has {tasks - 1} connections with Spark tasks"
        for path in self.temp.glob("skerry-member-*/*"):
            if path.name not in ("lock", "tasks.sock"):
                yield f"{self.name} has {path.name} in its folder"
        folders = list(self.temp.glob("skerry-member-*"))
        if len(folders) > 1:
            yield f"{self.name} has {len(folders)} folders of its own"


def _links(folder: Path) -> Iterator[str]:
    for each in list(folder.iterdir()):
        try:
            yield os.readlink(each)
        except OSError:
            continue


def _connections(proc: Path) -> list[str]:
    """TCP connections of its namespace, but for those inside it (Sail, Spark's driver)."""
    found = []
    for line in (proc / "net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        local, remote, state = fields[1], fields[2], fields[3]
        if state not in _TCP_GONE and not remote.startswith("0100007F") and local != remote:
            found.append(f"{_shown(local)}–{_shown(remote)} state {state}")
    return found


def _shown(address: str) -> str:
    host, _, port = address.partition(":")
    return f"{'.'.join(str(each) for each in reversed(bytes.fromhex(host)))}:{int(port, 16)}"


class Cluster:
    """The members of one run. `sparks` gives a site another engine than Sail; `limits` others than LIMITS."""

    def __init__(
        self,
        net: Net,
        folder: Path,
        tables: Mapping[str, Mapping[str, Path]],
        sparks: Mapping[str, Mapping[str, Any]] | None = None,
        limits: Mapping[str, int | float] | None = None,
    ) -> None:
        self.net = net
        self.folder = folder
        self.sites: dict[str, Site] = {}
        self._temps: dict[str, Path] = {}
        self._connections: list[Connection] = []
        for name in net.names:
            self._temps[name] = folder / name[0]  # short: it holds a Unix socket
            self._temps[name].mkdir(parents=True)
        self.file = folder / "skerry.yaml"
        _write_config(self.file, net, tables, sparks or {}, LIMITS if limits is None else limits)

    def __enter__(self) -> Cluster:
        try:
            self.start(*self.net.names)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def launch(self, name: str, arm: tuple[str, str] | None = None) -> Site:
        """Not waited for; `arm` is what stands in its way."""
        if arm is not None:
            (self._temps[name] / "armed").write_text(f"{arm[0]}|{arm[1]}|1")
        site = self.sites[name] = Site(self.net, self.file, name, self.folder, self._temps[name])
        return site

    def start(self, *names: str) -> None:
        for site in [self.launch(name) for name in names]:
            site.wait_ready()

    def stop(self) -> None:
        for connection in self._connections:
            connection.close()
        for site in self.sites.values():
            site.signal(signal.SIGCONT)
            site.signal(signal.SIGTERM)
        for site in self.sites.values():
            try:
                site.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                site.process.kill()
                site.process.wait()
            site.close()

    def connect(self, name: str = ASKED_AT, **options: Any) -> Connection:
        with self.net.as_client():
            return skerry.connect(f"skerry://{self.net.address(name)}:{PORT}", **options)

    def left(self, deadline_s: float) -> list[str]:
        """After a while: receipts lag behind a query's end. Members that were killed have no say."""
        give_up = time.monotonic() + deadline_s
        living = [site for site in self.sites.values() if not site.has_ended]
        while left := [what for site in living for what in site.left(len(living) - 1)]:
            if time.monotonic() > give_up:
                return left
            time.sleep(0.02)
        return []

    def processes_of(self, name: str) -> list[str]:
        """Processes that carry a member's environment: it, and whatever it started."""
        mark = f"{VARIABLE}={self._temps[name] / 'armed'}".encode()
        found = []
        for each in psutil.process_iter():
            try:
                if mark in Path(f"/proc/{each.pid}/environ").read_bytes().split(b"\0"):
                    found.append(f"{each.pid} {' '.join(each.cmdline())[:80]}")
            except (OSError, psutil.Error):
                continue
        return found


def _write_config(
    path: Path,
    net: Net,
    tables: Mapping[str, Mapping[str, Path]],
    sparks: Mapping[str, Mapping[str, Any]],
    limits: Mapping[str, int | float],
) -> None:
    root = os.path.commonpath([folder for placed in tables.values() for folder in placed.values()])
    members = {
        name: {
            "address": f"{net.address(name)}:{PORT}",
            "spark": dict(sparks.get(name, {"sail": True})),
            "tables": {
                table: {"format": "parquet", "path": os.path.relpath(folder, root)}
                for table, folder in tables[name].items()
            },
        }
        for name in net.names
    }
    # Nobody but the members and the runner's clients is in these networks.
    text = {"cluster": "chaos", "insecure": True, "data_root": root, "members": members, "limits": dict(limits)}
    path.write_text(yaml.safe_dump(text, sort_keys=False), encoding="utf-8")
    ensure_secret(load(path), all_start_here=True)


class Asking:
    """A client in a thread of its own: reads page by page, or one page and then cancels."""

    def __init__(self, cluster: Cluster, shape: Shape, number: int, policy: str, *, cancels: bool = False) -> None:
        self.rows: list[tuple[Any, ...]] | None = None
        self.error: skerry.Error | None = None
        self.ended_at = 0.0
        self.pages = 0
        self._cluster, self._shape, self._policy, self._cancels = cluster, shape, policy, cancels
        self._sql = shape.text(number)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        return self.ended_at > 0

    def wait(self, deadline_s: float) -> bool:
        """False: it hangs."""
        self._thread.join(deadline_s)
        return self.is_over

    def answer(self) -> Sequence[tuple[Any, ...]]:
        assert self.rows is not None
        return self.rows if self._shape.ordered else sorted(self.rows)

    def _run(self) -> None:
        try:
            with self._cluster.connect(fault_policy=self._policy) as connection, connection.cursor() as cursor:
                rows: list[tuple[Any, ...]] = []
                cursor.execute(self._sql)
                while page := cursor.fetchmany(4096):
                    rows += page
                    self.pages += 1
                    if self._cancels:
                        return
                    time.sleep(self._shape.pause_s)
                self.rows = rows
        except skerry.Error as error:
            self.error = error
        finally:
            self.ended_at = time.monotonic()
