"""Channels before, during and after their query; two halves of a query at one member; budgets given back."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from skerry.catalog.topology import Topology
from skerry.config import parse
from skerry.member.inputs import Inputs
from skerry.member.resources import Resources
from skerry.model.errors import PeerError
from skerry.model.ids import ChannelId, QueryId
from skerry.model.limits import Limits
from skerry.wire.channels import ChannelIn, Gone
from skerry.wire.codec import encode_schema
from skerry.wire.messages import Batch, OpenChannel
from tests.unit.member.member_samples import PATIENCE, QUERY, SCHEMA, entry_of, rows_of

LIMITS = Limits(marker_s=10.0)
CONFIG = parse("cluster: c\nmembers: {oslo: {address: 'h:1'}, bergen: {address: 'h:2'}, tromso: {address: 'h:3'}}")


class Member:
    """Inputs of oslo with what they need, and whom they suspected."""

    def __init__(self, tmp_path: Path) -> None:
        self.resources = Resources(LIMITS, str(tmp_path))
        self.suspected: list[QueryId] = []
        self.inputs = Inputs("oslo", LIMITS, Topology(CONFIG), self.resources, self.suspected.append)

    def open(self, edge: int = 1, sender: str = "bergen", receiver: str = "oslo") -> ChannelIn | Gone:
        return self.inputs.lookup(OpenChannel(ChannelId(QUERY, edge, sender, receiver), SCHEMA.arrow, 0))

    def is_empty(self) -> bool:
        return not self.inputs.pending and self.resources.queries == 0 and self.resources.memory_used == 0


@pytest.fixture
def member(tmp_path: Path) -> Member:
    return Member(tmp_path)


def put(channel: ChannelIn | Gone, seq: int, rows: list[tuple[int, str]], said_rows: int | None = None) -> None:
    """A batch as the connection hands it over."""
    assert isinstance(channel, ChannelIn)
    channel.schema = SCHEMA.arrow
    entry = entry_of(rows)
    header = Batch(seq, 0, False, len(rows) if said_rows is None else said_rows, entry.decoded_bytes, 0)
    channel.append(header, memoryview(entry.body))


def test_rows_before_their_execute_are_kept_and_suspected(member: Member) -> None:
    early = member.open()
    assert isinstance(early, ChannelIn)
    assert early.is_pending
    put(early, 0, [(1, "a")])
    assert member.suspected == [QUERY]
    assert member.inputs.pending == [QUERY]
    assert member.open() is early  # a new connection of the same channel

    member.inputs.begin(QUERY, PATIENCE)
    assert member.inputs.pending == []
    arriving, other = member.inputs.expect(QUERY, 1, ("bergen", "tromso"), is_result=False)
    assert arriving.channel is early
    assert [early.is_pending, other.channel.is_pending] == [False, False]
    assert rows_of(arriving.spool.read(0).body) == [(1, "a")]
    member.inputs.end(QUERY, {1}, 0.0)
    assert member.is_empty()


def test_a_query_that_runs_here_has_no_other_channels_than_its_own(member: Member) -> None:
    member.inputs.begin(QUERY, PATIENCE)
    (arriving,) = member.inputs.expect(QUERY, 1, ("bergen",), is_result=False)
    assert member.open(1, "bergen") is arriving.channel
    assert member.open(1, "tromso") is Gone.GONE
    assert member.open(2, "bergen") is Gone.GONE
    assert member.open(1, "bergen", receiver="tromso") is Gone.GONE
    assert member.suspected == []


def test_a_channel_that_comes_while_the_plan_is_fetched_is_kept_until_its_edges_are_known(member: Member) -> None:
    member.inputs.begin(QUERY, PATIENCE, is_planned=False)
    early, stray = member.open(1), member.open(7)
    put(early, 0, [(1, "a")])
    assert member.suspected == []  # its Execute is here
    (arriving,) = member.inputs.expect(QUERY, 1, ("bergen",), is_result=False)
    member.inputs.planned(QUERY)
    assert arriving.channel is early
    assert not arriving.channel.is_over
    assert rows_of(arriving.spool.read(0).body) == [(1, "a")]
    assert isinstance(stray, ChannelIn)
    assert stray.is_over
    assert member.open(7) is Gone.GONE
    member.inputs.end(QUERY, {1}, 0.0)
    assert member.is_empty()


def test_after_the_end_late_channels_are_told_so_for_a_while(member: Member) -> None:
    member.inputs.begin(QUERY, PATIENCE)
    member.inputs.expect(QUERY, 1, ("bergen",), is_result=False)
    member.inputs.end(QUERY, {1}, 100.0)
    assert member.inputs.is_gone(QUERY)
    assert member.open() is Gone.GONE
    member.inputs.expire(109.9)
    assert member.open() is Gone.GONE
    member.inputs.expire(110.0)
    assert not member.inputs.is_gone(QUERY)
    assert isinstance(member.open(), ChannelIn)


@pytest.mark.parametrize("first", [1, 2], ids=["participant first", "initiator first"])
def test_two_halves_share_the_budget_and_each_closes_its_own_edges(member: Member, first: int) -> None:
    member.inputs.begin(QUERY, PATIENCE)  # initiator: edge 2
    member.inputs.begin(QUERY, PATIENCE)  # participant: edge 1
    halves = {edge: member.inputs.expect(QUERY, edge, ("bergen",), is_result=edge == 2)[0] for edge in (1, 2)}
    assert halves[1].spool.budget is halves[2].spool.budget
    for arriving in halves.values():
        put(arriving.channel, 0, [(1, "a")])
    second = 3 - first
    member.inputs.end(QUERY, {first}, 0.0)
    assert halves[first].spool.closed
    assert not halves[second].spool.closed
    assert not member.inputs.is_gone(QUERY)
    assert member.open(first) is Gone.GONE
    assert member.open(second) is halves[second].channel
    assert member.resources.memory_used > 0
    member.inputs.end(QUERY, {second}, 0.0)
    assert member.inputs.is_gone(QUERY)
    assert member.is_empty()


def test_channels_that_no_edge_asked_for_go_with_the_query(member: Member) -> None:
    stray = member.open(edge=77)
    put(stray, 0, [(1, "a")])
    member.inputs.begin(QUERY, PATIENCE)
    member.inputs.end(QUERY, set(), 0.0)
    assert isinstance(stray, ChannelIn)
    assert stray.is_over
    assert member.is_empty()


def test_a_pending_query_is_forgotten_with_its_rows(member: Member) -> None:
    early = member.open()
    put(early, 0, [(1, "a")])
    member.inputs.forget(QUERY, 0.0)
    assert isinstance(early, ChannelIn)
    assert early.is_over
    assert member.is_empty()
    assert member.open() is Gone.GONE


def test_forgetting_a_query_that_never_came_leaves_a_marker(member: Member) -> None:
    member.inputs.forget(QUERY, 0.0)
    member.inputs.forget(QUERY, 5.0)
    member.inputs.expire(10.0)
    assert member.inputs.is_gone(QUERY)
    member.inputs.expire(15.0)
    assert not member.inputs.is_gone(QUERY)
    assert member.is_empty()


def test_the_budget_is_shared_with_other_users_until_the_last_gives_it_back(member: Member) -> None:
    held = member.resources.take(QUERY)
    member.inputs.begin(QUERY, PATIENCE)
    (arriving,) = member.inputs.expect(QUERY, 1, ("bergen",), is_result=False)
    assert arriving.spool.budget is held.budget
    member.inputs.end(QUERY, {1}, 0.0)
    assert member.resources.queries == 1
    member.resources.give_back(QUERY)
    assert member.is_empty()


def test_a_batch_is_checked_before_it_is_kept(member: Member) -> None:
    early = member.open()
    assert isinstance(early, ChannelIn)
    early.schema = SCHEMA.arrow
    with pytest.raises(PeerError):
        early.append(Batch(0, 0, False, 1, 10, 0), memoryview(b"no arrow message"))
    with pytest.raises(PeerError, match="2 rows is said to have 5"):
        put(early, 0, [(1, "a"), (2, "b")], said_rows=5)
    assert member.resources.memory_used == 0
    member.inputs.forget(QUERY, 0.0)
    assert member.is_empty()


def test_a_batch_is_read_by_the_schema_of_its_link(member: Member) -> None:
    early = member.open()
    assert isinstance(early, ChannelIn)
    put(early, 0, [(1, "a")])
    early.schema = encode_schema(pa.schema([("k", pa.int64()), ("v", pa.string()), ("w", pa.int64())]))
    entry = entry_of([(1, "a")])
    with pytest.raises(PeerError):
        early.append(Batch(1, 0, False, 1, entry.decoded_bytes, 0), memoryview(entry.body))
    member.inputs.forget(QUERY, 0.0)
    assert member.is_empty()
