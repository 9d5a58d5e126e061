"""What it costs to send rows from one member to another, and where the part of a query that is not cut runs."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from skerry.catalog.topology import ROUTE_BYTES, S_PER_USD, Topology, byte_s
from skerry.model.errors import ConfigError
from skerry.model.limits import SAME_SHARE

# Links that the configuration says nothing of: a WAN that nobody has measured.
_MBIT, _WAIT_S = 100.0, 0.001
# One more job, on an engine that is quick to start one: a site's engine is not known here.
JOB_S = 0.005
# An edge is a channel with its schema and its end, whatever its rows.
EDGE_BYTES = 1_500


class Cost(NamedTuple):
    """What a plan, or a part of one, takes: seconds, money counted as such, and bytes over links."""

    cost_s: float
    sent_bytes: float

    def is_same(self, other: Cost) -> bool:
        """May bytes decide between the two?"""
        return abs(self.cost_s - other.cost_s) <= SAME_SHARE * min(self.cost_s, other.cost_s)

    def is_less(self, other: Cost) -> bool:
        """Fewer seconds; where these are the same, fewer bytes, if they are not the same as well."""
        least, most = sorted((self.sent_bytes, other.sent_bytes))
        if self.is_same(other) and least < (1 - SAME_SHARE) * most:
            return self.sent_bytes < other.sent_bytes
        return self.cost_s < other.cost_s


class Costs:
    """Seconds, with money turned into seconds: bytes over each link of the route by its bandwidth, plus its delay."""

    def __init__(self, topology: Topology | None = None, s_per_usd: float = S_PER_USD) -> None:
        self._topology = topology
        self._s_per_usd = s_per_usd
        self._known: dict[tuple[str, str], tuple[float, float, float]] = {}

    def ship_s(self, sender: str, receiver: str, size_bytes: float) -> float:
        """Infinite when no link leads there."""
        if sender == receiver:
            return 0.0
        each_s, wait_s, _ = self._route(sender, receiver)
        return (size_bytes + EDGE_BYTES) * each_s + wait_s

    def sent_bytes(self, sender: str, receiver: str, size_bytes: float) -> float:
        """Over all links of the route; infinite likewise."""
        return (size_bytes + EDGE_BYTES) * self._route(sender, receiver)[2] if sender != receiver else 0.0

    def job_bytes(self, members: Collection[str]) -> float:
        """What the slowest way between these carries in the time that a job takes: fewer bytes are worth no job."""
        ways = [self._route(one, other)[0] for one, other in itertools.permutations(members, 2)]
        return JOB_S / max(ways, default=math.inf)

    def _route(self, sender: str, receiver: str) -> tuple[float, float, float]:
        """Seconds for each byte, seconds of waiting, links."""
        known = self._known.get((sender, receiver))
        if known is None:
            known = self._known[sender, receiver] = self._links(sender, receiver)
        return known

    def _links(self, sender: str, receiver: str) -> tuple[float, float, float]:
        if self._topology is None:
            return 8 / (_MBIT * 1e6), _WAIT_S, 1.0
        try:
            route = self._topology.route(sender, receiver)
        except ConfigError:
            return math.inf, math.inf, math.inf
        each_s = wait_s = 0.0
        for one, other in itertools.pairwise(route):
            link = self._topology.link(one, other)
            each_s += byte_s(link, self._s_per_usd) if link else 8 / (_MBIT * 1e6)
            wait_s += link.ms / 1000 if link else _WAIT_S
        return each_s, wait_s, float(len(route) - 1)


def cheapest(costs: Mapping[str, Cost], holders: Sequence[str], members: Sequence[str]) -> str:
    """The member with the least cost; ties go to one that holds rows (another may be down), then to the first."""

    def rank(member: str) -> tuple[float, bool, int]:
        # Estimates are no finer than this.
        return round(costs[member].cost_s, 6), member not in holders, members.index(member)

    best, *others = sorted(costs, key=rank)
    for each in others:
        best = each if costs[each].is_less(costs[best]) else best
    return best


def common_ancestor(
    topology: Topology | None, holders: Sequence[str], sink: str, members: Sequence[str]
) -> tuple[str, ...]:
    """The members that the rows of all holders pass on their way to the sink, the nearest to the holders first.

    The topology is taken as a tree: of several ways only the first counts. Only members that can run a fragment are
    named, so there may be none when the sink cannot.
    """
    routes: list[Sequence[str]] = []
    for holder in dict.fromkeys(holders or (sink,)):
        if holder == sink:
            routes.append((sink,))
        elif topology is None:
            routes.append((holder, sink))
        else:
            routes.append(topology.route(holder, sink))
    shared = [member for member in routes[0] if all(member in route for route in routes)]
    return tuple(member for member in shared if member in members)


def on_the_way(topology: Topology | None, sender: str, receiver: str, members: Sequence[str]) -> tuple[str, ...]:
    """The members that can run a fragment and that rows pass between the two, the nearest to the sender first."""
    try:
        passed = common_ancestor(topology, [sender], receiver, members)
    except ConfigError:
        return ()
    return tuple(member for member in passed if member not in (sender, receiver))


def with_ways(topology: Topology | None, holders: Sequence[str], sink: str, members: Sequence[str]) -> tuple[str, ...]:
    """The members that every holder's rows can get to, and from there to the sink."""
    costs = Costs(topology)
    ends = dict.fromkeys(holders)
    return tuple(
        member
        for member in members
        if not any(math.isinf(costs.ship_s(*way, 0.0)) for way in ((member, sink), *((each, member) for each in ends)))
    )


