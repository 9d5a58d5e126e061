"""Nodes after which Spark names a field of a struct: `struct(k)` has a field k, `struct(k + 0)` one that is col1."""

from __future__ import annotations

from sqlglot import exp

from skerry.sql.functions import call_name

# These name fields after their arguments, and so does `(a, b)`.
_NAMING = frozenset(("struct", "arrays_zip"))


def names_field(node: exp.Expr) -> bool:
    """Would a field be called otherwise if a column of another name, or any column, stood in the node's place?"""
    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    return isinstance(parent, exp.Tuple) or (parent is not None and call_name(parent) in _NAMING)
