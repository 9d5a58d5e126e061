"""Fragments and edges of one plan, as they are put together."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import msgspec
from sqlglot import exp

from skerry.model.fragment import (
    EdgeLeaf,
    Finish,
    Fragment,
    GroupHere,
    Leaf,
    LeftOut,
    OperatorFragment,
    Output,
    Plan,
    Rows,
    SortKey,
    TableLeaf,
)
from skerry.model.limits import Limits
from skerry.model.table import TablePart
from skerry.plan.bound import most_rows, reads_tables_only
from skerry.plan.cache import fingerprint
from skerry.plan.elastic import Elastic
from skerry.plan.estimate import Estimate
from skerry.plan.fragments import INFLATES, Fragments
from skerry.plan.known import groups_key
from skerry.plan.once import run_once
from skerry.plan.partial_plan import InMember
from skerry.plan.placeholders import replace_tables
from skerry.plan.reduce import at_part, read_sources
from skerry.plan.rules.aggregates import by_place
from skerry.plan.rules.blocks import is_stable
from skerry.plan.site import Site
from skerry.plan.source import Source
from skerry.sql.shape import Shape, drop_limit, put_sort_by, without_limit
from skerry.sql.statement import Query
from skerry.sql.width import only_copies

# What a column of a result takes, roughly, and how many a star may stand for.
_COLUMN_BYTES = 32
_MANY_COLUMNS = 16
# An estimate of a join of joins may be any number; what travels in messages is bounded.
_MOST = 2**53


class Builder(Fragments):
    """Adds what a plan ends in: the rest in one Spark, or the same at every part."""

    def __init__(self, nonce: str, site: Site, limits: Limits, shape: Shape, mergeable: bool, is_narrow: bool) -> None:
        super().__init__(nonce, limits, site.egress)
        self._site = site
        self._shape = shape
        self._mergeable = mergeable
        self._is_narrow = is_narrow
        self.result_key, self.is_result_seen = "", False
        self._ends_in: Rows | None = None
        self.result = Estimate(0.0, {}, 0.0)
        self.note = ""  # why tables of our own are not joined where they are

    def plan(
        self,
        sources: Sequence[Source],
        parameters: tuple[str, ...],
        left_out: tuple[LeftOut, ...],
        beside: Sequence[TablePart] = (),
    ) -> Plan:
        """`beside`: parts that fragments may read which are no source's."""
        assert self._ends_in is not None
        every = [each for source in sources for each in (source, *source.joined)]
        info = {f"{part.member}.{part.table}": part.schema_version for source in every for part in source.parts}
        read = {
            (each.member, leaf.table) for each in self.fragments for leaf in each.leaves if isinstance(leaf, TableLeaf)
        }
        info |= {
            f"{part.member}.{part.table}": part.schema_version for part in beside if (part.member, part.table) in read
        }
        fragments: tuple[Fragment, ...]
        if self.operators:
            made: list[Fragment] = [*self.fragments, *self.operators]
            made.sort(key=lambda each: each.id)
            fragments, ends_in, known = tuple(made), self._ends_in, dict(self.known)
        else:
            fragments, ends_in, known = run_once(
                self.fragments, self._ends_in, self.known, lambda each: is_stable(self.trees[each.id])
            )
        plan = Plan("", fragments, ends_in, info, parameters, left_out, known)
        return msgspec.structs.replace(plan, plan_id=fingerprint(plan))

    # --- the rest in one Spark -------------------------------------------------------------------
    def add_rest(self, query: Query, sources: Sequence[Source], member: str, reason: str = "") -> None:
        """The whole tree at `member`; what it does not hold itself arrives over edges."""
        shape, tree = self._shape, query.tree.copy()
        leaves: list[Leaf] = []
        read_sources(self, tree, sources, member, leaves)
        order: str = "lanes" if shape.has_order else "any"
        keys: tuple[SortKey, ...] = ()
        # SORT BY with a LIMIT or an OFFSET would keep any rows, not the first ones.
        is_whole = shape.bounds_known and shape.limit is None and not shape.offset
        rows_max = self._most_rows(query, sources, member)
        # A union in that form is none that members admit.
        if self._mergeable and is_whole and not rows_max and isinstance(tree, exp.Select):
            order, keys = "merge", shape.order_keys or ()
            drop_limit(tree)
            put_sort_by(tree, shape.columns)
        edge = self.edge()
        is_bounded = self._is_bounded(shape.limit) or (shape.columns is not None and _is_one_row(tree))
        output = Output(
            edge, (self._site.initiator,), order, keys, is_bounded or rows_max > 0, 0 if is_bounded else rows_max
        )
        rows, size_bytes = _rounded(self.result.rows), _rounded(self.result.size_bytes)
        reason = "; ".join(filter(None, (reason, self.note)))
        self.add(member, tree, tuple(leaves), output, rows, size_bytes, self._is_narrow, reason, (self.result_key,))
        self._ends_in = Rows(edge, (member,))

    # --- the same at every part, finished by the initiator -----------------------------------------
    def add_parts(
        self,
        query: Query,
        source: Source,
        joined: Sequence[Source] = (),
        rows: Mapping[str, float] | None = None,
        known: Mapping[str, str] | None = None,
    ) -> None:
        """Each part's rows in order, the first of them only if there is a limit; the initiator does the rest.

        All rows of the `joined` sources go to each part; `rows` of each member are likely then. `known`: by member, the
        name of what it sends.
        """
        shape = self._shape
        tree, output, wanted = self._at_each(query)
        for part in source.parts:
            leaves: list[Leaf] = []
            own = at_part(self, tree, source, joined, part, leaves)
            count = _rounded(rows[part.member]) if rows is not None else source.estimated_rows(part)
            count = count if wanted is None else min(count, wanted)
            size_bytes = _rounded(count * self.result.row_bytes)
            name = known[part.member] if known is not None and wanted is None else ""
            self.add(
                part.member, own, tuple(leaves), output, count, size_bytes, self._is_narrow, source.reason, (name,)
            )
        senders = tuple(part.member for part in source.parts)
        self._ends_in = Rows(output.edge, senders, Finish(shape.order_keys or (), shape.offset, shape.limit))

    def _at_each(self, query: Query) -> tuple[exp.Query, Output, int | None]:
        """The query as each of several members runs it over its rows, where these go, and how many are wanted."""
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
        assert isinstance(tree, exp.Query)
        keys_sent = (shape.order_keys or ()) if order == "merge" else ()
        return tree, Output(self.edge(), (self._site.initiator,), order, keys_sent, self._is_bounded(wanted)), wanted

    # --- groups that members fold, as many as are needed ---------------------------------------------
    def add_elastic(self, found: Elastic, source: Source, reason: str) -> None:
        """Partial rows of each part go to whoever has their groups; each member runs the rest over its own."""
        edge, groups, forwards, shares = (self.edge() for _ in range(4))
        columns, members = found.columns, found.members
        for part in source.parts:
            leaves: list[Leaf] = []
            tree = at_part(self, found.sent, source, source.joined, part, leaves)
            output = self.scanned(Output(edge, members, "groups"), part, tree, leaves)
            rows, size_bytes = source.estimated_rows(part), source.estimated_bytes(part)
            others = {each.mentions[0]: each.parts for each in source.joined}
            known = groups_key(part, self.text_of(found.partial), others)
            self.add(part.member, tree, tuple(leaves), output, rows, size_bytes, False, source.reason, (known,))
        operator = GroupHere(found.keys, found.steps, members, forwards, shares)
        leaf = EdgeLeaf("", edge, columns, tuple(part.member for part in source.parts))
        rows = _rounded(sum(map(source.estimated_rows, source.parts)) / len(members))
        size_bytes = rows * source.partial_row_bytes
        for member in members:
            kept, why = Output(groups, (member,)), reason if member == members[0] else ""
            made = OperatorFragment(self.next_id, member, operator, (leaf,), kept, rows, size_bytes, why)
            self.operators.append(made)
        self._add_shares(found, groups)

    def _add_shares(self, found: Elastic, groups: int) -> None:
        """What is above the partial rows, over each member's own."""
        shape, query, scan, columns = self._shape, found.query, found.at.merge.scan, found.columns[:-1]
        if not isinstance(query.tree, exp.Select) and (shape.has_order or shape.limit is not None):
            query = dataclasses.replace(query, tree=_in_brackets(query.tree))
        tree, output, wanted = self._at_each(query)
        for member in found.members:
            own, leaf = tree.copy(), EdgeLeaf(self.placeholder(), groups, columns, (member,))
            replace_tables(own, {scan: [leaf.placeholder]}, {scan: columns})
            count = _rounded(self.result.rows / len(found.members))
            count = count if wanted is None else min(count, wanted)
            self.add(member, own, (leaf,), output, count, _rounded(count * self.result.row_bytes), False)
        self._ends_in = Rows(output.edge, found.members, Finish(shape.order_keys or (), shape.offset, shape.limit))

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
        receivers = (self._site.initiator,)
        output = Output(edge, receivers, order if merge.keys else "any", keys, self._is_bounded(wanted))
        for part in cut.parts:
            leaves: list[Leaf] = []
            own = at_part(self, tree, cut, joined, part, leaves)
            rows = merged.rows[part.member]
            known = groups_key(part, self.text_of(merge.tree), {each.mentions[0]: each.parts for each in joined})
            size_bytes = rows * merged.row_bytes
            self.add(part.member, own, tuple(leaves), output, rows, size_bytes, self._is_narrow, cut.reason, (known,))
        senders = tuple(part.member for part in cut.parts)
        self._ends_in = Rows(edge, senders, Finish(merge.keys, shape.offset, shape.limit, merge.steps))

    # --- pieces ------------------------------------------------------------------------------------
    def _is_bounded(self, limit: int | None) -> bool:
        """Does the plan bound this fragment's rows to one page?"""
        if self._shape.is_global_aggregate:
            return True
        return limit is not None and self._fits_page(limit)

    def _fits_page(self, rows: int) -> bool:
        # A star's columns are not counted here: taken as many.
        size_bytes = rows * _COLUMN_BYTES * (self._shape.columns or _MANY_COLUMNS)
        return rows <= self.limits.driver_rows and size_bytes <= self.limits.driver_bytes

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
        held_bytes = INFLATES * sum(source.widest_row() for source in mentions.values())
        return most if self._fits_page(most) and most * held_bytes <= self.limits.driver_bytes else 0


def _in_brackets(union: exp.Expr) -> exp.Select:
    """An order and bounds of a union, outside of it: within partitions no union is sorted."""
    inner = union.copy()
    clauses = {clause: inner.args.pop(clause, None) for clause in ("order", "limit", "offset")}
    named = exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier("named")))
    select = exp.Select(expressions=[exp.Star()], from_=exp.From(this=named))
    for clause, said in clauses.items():
        select.set(clause, said)
    return select


def _rounded(count: float) -> int:
    return int(min(count, _MOST))


def _is_one_row(tree: exp.Expr) -> bool:
    """`SELECT 1`: without FROM there is one row at most, if no generator stands in it."""
    return isinstance(tree, exp.Select) and tree.args.get("from_") is None
