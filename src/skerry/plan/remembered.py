"""Under which names the size of a fragment is remembered, so that plans of the same rows find it (`observed.py`)."""

from __future__ import annotations

from collections.abc import Sequence

from skerry.model.table import TablePart
from skerry.plan.known import width_key
from skerry.plan.mention import Mention, Node
from skerry.plan.observed import at_least, distinct_of
from skerry.plan.rules.joined import Joined


def sent_keys(
    node: Node, part: TablePart, columns: Sequence[str], planned: Sequence[str], *, is_distinct: bool
) -> tuple[str, ...]:
    """Under which names the size of a fragment of the node is to be remembered."""
    index = node.mention.parts.index(part)
    own, plain = node.known[index], node.mention.known[index]
    if not own:
        return ()
    found = [at_least(own) if is_distinct else own]
    if is_distinct and len(columns) == 1:
        found.append(distinct_of(own, columns[0]))
    if planned:
        found.append(width_key(plain, planned))
    if own != plain:
        found.append(at_least(plain))
    if node.mention.join_key:
        is_join = not is_distinct and own == plain and not _is_reduced_from_outside(node.mention)
        found.append(node.mention.join_key if is_join else at_least(node.mention.join_key))
    return tuple(found)


def _is_reduced_from_outside(group: Mention) -> bool:
    """Have tables that are joined lost rows to tables that are not?"""
    block = group.block
    assert isinstance(block, Joined)
    nodes = [each.shipment.node for each in block.inputs]
    while nodes:
        node = nodes.pop()
        if isinstance(node.mention.block, Joined) and _is_reduced_from_outside(node.mention):
            return True
        below = [child for _, child in (*node.children, *node.ranges)]
        if any(child.mention.name not in block.names for child in below):
            return True
        nodes += below
    return False
