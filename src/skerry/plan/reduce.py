"""Fragments that send a mention's useful rows only: its conditions applied, its keys looked up among others' keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from skerry.catalog.table import Column, TablePart
from skerry.plan.fragment import EdgeLeaf, Leaf, Output, TableLeaf
from skerry.plan.mentions import Condition, Mention
from skerry.plan.rules.semijoin import Node, width_of
from skerry.sql.statement import render

if TYPE_CHECKING:
    from skerry.plan.build import Builder


def columns_of(mention: Mention, names: Sequence[str]) -> tuple[Column, ...]:
    """In the table's order."""
    wanted = {name.lower() for name in names}
    return tuple(column for column in mention.scan.table.columns if column.name.lower() in wanted)


def signature(node: Node) -> str:
    """Equal for mentions of which the same rows travel."""
    mention = node.mention
    filters = [mention.name if each.subquery else _plain(each) for each in mention.conditions]
    below = sorted(f"{pairs}={signature(child)}" for pairs, child in node.children)
    table = mention.scan.table
    return f"{table.member}.{table.name}[{' AND '.join(filters)}]({', '.join(below)})"


def _plain(condition: Condition) -> str:
    copy = condition.filter.copy()
    for column in copy.find_all(exp.Column):
        column.set("table", None)
    return render(copy)


def add_reduced(
    builder: Builder, node: Node, part: TablePart, columns: Sequence[Column], output: Output, *, is_keys: bool
) -> None:
    """The fragment at the part's member."""
    leaves: list[Leaf] = []
    tree = reduced_select(builder, node, part, columns, leaves)
    if is_keys:
        tree.set("distinct", exp.Distinct())
    share = (part.rows or 0) / max(1, sum(each.rows or 0 for each in node.mention.parts))
    estimate = node.estimate
    rows = estimate.rows
    if is_keys:
        for_keys = 1.0
        for column in columns:
            known = estimate.columns.get(column.name.lower())
            for_keys *= known.ndv if known is not None else rows
        rows = min(rows, for_keys)
    width = width_of(estimate, [column.name for column in columns])
    builder.add(part.member, tree, tuple(leaves), output, int(rows * share), int(rows * share * width), part)


def reduced_select(
    builder: Builder, node: Node, part: TablePart, columns: Sequence[Column], leaves: list[Leaf]
) -> exp.Select:
    """The useful rows of one part; `leaves` gets what is read for them."""
    mention = node.mention
    leaf = TableLeaf(builder.placeholder(), part.table)
    leaves.append(leaf)
    alias = mention.alias
    table = exp.Table(this=exp.to_identifier(leaf.placeholder), alias=exp.TableAlias(this=alias.copy()))
    joins: list[exp.Expr] = []
    small: list[exp.Expr] = []
    for pairs, child in node.children:
        wanted = columns_of(child.mention, [other for _, other in pairs])
        keys = key_relation(builder, child, wanted, part.member, leaves)
        name = exp.to_identifier(builder.key_name(), quoted=False)
        on: exp.Expr | None = None
        for own, other in pairs:
            equal = exp.EQ(this=_column(alias, own), expression=_column(name, other))
            on = equal if on is None else exp.And(this=on, expression=equal)
        relation = exp.Subquery(this=keys, alias=exp.TableAlias(this=name))
        joins.append(exp.Join(this=relation, side="LEFT", kind="SEMI", on=on))
        if builder.is_small(child.estimate, wanted):
            small.append(name.copy())
    select = exp.Select(
        expressions=[_column(alias, column.name) for column in columns], from_=exp.From(this=table), joins=joins or None
    )
    if small:
        select.set("hint", exp.Hint(expressions=[exp.Anonymous(this="BROADCAST", expressions=small)]))
    if mention.conditions:
        select.set("where", exp.Where(this=_where(builder, mention.conditions, part, leaves)))
    return select


def key_relation(builder: Builder, node: Node, columns: Sequence[Column], member: str, leaves: list[Leaf]) -> exp.Query:
    """The keys that `node` has, at `member`: from the part that is there, and from those that send theirs."""
    queries: list[exp.Query] = []
    remote = [part for part in node.mention.parts if part.member != member]
    for part in node.mention.parts:
        if part.member == member:
            queries.append(reduced_select(builder, node, part, columns, leaves))
    if remote:
        edge = builder.edge()
        for part in remote:
            add_reduced(builder, node, part, columns, Output(edge, member), is_keys=True)
        leaf = EdgeLeaf(builder.placeholder(), edge, tuple(columns), tuple(part.member for part in remote))
        leaves.append(leaf)
        names = [exp.column(column.name, quoted=True) for column in columns]
        queries.append(exp.select(*names).from_(exp.to_table(leaf.placeholder)))
    union = queries[0]
    for query in queries[1:]:
        union = exp.union(union, query, distinct=False, copy=False)
    return union


def _where(builder: Builder, conditions: Sequence[Condition], part: TablePart, leaves: list[Leaf]) -> exp.Expr:
    joined: exp.Expr | None = None
    for condition in conditions:
        copy = condition.filter.copy()
        if condition.subquery is not None:
            _read_in_place(builder, copy, condition.subquery.names, part, leaves)
        copy = exp.Paren(this=copy) if isinstance(copy, exp.Or) and len(conditions) > 1 else copy
        joined = copy if joined is None else exp.And(this=joined, expression=copy)
    assert joined is not None
    return joined


def _read_in_place(builder: Builder, tree: exp.Expr, names: Sequence[str], part: TablePart, leaves: list[Leaf]) -> None:
    """Scans inside a subquery become tables of the same member."""
    for node in list(tree.find_all(exp.Table)):
        if node.name in names:
            leaf = TableLeaf(builder.placeholder(), builder.table_at(node.name, part.member))
            leaves.append(leaf)
            node.set("this", exp.to_identifier(leaf.placeholder))


def _column(table: exp.Identifier, name: str) -> exp.Column:
    return exp.Column(this=exp.Identifier(this=name, quoted=True), table=table.copy())
