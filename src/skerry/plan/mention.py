"""A mention of a table in a query, what reduces its rows, and how they come to a member.

`mentions.py` finds the mentions of a tree, `rules/semijoin.py` what reduces them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from sqlglot import exp

from skerry.model.table import TablePart
from skerry.plan.block import Block
from skerry.plan.condition import Condition
from skerry.plan.estimate import Estimate
from skerry.plan.known import name_of, table_text
from skerry.plan.observed import digest, scan_key, texts_of
from skerry.plan.place import Cost
from skerry.sql.dialect import render
from skerry.sql.scope import Scope, Source
from skerry.sql.statement import Scan

# Values of these types are equal at every site when Spark says so at one.
_KEYS = frozenset("boolean tinyint smallint int bigint string date timestamp timestamp_ntz".split())

# Two columns that are equal: one of a mention, one of another.
Pair = tuple[str, str]
Pairs = tuple[Pair, ...]


@dataclass(eq=False)
class Mention:
    """`arcs` has, for each other mention, the pairs (own column, its column) that must be equal.

    A query in FROM that is answered at one site is a mention too: its `block`. `is_set`: how often a row comes does
    not matter. `computed`: columns of `scan` that are made where the table is. `reads`: what else its rows depend on,
    and `join_key`: the name of what it joins, for sizes that were seen before.
    """

    scan: Scan
    source: Source
    scope: Scope
    parts: tuple[TablePart, ...]
    conditions: list[Condition] = field(default_factory=list)
    arcs: dict[str, Pairs] = field(default_factory=dict)
    block: Block | None = None
    is_set: bool = False
    computed: dict[str, exp.Expr] = field(default_factory=dict)
    reads: tuple[str, ...] = ()
    join_key: str = ""

    @cached_property
    def known(self) -> tuple[str, ...]:
        """The names of what its parts would send."""
        return _mention_keys(self)

    @property
    def name(self) -> str:
        return self.scan.node_name

    @property
    def alias(self) -> exp.Identifier:
        """As the tree writes it."""
        return self.source.node.args["alias"].this  # type: ignore[no-any-return]

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.member for part in self.parts))

    @property
    def gives_keys(self) -> bool:
        """May its keys go ahead? They would be those of other rows than come later if it gave other rows each time."""
        return self.block is None or self.block.is_stable


@dataclass(frozen=True, eq=False)
class Node:
    """A mention reduced by others: (pairs of equal columns, the other).

    ranges: (own column, the other's column, the other), of which only the least and greatest values go ahead.
    """

    mention: Mention
    children: tuple[tuple[Pairs, Node], ...]
    estimate: Estimate
    ranges: tuple[tuple[Pair, Node], ...] = ()

    @cached_property
    def known(self) -> tuple[str, ...]:
        """The names of what its parts would send."""
        return _node_keys(self)

    @cached_property
    def rows_text(self) -> str:
        """Equal for nodes of the same rows, whatever is computed from them."""
        mention, block = self.mention, self.mention.block
        filters = [mention.name if each.subquery else each.text for each in mention.conditions]
        below = sorted(f"{pairs}={child.rows_text}" for pairs, child in self.children)
        below += sorted(f"{pair} in the range of {other.rows_text}" for pair, other in self.ranges)
        if mention.is_set:
            filters.append("set")
        if block is not None and not block.is_stable:
            filters.append(mention.name)  # another one's rows may be others, however alike they are
        table = mention.scan.table
        of = f"({block.text})" if block is not None else f"{table.member}.{table.name}"
        return f"{of}[{' AND '.join(filters)}]({', '.join(below)})"


@dataclass(frozen=True)
class Shipment:
    """How a mention comes to a member, with these columns of it.

    `sent_bytes`: over links, of its rows and of all that goes ahead of them.
    """

    node: Node
    cost_s: float
    rows: float
    size_bytes: float
    columns: tuple[str, ...]
    sent_bytes: float

    @property
    def cost(self) -> Cost:
        return Cost(self.cost_s, self.sent_bytes)


def is_key(type_: str) -> bool:
    return type_ in _KEYS or type_.startswith("decimal(")


def distinct_rows(estimate: Estimate, columns: Sequence[str]) -> float:
    """Rows that differ in these columns."""
    known = (estimate.columns.get(column.lower()) for column in columns)
    return min(estimate.rows, math.prod(each.ndv if each is not None else estimate.rows for each in known))


def sent_rows(node: Node, columns: Sequence[str]) -> float:
    """Rows that travel: of a set those that differ."""
    return distinct_rows(node.estimate, columns) if node.mention.is_set else node.estimate.rows


def width_of(estimate: Estimate, columns: Sequence[str]) -> float:
    """Bytes of these columns of a row."""
    known = estimate.columns
    return sum(known[name.lower()].width_bytes if name.lower() in known else 24.0 for name in columns)


def signature(node: Node) -> str:
    """Equal for mentions of which the same rows travel."""
    computed = [f"{name}: {render(value)}" for name, value in node.mention.computed.items()]
    return f"{node.rows_text} with {', '.join(computed)}" if computed else node.rows_text


class Arriving(NamedTuple):
    """What comes to a member anyway, by signature: its keys need not come there again."""

    member: str
    rows: frozenset[str]

    def has(self, node: Node, member: str) -> bool:
        return member == self.member and bool(self.rows) and signature(node) in self.rows


NOTHING = Arriving("", frozenset())


def _mention_keys(mention: Mention) -> tuple[str, ...]:
    """The rows of each part that pass the mention's conditions."""
    filters = [condition.plain for condition in mention.conditions]
    if mention.block is None and not mention.reads:
        return tuple(scan_key(part.member, part.table, part.files_version, filters) for part in mention.parts)
    texts = sorted(text for condition in filters for text in texts_of(condition))
    if mention.block is not None:
        return (name_of("block", mention.block.known_as, *mention.reads, "where", *texts),)
    return tuple(name_of(table_text(part), *mention.reads, "where", *texts) for part in mention.parts)


def _node_keys(node: Node) -> tuple[str, ...]:
    """The same of a mention that others reduce."""
    own = node.mention.known
    if not node.children and not node.ranges:
        return own
    below = [f"{pairs} among {_whole(child)}" for pairs, child in node.children]
    below += [f"{pair} in the range of {_whole(other)}" for pair, other in node.ranges]
    if any(text.endswith(" ") for text in below):
        return ("",) * len(own)
    return tuple(name_of(key, *sorted(below)) if key else "" for key in own)


def _whole(node: Node) -> str:
    return digest(node.known) if all(node.known) else ""
