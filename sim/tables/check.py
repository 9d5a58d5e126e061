"""What must hold when all is over: every read is still right, every transaction is there whole and once, or not at all,
and what clients saw is what snapshot isolation allows."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from sim.loop import Violation
from sim.tables.altering import WIDE, expected_row
from sim.tables.clients import LISTS, Attempt, Snapshot
from sim.tables.moving import check_moved
from sim.tables.site import _RECORDS, Place, Version, rebuilt, row_at
from skerry.model.commits import Policy, TransactionId, Write
from skerry.model.ids import QueryId
from skerry.wire.commit_messages import State

if TYPE_CHECKING:
    from sim.tables.world import World

Found = dict[TransactionId, dict[Place, Version]]


def final(world: World) -> None:
    if world.moves:
        disks = {name: [r for group in site.disk for r in _RECORDS.decode(group)] for name, site in world.sites.items()}
        check_moved(world, disks)
    _disks_agree(world)
    _reads_stayed_right(world)
    _policies_held(world)
    _values_in_their_columns(world)
    found = _whole_transactions(world)
    _told_truly(world, found)
    _isolated(world, found)


def _disks_agree(world: World) -> None:
    """Memory has what the disk has; commits that are not written yet are newer."""
    for site in world.sites.values():
        records = [record for group in site.disk for record in _RECORDS.decode(group)]
        for place, chain in rebuilt(records, site.wide).items():
            if site.versions.get(place, [])[: len(chain)] != chain:
                raise Violation(f"{site.name}: its disk has {chain} of {place}, its memory {site.versions.get(place)}")


def _reads_stayed_right(world: World) -> None:
    """No commit came into a past that somebody has read."""
    for site in world.sites.values():
        for served in site.served:
            for place, row in served.rows:
                if (truth := row_at(site.versions, place, served.read_ts)) != row:
                    raise Violation(f"{site.name}: {place} was read as {row!r} at {served.read_ts}, but is {truth!r}")


def _policies_held(world: World) -> None:
    for site in world.sites.values():
        for place, chain in site.versions.items():
            for before, version in zip([None, *chain[:-1]], chain, strict=True):
                is_taken = before is not None and before.row is not None
                if is_taken and version.row is not None and version.policy is not Policy.REPLACE:
                    raise Violation(f"{version.txn} inserted {place}, which was there already")


def _values_in_their_columns(world: World) -> None:
    for site in world.sites.values():
        for (table, key), chain in site.versions.items():
            for version in chain if table == WIDE else ():
                mark, written = version.txn.query.local, world.wide_of[version.txn]
                due = expected_row(key, mark, written, site.wide)
                if version.row is not None and (found := msgspec.msgpack.decode(version.row)) != due:
                    raise Violation(f"{site.name}: {version.txn} wrote {due} to {key!r}, and it is {found}")


def _whole_transactions(world: World) -> Found:
    """All writes of each transaction, at one time, or none; at most one attempt of a query."""
    found: Found = defaultdict(dict)
    for site in world.sites.values():
        for place, chain in site.versions.items():
            for version in chain:
                if place in found[version.txn]:
                    raise Violation(f"{version.txn} wrote {place} twice")
                found[version.txn][place] = version
    attempts = {attempt.txn: attempt for attempt in world.attempts}
    queries: dict[QueryId, TransactionId] = {}
    for txn, versions in found.items():
        attempt = attempts[txn]
        if len({version.commit_ts for version in versions.values()}) > 1:
            raise Violation(f"{txn} was committed at several times: {versions}")
        # Of those that change nothing if a row is there, or delete one that is not, some may be missing.
        must = {
            place for place, write in attempt.writes.items() if write.row is not None and write.policy != Policy.NOTHING
        }
        if missing := must - set(versions):
            raise Violation(f"{txn} was committed in part: {missing} is missing")
        if queries.setdefault(txn.query, txn) != txn:
            raise Violation(f"{txn.query} was committed twice: {txn} and {queries[txn.query]}")
    return found


def _told_truly(world: World, found: Found) -> None:
    committed = {txn.query for txn in found}
    for attempt in world.attempts:
        versions = found.get(attempt.txn, {})
        if attempt.state is State.ABORTED and versions:
            raise Violation(f"{attempt.txn} was said to be aborted, and is there")
        if attempt.state is State.COMMITTED:
            if len(versions) != attempt.rows:
                raise Violation(f"{attempt.txn} was acknowledged with {attempt.rows} rows, {len(versions)} are there")
            if any(version.commit_ts != attempt.commit_ts for version in versions.values()):
                raise Violation(f"{attempt.txn} was acknowledged at {attempt.commit_ts}: {versions}")
    for client in world.clients:
        for query, state in client.told.items():
            attempts = [attempt for attempt in world.attempts if attempt.txn.query == query]
            is_there = query in committed
            may_be_empty = all(_may_do_nothing(write) for each in attempts for write in each.writes.values())
            if state is State.ABORTED and is_there:
                raise Violation(f"{query} was said to be aborted, and is there")
            if state is State.COMMITTED and not is_there and not may_be_empty:
                raise Violation(f"{query} was said to be committed, and is not there")
        if not world.forgets:
            _all_known(world, client.name, client.told)


def _may_do_nothing(write: Write) -> bool:
    return write.row is None or write.policy is Policy.NOTHING


def _all_known(world: World, client: str, told: dict[QueryId, State]) -> None:
    for attempt in world.attempts:
        if attempt.client == client and attempt.state is None and attempt.txn.query not in told:
            raise Violation(f"how {attempt.txn} ended can still not be told")


# --- histories ---------------------------------------------------------------------------------------------------
class _Seen(msgspec.Struct):
    """A transaction on lists: what it read of each, what it appended to each."""

    name: str
    reads: dict[Place, list[bytes]]
    appends: dict[Place, list[bytes]]


def _isolated(world: World, found: Found) -> None:
    """From what clients saw alone, as Elle does it: the last list of each key gives the order of its writers."""
    final_lists = {
        place: (chain[-1].row or b"").split()
        for site in world.sites.values()
        for place, chain in site.versions.items()
        if place[0] == LISTS
    }
    seen, sessions = _histories(world, found)
    writers: dict[tuple[Place, bytes], str] = {
        (place, element): each.name for each in seen for place, added in each.appends.items() for element in added
    }
    for place, elements in final_lists.items():
        if len(set(elements)) != len(elements):
            raise Violation(f"{place} has an element twice: {elements}")
        for element in elements:
            if (place, element) not in writers:
                raise Violation(f"G1a: {element!r} in {place} is of no committed transaction")
    depends: dict[str, set[str]] = defaultdict(set)
    misses: dict[str, set[str]] = defaultdict(set)
    for each in seen:
        for place, read in each.reads.items():
            elements = final_lists.get(place, [])
            if elements[: len(read)] != read:
                raise Violation(f"G1: {each.name} read {read} of {place}, which is {elements} in the end")
            following = elements[len(read)] if len(read) < len(elements) else None
            if read and following is not None and writers[place, read[-1]] == writers[place, following]:
                raise Violation(f"G1b: {each.name} read {place} in the middle of {writers[place, following]}")
            if read:
                depends[writers[place, read[-1]]].add(each.name)
            if following is not None and writers[place, following] != each.name:
                misses[each.name].add(writers[place, following])
        if lost := [e for place, added in each.appends.items() for e in added if e not in final_lists.get(place, [])]:
            raise Violation(f"lost update: {lost} of {each.name}")
    for place, elements in final_lists.items():
        for before, after in itertools.pairwise(elements):
            if writers[place, before] != writers[place, after]:
                depends[writers[place, before]].add(writers[place, after])
    for session in sessions.values():
        for earlier, later in itertools.pairwise(session):
            depends[earlier].add(later)
    _no_cycle(depends, misses)


def _histories(world: World, found: Found) -> tuple[list[_Seen], dict[str, list[str]]]:
    """Committed transactions on lists, and reads, with the order in which each client made them."""
    attempts = [attempt for attempt in world.attempts if attempt.txn in found and _is_on_lists(attempt)]
    events: dict[str, list[tuple[int, _Seen]]] = defaultdict(list)
    for attempt in attempts:
        appends = {
            place: (write.row or b"").split()[len((attempt.reads[place] or b"").split()) :]
            for place, write in attempt.writes.items()
        }
        seen = _Seen(str(attempt.txn), _lists_of(attempt.reads), appends)
        events[attempt.client].append((int(attempt.txn.query.local.partition("-")[2]), seen))
    for client, number, rows in world.looks:
        events[client].append((number, _Seen(f"{client} look {number}", _lists_of(rows), {})))
    ordered = {client: [seen for _, seen in sorted(own, key=lambda pair: pair[0])] for client, own in events.items()}
    # Only what was acknowledged is before what its client did next: an unknown commit may come later.
    known = {str(attempt.txn) for attempt in attempts if attempt.state is State.COMMITTED}
    sessions = {
        client: [seen.name for seen in own if not seen.appends or seen.name in known] for client, own in ordered.items()
    }
    return [seen for own in ordered.values() for seen in own], sessions


def _is_on_lists(attempt: Attempt) -> bool:
    return all(table == LISTS for table, _ in attempt.writes)


def _lists_of(rows: Snapshot) -> dict[Place, list[bytes]]:
    return {place: (row or b"").split() for place, row in rows.items()}


def _no_cycle(depends: dict[str, set[str]], misses: dict[str, set[str]]) -> None:
    """Dependencies, each with at most one anti-dependency after it, make no circle: neither G0, G1c nor G-single.

    See Cerone and Gotsman, "Analysing Snapshot Isolation", theorem 9.
    """
    steps = {
        name: later | {missed for each in later for missed in misses.get(each, ())} for name, later in depends.items()
    }
    state: dict[str, int] = {}
    for start in steps:
        if start in state:
            continue
        path: list[tuple[str, Iterable[str]]] = [(start, iter(sorted(steps[start])))]
        state[start] = 1
        while path:
            name, rest = path[-1]
            following = next(iter(rest), None)
            if following is None:
                state[name] = 2
                path.pop()
            elif state.get(following) == 1:
                names = [each for each, _ in path]
                raise Violation(
                    f"a circle of dependencies: {' → '.join([*names[names.index(following) :], following])}"
                )
            elif following not in state:
                state[following] = 1
                path.append((following, iter(sorted(steps.get(following, ())))))
