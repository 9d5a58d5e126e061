"""Whether an expression is of floats or doubles, also where its exact type is not certain (through WITH, stars, …).

An answer of no may only mean that nothing is known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from sqlglot import exp

from skerry.plan.partials import REAL
from skerry.sql.functions import call_name
from skerry.sql.nodes import ColonCast, UnaryPlus
from skerry.sql.scope import Scope, Scopes, Source
from skerry.sql.types import infer, spelt
from skerry.sql.walk import bare

# Real if one of their values is.
_LIKE_ANY = frozenset(
    "coalesce nvl ifnull nullif nanvl greatest least abs negative positive round bround pmod mod min max sum avg mean"
    " first first_value last last_value any_value lag lead nth_value median".split()
)
_LIKE_FIRST = frozenset(("max_by", "min_by"))
_LIKE_LATER = frozenset(("if", "iff", "nvl2"))  # the first is only looked at
_ALWAYS = frozenset(
    "double float power pow log log2 log10 log1p ln exp expm1 sqrt cbrt sin cos tan asin acos atan atan2 sinh cosh tanh"
    " degrees radians hypot rand random randn percent_rank cume_dist stddev stddev_pop stddev_samp variance var_pop"
    " var_samp corr covar_pop covar_samp skewness kurtosis pi e".split()
)
_ARITHMETIC = exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod
_INSIDE = exp.Alias | exp.Neg | UnaryPlus | exp.Window | exp.Filter | exp.IgnoreNulls | exp.RespectNulls

_REAL_NUMBER = re.compile(r"[\d.]+(e[+-]?\d+[df]?|[df])", re.IGNORECASE)

# A column of a query: its name in lower case, and what tells its type, if it is known.
_Column = tuple[str, Callable[[], str | None]]


class Reals:
    """Asks the scopes of one tree, each expression once."""

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = {id(scope.select): scope for scope in scopes.all}
        self._columns_of: dict[int, list[_Column]] = {}
        self._types: dict[int, str | None] = {}

    def has(self, node: exp.Expr, scope: Scope) -> bool:
        """Whether the expression of a SELECT is surely real."""
        try:
            return self._is_real(node, scope) or infer(node, lambda column: self._type(column, scope)) in REAL
        except RecursionError:
            return False

    def knows(self, node: exp.Expr, scope: Scope) -> bool:
        """Whether its type is certain."""
        try:
            return infer(node, lambda column: self._type(column, scope)) is not None
        except RecursionError:
            return False

    def _is_real(self, node: exp.Expr, scope: Scope) -> bool:
        node = bare(node)
        if isinstance(node, exp.Column):
            return self._type(node, scope) in REAL
        if isinstance(node, exp.Literal):
            return not node.is_string and _REAL_NUMBER.fullmatch(str(node.this)) is not None
        if isinstance(node, exp.Distinct):
            return self._is_real(node.expressions[0], scope)
        if isinstance(node, _INSIDE):
            return self._is_real(node.this, scope)
        if isinstance(node, exp.Cast | exp.TryCast | ColonCast):
            return spelt(node.args["to"]) in REAL
        if isinstance(node, exp.Case):
            branches = [branch.args["true"] for branch in node.args["ifs"]]
            return self._any([*branches, *filter(None, [node.args.get("default")])], scope)
        if isinstance(node, exp.Subquery):
            columns = self._columns(node.this)
            return bool(columns) and columns[0][1]() in REAL
        if isinstance(node, _ARITHMETIC):
            return self._any([node.this, node.args["expression"]], scope)
        name = call_name(node) or ""
        if name in _LIKE_ANY:
            return self._any(node.expressions, scope)
        if name in _LIKE_LATER:
            return self._any(node.expressions[1:], scope)
        return name in _ALWAYS or (name in _LIKE_FIRST and self._any(node.expressions[:1], scope))

    def _any(self, nodes: Sequence[exp.Expr], scope: Scope) -> bool:
        """Of values that become one: a text among them might make it one."""
        is_text = any(isinstance(node, exp.Literal) and node.is_string for node in map(bare, nodes))
        return not is_text and any(self._is_real(node, scope) for node in nodes)

    def _type(self, column: exp.Column, scope: Scope) -> str | None:
        if id(column) not in self._types:
            self._types[id(column)] = self._found(column, scope)
        return self._types[id(column)]

    def _found(self, column: exp.Column, scope: Scope) -> str | None:
        """A statement that is right has one column of a name: who surely has it is meant, whatever others may have."""
        parts = [part.name.lower() for part in column.parts]
        if len(parts) > 2 or isinstance(column.this, exp.Star):
            return None
        for around in scope.chain():
            sources = [source for source in around.sources if len(parts) == 1 or source.alias == parts[0]]
            found = [told for source in sources for name, told in self._source(source) if name == parts[-1]]
            if found:
                return found[0]() if len(found) == 1 else None
        return None

    def _source(self, source: Source) -> list[_Column]:
        node, columns = source.node, list[_Column]()
        if source.table is not None:
            columns = [(each.name.lower(), partial(str, each.type)) for each in source.table.columns]
        elif isinstance(node, exp.Table) and (cte := _cte(node)) is not None:
            columns = _renamed(self._columns(cte.this), cte)
        elif isinstance(node, exp.Subquery | exp.Values):
            columns = self._columns(node)
        return _renamed(columns, node)

    def _columns(self, query: exp.Expr) -> list[_Column]:
        if isinstance(query, exp.Subquery):
            return self._columns(query.this)
        if id(query) not in self._columns_of:
            self._columns_of[id(query)] = self._read(query)
        return self._columns_of[id(query)]

    def _read(self, query: exp.Expr) -> list[_Column]:
        if isinstance(query, exp.Values):
            rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in query.expressions]
            nowhere = Scope(exp.Select(), None)
            return [
                (f"col{n}", partial(self._one_of, each, nowhere)) for n, each in enumerate(zip(*rows, strict=False), 1)
            ]
        if isinstance(query, exp.SetOperation):
            left, right = self._columns(query.this), self._columns(query.args["expression"])
            if len(left) != len(right) or query.args.get("by_name"):
                return left
            return [(one[0], partial(_either, one[1], two[1])) for one, two in zip(left, right, strict=True)]
        scope = self._scopes.get(id(query))
        found: list[_Column] = []
        for item in query.expressions if scope is not None else ():
            assert scope is not None
            if item.is_star:
                of = item.args.get("table") if isinstance(item, exp.Column) else None
                sources = [each for each in scope.sources if of is None or each.alias == of.name.lower()]
                found += [column for source in sources for column in self._source(source)]
            else:
                name = item.alias if isinstance(item, exp.Alias) else item.name if isinstance(item, exp.Column) else ""
                found.append((str(name).lower(), partial(self._one_of, [item], scope)))
        return found

    def _one_of(self, nodes: Sequence[exp.Expr], scope: Scope) -> str | None:
        key = id(nodes[0])
        if key not in self._types:
            is_real = self._any(nodes, scope) or (len(nodes) == 1 and self.has(nodes[0], scope))
            only = infer(nodes[0], lambda column: self._type(column, scope)) if len(nodes) == 1 else None
            self._types[key] = "double" if is_real else only
        return self._types[key]


def is_always_double(node: exp.Expr) -> bool:
    """Whether it calls what gives doubles, whatever it is given."""
    name = call_name(node)
    return name in _ALWAYS and name != "float"


def _either(one: Callable[[], str | None], other: Callable[[], str | None]) -> str | None:
    types = one(), other()
    if "double" in types or "float" in types:
        return "double"
    return types[0] if types[0] == types[1] else None


def _cte(table: exp.Table) -> exp.CTE | None:
    """The query of WITH that the name means: the next one around."""
    node: exp.Expr | None = table.parent
    while node is not None and not table.args.get("db"):
        for cte in node.args["with_"].expressions if node.args.get("with_") else ():
            if cte.alias.lower() == table.name.lower():
                found: exp.CTE = cte
                return None if node.args["with_"].args.get("recursive") else found
        node = node.parent
    return None


def _renamed(columns: list[_Column], node: exp.Expr) -> list[_Column]:
    alias = node.args.get("alias")
    names = [each.name.lower() for each in alias.args.get("columns") or ()] if alias is not None else []
    return [(name, told) for name, (_, told) in zip(names, columns, strict=False)] if names else columns
