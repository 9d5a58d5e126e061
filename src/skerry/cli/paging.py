"""Output that may be too large for the screen: written at once where it fits, else given to a pager.

Without a pager it is cut, at the screen's width and after so many lines, and says so.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from rich.cells import cell_len, set_cell_size

from skerry.model.limits import UNPAGED_LINES

_BELOW = 2  # lines of the screen that are needed below: what the result was, and the next prompt
# Lines are cut, not wrapped, and stay on the screen in the end; arrows show what is beside.
_LESS = "-SRX -Psarrows scroll, q goes back$"
_STYLES = re.compile(r"\x1b\[[0-9;]*m")


class Left(Exception):
    """Who looked at the output has seen enough, or the rest of it is cut off."""


class Fit:
    """Whether text that comes in pieces fits a screen."""

    def __init__(self, columns: int, lines: int) -> None:
        self._columns = columns
        self._lines = lines
        self._count = 0
        self._last = ""  # the line that has not ended
        self.is_wide = False
        self.is_long = False

    def take(self, text: str) -> bool:
        *ended, self._last = (self._last + text).split("\n")
        self._count += len(ended)
        self.is_wide |= any(width_of(line) > self._columns for line in (*ended, self._last))
        self.is_long |= self._count + bool(self._last) > self._lines - _BELOW
        return not (self.is_wide or self.is_long)


def width_of(line: str) -> int:
    return cell_len(_STYLES.sub("", line))


def cut(line: str, columns: int) -> str:
    """At the edge of the screen, with a sign that something is beyond."""
    if width_of(line) <= columns:
        return line
    return set_cell_size(_STYLES.sub("", line), columns - 1) + "…"


def pager_command(environ: Mapping[str, str], find: Callable[[str], str | None] = shutil.which) -> str | None:
    """The user's PAGER, else less; None where neither is there, or PAGER is empty."""
    wanted = environ.get("PAGER", "less").strip()
    for command in (wanted, "less" if wanted else ""):
        with contextlib.suppress(ValueError):  # a quote without its end
            words = shlex.split(command)
            if words and find(words[0]):
                return command
    return None


def pager_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What the user told less comes last, and so has the last word."""
    return {**environ, "LESS": f"{_LESS} {environ.get('LESS', '')}".rstrip()}


class Output:
    """Standard output for one result. Leaving the `with` block waits until the pager is left, if there is one.

    `on_left` is called, from another thread, when the pager is left before the end: nobody wants the rest.
    """

    def __init__(self, *, is_paged: bool, on_left: Callable[[], None] = lambda: None) -> None:
        self._is_held = is_paged
        self._on_left = on_left
        self.size = shutil.get_terminal_size()
        self.fit = Fit(self.size.columns, self.size.lines)
        self._held: list[str] = []
        self._pager: subprocess.Popen[str] | None = None
        self._watch: threading.Thread | None = None
        self._has_ended = False
        self._written_lines = 0
        self._is_cut = False

    @property
    def was_left(self) -> bool:
        """The pager was left before the end."""
        return self._pager is not None and self._pager.poll() is not None

    @property
    def is_paging(self) -> bool:
        """Whether the screen is somebody else's now."""
        return self._pager is not None

    def write(self, text: str) -> None:
        """Raises Left when no more is wanted."""
        if self._pager is not None:
            self._feed(self._pager, text)
        elif self._is_cut:
            self._write_cut(text)
        elif not self._is_held:
            sys.stdout.write(text)
        else:
            self._held.append(text)
            if not self.fit.take(text):
                self._give_up_holding()

    def flush(self) -> None:
        if self._pager is None:
            sys.stdout.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._has_ended = True
        if self._pager is not None:
            self._wait(self._pager)
        elif self._is_held and not self._is_cut:
            sys.stdout.write("".join(self._held))
        sys.stdout.flush()

    def _give_up_holding(self) -> None:
        text, self._held = "".join(self._held), []
        command = pager_command(os.environ)
        if command is None:
            self._is_cut = True
            self._write_cut(text)
            return
        sys.stdout.flush()
        # Ctrl-C is the pager's now: it must end neither this process nor the session.
        self._usual = signal.signal(signal.SIGINT, lambda number, frame: None)
        try:
            self._pager = subprocess.Popen(
                command,
                shell=True,
                stdin=subprocess.PIPE,
                env=pager_environment(os.environ),
                text=True,
                encoding="utf-8",
                errors="replace",
            )
        except BaseException:
            signal.signal(signal.SIGINT, self._usual)
            raise
        self._watch = threading.Thread(target=self._wait_left, args=(self._pager,), name="skerry-pager", daemon=True)
        self._watch.start()
        self._feed(self._pager, text)

    def _feed(self, pager: subprocess.Popen[str], text: str) -> None:
        assert pager.stdin is not None
        try:
            pager.stdin.write(text)
            pager.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise Left from None

    def _wait(self, pager: subprocess.Popen[str]) -> None:
        assert pager.stdin is not None
        assert self._watch is not None
        try:
            with contextlib.suppress(BrokenPipeError):
                pager.stdin.close()
            self._watch.join()
        finally:
            signal.signal(signal.SIGINT, self._usual)

    def _wait_left(self, pager: subprocess.Popen[str]) -> None:
        pager.wait()
        if not self._has_ended:
            self._on_left()

    def _write_cut(self, text: str) -> None:
        for line in text.splitlines(keepends=True):
            if self._written_lines >= UNPAGED_LINES:
                raise Left
            self._written_lines += line.endswith("\n")
            ending = "\n" * line.endswith("\n")
            sys.stdout.write(cut(line.removesuffix("\n"), self.size.columns) + ending)

    def note(self, *, is_prompt: bool) -> str:
        """What to say below a result that was cut."""
        how = r"\x" if is_prompt else "--format vertical"
        if self._is_cut and self._written_lines >= UNPAGED_LINES:
            return f"cut after {UNPAGED_LINES} lines: set PAGER, or write all to a file with --format csv"
        if self._is_cut or (self.is_paging and self.fit.is_wide):
            return f"wider than the screen: {how} shows rows one value a line"
        return ""
