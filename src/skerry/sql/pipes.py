"""Queries that are written in another order → SELECT … FROM …: the pipe syntax, FROM first, TABLE t, TABLESAMPLE.

Each operator of a pipe goes into the SELECT that is being made where that says the same, else that SELECT becomes a
subquery of the next one. Spark keeps the names of relations (`t.a`) along a pipe. A subquery keeps that of the one
relation it has; names of several are lost, and who asks for one of them later is told so.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from skerry.model.names import TableRef
from skerry.sql.functions import is_aggregate, is_generator
from skerry.sql.nodes import Pipe, Piped, Sample
from skerry.sql.position import error_at
from skerry.sql.walk import children_of, find_all, nodes_of

_OPEN = frozenset({"expressions", "from_", "joins", "laterals", "where"})
_ENDS = ("order", "cluster", "distribute", "sort", "late_windows", "limit", "offset")
_SETS: dict[str, type[exp.SetOperation]] = {"UNION": exp.Union, "EXCEPT": exp.Except, "INTERSECT": exp.Intersect}


def in_usual_order(tree: exp.Expr, tables: Mapping[int, TableRef], text: str) -> exp.Expr:
    """The same query of SELECTs alone; `tables` are those of its mentions, by the identity of their nodes."""
    for node in reversed(nodes_of(tree)):
        if node.args.get("sample"):
            new = _sampled(node)
        elif isinstance(node, exp.Select) and node.args.get("written"):
            new = _usual(node)
        elif isinstance(node, Piped):
            new = _Pipeline(node, tables, text).query
            new.meta.update(node.meta)
        else:
            continue
        if node is tree:
            tree = new
        elif new is not node:
            node.replace(new)
    return tree


def is_in_usual_order(tree: exp.Expr) -> bool:
    return not any(isinstance(node, Piped | Sample) or node.args.get("written") for node in nodes_of(tree))


def _sampled(node: exp.Expr) -> exp.Expr:
    """`t TABLESAMPLE (5 ROWS)` → `(SELECT * FROM t LIMIT 5) AS t`; the whole is what stands before it."""
    sample, alias = node.args["sample"], node.args.get("alias")
    node.set("sample", None)
    if isinstance(sample.this, exp.Var):
        return node
    node.set("alias", None)
    if alias is None and isinstance(node, exp.Table):
        alias = exp.TableAlias(this=node.this.copy())
    around = exp.Subquery(alias=alias)
    node.replace(around)
    inner = exp.Select(expressions=[exp.Star()], from_=exp.From(this=node), limit=exp.Limit(expression=sample.this))
    around.set("this", inner)
    return node


def _usual(select: exp.Select) -> exp.Expr:
    select.set("written", None)
    if not select.expressions:
        select.set("expressions", [exp.Star()])
    if isinstance(select.parent, exp.SetOperation) and any(select.args.get(key) for key in _ENDS):
        around = exp.Subquery()
        select.replace(around)
        around.set("this", select)
        return select
    return select


class _Pipeline:
    """`query` is what the operators so far come to. `_lost`: names of relations that nobody can say any more."""

    def __init__(self, piped: Piped, tables: Mapping[int, TableRef], text: str) -> None:
        self._tables = tables
        self._text = text
        self._lost: set[str] = set()
        self.query = _bare(piped.this)
        for operator in piped.expressions:
            self._apply(operator)
            if operator.args["kind"].name not in _SETS:
                self._check_names(operator)
        if any(piped.args.get(key) for key in _ENDS):
            self._end(piped)
        self.query.set("with_", piped.args.get("with_"))

    def _apply(self, pipe: Pipe) -> None:
        kind = pipe.args["kind"].name
        match kind:
            case "SELECT":
                self._select(pipe)
            case "WHERE":
                where = self._opened().args.get("where")
                both = exp.And(this=exp.Paren(this=where.this), expression=exp.Paren(this=pipe.this)) if where else None
                self.query.set("where", exp.Where(this=both or pipe.this))
            case "EXTEND":
                self._check_plain(pipe.expressions, pipe)
                self._opened(*pipe.expressions).set("expressions", [exp.Star(), *pipe.expressions])
            case "DROP":
                self._opened().set("expressions", [exp.Star(except_=pipe.expressions)])
            case "SET":
                for assignment in pipe.expressions:
                    self._assign(assignment, pipe)
            case "AS":
                self._rename(pipe.this)
            case "AGGREGATE":
                self._aggregate(pipe)
            case "JOIN":
                self._join(pipe.this)
            case "PIVOT":
                self._wrap().set("joins", [pipe.this])
            case "ENDS":
                self._end(pipe)
            case "TABLESAMPLE":
                if not isinstance(pipe.this.this, exp.Var):
                    self._end(Pipe(kind=exp.var("ENDS"), limit=exp.Limit(expression=pipe.this.this)))
            case _:
                self._combine(kind, pipe)

    def _select(self, pipe: Pipe) -> None:
        select = pipe.this
        is_grouped = select.args.get("group") is not None or any(map(_has_aggregate, select.expressions))
        opened = self._opened(*select.expressions, ordered=not is_grouped)
        if select.args.get("distinct") and opened.args.get("order"):
            opened = self._wrap()
        for key in ("expressions", "distinct", "said_all", "group", "windows"):
            opened.set(key, select.args.get(key))

    def _assign(self, assignment: exp.Expr, pipe: Pipe) -> None:
        names, name = self._names(self.query), assignment.this.name
        lower = [each.lower() for each in names or ()]
        if names is None or len(set(lower)) < len(lower):
            message = "|> SET needs to know all columns before it, each under a name of its own: list them in a SELECT"
            raise error_at(message, self._text, pipe)
        if name.lower() not in lower:
            raise error_at(f"|> SET: there is no column {name} before it", self._text, pipe)
        self._check_plain([assignment.expression], pipe)
        new = exp.Alias(this=assignment.expression, alias=assignment.this)
        kept = [
            new if each == name.lower() else exp.Column(this=exp.Identifier(this=written, quoted=True))
            for each, written in zip(lower, names, strict=True)
        ]
        self._opened(new).set("expressions", kept)

    def _rename(self, name: exp.Expr) -> None:
        alias = exp.TableAlias(this=name)
        source = _only_source(self.query)
        is_whole = _is_open(self.query) and not self.query.args.get("where")
        if isinstance(source, exp.Table) and is_whole and not source.args.get("alias"):
            source.set("alias", alias)
            return
        self._wrap().args["from_"].this.set("alias", alias)

    def _aggregate(self, pipe: Pipe) -> None:
        group = pipe.args.get("group")
        keys = list(group.expressions) if group is not None else []
        keys = [self._meant(key, pipe) for key in keys]
        for item in pipe.expressions:
            if not _has_aggregate(item):
                raise error_at("each expression of AGGREGATE holds an aggregate, as in Spark", self._text, pipe)
        opened = self._opened(ordered=False)
        opened.set("expressions", [*(key.copy() for key in keys), *pipe.expressions])
        if keys:
            opened.set(
                "group", exp.Group(expressions=[key.this if isinstance(key, exp.Alias) else key for key in keys])
            )

    def _meant(self, key: exp.Expr, pipe: Pipe) -> exp.Expr:
        """A number in GROUP BY of AGGREGATE is the place of a column before it."""
        if not isinstance(key, exp.Literal) or key.is_string:
            return key
        names = self._names(self.query) or []
        place = int(key.name) if key.name.isdecimal() else 0
        lower = [name.lower() for name in names]
        if not 1 <= place <= len(names) or lower.count(lower[place - 1]) > 1:
            message = f"GROUP BY {key.name}: the columns before it are not known here; say the column's name"
            raise error_at(message, self._text, pipe)
        return exp.Column(this=exp.Identifier(this=names[place - 1], quoted=True))

    def _join(self, join: exp.Join) -> None:
        query = self.query
        if not _is_open(query) or query.args.get("where") or query.args.get("laterals"):
            query = self._wrap()
        query.append("joins", join)

    def _end(self, node: exp.Expr) -> None:
        ends = {key: node.args[key] for key in _ENDS if node.args.get(key)}
        query = self.query
        only_bounds = ends.keys() <= {"limit", "offset"}
        if not _is_open(query, *(("order",) if only_bounds else ())):
            query = self._wrap()
        for key, value in ends.items():
            query.set(key, value)

    def _combine(self, word: str, pipe: Pipe) -> None:
        left = self.query
        self._lost |= _source_names(left)
        if not isinstance(left, exp.Select) or any(left.args.get(key) for key in _ENDS):
            left = left if isinstance(left, exp.Subquery) else exp.Subquery(this=left)
        right = pipe.this
        if any(right.args.get(key) for key in _ENDS):
            right = exp.Subquery(this=right)
        distinct = {key: pipe.args.get(key) for key in ("distinct", "said_distinct")}
        self.query = _SETS[word](this=left, expression=right, **distinct)

    def _opened(self, *items: exp.Expr, ordered: bool = True) -> exp.Select:
        """A SELECT * to which a clause may be added; `items` are seen together with its ORDER BY, if it has one."""
        if _is_open(self.query):
            assert isinstance(self.query, exp.Select)
            return self.query
        if ordered and _is_open(self.query, "order") and not _would_hide(self.query, items):
            assert isinstance(self.query, exp.Select)
            return self.query
        return self._wrap()

    def _wrap(self) -> exp.Select:
        """What there is so far becomes a subquery, under the name of its one relation."""
        names, source = _source_names(self.query), _only_source(self.query)
        alias = None
        if source is not None and len(names) == 1:
            given = source.args.get("alias")
            name = given.this if given is not None else source.this
            alias = exp.TableAlias(this=name.copy())
        else:
            self._lost |= names
        inner = self.query
        relation = inner if isinstance(inner, exp.Values) else exp.Subquery(this=inner, alias=alias)
        self.query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=relation))
        return self.query

    def _check_names(self, pipe: Pipe) -> None:
        lost = self._lost - _source_names(self.query)
        # What the operator holds stands in the query by now.
        items = [item for item in (pipe.this, *pipe.expressions, pipe.args.get("group")) if isinstance(item, exp.Expr)]
        for column in [each for item in items for each in find_all(item, exp.Column)] if lost else ():
            name = column.parts[0].name
            if len(column.parts) > 1 and name.lower() in lost and not self._is_inside(column, name.lower()):
                advice = (
                    f"the relation {name} is not known behind the operators before this |>; say AS … or no relation"
                )
                raise error_at(advice, self._text, column)

    def _is_inside(self, column: exp.Column, name: str) -> bool:
        """Does a query around the column, within this one, have a relation of that name?"""
        around = column.parent
        while around is not None and around is not self.query:
            if isinstance(around, exp.Select) and name in _source_names(around):
                return True
            around = around.parent
        return False

    def _check_plain(self, items: list[exp.Expr], pipe: Pipe) -> None:
        if any(map(_has_aggregate, items)):
            raise error_at("an aggregate stands in |> AGGREGATE, as in Spark", self._text, pipe)

    def _names(self, node: exp.Expr) -> list[str] | None:
        """The columns of a relation or a query as they are called, if that is certain."""
        alias = node.args.get("alias")
        if alias is not None and alias.args.get("columns"):
            return [column.name for column in alias.args["columns"]]
        match node:
            case exp.Table():
                table = self._tables.get(id(node))
                return None if table is None else [column.name for column in table.columns]
            case exp.Subquery() if not node.args.get("joins"):
                return self._names(node.this)
            case exp.Select():
                return self._listed(node)
        return None

    def _listed(self, select: exp.Select) -> list[str] | None:
        found: list[str] = []
        for item in select.expressions:
            if isinstance(item, exp.Star):
                source = _only_source(select)
                names = self._names(source) if source is not None else None
                dropped = {column.name.lower() for column in item.args.get("except_") or ()}
                if names is None or any(len(column.parts) > 1 for column in item.args.get("except_") or ()):
                    return None
                found += [name for name in names if name.lower() not in dropped]
            elif isinstance(item, exp.Alias) or (isinstance(item, exp.Column) and not item.is_star):
                found.append(item.alias or item.name)
            else:
                return None
        return found


def _bare(query: exp.Expr) -> exp.Expr:
    """Brackets around a whole query do not hide its relations' names in Spark."""
    while isinstance(query, exp.Subquery) and not any(query.args.get(key) for key in (*_ENDS, "with_", "alias")):
        query = query.this
    if query.args.get("with_") is not None:
        return exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Subquery(this=query)))
    return query


