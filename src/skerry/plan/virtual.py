"""VALUES of a statement as virtual tables: rows that travel in the request, beside the text (protocol.md, 10.7).

A list of some hundred rows is read again by every member that runs it, and by its Spark: ten times the work of tuples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from sqlglot import exp

from skerry.model.fragment import VirtualLeaf, virtual_name
from skerry.model.limits import VIRTUAL_BYTES, VIRTUAL_ROWS_LEAST, WRITE_TUPLES
from skerry.model.table import Column
from skerry.sql.walk import find_all

# Other numbers have types, or a sign, that only Spark is sure of.
_WHOLE = re.compile("[0-9]{1,18}")
_INT_MAX = 2**31 - 1
_BARE = frozenset(("expressions", "alias"))

Rows = tuple[bytes, ...]


@contextmanager
def without_values(tree: exp.Expr) -> Iterator[dict[VirtualLeaf, Rows]]:
    """While the block runs, long VALUES in FROM and WITH are mentions of these leaves; then all is as it was."""
    found: dict[VirtualLeaf, Rows] = {}
    changed: list[tuple[exp.Expr, exp.Expr]] = []
    for values in list(find_all(tree, exp.Values)):
        place, mention = _place(values)
        if place is None or len(values.expressions) < VIRTUAL_ROWS_LEAST:
            continue
        made = _table_of(values)
        if made is None:
            continue
        leaf, rows = made
        found[leaf] = rows
        mention.find(exp.Table).set("this", exp.to_identifier(leaf.placeholder))  # type: ignore[union-attr]
        place.replace(mention)
        changed.append((mention, place))
    try:
        yield found
    finally:
        for mention, place in changed:
            mention.replace(place)


def _place(values: exp.Values) -> tuple[exp.Expr | None, exp.Expr]:
    """What a mention of a table would stand for, and the mention; None where no table may stand."""
    around, table = values.parent, exp.Table(this=exp.to_identifier("t"))
    if not _said(values) <= _BARE:
        return None, table
    match around:
        case exp.Subquery() if isinstance(around.parent, exp.From | exp.Join) and _said(around) <= {"this", "alias"}:
            aliases = [each.args["alias"] for each in (values, around) if each.args.get("alias")]
            if len(aliases) < 2:
                table.set("alias", aliases[0].copy() if aliases else None)
                return around, table
        case exp.CTE() if not around.parent or not around.parent.args.get("recursive"):
            if not values.args.get("alias"):
                return values, exp.Select(expressions=[exp.Star()], from_=exp.From(this=table))
    return None, table


def _said(node: exp.Expr) -> set[str]:
    return {key for key, value in node.args.items() if value not in (None, [], False)}


def _table_of(values: exp.Values) -> tuple[VirtualLeaf, Rows] | None:
    """None for rows whose types only Spark is sure of, and for more than a request takes."""
    listed = [_cells(row) for row in values.expressions]
    if len(listed) > WRITE_TUPLES or len({len(cells) for cells in listed}) != 1:
        return None
    columns: list[Column] = []
    read: list[list[Any]] = []
    for number, cells in enumerate(zip(*listed, strict=True), 1):
        column = _column(cells)
        if column is None:
            return None
        kind, found = column
        columns.append(Column(f"col{number}", kind))
        read.append(found)
    rows = tuple(map(msgspec.msgpack.encode, zip(*read, strict=True)))
    if sum(map(len, rows)) > VIRTUAL_BYTES:
        return None
    return VirtualLeaf(virtual_name(columns, rows), tuple(columns)), rows


def _cells(row: exp.Expr) -> Sequence[exp.Expr]:
    match row:
        case exp.Tuple():
            return row.expressions
        case exp.Paren():
            return (row.this,)
    return (row,)


def _column(cells: Sequence[exp.Expr]) -> tuple[str, list[Any]] | None:
    """Spark's type for values of one kind, and the values; NULL may stand anywhere, but not alone."""
    kinds, found = set[str](), list[Any]()
    for cell in cells:
        kind, value = _value(cell)
        if kind is None:
            return None
        found.append(value)
        if value is not None:
            kinds.add(kind)
    if kinds == {"int", "bigint"}:  # Spark makes one type of them
        kinds = {"bigint"}
    return (kinds.pop(), found) if len(kinds) == 1 else None


def _value(cell: exp.Expr) -> tuple[str | None, Any]:
    match cell:
        case exp.Null():
            return "", None
        case exp.Boolean():
            return "boolean", bool(cell.this)
        case exp.Literal() if cell.is_string:
            return "string", str(cell.this)
        case exp.Literal() | exp.Neg(args={"this": exp.Literal()}):
            sign, literal = (-1, cell.this) if isinstance(cell, exp.Neg) else (1, cell)
            if not literal.is_string and _WHOLE.fullmatch(str(literal.this)):
                whole = int(literal.this)
                if sign < 0 and whole == _INT_MAX + 1:  # an int or a bigint, by how it is written
                    return None, None
                return "int" if whole <= _INT_MAX else "bigint", sign * whole
    return None, None
