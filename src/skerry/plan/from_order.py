"""The order of a FROM list whose relations Spark is given hints about.

Spark puts inner joins into an order without products, but only those without hints (its rule ReorderJoin): `FROM dates,
customer, lineorder` with a hint would be dates times customer. So the list is put into Spark's own order here: the
first relation stays, and the next one is always the first that a condition connects with those before it.

Inner joins are in no order, so only names can tell one from another: where they might, the list stays as it is.

That rule also makes one list of their conditions, ON before WHERE: `ON a <> 0 … WHERE 10 / a > 2` does not divide by
zero. With a hint WHERE goes down first, and then the last ON. So conditions that may fail become one list here too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sqlglot import exp

from skerry.model.names import TableRef
from skerry.plan.joined_tree import put_inner
from skerry.plan.rules.computed import cannot_fail, types_in
from skerry.plan.rules.joined import inner_joins, is_free
from skerry.sql.prune import stars
from skerry.sql.push import conjuncts, listed, split
from skerry.sql.scope import Scope, Scopes, Source
from skerry.sql.walk import columns_right_in, find_all, nodes_of

# Relations by their places in FROM.
Link = frozenset[int]


def scopes_by_select(tree: exp.Expr, tables: Mapping[str, TableRef]) -> dict[int, Scope]:
    """`tables`: by the names that they have in the tree."""
    scopes = Scopes({id(node): tables[node.name] for node in find_all(tree, exp.Table) if node.name in tables})
    scopes.read(tree, {}, None)
    return {id(scope.select): scope for scope in scopes.all}


def order_from(scope: Scope) -> bool:
    """Put the inner joins that FROM begins with in order; False if Spark had better do that, without hints."""
    select = scope.select
    joins: list[exp.Expr] = select.args.get("joins") or []
    if len(joins) < 2:
        return True
    if not all(isinstance(join, exp.Join) for join in joins):
        return False
    links = _links(scope)
    first = range(1, len(inner_joins(select)) + 1)
    orders = {run: _spark_order(run, links) for run in _runs(joins)}
    moved = [run for run, order in orders.items() if order != list(run)]
    changed = {*moved, *(run for run in orders if not _keeps_conditions(scope, run))}
    if not changed:
        return True
    if changed != {first} or not is_free(scope) or (moved and stars(select)):
        return False
    put_inner(select, [select.args["from_"].this, *(joins[index - 1].this for index in orders[first])])
    return True


def _keeps_conditions(scope: Scope, run: range) -> bool:
    """With hints, will Spark apply the conditions on the run's relations in the order in which it does without?"""
    joins, where = scope.select.args["joins"], scope.select.args.get("where")
    asked = split(where.this) if where is not None and run.stop > len(joins) else []
    on = [split(join.args["on"]) for join in joins[run.start - 1 : run.stop - 1] if join.args.get("on") is not None]
    without = listed([each for conjuncts_of in [*on, asked] for each in conjuncts_of])
    hinted = [each for conjuncts_of in [asked, *reversed(on)] for each in conjuncts_of]
    if len(run) < 2 or list(map(id, without)) == list(map(id, hinted)):
        return True
    types = types_in(scope)
    return all(cannot_fail(each, types) for each in without)


def _runs(joins: Sequence[exp.Expr]) -> list[range]:
    """The places of relations that inner joins in a row add, which Spark takes for a list."""
    runs: list[range] = []
    for place, join in enumerate(joins, 1):
        if _is_listed(join):
            begins = runs[-1].start if runs and runs[-1].stop == place else place
            runs[len(runs) - (begins != place) :] = [range(begins, place + 1)]
    return runs


def _is_listed(join: exp.Expr) -> bool:
    """An inner join that has its place for no other reason than that it was written there."""
    args = join.args
    is_one_sided = args.get("side") or args.get("kind") in ("SEMI", "ANTI")
    return not (is_one_sided or args.get("using") or args.get("method") or isinstance(join.this, exp.Lateral))


def _spark_order(run: range, links: Collection[Link]) -> list[int]:
    """What stands before the run stays there. What nothing connects comes as it was written."""
    before, rest, order = set(range(run.start)), list(run), []
    while rest:
        linked = (each for each in rest if any(each in link and link - {each} <= before for link in links))
        following = next(linked, rest[0])
        rest.remove(following)
        before.add(following)
        order.append(following)
    return order


def _links(scope: Scope) -> set[Link]:
    """The relations of each condition on several."""
    select = scope.select
    relations = [each.this for each in (select.args["from_"], *select.args["joins"])]
    places = {id(node): place for place, relation in enumerate(relations) for node in nodes_of(relation)}
    found: set[Link] = set()
    for conjunct, _ in conjuncts(scope):
        sources = (_source(column, scope) for column in columns_right_in(select, conjunct))
        found.add(frozenset(places[id(each.node)] for each in sources if each is not None and id(each.node) in places))
    return {link for link in found if len(link) > 1}


def _source(column: exp.Column, scope: Scope) -> Source | None:
    """The relation that a column is of, as far as its name tells."""
    first = column.parts[0].name.lower()
    found = [source for source in scope.sources if source.alias == first] if len(column.parts) > 1 else []
    found = found or [source for source in scope.sources if first in (source.columns or ())]
    return found[0] if len(found) == 1 else None
