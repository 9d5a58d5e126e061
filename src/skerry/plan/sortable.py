"""Can members merge this query's sorted lanes themselves? Only by keys whose types have a proven kernel (D6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sqlglot import exp

from skerry.sql.functions import call_name
from skerry.sql.nodes import Arguments, ColonCast, SparkType
from skerry.sql.shape import Shape
from skerry.sql.statement import Query

_NUMBER, _STRING = "number", "string"
# Types by their order: all numbers have one kernel. What is not here (nested types, intervals, variants,
# strings with a collation) is ordered by Spark alone.
_KINDS = {
    "boolean": "boolean",
    "tinyint": _NUMBER,
    "smallint": _NUMBER,
    "int": _NUMBER,
    "integer": _NUMBER,
    "bigint": _NUMBER,
    "float": _NUMBER,
    "double": _NUMBER,
    "decimal": _NUMBER,
    "string": _STRING,
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
}
# These give a number whatever they are given.
_COUNTS = frozenset(
    "count count_if row_number rank dense_rank ntile percent_rank cume_dist length char_length year quarter month day"
    " dayofmonth dayofweek dayofyear weekofyear hour minute approx_count_distinct".split()
)
_OF_NUMBERS = frozenset("sum avg mean abs round bround ceil floor stddev variance".split())
_OF_STRINGS = frozenset("upper lower trim ltrim rtrim substring substr left right initcap lpad rpad".split())
_LIKE_FIRST = frozenset("min max first first_value last last_value any_value min_by max_by".split())
_ARITHMETIC = (exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod)
_LIKE_ALL = frozenset("coalesce nvl ifnull greatest least".split())

# A relation's columns, in lower case, and their kinds; None for those that Spark alone orders.
_Kinds = Mapping[str, str | None]


def keys_are_mergeable(query: Query, shape: Shape) -> bool:
    """True when every root sort key is an output column whose type surely has a kernel."""
    root = query.tree
    if not shape.order_keys or not isinstance(root, exp.Select):
        return False
    relations = _relations(root, query)
    if relations is None:
        return False
    kinds = _output_kinds(root, relations)
    if kinds is None or len(kinds) != shape.columns:
        return False
    return all(kinds[key.index] is not None for key in shape.order_keys)


def _relations(root: exp.Select, query: Query) -> dict[str, _Kinds] | None:
    """FROM's relations by alias; None unless all are base tables under their own columns' names.

    A derived table may give a base column's name to anything; a base table's columns are known.
    """
    if root.args.get("laterals") or root.args.get("pivots"):
        return None
    scans = {scan.node_name: scan.table for scan in query.tables}
    found: dict[str, _Kinds] = {}
    for relation in (root.args.get("from_"), *(root.args.get("joins") or ())):
        table = relation.this if relation is not None else None
        if not isinstance(table, exp.Table) or table.name not in scans:
            return None
        alias = table.args["alias"]
        if alias.args.get("columns") or alias.name.lower() in found:
            return None
        found[alias.name.lower()] = {
            column.name.lower(): kind_of_type(column.type) for column in scans[table.name].columns
        }
    return found


def _output_kinds(root: exp.Select, relations: Mapping[str, _Kinds]) -> list[str | None] | None:
    kinds: list[str | None] = []
    for item in root.expressions:
        if not item.is_star:
            kinds.append(_kind(item.unalias(), relations))
            continue
        star = item.this if isinstance(item, exp.Column) else item
        # `x.*` may be the fields of a struct, and joins may merge columns.
        is_of_table = not isinstance(item, exp.Column) or [part.name.lower() for part in item.parts[:-1]] == [
            *relations
        ]
        if len(relations) != 1 or star.args.get("except_") or not is_of_table:
            return None
        kinds.extend(next(iter(relations.values())).values())
    return kinds


def kind_of_type(type_: str) -> str | None:
    """The kind of a type as Spark writes it: `decimal(15,2)`, `string`."""
    name, bracket, _ = type_.lower().partition("(")
    return _KINDS.get(name) if not bracket or name == "decimal" else None


def _kind(node: exp.Expr, relations: Mapping[str, _Kinds]) -> str | None:
    """What the expression surely gives; None when in doubt."""
    match node:
        case exp.Column():
            return _column_kind(node, relations)
        case exp.Literal():
            return _STRING if node.is_string else _NUMBER
        case exp.Boolean():
            return "boolean"
        case exp.Paren() | exp.Window() | exp.Filter():
            return _kind(node.this, relations)
        case exp.Neg() | exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.IntDiv() | exp.Mod():
            # Dates and timestamps have a difference too, but no sum that we would know the type of.
            return _only(_NUMBER, _operands(node, _ARITHMETIC), relations)
        case exp.DPipe():
            return _only(_STRING, _operands(node, exp.DPipe), relations)
        case exp.Cast() | ColonCast():
            to = node.args["to"]
            return _KINDS.get(str(to.this).lower()) if isinstance(to, SparkType) else None
        case exp.Anonymous():
            return _call_kind(node, relations)
    return None


def _column_kind(column: exp.Column, relations: Mapping[str, _Kinds]) -> str | None:
    parts = [part.name.lower() for part in column.parts]
    if len(parts) == 2:
        # Spark looks for `alias.column` first; anything else could be a field of a struct.
        return relations.get(parts[0], {}).get(parts[1])
    kinds = {kinds[parts[0]] for kinds in relations.values() if parts[0] in kinds}
    return kinds.pop() if len(parts) == 1 and len(kinds) == 1 else None


def _call_kind(call: exp.Anonymous, relations: Mapping[str, _Kinds]) -> str | None:
    name, arguments = call_name(call), list(call.expressions)
    if arguments and isinstance(arguments[0], Arguments | exp.Distinct):
        arguments = list(arguments[0].expressions)
    if name in _COUNTS:
        return _NUMBER
    if not arguments:
        return None
    first = _kind(arguments[0], relations)
    if name in _OF_NUMBERS:
        return first if first == _NUMBER else None
    if name in _OF_STRINGS:
        return first if first == _STRING else None
    if name in _LIKE_FIRST:
        return first
    if name in _LIKE_ALL and first is not None:
        return _only(first, arguments, relations)
    return None


def _operands(node: exp.Expr, operators: type[exp.Expr] | tuple[type[exp.Expr], ...]) -> Iterator[exp.Expr]:
    """What a row of such operators is made of: `a + b + …` may be long, and is a deep tree."""
    pending = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, operators):
            pending.extend(each.iter_expressions())
        else:
            yield each


def _only(kind: str, nodes: Iterable[exp.Expr], relations: Mapping[str, _Kinds]) -> str | None:
    return kind if all(_kind(node, relations) == kind for node in nodes) else None
