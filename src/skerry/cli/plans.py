"""Plans as EXPLAIN tells them, on a screen."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from skerry.cli.render import CONTROLS

_DEEPER = "    "
_LEAST_WIDTH = 40
_CONTROLS = {code: text for code, text in CONTROLS.items() if code != ord("\n")}


def plan_text(lines: Sequence[str], width: int | None) -> str:
    """As they are, or, where the screen has a width, wrapped between words, below where they began."""
    shown = [line.translate(_CONTROLS) for line in lines]
    if width is not None:
        shown = [each for line in shown for each in _wrapped(line, max(width, _LEAST_WIDTH))]
    return "\n".join(shown) + "\n"


def _wrapped(line: str, width: int) -> list[str]:
    if len(line) <= width or "\n" in line:  # JSON has its own lines
        return [line]
    text = line.lstrip()
    indent = line[: len(line) - len(text)]
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent + _DEEPER,
        break_long_words=False,
        break_on_hyphens=False,
    )
