"""Channels that arrive at a member: known queries, queries not begun yet, queries that are gone."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection

import msgspec
import pyarrow as pa

from skerry.catalog.topology import Topology
from skerry.exchange.spool import Budget, Entry, Spool
from skerry.member.faults import Patience
from skerry.member.resources import Held, Resources
from skerry.model.errors import ConfigError, Overloaded, PeerError, SkerryError
from skerry.model.ids import ChannelId, QueryId
from skerry.model.limits import Limits
from skerry.wire.channels import ChannelIn, Gone
from skerry.wire.codec import decode_batch, decode_schema
from skerry.wire.frames import Buffer
from skerry.wire.messages import Batch, OpenChannel


class Arriving(msgspec.Struct):
    """One channel's receiving end and the spool it fills."""

    channel: ChannelIn
    spool: Spool
    window_bytes: int = 0

    @property
    def received_bytes(self) -> int:
        return self.channel.received_bytes


class Kept(msgspec.Struct):
    """Rows that an operator of this member makes for a job of it: they pass no channel."""

    spool: Spool
    received_bytes: int = 0


# What a job reads.
Inflow = Arriving | Kept


class Inputs:
    """Looks channels up as they are opened. A channel for an unknown query is retained within its first credits."""

    def __init__(
        self,
        member: str,
        limits: Limits,
        topology: Topology,
        resources: Resources,
        suspect: Callable[[QueryId], None],
    ) -> None:
        self._member = member
        self._limits = limits
        self._topology = topology
        self._resources = resources
        self._suspect = suspect
        self._arriving: dict[QueryId, dict[ChannelId, Arriving]] = {}
        self._held: dict[QueryId, Held] = {}
        self._halves: dict[QueryId, int] = {}  # initiator and participant may be at one member
        self._unplanned: set[QueryId] = set()  # begun, but which edges they have is not known yet
        self._waits_s: dict[QueryId, float] = {}
        self._gone: OrderedDict[QueryId, float] = OrderedDict()

    @property
    def pending(self) -> list[QueryId]:
        """Queries whose rows came before their Execute."""
        return [query for query in self._arriving if query not in self._halves]

    def begin(self, query: QueryId, patience: Patience, share: str = "", *, is_planned: bool = True) -> None:
        """One half of the query, initiator or participant, has begun here.

        `share`: whose share of this member it takes; without one that of the member that began it.
        `is_planned`: `expect` follows at once.
        """
        self._halves[query] = self._halves.get(query, 0) + 1
        self._waits_s[query] = patience.wait_s
        held = self._hold(query)
        self._resources.share(held, share or f"member {query.initiator}")
        self._resources.allow(held, patience.policy)
        if not is_planned:
            self._unplanned.add(query)

    def budget(self, query: QueryId) -> Budget:
        """What the query holds here, from its beginning to its end."""
        return self._held[query].budget

    def planned(self, query: QueryId) -> None:
        """All edges of the query are expected by now: others that came meanwhile are refused."""
        self._unplanned.discard(query)
        channels = self._arriving.get(query, {})
        for channel in [channel for channel, arriving in channels.items() if arriving.channel.is_pending]:
            _close(channels.pop(channel))

    def expect(self, query: QueryId, edge: int, senders: tuple[str, ...], *, is_result: bool) -> list[Arriving]:
        """These channels will come, or came already."""
        assert query in self._halves
        return [self._find(ChannelId(query, edge, sender, self._member), is_result, True) for sender in senders]

    def expect_relayed(self, channel: ChannelId) -> Arriving:
        """This channel will pass, or its rows came already; its credit follows what is passed on."""
        assert channel.query in self._halves
        return self._find(channel, True, True)

    def end(self, query: QueryId, edges: Collection[int], now: float) -> None:
        """One half is over and needs its edges no more; with the last half the query is gone."""
        channels = self._arriving.get(query, {})
        for channel in [channel for channel in channels if channel.edge in edges]:
            _close(channels.pop(channel))
        self._halves[query] -= 1
        if self._halves[query] == 0:
            self.forget(query, now)

    def lookup(self, opening: OpenChannel) -> ChannelIn | Gone:
        """What to answer a sender that opens a channel."""
        channel = opening.channel
        if not self._passes(channel) or channel.query in self._gone:
            return Gone.GONE
        known = self._arriving.get(channel.query, {}).get(channel)
        if known is not None:
            return known.channel
        if channel.query not in self._halves:
            if len(self.pending) >= self._limits.pending_queries:
                raise Overloaded(f"rows of {self._limits.pending_queries} queries not begun here wait already")
            self._suspect(channel.query)
        elif channel.query not in self._unplanned:
            return Gone.GONE  # the query runs here, and has no such edge
        return self._find(channel, False, False).channel

    def is_between(self, channel: ChannelId) -> bool:
        """Whether rows of this channel only pass here."""
        return self._passes(channel) and channel.receiver != self._member

    def _passes(self, channel: ChannelId) -> bool:
        """Whether rows of this channel come here, to stay or on their way."""
        if channel.receiver == self._member:
            return True
        try:
            return self._member in self._topology.route(channel.sender, channel.receiver)[1:]
        except ConfigError:
            return False

    def forget(self, query: QueryId, now: float) -> None:
        """Nothing of the query is wanted here; late channels are told so for a while."""
        for arriving in self._arriving.pop(query, {}).values():
            _close(arriving)
        if self._held.pop(query, None) is not None:
            self._resources.give_back(query)
        self._halves.pop(query, None)
        self._unplanned.discard(query)
        self._waits_s.pop(query, None)
        self._gone.pop(query, None)
        self._gone[query] = now + self._limits.marker_s

    def is_gone(self, query: QueryId) -> bool:
        return query in self._gone

    def expire(self, now: float) -> None:
        while self._gone and next(iter(self._gone.values())) <= now:
            self._gone.popitem(last=False)

    def _find(self, channel: ChannelId, follows: bool, active: bool) -> Arriving:
        """`follows`: its credit follows what is consumed."""
        channels = self._arriving.setdefault(channel.query, {})
        found = channels.get(channel)
        if found is None:
            found = channels[channel] = self._make(channel, follows, pending=not active)
        elif active:
            found.channel.activate(grant_on_consumption=follows or None)
        if active:
            found.channel.wait_for(self._waits_s[channel.query])
        if follows:
            # Twice: a batch more than its credit may come, and files take more room than the rows still in them.
            found.spool.promise(2 * found.window_bytes)
        return found

    def _hold(self, query: QueryId) -> Held:
        if query not in self._held:
            self._held[query] = self._resources.take(query)
        return self._held[query]

    def _make(self, channel: ChannelId, follows: bool, *, pending: bool) -> Arriving:
        spool = self._resources.spool(self._hold(channel.query), str(channel))
        hop = self._topology.previous_hop(self._member, channel.sender, channel.receiver)
        window = self._topology.first_credits(hop, self._member, self._limits)

        schema: tuple[bytes, pa.Schema] | None = None  # as opened, and decoded: once a link, not once a batch

        def append(header: Batch, body: Buffer) -> None:
            nonlocal schema
            if header.rows:
                if schema is None or schema[0] != receiving.schema:
                    schema = receiving.schema, decode_schema(receiving.schema)
                # A peer's batch is checked once, here; from now on it is passed on as bytes (D12).
                batch = decode_batch(body, schema[1], self._limits.frame_bytes * 4, header.decoded_bytes)
                if batch.num_rows != header.rows:
                    raise PeerError(f"{channel}: a batch of {batch.num_rows} rows is said to have {header.rows}")
            spool.append(Entry(body, header.rows, header.decoded_bytes))

        def fail(error: SkerryError) -> None:
            spool.fail(error)

        receiving = ChannelIn(
            channel,
            self._limits,
            append=append,
            finish=spool.finish,
            fail=fail,
            window_bytes=window,
            grant_on_consumption=follows,
            pending=pending,
            peer=hop,
        )
        return Arriving(receiving, spool, window)


def _close(arriving: Arriving) -> None:
    arriving.channel.close()
    arriving.spool.close()
