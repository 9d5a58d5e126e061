"""Results in their formats, written as the rows come."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import click
import msgspec
from rich.cells import cell_len, chop_cells

from skerry.cli.render import CONTROLS, cell, float_text, pad, text_of
from skerry.client.pep249 import NUMBER, Description, Row

FORMATS = ("table", "vertical", "markdown", "csv", "json", "jsonl")
_LEAST_WIDTH = 20  # of a value in a vertical result, however narrow the screen

Write = Callable[[str], object]


class RowWriter(Protocol):
    """One result: `begin` once, `rows` for each page, `end` once."""

    def begin(self, columns: Sequence[Description]) -> None: ...
    def rows(self, rows: Sequence[Row]) -> None: ...
    def end(self) -> None: ...


class View(msgspec.Struct):
    """How results are shown; the prompt's commands change it. `width` is the screen's, None without one.

    `is_auto`: tables whose rows are wider than the screen are vertical.
    """

    output_format: str = "table"
    is_auto: bool = False
    width: int | None = None
    colour: bool = False

    def writer(self, write: Write) -> RowWriter:
        match self.output_format:
            case "table":
                table = TableWriter(write, self.colour)
                vertical = VerticalWriter(write, self.width, self.colour)
                return AutoWriter(table, vertical, self.width) if self.is_auto else table
            case "vertical":
                return VerticalWriter(write, self.width, self.colour)
            case "markdown":
                return MarkdownWriter(write)
            case "csv":
                return CsvWriter(write)
            case "jsonl":
                return JsonLinesWriter(write)
        return JsonWriter(write)

    @property
    def is_for_people(self) -> bool:
        """Others hold rows alone, for programs."""
        return self.output_format in ("table", "vertical", "markdown")


class _Aligned:
    """Columns as wide as their title and the first page ask for; a longer value later pushes its row to the right."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._titles: list[str] = []
        self._right: list[bool] = []
        self._widths: list[int] = []

    def begin(self, columns: Sequence[Description]) -> None:
        self._titles = [self.text(column[0].translate(CONTROLS)) for column in columns]
        self._right = [column[1] == NUMBER for column in columns]
        self._widths = []

    def rows(self, rows: Sequence[Row]) -> None:
        cells = [[self.text(cell(value)) for value in row] for row in rows]
        if not self._widths:
            self._widths = self.widths(cells)
            self._write(self.head(list(map(pad, self._titles, self._widths, self._right))))
        padded = (list(map(pad, texts, self._widths, self._right)) for texts in cells)
        self._write("".join(self.line(texts, row) for texts, row in zip(padded, rows, strict=True)))

    def end(self) -> None:
        if not self._widths:
            self._widths = self.widths([])
            self._write(self.head(list(map(pad, self._titles, self._widths, self._right))))

    def widths(self, cells: Sequence[Sequence[str]]) -> list[int]:
        return [max(map(cell_len, column)) for column in zip(self._titles, *cells, strict=True)]

    def text(self, text: str) -> str:
        return text

    def head(self, titles: list[str]) -> str:
        raise NotImplementedError

    def line(self, texts: list[str], row: Row) -> str:
        raise NotImplementedError


class TableWriter(_Aligned):
    def __init__(self, write: Write, colour: bool = False) -> None:
        super().__init__(write)
        self._colour = colour

    def width_of(self, columns: Sequence[Description], rows: Sequence[Row]) -> int:
        """How wide its lines will be."""
        self.begin(columns)
        widths = self.widths([[cell(value) for value in row] for row in rows])
        return sum(widths) + 3 * len(widths) - 1

    def head(self, titles: list[str]) -> str:
        if self._colour:
            titles = [click.style(title, bold=True) for title in titles]
        return f"{_joined(titles)}-{'-+-'.join('-' * width for width in self._widths)}-\n"

    def line(self, texts: list[str], row: Row) -> str:
        if self._colour:
            texts = [
                click.style(text, dim=True) if value is None else text for text, value in zip(texts, row, strict=True)
            ]
        return _joined(texts)


def _joined(texts: list[str]) -> str:
    return (" " + " | ".join(texts)).rstrip() + "\n"


