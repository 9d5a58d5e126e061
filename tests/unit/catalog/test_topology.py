"""Links have a direction, and long fat ones get more credit."""

from __future__ import annotations

import json
from itertools import pairwise, permutations
from random import Random

import pytest

from skerry.catalog.topology import Topology
from skerry.config import Link, parse
from skerry.model.errors import ConfigError
from skerry.model.limits import MIB, Limits

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


def test_codecs_follow_the_bandwidth_unless_one_is_named() -> None:
    text = """\
cluster: nordic
members: {a: {address: 'h:1'}, b: {address: 'h:2'}}
links:
  - {from: a, to: b, mbit: %s, codec: %s}
"""
    seen = {
        (mbit, codec): Topology(parse(text % (mbit, codec))).codec("a", "b")
        for mbit in (10, 299, 300, 999, 1000)
        for codec in ("auto", "none", "lz4", "zstd")
    }
    assert [seen[mbit, "auto"] for mbit in (10, 299, 300, 999, 1000)] == ["zstd", "zstd", "lz4", "lz4", ""]
    assert {seen[mbit, "none"] for mbit in (10, 1000)} == {""}
    assert {seen[mbit, "lz4"] for mbit in (10, 1000)} == {"lz4"}
    assert {seen[mbit, "zstd"] for mbit in (10, 1000)} == {"zstd"}
    assert TOPOLOGY.codec("b", "a") == ""  # nothing is known of it


def test_without_links_everyone_reaches_everyone() -> None:
    bare = Topology(parse("cluster: c\nmembers: {a: {address: 'h:1'}, b: {address: 'h:2'}}"))
    assert bare.route("a", "b") == ("a", "b")


def test_routes_follow_links_in_their_direction_and_are_the_quickest() -> None:
    assert TOPOLOGY.route("a", "c") == ("a", "b", "c")
    assert TOPOLOGY.next_hop("a", "a", "c") == "b"
    assert TOPOLOGY.next_hop("b", "a", "c") == "c"
    assert TOPOLOGY.previous_hop("c", "a", "c") == "b"
    with pytest.raises(ConfigError, match="no link leads from c to a"):
        TOPOLOGY.route("c", "a")
    with pytest.raises(ConfigError, match="do not pass a"):
        TOPOLOGY.next_hop("a", "b", "c")
    slow = parse("""\
cluster: nordic
members: {a: {address: 'h:1'}, b: {address: 'h:2'}, c: {address: 'h:3'}, d: {address: 'h:4'}}
links:
  - {between: [a, c], mbit: 10}
  - {between: [a, b], mbit: 1000}
  - {between: [b, c], mbit: 1000}
  - {between: [a, d], mbit: 1000, usd_per_gb: 0.1}
  - {between: [d, c], mbit: 1000}
""")
    assert Topology(slow).route("a", "c") == ("a", "b", "c"), "two quick links beat a slow one, the cheaper two of four"
    assert Topology(slow).route("a", "b") == ("a", "b")


def test_a_route_is_the_cheapest_of_all_ways() -> None:
    """Of those that cost the same, the one whose names come first."""
    random = Random(7)
    for _ in range(40):
        names = "abcde"
        links = [
            {"from": sender, "to": receiver, "mbit": 1000, "ms": random.choice([1, 2, 4])}
            for sender, receiver in permutations(names, 2)
            if random.random() < 0.5
        ]
        members = {name: {"address": f"{name}:1"} for name in names}
        config = parse(json.dumps({"cluster": "c", "members": members, "links": links}))
        ms = {(link.sender, link.receiver): 8 + link.ms + 1e-6 for link in config.links}
        ways = [
            (sum(ms[pair] for pair in pairwise(way)), way)
            for between in range(4)
            for way in (("a", *passed, "e") for passed in permutations("bcd", between))
            if all(pair in ms for pair in pairwise(way))
        ]
        topology = Topology(config)
        if ways:
            least = min(cost for cost, _ in ways)
            assert topology.route("a", "e") == min(way for cost, way in ways if cost < least + 1e-9)
        else:
            with pytest.raises(ConfigError, match="no link leads from a to e"):
                topology.route("a", "e")


@pytest.mark.parametrize(
    ("direct", "expected"),
    [
        ("mbit: 1000", ("a", "c")),
        ("mbit: 1000, usd_per_gb: 100", ("a", "b", "c")),  # a gigabyte is not worth a hundred dollars
        ("mbit: 1000, usd_per_gb: 0.05", ("a", "c")),  # five cents are five seconds, a gigabyte by b takes ten more
        ("mbit: 1000, ms: 2000", ("a", "b", "c")),  # most edges are small
    ],
)
def test_ways_are_chosen_by_time_and_money(direct: str, expected: tuple[str, ...]) -> None:
    text = f"""\
cluster: nordic
members: {{a: {{address: 'h:1'}}, b: {{address: 'h:2'}}, c: {{address: 'h:3'}}}}
links:
  - {{between: [a, c], {direct}}}
  - {{between: [a, b], mbit: 900, ms: 1}}
  - {{between: [b, c], mbit: 900, ms: 1}}
"""
    assert Topology(parse(text)).route("a", "c") == expected
