"""Fragments and edges of one plan, as they are put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from sqlglot import exp

from skerry.model.fragment import EdgeLeaf, Finish, Fragment, Leaf, LeftOut, Output, Plan, SortKey, TableLeaf
from skerry.model.limits import Limits
from skerry.model.table import Column, TablePart
from skerry.plan.bound import most_rows, reads_tables_only
from skerry.plan.cache import fingerprint
from skerry.plan.estimate import Estimate, held_row_bytes, row_bytes
from skerry.plan.known import groups_key
from skerry.plan.maker import make_fragment
from skerry.plan.mentions import Mention
from skerry.plan.partial_plan import InMember
from skerry.plan.placeholders import hint_broadcasts, replace_tables
from skerry.plan.reduce import add_reduced
from skerry.plan.rules.aggregates import by_place
from skerry.plan.rules.joined import Input
from skerry.plan.site import Site
from skerry.plan.source import Source
from skerry.sql.shape import Shape, drop_limit, put_sort_by, without_limit
from skerry.sql.statement import Query
from skerry.sql.width import only_copies

# What a column of a result takes, roughly, and how many a star may stand for.
_COLUMN_BYTES = 32
_MANY_COLUMNS = 16
_INFLATES = 4
# An estimate of a join of joins may be any number; what travels in messages is bounded.
_MOST = 2**53


class Builder:
    """Collects fragments and edges of one plan."""

    def __init__(self, nonce: str, site: Site, limits: Limits, shape: Shape, mergeable: bool, is_narrow: bool) -> None:
        self._nonce = nonce
        self._site = site
        self._limits = limits
        self._shape = shape
        self._mergeable = mergeable
        self._is_narrow = is_narrow
        self._fragments: list[Fragment] = []
        self._known: dict[int, tuple[str, ...]] = {}
        self.result_key, self.is_result_seen = "", False
        self._next_edge = 1
        self._leaves = 0
        self._keys = 0
        self.key_prefix = "key_"
        self.mentions: Mapping[str, Mention] = {}
        self._finish: Finish | None = None
        self.result = Estimate(0.0, {}, 0.0)

    def plan(self, sources: Sequence[Source], parameters: tuple[str, ...], left_out: tuple[LeftOut, ...]) -> Plan:
        assert self._finish is not None
        every = [each for source in sources for each in (source, *source.joined)]
        info = {f"{part.member}.{part.table}": part.schema_version for source in every for part in source.parts}
        plan = Plan("", tuple(self._fragments), self._finish, info, parameters, left_out, self._known)
        return msgspec.structs.replace(plan, plan_id=fingerprint(plan))

    # --- the rest in one Spark -------------------------------------------------------------------
    def add_rest(self, query: Query, sources: Sequence[Source], member: str, reason: str = "") -> None:
        """The whole tree at `member`; what it does not hold itself arrives over edges."""
        shape, tree = self._shape, query.tree.copy()
        leaves: list[Leaf] = []
        self.read_sources(tree, sources, member, leaves)
        order: str = "lanes" if shape.has_order else "any"
        keys: tuple[SortKey, ...] = ()
        # SORT BY with a LIMIT or an OFFSET would keep any rows, not the first ones.
        is_whole = shape.bounds_known and shape.limit is None and not shape.offset
        rows_max = self._most_rows(query, sources, member)
        if self._mergeable and is_whole and not rows_max:
            order, keys = "merge", shape.order_keys or ()
            drop_limit(tree)
            put_sort_by(tree, shape.columns)
        edge = self.edge()
        is_bounded = self._is_bounded(shape.limit) or (shape.columns is not None and _is_one_row(tree))
        output = Output(
            edge, self._site.initiator, order, keys, is_bounded or rows_max > 0, 0 if is_bounded else rows_max
        )
        rows, size_bytes = _rounded(self.result.rows), _rounded(self.result.size_bytes)
        self._add(member, tree, tuple(leaves), output, rows, size_bytes, self._is_narrow, reason, (self.result_key,))
        self._finish = Finish(edge, (member,))

    def read(self, tree: exp.Expr, inputs: Sequence[Input], member: str, leaves: list[Leaf]) -> None:
        """Tables that are joined at `member` before the rest: what it does not hold arrives over edges."""
        sources = [
            Source(
                (each.mention.name,),
                each.mention.scan.table,
                each.columns,
                (),
                each.mention.parts,
                shipment=each.shipment,
            )
            for each in inputs
        ]
        self.read_sources(tree, sources, member, leaves)

    def read_sources(self, tree: exp.Expr, sources: Sequence[Source], member: str, leaves: list[Leaf]) -> None:
        """The sources' placeholders in the places of their names; `leaves` gets them."""
        names: dict[str, list[str | exp.Query]] = {}
        small: set[str] = set()
        for source in sources:
            source_names = self._source_leaves(source, member, leaves)
            names |= dict.fromkeys(source.mentions, source_names)
            if self._is_small(source, member):
                small |= set(source.mentions)
        hint_broadcasts(tree, small)
        replace_tables(tree, names, {mention: source.columns for source in sources for mention in source.mentions})

    def _source_leaves(self, source: Source, member: str, leaves: list[Leaf]) -> list[str | exp.Query]:
        """The placeholders, or queries, whose rows together are the source's."""
        names: list[str | exp.Query] = []
        local = [part for part in source.parts if part.member == member]
        remote = [part for part in source.parts if part.member != member]
        for part in local:
            if source.partial is not None:
                names.append(self._at_part(source.partial, source, source.joined, part, leaves))
                continue
            leaf = TableLeaf(self.placeholder(), part.table)
            names.append(leaf.placeholder)
            leaves.append(leaf)
        if remote:
            edge = self.edge()
            for part in remote:
                self._add_scan(source, part, edge, member)
            placeholder = self.placeholder()
            names.append(placeholder)
            leaves.append(EdgeLeaf(placeholder, edge, source.columns, tuple(part.member for part in remote)))
        return names

    def _add_scan(self, source: Source, part: TablePart, edge: int, receiver: str) -> None:
        if source.shipment is not None:
            sent, output = source.shipment, Output(edge, receiver)
            add_reduced(self, sent.node, part, source.columns, output, is_keys=False, planned=sent.columns)
            return
        leaves: list[Leaf] = []
        if source.partial is not None:
            tree = self._at_part(source.partial, source, source.joined, part, leaves)
        else:
            leaves.append(TableLeaf(self.placeholder(), part.table))
            tree = exp.select(*(exp.column(column.name, quoted=True) for column in source.columns)).from_(
                exp.to_table(leaves[0].placeholder)
            )
            tree = tree.where(*source.filters) if source.filters else tree
        rows, is_narrow = source.estimated_rows(part), held_row_bytes(part) <= self._limits.narrow_row_bytes
        is_narrow = is_narrow and (source.partial is None or only_copies(source.partial))
        size_bytes, known = source.estimated_bytes(part), ""
        if source.partial is not None:
            known = groups_key(part, source.partial, {each.mentions[0]: each.parts for each in source.joined})
        self._add(part.member, tree, tuple(leaves), Output(edge, receiver), rows, size_bytes, is_narrow, "", (known,))

    def _at_part(
        self, tree: exp.Select, cut: Source, joined: Sequence[Source], part: TablePart, leaves: list[Leaf]
    ) -> exp.Select:
        """The tree over one part of `cut`, and over all rows of the sources that it is joined with."""
        leaf = TableLeaf(self.placeholder(), part.table)
        leaves.append(leaf)
        names: dict[str, list[str | exp.Query]] = {cut.mentions[0]: [leaf.placeholder]}
        for source in joined:
            names[source.mentions[0]] = self._source_leaves(source, part.member, leaves)
        own = tree.copy()
        hint_broadcasts(own, {source.mentions[0] for source in joined if self._is_small(source, part.member)})
        replace_tables(own, names, {source.mentions[0]: source.columns for source in joined})
        return own

    def add(
        self,
        member: str,
        tree: exp.Expr,
        leaves: tuple[Leaf, ...],
        output: Output,
        rows: int,
        size_bytes: int,
        part: TablePart,
        mention: Mention,
        reason: str,
        known: tuple[str, ...] = (),
    ) -> None:
        """A fragment whose rows are copies of the part's, unless they are a block's."""
        is_narrow = mention.block is None and held_row_bytes(part) <= self._limits.narrow_row_bytes
        self._add(member, tree, leaves, output, rows, size_bytes, is_narrow, reason, known)

    def is_small(self, estimate: Estimate, columns: Sequence[Column]) -> bool:
        """Should Spark be told that these columns of the relation are small?"""
        return estimate.rows * row_bytes(columns) <= self._limits.broadcast_bytes

    def key_name(self) -> str:
        """A name for a relation of keys that nothing in the query has."""
        self._keys += 1
        return f"{self.key_prefix}{self._keys}"

    def table_at(self, mention: str, member: str) -> str:
        """What the member calls the table of a mention."""
        return next(part.table for part in self.mentions[mention].parts if part.member == member)

    def _is_small(self, source: Source, member: str) -> bool:
        """Should Spark be told that the source is small? An edge reports no size; a table of the site does."""
        if all(part.member == member for part in source.parts):
            return False
        if source.shipment is not None:
            # The parts that are there are read as they are.
            here = [part for part in source.parts if part.member == member]
            width = row_bytes(source.columns)
            held = sum(part.size_bytes if part.rows is None else part.rows * width for part in here)
            return source.shipment.size_bytes + held <= self._limits.broadcast_bytes
        return sum(source.sent_bytes().values()) <= self._limits.broadcast_bytes

    # --- the same at every part, finished by the initiator -----------------------------------------
    def add_parts(
        self, query: Query, source: Source, joined: Sequence[Source] = (), rows: Mapping[str, float] | None = None
    ) -> None:
        """Each part's rows in order, the first of them only if there is a limit; the initiator does the rest.

        All rows of the `joined` sources go to each part; `rows` of each member are likely then.
        """
        shape = self._shape
        # The rows that are skipped may all be in one part: every part sends them.
        wanted = None if shape.limit is None else shape.limit + shape.offset
        tree = without_limit(query.tree)
        order: str = "any"
        if wanted is not None:
            tree.set("limit", exp.Limit(expression=exp.Literal.number(wanted)))
            order = "lanes" if shape.has_order else "any"
        elif shape.has_order:
            order = "merge"
            put_sort_by(tree, shape.columns)
        assert isinstance(tree, exp.Select)
        keys = shape.order_keys or ()
        edge = self.edge()
        output = Output(edge, self._site.initiator, order, keys if order == "merge" else (), self._is_bounded(wanted))
        for part in source.parts:
            leaves: list[Leaf] = []
            own = self._at_part(tree, source, joined, part, leaves)
            count = _rounded(rows[part.member]) if rows is not None else source.estimated_rows(part)
            count = count if wanted is None else min(count, wanted)
            size_bytes = _rounded(count * self.result.row_bytes)
            self._add(part.member, own, tuple(leaves), output, count, size_bytes, self._is_narrow)
        senders = tuple(part.member for part in source.parts)
        self._finish = Finish(edge, senders, keys, shape.offset, shape.limit)

    # --- groups of every part, merged by the initiator -----------------------------------------------
    def add_merged(self, merged: InMember, cut: Source, joined: Sequence[Source]) -> None:
        """Each part's groups, sorted, the first of them only if there is a limit; the initiator merges them."""
        shape, merge = self._shape, merged.merge
        # A part's first groups hold all groups that can be among the first of all.
        wanted = None if shape.limit is None else shape.limit + shape.offset
        tree = without_limit(merge.tree)
        assert isinstance(tree, exp.Select)
        order, clause = ("merge", "sort") if wanted is None else ("lanes", "order")
        if merge.keys:
            kind = exp.Sort if clause == "sort" else exp.Order
            tree.set(clause, kind(expressions=[by_place(key) for key in merge.keys]))
        if wanted is not None:
            tree.set("limit", exp.Limit(expression=exp.Literal.number(wanted)))
        edge, keys = self.edge(), merge.keys if order == "merge" else ()
        output = Output(edge, self._site.initiator, order if merge.keys else "any", keys, self._is_bounded(wanted))
        for part in cut.parts:
            leaves: list[Leaf] = []
            own = self._at_part(tree, cut, joined, part, leaves)
            rows = merged.rows[part.member]
            known = groups_key(part, merge.tree, {each.mentions[0]: each.parts for each in joined})
            size_bytes = rows * merged.row_bytes
            self._add(part.member, own, tuple(leaves), output, rows, size_bytes, self._is_narrow, "", (known,))
        senders = tuple(part.member for part in cut.parts)
        self._finish = Finish(edge, senders, merge.keys, shape.offset, shape.limit, merge.steps)

    # --- pieces ------------------------------------------------------------------------------------
    def _is_bounded(self, limit: int | None) -> bool:
        """Does the plan bound this fragment's rows to one page?"""
        if self._shape.is_global_aggregate:
            return True
        return limit is not None and self._fits_page(limit)

    def _fits_page(self, rows: int) -> bool:
        # A star's columns are not counted here: taken as many.
        size_bytes = rows * _COLUMN_BYTES * (self._shape.columns or _MANY_COLUMNS)
        return rows <= self._limits.driver_rows and size_bytes <= self._limits.driver_bytes

    def _most_rows(self, query: Query, sources: Sequence[Source], member: str) -> int:
        """The rows that this member's own tables bound the result to, if that is a page; else 0."""
        mentions = {mention: source for source in sources for mention in source.mentions}
        if not reads_tables_only(query.tree, mentions) or not only_copies(query.tree):
            return 0
        counts: list[int] = []
        for source in mentions.values():
            for part in source.parts:
                if part.member != member or part.rows is None:
                    return 0
                counts.append(part.rows)
        most = most_rows(counts)
        # Files are compressed, so a row may have more bytes than they show.
        held_bytes = _INFLATES * sum(source.widest_row() for source in mentions.values())
        return most if self._fits_page(most) and most * held_bytes <= self._limits.driver_bytes else 0

    def edge(self) -> int:
        self._next_edge += 1
        return self._next_edge - 1

    def placeholder(self) -> str:
        self._leaves += 1
        return f"leaf_{self._leaves}_{self._nonce}"

    def _add(
        self,
        member: str,
        tree: exp.Expr,
        leaves: tuple[Leaf, ...],
        output: Output,
        rows: int,
        size_bytes: int,
        is_narrow: bool,
        reason: str = "",
        known: Sequence[str] = (),
    ) -> None:
        """`known`: the names of what it sends (known.py)."""
        fragment_id = len(self._fragments) + 1
        if any(known):
            self._known[fragment_id] = tuple(filter(None, known))
        made = make_fragment(
            fragment_id,
            member,
            tree,
            leaves,
            output,
            rows=rows,
            size_bytes=size_bytes,
            is_narrow=is_narrow,
            reason=reason,
            egress=self._site.egress,
        )
        self._fragments.append(made)


def _rounded(count: float) -> int:
    return int(min(count, _MOST))


def _is_one_row(tree: exp.Expr) -> bool:
    """`SELECT 1`: without FROM there is one row at most, if no generator stands in it."""
    return isinstance(tree, exp.Select) and tree.args.get("from_") is None
