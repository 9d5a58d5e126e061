"""Can the member merge this query's lanes itself? Only by keys whose types have a proven kernel."""

from __future__ import annotations

from sqlglot import exp

from skerry.sql.shape import Shape
from skerry.sql.statement import Query

_NESTED = ("array", "map", "struct", "variant", "interval")
# These give a number whatever they are given, but for intervals, which are not merged.
_COUNTS = frozenset(
    {"count", "count_if", "row_number", "rank", "dense_rank", "ntile", "length", "year", "month", "day"}
)
_SAME_AS_ARGUMENT = frozenset({"min", "max", "sum", "avg", "first", "last", "any_value", "upper", "lower", "trim"})
_ATOMIC_CASTS = frozenset(
    {"int", "bigint", "smallint", "tinyint", "double", "float", "string", "date", "timestamp", "boolean", "decimal"}
)


def keys_are_mergeable(query: Query, shape: Shape) -> bool:
    """True when every root sort key is an output column whose type is surely atomic."""
    if not shape.has_order or not shape.order_keys:
        return False
    types = {column.name.lower(): column.type for scan in query.tables for column in scan.table.columns}
    # One name with two types in two tables: which one is meant is Spark's to say.
    for scan in query.tables:
        for column in scan.table.columns:
            if types[column.name.lower()] != column.type:
                types[column.name.lower()] = "struct"
    root = query.tree
    if not isinstance(root, exp.Select) or any(select.is_star for select in root.expressions):
        return False
    if not _reads_base_tables_only(root, {scan.node_name for scan in query.tables}):
        return False
    outputs = [select.unalias() for select in root.expressions]
    return all(key.index < len(outputs) and _is_atomic(outputs[key.index], types) for key in shape.order_keys)


def _is_atomic(node: exp.Expr, types: dict[str, str]) -> bool:
    match node:
        case exp.Column():
            known = types.get(node.name.lower())
            return known is not None and not known.startswith(_NESTED)
        case exp.Literal() | exp.Boolean():
            return True
        case exp.Paren() | exp.Neg():
            return _is_atomic(node.this, types)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
            return _is_atomic(node.left, types) and _is_atomic(node.right, types)
        case exp.Cast():
            return node.to.sql("spark").split("(")[0].lower() in _ATOMIC_CASTS
        case exp.Window():
            return _is_atomic(node.this, types)
        case exp.Anonymous():
            name = str(node.this).lower()
            if name in _COUNTS:
                return True
            return name in _SAME_AS_ARGUMENT and bool(node.expressions) and _is_atomic(node.expressions[0], types)
    return False


def _reads_base_tables_only(root: exp.Select, scans: set[str]) -> bool:
    """A derived table may give a base column's name to anything; a base table's columns are known."""
    if root.args.get("laterals"):
        return False
    relations = [root.args.get("from_") or root.args.get("from"), *root.args.get("joins", ())]
    return all(
        relation is not None and isinstance(relation.this, exp.Table) and relation.this.name in scans
        for relation in relations
    )
