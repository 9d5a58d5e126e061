"""Values and numbers as text."""

from __future__ import annotations

import datetime
import math
import textwrap
from decimal import Decimal
from typing import Any

from rich.cells import cell_len

from skerry.client.dbapi import QueryStatus
from skerry.model.amounts import counted, size_text

NULL = "NULL"
# What would move the cursor or hide text is shown as its escape: rows come from anywhere.
CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
CONTROLS |= {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}
CONTROLS |= {code: f"\\u{code:04x}" for code in (0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))}
# A message may have several lines, and tabs below which its carets stand.
_IN_MESSAGES = {code: text for code, text in CONTROLS.items() if chr(code) not in "\n\t"}


def message_text(text: str) -> str:
    """What a member says, for a terminal: it quotes statements and rows, and may be anybody's."""
    return text.translate(_IN_MESSAGES)


def wrapped(text: str, width: int, lead: int = 0) -> str:
    """Cut between words where a line is wider; the first one stands behind `lead` cells. Indented lines are quotes."""
    first, *others = text.split("\n")
    shown = [_fit(" " * lead + first, width)[lead:]]
    return "\n".join(shown + [line if line.startswith((" ", "\t")) else _fit(line, width) for line in others])


def _fit(line: str, width: int) -> str:
    if cell_len(line) <= width:
        return line
    return textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)


def pad(text: str, width: int, right: bool = False) -> str:
    """To `width` terminal cells; wide characters take two."""
    space = " " * (width - cell_len(text))
    return space + text if right else text + space


def cell(value: Any) -> str:
    """A value in a table, on one line. A string that reads NULL is quoted, so that NULL is always NULL."""
    if isinstance(value, str):
        return f"'{value}'" if value == NULL else value.translate(CONTROLS)
    return text_of(value).translate(CONTROLS)


def text_of(value: Any) -> str:
    """A value as Spark would show it."""
    match value:
        case None:
            return NULL
        case bool():
            return "true" if value else "false"
        case float():
            return float_text(value)
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
    count = counted(rows)
    return f"({count})" if seconds is None else f"({count}, {seconds:.2f} s)"


def progress_line(status: QueryStatus | None, seconds: float) -> str:
    """What a running query does, on one line."""
    parts = [f"{seconds:.1f} s"]
    if status is not None and status.state != "unknown":
        if not status.fragments:
            parts.append(status.state)
        else:
            done = sum(fragment.state == "done" for fragment in status.fragments)
            rows = sum(fragment.rows for fragment in status.fragments)
            parts += [f"fragments {done}/{len(status.fragments)}", counted(rows)]
            running = sorted({each.member for each in status.fragments if each.state in ("running", "held up")})
            parts += [f"at {', '.join(running)}"] if running else []
        parts += [f"{link.sender}→{link.receiver} {size_text(link.size_bytes)}" for link in status.links]
    return " · ".join(parts).translate(CONTROLS)


def float_text(value: float) -> str:
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
