"""What Sail answers wrongly, and may not answer in silence: said otherwise, or refused (docs/sail.md has a list)."""

from __future__ import annotations

import dataclasses

from sqlglot import exp

from skerry.model.errors import SqlError
from skerry.plan.extremes import mark
from skerry.plan.having_names import has_hidden_names, say_what_is_meant
from skerry.plan.mentions import read_scopes
from skerry.plan.nan_order import give_nan_one_sign, sorts_by_computed
from skerry.plan.partials import call_of
from skerry.plan.reals import Reals
from skerry.plan.rules.outputs import Outputs
from skerry.sql.functions import call_name, has_aggregate, is_aggregate, is_generator
from skerry.sql.statement import Query
from skerry.sql.walk import bare, find_all, nodes_of

_EXTREMES = frozenset(("min", "max"))
_MADE = frozenset(("struct", "named_struct", "array"))
_ROWS_MAX = 2**63 - 1  # Spark's and Sail's largest bound


def for_sail(query: Query, is_split: bool) -> Query:
    """The query in words that Sail understands; SqlError where there are none. `is_split`: over several sites."""
    query = _without_nulls(_with_conditions(_with_places(_with_names_meant(query))))
    if is_split:
        query = _with_one_nan(query)
        _look_at_extremes(query)
        if any(call_name(each) == "typeof" and any(map(is_aggregate, nodes_of(each))) for each in _calls_of(query)):
            raise SqlError(
                "typeof of an aggregate over several sites: Sail gives a row for each that it would aggregate",
                suggestion="ask for the type of an aggregate that a subquery makes",
            )
    tests_counts = any(_is_null_test(each) for each in find_all(query.tree, exp.Is))
    selects = find_all(query.tree, exp.Select)
    if not tests_counts and not any(_is_unpivoted(each) or _ordered_below(each) for each in selects):
        return query
    tree = query.tree.copy()
    for below in [_ordered_below(each) for each in find_all(tree, exp.Select)]:
        if below is not None:
            # Sail drops the order of rows that a generator makes more of, unless there is a bound.
            below.set("limit", exp.Limit(expression=exp.Literal.number(_ROWS_MAX)))
    for select in [each for each in find_all(tree, exp.Select) if _is_unpivoted(each)]:
        # Sail's grammar has no alias before UNPIVOT, and every table has one by now.
        table = select.args["from_"].this
        inside = exp.Select(expressions=[exp.Star()], from_=exp.From(this=table.copy()))
        table.replace(exp.Subquery(this=inside))
    for test in [each for each in find_all(tree, exp.Is) if _is_null_test(each)]:
        # A count is never NULL, but Sail says so of one that a correlated subquery makes of no rows.
        if call_name(bare(test.this)) != "count":
            raise SqlError(
                "Sail takes a count of no rows for NULL where a subquery tests what is computed from it",
                suggestion="test outside the subquery",
            )
        is_not = isinstance(test.parent, exp.Not)
        kind: type[exp.Binary] = exp.GTE if is_not else exp.LT
        never = kind(this=test.this.copy(), expression=exp.Literal.number(0))
        (test.parent if is_not and test.parent is not None else test).replace(never)
    return dataclasses.replace(query, tree=tree)


def _with_names_meant(query: Query) -> Query:
    if not any(map(has_hidden_names, find_all(query.tree, exp.Select))):
        return query
    tree = query.tree.copy()
    say_what_is_meant(read_scopes(tree, {scan.node_name: scan for scan in query.tables}))
    return dataclasses.replace(query, tree=tree)


def _with_places(query: Query) -> Query:
    """Behind HAVING, `ORDER BY sum(b)` of a listed aggregate says its place: Sail finds no aggregate for SORT BY."""
    tree = query.tree.copy()
    is_changed = False
    for select in find_all(tree, exp.Select):
        order = select.args.get("order")
        if order is None or select.args.get("having") is None or any(item.is_star for item in select.expressions):
            continue
        items = [bare(item.unalias()) for item in select.expressions]
        aliases = {item.alias.lower() for item in select.expressions if isinstance(item, exp.Alias)}
        for ordered in order.expressions:
            key = bare(ordered.this)
            is_hidden = any(column.name.lower() in aliases for column in find_all(key, exp.Column))
            if has_aggregate(key) and key in items and not is_hidden:
                ordered.set("this", exp.Literal.number(items.index(key) + 1))
                is_changed = True
    return dataclasses.replace(query, tree=tree) if is_changed else query


def _with_conditions(query: Query) -> Query:
    """A semi or anti join without a condition has one: Sail takes it for a cross join."""
    if not any(map(_lacks_condition, find_all(query.tree, exp.Join))):
        return query
    tree = query.tree.copy()
    for join in filter(_lacks_condition, find_all(tree, exp.Join)):
        join.set("on", exp.true())
    return dataclasses.replace(query, tree=tree)


def _lacks_condition(join: exp.Join) -> bool:
    is_test = str(join.args.get("kind") or "").upper() in ("SEMI", "ANTI")
    return is_test and not any(join.args.get(key) for key in ("on", "using", "method"))


