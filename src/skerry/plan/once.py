"""Equal fragments run once: their rows go to every member that wants them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, assert_never

import msgspec

from skerry.model.fragment import EdgeLeaf, Leaf, Rows, SparkFragment, TableLeaf, VirtualLeaf


class Once(NamedTuple):
    """What is left, numbered anew. `known`: the names of what each fragment sends (known.py)."""

    fragments: tuple[SparkFragment, ...]
    ends_in: Rows
    known: dict[int, tuple[str, ...]]


def run_once(
    fragments: Sequence[SparkFragment],
    ends_in: Rows,
    known: Mapping[int, tuple[str, ...]],
    is_stable: Callable[[SparkFragment], bool],
) -> Once:
    """Fragments in the order in which their rows flow, each with one receiver, become fewer with several.

    `is_stable`: it gives the same rows each time. If not, the two may be meant to give different ones.
    """
    edges = _Edges(fragments, ends_in.edge)
    first: dict[tuple[object, ...], SparkFragment] = {}
    receivers: dict[int, tuple[str, ...]] = {}  # of the fragments that stay
    names: dict[int, tuple[str, ...]] = {}
    for fragment in fragments:
        same, own = first.setdefault(_work(fragment), fragment), fragment.output
        if same is not fragment and is_stable(fragment) and edges.unite(same.output.edge, own.edge):
            receivers[same.id] += own.receivers
        else:
            same, receivers[fragment.id] = fragment, own.receivers
        names[same.id] = tuple(dict.fromkeys((*names.get(same.id, ()), *known.get(fragment.id, ()))))
    if len(receivers) == len(fragments):
        return Once(tuple(fragments), ends_in, dict(known))
    left = [fragment for fragment in fragments if fragment.id in receivers]
    numbers = {fragment.id: number for number, fragment in enumerate(left, 1)}
    edge_numbers = edges.numbered()
    return Once(
        tuple(_renumbered(each, numbers[each.id], edge_numbers, receivers[each.id]) for each in left),
        msgspec.structs.replace(ends_in, edge=edge_numbers[ends_in.edge]),
        {numbers[number]: each for number, each in names.items() if each},
    )


class _Edges:
    """Which edges are one. Each began with one receiver; those of one receiver stay apart, or rows would be mixed."""

    def __init__(self, fragments: Sequence[SparkFragment], result: int) -> None:
        self._one = {each.output.edge: {each.output.edge} for each in fragments}
        self._receiver = {each.output.edge: each.output.receivers for each in fragments}
        self._result = result

    def unite(self, edge: int, other: int) -> bool:
        """False if they have to stay apart, as the result does: its initiator reads it as slowly as it likes."""
        if edge == other or self._result in (edge, other):
            return False
        one, more = self._one[edge], self._one[other]
        if one is more:
            return True
        if {self._receiver[each] for each in one} & {self._receiver[each] for each in more}:
            return False
        one |= more
        self._one |= dict.fromkeys(more, one)
        return True

    def numbered(self) -> dict[int, int]:
        """New numbers without gaps, in the old order."""
        firsts = sorted({min(each) for each in self._one.values()})
        numbers = {edge: number for number, edge in enumerate(firsts, 1)}
        return {edge: numbers[min(one)] for edge, one in self._one.items()}


def _work(fragment: SparkFragment) -> tuple[object, ...]:
    """Equal for fragments that do the same with the same rows, at the same member."""
    sql = fragment.sql
    read: list[tuple[object, ...]] = []
    for number, leaf in enumerate(fragment.leaves):
        sql = sql.replace(leaf.placeholder, f"leaf_{number}")
        match leaf:
            case TableLeaf(_, table):
                read.append((table,))
            case EdgeLeaf(_, edge, columns, senders):
                read.append((edge, columns, senders))
            case VirtualLeaf(placeholder, columns):
                read.append((placeholder, columns))
            case never:
                assert_never(never)
    alike = msgspec.structs.replace(fragment.output, edge=0, receivers=())
    return (fragment.member, sql, tuple(read), alike, fragment.is_narrow)


def _renumbered(
    fragment: SparkFragment, number: int, edges: Mapping[int, int], receivers: tuple[str, ...]
) -> SparkFragment:
    def renumbered(leaf: Leaf) -> Leaf:
        return msgspec.structs.replace(leaf, edge=edges[leaf.edge]) if isinstance(leaf, EdgeLeaf) else leaf

    output = msgspec.structs.replace(fragment.output, edge=edges[fragment.output.edge], receivers=receivers)
    leaves = tuple(renumbered(leaf) for leaf in fragment.leaves)
    return msgspec.structs.replace(fragment, id=number, leaves=leaves, output=output)
