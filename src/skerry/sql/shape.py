"""What the root of a query promises about its result: one row, a limit, an order, a plain scan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from skerry.model.errors import InternalError
from skerry.model.fragment import SortKey
from skerry.sql.alike import form
from skerry.sql.by_all import at_places
from skerry.sql.functions import is_aggregate, is_deterministic, is_generator
from skerry.sql.nodes import ColonCast, VariantPath
from skerry.sql.statement import Query
from skerry.sql.walk import find_all, nodes_of

_PLAIN = ("expressions", "from_", "where", "order", "limit", "offset", "said_all")


@dataclass(frozen=True)
class Shape:
    """`limit` and `offset` are the literal ones; `bounds_known` is False when either is an expression.

    `order_keys` is None when there is no ORDER BY, or when a key of it is no column of the result.
    `columns` counts the result's columns, or is None when a star hides them.
    """

    is_global_aggregate: bool
    is_plain_scan: bool
    limit: int | None
    offset: int
    bounds_known: bool
    has_order: bool
    order_keys: tuple[SortKey, ...] | None
    columns: int | None


@dataclass(frozen=True)
class _Output:
    """One column of the result: its name if certain, in lower case, and the expression behind it."""

    name: str | None
    value: exp.Expr | None


def result_shape(query: Query) -> Shape:
    root = query.tree
    limit, limit_known = literal_bound(root.args.get("limit"))
    offset, offset_known = literal_bound(root.args.get("offset"))
    order = root.args.get("order")
    outputs = _outputs(root, query)
    return Shape(
        is_global_aggregate=is_global_aggregate(root),
        is_plain_scan=_is_plain_scan(root, query),
        limit=limit,
        offset=offset or 0,
        bounds_known=limit_known and offset_known,
        has_order=order is not None,
        order_keys=_order_keys(order, outputs) if order is not None else None,
        columns=len(outputs) if outputs is not None else None,
    )


def put_sort_by(tree: exp.Expr, columns: int | None = None) -> None:
    """The root sorts within partitions only from now on: ORDER BY becomes SORT BY.

    `columns` is Shape.columns; it is needed for ORDER BY ALL, which SORT BY does not know.
    """
    order = tree.args.get("order")
    if order is not None:
        tree.set("sort", exp.Sort(expressions=[key for item in order.expressions for key in _spelt_out(item, columns)]))
        tree.set("order", None)


def _spelt_out(item: exp.Expr, columns: int | None) -> list[exp.Expr]:
    if not isinstance(item.this, exp.Var):
        return [item]
    if columns is None:
        raise InternalError("ORDER BY ALL over columns that are not known")
    return at_places(item, columns)


def without_limit(tree: exp.Expr) -> exp.Expr:
    """A copy whose root has neither LIMIT nor OFFSET."""
    copy = tree.copy()
    drop_limit(copy)
    return copy


def drop_limit(tree: exp.Expr) -> None:
    """The same of the tree itself."""
    tree.set("limit", None)
    tree.set("offset", None)


def literal_bound(bound: exp.Expr | None) -> tuple[int | None, bool]:
    """The number of a LIMIT or OFFSET and whether it is known; LIMIT ALL is no limit."""
    if bound is None:
        return None, True
    value = bound.args["expression"]
    if isinstance(value, exp.Var):
        return None, True
    if isinstance(value, exp.Literal) and not value.is_string and str(value.this).isdecimal():
        return int(value.this), True
    return None, False


def _own(root: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes of a SELECT's list, HAVING and ORDER BY, without those of its subqueries."""
    stack = [*root.expressions]
    stack += [root.args[key] for key in ("having", "qualify", "order") if root.args.get(key) is not None]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, exp.Query):
            stack.extend(node.iter_expressions())


def is_global_aggregate(root: exp.Expr) -> bool:
    """Does it have one row, of aggregates?"""
    if not isinstance(root, exp.Select) or root.args.get("group") is not None:
        return False
    nodes = list(_own(root))
    if any(is_generator(node) for node in nodes):
        return False
    # sum(x) OVER (…) is one value a row; sum(sum(x)) OVER (…) is over an aggregate's one row.
    return any(is_aggregate(node) and not _is_windowed(node) for node in nodes)


def _is_windowed(node: exp.Expr) -> bool:
    child, parent = node, node.parent
    while (
        isinstance(parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup) and parent.this is child
    ):
        child, parent = parent, parent.parent
    return isinstance(parent, exp.Window) and parent.this is child


def _is_plain_scan(root: exp.Expr, query: Query) -> bool:
    if not isinstance(root, exp.Select):
        return False
    if any(value not in (None, [], False) for key, value in root.args.items() if key not in _PLAIN):
        return False
    from_ = root.args.get("from_")
    if from_ is None or not isinstance(from_.this, exp.Table) or isinstance(from_.this.this, exp.Anonymous):
        return False
    if all(scan.node_name != from_.this.name for scan in query.tables):
        return False
    return not any(
        isinstance(node, exp.Query | exp.Window | exp.Exists) or is_aggregate(node) or is_generator(node)
        for node in nodes_of(root)
        if node is not root and not isinstance(node, exp.Table)
    )


