"""Parts of a table that have no row for a mention of it: they send nothing, and get no fragment.

The proof holds of the files that the statistics are of. So a plan names each part that it leaves out with the version
of its files, and the initiator asks the part's site for that version before the plan is run (`member/planning.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from sqlglot import exp

from skerry.model.fragment import LeftOut
from skerry.model.names import TableRef
from skerry.model.table import TablePart
from skerry.plan.refute import refuted
from skerry.sql.statement import Scan


class Parts(Protocol):
    """What planning asks of a catalog."""

    def parts(self, ref: TableRef) -> tuple[TablePart, ...]: ...

    def beside(self, ref: TableRef) -> tuple[TablePart, ...]: ...


class KeptParts:
    """The parts of each mention that may have rows for it. At least one stays: it has the columns, and no row."""

    def __init__(self, catalog: Parts, is_on: bool, initiator: str) -> None:
        self._catalog = catalog
        self._is_on = is_on
        self._initiator = initiator
        self._left_out: dict[tuple[str, str], LeftOut] = {}

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Each part that some mention does without, and why."""
        return tuple(self._left_out.values())

    def parts(self, ref: TableRef) -> tuple[TablePart, ...]:
        return self._catalog.parts(ref)

    def beside(self, ref: TableRef) -> tuple[TablePart, ...]:
        return self._catalog.beside(ref)

    def of(self, scan: Scan) -> tuple[TablePart, ...]:
        return self.among(self._catalog.parts(scan.table), scan.filters)

    def among(self, parts: Sequence[TablePart], filters: Iterable[exp.Expr]) -> tuple[TablePart, ...]:
        """Those of the parts that may have a row that passes all filters; columns are not qualified."""
        # Sites may spell a column differently: a result is named after all of them, not after those that are left.
        spelt = {tuple(column.name for column in part.columns) for part in parts}
        if not self._is_on or len(parts) < 2 or len(spelt) > 1:
            return tuple(parts)
        wanted = tuple(filters)
        why = {part.member: refuted(wanted, part) for part in parts}
        kept = [part for part in parts if why[part.member] is None]
        if not kept:
            kept = [min(parts, key=lambda part: part.member != self._initiator)]
        for part in parts:
            if part not in kept:
                left = LeftOut(part.member, part.table, part.files_version, why[part.member] or "")
                self._left_out.setdefault((part.member, part.table), left)
        return tuple(kept)
