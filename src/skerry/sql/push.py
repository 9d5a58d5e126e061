"""Filters that may be applied where a table lives. They are copies: the tree keeps its own."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from skerry.sql.functions import admitted, call_name
from skerry.sql.nodes import ColonCast, SpokenCall
from skerry.sql.scope import Scope, Scopes, Source
from skerry.sql.walk import bare, contains, find_all, nodes_of

# Arithmetic, casts and calls: what a row may have an error in.
_MAY_FAIL = (
    exp.Add | exp.Sub | exp.Mul | exp.Div | exp.IntDiv | exp.Mod | exp.Cast | ColonCast | exp.Anonymous | SpokenCall
)


def pushed_filters(scopes: Scopes, placed: dict[str, Source]) -> dict[str, tuple[exp.Expr, ...]]:
    """Per scan, conjuncts over its own columns (unqualified), in the order they were written."""
    names = {id(source): name for name, source in placed.items()}
    found: dict[str, list[exp.Expr]] = {name: [] for name in placed}
    for scope in scopes.all:
        if not scope.plain:
            continue
        for conjunct, allowed in conjuncts(scope):
            source = owner(conjunct, scope)
            if source is not None and source in allowed:
                found[names[id(source)]].append(unqualified(conjunct))
    return {name: tuple(filters) for name, filters in found.items()}


def conjuncts(scope: Scope) -> list[tuple[exp.Expr, list[Source]]]:
    """Each conjunct of WHERE and ON with the sources whose rows it may drop before the joins.

    In the order in which Spark applies those that it brings to one table: `ON 10 / a > 2 WHERE a <> 0` does not divide
    by zero, as WHERE goes down through a join before its ON does. Where three relations or more end in inner joins
    it makes one list first, of their ON and then WHERE (`listed`): there `ON a <> 0 … WHERE 10 / a > 2` does not. Nor
    does `WHERE a <> (SELECT 0) AND 10 / a > 2`: what may fail does not go to a table ahead of what may guard it.
    """
    if scope.conjuncts is None:
        scope.conjuncts = _conjuncts(scope)
    return scope.conjuncts


def _conjuncts(scope: Scope) -> list[tuple[exp.Expr, list[Source]]]:
    joins = scope.select.args.get("joins") or []
    by_node = {id(source.node): source for source in scope.sources}
    from_ = scope.select.args.get("from_")
    if from_ is None:
        return []
    safe = [by_node[id(from_.this)]] if id(from_.this) in by_node else []
    found: list[tuple[exp.Expr, list[Source]]] = []
    before = 0  # those before the inner joins that come last
    inner = 0
    for join in joins:
        right = [by_node[id(join.this)]] if id(join.this) in by_node else []
        side, kind = join.args.get("side"), join.args.get("kind")
        on = join.args.get("on")
        allowed = _before_join(safe, right, side, kind)
        is_plain = not (side or kind in ("SEMI", "ANTI") or join.args.get("method") or join.args.get("using"))
        inner = inner + 1 if is_plain else 0
        found += [(conjunct, allowed) for conjunct in (split(on) if on is not None else [])]
        before = len(found) if not inner else before
        safe = _after_join(safe, right, side, kind)
    where = scope.select.args.get("where")
    asked = [(conjunct, safe) for conjunct in (split(where.this) if where is not None else [])]
    if inner > 1:
        sources = {id(conjunct): allowed for conjunct, allowed in [*found[before:], *asked]}
        ordered = listed([conjunct for conjunct, _ in [*found[before:], *asked]])
        found = [*((conjunct, sources[id(conjunct)]) for conjunct in ordered), *found[:before]]
    else:
        found = [*asked, *found]
    has_outer = where is not None and any(join.args.get("side") not in (None, "") for join in joins)
    return _guarded(found, scope) if has_outer or contains(scope.select, exp.Subquery) else found


def listed(conditions: Sequence[exp.Expr]) -> list[exp.Expr]:
    """The conditions of a list of inner joins, which come in the order of their ON, then WHERE, as Spark applies them:
    those that give a value a name for a while stay above the list, and so go down before the others."""
    return sorted(conditions, key=lambda each: not any(_names_value(node) for node in nodes_of(each)))


def _names_value(node: exp.Expr) -> bool:
    """`a + 1 BETWEEN 2 AND 3` reads a + 1 twice; a plain column needs no name for that."""
    if isinstance(node, exp.Between):
        return not isinstance(node.this, exp.Column)
    is_named = call_name(node) in ("between", "nullif")
    return is_named and bool(node.expressions) and not isinstance(node.expressions[0], exp.Column)


def _guarded(found: list[tuple[exp.Expr, list[Source]]], scope: Scope) -> list[tuple[exp.Expr, list[Source]]]:
    """Spark brings more conditions to their table than go there here, each in its turn: those with the value of a
    subquery, and those of WHERE that make an inner join of an outer one."""
    guarded: list[Source] = []
    kept: list[tuple[exp.Expr, list[Source]]] = []
    for conjunct, allowed in found:
        if guarded and any(isinstance(node, _MAY_FAIL) for node in nodes_of(conjunct)):
            allowed = [source for source in allowed if source not in guarded]
        kept.append((conjunct, allowed))
        guarded += _guards(conjunct, allowed, scope)
    return kept


def _guards(conjunct: exp.Expr, allowed: list[Source], scope: Scope) -> list[Source]:
    """The one source that the conjunct is of, if it stays behind."""
    nodes = list(conjunct.walk(prune=lambda node: isinstance(node, exp.Query)))
    if any(isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query")) for node in nodes):
        return []  # a join of its own, above all others
    sources = [resolve(node, scope) for node in nodes if isinstance(node, exp.Column)]
    found = [source for source in sources if source is not None]
    is_of_one = bool(found) and all(source is found[0] for source in sources)
    is_left = found and (found[0] not in allowed or any(isinstance(node, exp.Subquery) for node in nodes))
    return found[:1] if is_of_one and is_left else []


def _before_join(left: list[Source], right: list[Source], side: str | None, kind: str | None) -> list[Source]:
    """Whose rows an ON conjunct may drop: a row that an outer join would keep must stay."""
    if side == "FULL":
        return []
    if kind == "ANTI" or (side == "LEFT" and kind != "SEMI"):
        return right
    return left if side == "RIGHT" else left + right


def _after_join(left: list[Source], right: list[Source], side: str | None, kind: str | None) -> list[Source]:
    """Whose columns are still its rows' own after the join, and not NULLs that the join supplied."""
    if side == "FULL":
        return []
    if kind in ("SEMI", "ANTI") or side == "LEFT":
        return left
    return right if side == "RIGHT" else left + right


