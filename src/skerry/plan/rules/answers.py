"""Subqueries that ask nothing of the query around them are answered once, where their tables are.

`x > (SELECT avg(y) FROM t)` is `x > (SELECT answer_1.answer_1_1 FROM (SELECT avg(y) FROM t) AS answer_1(answer_1_1))`:
the same rows, so no row is still NULL and two rows are still Spark's error, but now a query in FROM, which may be
answered at its site as any block is. IN and EXISTS ask for a set: there each row travels once, and for EXISTS one row
stands for all. Spark evaluates such a subquery once and whole too, so no error comes or goes by it.

Only the place of the rows changes and never a name: a subquery in a column that has no alias stays as it is, because
Spark names the column after it, and so does one beside a GROUP BY or ORDER BY that might mean the same expression.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from skerry.model.table import TablePart
from skerry.plan.rules.apart import is_spread
from skerry.plan.rules.blocks import ANSWER, home_of, is_stable
from skerry.plan.rules.outputs import Outputs
from skerry.plan.rules.subqueries import is_closed
from skerry.sql.functions import is_aggregate, is_generator
from skerry.sql.scope import Scope, Scopes
from skerry.sql.walk import children_of, contains, find_all, nodes_of

ONCE = "the subquery is answered once"
# What a SELECT may have whose rows are asked for.
_CLAUSES = frozenset("expressions from_ joins where group having distinct said_all".split())


@dataclass(frozen=True, eq=False)
class Asked:
    """A subquery in an expression of `scope`, under its parent's `key`. kind: scalar, in or exists."""

    query: exp.Query
    kind: str
    parent: exp.Expr
    key: str
    scope: Scope

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the scans that stand in it: no other subquery beside it has them."""
        return tuple(table.name for table in find_all(self.query, exp.Table))


def asked(scopes: Scopes) -> Iterator[Asked]:
    """Subqueries whose text may change without any name of the result changing, outermost first."""
    for scope in scopes.all:
        for root in _roots(scope.select):
            yield from _below(root, scope)


def _roots(select: exp.Select) -> Iterator[exp.Expr]:
    if _is_answered(select):
        return
    for key in ("where", "having"):
        if select.args.get(key) is not None:
            yield select.args[key]
    beside = [select.args[key] for key in ("group", "order", "sort", "cluster", "distribute") if select.args.get(key)]
    if not any(contains(clause, exp.Query) for clause in beside):
        yield from (item for item in select.expressions if isinstance(item, exp.Alias))


def _is_answered(select: exp.Select) -> bool:
    """Is it part of a query that is answered at its site as a whole already?"""
    node: exp.Expr | None = select
    while node is not None and not (isinstance(node, exp.Subquery) and ANSWER in node.meta):
        node = node.parent
    return node is not None


def _below(root: exp.Expr, scope: Scope) -> Iterator[Asked]:
    stack = [root]
    while stack:
        node = stack.pop()
        match node:
            case exp.In() if isinstance(node.args.get("query"), exp.Select | exp.SetOperation):
                yield Asked(node.args["query"], "in", node, "query", scope)
            case exp.Exists() if isinstance(node.this, exp.Select | exp.SetOperation):
                yield Asked(node.this, "exists", node, "this", scope)
            case exp.Subquery() if isinstance(node.this, exp.Select | exp.SetOperation):
                if not node.args.get("alias"):
                    yield Asked(node.this, "scalar", node, "this", scope)
        if not isinstance(node, exp.Query):
            stack.extend(reversed(children_of(node)))


def is_answerable(
    each: Asked, scopes: Scopes, holders: Mapping[str, Sequence[TablePart]], outputs: Outputs, may_spread: bool
) -> bool:
    """Can the subquery be put in FROM: its columns known, nothing asked of the query around it?

    At one site, unless it may be spread over several.
    """
    query = each.query
    if home_of(query, holders) is None and not (may_spread and is_spread(query, holders) and is_stable(query)):
        return False
    if contains(query, exp.With):
        return False
    if isinstance(query, exp.Select):
        if not has_only(query, _CLAUSES):
            return False
        if each.kind == "exists" and not is_plain(query):
            return False
    elif any(query.args.get(key) for key in ("order", "sort", "cluster", "distribute", "limit", "offset")):
        return False
    if not is_closed(query, each.scope, scopes):
        return False
    is_listed = each.kind != "exists" or not isinstance(query, exp.Select)
    return not is_listed or outputs.types(query) is not None


def has_only(select: exp.Select, clauses: frozenset[str]) -> bool:
    return all(key in clauses for key, value in select.args.items() if value not in (None, [], False))


def is_plain(select: exp.Select) -> bool:
    """Can its list be left out? Groups may mean what stands there, and aggregates and generators make rows."""
    if any(select.args.get(key) is not None for key in ("group", "having")):
        return False
    return not any(is_aggregate(node) or is_generator(node) for item in select.expressions for node in nodes_of(item))


def put_answer(each: Asked, name: str) -> None:
    """Puts the subquery in FROM, under a name that nothing else has and that begins no other."""
    body = each.query
    if isinstance(body, exp.Select) and each.kind != "scalar":
        if each.kind == "exists":
            body.set("expressions", [exp.Literal.number(1)])
        body.set("distinct", exp.Distinct())
        body.set("said_all", None)
    leftmost = body
    while not isinstance(leftmost, exp.Select):
        leftmost = leftmost.this
    columns = [f"{name}_{number}" for number, _ in enumerate(leftmost.expressions, 1)]
    alias = exp.TableAlias(this=_word(name), columns=[_word(column) for column in columns])
    each.parent.set(each.key, exp.Select())  # so that the body has one parent
    outer = exp.Select(
        expressions=[column_of(name, column) for column in columns], from_=exp.From(this=derived(body, alias, ONCE))
    )
    each.parent.set(each.key, outer)


def derived(body: exp.Query, alias: exp.TableAlias, reason: str) -> exp.Subquery:
    node = exp.Subquery(this=body, alias=alias)
    node.meta[ANSWER] = reason
    return node


def column_of(table: str, column: str) -> exp.Column:
    return exp.Column(this=_word(column), table=_word(table))


def _word(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=False)
