"""Values, columns and pages, as statements take and give them, whichever protocol carries them."""

from __future__ import annotations

from typing import Any

import msgspec

from skerry.model.table import Column


class Value(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A typed value: `type` is Spark's name for it, `value` its msgpack form (see wire/values.py)."""

    type: str
    value: Any = None


class Schema(msgspec.Struct, frozen=True, array_like=True):
    """Columns as Spark names and types them, and the Arrow schema (one IPC message) of their batches."""

    columns: tuple[Column, ...]
    arrow: bytes


class Page(msgspec.Struct, frozen=True, array_like=True):
    """`batches` are Arrow IPC messages, views of the frame they came in. The last page closes the cursor."""

    number: int
    batches: tuple[memoryview, ...]
    rows: int
    is_last: bool


class Parameter(msgspec.Struct, frozen=True, array_like=True):
    """A marker: `name` is empty for `?`; `type` is that of the column it is compared with, empty where unknown."""

    name: str
    type: str
