"""What stands in a fragment's tree in the places of tables, and what Spark's joins are told of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from sqlglot import exp

from skerry.model.names import TableRef
from skerry.model.table import Column
from skerry.plan.from_order import order_from, scopes_by_select
from skerry.sql.scope import Scope
from skerry.sql.walk import find_all

# A hint is read as a comment by whoever does not know it: a name with `*/` in it would end that comment.
_HINTED = re.compile(r"\w+")


def select_from(placeholder: str, columns: Iterable[Column]) -> exp.Select:
    """These columns of what the placeholder stands for."""
    return exp.Select(
        expressions=[exp.column(column.name, quoted=True) for column in columns],
        from_=exp.From(this=exp.Table(this=exp.to_identifier(placeholder))),
    )


def replace_tables(
    tree: exp.Expr, names: Mapping[str, Sequence[str | exp.Query]], columns: Mapping[str, tuple[Column, ...]]
) -> None:
    """Put placeholders, or queries, where the bound tree names its scans."""
    nodes = [node for node in find_all(tree, exp.Table) if node.name in names]
    # Every scan stands once; a second node of its name would be something else that the user named so.
    assert sorted(node.name for node in nodes) == sorted(names)
    for node in nodes:
        standing = names[node.name]
        if len(standing) == 1 and isinstance(standing[0], str):
            node.set("this", exp.to_identifier(standing[0]))
            continue
        # A local part and parts that arrive: their union stands where the table stood.
        union: exp.Query | None = None
        for each in standing:
            query = select_from(each, columns[node.name]) if isinstance(each, str) else each
            if len(standing) > 1 and query.args.get("limit") is not None:
                query = exp.Subquery(this=query)  # else the bound would be the union's
            union = query if union is None else exp.union(union, query, distinct=False, copy=False)
        node.replace(exp.Subquery(this=union, alias=node.args["alias"].copy()))


def hint_broadcasts(tree: exp.Expr, small: set[str], tables: Mapping[str, TableRef]) -> None:
    """Name small scans to Spark's joins, in the SELECT whose FROM they stand in. `tables`: all scans, by name."""
    scopes: dict[int, Scope] = {}
    for select in find_all(tree, exp.Select):
        joins = [join for join in select.args.get("joins") or () if isinstance(join, exp.Join)]
        if not joins:
            continue
        relations = [relation.this for relation in (select.args["from_"], *joins)]
        counts = Counter(relation.alias.lower() for relation in relations)
        # A name that two relations share could mean the large one.
        named = [
            exp.to_identifier(relation.alias, quoted=True)
            for relation in relations
            if isinstance(relation, exp.Table)
            and relation.name in small
            and counts[relation.alias.lower()] == 1
            and _HINTED.fullmatch(relation.alias)
        ]
        if named and len(joins) > 1:
            scopes = scopes or scopes_by_select(tree, tables)
        if named and (len(joins) == 1 or (id(select) in scopes and order_from(scopes[id(select)]))):
            select.set("hint", exp.Hint(expressions=[exp.Anonymous(this="BROADCAST", expressions=named)]))
