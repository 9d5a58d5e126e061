"""Which rows of a table need not travel, because nothing elsewhere matches them.

A mention that would be sent is reduced by the mentions it joins: their distinct keys go to it first, or are looked up
in place where both are at one site; those mentions are reduced likewise before they give their keys. The tree of
reductions starts as a spanning tree of the join and loses every branch that does not pay for itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import msgspec

from skerry.model.limits import SAME_SHARE
from skerry.plan.estimate import Estimate, Estimator
from skerry.plan.known import width_key
from skerry.plan.mention import (
    NOTHING,
    Arriving,
    Mention,
    Node,
    Pair,
    Pairs,
    Shipment,
    distinct_rows,
    sent_rows,
    width_of,
)
from skerry.plan.observed import distinct_of
from skerry.plan.place import JOB_S, Cost, Costs
from skerry.plan.rules.ranges import between, range_pairs

# One that is looked up in place costs a little work, and a table that is read once more.
LOOK_UP_S, _ROW_S = 0.0002, 2e-9
# So many rows tell how wide they are; Arrow's buffers are rounded up.
_ROWS_TELLING = 16
# A tree of reductions has at most so many levels and mentions; a query with more mentions than that has no trees.
_DEPTH, _NODES_MAX, _MENTIONS_MAX = 4, 10, 40


class Reducer:
    """Finds the best reduction of each mention for each place that it may be sent to."""

    def __init__(
        self,
        mentions: Mapping[str, Mention],
        costs: Costs,
        estimator: Estimator,
        has_ranges: bool = False,
        full: frozenset[str] = frozenset(),
    ) -> None:
        """`has_ranges`: bounds may go ahead where keys do not (ranges.py). `full`: members that give neither."""
        self._full = full
        self._has_ranges = has_ranges
        self._mentions = mentions
        self._costs = costs
        self._estimator = estimator
        self._scans: dict[str, Estimate] = {}
        self._plain: dict[str, Node] = {}
        self._grown: dict[str, Node] = {}
        # Shares of parts, key columns, and whether any reduced rows have been seen.
        self._asked: dict[str, tuple[list[float], list[str], bool]] = {}
        self._widths: dict[tuple[str, tuple[str, ...]], float | None] = {}
        self._known_shares: dict[str, dict[str, float]] = {}
        # Trees without a branch are looked at for every receiver, and share most of their nodes.
        self._lesser: dict[Node, list[Node]] = {}
        self._keys_s: dict[tuple[Node, str, Pairs, Arriving], float] = {}

    def plain(self, mention: Mention) -> Node:
        found = self._plain.get(mention.name)
        if found is None:
            found = self._plain[mention.name] = Node(mention, (), self._scan(mention))
        return found

    def shipment(
        self,
        mention: Mention,
        receiver: str,
        columns: Sequence[str],
        reduces: bool,
        arriving: frozenset[str] = frozenset(),
    ) -> Shipment:
        """The columns of the mention at `receiver`, reduced as far as that pays.

        `arriving`: signatures of what comes to the receiver beside it, rows that give it keys too.
        """
        reduces = reduces and len(self._mentions) <= _MENTIONS_MAX and self._is_worth(mention, receiver, columns)
        there = Arriving(receiver, arriving) if arriving else NOTHING
        node = self._pruned(mention, receiver, columns, there) if reduces else self.plain(mention)
        if self._has_ranges and len(self._mentions) <= _MENTIONS_MAX:
            # A branch of keys may be worth less than the bounds of the same mention.
            trees = [node, *(self._node(mention, _but(node.children, each)) for each in node.children)]
            ranged = [self._ranged(tree, receiver, columns, there) for tree in trees]
            cost_s, node = self._least(ranged, receiver, columns, there)
        else:
            cost_s = self.cost_s(node, receiver, columns, there)
        width = self._width(node, columns)
        rows = sent_rows(node, columns) * sum(
            share for member, share in self._shares(mention).items() if member != receiver
        )
        sent_bytes = self._sent_bytes(node, receiver, columns, there)
        return Shipment(node, cost_s, rows, rows * width, tuple(columns), sent_bytes)

    def asked(self, mention: Mention, receiver: str) -> set[str]:
        """Mentions elsewhere whose keys come to the receiver in the largest tree that reduces this one elsewhere."""
        found: set[str] = set()
        if receiver in mention.members or mention.name not in self._grown:  # nobody found it worth reducing
            return found
        # Whoever is asked first is not at the receiver, and asks of its own children only.
        below = [child for _, child in self._grow(mention).children]
        while below:
            node = below.pop()
            if receiver in node.mention.members:
                found.update(each.mention.name for _, each in node.children if receiver not in each.mention.members)
            below += [each for _, each in node.children]
        return found

    def _is_worth(self, mention: Mention, receiver: str, columns: Sequence[str]) -> bool:
        """Do its rows cost more than the least that a reduction does?"""
        plain = self.plain(mention)
        size_bytes = sent_rows(plain, columns) * self._width(plain, columns)
        shares = [(member, share) for member, share in self._shares(mention).items() if member != receiver]
        empty_s = sum(self._costs.ship_s(member, receiver, 0.0) for member, _ in shares)
        rows_s = sum(self._costs.ship_s(member, receiver, size_bytes * share) for member, share in shares)
        return rows_s - empty_s > LOOK_UP_S

    def saved_s(self, receiver: str, shipments: Sequence[Shipment]) -> float:
        """What keys and bounds spare these rows on their way, those of tables that are joined before aside."""
        return sum(
            self.cost_s(self.plain(each.node.mention), receiver, each.columns)
            - self.cost_s(each.node, receiver, each.columns)
            for each in shipments
        )

    def branches(self, node: Node, host: str) -> list[tuple[str, float, float]]:
        """What reduces a mention: the other's name, the share of rows that it leaves, and what its keys cost at `host`.

        Other mentions that are joined with this one are reduced by the same.
        """
        whole = self._scan(node.mention)
        found: list[tuple[str, float, float]] = []
        for pairs, child in node.children:
            left = self._node(node.mention, ((pairs, child),)).estimate
            found.append((child.mention.name, left.rows / max(1.0, whole.rows), self._keys_cost(child, host, pairs)))
        return found

    def _shares(self, mention: Mention) -> dict[str, float]:
        found = self._known_shares.get(mention.name)
        if found is None:
            found = self._known_shares[mention.name] = _shares(mention)
        return found

    # --- the tree ----------------------------------------------------------------------------------
    def _scan(self, mention: Mention) -> Estimate:
        found = self._scans.get(mention.name)
        if found is None:
            filters = [condition.plain for condition in mention.conditions]
            wanted = {own for pairs in mention.arcs.values() for own, _ in pairs}
            # Other mentions of the table may travel as one with it.
            table = mention.scan.table
            for each in (mention, *self._mentions.values()):
                if each.scan.table.name == table.name and each.scan.table.member == table.member:
                    wanted.update(each.scan.columns)
            found = self._estimator.scan(mention.parts, filters, sorted(wanted))
            found = self._scans[mention.name] = self._as_seen(Node(mention, (), found), found)
        return found

    def _width(self, node: Node, columns: Sequence[str]) -> float:
        """Bytes of these columns of a row, or of what was sent in their place."""
        observed, mention = self._estimator.observed, node.mention
        if not observed:
            return width_of(node.estimate, columns)
        key = mention.name, tuple(columns)
        if key not in self._widths:
            sizes = [observed.size(width_key(each, columns)) for each in mention.known if each]
            rows = sum(size.rows for size in sizes if size is not None)
            size_bytes = sum(size.size_bytes for size in sizes if size is not None)
            self._widths[key] = size_bytes / rows if rows >= _ROWS_TELLING else None
        seen = self._widths[key]
        return seen if seen is not None else width_of(node.estimate, columns)

    def _as_seen(self, node: Node, whole: Estimate) -> Estimate:
        """With the rows, and the values of keys, that were seen when the same was sent."""
        observed, estimate = self._estimator.observed, node.estimate
        if not observed:
            return estimate
        mention = node.mention
        asked = self._asked.get(mention.name)
        if asked is None:
            held = self._shares(mention)
            columns = {own.lower() for pairs in mention.arcs.values() for own, _ in pairs}
            if mention.is_set and len(mention.scan.columns) == 1:
                columns.add(mention.scan.columns[0].lower())
            shares = [held[part.member] for part in mention.parts]
            asked = self._asked[mention.name] = shares, sorted(columns), observed.has_least(mention.known)
        shares, keys, was_reduced = asked
        if (node.children or node.ranges) and not was_reduced:
            return estimate
        estimate = self._estimator.resize(estimate, observed.rows(node.known, shares, estimate.rows), whole)
        for column in keys:
            values = observed.seen([distinct_of(key, column) if key else "" for key in node.known], shares)
            if values is not None and column in estimate.columns:
                known = msgspec.structs.replace(estimate.columns[column], ndv=max(1.0, values))
                estimate = msgspec.structs.replace(estimate, columns={**estimate.columns, column: known})
        return estimate

    def _grow(self, mention: Mention) -> Node:
        """A spanning tree over the arcs; those that need no link come first."""
        found = self._grown.get(mention.name)
        if found is not None:
            return found
        taken = {mention.name, *(mention.block.names if mention.block is not None else ())}
        below: dict[str, list[str]] = {}
        level = [mention]
        for _ in range(_DEPTH):
            following: list[Mention] = []
            for each in level:
                others = sorted(each.arcs, key=lambda name: (self._mentions[name].members != each.members, name))
                for name in others:
                    if name not in taken and len(taken) < _NODES_MAX and self._gives(name, each):
                        taken.add(name)
                        below.setdefault(each.name, []).append(name)
                        following.append(self._mentions[name])
            level = following
        found = self._grown[mention.name] = self._subtree(mention, below)
        return found

    def _gives(self, name: str, receiver: Mention) -> bool:
        """May its keys go ahead, and has every member that would send them to another room for that?"""
        if not self._mentions[name].gives_keys:
            return False
        givers = self._full & set(self._mentions[name].members)
        return not any(other != giver for giver in givers for other in receiver.members)

    def _subtree(self, mention: Mention, below: Mapping[str, list[str]]) -> Node:
        children = [
            (mention.arcs[name], self._subtree(self._mentions[name], below)) for name in below.get(mention.name, ())
        ]
        return self._node(mention, tuple(each for each in children if _may_reduce(mention, each[1])))

    def _node(self, mention: Mention, children: tuple[tuple[Pairs, Node], ...]) -> Node:
        estimate = self._scan(mention)
        for pairs, child in children:
            estimate = self._estimator.semi(estimate, child.estimate, [(a.lower(), b.lower()) for a, b in pairs])
        node = Node(mention, children, estimate)
        if children and self._estimator.observed:
            return Node(mention, children, self._as_seen(node, self._scan(mention)))
        return node

    def _pruned(self, mention: Mention, receiver: str, columns: Sequence[str], there: Arriving) -> Node:
        node = self._grow(mention)
        cost_s = self.cost_s(node, receiver, columns, there)
        seen = [(cost_s, node)]
        while True:
            fewer = [(self.cost_s(each, receiver, columns, there), each) for each in self._without(node)]
            seen += fewer
            best = min(fewer, key=lambda item: item[0], default=None)
            if best is None or best[0] > cost_s:
                break
            cost_s, node = best
        # A tree that was left on the way may cost the same and send less.
        return self._least([(cost_s, node), *seen], receiver, columns, there)[1]

    def _least(
        self, found: Sequence[tuple[float, Node]], receiver: str, columns: Sequence[str], there: Arriving
    ) -> tuple[float, Node]:
        """The tree that costs least; among those that cost the same, the one that sends the fewest bytes."""
        best_s, best = min(found, key=lambda item: item[0])
        near = [item for item in found if item[0] <= best_s * (1 + SAME_SHARE) and item[1] is not best]
        if near:
            cost = Cost(best_s, self._sent_bytes(best, receiver, columns, there))
            for each_s, each in near:
                other = Cost(each_s, self._sent_bytes(each, receiver, columns, there))
                if other.is_less(cost):
                    best, cost = each, other
            best_s = cost.cost_s
        return best_s, best

    def _ranged(self, node: Node, receiver: str, columns: Sequence[str], there: Arriving) -> tuple[float, Node]:
        """With the bounds of others that give no keys, as far as that pays."""
        mention = node.mention
        cost_s = self.cost_s(node, receiver, columns, there)
        for name in sorted(mention.arcs.keys() - {child.mention.name for _, child in node.children}):
            if not self._gives(name, mention):
                continue
            other = self.plain(self._mentions[name])
            for pair in range_pairs(mention, other.mention):
                estimate = between(node.estimate, other.estimate, pair)
                if estimate is None:
                    continue
                ranged = Node(mention, node.children, estimate, (*node.ranges, (pair, other)))
                ranged = dataclasses.replace(ranged, estimate=self._as_seen(ranged, node.estimate))
                ranged_s = self.cost_s(ranged, receiver, columns, there)
                if ranged_s < cost_s:
                    node, cost_s = ranged, ranged_s
        return cost_s, node

    def _without(self, node: Node) -> list[Node]:
        """Every tree that lacks one branch."""
        known = self._lesser.get(node)
        if known is not None:
            return known
        found = self._lesser[node] = []
        for index, (pairs, child) in enumerate(node.children):
            before, after = node.children[:index], node.children[index + 1 :]
            found.append(self._node(node.mention, before + after))
            for fewer in self._without(child):
                found.append(self._node(node.mention, (*before, (pairs, fewer), *after)))
        return found

    # --- its cost ----------------------------------------------------------------------------------
    def cost_s(self, node: Node, receiver: str, columns: Sequence[str], there: Arriving = NOTHING) -> float:
        """The cost of the mention's rows at `receiver`; parts that are there already are read as they are."""
        size_bytes = sent_rows(node, columns) * self._width(node, columns)
        total_s = 0.0
        for member, share in self._shares(node.mention).items():
            if member != receiver:
                total_s += self._costs.ship_s(member, receiver, size_bytes * share)
                total_s += sum(self._keys_cost(child, member, pairs, there) for pairs, child in node.children)
                total_s += sum(self._range_cost(other, member, pair) for pair, other in node.ranges)
        return total_s

    def _sent_bytes(self, node: Node, receiver: str, columns: Sequence[str], there: Arriving) -> float:
        """Over links, likewise."""
        size_bytes, costs = sent_rows(node, columns) * self._width(node, columns), self._costs
        total = 0.0
        for member, share in self._shares(node.mention).items():
            if member != receiver:
                total += costs.sent_bytes(member, receiver, size_bytes * share)
                total += sum(self._keys_bytes(child, member, pairs, there) for pairs, child in node.children)
                for pair, other in node.ranges:
                    width = 2 * width_of(other.estimate, pair[1:])
                    total += sum(costs.sent_bytes(each, member, width) for each in other.mention.members)
        return total

    def _range_cost(self, node: Node, receiver: str, pair: Pair) -> float:
        """The cost of one row with the least and the greatest key, from each member that has some."""
        size_bytes = 2 * width_of(node.estimate, pair[1:])
        total_s = LOOK_UP_S + self._read_rows(node.mention) * _ROW_S
        for member in node.mention.members:
            if member != receiver:
                total_s += self._costs.ship_s(member, receiver, size_bytes) + JOB_S
        return total_s

    def _read_rows(self, mention: Mention) -> float:
        """Rows that Spark reads for it; a block reads those of its tables."""
        if mention.block is not None:
            return sum(self._read_rows(self._mentions[name]) for name in mention.block.names)
        return float(sum(part.rows or 0 for part in mention.parts))

    def _keys_bytes(self, node: Node, receiver: str, pairs: Pairs, there: Arriving) -> float:
        total, is_there = 0.0, there.has(node, receiver) and not node.children
        size_bytes = self._key_bytes(node, pairs)
        for member, share in self._shares(node.mention).items():
            if not is_there:
                total += self._costs.sent_bytes(member, receiver, size_bytes * share)
            total += sum(self._keys_bytes(child, member, own, there) for own, child in node.children)
        return total

    def _key_bytes(self, node: Node, pairs: Pairs) -> float:
        keys = list(dict.fromkeys(other.lower() for _, other in pairs))
        return distinct_rows(node.estimate, keys) * width_of(node.estimate, keys)

    def _keys_cost(self, node: Node, receiver: str, pairs: Pairs, there: Arriving = NOTHING) -> float:
        known = self._keys_s.get((node, receiver, pairs, there))
        if known is not None:
            return known
        if there.has(node, receiver) and not node.children:
            return LOOK_UP_S
        size_bytes = self._key_bytes(node, pairs)
        total_s = LOOK_UP_S + self._read_rows(node.mention) * _ROW_S
        for member, share in self._shares(node.mention).items():
            if member != receiver:
                total_s += self._costs.ship_s(member, receiver, size_bytes * share) + JOB_S
            total_s += sum(self._keys_cost(child, member, own, there) for own, child in node.children)
        self._keys_s[node, receiver, pairs, there] = total_s
        return total_s


def _but(children: tuple[tuple[Pairs, Node], ...], one: tuple[Pairs, Node]) -> tuple[tuple[Pairs, Node], ...]:
    return tuple(each for each in children if each is not one)


def _may_reduce(mention: Mention, child: Node) -> bool:
    """Keys of a whole table reduce another only if statistics say so: a guess would send them for nothing."""
    if child.children or child.mention.conditions:
        return True
    return all(part.stats is not None for each in (mention, child.mention) for part in each.parts)


def _shares(mention: Mention) -> dict[str, float]:
    """Which share of the rows each member holds."""
    rows = {part.member: 0.0 for part in mention.parts}
    for part in mention.parts:
        rows[part.member] += part.rows if part.rows is not None else part.size_bytes
    total = sum(rows.values())
    return {member: count / total if total else 1 / len(rows) for member, count in rows.items()}