def _without_nulls(query: Query) -> Query:
    """Sail's UNPIVOT keeps rows without a value, and takes no notice of aliases and of further columns."""
    turned = [each for each in find_all(query.tree, exp.Pivot) if each.args.get("unpivot")]
    if not turned:
        return query
    for pivot in turned:
        if any(isinstance(each, exp.Tuple) for each in pivot.expressions):
            raise SqlError(
                "UNPIVOT into several columns of values is not what Sail makes",
                suggestion="write a UNION ALL of one SELECT for each set of columns",
            )
        if any(isinstance(each, exp.Alias) for each in pivot.args["fields"][0].expressions):
            raise SqlError(
                "Sail takes no notice of an alias in the list of UNPIVOT",
                suggestion="rename the columns in a subquery, or change the names with CASE",
            )
    tree = query.tree.copy()
    for select in find_all(tree, exp.Select):
        joins = select.args.get("joins") or []
        pivots = [each for each in joins if isinstance(each, exp.Pivot) and each.args.get("unpivot")]
        if all(each.args.get("include_nulls") for each in pivots):
            continue
        if len(joins) > 1 or select.args.get("laterals"):
            raise SqlError("Sail's UNPIVOT keeps rows without a value", suggestion="put UNPIVOT into a subquery alone")
        (value,) = pivots[0].expressions
        select.where(exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null())), copy=False)
    return dataclasses.replace(query, tree=tree)


def _with_one_nan(query: Query) -> Query:
    if not sorts_by_computed(query.tree):
        return query
    tree = query.tree.copy()
    scopes = read_scopes(tree, {scan.node_name: scan for scan in query.tables})
    outputs, reals = Outputs(scopes), Reals(scopes)
    for scope in scopes.all:
        give_nan_one_sign(scope, outputs, reals)
    return dataclasses.replace(query, tree=tree)


def _ordered_below(select: exp.Select) -> exp.Select | None:
    """The query in FROM whose ORDER BY the rows of a generator keep: `SELECT explode(a) FROM (… ORDER BY b)`."""
    if not select.args.get("laterals") and not any(is_generator(each) for each in _own_nodes(select)):
        return None
    while True:
        from_ = select.args.get("from_")
        below = from_.this.this if from_ is not None and isinstance(from_.this, exp.Subquery) else None
        is_alone = not any(select.args.get(key) for key in ("joins", "group", "distinct", "order"))
        if not isinstance(below, exp.Select) or not is_alone or below.args.get("limit"):
            return None
        if below.args.get("order"):
            return below
        select = below


def _own_nodes(select: exp.Select) -> list[exp.Expr]:
    return [node for item in select.expressions for node in nodes_of(item) if node.find_ancestor(exp.Query) is select]


def _is_null_test(node: exp.Is) -> bool:
    select = node.find_ancestor(exp.Select)
    is_inside = select is not None and select.parent_select is not None and select.args.get("group") is None
    return is_inside and isinstance(node.expression, exp.Null) and _has_count(node.this)


def _is_unpivoted(select: exp.Select) -> bool:
    """Is it one table, turned, that nothing calls by its name?"""
    from_, joins = select.args.get("from_"), select.args.get("joins") or []
    is_turned = len(joins) == 1 and isinstance(joins[0], exp.Pivot) and bool(joins[0].args.get("unpivot"))
    if from_ is None or not is_turned or not isinstance(from_.this, exp.Table):
        return False
    return not any(len(column.parts) > 1 for column in find_all(select, exp.Column))


def _has_count(node: exp.Expr) -> bool:
    return any(call_name(each) == "count" for each in find_all(node, exp.Anonymous))


def _calls_of(query: Query) -> list[exp.Anonymous]:
    return find_all(query.tree, exp.Anonymous)


def _look_at_extremes(query: Query) -> None:
    """Refuses those of structs and arrays where that is certain, and marks those of what is or may be doubles."""
    calls = [node for node in _calls_of(query) if call_name(node) in _EXTREMES and node.expressions]
    if not calls:
        return
    scopes = read_scopes(query.tree, {scan.node_name: scan for scan in query.tables})
    outputs, reals = Outputs(scopes), Reals(scopes)
    around = {id(scope.select): scope for scope in scopes.all}
    for node in calls:
        call, scope = call_of(node), around.get(id(node.find_ancestor(exp.Select)))
        if call is None or len(call.arguments) != 1 or scope is None:
            continue  # of several arguments the engine says what is wrong
        argument = call.arguments[0]
        type_ = outputs.type(argument, scope) or ""
        is_made = isinstance(argument, exp.Tuple) or call_name(argument) in _MADE
        if is_made or type_.startswith(("struct<", "array<")):
            raise SqlError(
                f"{call.name} of structs or arrays over several sites: Sail compares their NULLs by the order of rows",
                suggestion=f"take the {call.name} of a field, or use Apache Spark at these sites",
            )
        if (is_real := reals.has(argument, scope)) or not reals.knows(argument, scope):
            mark(node, is_real=is_real)
