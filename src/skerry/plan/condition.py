"""A condition on one mention of a table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from skerry.sql.dialect import render
from skerry.sql.push import unqualified
from skerry.sql.scope import Source


@dataclass(frozen=True, eq=False)
class Subquery:
    """A conjunct over `owner` alone; `names` are the scans that stand in its subqueries."""

    owner: Source
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Condition:
    """A conjunct over one mention. `stands` is its node in the tree, None for one that only follows from the tree.

    `subquery` has the mentions that stand inside it.
    """

    filter: exp.Expr
    stands: exp.Expr | None
    subquery: Subquery | None = None

    @cached_property
    def plain(self) -> exp.Expr:
        """The condition without the names of tables, for estimates."""
        return unqualified(self.filter)

    @cached_property
    def text(self) -> str:
        """The same as text: equal for mentions that are filtered alike."""
        return render(self.plain)
