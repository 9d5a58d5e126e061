"""Rule `topn`: of a bounded block, each part of its table sends no more rows than the block can give.

The first n rows of a union are among the first n of each of its operands, in any order that a sort leaves open. So a
block with LIMIT n OFFSET m sorts at every part and sends n + m rows, and is sorted and bounded again above them. The
block may join the table with others, if each of its rows has exactly one row of the table (`grouping.rows_of`); then
they go to every part, and what its list and its order are computed from stays there. A block over the table alone
stays as it was written; the table below it has fewer rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from skerry.model.fragment import SortKey
from skerry.model.table import Column
from skerry.plan.grouping import Block, is_resolved
from skerry.plan.rules.aggregates import SiteMerge, as_said, by_place, free_prefix, is_operand
from skerry.sql.alike import Once
from skerry.sql.functions import is_deterministic
from skerry.sql.shape import literal_bound, named_after
from skerry.sql.statement import Scan

# Spark's LIMIT is a 32-bit number, and so is the sum of LIMIT and OFFSET.
LIMIT_MAX = 2**31 - 1


def rows_wanted(query: exp.Expr) -> int | None:
    """LIMIT and OFFSET together, when both are plain numbers that Spark accepts."""
    (limit, limit_known), (offset, offset_known) = (literal_bound(query.args.get(key)) for key in ("limit", "offset"))
    if limit is None or not limit_known or not offset_known or limit + (offset or 0) > LIMIT_MAX:
        return None
    return limit + (offset or 0)


@dataclass(frozen=True)
class _Item:
    """A column of the block: its value, and its name, or None for one that Spark would make."""

    value: exp.Expr
    name: exp.Identifier | None


@dataclass(frozen=True)
class _Key:
    """A sort key: `this` of `ordered` is `value`."""

    value: exp.Expr
    ordered: exp.Ordered


def top_rows(block: Block, scans: Mapping[str, Scan], keys: Sequence[SortKey] | None = None) -> SiteMerge | None:
    """The block in two steps, or None where a name or a type of it is not certain.

    `keys`: the order of a union that the block is an operand of; without them it has its own, if any.
    """
    wanted, items = rows_wanted(block.select), _items(block, scans)
    if wanted is None or items is None or not is_resolved(block):
        return None
    order = _own_order(block, items) if keys is None else _by_places(items, keys)
    if order is None:
        return None
    # A constant orders nothing, and would be taken for the place of a column.
    order = [key for key in order if key.value.find(exp.Column) is not None]
    if not block.others and isinstance(block.select.args["from_"].this, exp.Table):
        return _of_table(block, wanted, scans[block.scan], order)
    if any(item.name is None for item in items) and not is_operand(block.select):
        return None
    return _merge(block, wanted, items, order)


def _of_table(block: Block, wanted: int, scan: Scan, order: Sequence[_Key]) -> SiteMerge:
    """The first rows of each part, and the block over them."""
    columns = tuple(column for column in scan.table.columns if column.name in scan.columns)
    partial = exp.Select(expressions=[exp.column(column.name, quoted=True) for column in columns])
    for clause in ("from_", "where"):
        partial.set(clause, block.select.copy().args.get(clause))
    _bound(partial, [_ordered(key.ordered, key.value.copy()) for key in order], wanted)
    return SiteMerge(block.scan, (), partial, columns, block.select.copy())


def _bound(partial: exp.Select, order: Sequence[exp.Expr], wanted: int) -> None:
    if order:
        partial.set("order", exp.Order(expressions=list(order)))
    partial.set("limit", exp.Limit(expression=exp.Literal.number(wanted)))


def _merge(block: Block, wanted: int, items: Sequence[_Item], order: Sequence[_Key]) -> SiteMerge | None:
    values = (*(item.value for item in items), *(key.value for key in order))
    listed = Once(map(block.plain, values))
    types = [block.type_of(value) for value in listed.values]
    columns = tuple(Column(f"{_prefix(block)}{at}", type_ or "void") for at, type_ in enumerate(types))
    if any(column.type == "void" for column in columns):
        return None

    def column(value: exp.Expr) -> exp.Expr:
        return exp.column(columns[listed.add(block.plain(value))].name)

    ordered = [_ordered(key.ordered, column(key.value)) for key in order]
    partial = exp.Select(
        expressions=[exp.alias_(as_said(v, c.type), c.name) for v, c in zip(listed.values, columns, strict=True)]
    )
    final = exp.Select(expressions=[_named(column(item.value), item.name) for item in items])
    for clause in ("from_", "joins", "where"):
        partial.set(clause, block.select.copy().args.get(clause))
    alias = exp.TableAlias(this=exp.to_identifier(f"{_prefix(block)}rows"))
    final.set("from_", exp.From(this=exp.Table(this=exp.to_identifier(block.scan), alias=alias)))
    _bound(partial, ordered, wanted)
    for clause in ("limit", "offset"):
        bound = block.select.args.get(clause)
        final.set(clause, bound.copy() if bound is not None else None)
    if ordered:
        final.set("order", exp.Order(expressions=[each.copy() for each in ordered]))
    return SiteMerge(block.scan, block.others, partial, columns, final)


def first_distinct(block: Block, merge: SiteMerge) -> SiteMerge:
    """Each part of a SELECT DISTINCT with a limit sends its first rows: a row that is cut off differs from n others.

    Groups with aggregates stay: where the order leaves groups open, one could be cut at some parts and not at others.
    """
    wanted, final = rows_wanted(block.select), merge.final
    if wanted is None or not block.select.args.get("distinct") or not isinstance(final, exp.Select):
        return merge
    order = final.args.get("order")
    keys: list[exp.Expr] = []
    for ordered in order.expressions if order is not None else ():
        value = _of_partial(ordered.this, final, {column.name for column in merge.columns})
        if value is None:
            return merge
        keys.append(_ordered(ordered, value.copy()))
    partial = merge.partial.copy()
    _bound(partial, keys, wanted)
    return dataclasses.replace(merge, partial=partial)


def _of_partial(key: exp.Expr, final: exp.Select, known: set[str]) -> exp.Expr | None:
    """What a sort key above partial rows stands for, over their columns."""
    named = [item for item in final.expressions if item.alias_or_name.lower() == key.name.lower()]
    if isinstance(key, exp.Literal) and not key.is_string and 1 <= int(key.this) <= len(final.expressions):
        key = final.expressions[int(key.this) - 1].unalias()
    elif isinstance(key, exp.Column) and key.name not in known and len(named) == 1:
        key = named[0].unalias()
    columns = [column.name for column in key.find_all(exp.Column)]
    return key if columns and known.issuperset(columns) else None


def _prefix(block: Block) -> str:
    return free_prefix(block.select)


def _named(value: exp.Expr, name: exp.Identifier | None) -> exp.Expr:
    return exp.Alias(this=value, alias=name.copy()) if name is not None else value


def _ordered(like: exp.Ordered, value: exp.Expr) -> exp.Ordered:
    copy = like.copy()
    copy.set("this", value)
    return copy


# --- the list ------------------------------------------------------------------------------------------
def _items(block: Block, scans: Mapping[str, Scan]) -> list[_Item] | None:
    found: list[_Item] = []
    for item in block.select.expressions:
        if item.is_star:
            starred = _starred(item, block, scans)
            if starred is None:
                return None
            found += starred
        elif isinstance(item, exp.Alias):
            found.append(_Item(item.this, item.args["alias"]))
        elif isinstance(item, exp.Column):
            found.append(_Item(item, exp.Identifier(this=item.name, quoted=True)))
        else:
            found.append(_Item(item, None))
    return found


def _starred(item: exp.Expr, block: Block, scans: Mapping[str, Scan]) -> list[_Item] | None:
    """The columns of a star that are needed at all; None unless its relations are tables."""
    star = item.this if isinstance(item, exp.Column) else item
    named = [part.name.lower() for part in item.parts[:-1]] if isinstance(item, exp.Column) else []
    if not isinstance(star, exp.Star) or any(star.args.values()) or len(named) > 1:
        return None
    select = block.select
    shown = [select.args["from_"].this]
    shown += [join.this for join in select.args.get("joins") or () if join.args.get("kind") not in ("SEMI", "ANTI")]
    if named:
        # Else it may be the fields of a struct.
        shown = [node for node in shown if node.alias_or_name.lower() == named[0]]
    found: list[_Item] = []
    for node in shown:
        if not isinstance(node, exp.Table):
            return None
        scan = scans[node.name]
        for column in scan.table.columns:
            if column.name in scan.columns:
                name = exp.Identifier(this=column.name, quoted=True)
                table = exp.to_identifier(node.alias_or_name, quoted=True)
                found.append(_Item(exp.Column(this=name.copy(), table=table), name))
    return found or None


# --- the order -----------------------------------------------------------------------------------------
def _own_order(block: Block, items: Sequence[_Item]) -> list[_Key] | None:
    order = block.select.args.get("order")
    found: list[_Key] = []
    for ordered in order.expressions if order is not None else ():
        if isinstance(ordered.this, exp.Var):  # ALL
            found += [_Key(item.value, ordered) for item in items]
            continue
        value = _value(ordered.this, block, items)
        if value is None:
            return None
        found.append(_Key(value, ordered))
    return found


def _value(key: exp.Expr, block: Block, items: Sequence[_Item]) -> exp.Expr | None:
    """What a sort key stands for: a place or a name of the list, or an expression over the relations."""
    if isinstance(key, exp.Literal):
        place = int(key.this) if not key.is_string and str(key.this).isdecimal() else 0
        return items[place - 1].value if 1 <= place <= len(items) else None
    names = [item.name.name.lower() if item.name is not None else "" for item in items]
    if isinstance(key, exp.Column) and len(key.parts) == 1 and key.name.lower() in names:
        return items[names.index(key.name.lower())].value if names.count(key.name.lower()) == 1 else None
    columns = list(key.find_all(exp.Column))
    if not columns or not is_deterministic(key) or not all(block.is_own(column) for column in columns):
        return None
    if any(named_after(item.value) in {column.name.lower() for column in columns} for item in items if not item.name):
        return None
    hidden = {column.parts[0].name.lower() for column in columns} & set(names)
    for item, name in zip(items, names, strict=True):
        value = block.plain(item.value)
        # A name of the list comes before a column of the relations, so both must be the same.
        if name in hidden and not (isinstance(value, exp.Column) and value.name.lower() == name):
            return None
    return key


def _by_places(items: Sequence[_Item], keys: Sequence[SortKey]) -> list[_Key] | None:
    if any(key.index >= len(items) for key in keys):
        return None
    return [_Key(items[key.index].value, by_place(key)) for key in keys]
