"""Channels that leave a member: which way they go, how they are compressed and protected."""

from __future__ import annotations

from random import Random

import msgspec

from skerry.catalog.topology import Topology
from skerry.model.ids import ChannelId
from skerry.model.limits import Limits
from skerry.wire.sending import ChannelOut, SpoolLike
from skerry.wire.session import Identity
from skerry.wire.spares import Spares
from skerry.wire.tls import Tls


class Outgoing(msgspec.Struct, frozen=True):
    """Makes the sending end of a channel, at the channel's sender or at a relay."""

    identity: Identity
    addresses: dict[str, str]
    topology: Topology
    limits: Limits
    random: Random
    tls: Tls | None = None
    spares: Spares | None = None

    def channel(self, channel: ChannelId, schema: bytes, spool: SpoolLike, wait_s: float | None = None) -> ChannelOut:
        """To the next member on the channel's route; ConfigError when there is none."""
        me = self.identity.member
        hop = self.topology.next_hop(me, channel.sender, channel.receiver)
        return ChannelOut(
            self.identity,
            channel,
            self.addresses[hop],
            schema,
            spool,
            self.limits,
            self.random,
            wait_s=wait_s,
            codec=self.topology.codec(me, hop),
            to=hop,
            tls=self.tls,
            spares=self.spares,
        )
