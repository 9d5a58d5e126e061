"""Rule `aggregates`: a table with parts at several sites is aggregated at each of them, and only groups travel.

Two ways, both exact. The member merges when what it has to do is one of its own operators: no HAVING, nothing
computed from aggregates, an order by the groups themselves. Its input is sorted by the groups, so it holds one of
them at a time, however many come. All else is merged by Spark, in SQL over the partial rows: `site_merge` puts
them in the place of the table, and the rest of the plan is made as for any table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from skerry.model.fragment import MergeStep, SortKey
from skerry.model.names import TableRef
from skerry.model.table import Column
from skerry.plan.extremes import sorts_by_hidden
from skerry.plan.grouping import Block, has_aggregate, outermost_aggregates, set_leaves
from skerry.plan.partials import call_of, called, cast, distinct_of, kernel_of, split_of
from skerry.plan.sortable import kind_of_type
from skerry.plan.trees import named_by
from skerry.sql.alike import form
from skerry.sql.fields import names_field
from skerry.sql.functions import call_name
from skerry.sql.parse import parse_type
from skerry.sql.shape import Shape
from skerry.sql.types import decimal_of
from skerry.sql.walk import bare


@dataclass(frozen=True)
class MemberMerge:
    """`tree` runs at every part; its rows are sorted by `keys` (places in its list, from 0) and merged by `steps`."""

    tree: exp.Select
    keys: tuple[SortKey, ...]
    steps: tuple[MergeStep, ...]


@dataclass(frozen=True)
class SiteMerge:
    """`partial` runs at every part and gives `columns`; `final` reads them from the scan, as if it were a table.

    others: scans that `partial` joins with the part. The first `keys` columns are what the block groups by (0 if it
    groups in several ways), the first `grouped` what its partial rows are: values that count once are among them.
    `steps` merge the others into partial rows again, None if a member cannot.
    """

    scan: str
    others: tuple[str, ...]
    partial: exp.Select
    columns: tuple[Column, ...]
    final: exp.Expr
    keys: int = 0
    grouped: int = 0
    steps: tuple[MergeStep, ...] | None = None


# --- in the member -------------------------------------------------------------------------------------
def member_merge(block: Block, shape: Shape) -> MemberMerge | None:
    """The merge at the root of a query."""
    select = block.select
    if select.args.get("having") is not None or block.has_sets:
        return None
    if not shape.bounds_known or shape.columns != len(select.expressions):
        return None
    listed = _Listed(block)
    steps = [listed.step(place) for place in range(len(select.expressions))]
    keys = _sort_keys(block, shape, listed)
    if keys is None or any(step is None for step in steps):
        return None
    tree = select.copy()
    tree.set("order", None)
    tree.set("expressions", [*tree.expressions, *listed.hidden])
    return MemberMerge(tree, keys, tuple(step for step in steps if step is not None))


class _Listed:
    """The columns of a partial row: those of the list, then hidden ones."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._prefix = free_prefix(block.select)
        self.values = [item.unalias() for item in block.select.expressions]
        self.hidden: list[exp.Expr] = []
        self._places: dict[tuple[object, ...], int] = {}
        for index, value in enumerate(self.values):
            self._places.setdefault(form(block.plain(value)), index)

    def step(self, place: int) -> MergeStep | None:
        value = self.values[place]
        value = bare(value)
        if not has_aggregate(value):
            # A function of the keys, unless it names another item, which may be an aggregate.
            is_own = all(self._block.is_own(column) for column in value.find_all(exp.Column))
            return MergeStep(place, "any") if is_own else None
        call = call_of(value) if next(outermost_aggregates(value)) is value else None
        kernel = kernel_of(call, self._block.type_of) if call is not None else None
        if kernel is None:
            return None
        return MergeStep(place, kernel.kind, tuple(self.hide(each) for each in kernel.hidden))

    def hide(self, value: exp.Expr) -> int:
        """The place of a column that is there for the merge only."""
        place = self._places.setdefault(form(self._block.plain(value)), len(self.values) + len(self.hidden))
        if place == len(self.values) + len(self.hidden):
            self.hidden.append(exp.alias_(value.copy(), f"{self._prefix}{len(self.hidden)}"))
        return place


