"""`min` and `max` of doubles for Sail, to which the order of rows decides whether NaN is the least or the greatest.

They are marked while the types of their arguments are known, and are plain calls to every rule; what is left of them
when a fragment is made gets Spark's meaning written out. Names of columns stay: an item gets its name as an alias, and
where that is not known, the SELECT as it was, asked for no row, gives the names. What is sorted by becomes hidden
columns of a query in FROM, where Sail would not know it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from skerry.model.errors import SqlError
from skerry.plan.partials import call_of, extreme
from skerry.plan.trees import named_by
from skerry.sql.functions import is_generator
from skerry.sql.naming import item_of, names_matter, spark_name
from skerry.sql.walk import bare, find_all, nodes_of

_MARK = "of_reals"
_ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
_NAMED_AS_CALLED = frozenset("abs avg count round sum".split())
_ORDERS = ("order", "sort")
_HIDDEN = "skerry_column_"


def mark(call: exp.Expr, *, is_real: bool) -> None:
    """It is of floats or doubles; if not `is_real`, it may be."""
    call.meta[_MARK] = is_real


def write_out(tree: exp.Expr) -> exp.Expr:
    """The tree with its marked calls written out; it is changed, too. SqlError where names or order would be lost."""
    selects: dict[int, tuple[exp.Select, list[exp.Anonymous]]] = {}
    for node in find_all(tree, exp.Anonymous):
        select = node.find_ancestor(exp.Select) if _MARK in node.meta else None
        if select is not None:
            selects.setdefault(id(select), (select, []))[1].append(node)
    for select, calls in reversed(selects.values()):  # the inner ones first
        written = _select(select, calls)
        if select is tree:
            tree = written
    return tree


def sorts_by_hidden(select: exp.Select) -> bool:
    """Whether it is sorted by what is computed from marked calls and stands in no item of its list."""
    orders = [select.args[key] for key in _ORDERS if select.args.get(key)]
    calls = [node for order in orders for node in find_all(order, exp.Anonymous) if _MARK in node.meta]
    listed = [bare(item.unalias()) for item in select.expressions]
    keys = [key for key in (_key_of(node, select) for node in calls) if key is not None]
    return any(bare(key.this) not in listed for key in keys)


def _select(select: exp.Select, calls: Sequence[exp.Anonymous]) -> exp.Expr:
    """What stands in its place now."""
    names = _names(calls)
    keys = None if _is_found_again(select, calls) else _sort_keys(select)
    if names is not None and keys is None:
        _give(names)
        _write_all(calls)
        return select
    around = exp.Select()
    select.replace(around)
    found = _outside(select, _sort_keys(select) if keys is None else keys, is_seen=_is_seen(around))
    if isinstance(found, exp.Union) and isinstance(around.parent, exp.SetOperation):
        found = exp.Subquery(this=found)
    around.replace(found)
    return found


def _outside(select: exp.Select, keys: list[int | exp.Expr], *, is_seen: bool) -> exp.Expr:
    """A query around the SELECT, which sorts and bounds its rows. `keys`: places in its list, or what is sorted by."""
    ends = {key: select.args.pop(key) for key in (*_ORDERS, "limit", "offset", "with_") if select.args.get(key)}
    has_places = not any(item.is_star or any(map(is_generator, nodes_of(item))) for item in select.expressions)
    names = [_name_of(item) for item in select.expressions] if has_places else [None]
    hidden = [key for key in keys if isinstance(key, exp.Expr)]
    by_union = is_seen and None in names
    if keys and (not has_places or (hidden and (by_union or select.args.get("distinct")))):
        raise SqlError(
            "ORDER BY computes something from min or max, beside columns without a name: Sail would lose one or other",
            suggestion="give the columns of the list aliases",
        )
    original = select.copy() if by_union else None
    found: exp.Expr
    width = len(select.expressions)
    columns = [exp.Identifier(this=f"{_HIDDEN}{place}", quoted=False) for place in range(width + len(hidden))]
    for value in hidden:
        name = columns[len(select.expressions)]
        select.append("expressions", exp.Alias(this=value, alias=name.copy()))
    marked = [node for node in find_all(select, exp.Anonymous) if _MARK in node.meta]
    _write_all([node for node in marked if node.find_ancestor(exp.Select) is select])
    alias = exp.TableAlias(this=exp.Identifier(this=f"{_HIDDEN}rows", quoted=False), columns=columns)
    items: list[exp.Expr] = [exp.Column(this=column.copy()) for column in columns[:width]]
    by: list[exp.Expr]
    if original is not None:
        original.set("having", None)
        rows = select
        if select.args.get("distinct") and has_places:  # Sail loses the columns of a bare DISTINCT below a union
            rows = exp.Select(expressions=items, from_=exp.From(this=exp.Subquery(this=select, alias=alias)))
        found = named_by(original, rows)
        by = [exp.Literal.number(key + 1) for key in keys if isinstance(key, int)]
    else:
        if is_seen:
            given = [exp.Identifier(this=name, quoted=True) for name in names]
            items = [exp.Alias(this=item, alias=name) for item, name in zip(items, given, strict=True)]
        found = exp.Select(expressions=items, from_=exp.From(this=exp.Subquery(this=select, alias=alias)))
        later = iter(columns[width:])
        by = [exp.Column(this=(columns[key] if isinstance(key, int) else next(later)).copy()) for key in keys]
    if original is not None and "sort" in ends:  # the grammar has none of a union
        found = exp.Select(
            expressions=[exp.Star()],
            from_=exp.From(this=exp.Subquery(this=found, alias=exp.TableAlias(this=alias.this.copy()))),
        )
    order = next((ends[key] for key in _ORDERS if key in ends), None)
    for ordered, value in zip(order.expressions if order is not None else (), by, strict=True):
        ordered.set("this", value)
    for key, value in ends.items():
        found.set(key, value)
    return found


def _sort_keys(select: exp.Select) -> list[int | exp.Expr]:
    """The places in its list of what a SELECT is sorted by, or how that is computed."""
    order = next((select.args[key] for key in _ORDERS if select.args.get(key)), None)
    listed = [bare(item.unalias()) for item in select.expressions]
    aliases = [item.alias.lower() if isinstance(item, exp.Alias) else item.name.lower() for item in select.expressions]
    keys: list[int | exp.Expr] = []
    for ordered in order.expressions if order is not None else ():
        value = bare(ordered.this)
        if isinstance(value, exp.Literal) and value.is_int:
            keys.append(int(value.name) - 1)
        elif isinstance(value, exp.Column) and len(value.parts) == 1 and value.name.lower() in aliases:
            keys.append(aliases.index(value.name.lower()))
        else:
            keys.append(listed.index(value) if value in listed else _with_items(value, select))
    return keys


def _with_items(value: exp.Expr, select: exp.Select) -> exp.Expr:
    """An alias of the list that is sorted by means its item; inside a call that is marked, names are columns."""
    items = {item.alias.lower(): item.this for item in select.expressions if isinstance(item, exp.Alias)}
    for column in find_all(value, exp.Column):
        call = column.find_ancestor(exp.Anonymous, exp.Select)
        while isinstance(call, exp.Anonymous) and _MARK not in call.meta:
            call = call.find_ancestor(exp.Anonymous, exp.Select)
        if len(column.parts) == 1 and column.name.lower() in items and isinstance(call, exp.Select):
            column.replace(exp.Paren(this=items[column.name.lower()].copy()))
    return value


def _is_seen(around: exp.Select) -> bool:
    """Whether anybody sees the names of its columns."""
    place = exp.Star()
    around.set("expressions", [place])
    return names_matter(place)


def _name_of(item: exp.Expr) -> str | None:
    if isinstance(item, exp.Alias):
        return str(item.alias)
    return item.expression.name if isinstance(item, exp.Dot) else spark_name(item, _name)


def _give(names: Sequence[tuple[exp.Expr, str]]) -> None:
    for item, name in names:
        alias = exp.Alias(alias=exp.Identifier(this=name, quoted=True))
        item.replace(alias)
        alias.set("this", item)


def _write_all(calls: Sequence[exp.Expr]) -> None:
    for node in reversed(calls):
        _write_out(node)


def _write_out(node: exp.Expr) -> None:
    aggregate: exp.Expr = node.parent if isinstance(node.parent, exp.Filter) else node
    call = call_of(aggregate)
    assert call is not None, "it was one when it was marked"
    window = aggregate.parent
    if isinstance(window, exp.Window) and window.this is aggregate:
        call, aggregate = replace(call, over=window), window
    aggregate.replace(extreme(call, call.arguments[0], is_real=node.meta[_MARK]))


def _is_found_again(select: exp.Select, calls: Sequence[exp.Expr]) -> bool:
    """Whether Sail knows what is sorted by in what is listed: of what is written out, only a whole item."""
    listed = [bare(item.unalias()) for item in select.expressions]
    keys = [key for key in (_key_of(node, select) for node in calls) if key is not None]
    return not keys or not (select.args.get("having") or any(bare(key.this) not in listed for key in keys))


def _key_of(node: exp.Expr, select: exp.Select) -> exp.Expr | None:
    """What of the SELECT's own order it stands in; orders of windows are none."""
    key = None
    while node.parent is not None and node.parent is not select:
        key = node if isinstance(node, exp.Ordered) else key
        node = node.parent
    return key if node.arg_key in _ORDERS else None


