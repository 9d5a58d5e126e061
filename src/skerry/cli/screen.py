"""What `skerry up` and `skerry demo` show of members that start: one table, with the log above it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from skerry.cli.logs import Held, Line, Phase, Record, is_shown, line_text, note_line
from skerry.cli.render import pad
from skerry.member.loglines import JsonLines, record_of
from skerry.model import trace
from skerry.model.config import Config, MemberConfig

_MARKS = {"ready": ("✓", "green"), "ended": ("✗", "red")}


class Seen(NamedTuple):
    """A member as it starts. state: "starting", "ready" or "ended"; `url` is where it will be."""

    name: str
    state: str
    engine: str
    seconds: float
    url: str

    @property
    def state_text(self) -> str:
        match self.state:
            case "ready":
                return f"ready after {self.seconds:.1f} s"
            case "ended":
                return f"ended after {self.seconds:.1f} s"
        return f"starting {self.engine}".rstrip() + f" {self.seconds:.1f} s"


def engine_of(member: MemberConfig) -> str:
    """What takes the time of its start."""
    if member.spark is None:
        return ""
    return "Sail" if member.spark.sail else "Spark"


def member_lines(seen: Sequence[Seen]) -> list[str]:
    names = max(len(each.name) for each in seen)
    states = max(len(each.state_text) for each in seen)
    return [f"  {pad(each.name, names)}  {pad(each.state_text, states)}  {each.url}" for each in seen]


def ready_lines(config: Config, seen: Sequence[Seen]) -> list[str]:
    """The end of a start: where each member is, and what to type next."""
    is_alone = len(seen) == 1
    count = "the member is" if is_alone else "all members are"
    return [
        f"cluster {config.cluster}: {count} ready",
        "",
        *member_lines(seen),
        "",
        f"Ask {'it' if is_alone else 'any of them'}, in another terminal:",
        f"  skerry sql {_word(seen[0].url)}",
        "Ctrl-C stops " + ("it." if is_alone else "all of them."),
    ]


def _word(url: str) -> str:
    """As a shell takes it."""
    return f"'{url}'" if set(url) & set("?&; ") else url


class _Console(Console):
    """Text as it is. When nobody reads it any more (`up | head`), it goes nowhere, and members run on.

    Rich ends the thread that writes: a member's log would then be read no more, and the member stop at a full pipe.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, emoji=False)  # `:100:` in a statement is no picture

    def on_broken_pipe(self) -> None:
        self.quiet = True


class Screen:
    """Safe for threads. Where there is a terminal, log lines stand above the table, and only those that matter.

    `shows_all`: every line is shown. Without a terminal that is always so: what is written to a file is to be complete.
    `is_json`: every line of the log is an object, those of this process too. What is on standard output stays text.
    """

    def __init__(
        self, names: Sequence[str], *, shows_all: bool = False, is_json: bool = False, out: Console | None = None
    ) -> None:
        self._out = out or _Console()
        self._err = _Console(stderr=True)
        self._names = tuple(names)
        self._width = max(map(len, names), default=0)
        self._shows_all = shows_all or not self._err.is_terminal
        self._is_json = is_json
        self._phase = Phase.STARTING
        self._held = Held()
        self._lock = threading.Lock()
        self._told: set[str] = set()
        # The table is drawn where the log goes: only so can the two keep out of each other's way.
        self._drawn_on = next((console for console in (self._err, self._out) if console.is_terminal), None)
        self._live: Live | None = None

    @property
    def is_left(self) -> bool:
        """Does nobody read the log any more?"""
        return self._err.quiet

    def take(self, member: str, line: Line) -> None:
        """A line of a member's log."""
        with self._lock:
            if self._shows_all or is_shown(line, self._phase):
                if self._is_json:
                    text = line.raw if isinstance(line, Record) else note_line(member, line)
                else:
                    text = line_text(member, self._width, line)
                self._err.print(text, markup=False, highlight=False, soft_wrap=True)
            else:
                self._held.keep(member, line)

    def last_words(self, member: str, count: int) -> str:
        """What it said before it ended and nobody was shown."""
        return self._held.last(member, count)

    @contextmanager
    def starting(self) -> Iterator[None]:
        """The table is there while the body runs."""
        if self._drawn_on is not None:
            # A new one each time: Rich's would clear as many lines as the last table had, and what was said since.
            self._live = Live(console=self._drawn_on, refresh_per_second=8, transient=True)
            self._live.start(refresh=True)
        try:
            yield
        finally:
            with self._lock:  # no line may come between the last table and its end
                if self._live is not None:
                    self._live.stop()
                self._phase = Phase.UP

    def show(self, seen: Sequence[Seen]) -> None:
        """How far they are now."""
        if self._live is not None:
            self._live.update(_table(seen))
            return
        for each in seen:
            if each.state != "starting" and each.name not in self._told:
                self._told.add(each.name)
                kind = trace.MemberReady if each.state == "ready" else trace.MemberEnded
                self.say(f"{pad(each.name, self._width)}  {each.state_text}", kind(each.name, each.seconds))

    def say(self, text: str, event: trace.Event) -> None:
        """The text, or the event where lines are objects."""
        if self._is_json:
            text = JsonLines().format(record_of(event))
        with self._lock:
            self._err.print(text, markup=False, highlight=False, soft_wrap=True)

    def ready(self, config: Config, seen: Sequence[Seen]) -> None:
        with self._lock:
            self._out.print("\n".join(ready_lines(config, seen)), markup=False, highlight=False, soft_wrap=True)

    def stopping(self) -> None:
        with self._lock:
            self._phase = Phase.STOPPING
        self.say("stopping", trace.StopBegun(self._names))


def _table(seen: Sequence[Seen]) -> Table:
    table = Table.grid(padding=(0, 2))
    for _ in range(4):
        table.add_column(no_wrap=True, overflow="ellipsis")
    for each in seen:
        mark = Text(*_MARKS[each.state]) if each.state in _MARKS else Spinner("dots")
        table.add_row(mark, each.name, each.state_text, each.url if each.state == "ready" else "")
    return table
