"""What may leave a site: marks of tables and budgets of links, and the check of a plan against them.

It guards against plans and mistakes. Who may ask for what is another matter: a client of the table's own member gets
its rows, and a filter that keeps everything is a filter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import assert_never

import msgspec

from skerry.catalog.topology import Topology
from skerry.model.amounts import listed
from skerry.model.config import Config, Leaves, MemberConfig
from skerry.model.errors import UserError
from skerry.model.fragment import EdgeLeaf, Fragment, Leaf, Plan, TableLeaf, VirtualLeaf
from skerry.model.names import base_of, schema_of
from skerry.model.table import Column
from skerry.plan.treatment import RANK

_WANTED = {
    Leaves.FILTERED: "without a condition on it",
    Leaves.AGGREGATED: "that are not aggregated",
    Leaves.NEVER: "",
}


# The columns of a table at a member; None when nobody knows them.
ColumnsOf = Callable[[str, str], tuple[Column, ...] | None]


def _unknown(member: str, table: str) -> None:
    return None


class EgressRules(msgspec.Struct, frozen=True):
    """`marks`: of the tables that are not free, by (member, table) in lower case.

    A plan is checked by what its makers told, so they have to know the rules as well (`Site.egress`).
    """

    marks: Mapping[tuple[str, str], Leaves]
    topology: Topology
    columns_of: ColumnsOf = _unknown

    @property
    def marked(self) -> frozenset[str]:
        """Members with such tables, in lower case."""
        return frozenset(member for member, _ in self.marks)

    @property
    def is_free(self) -> bool:
        return not self.marks and not self.topology.budgets

    def mark(self, member: str, table: str) -> Leaves:
        return mark_of(self.marks, member, table) or Leaves.FREELY

    def columns(self, member: str, leaves: Sequence[Leaf]) -> dict[str, tuple[Column, ...]]:
        """Those of a fragment's leaves, by placeholder, where they are known."""
        found = {}
        for leaf in leaves:
            columns = self.columns_of(member, leaf.table) if isinstance(leaf, TableLeaf) else leaf.columns
            if columns:
                found[leaf.placeholder] = columns
        return found


def egress_rules(config: Config, topology: Topology, columns_of: ColumnsOf = _unknown) -> EgressRules:
    """The rules that a configuration has."""
    return EgressRules(marks_of(config.members.values()), topology, columns_of)


def marks_of(members: Iterable[MemberConfig]) -> dict[tuple[str, str], Leaves]:
    """Of the tables of these members that are not free (see EgressRules); a schema's is under its name and a dot."""
    found: dict[tuple[str, str], Leaves] = {}
    for member in members:
        whole = {f"{name}.": schema.leaves for name, schema in member.schemas.items()}
        for name, leaves in (whole | {name: table.leaves for name, table in member.tables.items()}).items():
            if leaves is not Leaves.FREELY:
                found[member.name.lower(), name.lower()] = leaves
    return found


def mark_of(marks: Mapping[tuple[str, str], Leaves], member: str, table: str) -> Leaves | None:
    """Of a table, of any version of it, or of its schema; None for one that is free."""
    member, base = member.lower(), base_of(table).lower()
    return marks.get((member, base)) or marks.get((member, f"{schema_of(base)}."))


def check_egress(plan: Plan, rules: EgressRules) -> None:
    """UserError, naming the edge, for a plan that would break a rule."""
    if rules.marks:
        check_marks(plan, rules.marks)
    if rules.topology.budgets:
        _check_budgets(plan, rules.topology)


# --- tables --------------------------------------------------------------------------------------
def check_marks(plan: Plan, marks: Mapping[tuple[str, str], Leaves]) -> None:
    """UserError, naming the edge, for rows that may not leave as they are.

    Rows are looked at where they leave first: what has been allowed out is no longer the site's alone.
    """
    # By edge and member: what the rows of own tables are in it, before they leave.
    held: dict[tuple[int, str], dict[str, Leaves]] = {}
    for fragment in _in_order(plan):
        inside = _inside(fragment, marks, held)
        if fragment.member in fragment.output.receivers:
            kept = held.setdefault((fragment.output.edge, fragment.member), {})
            for table, done in inside.items():
                kept[table] = min(done, kept.get(table, done), key=RANK.__getitem__)
        others = [receiver for receiver in fragment.output.receivers if receiver != fragment.member]
        for table, done in inside.items() if others else ():
            mark = mark_of(marks, fragment.member, table) or Leaves.FREELY
            if RANK[done] < RANK[mark]:
                raise _refused(fragment, others, table, mark)