def _names(calls: Sequence[exp.Expr]) -> list[tuple[exp.Expr, str]] | None:
    """Items of the list without an alias are called after what computes them, so they are given that name: None if it
    is not known of each."""
    items = {id(item): item for item in map(item_of, calls) if item is not None and names_matter(item)}
    names = [(item, spark_name(item, _name)) for item in items.values()]
    known = [(item, name) for item, name in names if name is not None]
    return known if len(known) == len(names) else None


def _name(node: exp.Expr) -> str | None:
    if _MARK in node.meta:
        call = call_of(node)
        inner = spark_name(call.arguments[0], _name) if call is not None else None
        return f"{call.name}({'DISTINCT ' if call.is_distinct else ''}{inner})" if call is not None and inner else None
    if type(node) in _ARITHMETIC and _is_real(node):
        left, right = spark_name(node.this, _name), spark_name(node.args["expression"], _name)
        return f"({left} {_ARITHMETIC[type(node)]} {right})" if left and right else None
    if isinstance(node, exp.Anonymous) and str(node.this).lower() in _NAMED_AS_CALLED:
        parts = ["1" if isinstance(each, exp.Star) else spark_name(each, _name) for each in node.expressions]
        parts += ["0"] if str(node.this).lower() == "round" and len(parts) == 1 else []  # Spark says its default
        return f"{str(node.this).lower()}({', '.join(map(str, parts))})" if parts and None not in parts else None
    return None


def _is_real(node: exp.Expr) -> bool:
    """Of doubles: of dates such an operator has another name."""
    if type(node) in _ARITHMETIC:
        return _is_real(node.this) or _is_real(node.args["expression"])
    return bool(bare(node).meta.get(_MARK))
