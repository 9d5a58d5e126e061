"""Arguments of a caller, looked at before anything is sent: a member takes a wrong message for a broken client."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from skerry.client.pep249 import InterfaceError
from skerry.limits import KIB

# What a message has beside its statement and parameters, and more.
_REST_BYTES = 4 * KIB


def statement_text(operation: Any, values: Any, bytes_max: int) -> str:
    """A statement that can be sent, with the values of its parameters."""
    if not isinstance(operation, str):
        raise InterfaceError(f"a statement is text, not {type(operation).__name__}")
    try:
        size_bytes = len(operation.encode())
    except UnicodeEncodeError as error:
        raise InterfaceError(f"a statement is Unicode text: {error.reason} at character {error.start}") from None
    if values:
        size_bytes += len(msgspec.msgpack.encode(values))
    if size_bytes > bytes_max - _REST_BYTES:
        raise InterfaceError(f"the statement and its parameters have {size_bytes} bytes, a member takes {bytes_max}")
    return operation


def seconds(value: Any, name: str) -> float:
    """A duration; 0 for the member's own."""
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise InterfaceError(f"{name} is a number of seconds above 0, not {value!r}")
    return float(value)


def planning_options(planning: Any) -> dict[str, str]:
    """Options for the planner, names and values as text."""
    if planning is None:
        return {}
    if not isinstance(planning, Mapping) or any(
        not isinstance(each, str) for pair in planning.items() for each in pair
    ):
        raise InterfaceError(f'planning is a mapping of texts, as in {{"rules": "-semijoin"}}, not {planning!r}')
    return dict(planning)
