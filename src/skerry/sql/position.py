"""Errors at a node of the tree show its place in the statement."""

from __future__ import annotations

from sqlglot import exp

from skerry.model.errors import SqlError
from skerry.model.position import sql_error


def error_at(message: str, text: str, node: exp.Expr) -> SqlError:
    """A SqlError at the place of a node (or of the first thing below it whose place is known)."""
    for part in node.walk():
        start = part.meta.get("start")
        if start is not None:
            return sql_error(message, text, start, part.meta.get("end"))
    return SqlError(message)
