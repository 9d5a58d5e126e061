"""Fragments, edges and placeholders of one plan, numbered as they are added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
from sqlglot import exp

from skerry.model.fragment import EdgeLeaf, Leaf, OperatorFragment, Output, SparkFragment
from skerry.model.limits import Limits
from skerry.model.table import Column, TablePart
from skerry.plan.bound import reads_tables_only
from skerry.plan.egress import EgressRules
from skerry.plan.estimate import Estimate, held_row_bytes, row_bytes
from skerry.plan.maker import make_fragment
from skerry.plan.mention import Mention, Node
from skerry.plan.source import Source
from skerry.sql.dialect import render

# Files are compressed, so a row may have more bytes than they show.
INFLATES = 4


class _Arrives(NamedTuple):
    """An edge that a member has been sent: every row of something, or the keys among these columns."""

    edge: int
    columns: tuple[Column, ...]
    senders: tuple[str, ...]
    is_keys: bool


class Fragments:
    """Collects them. `mentions`, by name, are those of the tree that is being read; `key_prefix` begins no name in it.

    `known`: the names of what each fragment sends (known.py), by its id. `egress`: fragments tell what it asks about.
    """

    def __init__(self, nonce: str, limits: Limits, egress: EgressRules | None = None) -> None:
        self.limits = limits
        self._egress = egress
        self.fragments: list[SparkFragment] = []
        self.operators: list[OperatorFragment] = []
        self.trees: dict[int, exp.Expr] = {}  # of the fragments, by id
        self.known: dict[int, tuple[str, ...]] = {}
        self.key_prefix = "key_"
        self.mentions: Mapping[str, Mention] = {}
        self._nonce = nonce
        self._next_edge = 1
        self._leaves = 0
        self._key_names: dict[tuple[str, str, int, str], str] = {}
        # By the identity of what they are of, which is kept with them.
        self._texts: dict[int, tuple[exp.Expr, str]] = {}
        self._scans: dict[tuple[int, str], tuple[Source, SparkFragment]] = {}
        # By receiver and by what the rows are of.
        self._arriving: dict[tuple[str, str], list[_Arrives]] = {}

    def add(
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
        fragment_id = self.next_id
        if any(known):
            self.known[fragment_id] = tuple(filter(None, known))
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
            egress=self._egress,
        )
        self.fragments.append(made)
        self.trees[fragment_id] = tree

    @property
    def next_id(self) -> int:
        return len(self.fragments) + len(self.operators) + 1

    def was_scanned(self, source: Source, part: TablePart) -> None:
        """The last fragment is a scan of one of the source's parts."""
        self._scans[id(source), part.member] = source, self.fragments[-1]

    def scanned_before(self, source: Source, part: TablePart, output: Output) -> bool:
        """Whether a fragment scans this already, for another receiver: then it is added once more as it is."""
        _, known = self._scans.get((id(source), part.member), (None, None))
        if known is None:
            return False
        fragment_id = self.next_id
        own = msgspec.structs.replace(known.output, edge=output.edge, receivers=output.receivers)
        self.fragments.append(msgspec.structs.replace(known, id=fragment_id, output=own))
        self.trees[fragment_id] = self.trees[known.id]
        return True

    def text_of(self, tree: exp.Expr) -> str:
        """Of a tree that nobody changes."""
        known = self._texts.get(id(tree))
        if known is None:
            known = self._texts[id(tree)] = tree, render(tree)
        return known[1]

    def scanned(self, output: Output, part: TablePart, tree: exp.Expr, leaves: Sequence[Leaf]) -> Output:
        """Where it goes, if it goes on as a part's few rows do: through the driver, which spares tasks of Python."""
        rows, limits = part.rows, self.limits
        if rows is None or rows >= limits.driver_rows or rows * INFLATES * held_row_bytes(part) > limits.driver_bytes:
            return output
        if len(leaves) != 1 or not reads_tables_only(tree, {leaf.placeholder: leaf for leaf in leaves}):
            return output
        # A part may have grown when its rows are asked for: its member looks.
        return msgspec.structs.replace(output, through_driver=True, rows_max=limits.driver_rows)

    def is_narrow(self, part: TablePart, mention: Mention) -> bool:
        """Whether rows of the mention are copies of the part's, not a block's, and those are short."""
        return mention.block is None and held_row_bytes(part) <= self.limits.narrow_row_bytes

    def edge(self) -> int:
        self._next_edge += 1
        return self._next_edge - 1

    def placeholder(self) -> str:
        self._leaves += 1
        return f"leaf_{self._leaves}_{self._nonce}"

    def arrives(
        self, receiver: str, of: str, edge: int, columns: tuple[Column, ...], senders: tuple[str, ...], is_keys: bool
    ) -> EdgeLeaf:
        """A leaf that reads the edge; others at the receiver may read it as well. `of`: equal for the same rows."""
        self._arriving.setdefault((receiver, of), []).append(_Arrives(edge, columns, senders, is_keys))
        return EdgeLeaf(self.placeholder(), edge, columns, senders)

    def arrived(self, receiver: str, of: str, columns: Sequence[Column], *, is_keys: bool) -> EdgeLeaf | None:
        """A leaf over an edge that brings the same to the receiver already.

        Keys are looked up only, so they may be among other columns, and come more than once; rows have to be the same
        rows of the same columns.
        """
        for each in self._arriving.get((receiver, of), ()):
            if set(columns) <= set(each.columns) if is_keys else each.columns == tuple(columns) and not each.is_keys:
                return EdgeLeaf(self.placeholder(), each.edge, each.columns, each.senders)
        return None

    def key_name(self, node: Node, number: int, member: str) -> str:
        """A name, which nothing in the query has, for the keys that reduce the node's rows at the member.

        It is the same whoever the rows are for, so that equal fragments have equal texts.
        """
        key = (self.key_prefix, node.rows_text, number, member)
        return self._key_names.setdefault(key, f"{self.key_prefix}{len(self._key_names) + 1}")

    def table_at(self, mention: str, member: str) -> str:
        """What the member calls the table of a mention."""
        return next(part.table for part in self.mentions[mention].parts if part.member == member)

    def is_small(self, estimate: Estimate, columns: Sequence[Column]) -> bool:
        """Should Spark be told that these columns of the relation are small?"""
        return estimate.rows * row_bytes(columns) <= self.limits.broadcast_bytes
