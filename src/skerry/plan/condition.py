"""A condition on one mention of a table."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from skerry.plan.rules.subqueries import Subquery


@dataclass(frozen=True, eq=False)
class Condition:
    """A conjunct over one mention. `stands` is its node in the tree, None for one that only follows from the tree.

    `subquery` has the mentions that stand inside it.
    """

    filter: exp.Expr
    stands: exp.Expr | None
    subquery: Subquery | None = None
