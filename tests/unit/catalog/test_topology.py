"""Links have a direction, and long fat ones get more credit."""

from __future__ import annotations

import networkx as nx
import pytest

from skerry.catalog.topology import Topology
from skerry.config import Link, parse
from skerry.limits import MIB, Limits

CONFIG = parse("""\
cluster: nordic
members:
  a: {address: 'h:1', capacity: 3}
  b: {address: 'h:2'}
  c: {address: 'h:3', role: lite}
links:
  - {from: a, to: b, mbit: 1000, ms: 100}
  - {between: [b, c], mbit: 10, ms: 1, usd_per_gb: 0.1}
""")
TOPOLOGY = Topology(CONFIG)


def test_links_have_a_direction() -> None:
    assert TOPOLOGY.link("a", "b") == Link("a", "b", 1000, 100)
    assert TOPOLOGY.link("b", "a") is None
    assert TOPOLOGY.link("b", "c") == Link("b", "c", 10, 1, 0.1)
    assert TOPOLOGY.link("c", "b") == Link("c", "b", 10, 1, 0.1)
    assert TOPOLOGY.link("nobody", "a") is None
    assert nx.shortest_path(TOPOLOGY.graph, "a", "c") == ["a", "b", "c"]


def test_members_are_nodes() -> None:
    assert TOPOLOGY.graph.nodes["a"]["capacity"] == 3
    assert TOPOLOGY.graph.nodes["c"]["role"] == "lite"


@pytest.mark.parametrize(
    ("sender", "receiver", "credit"),
    [
        ("a", "b", 25_000_000),  # 125 MB/s for twice 0.1 s
        ("b", "a", 4 * MIB),  # nothing is known of it
        ("b", "c", 4 * MIB),  # 2.5 kB would do
    ],
)
def test_first_credits_fill_the_link(sender: str, receiver: str, credit: int) -> None:
    assert TOPOLOGY.first_credits(sender, receiver, Limits()) == credit
