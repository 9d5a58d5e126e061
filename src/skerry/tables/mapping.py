"""Bucket maps: which buckets a member has by one, whether a member follows the next one, and what a move makes. Pure.

A move changes the map of its table at its source and target by its own commit; all others learn it from the keeper of
definitions (docs/adr/0065). So each member has its rows where its map says, at any time.
"""

from __future__ import annotations

import msgspec

from skerry.model.commits import Moving
from skerry.model.errors import PeerError, SiteError
from skerry.model.sharded import BucketMap
from skerry.tables.clock import moment_text

Range = tuple[int, int]


def is_followed(now: BucketMap, told: BucketMap, member: str) -> bool:
    """Whether a member whose map is `now` takes the one that the definitions have: not before it has moved its rows."""
    has_same_copy = not now.members or (member in now.members) == (member in told.members)
    return told.version > now.version and told.ranges(member) == now.ranges(member) and has_same_copy


def moved_map(buckets: BucketMap, first: int, upto: int, target: str) -> BucketMap:
    """The next map, with these buckets at `target`; ranges of one member that meet are one."""
    groups: list[tuple[int, int, str]] = []
    for begin, end, owner in buckets.groups:
        within = (max(begin, first), min(end, upto), target)
        pieces = ((begin, min(end, first), owner), within, (max(begin, upto), end, owner))
        for low, high, name in pieces:
            if low >= high:
                continue
            if groups and groups[-1][2] == name:
                groups[-1] = (groups[-1][0], high, name)
            else:
                groups.append((low, high, name))
    return msgspec.structs.replace(buckets, version=buckets.version + 1, groups=tuple(groups))


def copied_map(buckets: BucketMap, members: tuple[str, ...]) -> BucketMap:
    """The next map of a table with copies, with these."""
    return msgspec.structs.replace(buckets, version=buckets.version + 1, members=members)


def check_moving(moving: Moving, now: BucketMap, member: str) -> None:
    """PeerError unless it is a move of this member's, by the map that counts here."""
    if not now.groups:
        _check_copies(moving, now, member)
        return
    owners = {owner for begin, end, owner in now.groups if begin < moving.upto and end > moving.first}
    is_move = 0 <= moving.first < moving.upto and owners == {moving.source} and moving.target != moving.source
    wanted = moved_map(now, moving.first, moving.upto, moving.target)
    if not is_move or member not in (moving.source, moving.target) or moving.buckets != wanted:
        raise PeerError(f"table number {now.table}: a move of buckets {moving.first} to {moving.upto} that cannot be")


def _check_copies(moving: Moving, now: BucketMap, member: str) -> None:
    """One copy comes or goes, and another, which stays, takes part: all writes meet it."""
    before, after = set(now.members), set(moving.buckets.members)
    comes = after - before == {moving.target} and before <= after and moving.source in before
    goes = before - after == {moving.source} and after <= before and moving.target in after
    is_next = moving.buckets == copied_map(now, moving.buckets.members)
    if not (comes or goes) or not is_next or member not in (moving.source, moving.target):
        raise PeerError(f"table number {now.table}: a copy comes or goes that cannot")


def refuse_earlier(buckets: BucketMap, read_ts: int, table: str) -> None:
    """SiteError for a moment before the table was made, or before its last move: rows were elsewhere then."""
    if read_ts < buckets.since:
        why = "it was made later" if buckets.version == 1 else "its rows have moved between members"
        raise SiteError(
            f"table {table} cannot be read as it was at {read_ts} ({moment_text(read_ts)}): {why}, and its history "
            f"begins at {buckets.since} ({moment_text(buckets.since)})",
            suggestion=f"read a later moment: VERSION AS OF {buckets.since} is the oldest; begin a transaction again",
        )
