"""Queries that are written in another order → SELECT … FROM …: the pipe syntax, FROM first, TABLE t, TABLESAMPLE.

Each operator of a pipe goes into the SELECT that is being made where that says the same, else that SELECT becomes a
subquery of the next one. Spark keeps the names of relations (`t.a`) along a pipe. A subquery keeps that of the one
relation it has, for the columns that Spark would find by it; names of several are lost, and who asks for one of them
later is told so.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from skerry.model.names import TableRef
from skerry.sql.functions import has_aggregate, is_generator
from skerry.sql.naming import PLAIN_TYPES
from skerry.sql.nodes import ColonCast, Pipe, Piped, Sample
from skerry.sql.position import error_at
from skerry.sql.relation_names import (
    Names,
    column_of,
    first_arm,
    first_source,
    is_whole_star,
    only_source,
    relation_names,
    source_names,
)
from skerry.sql.walk import bare, children_of, find_all, nodes_of

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
    """`query` is what the operators so far come to. `_lost`: names of relations that nobody can say any more.

    `_made`: columns of its one relation that operators have made, in lower case. Spark does not find them by the
    relation's name: `u.a` behind `|> EXTEND 1 AS a` is the older `a`, and `u.*` is without the new one.
    `_older_below`: of all its columns in their order, which are no such ones; empty where that is not certain.
    """

    def __init__(self, piped: Piped, tables: Mapping[int, TableRef], text: str) -> None:
        self._tables = tables
        self._names = Names(tables)
        self._text = text
        self._lost: set[str] = set()
        self._made: list[str] = []
        self._older_below: list[bool] = []
        self.query = _bare(piped.this)
        for operator in piped.expressions:
            self._apply(operator)
            if operator.args["kind"].name not in _SETS:
                self._check_names(children_of(operator))
        if ends := [piped.args[key] for key in _ENDS if isinstance(piped.args.get(key), exp.Expr)]:
            self._end(piped)
            self._check_names(ends)
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
                items = [self._called(item, pipe) for item in pipe.expressions]
                self._opened(*items).set("expressions", [exp.Star(), *items])
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
        is_grouped = select.args.get("group") is not None or any(map(has_aggregate, select.expressions))
        opened = self._opened(*select.expressions, ordered=not is_grouped)
        if select.args.get("distinct") and opened.args.get("order"):
            opened = self._wrap()
        for key in ("expressions", "distinct", "said_all", "group", "windows"):
            opened.set(key, select.args.get(key))

    def _assign(self, assignment: exp.Expr, pipe: Pipe) -> None:
        name = assignment.this.name
        self._check_plain([assignment.expression], pipe)
        new = exp.Alias(this=assignment.expression, alias=assignment.this)
        opened = self._opened(new)
        columns = self._names.starred(opened)
        if columns is None:
            message = "|> SET needs to know all columns before it, each under a name of its own: list them in a SELECT"
            raise error_at(message, self._text, pipe)
        meant = [column for column in columns if column.name.lower() == name.lower()]
        if not meant:
            raise error_at(f"|> SET: there is no column {name} before it", self._text, pipe)
        if len(meant) > 1:
            raise error_at(f"|> SET: several columns before it are called {name}", self._text, pipe)
        opened.set("expressions", [new if column is meant[0] else column for column in columns])
        self._check_names([new])

    def _called(self, item: exp.Expr, pipe: Pipe) -> exp.Expr:
        """Spark calls a field after all of its path behind EXTEND, and not by its own name as behind SELECT."""
        inner = bare(item)
        cast = inner if isinstance(inner, exp.Cast | exp.TryCast | ColonCast) else None
        column = bare(cast.this) if cast is not None else inner
        path = self._path(column) if isinstance(column, exp.Column) else []
        if len(path) < 2:
            return item
        type_ = self._type(path[0])
        name = ".".join(path) if "map<" not in type_ else f"{path[0]}[{path[1]}]"
        to = cast.args["to"] if cast is not None else None
        is_known = to is None or (to.this in PLAIN_TYPES and not to.expressions)
        if not is_known or ("map<" in type_ and (len(path) > 2 or not type_.startswith("map<"))):
            raise error_at("give what is added here a name (AS …)", self._text, pipe)
        if to is not None:
            name = f"{'TRY_CAST' if isinstance(cast, exp.TryCast) else 'CAST'}({name} AS {to.this})"
        return exp.Alias(this=item, alias=exp.Identifier(this=name, quoted=True))

    def _type(self, name: str) -> str:
        """The type of a column of the one table that the query reads, if no operator has made it; else nothing."""
        node: exp.Expr | None = self.query
        while node is not None and not isinstance(node, exp.Table):
            node = node.this if isinstance(node, exp.Subquery) else only_source(node)
        table = self._tables.get(id(node))
        column = table.column(name) if table is not None else None
        return column.type if column is not None and name.lower() not in self._made else ""

    def _path(self, column: exp.Column) -> list[str]:
        """The names of a column without its relation's."""
        parts = [part.name for part in column.parts]
        for names in relation_names(self.query):
            if len(parts) > len(names) and [part.lower() for part in parts[: len(names)]] == names:
                return parts[len(names) :]
        return parts

    def _rename(self, name: exp.Expr) -> None:
        alias = exp.TableAlias(this=name)
        source = only_source(self.query)
        is_whole = _is_open(self.query) and not self.query.args.get("where")
        if isinstance(source, exp.Table) and is_whole and not source.args.get("alias"):
            source.set("alias", alias)
            return
        self._wrap().args["from_"].this.set("alias", alias)
        self._made, self._older_below = [], []

    def _aggregate(self, pipe: Pipe) -> None:
        group = pipe.args.get("group")
        keys = list(group.expressions) if group is not None else []
        keys = [self._meant(key, pipe) for key in keys]
        for item in pipe.expressions:
            if not has_aggregate(item):
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
        names = self._names.of(self.query) or []
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
        first = first_arm(self.query)
        names, source = source_names(first), only_source(first)
        alias, made = None, self._made
        self._made = []
        if source is not None and len(names) == 1:
            given = source.args.get("alias")
            name = given.this if given is not None else source.this
            alias = exp.TableAlias(this=name.copy())
            self._made = [each for item in first.expressions for each in _made_by(item, name.name, made)]
            self._older_below = self._older(first, name.name, made)
        else:
            self._older_below = []
            self._lost |= names
        inner = self.query
        relation = inner if isinstance(inner, exp.Values) else exp.Subquery(this=inner, alias=alias)
        self.query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=relation))
        return self.query

    def _check_names(self, items: list[exp.Expr]) -> None:
        """What an operator holds, and stands in the query by now."""
        lost = self._lost - source_names(self.query)
        if not lost and not self._made:
            return
        source = first_source(self.query)
        own = source.alias_or_name.lower() if source is not None else ""
        for column in [each for item in items for each in find_all(item, exp.Column)]:
            name = column.parts[0].name
            if len(column.parts) < 2 or self._is_inside(column, name.lower()):
                continue
            if name.lower() in lost:
                advice = (
                    f"the relation {name} is not known behind the operators before this |>; say AS … or no relation"
                )
                raise error_at(advice, self._text, column)
            if self._made and name.lower() == own:
                self._mean_older(column, name)

    def _mean_older(self, column: exp.Column, relation: str) -> None:
        """`u.a` and `u.*` behind operators that have made columns, which the name of `u` does not cover."""
        source = first_source(self.query)
        names = self._names.of(source) if source is not None else None
        wanted = column.parts[1].name.lower()
        if column.is_star and len(column.parts) == 2:
            if names is None or len(self._older_below) != len(names) or column.parent is not self.query:
                raise error_at(f"which columns {relation}.* has here is not known; list them", self._text, column)
            own = [name for name, is_older in zip(names, self._older_below, strict=True) if is_older]
            for name in {name.lower() for name in own} & {*self._made}:
                self._part_ways(name, relation, names, column)
            kept = [column_of(name, relation) for name in own]
            items = [each for item in self.query.expressions for each in (kept if item is column else [item])]
            self.query.set("expressions", items)
        elif wanted in self._made:
            lower = [name.lower() for name in names or ()]
            if lower.count(wanted) == self._made.count(wanted):
                message = f"{wanted} is made by an operator before this |>, and no column of {relation}: say {wanted}"
                raise error_at(message, self._text, column)
            self._part_ways(wanted, relation, names, column)

    def _older(self, first: exp.Expr, relation: str, made: list[str]) -> list[bool]:
        """Which columns of a SELECT are found by the name of its one relation, in their order, if that is certain."""
        names = self._names.of(first)
        if names is None:
            return []
        found: list[bool] = []
        for item in first.expressions:
            if isinstance(item, exp.Star):
                dropped = {column.name.lower() for column in item.args.get("except_") or ()}
                source = first_source(first)
                below = (self._names.of(source) if source is not None else None) or []
                older = self._older_below or [True] * len(below)
                if len(older) != len(below):
                    return []
                found += [is_ for name, is_ in zip(below, older, strict=True) if name.lower() not in dropped]
            elif is_whole_star(item, first):
                found += [True] * len(self._names.of(first.args["from_"].this) or ())
            else:
                found.append(not _made_by(item, relation, made))
        return found if len(found) == len(names) else []

    def _part_ways(self, name: str, relation: str, names: list[str] | None, column: exp.Column) -> None:
        """The new column gets a hidden name below, so that `u.a` is the older one; a star says both again."""
        query, source = self.query, first_source(self.query)
        assert source is not None
        inner, stars = source.this, [item for item in query.expressions if isinstance(item, exp.Star)]
        made = [
            item for item in inner.expressions if isinstance(item, exp.Alias) and item.alias.lower() == name
        ] if isinstance(inner, exp.Select) else []  # fmt: skip
        order = inner.args.get("order")
        ordered = find_all(order, exp.Column) if order is not None else []
        is_plain = isinstance(inner, exp.Select) and _said(inner) <= _OPEN | {"group", "order", "limit", "offset"}
        is_plain = is_plain and not any(len(each.parts) == 1 and each.name.lower() == name for each in ordered)
        said = [each for each in _columns_outside(query, source) if len(each.parts) == 1 and each.name.lower() == name]
        excepted = [each for star in stars for each in star.args.get("except_") or ()]
        is_whole = not query.args.get("joins") and all(len(each.parts) == 2 for each in excepted)
        is_known = names is not None and len(names) == len(self._older_below)
        if names is None or not is_known or len(made) != 1 or not is_plain or said or (stars and not is_whole):
            message = f"{relation}.{name} may mean two columns here: give the new one another name"
            raise error_at(message, self._text, column)
        hidden = f"skerry_new_{name}"
        made[0].set("alias", exp.Identifier(this=hidden, quoted=True))
        dropped = {each.name.lower() for each in excepted}
        listed: list[exp.Expr] = []
        for each, is_older in zip(names, self._older_below, strict=True):
            if each.lower() == name and not is_older:
                again = exp.Identifier(this=each, quoted=True)
                listed.append(exp.Alias(this=column_of(hidden), alias=again))
            elif not is_older:
                listed.append(column_of(each))
            elif each.lower() not in dropped:
                listed.append(column_of(each, relation))
        items = [each for item in query.expressions for each in (listed if item in stars else [item])]
        query.set("expressions", items)
        self._made = [hidden if each == name else each for each in self._made]

    def _is_inside(self, column: exp.Column, name: str) -> bool:
        """Does a query around the column, within this one, have a relation of that name?"""
        around = column.parent
        while around is not None and around is not self.query:
            if isinstance(around, exp.Select) and name in source_names(around):
                return True
            around = around.parent
        return False

    def _check_plain(self, items: list[exp.Expr], pipe: Pipe) -> None:
        if any(item.is_star or isinstance(item, exp.Aliases) for item in items):
            raise error_at("EXTEND adds columns one by one, as in Spark: a star stands in |> SELECT", self._text, pipe)
        if any(map(has_aggregate, items)):
            raise error_at("an aggregate stands in |> AGGREGATE, as in Spark", self._text, pipe)


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
    star, said = query.expressions[0], _said(query)
    return isinstance(star, exp.Star) and not star.args.get("except_") and "from_" in said and said <= _OPEN | {*also}


