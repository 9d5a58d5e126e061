"""Rule `topn` for UNION ALL: of a bounded union each operand sends no more rows than the union can give.

The operands are cut as bounded blocks are, by the order of the union; above them it sorts and bounds what comes. One
that is over tables of one site is cut there too: its first rows are all that leaves it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from skerry.model.fragment import SortKey
from skerry.plan.estimate import Estimator, part_rows, row_bytes
from skerry.plan.grouping import rows_of
from skerry.plan.mentions import read_scopes
from skerry.plan.partial_cost import PartsOf, scan_bytes
from skerry.plan.partial_plan import AtSite
from skerry.plan.rules.outputs import Outputs
from skerry.plan.rules.topn import rows_wanted, top_rows
from skerry.sql.functions import is_aggregate, is_generator
from skerry.sql.shape import result_shape
from skerry.sql.statement import Query, Scan
from skerry.sql.walk import find_all

_ENDS = ("order", "limit", "offset")
# The greater of two of these is the greater in the type that both have in a union. Whole numbers that a float or a
# double rounds are not here: two that differ would be alike there, and the next key would decide.
_NUMBERS = tuple(
    frozenset(types.split()) for types in ("tinyint smallint int bigint", "tinyint smallint int double", "float double")
)


@dataclass(frozen=True)
class _Bounded:
    """A union, the order and the number of the rows that are wanted of it."""

    union: exp.Expr
    keys: tuple[SortKey, ...]
    wanted: int


def bounded_operands(
    query: Query, root: exp.Expr, parts: PartsOf, estimator: Estimator
) -> list[tuple[exp.Expr, AtSite]]:
    """Operands of the tree's unions that are cut, and what stands in the place of each."""
    scans = {scan.node_name: scan for scan in query.tables}
    found: list[tuple[exp.Expr, AtSite]] = []
    for bounded in _bounded(query, root):
        operands = list(_operands(bounded.union))
        if not _is_ordered_alike(operands, bounded.keys, root, scans):
            continue
        for operand in operands:
            cut = _cut(operand, bounded, scans, parts, estimator) if isinstance(operand, exp.Select) else None
            if cut is not None:
                found.append((operand, cut))
    return found


def _bounded(query: Query, root: exp.Expr) -> Iterator[_Bounded]:
    for node in find_all(root, exp.Select, exp.Union):
        wanted = rows_wanted(node)
        union = _below(node) if isinstance(node, exp.Select) else node
        if wanted is None or union is None or not _is_all(union):
            continue
        ordered = union.copy()
        ordered.set("order", _unqualified(node.args.get("order")) if union is not node else node.args.get("order"))
        shape = result_shape(dataclasses.replace(query, tree=ordered))
        if shape.columns is not None and (not shape.has_order or shape.order_keys is not None):
            yield _Bounded(union, shape.order_keys or (), wanted)


def _below(select: exp.Select) -> exp.Expr | None:
    """The union of `SELECT b, a FROM (… UNION ALL …) AS u ORDER BY a LIMIT 3`: its columns under their own names."""
    said = {key for key, value in select.args.items() if value not in (None, [], False)}
    source = select.args["from_"].this if said >= {"from_"} else None
    if said - {"expressions", "from_", *_ENDS} or not isinstance(source, exp.Subquery) or not source.alias:
        return None
    if {key for key, value in source.args.items() if value not in (None, [], False)} - {"this", "alias"}:
        return None
    union, order = source.this, select.args.get("order")
    if source.args["alias"].args.get("columns") or not isinstance(union, exp.Union):
        return None
    if any(union.args.get(key) for key in _ENDS):
        return None
    if order is None:
        return union if all(_is_of_one_row(item) for item in select.expressions) else None
    named = [*select.expressions, *(key.this for key in order.expressions)]
    # A number, or ALL, is of the list, whose places are others; a name of three parts may be a field's.
    is_plain = all(isinstance(item, exp.Star) or _is_column(item, source) for item in named)
    return union if is_plain else None


def _is_of_one_row(item: exp.Expr) -> bool:
    """Is it computed of each row by itself, once? An aggregate or a window is of all rows, not of the first."""
    return not any(
        isinstance(node, exp.Query | exp.Window) or is_aggregate(node) or is_generator(node) for node in item.walk()
    )


def _is_column(node: exp.Expr, source: exp.Expr) -> bool:
    if not isinstance(node, exp.Column) or node.is_star:
        return False
    parts = [part.name.lower() for part in node.parts]
    return len(parts) == 1 or (len(parts) == 2 and parts[0] == source.alias.lower())


def _unqualified(order: exp.Expr | None) -> exp.Expr | None:
    """The order as the union itself would say it."""
    copy = order.copy() if order is not None else None
    for column in find_all(copy, exp.Column) if copy is not None else ():
        column.set("table", None)
    return copy


def _is_all(node: exp.Expr) -> bool:
    """UNION ALL by the places of columns."""
    return isinstance(node, exp.Union) and not node.args.get("distinct") and not node.args.get("by_name")


def _operands(union: exp.Expr) -> Iterator[exp.Expr]:
    for side in (union.this, union.args["expression"]):
        inner = side
        while isinstance(inner, exp.Subquery) and not any(v for key, v in inner.args.items() if key != "this"):
            inner = inner.this
        if _is_all(inner) and not any(inner.args.get(key) for key in (*_ENDS, "with_")):
            yield from _operands(inner)
        else:
            yield inner


def _is_ordered_alike(
    operands: Sequence[exp.Expr], keys: Sequence[SortKey], root: exp.Expr, scans: dict[str, Scan]
) -> bool:
    """Does each operand have the union's order, in the type that its columns have before they are made one?"""
    if not keys:
        return True
    outputs = Outputs(read_scopes(root, scans))
    types = [outputs.types(operand) for operand in operands]
    for key in keys:
        found = {each[key.index] if each is not None and key.index < len(each) else None for each in types}
        if None in found or (len(found) > 1 and not any(found <= each for each in _NUMBERS)):
            return False
    return True


def _cut(
    operand: exp.Select, bounded: _Bounded, scans: Mapping[str, Scan], parts: PartsOf, estimator: Estimator
) -> AtSite | None:
    if any(operand.args.get(key) is not None for key in _ENDS):
        return None
    own = operand.copy()
    own.set("limit", exp.Limit(expression=exp.Literal.number(bounded.wanted)))
    tables = {name: scan.table for name, scan in scans.items()}
    held = {name: sum(part_rows(part) for part in parts[name]) for name in scans}
    strewn = {name: rows for name, rows in held.items() if len({part.member for part in parts[name]}) > 1}
    block = rows_of(own, tables, strewn) or rows_of(own, tables, held)
    merge = top_rows(block, scans, bounded.keys) if block is not None else None
    if block is None or merge is None:
        return None
    final = merge.final.copy()
    for key in _ENDS:  # the union's, above
        final.set(key, None)
    rows = {part.member: min(bounded.wanted, part_rows(part)) for part in parts[block.scan]}
    width_bytes = row_bytes(merge.columns)
    others = sum(scan_bytes(scans[name], part, estimator) for name in block.others for part in parts[name])
    whole = sum(scan_bytes(scans[block.scan], part, estimator) for part in parts[block.scan])
    if sum(rows.values()) * width_bytes + others * (len(rows) - 1) >= whole:
        return None
    return AtSite(dataclasses.replace(merge, final=final), rows, width_bytes)
