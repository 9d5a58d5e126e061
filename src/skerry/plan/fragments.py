"""Fragments, edges and placeholders of one plan, numbered as they are added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlglot import exp

from skerry.model.fragment import EdgeLeaf, Leaf, Output, SparkFragment
from skerry.model.limits import Limits
from skerry.model.table import Column, TablePart
from skerry.plan.egress import EgressRules
from skerry.plan.estimate import Estimate, held_row_bytes, row_bytes
from skerry.plan.maker import make_fragment
from skerry.plan.mention import Mention, Node


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
        self.trees: dict[int, exp.Expr] = {}  # of the fragments, by id
        self.known: dict[int, tuple[str, ...]] = {}
        self.key_prefix = "key_"
        self.mentions: Mapping[str, Mention] = {}
        self._nonce = nonce
        self._next_edge = 1
        self._leaves = 0
        self._key_names: dict[tuple[str, str, int, str], str] = {}
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
        fragment_id = len(self.fragments) + 1
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