def _is_open(query: exp.Expr, *also: str) -> bool:
    if not isinstance(query, exp.Select) or len(query.expressions) != 1:
        return False
    star = query.expressions[0]
    said = {key for key, value in query.args.items() if value not in (None, [], False)}
    return isinstance(star, exp.Star) and not star.args.get("except_") and "from_" in said and said <= _OPEN | {*also}


def _would_hide(select: exp.Expr, items: tuple[exp.Expr, ...]) -> bool:
    """Would ORDER BY mean a new item by a name that it has meant a column by?"""
    order = select.args["order"]
    if any(isinstance(key.this, exp.Literal | exp.Var) for key in order.expressions):
        return True
    if any((isinstance(item, exp.Column) and item.is_star) or is_generator(item) for item in items):
        return True  # their columns have names of their own: `st.*`, `inline(…)`
    given = {item.alias.lower() for item in items if isinstance(item, exp.Alias)}
    given |= {name.name.lower() for item in items if isinstance(item, exp.Aliases) for name in item.expressions}
    given |= {item.name.lower() for item in items if isinstance(item, exp.Column) and len(item.parts) > 1}
    return any(part.name.lower() in given for column in find_all(order, exp.Column) for part in column.parts)


def _only_source(query: exp.Expr) -> exp.Expr | None:
    """The one relation of a SELECT, if it has a name."""
    if not isinstance(query, exp.Select) or any(query.args.get(key) for key in ("joins", "laterals", "pivots")):
        return None
    from_ = query.args.get("from_")
    if from_ is None:
        return None
    node = from_.this
    is_table = isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier)
    return node if is_table or (node.args.get("alias") is not None and not isinstance(node, exp.Lateral)) else None


def _source_names(query: exp.Expr) -> set[str]:
    """By which names its relations can be said, in lower case."""
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
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


def _has_aggregate(item: exp.Expr) -> bool:
    """Does it hold one that is not over a window, outside of its subqueries?"""
    stack = [item]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.Query):
            continue
        if isinstance(node, exp.Window):
            call = node.this
            while isinstance(call, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
                call = call.this
            stack += [each for each in children_of(node) if each is not node.this] + children_of(call)
            continue
        if is_aggregate(node):
            return True
        stack += children_of(node)
    return False