def bottom_up_places(
    topology: Topology | None, holders: Sequence[str], sink: str, members: Sequence[str]
) -> tuple[str, ...]:
    """Where strategy bottom-up runs the rest, the best first: a member that all rows pass on their way to the sink.

    A sink without a Spark may have no such member before it. Then rows have to turn aside: to one that holds some of
    them, the nearest to the sink first, so that what is left of them has the shortest way.
    """
    found = common_ancestor(topology, holders, sink, members)
    if found:
        return found
    costs = Costs(topology)

    def rank(member: str) -> tuple[bool, float, int]:
        return member not in holders, costs.ship_s(member, sink, ROUTE_BYTES), members.index(member)

    return tuple(sorted(with_ways(topology, holders, sink, members), key=rank)) or (*holders[:1], *members)[:1]


def bottom_up_reason(
    root: str, topology: Topology | None, holders: Sequence[str], sink: str, members: Sequence[str]
) -> str:
    """Why `bottom_up_places` names the root."""
    if root in common_ancestor(topology, holders, sink, members):
        where = f"come to {root}, where the result goes" if root == sink else f"pass {root} on their way to {sink}"
        return f"all its rows {where}"
    among = "of those that hold some of them " if root in holders else ""
    return f"no data member is on the way of all its rows to {sink}; {among}{root} is the nearest to it"


def capacity_of(topology: Topology | None, member: str) -> float:
    """Operators that the member may host at once."""
    if topology is None or member not in topology.members:
        return math.inf
    return float(topology.members[member].capacity)


class Rooms:
    """What members have room for, as it is given away. Without a topology there is no end of it."""

    def __init__(self, topology: Topology | None = None) -> None:
        self._topology = topology
        self._hosted: Counter[str] = Counter()

    def take(self, members: Collection[str], is_forced: bool = False) -> bool:
        """Room for a fragment at each of these, if all of them have it, or have to."""
        has_room = all(self._hosted[member] < capacity_of(self._topology, member) for member in members)
        if has_room or is_forced:
            self._hosted.update(members)
        return has_room or is_forced


def fewest_arriving(held_bytes: Mapping[str, int], members: Sequence[str]) -> str:
    """`held_bytes` is what each member would have to send if it were not the chosen one.

    All that the others hold arrives, so the site that holds most wins; ties go to a site that holds some of it at
    all (another one may be down, and the query does not need it), then to the member named first in the
    configuration, so that every initiator chooses alike.
    """
    assert members, "a cluster has at least one data member"
    total = sum(held_bytes.values())

    def rank(member: str) -> tuple[int, bool, int]:
        return total - held_bytes.get(member, 0), member not in held_bytes, members.index(member)

    return min(members, key=rank)
