"""Members and the links between them, as a directed graph."""

from __future__ import annotations

import math

import networkx as nx

from skerry.config.model import Config, Link
from skerry.limits import Limits


class Topology:
    """`graph` has a node a member (attributes `role`, `capacity`) and an edge a link (attribute `link`)."""

    def __init__(self, config: Config) -> None:
        self.graph: nx.DiGraph[str] = nx.DiGraph()
        for member in config.members.values():
            self.graph.add_node(member.name, role=member.role, capacity=member.capacity)
        for link in config.links:
            self.graph.add_edge(link.sender, link.receiver, link=link)

    def link(self, sender: str, receiver: str) -> Link | None:
        """The link in that direction; None when the configuration says nothing of it."""
        data = self.graph.get_edge_data(sender, receiver)
        return data["link"] if data else None

    def first_credits(self, sender: str, receiver: str, limits: Limits) -> int:
        """Bytes a new channel may send at once: enough to keep the link full until the first grant is back."""
        link = self.link(sender, receiver)
        if link is None:
            return limits.first_credits_bytes
        return max(limits.first_credits_bytes, math.ceil(2 * link.mbit * link.ms * 1000 / 8))