def split(condition: exp.Expr) -> list[exp.Expr]:
    """The conjuncts of a condition, brackets around ANDs opened."""
    found: list[exp.Expr] = []
    stack = [condition]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.And):
            stack += [node.args["expression"], node.args["this"]]
        elif isinstance(node, exp.Paren) and isinstance(node.this, exp.And):
            stack.append(node.this)
        else:
            found.append(node)
    return found


def owner(conjunct: exp.Expr, scope: Scope) -> Source | None:
    """The one base table that all columns of the conjunct surely are of; None when anything is in doubt."""
    found_owner: Source | None = None
    for node in nodes_of(conjunct):
        if isinstance(node, exp.Query | exp.Window | exp.Lambda | exp.Star | exp.Filter | exp.WithinGroup | exp.Dot):
            return None
        name = call_name(node)
        if name is not None:
            function = admitted().functions.get(name)
            if function is None or function.kind != "scalar" or not function.deterministic:
                return None
        if isinstance(node, exp.Column):
            found = resolve(node, scope)
            if found is None or (found_owner is not None and found is not found_owner):
                return None
            found_owner = found
    return found_owner


def resolve(column: exp.Column, scope: Scope) -> Source | None:
    """Spark looks for `alias.column` first, so a qualifier decides; a bare name must be of one source alone."""
    parts = [part.name.lower() for part in column.parts]
    if len(parts) == 1:
        if any(source.columns is None for source in scope.sources):
            return None
        holders = [source for source in scope.sources if parts[0] in (source.columns or ())]
    elif len(parts) == 2:
        holders = [source for source in scope.sources if source.alias == parts[0]]
    else:
        return None
    if len(holders) != 1 or holders[0].table is None or holders[0].renamed:
        return None
    columns = holders[0].columns or ()
    return holders[0] if columns.count(parts[-1]) == 1 else None


def unqualified(conjunct: exp.Expr) -> exp.Expr:
    """A copy without qualifiers and outer brackets: Spark reads `FROM t WHERE (a)` as t with the alias WHERE(a)."""
    conjunct = bare(conjunct)
    copy = conjunct.copy()
    for column in find_all(copy, exp.Column):
        for key in ("table", "db", "catalog"):
            column.set(key, None)
    return copy
