"""What must hold: after every few steps, at the end of each query, and when everything is over."""

from __future__ import annotations

import os

from sim.cluster import Cluster, Site
from sim.loop import Process
from sim.queries import Query
from skerry.config import FaultPolicy
from skerry.exchange.spool import Spool
from skerry.member.result import Result
from skerry.model.errors import Cancelled
from skerry.model.limits import ENTRY_BYTES

# Tasks that an idle member has: its clock, and its control connections.
_IDLE_TASKS = ("Rounds._tick_forever", "Listener._serve", "_Pair._keep_dialing")


def watch(cluster: Cluster) -> None:
    """Memory and disk within budgets, unread rows within windows, and what is over stays so."""
    for name, site in cluster.sites.items():
        _watch_windows(cluster, site)
        _watch_budgets(cluster, name, site)
        _watch_ended(cluster, name, site)


def _watch_windows(cluster: Cluster, site: Site) -> None:
    for channels in site.member.inputs._arriving.values():
        for channel, arriving in channels.items():
            if not (arriving.channel.is_pending or arriving.channel._receiver.grant_on_consumption):
                continue
            sizes = _sizes(arriving.spool)
            # The overdraft of one batch; and a merge or a limit keeps the batch that it is at.
            query = cluster.queries.get(channel.query)
            keeps_one = query is not None and bool(query.plan.finish.keys or query.limit is not None)
            most = cluster.limits.first_credits_bytes + max(sizes, default=0) * (2 if keeps_one else 1)
            if sum(sizes) > most:
                cluster.violated(f"{channel}: {sum(sizes)} bytes wait in its spool, {most} are granted at most")


def _sizes(spool: Spool) -> list[int]:
    """What each entry of a spool takes: its rows, or what is kept of it, if that is more."""
    in_memory = [(entry.decoded_bytes, len(entry.body)) for entry in spool._entries.values()]
    found = (spool._index.get(at) for at in range(spool.first, spool.length) if at not in spool._entries)
    on_disk = [(stored.decoded_bytes, stored.length) for stored in found if stored is not None]
    return [max(decoded, length + ENTRY_BYTES) for decoded, length in in_memory + on_disk]


def _watch_budgets(cluster: Cluster, name: str, site: Site) -> None:
    for query, held in site.member.resources._held.items():
        budget, initiated = held.budget, site.member.initiated.get(query)
        # The page that the client reads counts, but is never refused for want of room.
        result = initiated.result if initiated is not None else None
        pages = list(result.pages._kept.values()) if isinstance(result, Result) else []
        extra = sum(batch.nbytes for page in pages for batch in page.batches) + len(pages) * ENTRY_BYTES
        is_over = budget.index_used > budget.index_bytes or budget.disk_peak > budget.disk_bytes
        if is_over or budget.memory_used - budget.index_used - budget.state_used > budget.memory_bytes + extra:
            cluster.violated(
                f"{name}: query {query}: {budget.memory_used} of {budget.memory_bytes} + {extra} bytes of memory, "
                f"{budget.disk_peak} of {budget.disk_bytes} of disk"
            )


def _watch_ended(cluster: Cluster, name: str, site: Site) -> None:
    """A query that is over at a member has said so (its receipt): nothing of it begins there again, or is kept."""
    inputs, now = site.member.inputs, cluster.loop.now
    begun = set(inputs._halves)
    site.over |= dict.fromkeys(site.begun - begun, now)
    site.begun = begun
    for query in (*begun, *inputs._arriving):
        if now < site.over.get(query, -cluster.limits.marker_s) + cluster.limits.marker_s:
            cluster.violated(f"{name}: query {query} is over here, and something of it has come back")


def judge(cluster: Cluster, query: Query, *, must_succeed: bool) -> None:
    """An answer is exactly right or an error; without hard faults and planted failures it is right."""
    name = f"query {query.query} ({query.shape})"
    if query.outcome == "complete":
        if wrong := query.wrong():
            cluster.violated(f"{name}: {wrong}")
        return
    reader = query.reader
    quits = reader.quits_after_s is not None or reader.quits_after_pages is not None or reader.is_absent
    if query.error_code == Cancelled.code and not quits:
        cluster.violated(f"{name}: cancelled, and nobody did: {query.outcome}")
    elif query.error_code // 100 in (2, 5):  # a peer broke the protocol, or we did something that cannot be
        cluster.violated(f"{name}: {query.outcome}")
    elif query.error_code == 401 and query.timeout_s > 100:
        cluster.violated(f"{name}: it hung until its timeout")
    elif must_succeed and not (quits or query.may_fail or query.timeout_s < 100 or query.policy is FaultPolicy.FAIL):
        cluster.violated(f"{name}: {query.outcome or 'not over'}")


def leftovers(cluster: Cluster) -> list[str]:
    """What queries that are over have left behind, at all members."""
    left = [what for name, site in cluster.sites.items() for what in _left_at(name, site)]
    for pair in cluster.network.open_pairs():
        for end in pair:
            if not end.is_gone and end.process.is_alive and end.kind not in ("control", ""):
                left.append(f"{end.process}: a {end.kind} connection to {end.peer.process}")
    owners: dict[Process | None, str] = {site.process: name for name, site in cluster.sites.items()}
    owners |= {site.engine.process: f"{name}'s Spark" for name, site in cluster.sites.items()}
    for task in sorted(cluster.loop.tasks, key=lambda task: task.serial):
        name = getattr(task.get_coro(), "__qualname__", "?")
        if task.owner in owners and not name.endswith(_IDLE_TASKS):
            left.append(f"{owners[task.owner]}: task {name}")
    return left


def _left_at(name: str, site: Site) -> list[str]:
    member = site.member
    counts = {
        "queries initiated": len(member.initiated),
        "participants": len(member.participants),
        "arriving channels": sum(map(len, member.inputs._arriving.values())),
        "budgets": member.resources.queries,
        "budgets of channels": len(member.inputs._held),
        "halves": len(member.inputs._halves),
        "queries at the task port": len(member.taskport._queries),
        "queries to ask about": len(member.rounds.orphans.watched),
        "open questions": len(member.rounds.orphans._asked),
        "queries that wait for a plan": sum(map(len, member.taking_part._plan_asks._waiting.values())),
        "Spark jobs": len(site.engine.jobs),
    }
    counts["source slots taken"] = site.engine.slots.count - site.engine.slots.free
    for peer, pair in member.peers._pairs.items():
        session = pair.session
        if session is not None:
            counts[f"unacked control messages to {peer}"] = len(session._unacked)
    counts["files"] = len(set(os.listdir(member._directory.path)) - {"lock"})
    return [f"{name}: {count} {what}" for what, count in counts.items() if count]


def markers(cluster: Cluster) -> list[str]:
    """Tombstones that have outlived their time."""
    return [
        f"{name}: {len(site.member.inputs._gone)} tombstones"
        for name, site in cluster.sites.items()
        if site.member.inputs._gone
    ]
