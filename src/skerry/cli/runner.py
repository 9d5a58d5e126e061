"""What the commands that talk to a member share: a connection, statements run on it, their rows and errors shown."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console

from skerry.cli.progress import LiveLine
from skerry.cli.render import CsvWriter, JsonWriter, RowWriter, TableWriter, Write, rows_text, summary
from skerry.client.dbapi import Connection, Cursor, connect
from skerry.client.pep249 import Error

BINARY = ("arrow", "parquet")
INTERRUPTED = 130  # the shell's exit code for Ctrl-C


class Runner:
    """Runs statements on one connection and shows what they give; connects again when the member came back."""

    def __init__(self, url: str, output_format: str, timeout_s: float | None, fault_policy: str | None = None) -> None:
        self.url = url
        self.timing = True
        self._format = output_format
        self._timeout_s = timeout_s
        self._fault_policy = fault_policy
        self._live = LiveLine(url, Console(stderr=True))
        self._connection: Connection | None = None

    @property
    def is_binary(self) -> bool:
        return self._format in BINARY

    def connection(self) -> Connection:
        if self._connection is None or not self._connection.usable:
            self.close()
            self._connection = connect(self.url, fault_policy=self._fault_policy)
        return self._connection

    def run(self, statement: str) -> None:
        """Run one statement to its end and write its rows to standard output."""
        started = time.monotonic()
        with self.connection().cursor() as cursor:
            with self._live.during(cursor, started):
                cursor.execute(statement, timeout_s=self._timeout_s)
            self._show(cursor, started)

    def attach(self, query_id: str) -> None:
        """Write the rows of a query that was submitted."""
        started = time.monotonic()
        with self.connection().attach(query_id) as cursor:
            self._show(cursor, started)

    def _show(self, cursor: Cursor, started: float) -> None:
        if cursor.description is None:
            self._say(f"{rows_text(max(cursor.rowcount, 0))} changed", started)
            return
        if self.is_binary:
            self._say(None, started, write_binary(cursor, self._format))
            return
        writer = make_writer(self._format, sys.stdout.write, sys.stdout.isatty())
        writer.begin(cursor.description)
        count = 0
        while True:
            with self._live.during(cursor, started):
                rows = cursor.fetch_page()
            if not rows:
                break
            count += len(rows)
            writer.rows(rows)
            sys.stdout.flush()
        writer.end()
        sys.stdout.flush()
        self._say(None, started, count)

    def close(self) -> None:
        self._live.close()
        if self._connection is not None:
            self._connection.close()

    def _say(self, text: str | None, started: float, rows: int = 0) -> None:
        seconds = time.monotonic() - started if self.timing else None
        if text is None:
            text = summary(rows, seconds)
        elif seconds is not None:
            text = f"({text}, {seconds:.2f} s)"
        # CSV and JSON are for programs: there the line must not stand among the rows.
        click.echo(text, err=self._format != "table")


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


def make_writer(output_format: str, write: Write, colour: bool) -> RowWriter:
    match output_format:
        case "csv":
            return CsvWriter(write)
        case "json":
            return JsonWriter(write)
    return TableWriter(write, colour)


def show_error(error: Error) -> None:
    """To standard error, without a traceback."""
    click.echo(click.style("error: ", fg="red", bold=True) + error.message, err=True)
    if error.suggestion:
        click.echo(f"hint: {error.suggestion}", err=True)


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
    type=click.Choice(["table", "csv", "json", *BINARY]),
    default="table",
    show_default=True,
    callback=_check_format,
    help="How rows are written to standard output.",
)
