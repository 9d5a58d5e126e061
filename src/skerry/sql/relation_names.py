"""How a query's relations may be called, and their columns, as far as that is certain without asking Spark."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from skerry.model.names import TableRef


class Names:
    """`tables` are those that a query mentions, by the identity of their nodes."""

    def __init__(self, tables: Mapping[int, TableRef]) -> None:
        self._tables = tables

    def of(self, node: exp.Expr) -> list[str] | None:
        """The columns of a relation or a query as they are called, if that is certain."""
        alias = node.args.get("alias")
        if alias is not None and alias.args.get("columns"):
            return [column.name for column in alias.args["columns"]]
        match node:
            case exp.Table(this=exp.Anonymous()):
                return ["id"] if node.this.name.lower() == "range" else None
            case exp.Table():
                table = self._tables.get(id(node))
                return None if table is None else [column.name for column in table.columns]
            case exp.Subquery() if not node.args.get("joins"):
                return self.of(node.this)
            case exp.Values():
                first = node.expressions[0]
                width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
                return [f"col{place}" for place in range(1, width + 1)] if width > 1 else None
            case exp.Select():
                return self._listed(node)
            case exp.SetOperation() if not node.args.get("by_name"):
                return self.of(first_arm(node))
        return None

    def starred(self, select: exp.Select) -> list[exp.Column] | None:
        """The columns of `*`, each by a name that means it alone, if these are certain."""
        joins = select.args.get("joins") or []
        if select.args.get("laterals") or any(not isinstance(join, exp.Join) for join in joins):
            return None
        found: list[exp.Column] | None = None
        for join in (None, *joins):
            node = (join or select.args["from_"]).this
            names, relation = self.of(node), node.alias_or_name if joins else ""
            if names is None:
                return None
            columns = [column_of(name, relation) for name in names]
            if len({name.lower() for name in names}) < len(names):
                return None
            found = columns if join is None or found is None else _joined(found, columns, join)
            if found is None:
                return None
        names = [column.name.lower() for column in found or ()]
        is_certain = all(column.table or names.count(column.name.lower()) == 1 for column in found or ())
        relations = [name for name in relation_names(select) if len(name) == 1]
        return found if is_certain and len(relations) == len({name[0] for name in relations}) else None

    def _listed(self, select: exp.Select) -> list[str] | None:
        found: list[str] = []
        for item in select.expressions:
            if isinstance(item, exp.Star):
                columns = self.starred(select) if select.args.get("from_") is not None else None
                dropped = {column.name.lower() for column in item.args.get("except_") or ()}
                if columns is None or any(len(column.parts) > 1 for column in item.args.get("except_") or ()):
                    return None
                found += [column.name for column in columns if column.name.lower() not in dropped]
            elif is_whole_star(item, select):
                names = self.of(select.args["from_"].this)
                if names is None:
                    return None
                found += names
            elif isinstance(item, exp.Alias) or (isinstance(item, exp.Column) and not item.is_star):
                found.append(item.alias or item.name)
            else:
                return None
        return found


def column_of(name: str, relation: str = "") -> exp.Column:
    table = exp.Identifier(this=relation, quoted=True) if relation else None
    return exp.Column(this=exp.Identifier(this=name, quoted=True), table=table)


def only_source(query: exp.Expr) -> exp.Expr | None:
    """The one relation of a SELECT, if it has a name."""
    if not isinstance(query, exp.Select) or any(query.args.get(key) for key in ("joins", "laterals", "pivots")):
        return None
    from_ = query.args.get("from_")
    if from_ is None:
        return None
    node = from_.this
    is_table = isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier)
    return node if is_table or (node.args.get("alias") is not None and not isinstance(node, exp.Lateral)) else None


def first_source(query: exp.Expr) -> exp.Expr | None:
    from_ = query.args.get("from_") if isinstance(query, exp.Select) else None
    return from_.this if from_ is not None else None


def first_arm(query: exp.Expr) -> exp.Expr:
    """The query that names the columns of a set operation, and their relation."""
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    return query


def is_whole_star(item: exp.Expr, select: exp.Expr) -> bool:
    """Is it `u.*` of the one relation?"""
    source = only_source(select)
    if source is None or not isinstance(item, exp.Column) or not item.is_star or len(item.parts) != 2:
        return False
    return item.parts[0].name.lower() == source.alias_or_name.lower()


def source_names(query: exp.Expr) -> set[str]:
    """By which names its relations can be said, in lower case."""
    query = first_arm(query)
    if not isinstance(query, exp.Select) or query.args.get("from_") is None:
        return set()
    joins = query.args.get("joins") or []
    relations = [query.args["from_"].this, *(join.this for join in joins if isinstance(join, exp.Join))]
    found: set[str] = set()
    while relations:
        node = relations.pop()
        alias = node.args.get("alias")
        if alias is not None and alias.this is not None:
            found.add(alias.name.lower())
        elif isinstance(node, exp.Table):
            found.add(node.this.name.lower())
        if isinstance(node, exp.Subquery) and node.args.get("joins"):
            relations += [node.this, *(join.this for join in node.args["joins"] if isinstance(join, exp.Join))]
    pivots = [join for join in joins if isinstance(join, exp.Pivot)] + (query.args.get("pivots") or [])
    views = query.args.get("laterals") or []
    found |= {each.args["alias"].name.lower() for each in (*pivots, *views) if each.args.get("alias") is not None}
    return found - {""}


def relation_names(query: exp.Expr) -> list[list[str]]:
    """How its relations may be called, `t` and `oslo.t`, in lower case."""
    names = [[name] for name in source_names(query)]
    joins = query.args.get("joins") or [] if isinstance(query, exp.Select) else []
    for node in [first_source(query), *(join.this for join in joins if isinstance(join, exp.Join))]:
        if isinstance(node, exp.Table) and not node.args.get("alias") and len(node.parts) > 1:
            names.append([part.name.lower() for part in node.parts])
    return names


def _joined(left: list[exp.Column], right: list[exp.Column], join: exp.Join) -> list[exp.Column] | None:
    """What `*` of a join has: the columns of USING come first, and belong to no relation."""
    if join.args.get("nearest"):
        return None
    names = [column.name.lower() for column in right]
    keys = [key.name.lower() for key in join.args.get("using") or ()]
    if join.args.get("method") == "NATURAL":
        keys = [column.name.lower() for column in left if column.name.lower() in names]
    first = [column for key in keys for column in left if column.name.lower() == key]
    if len(first) != len(keys) or any(names.count(key) != 1 for key in keys):
        return None
    rest = [column for column in left if column.name.lower() not in keys]
    if str(join.args.get("kind") or "") not in ("SEMI", "ANTI"):
        rest += [column for column in right if column.name.lower() not in keys]
    return [column_of(column.name) for column in first] + rest