def _said(select: exp.Expr) -> set[str]:
    return {key for key, value in select.args.items() if value not in (None, [], False)}


def _made_by(item: exp.Expr, relation: str, before: list[str]) -> list[str]:
    """The columns of an item that are not found by the name of the one relation; `before`: those of the relation.

    One without a certain name is "".
    """
    if isinstance(item, exp.Star):
        dropped = {column.name.lower() for column in item.args.get("except_") or () if len(column.parts) == 1}
        return [name for name in before if name not in dropped]
    if isinstance(item, exp.Column):
        is_whole = len(item.parts) == 1 or (len(item.parts) == 2 and item.parts[0].name.lower() == relation.lower())
        if item.is_star:
            return [] if is_whole else [""]
        is_made = not is_whole or (len(item.parts) == 1 and item.name.lower() in before)
        return [item.name.lower()] if is_made else []
    if isinstance(item, exp.Aliases):
        return [name.name.lower() for name in item.expressions]
    return [item.alias.lower()]


def _would_hide(select: exp.Expr, items: tuple[exp.Expr, ...]) -> bool:
    """Would ORDER BY mean a new item by a name that it has meant a column by?"""
    order = select.args["order"]
    if any(isinstance(key.this, exp.Literal | exp.Var) for key in order.expressions):
        return True
    if any(isinstance(item, exp.Column) and item.is_star for item in items):
        return True  # its columns have names of their own: `st.*`
    if any(is_generator(node) for item in items for node in nodes_of(item)):
        return True  # so have those of `inline(…)`; and rows that one row becomes would be put in another order
    given = {item.alias.lower() for item in items if isinstance(item, exp.Alias)}
    given |= {name.name.lower() for item in items if isinstance(item, exp.Aliases) for name in item.expressions}
    given |= {item.name.lower() for item in items if isinstance(item, exp.Column) and len(item.parts) > 1}
    return any(part.name.lower() in given for column in find_all(order, exp.Column) for part in column.parts)


def _columns_outside(query: exp.Expr, source: exp.Expr) -> list[exp.Column]:
    """The columns of a query, but for those of its source."""
    found, stack = [], [query]
    while stack:
        node = stack.pop()
        if node is source:
            continue
        if isinstance(node, exp.Column):
            found.append(node)
        stack += children_of(node)
    return found
