"""One table as a query needs it: its columns, filters and parts, and how its rows come to where they are read."""

from __future__ import annotations

import msgspec
from sqlglot import exp

from skerry.model.names import TableRef
from skerry.model.table import Column, TablePart
from skerry.plan.estimate import Estimate, held_row_bytes
from skerry.plan.mention import Shipment


class Source(msgspec.Struct, frozen=True):
    """One table as the query needs it; every mention with the same filters shares it.

    partial: what of it each part sends instead of rows (rule `aggregates`), about `partial_rows` from each member, each
    of `partial_row_bytes`;
    all rows of the `joined` sources go to each part for it. `sizes`: of the rows that each member would send, if they
    are no partial ones and no shipment. `is_beside`: joined with a part, it is read at the part's member alone.
    `reason`: why its parts are joined where they are (rule `colocated`).
    """

    mentions: tuple[str, ...]
    table: TableRef
    columns: tuple[Column, ...]
    filters: tuple[exp.Expr, ...]
    parts: tuple[TablePart, ...]
    partial: exp.Select | None = None
    partial_rows: dict[str, int] = {}
    joined: tuple[Source, ...] = ()
    shipment: Shipment | None = None
    sizes: dict[str, Estimate] = {}
    partial_row_bytes: int = 0
    is_beside: bool = False
    reason: str = ""

    def estimated_rows(self, part: TablePart) -> int:
        return self.partial_rows[part.member] if self.partial is not None else int(self.sizes[part.member].rows)

    def estimated_bytes(self, part: TablePart) -> int:
        if self.partial is not None:
            return self.partial_rows[part.member] * self.partial_row_bytes
        return int(self.sizes[part.member].size_bytes)

    def sent_bytes(self) -> dict[str, int]:
        """About what each member that holds a part would send."""
        return {part.member: self.estimated_bytes(part) for part in self.parts}

    def widest_row(self) -> float:
        """Bytes of a whole row, the average of the part where it is largest; infinite while a part is not counted."""
        return max((held_row_bytes(part) for part in self.parts), default=0.0)
