"""Names of queries in HAVING say which relation they mean.

Sail takes a bare name there for an item or a group of the SELECT around it, however deep it stands; Spark looks for it
in its own SELECT first. With the relation's name before it, it means one thing to both.
"""

from __future__ import annotations

from sqlglot import exp

from skerry.sql.scope import Scope, Scopes
from skerry.sql.walk import find_all

# Clauses that see all relations of FROM before anything else.
_CLAUSES = frozenset(("expressions", "where", "group"))
# What a leaf is called whose columns must say where they are from.
_LEAF = "skerry_leaf"


def qualify_in_having(tree: exp.Expr, scopes: Scopes) -> None:
    """Those of WITH as well, whose queries the planner puts where they are named. Only what is certain is changed."""
    if not any(each.find(exp.Select) for each in find_all(tree, exp.Having)):
        return
    for scope in scopes.all:
        if scope.select.find_ancestor(exp.Having, exp.CTE) is not None:
            _qualify(scope)


def qualify_leaves(tree: exp.Expr) -> None:
    """The same for the planner's own `SELECT a, b FROM leaf`, below a HAVING."""
    for having in find_all(tree, exp.Having):
        for select in having.find_all(exp.Select):
            from_ = select.args.get("from_")
            if from_ is None or not isinstance(from_.this, exp.Table) or select.args.get("joins"):
                continue
            if all(isinstance(each, exp.Column) for each in select.expressions):
                if from_.this.args.get("alias") is None:
                    # A leaf's own name stands in a fragment once (see fragment.py).
                    from_.this.set("alias", exp.TableAlias(this=exp.Identifier(this=_LEAF, quoted=False)))
                for column in select.expressions:
                    if len(column.parts) == 1 and not column.is_star:
                        column.set("table", exp.to_identifier(from_.this.alias_or_name))


def _qualify(scope: Scope) -> None:
    if not scope.plain or any(source.columns is None for source in scope.sources):
        return
    for column in scope.columns:
        owners = [source for source in scope.sources if column.name.lower() in (source.columns or ())]
        if len(column.parts) != 1 or len(owners) != 1 or not owners[0].alias or column.is_star:
            continue
        if _clause(column, scope.select) in _CLAUSES:
            column.set("table", exp.Identifier(this=owners[0].alias, quoted=True))


def _clause(column: exp.Expr, select: exp.Select) -> str | None:
    """The clause of `select` in which the column stands; None where a lambda may have given it its name."""
    node: exp.Expr = column
    while node.parent is not None and node.parent is not select:
        if isinstance(node.parent, exp.Lambda):
            return None
        node = node.parent
    return node.arg_key
