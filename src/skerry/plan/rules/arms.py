"""Arms of set operations whose tables are all at one site are answered there, as queries in FROM are.

`SELECT max(x) AS m FROM t UNION ALL …` is `SELECT * FROM (SELECT max(x) AS m FROM t) AS arm_1 UNION ALL …`: the same
columns in the same order, of the same types, so what Spark makes of the types of all arms is the same. Names of the
result are those of the first arm, which keeps its own; the other arms' columns are numbered, so that any of them have
names. A WITH query that stays one (ctes.py) is treated likewise. An arm that is not answered elsewhere in the end is
put back as it was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from skerry.model.table import TablePart
from skerry.plan.rules.blocks import SET, home_of
from skerry.plan.rules.ctes import is_outside
from skerry.plan.rules.sets import feeds_set
from skerry.sql.statement import render
from skerry.sql.walk import find_all

# Marks a SELECT that stands around an arm.
_ARM = "arm"
# Arms of a query; each is another relation to be placed, and where there are more none is cut.
_ARMS_MAX = 24
_SCAN = {"expressions", "from_", "where", "said_all"}
_ORDERS = ("order", "sort", "cluster", "distribute")


def put_arms(tree: exp.Expr, holders: Mapping[str, Sequence[TablePart]], prefix: str) -> bool:
    """Puts arms in FROM, under names that begin with `prefix`; False if there is none."""
    if len(find_all(tree, exp.SetOperation, exp.CTE)) > _ARMS_MAX or _orders_by_table(tree):
        return False
    found: list[tuple[exp.Expr, list[exp.Expr] | None]] = []
    for arm, is_first in _arms(tree, holders):
        found.append((arm, None if is_first else _numbered(arm, f"{prefix}c")))
    for cte in find_all(tree, exp.CTE):
        if _is_home(cte.this, holders) and _bare(cte.this) is not None and is_outside(cte):
            found.append((cte.this, cte.args["alias"].args.get("columns")))
    for number, (arm, columns) in enumerate(found):
        _put(arm, f"{prefix}{number}", [column.copy() for column in columns] if columns else None)
    return bool(found)


def without_arms(tree: exp.Expr) -> None:
    """Puts back those that are still queries."""
    for select in [node for node in find_all(tree, exp.Select) if _ARM in node.meta]:
        derived = select.args["from_"].this
        if isinstance(derived, exp.Subquery):
            body = derived.this
            select.replace(exp.Subquery(this=body) if select.meta[_ARM] else body)


def _put(arm: exp.Expr, name: str, columns: list[exp.Expr] | None) -> None:
    is_set = feeds_set(arm) and not _is_distinct(arm)
    outer = exp.Select(expressions=[exp.Star()])
    outer.meta[_ARM] = isinstance(arm, exp.Subquery)
    arm.replace(outer)
    alias = exp.TableAlias(this=exp.Identifier(this=name, quoted=False), columns=columns)
    derived = exp.Subquery(this=arm.this if isinstance(arm, exp.Subquery) else arm, alias=alias)
    if is_set:
        derived.meta[SET] = True
    outer.set("from_", exp.From(this=derived))


def _is_distinct(arm: exp.Expr) -> bool:
    """Are no two of its rows alike, so that asking for different ones is work for nothing?"""
    query = _bare(arm)
    if query is None or query.args.get("distinct"):
        return True
    if not isinstance(query, exp.Select):
        return False
    group, listed = query.args.get("group"), {render(item.unalias()) for item in query.expressions}
    return group is not None and all(render(key) in listed for key in group.expressions)


def _arms(tree: exp.Expr, holders: Mapping[str, Sequence[TablePart]]) -> Iterator[tuple[exp.Expr, bool]]:
    """The largest ones of one site, of operations over several; with whether their columns' names are the result's."""
    for operation in find_all(tree, exp.SetOperation):
        if isinstance(operation.parent, exp.SetOperation) or _in_brackets(operation) or not is_outside(operation):
            continue
        if _is_home(operation, holders):
            continue  # a block, or a part of one, as a whole
        stack: list[tuple[exp.Expr, bool]] = [(operation, True)]
        while stack:
            node, is_first = stack.pop()
            if node is not operation and _is_home(node, holders) and _bare(node) is not None:
                if not _is_scan(node):
                    yield node, is_first
            elif isinstance(node, exp.SetOperation) and not node.args.get("by_name") and not node.args.get("with_"):
                stack += [(node.args["expression"], False), (node.this, is_first)]
            elif isinstance(node, exp.Subquery) and isinstance(_bare(node), exp.SetOperation):
                stack.append((node.this, is_first))


def _is_scan(arm: exp.Expr) -> bool:
    """Is it no more than columns and a condition of one table, which the table's own rows come with anyway?"""
    query = _bare(arm)
    if not isinstance(query, exp.Select) or {key for key, value in query.args.items() if value} - _SCAN:
        return False
    items = [item.unalias() for item in query.expressions]
    return isinstance(query.args["from_"].this, exp.Table) and all(isinstance(item, exp.Column) for item in items)


def _in_brackets(operation: exp.Expr) -> bool:
    """Is it an arm itself?"""
    node: exp.Expr | None = operation.parent
    while isinstance(node, exp.Subquery):
        node = node.parent
    return isinstance(node, exp.SetOperation)


def _bare(node: exp.Expr) -> exp.Query | None:
    """The query itself, or in one pair of brackets that hold nothing else."""
    if isinstance(node, exp.Subquery):
        if any(value for key, value in node.args.items() if key != "this") or isinstance(node.this, exp.Subquery):
            return None
        node = node.this
    return node if isinstance(node, exp.Select | exp.SetOperation) and not node.args.get("with_") else None


def _is_home(query: exp.Expr, holders: Mapping[str, Sequence[TablePart]]) -> bool:
    return home_of(query, holders, is_once=True) is not None


def _numbered(arm: exp.Expr, prefix: str) -> list[exp.Expr] | None:
    """Names for its columns; None where a star hides them."""
    leftmost = arm
    while not isinstance(leftmost, exp.Select):
        if not isinstance(leftmost, exp.SetOperation | exp.Subquery):
            return None
        leftmost = leftmost.this
    if any(item.is_star for item in leftmost.expressions):
        return None
    return [exp.Identifier(this=f"{prefix}{number}", quoted=False) for number, _ in enumerate(leftmost.expressions)]


def _orders_by_table(tree: exp.Expr) -> bool:
    """`… UNION … ORDER BY t.x`: the name of a table of the first arm is known to the order, and would be no more."""
    for node in find_all(tree, exp.SetOperation, exp.Subquery):
        for key in _ORDERS:
            order = node.args.get(key)
            if order is not None and any(column.args.get("table") for column in find_all(order, exp.Column)):
                return True
    return False
