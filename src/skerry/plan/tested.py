"""Tables that a query only tests (EXISTS, IN, SEMI and ANTI joins) as groups with their counts.

Whether a row is there is all that the query asks. So the rows may be grouped by the columns that the test reads, with a
count in each group: the test of the groups says the same, and nothing but groups leaves a site (`leaves: aggregated`).
Equal values of other types than those of `_EXACT` may differ, so a test of these is left as it is.
"""

from __future__ import annotations

import dataclasses

from sqlglot import exp

from skerry.plan.mentions import free_prefix, read_scopes
from skerry.sql.functions import is_aggregate, is_deterministic, is_generator
from skerry.sql.push import resolve, split
from skerry.sql.scope import Scope, Source
from skerry.sql.statement import Query
from skerry.sql.types import decimal_of
from skerry.sql.walk import contains, nodes_of

_EXACT = frozenset("boolean tinyint smallint int bigint string binary date timestamp timestamp_ntz".split())
# What a SELECT that is tested may have.
_PLAIN = frozenset(("expressions", "from_", "where"))


def with_groups_tested(query: Query) -> Query:
    """The same query, whose tests read groups where they can; itself where none can."""
    tree = query.tree.copy()
    scopes = read_scopes(tree, {scan.node_name: scan for scan in query.tables})
    prefix = free_prefix(tree, "tested_")
    parents = {id(scope.parent) for scope in scopes.all}
    changed = [_group(scope, prefix) for scope in scopes.all if id(scope) not in parents and _is_tested(scope)]
    changed += [_group_joined(scope, join, prefix) for scope in scopes.all for join in _semi_joins(scope)]
    return dataclasses.replace(query, tree=tree) if any(changed) else query


def _is_tested(scope: Scope) -> bool:
    select = scope.select
    said = {key for key, value in select.args.items() if value not in (None, [], False)}
    if not isinstance(select.parent, exp.Exists | exp.In) or said - _PLAIN or not scope.plain:
        return False
    nodes = [node for item in select.expressions for node in nodes_of(item)]
    if any(isinstance(node, exp.Window | exp.Query) or is_aggregate(node) or is_generator(node) for node in nodes):
        return False
    return len(scope.sources) == 1 and is_deterministic(select)


def _semi_joins(scope: Scope) -> list[exp.Join]:
    joins = [each for each in scope.select.args.get("joins") or [] if isinstance(each, exp.Join)]
    return [each for each in joins if each.args.get("kind") in ("SEMI", "ANTI") and each.args.get("on") is not None]


def _group(scope: Scope, prefix: str) -> bool:
    """The relation of a query that is tested becomes its groups."""
    (source,), select = scope.sources, scope.select
    where = select.args.get("where")
    conjuncts = split(where.this) if where is not None else []
    own = [each for each in conjuncts if _is_closed(each, scope)]
    if isinstance(select.parent, exp.Exists):
        select.set("expressions", [exp.Literal.number(1)])
    elif any(item.is_star for item in select.expressions):
        return False
    rest = [each for each in conjuncts if not any(each is mine for mine in own)]
    listed = [*select.expressions, *rest]
    names = _names([column for each in listed for column in each.find_all(exp.Column)], scope, source)
    if names is None:
        return False
    source.node.replace(_groups(source, names, own, prefix))
    if not names:  # of no rows there is one group all the same
        rest.append(exp.GT(this=exp.column(f"{prefix}rows"), expression=exp.Literal.number(0)))
    select.set("where", exp.Where(this=exp.and_(*(each.copy() for each in rest), copy=False)) if rest else None)
    return True


def _group_joined(scope: Scope, join: exp.Join, prefix: str) -> bool:
    source = next((each for each in scope.sources if each.node is join.this), None)
    if source is None or not scope.plain or contains(join.args["on"], exp.Query):
        return False
    names = _names(list(join.args["on"].find_all(exp.Column)), scope, source)
    if not names:
        return False
    source.node.replace(_groups(source, names, [], prefix))
    return True


def _is_closed(conjunct: exp.Expr, scope: Scope) -> bool:
    return not contains(conjunct, exp.Query) and all(
        resolve(column, scope) is not None for column in conjunct.find_all(exp.Column)
    )


def _names(columns: list[exp.Column], scope: Scope, source: Source) -> list[str] | None:
    """The columns of the relation among these, as its table spells them; None where one is not known, or inexact."""
    if source.table is None or source.renamed or not isinstance(source.node, exp.Table):
        return None
    types = {column.name.lower(): column for column in source.table.columns}
    found: dict[str, None] = {}
    for column in columns:
        owner = resolve(column, scope)
        parts = [part.name.lower() for part in column.parts]
        if owner is None and (parts[0] in types or (len(parts) > 1 and parts[0] == source.alias)):
            return None
        if owner is source:
            known = types[column.name.lower()]
            if known.type not in _EXACT and decimal_of(known.type) is None:
                return None
            found[known.name] = None
    return list(found)


def _groups(source: Source, names: list[str], conditions: list[exp.Expr], prefix: str) -> exp.Subquery:
    """`(SELECT t.a AS a, count(*) AS tested_rows FROM t WHERE … GROUP BY t.a) AS t`."""
    alias = source.node.args["alias"].this
    columns = [exp.Column(this=_quoted(name), table=alias.copy()) for name in names]
    items: list[exp.Expr] = [exp.Alias(this=each, alias=_quoted(each.name)) for each in columns]
    counted = exp.Anonymous(this="count", expressions=[exp.Star()])
    items.append(exp.Alias(this=counted, alias=exp.to_identifier(f"{prefix}rows")))
    grouped = exp.Select(expressions=items, from_=exp.From(this=source.node.copy()))
    if conditions:
        grouped.set("where", exp.Where(this=exp.and_(*(each.copy() for each in conditions), copy=False)))
    if columns:
        grouped.set("group", exp.Group(expressions=[each.copy() for each in columns]))
    return exp.Subquery(this=grouped, alias=exp.TableAlias(this=alias.copy()))


def _quoted(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=True)