def _sort_keys(block: Block, shape: Shape, listed: _Listed) -> tuple[SortKey, ...] | None:
    """The query's own order first, then the groups that it does not tell apart."""
    if not block.keys:
        return ()  # one row
    keys: list[SortKey] = []
    if shape.has_order:
        if shape.order_keys is None or any(has_aggregate(listed.values[key.index]) for key in shape.order_keys):
            return None
        keys += shape.order_keys
    seen = {key.index for key in keys}
    keys += [SortKey(place, False, True) for place in map(listed.hide, block.keys) if place not in seen]
    sorted_by = [listed.values[key.index] for key in keys if key.index < len(listed.values)]
    if any(not _is_sortable(block, each) for each in (*sorted_by, *block.keys)):
        return None
    return tuple(dict.fromkeys(keys))


def _is_sortable(block: Block, node: exp.Expr) -> bool:
    type_ = block.type_of(node)
    return type_ is not None and kind_of_type(type_) is not None


# --- at a site -----------------------------------------------------------------------------------------
class _Unsplit(Exception):
    """Something in the block has no partial form."""


def site_merge(block: Block, tables: Mapping[str, TableRef], shape: Shape | None) -> SiteMerge | None:
    """The merge of any block; `shape` is that of the query when the block is its root."""
    try:
        return _Splitter(block, tables).merge(shape)
    except _Unsplit:
        return None


