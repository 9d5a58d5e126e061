"""What the commands that talk to a member share: a connection, statements run on it, their rows and errors shown."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import click
from rich.console import Console

from skerry.cli.login import Login, complete
from skerry.cli.paging import Left, Output
from skerry.cli.plans import plan_text
from skerry.cli.progress import LiveLine
from skerry.cli.render import CONTROLS, message_text, wrapped
from skerry.cli.statements import done_text, is_told_as_text
from skerry.cli.writers import FORMATS, View
from skerry.client.dbapi import Connection, Cursor, connect
from skerry.client.pep249 import Error, Row
from skerry.model.amounts import counted

BINARY = ("arrow", "parquet")
INTERRUPTED = 130  # the shell's exit code for Ctrl-C


class Runner:
    """Runs statements on one connection and shows what they give; connects again when the member came back."""

    def __init__(
        self,
        url: str,
        output_format: str,
        timeout_s: float | None,
        fault_policy: str | None = None,
        login: Login | None = None,
    ) -> None:
        self.url = url
        self.login = complete(login or Login(), url)
        self.timing = True
        self.is_prompt = False
        is_terminal = sys.stdout.isatty()
        self.view = View(output_format, colour=is_terminal)
        self._is_paged = is_terminal and sys.stdin.isatty()
        self._timeout_s = timeout_s
        self._fault_policy = fault_policy
        self._live = LiveLine(url, Console(stderr=True), self.login)
        self._connection: Connection | None = None

    @property
    def is_binary(self) -> bool:
        return self.view.output_format in BINARY

    def connection(self) -> Connection:
        before = self._connection
        if before is None or not before.usable:
            self.close()
            self._connection = connect(self.url, fault_policy=self._fault_policy, **self.login)
            if before is not None:
                self._connection.schema_name = before.schema_name  # that of the last USE
                self._connection.variables = before.variables
                # What follows is not to commit by itself: it is refused until ROLLBACK is said.
                self._connection.transaction = before.transaction
            return self._connection
        return before

    def place(self) -> str:
        """Member and schema, as a URL has them; "" while there is no connection."""
        if self._connection is None or not self._connection.usable:
            return ""
        member, schema = self._connection.member, self._connection.schema_name
        return (f"{member}/{schema}" if schema else member).translate(CONTROLS)

    def run(self, statement: str) -> None:
        """Run one statement to its end and write its rows to standard output."""
        watch = Stopwatch()
        with self.connection().cursor() as cursor:
            with watch, self._live.during(cursor, watch.started):
                cursor.execute(statement, timeout_s=self._timeout_s)
            for _, warning in cursor.messages:
                _tell("warning: ", str(warning), "yellow")
            if is_told_as_text(statement) and self.view.is_for_people and cursor.description is not None:
                self.show_plan([str(line) for (line,) in cursor.fetchall()])
            else:
                self._show(cursor, watch, done_text(statement))

    def attach(self, query_id: str) -> None:
        """Write the rows of a query that was submitted."""
        with self.connection().attach(query_id) as cursor:
            self._show(cursor, Stopwatch())

    def show_plan(self, lines: list[str]) -> None:
        """As EXPLAIN tells it, in lines that fit the screen."""
        with Output(is_paged=self._is_paged) as output:
            width = output.size.columns if self.view.colour else None
            with suppress(Left):
                output.write(plan_text(lines, width))

    def close(self) -> None:
        self._live.close()
        if self._connection is not None:
            self._connection.close()

    def _show(self, cursor: Cursor, watch: Stopwatch, done: str = "") -> None:
        if cursor.description is None:
            changed = f"{counted(max(cursor.rowcount, 0))} changed"
            self._say(f"{done}, {changed}" if done and cursor.rowcount > 0 else done or changed, watch)
            return
        if self.is_binary:
            with watch:
                count = write_binary(cursor, self.view.output_format)
            self._say(counted(count), watch)
            return
        count, has_ended = 0, False
        with Output(is_paged=self._is_paged, on_left=cursor.cancel) as output:
            self.view.width = output.size.columns if self._is_paged else None
            writer = self.view.writer(output.write)
            try:
                writer.begin(cursor.description)
                while rows := self._page(cursor, watch, output):
                    count += len(rows)
                    writer.rows(rows)
                    output.flush()
                writer.end()
                has_ended = True
            except Left:
                pass
            except Error:
                if not output.was_left:  # else it is the cancel of what nobody wants any more
                    raise
        told = counted(count) if has_ended else f"{counted(count)} read, perhaps not all"
        self._say(told, watch, output.note(is_prompt=self.is_prompt))

    def _page(self, cursor: Cursor, watch: Stopwatch, output: Output) -> list[Row]:
        with watch, nullcontext() if output.is_paging else self._live.during(cursor, watch.started):
            return cursor.fetch_page()

    def _say(self, told: str, watch: Stopwatch, note: str = "") -> None:
        """The line below a result."""
        timed = f", {watch.seconds:.2f} s" if self.timing else ""
        # CSV and JSON are for programs: there the line must not stand among the rows.
        click.echo(f"({told}{timed})" + (f" {note}" if note else ""), err=not self.view.is_for_people)


class Stopwatch:
    """Runs while the member is waited for, not while somebody reads in a pager."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.seconds = 0.0

    def __enter__(self) -> None:
        self._since = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.monotonic() - self._since


def write_binary(cursor: Cursor, output_format: str) -> int:
    """The rows as an Arrow stream or a Parquet file on standard output, as they come; returns how many."""
    import pyarrow as pa  # slow to load, and only needed here
    import pyarrow.parquet as pq

    reader = cursor.fetch_record_batch_reader()
    stream = pa.PythonFile(sys.stdout.buffer, mode="w")
    writer: Any
    if output_format == "arrow":
        writer = pa.ipc.new_stream(stream, reader.schema)
    else:
        writer = pq.ParquetWriter(stream, reader.schema)
    rows = 0
    with writer:
        for batch in reader:
            writer.write_batch(batch)
            rows += batch.num_rows
    sys.stdout.buffer.flush()
    return rows


def _tell(lead: str, text: str, colour: str | None = None) -> None:
    """To standard error; on a terminal in lines that fit it."""
    text = message_text(text)
    if sys.stderr.isatty():
        text = wrapped(text, shutil.get_terminal_size().columns, len(lead))
    click.echo((click.style(lead, fg=colour, bold=True) if colour else lead) + text, err=True)


def show_error(error: Error) -> None:
    """To standard error, without a traceback."""
    _tell("error: ", error.message, "red")
    if error.suggestion:
        _tell("hint: ", error.suggestion)


@contextmanager
def told(runner: Runner) -> Iterator[None]:
    """Errors go to standard error and end the command with exit code 1, Ctrl-C with 130."""
    try:
        yield
    except Error as error:
        show_error(error)
        sys.exit(1)
    except KeyboardInterrupt:
        click.echo("cancelled", err=True)
        sys.exit(INTERRUPTED)
    finally:
        runner.close()


def _check_format(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    if value in BINARY and sys.stdout.isatty():
        raise click.UsageError(f"{value} is not for a terminal: write it to a file (> rows.{value})")
    return value


format_option = click.option(
    "--format",
    "output_format",
    type=click.Choice([*FORMATS, *BINARY]),
    default="table",
    show_default=True,
    callback=_check_format,
    help="How rows are written to standard output.",
)
