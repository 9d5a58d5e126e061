"""`skerry load`: rows of Parquet files into a table of Skerry's own, all of them or none."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import click
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.status import Status
from rich.text import Text

from skerry.cli.login import Login, login_options
from skerry.cli.render import message_text
from skerry.cli.runner import Runner, told
from skerry.cli.target import Words, is_url, read_url, target_argument
from skerry.client.loading import ON_CONFLICT
from skerry.client.pep249 import IntegrityError
from skerry.model.amounts import counted

SHOWN_S = 0.1  # between two changes of the live line


@click.command("load")
@target_argument("[URL] TABLE FILE...")
@login_options
@click.option(
    "--on-conflict",
    type=click.Choice(list(ON_CONFLICT)),
    default="fail",
    show_default=True,
    help="Where a row with the same primary key exists: load nothing at all, keep that row, or replace it.",
)
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="End it after that."
)
def load(words: Words, login: Login, on_conflict: str, timeout_s: float | None) -> None:
    """Load the rows of Parquet files into TABLE, a table that CREATE TABLE made: all of them, or nothing.

    Columns are matched by name; those that a file lacks get their default. The table's members write the rows as they
    come, so files may be larger than memory. Without URL, SKERRY_URL is asked.

    \b
    skerry load skerry://localhost:7101 stock january.parquet february.parquet
    """
    has_url = bool(words) and is_url(words[0])
    table, *files = words[1:] if has_url else (words or ("",))
    if not table or not files:
        raise click.UsageError("Missing argument 'TABLE FILE...'.")
    url = read_url(words[:1] if has_url else ())
    opened = [_opened(file) for file in files]
    schema = _one_schema(files, opened)
    total, started = sum(each.metadata.num_rows for each in opened), time.monotonic()
    runner = Runner(url, "table", timeout_s, login=login)
    with told(runner), _Line(Console(stderr=True), total) as line:
        rows = pa.RecordBatchReader.from_batches(schema, _batches(opened, schema))
        with runner.connection().cursor() as cursor:
            try:
                cursor.load(table, rows, on_conflict=on_conflict, timeout_s=timeout_s, progress=line.sent)
            except IntegrityError as error:
                error.suggestion = "--on-conflict nothing keeps rows that exist, --on-conflict replace replaces them"
                raise
            line.end()
            written, seconds = cursor.rowcount, time.monotonic() - started
            kept = f", {counted(total - written)} not" if written != total else ""
            click.echo(f"({counted(written)} loaded{kept}, {seconds:.2f} s)")


def _opened(file: str) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(file)
    except FileNotFoundError:
        raise click.ClickException(message_text(f"{file}: there is no such file")) from None
    except (OSError, pa.ArrowException) as error:
        why = str(error).splitlines()[0][:200]
        raise click.ClickException(message_text(f"{file} cannot be read as Parquet: {why}")) from None


def _one_schema(files: Sequence[str], opened: Sequence[pq.ParquetFile]) -> pa.Schema:
    """All files have the columns of the first, in any order."""
    first = opened[0].schema_arrow.remove_metadata()
    for file, each in zip(files, opened, strict=True):
        missing = {(field.name, field.type) for field in first} ^ {(f.name, f.type) for f in each.schema_arrow}
        if missing:
            name, kind = min(missing, key=lambda pair: pair[0])
            raise click.ClickException(
                message_text(f"{file} has other columns than {files[0]}: {name} ({kind}) is in one of them only")
            )
    return first


def _batches(opened: Sequence[pq.ParquetFile], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for each in opened:
        for batch in each.iter_batches():
            yield batch.select(schema.names).cast(schema)


class _Line:
    """How many rows were sent, on a terminal; it leaves nothing behind."""

    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self._total = total
        self._shown_at = 0.0
        self._status: Status | None = None

    def __enter__(self) -> _Line:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def sent(self, rows: int) -> None:
        if not self._console.is_terminal:
            return
        now = time.monotonic()
        if now - self._shown_at < SHOWN_S and rows < self._total:
            return
        self._shown_at = now
        share = f" ({100 * rows // self._total} %)" if self._total else ""
        what = "waiting for the commit" if rows == self._total else f"of {counted(self._total)} sent"
        text = Text(f"{rows:,} {what}{share}", no_wrap=True, overflow="ellipsis", style="dim")
        if self._status is None:
            self._status = Status(text, console=self._console)
            self._status.start()
        else:
            self._status.update(text)

    def end(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None
