"""Members as processes of this machine: started together, watched, stopped together."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import click

from skerry.cli.logs import Line, take_lines
from skerry.cli.screen import Screen, Seen, engine_of
from skerry.model.config import Config, MemberConfig
from skerry.model.limits import LAST_LINES

_READY = "is ready at"
_START_S = 300.0  # three Sparks at once on a small, busy machine take minutes
_STOP_S = 180.0  # a member whose Spark is still starting stops when that is done; one that is killed leaves files
_READ_S = 10.0  # for the last words of a process that has ended

OnLine = Callable[[str, Line], None]


class MemberProcess:
    """One `skerry up FILE --member NAME`. Its log goes to `log_path`, or line by line to `on_line`."""

    def __init__(
        self, file: Path, member: MemberConfig, *, log_path: Path | None, on_line: OnLine, keep: bool, is_debug: bool
    ) -> None:
        self.name = member.name
        self.log_path = log_path
        self.started_at = time.monotonic()
        self.ready_after_s: float | None = None
        self._member = member
        self._on_line = on_line
        self._ended_after_s: float | None = None
        command = [sys.executable, "-m", "skerry.cli", "up", str(file)]
        command += ["--debug"] if is_debug else []
        command += ["--json-log"] if log_path is None else []
        command += ["--member", self.name]
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

    def seen(self) -> Seen:
        """As it is now."""
        now_s = time.monotonic() - self.started_at
        if self.has_ended:
            self._ended_after_s = self._ended_after_s or now_s
            state, seconds = "ended", self._ended_after_s
        elif self.ready_after_s is not None:
            state, seconds = "ready", self.ready_after_s
        else:
            state, seconds = "starting", now_s
        return Seen(self.name, state, engine_of(self._member), seconds, self._member.url)

    def stop(self) -> None:
        if not self.has_ended:
            self.process.terminate()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.let_go()

    def wait(self, timeout_s: float) -> None:
        """Bounded: a member that does not stop is killed."""
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
        self.let_go()

    def read_to_end(self) -> None:
        """It has ended: its last words are there when this returns."""
        for reader in self._readers:
            reader.join(_READ_S)

    def let_go(self) -> None:
        """Close what ties this process to the member."""
        if self.has_ended:
            self.read_to_end()
            for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
                if stream is not None:
                    stream.close()
        if not isinstance(self._log, int):
            self._log.close()

    def _read_ready(self) -> None:
        assert self.process.stdout is not None
        for raw in self.process.stdout:
            if _READY in raw.decode(errors="replace"):
                self.ready_after_s = time.monotonic() - self.started_at

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        take_lines(self.process.stderr, partial(self._on_line, self.name))


class Members:
    """All members of a configuration. Leaving the `with` block stops them, whatever happened (unless kept)."""

    def __init__(
        self,
        file: Path,
        config: Config,
        screen: Screen,
        *,
        log_dir: Path | None = None,
        keep: bool = False,
        is_debug: bool = False,
    ) -> None:
        self._file = file
        self._config = config
        self._screen = screen
        self._log_dir = log_dir
        self.keep = keep
        self._is_debug = is_debug
        self.processes: list[MemberProcess] = []

    def __enter__(self) -> Self:
        try:
            for member in self._config.members.values():
                log_path = self._log_path(member.name)
                if log_path is not None:
                    log_path.write_bytes(b"")
                self.processes.append(self._started(member))
        except BaseException:
            self.stop()
            raise
        return self

    def _log_path(self, name: str) -> Path | None:
        return self._log_dir / f"{name}.log" if self._log_dir is not None else None

    def _started(self, member: MemberConfig) -> MemberProcess:
        return MemberProcess(
            self._file,
            member,
            log_path=self._log_path(member.name),
            on_line=self._screen.take,
            keep=self.keep,
            is_debug=self._is_debug,
        )

    def kill(self, name: str) -> None:
        """As if its host had lost its power."""
        next(process for process in self.processes if process.name == name).kill()

    def start_again(self, name: str) -> None:
        """One that was killed; `wait_ready` waits for it."""
        self.processes = [
            self._started(self._config.member(name)) if process.name == name else process for process in self.processes
        ]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None or not self.keep:
            self.stop()
        else:
            for process in self.processes:
                process.let_go()

    def seen(self) -> list[Seen]:
        return [process.seen() for process in self.processes]

    def wait_ready(self) -> None:
        """Show how they start; a member that ends instead is an error with the end of its log."""
        deadline = time.monotonic() + _START_S
        with self._screen.starting():
            while not all(process.ready_after_s is not None for process in self.processes):
                self._screen.show(self.seen())
                self.refuse_ended()
                if time.monotonic() > deadline:
                    raise click.ClickException(f"the members did not start within {_START_S:.0f} s")
                time.sleep(0.1)
            self._screen.show(self.seen())

    def refuse_ended(self) -> None:
        """ClickException if one of them runs no more."""
        dead = next((process for process in self.processes if process.has_ended), None)
        if dead is not None:
            dead.read_to_end()
            said = self._last_words(dead)
            ended = f"member {dead.name} ended with status {dead.process.returncode}; stopping the others"
            raise click.ClickException(f"{ended}\n{said}".rstrip())

    def stop(self) -> None:
        try:
            self._stop_all()
        except KeyboardInterrupt:  # again Ctrl-C: members need not wait for their queries
            try:
                self._stop_all()
            except KeyboardInterrupt:  # no more patience, but nothing is left running
                for process in self.processes:
                    process.kill()
                raise

    def _stop_all(self) -> None:
        for process in self.processes:
            process.stop()
        for process in self.processes:
            process.wait(_STOP_S + self._config.limits.drain_s)

    def _last_words(self, process: MemberProcess) -> str:
        if process.log_path is None:
            return self._screen.last_words(process.name, LAST_LINES)
        return "\n".join(process.log_path.read_text(errors="replace").splitlines()[-LAST_LINES:])