class MarkdownWriter(_Aligned):
    def text(self, text: str) -> str:
        return text.replace("|", "\\|")

    def widths(self, cells: Sequence[Sequence[str]]) -> list[int]:
        return [max(3, width) for width in super().widths(cells)]  # as many dashes as a ruler needs

    def head(self, titles: list[str]) -> str:
        rulers = ("-" * (width - right) + ":" * right for width, right in zip(self._widths, self._right, strict=True))
        return f"| {' | '.join(titles)} |\n| {' | '.join(rulers)} |\n"

    def line(self, texts: list[str], row: Row) -> str:
        return f"| {' | '.join(texts)} |\n"


class VerticalWriter:
    """A line for each value, rows one below the other. Values that are wider than the screen go on below themselves."""

    def __init__(self, write: Write, width: int | None = None, colour: bool = False) -> None:
        self._write = write
        self._width = width
        self._colour = colour
        self._titles: list[str] = []
        self._count = 0

    def begin(self, columns: Sequence[Description]) -> None:
        titles = [column[0].translate(CONTROLS) for column in columns]
        widest = max(map(cell_len, titles), default=0)
        self._titles = [pad(title, widest) for title in titles]
        self._count = 0

    def rows(self, rows: Sequence[Row]) -> None:
        self._write("".join(map(self._record, rows)))

    def end(self) -> None:
        pass

    def _record(self, row: Row) -> str:
        self._count += 1
        before = cell_len(self._titles[0]) + 3 if self._titles else 0
        room = None if self._width is None else max(_LEAST_WIDTH, self._width - before)
        head = f"-[ row {self._count} ]".ljust(before + min(room or _LEAST_WIDTH, _LEAST_WIDTH), "-")
        lines = [click.style(head, dim=True) if self._colour else head]
        for title, value in zip(self._titles, row, strict=True):
            text = cell(value)
            first, *others = (chop_cells(text, room) or [""]) if room is not None else [text]
            lines.append(f"{title} | {first}".rstrip())
            lines += [f"{' ' * len(title)} | {each}" for each in others]
        return "\n".join(lines) + "\n"


class AutoWriter:
    """A table where it fits the screen, going by the first page; else one value a line."""

    def __init__(self, table: TableWriter, vertical: VerticalWriter, width: int | None) -> None:
        self._table = table
        self._vertical = vertical
        self._width = width
        self._columns: Sequence[Description] = ()
        self._chosen: TableWriter | VerticalWriter | None = None

    def begin(self, columns: Sequence[Description]) -> None:
        self._columns = columns
        self._chosen = None

    def rows(self, rows: Sequence[Row]) -> None:
        if self._chosen is None:
            fits = self._width is None or self._table.width_of(self._columns, rows) <= self._width
            self._chosen = self._table if fits else self._vertical
            self._chosen.begin(self._columns)
        self._chosen.rows(rows)

    def end(self) -> None:
        if self._chosen is None:
            self._chosen = self._table
            self._chosen.begin(self._columns)
        self._chosen.end()


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


class _Objects:
    """A row is an object; columns of one name are numbered from the second on."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._names: list[str] = []
        self._encode = msgspec.json.Encoder(decimal_format="number").encode

    def begin(self, columns: Sequence[Description]) -> None:
        self._names = []
        for column in columns:
            name, count = column[0], 2
            while name in self._names:
                name, count = f"{column[0]}_{count}", count + 1
            self._names.append(name)

    def object(self, row: Row) -> str:
        return self._encode(dict(zip(self._names, map(_json_value, row), strict=True))).decode()


class JsonWriter(_Objects):
    """One array, one object a line."""

    def begin(self, columns: Sequence[Description]) -> None:
        super().begin(columns)
        self._separator = "[\n"

    def rows(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self._write(self._separator + self.object(row))
            self._separator = ",\n"

    def end(self) -> None:
        self._write("[]\n" if self._separator == "[\n" else "\n]\n")


class JsonLinesWriter(_Objects):
    """One object a line, and nothing else."""

    def rows(self, rows: Sequence[Row]) -> None:
        self._write("".join(self.object(row) + "\n" for row in rows))

    def end(self) -> None:
        pass


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
            return float_text(value)  # JSON has no such numbers
        case list() | tuple():
            return [_json_value(item) for item in value]
        case dict():
            return {key if isinstance(key, str) else text_of(key): _json_value(item) for key, item in value.items()}
    return value
