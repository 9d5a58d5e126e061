"""Members as processes of this machine: started together, watched, stopped together."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import click
from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

_READY = "is ready at"
_START_S = 300.0  # three Sparks at once on a small, busy machine take minutes
_STOP_S = 180.0  # a member whose Spark is still starting stops when that is done; one that is killed leaves files
_READ_S = 10.0  # for the last words of a process that has ended


class MemberProcess:
    """One `skerry up FILE --member NAME`. Its log goes to `log_path`, or line by line to `on_line`."""

    def __init__(
        self, config: Path, name: str, *, log_path: Path | None, on_line: Callable[[str], None] | None, keep: bool
    ) -> None:
        self.name = name
        self.log_path = log_path
        self.started_at = time.monotonic()
        self.ready_after_s: float | None = None
        self._on_line = on_line
        command = [sys.executable, "-m", "skerry.cli", "up", str(config), "--member", name]
        # A member that nobody keeps ends when its standard input closes: no starter's death leaves one behind.
        command += [] if keep else ["--until-input-ends"]
        log: IO[bytes] | int = log_path.open("ab") if log_path is not None else subprocess.PIPE
        self._log = log
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL if keep else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for the starter, who then stops its members in order
        )
        self._readers = [threading.Thread(target=self._read_ready, daemon=True)]
        if log_path is None:
            self._readers.append(threading.Thread(target=self._read_log, daemon=True))
        for reader in self._readers:
            reader.start()

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def state(self) -> str:
        if self.has_ended:
            return f"ended with status {self.process.returncode}"
        return "ready" if self.ready_after_s is not None else "starting Spark"

    def stop(self) -> None:
        if not self.has_ended:
            self.process.terminate()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.let_go()

    def wait(self) -> None:
        """Bounded: a member that does not stop is killed."""
        try:
            self.process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self.let_go()

    def let_go(self) -> None:
        """Close what ties this process to the member."""
        for reader in self._readers:
            if self.has_ended:
                reader.join(_READ_S)
        if self.has_ended:
            for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
                if stream is not None:
                    stream.close()
        if not isinstance(self._log, int):
            self._log.close()

    def last_lines(self, count: int) -> str:
        if self.log_path is None:
            return ""
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-count:])

    def _read_ready(self) -> None:
        assert self.process.stdout is not None
        for raw in self.process.stdout:
            if _READY in raw.decode(errors="replace"):
                self.ready_after_s = time.monotonic() - self.started_at

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        for raw in self.process.stderr:
            if self._on_line is not None:
                self._on_line(f"{self.name:<10} {raw.decode(errors='replace').rstrip()}")


class Members:
    """All members of a configuration. Leaving the `with` block stops them, whatever happened (unless kept)."""

    def __init__(
        self,
        config: Path,
        names: Sequence[str],
        *,
        log_dir: Path | None = None,
        on_line: Callable[[str], None] | None = None,
        keep: bool = False,
    ) -> None:
        self._config = config
        self._names = names
        self._log_dir = log_dir
        self._on_line = on_line
        self.keep = keep
        self.processes: list[MemberProcess] = []

    def __enter__(self) -> Self:
        try:
            for name in self._names:
                log_path = self._log_dir / f"{name}.log" if self._log_dir is not None else None
                if log_path is not None:
                    log_path.write_bytes(b"")
                self.processes.append(
                    MemberProcess(self._config, name, log_path=log_path, on_line=self._on_line, keep=self.keep)
                )
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None or not self.keep:
            self.stop()
        else:
            for process in self.processes:
                process.let_go()

    def wait_ready(self, console: Console) -> None:
        """Show how they start; a member that ends instead is an error with the end of its log."""
        deadline = time.monotonic() + _START_S
        with Live(self._table(), console=console, refresh_per_second=8, transient=False) as live:
            while not all(process.ready_after_s is not None for process in self.processes):
                dead = next((process for process in self.processes if process.has_ended), None)
                if dead is not None:
                    live.update(self._table())
                    raise click.ClickException(f"member {dead.name} {dead.state()}\n{dead.last_lines(15)}")
                if time.monotonic() > deadline:
                    raise click.ClickException(f"the members did not start within {_START_S:.0f} s")
                time.sleep(0.1)
                live.update(self._table())
        if not console.is_terminal:
            console.print()  # Live leaves its last line open there

    def stop(self) -> None:
        for process in self.processes:
            process.stop()
        try:
            for process in self.processes:
                process.wait()
        except KeyboardInterrupt:  # again Ctrl-C: no more patience, but nothing is left running
            for process in self.processes:
                process.kill()
            raise

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2))
        for process in self.processes:
            now = process.ready_after_s or time.monotonic() - process.started_at
            mark = Text("✓", "green") if process.ready_after_s is not None else Spinner("dots")
            if process.has_ended:
                mark = Text("✗", "red")
            table.add_row("", mark, process.name, process.state(), f"{now:.1f} s")
        return table
