"""Which buckets move when members come or go: the fewest that leave fair shares. Pure, and the same for the same maps.

Shares are counted in buckets: rows are spread over them by a hash. What two tables that are spread alike end up with is
alike again, so their joins stay at the members (docs/adr/0063).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from skerry.model.errors import SiteError, UserError
from skerry.model.sharded import BucketMap, Definition
from skerry.tables.mapping import moved_map


class Transfer(NamedTuple):
    """`is_top`: if only a part of it moves at once, the upper one; so the rest stays beside it."""

    first: int
    upto: int
    source: str
    target: str
    is_top: bool


def holders(definition: Definition, data: Sequence[str], leaving: Sequence[str] = ()) -> tuple[str, ...]:
    """The members that shall have rows of the table. `data`: those of the configuration, in their order.

    UserError if none would be left; SiteError if rows are at a member that is not configured.
    """
    table = definition.table
    lost = sorted({*(owner for *_, owner in definition.buckets.groups), *copies_of(definition)} - set(data))
    if lost:
        raise SiteError(
            f"table {table.name}: {', '.join(lost)} has rows of it, and is not in the configuration",
            suggestion=f"put {', '.join(lost)} back into skerry.yaml, and let rebalance move its rows away first",
        )
    wanted = [name for name in data if name not in leaving and (name in table.members or not table.is_placed)]
    if not wanted:
        raise UserError(
            f"table {table.name} has rows at {', '.join(table.members)} only, by IN",
            suggestion=f"make another one by CREATE TABLE … AS, and drop {table.name}",
        )
    return tuple(wanted)


def copies_of(definition: Definition) -> tuple[str, ...]:
    """Who has a copy that counts; () for a table that is spread."""
    return () if definition.table.distributed_by else definition.buckets.members or definition.table.members


def planned(definition: Definition, wanted: Sequence[str]) -> list[Transfer]:
    """What has to move, in order. A copy that comes is made from another; one that goes is given up."""
    if definition.table.distributed_by:
        return transfers(definition.buckets, wanted)
    there, whole = copies_of(definition), (0, definition.table.buckets)
    stays = next((name for name in there if name in wanted), there[0])
    comes = [Transfer(*whole, stays, name, True) for name in wanted if name not in there]
    beside = stays if stays in wanted else wanted[0]
    return comes + [Transfer(*whole, name, beside, True) for name in there if name not in wanted]


def transfers(buckets: BucketMap, wanted: Sequence[str]) -> list[Transfer]:
    """What has to move, in order, until each of `wanted` has its share, and nobody else anything."""
    found: list[Transfer] = []
    while (transfer := _next(buckets, wanted)) is not None:
        found.append(transfer)
        buckets = moved_map(buckets, transfer.first, transfer.upto, transfer.target)
    return found


def _next(buckets: BucketMap, wanted: Sequence[str]) -> Transfer | None:
    counts = dict.fromkeys(wanted, 0)
    for first, upto, owner in buckets.groups:
        counts[owner] = counts.get(owner, 0) + upto - first
    shares = _shares(counts, wanted)
    # Who shall have nothing gives first: so nobody gives and then gets.
    givers = sorted(counts, key=lambda name: (name in shares, list(counts).index(name)))
    source = next((name for name in givers if counts[name] > shares.get(name, 0)), None)
    target = next((name for name in wanted if counts[name] < shares[name]), None)
    if source is None or target is None:
        return None
    count = min(counts[source] - shares.get(source, 0), shares[target] - counts[target])
    return _cut(buckets, source, target, count)


def _shares(counts: Mapping[str, int], wanted: Sequence[str]) -> dict[str, int]:
    """Equal but for one bucket, which those have that have it already."""
    least, more = divmod(sum(counts.values()), len(wanted))
    favoured = sorted(wanted, key=lambda name: counts[name] <= least)[:more]
    return {name: least + (name in favoured) for name in wanted}


def _cut(buckets: BucketMap, source: str, target: str, count: int) -> Transfer:
    """So many buckets at most, beside some of the target's if that can be: a map of few ranges is a small one."""
    own, other = buckets.ranges(source), buckets.ranges(target)
    begins, ends = {first for first, _ in other}, {upto for _, upto in other}
    for first, upto in own:
        if upto in begins:
            return Transfer(max(first, upto - count), upto, source, target, True)
        if first in ends:
            return Transfer(first, min(upto, first + count), source, target, False)
    first, upto = own[-1]
    return Transfer(max(first, upto - count), upto, source, target, True)