class _Splitter:
    """Collects the columns of the partial rows while it rewrites what stands above them."""

    def __init__(self, block: Block, tables: Mapping[str, TableRef]) -> None:
        self._block = block
        self._tables = tables
        self._prefix = free_prefix(block.select)
        self._listed: list[tuple[exp.Expr, str]] = []
        self._grouped = 0
        # Of what is grouped by, and of partial aggregates.
        self._places: dict[tuple[object, ...], int] = {}
        self._partial_places: dict[tuple[object, ...], int] = {}
        self._steps: list[tuple[MergeStep, ...] | None] = []
        self._aliases = {item.alias.lower() for item in block.select.expressions if isinstance(item, exp.Alias)}

    def merge(self, shape: Shape | None) -> SiteMerge:
        block, select = self._block, self._block.select
        if any(_asks_of_grouping(select.args.get(clause)) for clause in ("having", "order")):
            raise _Unsplit
        if sorts_by_hidden(select):
            raise _Unsplit  # Sail would not know it again above partial rows
        for key in block.keys:
            self._places.setdefault(form(key), self._add(key, block.type_of(key)))
        for value in self._distinct_values():
            if self._place(value) is None:
                plain = block.plain(value)
                self._places[form(plain)] = self._add(plain, block.type_of(value))
        self._grouped = len(self._listed)
        final = exp.Select(expressions=[self._item(item) for item in select.expressions])
        final.set("from_", exp.From(this=exp.Table(this=exp.to_identifier(block.scan), alias=self._alias())))
        if select.args.get("group") is not None and (block.keys or block.has_sets):
            final.set("group", self._group(select.args["group"]))
        if select.args.get("distinct"):
            final.set("distinct", select.args["distinct"].copy())
        for clause in ("having", "order", "limit", "offset"):
            if select.args.get(clause) is not None:
                final.set(clause, self._above(select.args[clause]))
        named = final if self._is_named() or is_operand(select) else self._with_names(final, shape)
        columns = tuple(Column(self._name(place), type_) for place, (_, type_) in enumerate(self._listed))
        steps = [step for found in self._steps if found is not None for step in found]
        merged = None if None in self._steps else tuple(dict.fromkeys(steps))
        keys = len(block.keys) if not block.has_sets else 0
        return SiteMerge(block.scan, block.others, self._partial(), columns, named, keys, self._grouped, merged)

    def _partial(self) -> exp.Select:
        items = [exp.alias_(as_said(value, type_), self._name(at)) for at, (value, type_) in enumerate(self._listed)]
        select = self._block.select.copy()
        partial = exp.Select(expressions=items)
        for clause in ("from_", "joins", "where"):
            partial.set(clause, select.args.get(clause))
        if self._grouped:
            keys = [value.copy() for value, _ in self._listed[: self._grouped]]
            partial.set("group", exp.Group(expressions=keys))
        return partial

    def _distinct_values(self) -> list[exp.Expr]:
        """Aggregates of distinct values: these values are grouped by as well, and taken once above."""
        found: list[exp.Expr] = []
        for call in map(call_of, self._block.aggregates):
            if call is not None and split_of(call, self._block.type_of) is None:
                values = distinct_of(call, self._block.type_of)
                if values is None:
                    raise _Unsplit
                found += values
        return found

    # --- what stands above the partial rows ---
    def _item(self, item: exp.Expr) -> exp.Expr:
        value = self._above(item.unalias())
        if isinstance(item, exp.Alias):
            return exp.Alias(this=value, alias=item.args["alias"].copy())
        if isinstance(item, exp.Column):
            return exp.Alias(this=value, alias=exp.Identifier(this=item.name, quoted=True))
        return value

    def _above(self, node: exp.Expr) -> exp.Expr:
        """The same over the partial rows: keys and aggregates become what they are there."""
        place = self._block.key(node)
        if place is not None:
            if names_field(node):
                raise _Unsplit
            return self._column(place)
        if next(outermost_aggregates(node), None) is node:
            return self._merged(node)
        if isinstance(node, exp.Column):
            if len(node.parts) == 1 and node.name.lower() in self._aliases and not self._block.is_own(node):
                return node.copy()
            raise _Unsplit
        copy = node.copy()
        for child, other in zip(list(copy.iter_expressions()), list(node.iter_expressions()), strict=True):
            child.replace(self._above(other))
        return copy

    def _merged(self, node: exp.Expr) -> exp.Expr:
        call = call_of(node)
        if call is None:
            raise _Unsplit
        split = split_of(call, self._block.type_of)
        if split is not None:
            # In brackets, as the call was one operand.
            places = [self._partial_place(*each) for each in split.partials]
            self._steps.append(split.steps(places))
            merged = split.merged([self._column(place) for place in places])
            return exp.Paren(this=merged) if isinstance(merged, exp.Binary) else merged
        values = distinct_of(call, self._block.type_of)
        if values is None:
            raise _Unsplit
        known = [self._place(value) for value in values]
        arguments = [self._column(place) for place in known if place is not None]
        assert len(arguments) == len(values)
        arguments += [each.copy() for each in call.arguments[len(values) :]]
        return called(call.name, *([exp.Distinct(expressions=arguments)] if call.is_distinct else arguments))

    def _group(self, group: exp.Expr) -> exp.Expr:
        if not self._block.has_sets:
            return exp.Group(expressions=[self._column(place) for place in range(len(self._block.keys))])
        copy = group.copy()
        for leaf in list(set_leaves(copy)):
            place = self._block.key(leaf)
            if place is None:
                raise _Unsplit
            leaf.replace(self._column(place))
        return copy

    def _place(self, value: exp.Expr) -> int | None:
        return self._places.get(form(self._block.plain(value)))

    def _partial_place(self, value: exp.Expr, type_: str) -> int:
        known = form(value)
        if known not in self._partial_places:
            self._partial_places[known] = self._add(value, type_)
        return self._partial_places[known]

    def _add(self, value: exp.Expr, type_: str | None) -> int:
        if type_ is None or type_ == "void":
            raise _Unsplit
        self._listed.append((value, type_))
        return len(self._listed) - 1

    def _name(self, place: int) -> str:
        return f"{self._prefix}{place}"

    def _column(self, place: int) -> exp.Expr:
        return exp.column(self._name(place))

    def _alias(self) -> exp.TableAlias:
        return exp.TableAlias(this=exp.to_identifier(f"{self._prefix}rows"))

    # --- names of the result ---
    def _is_named(self) -> bool:
        """Whether every column has a name that does not follow from how it is computed."""
        return all(isinstance(item, exp.Alias | exp.Column) for item in self._block.select.expressions)

    def _with_names(self, final: exp.Select, shape: Shape | None) -> exp.Expr:
        """Spark names a column after its expression. So the block as it was written, over no rows, gives the names."""
        bounds = {key: final.args.get(key) for key in ("order", "limit", "offset")}
        if bounds["order"] is not None and (shape is None or shape.order_keys is None):
            raise _Unsplit  # above a union only its columns can be sorted by
        for key in bounds:
            final.set(key, None)
        union = named_by(self._over_no_rows(), final)
        if bounds["order"] is not None and shape is not None:
            union.set("order", exp.Order(expressions=[by_place(key) for key in shape.order_keys or ()]))
        for key in ("limit", "offset"):
            union.set(key, bounds[key])
        return union

    def _over_no_rows(self) -> exp.Select:
        """The block with tables that have its columns' names and types, and no row."""
        names = self._block.select.copy()
        for clause in ("where", "having", "order", "limit", "offset"):
            names.set(clause, None)
        mentioned = {node.name.lower() for node in self._block.select.find_all(exp.Identifier)}
        for node in [node for node in names.find_all(exp.Table) if node.name in self._tables]:
            table = self._tables[node.name]
            columns = [column for column in table.columns if column.name.lower() in mentioned]
            items = [_null(column) for column in columns or table.columns[:1]]
            empty = exp.Select(expressions=items, where=exp.Where(this=exp.false()))
            node.replace(exp.Subquery(this=empty, alias=node.args["alias"].copy()))
        return names


