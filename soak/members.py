"""Three members as processes of their own; what they hold, and where they are when nothing moves."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from skerry.cli.secret import ensure_secret
from skerry.config import load
from skerry.testing.nasty import SITES
from skerry.testing.ports import free_ports
from skerry.testing.sites import tpch_tables, write_config

START_S = 400.0  # three Sparks at once, on a busy machine
STOP_S = 60.0
STACKS = Path(__file__).parent / "stacks"
SPARK = {"master": "local[2]", "conf": {"spark.driver.memory": "1g"}}
SAIL = {"sail": True, "memory": "3 GiB"}
BUSY_S = 2.0

Held = Mapping[str, float]


class Members:
    """Use as `with`. All their processes are children of this one, and end with it."""

    def __init__(self, folder: Path, tables: Mapping[str, Path], on_sail: bool) -> None:
        self.folder = folder
        self.dumps = folder / "stacks"
        self.dumps.mkdir(parents=True)
        spark: dict[str, Any] = SAIL if on_sail else SPARK
        self.file = write_config(folder / "skerry.yaml", folder, tpch_tables(tables), spark=spark)
        text = self.file.read_text()
        for index, port in enumerate(free_ports(len(SITES))):
            text = text.replace(f"127.0.0.1:{7101 + index}", f"127.0.0.1:{port}")
        self.file.write_text(text)
        ensure_secret(load(self.file), all_start_here=True)
        self.urls = [f"skerry://{member.address}" for member in load(self.file).members.values()]
        self._processes: dict[str, psutil.Popen] = {}

    def __enter__(self) -> Members:
        try:
            for name in SITES:
                self._start(name)
            self._wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self, name: str) -> None:
        temp = self.folder / name[0]  # short: it holds a Unix socket
        temp.mkdir()
        command = [sys.executable, "-m", "skerry.cli", "up", str(self.file), "--member", name, "--until-input-ends"]
        env = {**os.environ, "TMPDIR": str(temp), "SKERRY_SOAK_STACKS": str(self.dumps), "PYTHONPATH": str(STACKS)}
        with (self.folder / f"{name}.log").open("wb") as log, (self.folder / f"{name}.out").open("wb") as out:
            self._processes[name] = psutil.Popen(
                command, stdin=subprocess.PIPE, stdout=out, stderr=log, env=env, start_new_session=True
            )

    def _wait_ready(self) -> None:
        give_up = time.monotonic() + START_S
        while not all("is ready at" in (self.folder / f"{name}.out").read_text() for name in SITES):
            if time.monotonic() > give_up or any(each.poll() is not None for each in self._processes.values()):
                raise RuntimeError(f"the members did not start, see {self.folder}")
            time.sleep(0.1)

    def stop(self) -> None:
        for process in self._processes.values():
            with suppress(psutil.Error):
                process.terminate()
        for process in self._processes.values():
            try:
                process.wait(STOP_S)
            except psutil.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdin.close()

    @property
    def have_ended(self) -> list[str]:
        return [name for name, process in self._processes.items() if process.poll() is not None]

    # --- what they hold ----------------------------------------------------------------------------
    def groups(self) -> Iterator[tuple[str, psutil.Process]]:
        """All processes, by what they are: a member, its planners, its engine, the engine's Python workers."""
        for process in list(self._processes.values()):
            yield "member", process
            children = []
            with suppress(psutil.Error):  # a member that has ended is told by `have_ended`
                children = process.children(recursive=True)
            for child in children:
                with suppress(psutil.Error):
                    command = " ".join(child.cmdline())
                    is_engine = child.name() == "java" or "sail_child" in command
                    yield "engine" if is_engine else "worker" if "pyspark" in command else "planner", child

    def held(self) -> Held:
        """Sums over all members."""
        found: defaultdict[str, float] = defaultdict(float)
        for group, process in self.groups():
            with suppress(psutil.Error, OSError):
                links = list(_links(process.pid))
                found[f"{group} MB"] += process.memory_info().rss / 2**20
                if group in ("member", "engine"):
                    found[f"{group} threads"] += process.num_threads()
                    found[f"{group} files"] += len(links)
                    found[f"{group} sockets"] += sum(link.startswith("socket:") for link in links)
                if group == "member":
                    found["spool MB"] += _spooled(process.pid, links) / 2**20
                found[f"{group} processes"] += 1
        return found

    # --- where they are ----------------------------------------------------------------------------
    def dump(self, why: str) -> Path:
        """Stacks of all threads of all processes, the members' asyncio tasks, and which threads are busy."""
        folder = self.dumps / f"dump-{len(list(self.dumps.glob('dump-*'))) + 1}"
        folder.mkdir()
        everybody = list(self.groups())
        busy = [f"{why}\n"]
        before = {process.pid: _seconds(process) for _, process in everybody}
        time.sleep(BUSY_S)
        for group, process in everybody:
            shares = {
                thread: (seconds - before[process.pid].get(thread, 0.0)) / BUSY_S
                for thread, seconds in _seconds(process).items()
            }
            if sum(shares.values()) > 0.05:  # Sail may be busy in a hundred threads, and none of them much
                busy.append(f"{group} {process.pid}: {sum(shares.values()):.0%}\n")
            for thread, share in shares.items():
                if share > 0.05:
                    busy.append(f"{group} {process.pid} thread {thread} {_name(process.pid, thread)}: {share:.0%}\n")
            with suppress(psutil.Error):
                if process.name() == "java":
                    process.send_signal(signal.SIGQUIT)
                elif group != "planner":
                    process.send_signal(signal.SIGUSR1)
                if group == "member":
                    process.send_signal(signal.SIGUSR2)
        time.sleep(BUSY_S)
        (folder / "busy.txt").write_text("".join(busy))
        for path in [*self.dumps.glob("*.txt"), *self.folder.glob("*/skerry-spark-*/jvm.log")]:
            if path.stat().st_size:
                shutil.copy(path, folder / f"{path.parent.parent.name}-{path.name}")
        return folder


def _links(pid: int) -> Iterator[str]:
    for each in os.listdir(f"/proc/{pid}/fd"):
        with suppress(OSError):
            yield os.readlink(f"/proc/{pid}/fd/{each}")


def _spooled(pid: int, links: list[str]) -> int:
    """Spool files are unlinked when they are made."""
    if not any(link.endswith("(deleted)") for link in links):
        return 0
    size = 0
    for each in os.listdir(f"/proc/{pid}/fd"):
        with suppress(OSError):
            if os.readlink(f"/proc/{pid}/fd/{each}").endswith("(deleted)"):
                size += os.stat(f"/proc/{pid}/fd/{each}").st_size
    return size


def _seconds(process: psutil.Process) -> dict[int, float]:
    with suppress(psutil.Error):
        return {each.id: each.user_time + each.system_time for each in process.threads()}
    return {}


def _name(pid: int, thread: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/task/{thread}/comm").read_text().strip()
    return ""
