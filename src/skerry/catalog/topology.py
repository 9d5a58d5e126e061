"""Members and the links between them, as a directed graph: routes, first credits, codecs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from heapq import heappop, heappush

from skerry.model.config import Config, Link
from skerry.model.errors import ConfigError
from skerry.model.limits import Limits

# Below these a link is slow enough that compression pays: at the link's full rate it takes about half a core, which
# Spark does not miss. Measured on TPC-H orders: zstd 274 MB/s a core and 3.7 times smaller, lz4 425 MB/s and 2.2 times
# (docs/configuration.md, links).
ZSTD_BELOW_MBIT = 300.0
LZ4_BELOW_MBIT = 1000.0
# What routes are compared by: time and money for so many bytes, over each link in turn. Most edges of a plan are
# smaller than that, and a large one streams through its relays: its links work at the same time.
ROUTE_BYTES = 1_000_000
_LONGEST_S = 1e12  # longer than any link takes, and still a number when it is multiplied
# What a dollar is worth in seconds of waiting, for routes and for plans.
S_PER_USD = 100.0


class Topology:
    """`links`: by sender, then by receiver."""

    def __init__(self, config: Config) -> None:
        self.members = config.members
        self.links: dict[str, dict[str, Link]] = {name: {} for name in config.members}
        for link in config.links:
            self.links[link.sender][link.receiver] = link
        # Bytes that one query may send over a link, where there is such a bound.
        self.budgets = {
            (link.sender, link.receiver): link.query_bytes for link in config.links if link.query_bytes is not None
        }
        self._has_links = bool(config.links)
        self.has_prices = any(link.usd_per_gb for link in config.links)
        self._routes: dict[tuple[str, str], tuple[str, ...]] = {}

    def link(self, sender: str, receiver: str) -> Link | None:
        """The link in that direction; None when the configuration says nothing of it."""
        return self.links.get(sender, {}).get(receiver)

    def first_credits(self, sender: str, receiver: str, limits: Limits) -> int:
        """Bytes a new channel may send at once: enough to keep the link full until the first grant is back."""
        link = self.link(sender, receiver)
        if link is None:
            return limits.first_credits_bytes
        return max(limits.first_credits_bytes, math.ceil(2 * link.mbit * link.ms * 1000 / 8))

    def codec(self, sender: str, receiver: str) -> str:
        """How batches are compressed on that link, as the wire names it: empty, lz4 or zstd."""
        link = self.link(sender, receiver)
        if link is None or link.codec == "none":
            return ""
        if link.codec != "auto":
            return link.codec
        return "zstd" if link.mbit < ZSTD_BELOW_MBIT else "lz4" if link.mbit < LZ4_BELOW_MBIT else ""

    def route(self, sender: str, receiver: str) -> tuple[str, ...]:
        """The members that rows pass, both ends included; ConfigError when links lead nowhere.

        Without any link in the configuration everyone reaches everyone. All members find the same route.
        """
        if not self._has_links or sender == receiver:
            return (sender, receiver)
        known = self._routes.get((sender, receiver))
        if known is None:
            known = _cheapest(self.links, sender, receiver)
            if known is None:
                raise ConfigError(
                    f"no link leads from {sender} to {receiver}, not even through other members",
                    suggestion="add one under links: of skerry.yaml; a link between: [a, b] serves both directions",
                )
            self._routes[sender, receiver] = known
        return known

    def next_hop(self, at: str, sender: str, receiver: str) -> str:
        """The member after `at` on the route; ConfigError when `at` is not on it."""
        return self._neighbour(at, sender, receiver, 1)

    def previous_hop(self, at: str, sender: str, receiver: str) -> str:
        """The member before `at` on the route."""
        return self._neighbour(at, sender, receiver, -1)

    def _neighbour(self, at: str, sender: str, receiver: str, step: int) -> str:
        route = self.route(sender, receiver)
        index = route.index(at) + step if at in route else -1
        if not 0 <= index < len(route):
            raise ConfigError(f"rows from {sender} to {receiver} do not pass {at}: they go {' → '.join(route)}")
        return route[index]


def _cheapest(links: Mapping[str, Mapping[str, Link]], sender: str, receiver: str) -> tuple[str, ...] | None:
    """Dijkstra's way; of ways that cost the same, the one whose names come first."""
    found: list[tuple[int, tuple[str, ...]]] = [(0, (sender,))]
    passed: set[str] = set()
    while found:
        cost, way = heappop(found)
        at = way[-1]
        if at == receiver:
            return way
        if at in passed:
            continue
        passed.add(at)
        for following, link in links.get(at, {}).items():
            if following not in passed:
                heappush(found, (cost + _cost(link), (*way, following)))
    return None


def byte_s(link: Link, s_per_usd: float = S_PER_USD) -> float:
    """Seconds that a byte takes on the link, with its money turned into seconds."""
    return 8 / (link.mbit * 1e6) + link.usd_per_gb / 1e9 * s_per_usd


def _cost(link: Link) -> int:
    """Picoseconds: whole ones, for a sum of others depends on their order. Of links that cost the same, fewer."""
    return round(min(ROUTE_BYTES * byte_s(link) + link.ms / 1000 + 1e-9, _LONGEST_S) * 1e12)
