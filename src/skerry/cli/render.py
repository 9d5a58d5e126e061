"""Results as text: aligned tables, CSV, JSON; written as the rows come."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Protocol

import click
import msgspec
from rich.cells import cell_len
from rich.filesize import decimal as decimal_size

from skerry.client.dbapi import QueryStatus
from skerry.client.pep249 import NUMBER, Description, Row

Write = Callable[[str], object]

NULL = "NULL"
# What would move the cursor or hide text is shown as its escape: rows come from anywhere.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_CONTROLS |= {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}
_CONTROLS |= {code: f"\\u{code:04x}" for code in (0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))}


class RowWriter(Protocol):
    """One result: `begin` once, `rows` for each page, `end` once."""

    def begin(self, columns: Sequence[Description]) -> None: ...
    def rows(self, rows: Sequence[Row]) -> None: ...
    def end(self) -> None: ...


class TableWriter:
    """Columns as wide as their title and the first page ask for; a longer value later pushes its row to the right."""

    def __init__(self, write: Write, colour: bool = False) -> None:
        self._write = write
        self._colour = colour
        self._titles: list[str] = []
        self._right: list[bool] = []
        self._widths: list[int] = []

    def begin(self, columns: Sequence[Description]) -> None:
        self._titles = [column[0].translate(_CONTROLS) for column in columns]
        self._right = [column[1] == NUMBER for column in columns]
        self._widths = []

    def rows(self, rows: Sequence[Row]) -> None:
        cells = [[cell(value) for value in row] for row in rows]
        if not self._widths:
            columns = zip(self._titles, *cells, strict=True)
            self._widths = [max(map(cell_len, column)) for column in columns]
            self._head()
        text = "".join(self._line(texts, row) for texts, row in zip(cells, rows, strict=True))
        self._write(text)

    def end(self) -> None:
        if not self._widths:
            self._widths = [cell_len(title) for title in self._titles]
            self._head()

    def _head(self) -> None:
        titles = list(map(pad, self._titles, self._widths, self._right))
        if self._colour:
            titles = [click.style(title, bold=True) for title in titles]
        self._write((" " + " | ".join(titles)).rstrip() + "\n")
        self._write("-" + "-+-".join("-" * width for width in self._widths) + "-\n")

    def _line(self, texts: list[str], row: Row) -> str:
        padded = list(map(pad, texts, self._widths, self._right))
        if self._colour:
            padded = [
                click.style(text, dim=True) if value is None else text for text, value in zip(padded, row, strict=True)
            ]
        return (" " + " | ".join(padded)).rstrip() + "\n"


class CsvWriter:
    """A header, then rows; NULL is an empty field, an empty string is `""`."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def begin(self, columns: Sequence[Description]) -> None:
        self._write(",".join(_csv_field(column[0]) for column in columns) + "\n")

    def rows(self, rows: Sequence[Row]) -> None:
        self._write("".join(",".join(map(_csv_field, row)) + "\n" for row in rows))

    def end(self) -> None:
        pass


class JsonWriter:
    """One array of objects, one object a line; columns of one name are numbered from the second on."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._names: list[str] = []
        self._separator = "[\n"
        self._encode = msgspec.json.Encoder(decimal_format="number").encode

    def begin(self, columns: Sequence[Description]) -> None:
        self._names = []
        for column in columns:
            name, count = column[0], 2
            while name in self._names:
                name, count = f"{column[0]}_{count}", count + 1
            self._names.append(name)
        self._separator = "[\n"

    def rows(self, rows: Sequence[Row]) -> None:
        for row in rows:
            record = dict(zip(self._names, map(_json_value, row), strict=True))
            self._write(self._separator + self._encode(record).decode())
            self._separator = ",\n"

    def end(self) -> None:
        self._write("[]\n" if self._separator == "[\n" else "\n]\n")


def pad(text: str, width: int, right: bool = False) -> str:
    """To `width` terminal cells; wide characters take two."""
    space = " " * (width - cell_len(text))
    return space + text if right else text + space


def cell(value: Any) -> str:
    """A value in a table, on one line. A string that reads NULL is quoted, so that NULL is always NULL."""
    if isinstance(value, str):
        return f"'{value}'" if value == NULL else value.translate(_CONTROLS)
    return text_of(value).translate(_CONTROLS)


def text_of(value: Any) -> str:
    """A value as Spark would show it."""
    match value:
        case None:
            return NULL
        case bool():
            return "true" if value else "false"
        case float():
            return _float_text(value)
        case Decimal():
            return f"{value:f}"
        case bytes():
            return f"X'{value.hex().upper()}'"
        case datetime.datetime():
            return value.isoformat(sep=" ")
        case datetime.timedelta():
            return _interval_text(value)
        case list() | tuple():
            return f"[{', '.join(map(text_of, value))}]"
        case dict():
            return f"{{{', '.join(f'{text_of(key)}: {text_of(item)}' for key, item in value.items())}}}"
    return str(value)


def summary(rows: int, seconds: float | None) -> str:
    """The line below a result."""
    count = rows_text(rows)
    return f"({count})" if seconds is None else f"({count}, {seconds:.2f} s)"


def rows_text(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows:,} rows".replace(",", " ")


def progress_line(status: QueryStatus | None, seconds: float) -> str:
    """What a running query does, on one line."""
    parts = [f"{seconds:.1f} s"]
    if status is not None and status.state != "unknown":
        if not status.fragments:
            parts.append(status.state)
        else:
            done = sum(fragment.state == "done" for fragment in status.fragments)
            rows = sum(fragment.rows for fragment in status.fragments)
            parts += [f"fragments {done}/{len(status.fragments)}", rows_text(rows)]
            running = sorted({each.member for each in status.fragments if each.state == "running"})
            parts += [f"at {', '.join(running)}"] if running else []
        parts += [f"{link.sender}→{link.receiver} {decimal_size(link.size_bytes)}" for link in status.links]
    return " · ".join(parts)


def _float_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value)


def _interval_text(value: datetime.timedelta) -> str:
    sign = "-" if value < datetime.timedelta(0) else ""
    size = abs(value)
    clock = str(datetime.timedelta(seconds=size.seconds, microseconds=size.microseconds))
    return f"{sign}{size.days} {clock.zfill(len(clock) + (clock[1] == ':'))}"


def _csv_field(value: Any) -> str:
    if value is None:
        return ""
    text = text_of(value)
    if not text or any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _json_value(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return _float_text(value)  # JSON has no such numbers
        case list() | tuple():
            return [_json_value(item) for item in value]
        case dict():
            return {key if isinstance(key, str) else text_of(key): _json_value(item) for key, item in value.items()}
    return value