def _asks_of_grouping(clause: exp.Expr | None) -> bool:
    """Spark finds `grouping(g)` of HAVING and ORDER BY only where g is called so in the list: partial keys are not."""
    nodes = clause.walk() if clause is not None else ()
    return any(call_name(node) in ("grouping", "grouping_id") and node.expressions for node in nodes)


def is_operand(select: exp.Expr) -> bool:
    """Does the block stand in an expression (IN, EXISTS, a scalar), where nobody sees its columns' names?"""
    around = select.parent
    if isinstance(around, exp.Subquery):
        around = around.parent
        return around is not None and not isinstance(around, exp.From | exp.Join | exp.CTE | exp.Query | exp.Lateral)
    return isinstance(around, exp.In | exp.Exists)


def as_said(value: exp.Expr, type_: str) -> exp.Expr:
    """Spark's decimals are as they are computed here; Sail gives some expressions other digits, so they are said."""
    is_plain = not any(isinstance(node, exp.Binary | exp.Case) for node in value.walk())
    return cast(value, type_) if decimal_of(type_) is not None and not is_plain else value.copy()


def _null(column: Column) -> exp.Expr:
    typed = exp.Cast(this=exp.null(), to=parse_type(column.type))
    return exp.Alias(this=typed, alias=exp.Identifier(this=column.name, quoted=True))


def by_place(key: SortKey) -> exp.Ordered:
    """A sort key as the number of its column; Spark's default, NULLs are the smallest, is not said."""
    nulls_first = key.nulls_first if key.nulls_first is key.descending else None
    place = exp.Literal.number(key.index + 1)
    return exp.Ordered(this=place, desc=key.descending or None, nulls_first=nulls_first)


def free_prefix(tree: exp.Expr) -> str:
    """`part_`, or more of it where the statement has such names of its own."""
    taken = {node.name.lower() for node in tree.find_all(exp.Identifier)}
    prefix = "part_"
    while any(name.startswith(prefix) for name in taken):
        prefix = f"skerry_{prefix}"
    return prefix


__all__ = ["MemberMerge", "SiteMerge", "as_said", "by_place", "free_prefix", "is_operand", "member_merge", "site_merge"]