def _in_order(plan: Plan) -> list[Fragment]:
    """Fragments after those whose rows they read."""
    feeding = plan.feeding()
    found: dict[int, Fragment] = {}

    def visit(fragment: Fragment) -> None:
        if fragment.id in found:
            return
        for leaf in fragment.leaves:
            for sending in feeding.get((leaf.edge, fragment.member), ()) if isinstance(leaf, EdgeLeaf) else ():
                visit(sending)
        found[fragment.id] = fragment

    for fragment in plan.fragments:
        visit(fragment)
    return list(found.values())


def _inside(
    fragment: Fragment, marks: Mapping[tuple[str, str], Leaves], held: Mapping[tuple[int, str], Mapping[str, Leaves]]
) -> dict[str, Leaves]:
    """The marked tables of this member whose rows are in the fragment's, and what was done to them."""
    found: dict[str, Leaves] = {}
    for leaf, done in zip(fragment.leaves, _done(fragment), strict=True):
        tables: Mapping[str, Leaves]
        match leaf:
            case TableLeaf(_, table):
                tables = {table: Leaves.FREELY} if mark_of(marks, fragment.member, table) else {}
            case EdgeLeaf(_, edge):
                tables = held.get((edge, fragment.member), {})
            case VirtualLeaf():
                tables = {}
            case never:
                assert_never(never)
        for table, before in tables.items():
            after = max(before, done, key=RANK.__getitem__)
            found[table] = min(after, found.get(table, after), key=RANK.__getitem__)
    return found


def _done(fragment: Fragment) -> Sequence[Leaves]:
    """By leaf. Where the maker told nothing, rows are taken to be the table's own."""
    told = fragment.facts.done if fragment.facts is not None else ()
    return told or (Leaves.FREELY,) * len(fragment.leaves)


def _refused(fragment: Fragment, receivers: Sequence[str], table: str, mark: Leaves) -> UserError:
    rows = f"rows of {table} {_WANTED[mark]}".rstrip()
    where = f"from {fragment.member} to {listed(receivers)}"
    edge = f"fragment {fragment.id}, edge {fragment.output.edge}"
    key = f"members.{fragment.member}.tables.{table}.leaves"
    advice = f"ask member {fragment.member} for {fragment.member}.{table}"
    if mark is not Leaves.NEVER:
        advice += ", or aggregate its rows" + (" or filter them" if mark is Leaves.FILTERED else "")
    return UserError(
        f"the query would send {rows} {where} ({edge}), and the table is marked leaves: {mark} ({key})",
        suggestion=advice,
    )


# --- budgets -------------------------------------------------------------------------------------
def _check_budgets(plan: Plan, topology: Topology) -> None:
    """By the estimates: bytes of all edges whose rows pass a link, uncompressed."""
    # Rows for several receivers pass a link that their ways share once for each of them.
    passing: dict[tuple[str, str], list[tuple[Fragment, str]]] = {}
    for fragment in plan.fragments:
        for to in fragment.output.receivers:
            for hop in pairwise(topology.route(fragment.member, to)) if to != fragment.member else ():
                passing.setdefault(hop, []).append((fragment, to))
    for (sender, receiver), sent in passing.items():
        budget = topology.budgets.get((sender, receiver))
        total = sum(fragment.estimated_bytes for fragment, _ in sent)
        if budget is not None and total > budget:
            largest, to = max(sent, key=lambda each: each[0].estimated_bytes)
            edge = f"edge {largest.output.edge} (fragment {largest.id} at {largest.member})"
            raise UserError(
                f"the query would send about {total} bytes over the link from {sender} to {receiver}, whose "
                f"query_bytes is {budget}; most of them on {edge} to {to}",
                suggestion="filter or aggregate more, or run ANALYZE TABLE if the estimate is wrong",
            )