def _outputs(root: exp.Expr, query: Query) -> list[_Output] | None:
    """The result's columns in order, or None when they cannot be told without Spark."""
    while isinstance(root, exp.SetOperation | exp.Subquery):
        if root.args.get("by_name"):
            return None
        if isinstance(root, exp.SetOperation):
            left = _outputs(root.this, query)
            return [_Output(output.name, None) for output in left] if left is not None else None
        root = root.this
    if not isinstance(root, exp.Select):
        return None
    outputs: list[_Output] = []
    for item in root.expressions:
        found = _star(item, root, query) if item.is_star else [_output(item)]
        if found is None or isinstance(item, exp.Aliases) or is_generator(_bare(item)):
            return None
        outputs.extend(found)
    return outputs


def _bare(item: exp.Expr) -> exp.Expr:
    while isinstance(item, exp.Alias | exp.Paren):
        item = item.this
    return item


def _output(item: exp.Expr) -> _Output:
    if isinstance(item, exp.Alias):
        return _Output(item.alias.lower(), item.this)
    if isinstance(item, exp.Column):
        return _Output(item.name.lower(), item)
    return _Output(named_after(item), item)


def named_after(item: exp.Expr) -> str | None:
    """Spark names CAST(a AS INT) after the column, so that ORDER BY and HAVING mean the cast by `a`; and `v:a.b` b."""
    inner = item.this if isinstance(item, exp.Cast | exp.TryCast | ColonCast) else item
    if isinstance(inner, VariantPath):
        return inner.output_name.lower() or None
    is_cast = isinstance(item, exp.Cast | exp.TryCast | ColonCast) and isinstance(item.this, exp.Column)
    return str(item.this.name).lower() if is_cast else None


def _star(item: exp.Expr, select: exp.Select, query: Query) -> list[_Output] | None:
    """The columns of `*` over exactly one table; joins may merge columns, so those are left alone."""
    from_ = select.args.get("from_")
    busy = any(select.args.get(key) for key in ("joins", "laterals", "pivots"))
    star = item.this if isinstance(item, exp.Column) else item
    if from_ is None or busy or star.args.get("except_") or not isinstance(from_.this, exp.Table):
        return None
    scan = next((scan for scan in query.tables if scan.node_name == from_.this.name), None)
    alias = from_.this.args.get("alias")
    if scan is None or (alias is not None and alias.args.get("columns")):
        return None
    names = [column.name for column in scan.table.columns]
    return [_Output(name.lower(), exp.Column(this=exp.Identifier(this=name))) for name in names]


def _order_keys(order: exp.Expr, outputs: list[_Output] | None) -> tuple[SortKey, ...] | None:
    if outputs is None:
        return None
    keys: list[SortKey] = []
    listed = _Listed(outputs)
    for item in order.expressions:
        descending = bool(item.args.get("desc"))
        first = item.args.get("nulls_first")
        # Spark's default: NULLs are the smallest.
        nulls_first = not descending if first is None else bool(first)
        if isinstance(item.this, exp.Var):
            found = list(range(len(outputs)))
        else:
            index = listed.index(item.this)
            if index is None:
                return None
            found = [index]
        keys.extend(SortKey(index, descending, nulls_first) for index in found)
    return tuple(keys)


class _Listed:
    """The columns of the result, found by what ORDER BY says of them."""

    def __init__(self, outputs: list[_Output]) -> None:
        self._count = len(outputs)
        self._named: dict[str | None, list[int]] = {}
        self._places: dict[tuple[object, ...], int] = {}
        self._renamed: set[str | None] = set()
        for index, output in enumerate(outputs):
            self._named.setdefault(output.name, []).append(index)
            if output.value is not None:
                self._places.setdefault(form(output.value), index)
            if not (isinstance(output.value, exp.Column) and output.value.name.lower() == output.name):
                self._renamed.add(output.name)

    def index(self, key: exp.Expr) -> int | None:
        if isinstance(key, exp.Literal) and not key.is_string:
            place = int(key.this) if str(key.this).isdecimal() else 0
            return place - 1 if 1 <= place <= self._count else None
        if isinstance(key, exp.Column) and len(key.parts) == 1 and key.name.lower() in self._named:
            named = self._named[key.name.lower()]
            return named[0] if len(named) == 1 else None
        if not is_deterministic(key) or self._hides(key):
            return None
        return self._places.get(form(key))

    def _hides(self, key: exp.Expr) -> bool:
        """In ORDER BY a + 1 an alias `a` of the select list comes before a column `a`, which the list itself means."""
        return any(
            column.name.lower() in self._renamed for column in find_all(key, exp.Column) if len(column.parts) == 1
        )
