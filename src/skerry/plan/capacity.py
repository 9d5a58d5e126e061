"""How many fragments each member hosts in a plan, beside the scans of its own tables, and what it gives up when full.

Rows are where they are, so scans are never too many. A query in FROM that its member has no room for moves on: its
tables are scanned, and the first member with room on their way to the rest of the query answers it (`apart.py`), else
the rest does. Joins (`joining.py`) and the root itself move on too. Keys that go ahead of rows and partial rows only
reduce traffic: those do not move, they are given up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import msgspec

from skerry.catalog.topology import Topology
from skerry.plan.mention import Mention, Node
from skerry.plan.mentions import BARRED
from skerry.plan.place import capacity_of
from skerry.plan.rules.apart import Apart
from skerry.plan.rules.joined import Joined

# So many are given up one by one; where more were, other forms of the query begin without them.
FEW = 4


class Barred(msgspec.Struct, frozen=True):
    """What is given up: `blocks`, names of queries in FROM that are not answered where they would be, and the keys of
    the `givers`. `told`: the same for people."""

    blocks: frozenset[str] = frozenset()
    givers: frozenset[str] = frozenset()
    told: tuple[str, ...] = ()

    def and_blocks(self, mentions: Sequence[Mention]) -> Barred:
        told = [f"no room at {each.block.member} for {each.alias.name}" for each in mentions if each.block is not None]
        return Barred(self.blocks.union(each.name for each in mentions), self.givers, (*self.told, *told))

    def and_keys(self, members: Collection[str]) -> Barred:
        told = [f"no room at {member} for keys" for member in members]
        return Barred(self.blocks, self.givers.union(members), (*self.told, *told))


def at_once(too_many: int) -> int:
    """How many are given up before the plan is made again: a few one by one, of many half."""
    return 1 if too_many <= FEW else too_many // 2


def mark(mentions: Iterable[Mention], barred: Barred) -> None:
    """Let copies of the tree know what was given up, as a query may have another name there (`Mentions.barred`)."""
    for each in mentions:
        ends = [name.removeprefix(each.name) for name in barred.blocks if f"{name}_".startswith(f"{each.name}_")]
        if ends:
            each.source.node.meta[BARRED] = tuple(ends)


def hosted(root: str, nodes: Iterable[Node], partials: Sequence[str]) -> Counter[str]:
    """Fragments that are no scans, by member. `nodes`: what comes to the root; `partials`: members of partial rows."""
    found = Counter({root: 1})
    found.update(member for member in partials if member != root)
    for node in nodes:
        _count(node, root, found, found)
    return found


def keys_hosted(root: str, nodes: Iterable[Node]) -> Counter[str]:
    """Those of them that send keys or bounds ahead."""
    found: Counter[str] = Counter()
    for node in nodes:
        _count(node, root, Counter(), found)
    return found


def blocks_hosted(root: str, mentions: Iterable[Mention], partials: Sequence[str]) -> Counter[str]:
    """The same before joins and keys are chosen."""
    found = hosted(root, (), partials)
    for each in mentions:
        if each.block is not None and each.block.member != root:
            found[each.block.member] += 1
            for node in each.block.inputs if isinstance(each.block, Apart) else ():
                _count(node, each.block.member, found, found)
    return found


def answered(node: Node, receiver: str) -> list[Mention]:
    """The queries in FROM that are answered at another member before their rows come to `receiver`."""
    block = node.mention.block
    if isinstance(block, Joined):
        return [each for one in block.inputs for each in answered(one.shipment.node, block.member)]
    return [node.mention] if block is not None and block.member != receiver else []


def crowded(counts: Counter[str], topology: Topology | None) -> dict[str, int]:
    """Members that would host more than they may, and how many more."""
    rooms = {member: capacity_of(topology, member) for member in counts}
    return {member: int(count - rooms[member]) for member, count in counts.items() if count > rooms[member]}


def _count(node: Node, receiver: str, found: Counter[str], keys: Counter[str]) -> None:
    block = node.mention.block
    if block is not None and block.member != receiver:
        found[block.member] += 1
    if isinstance(block, Joined):
        for each in block.inputs:
            _count(each.shipment.node, block.member, found, keys)
    elif isinstance(block, Apart):
        for inside in block.inputs:
            _count(inside, block.member, found, keys)
    _count_keys(node, Counter(member for member in node.mention.members if member != receiver), keys)


def _count_keys(node: Node, at: Counter[str], found: Counter[str]) -> None:
    """`at`: where the node's rows are looked up among keys, and how often."""
    times = sum(at.values())
    for child in [each for _, each in node.children] + [each for _, each in node.ranges]:
        for member in child.mention.members:
            found[member] += times - at[member]
        _count_keys(child, Counter(dict.fromkeys(child.mention.members, times)), found)
