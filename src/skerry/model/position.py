"""Errors that show the place in the statement: one line of it, underlined."""

from __future__ import annotations

from skerry.model.errors import SqlError

_SHOWN = 100


def sql_error(message: str, text: str, start: int | None, end: int | None = None) -> SqlError:
    """A SqlError whose message ends with the line of `text` around `start`..`end` (both inclusive)."""
    if start is None or not text:
        return SqlError(message)
    error = SqlError(f"{message}\n{underline(text, start, start if end is None else end)}")
    start = max(0, min(start, len(text)))
    error.place = f"line {text.count(chr(10), 0, start) + 1}, column {start - text.rfind(chr(10), 0, start)}"
    return error


def underline(text: str, start: int, end: int) -> str:
    """The line that holds `start`, and carets below it; long lines are cut around the place."""
    start = max(0, min(start, len(text)))
    first = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    stops = [at for at in (text.find("\n", start), text.find("\r", start)) if at >= 0]
    line = text[first : min(stops, default=len(text))]
    at = start - first
    width = max(1, min(end - start + 1, len(line) - at))
    if len(line) > _SHOWN:
        cut = max(0, at - _SHOWN // 2)
        line = line[cut : cut + _SHOWN]
        at -= cut
        width = max(1, min(width, len(line) - at))
    # Tabs stay tabs in both lines, so that the carets stand below their word at any tab width.
    space = "".join("\t" if char == "\t" else " " for char in line[:at])
    return f"  {line}\n  {space}{'^' * width}"
