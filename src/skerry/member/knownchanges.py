"""Writes that were read before: the same text with other values is not read again (ADR 55). Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from skerry.model.limits import CHANGE_KEPT_CHARS, CHANGES_KEPT
from skerry.model.sharded import OwnTable
from skerry.sql.owntables import Change, with_values
from skerry.tables.ways import with_constants


class KnownChanges:
    """What texts mean, of constants and markers alone: that depends on nothing but the table, and is kept without
    values. Those not asked for lately are forgotten."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, type], Change] = OrderedDict()

    def find(self, text: str, values: Any, tables: Mapping[str, OwnTable]) -> Change | None:
        """With these values, of the table that there is now; None if the text has to be read, or the values do not fit:
        whoever reads it says why. `tables` by their names in lower case: those that whoever asks may know of."""
        change = self._kept.get((text, type(values)))
        if change is None or tables.get(change.table.name.lower()) is not change.table:
            return None
        self._kept.move_to_end((text, type(values)))
        if isinstance(values, dict):
            return with_values(change, values) if values.keys() == change.parameters.keys() else None
        if len(values) != len(change.parameters):
            return None
        return with_values(change, dict(zip(change.parameters, values, strict=True)))

    def keep(self, text: str, values: Any, change: Change) -> None:
        """A text without markers is not said again, nor is a long one."""
        if change.query is None and change.parameters and len(text) <= CHANGE_KEPT_CHARS:
            without_values = replace(change, parameters=dict.fromkeys(change.parameters))
            self._kept[text, type(values)] = with_constants(without_values)
            while len(self._kept) > CHANGES_KEPT:
                self._kept.popitem(last=False)
