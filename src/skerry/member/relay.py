"""Rows that only pass through a member, on their way between two that have no link (docs/protocol.md, 4.7)."""

from __future__ import annotations

from collections.abc import Callable

from skerry.catalog.topology import Topology
from skerry.member.inputs import Arriving
from skerry.member.outgoing import Outgoing
from skerry.model.errors import SkerryError
from skerry.model.fragment import GroupHere, OperatorFragment, Plan
from skerry.model.ids import ChannelId, QueryId
from skerry.wire.channel import ChannelEnd
from skerry.wire.sending import ChannelOut, EntryLike


def relays_of(plan: Plan, query: QueryId, topology: Topology) -> dict[str, tuple[ChannelId, ...]]:
    """Which channels pass which members. ConfigError, before anything runs, when two have no way to each other."""
    found: dict[str, list[ChannelId]] = {}
    readers = plan.readers()
    for fragment in plan.fragments:
        sender = fragment.member
        for receiver in readers[fragment.id]:
            channel = ChannelId(query, fragment.output.edge, sender, receiver)
            for member in topology.route(sender, receiver)[1:-1] if sender != receiver else ():
                if channel not in found.setdefault(member, []):
                    found[member].append(channel)
    for channel in forwarding(plan, query):
        for member in topology.route(channel.sender, channel.receiver)[1:-1]:
            found.setdefault(member, []).append(channel)
    return {member: tuple(channels) for member, channels in found.items()}


def forwarding(plan: Plan, query: QueryId) -> list[ChannelId]:
    """The channels between members that fold groups, any two of them."""
    found: list[ChannelId] = []
    for fragment in plan.fragments:
        if isinstance(fragment, OperatorFragment) and isinstance(fragment.operator, GroupHere):
            shape, sender = fragment.operator, fragment.member
            others = [member for member in shape.members if member != sender]
            found += [ChannelId(query, edge, sender, to) for edge in (shape.forwards, shape.shares) for to in others]
    return found


class RelaySpool:
    """The spool of the hop before, as the hop behind reads it: what is acked there gives credit here.

    So a relay holds a window of each channel, and no more, whatever passes.
    """

    def __init__(self, arriving: Arriving) -> None:
        self._arriving = arriving
        self._sizes: dict[int, int] = {}  # of what was read and is not acked
        self._first = 0

    @property
    def length(self) -> int:
        return self._arriving.spool.length

    @property
    def finished(self) -> bool:
        return self._arriving.spool.finished

    @property
    def failed(self) -> SkerryError | None:
        return self._arriving.spool.failed

    def read(self, index: int) -> EntryLike:
        entry = self._arriving.spool.read(index)
        self._sizes[index] = entry.decoded_bytes
        return entry

    def release(self, upto: int) -> None:
        self._arriving.spool.release(upto)
        consumed = sum(self._sizes.pop(index) for index in range(self._first, upto))
        self._first = max(self._first, upto)
        if consumed:
            self._arriving.channel.consumed(consumed)

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        return self._arriving.spool.subscribe(callback)


class Relay:
    """One channel that passes: comes in from the hop before, leaves for the hop behind, as the same channel."""

    def __init__(self, arriving: Arriving, outgoing: Outgoing, wait_s: float) -> None:
        self.channel = arriving.channel.channel
        self.out: ChannelOut | None = None  # once its schema is known
        self._arriving = arriving
        self._outgoing = outgoing
        self._wait_s = wait_s

    async def run(self) -> None:
        """Until the hop behind has everything, or wants no more, and the hop before knows it. Raises as ChannelOut."""
        receiving = self._arriving.channel
        await receiving.opened.wait()  # owner: the query's end cancels it
        spool = RelaySpool(self._arriving)
        self.out = self._outgoing.channel(self.channel, receiving.schema, spool, self._wait_s)
        end = await self.out.run()
        if end is ChannelEnd.STOPPED:
            receiving.stop_sending()
        elif end is ChannelEnd.GONE:
            receiving.gone()
        await receiving.wait_unlinked()


class Relays:
    """All relays of one query at one member."""

    def __init__(self) -> None:
        self._all: list[Relay] = []

    def add(self, relay: Relay) -> None:
        self._all.append(relay)

    @property
    def edges(self) -> set[int]:
        return {relay.channel.edge for relay in self._all}

    @property
    def channels(self) -> list[ChannelOut]:
        """The sending ends that are there, for the bytes they have sent."""
        return [relay.out for relay in self._all if relay.out is not None]
