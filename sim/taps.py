"""What goes over the wire, checked byte by byte: credits, acks and resent batches, whatever members think of them."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from sim.network import Endpoint
from skerry.model.ids import ChannelId
from skerry.wire.frames import HEADER, HEADER_BYTES, Frame, decode, split_batch
from skerry.wire.kinds import KINDS
from skerry.wire.messages import Batch, ChannelOk, ChannelPending, Grant, Hello, OpenChannel

if TYPE_CHECKING:
    from sim.cluster import Cluster

_LOOKED_AT = frozenset(
    kind for kind, message in KINDS.items() if message in (Hello, OpenChannel, ChannelOk, ChannelPending, Grant, Batch)
)


class _Stream:
    """Frames of one direction."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def frames(self, chunk: bytes) -> list[Frame]:
        self._bytes += chunk
        found = []
        while len(self._bytes) >= HEADER_BYTES:
            length, kind, _ = HEADER.unpack_from(self._bytes)
            if len(self._bytes) < HEADER_BYTES + length:
                break
            if kind in _LOOKED_AT:
                found.append(Frame(kind, bytes(self._bytes[HEADER_BYTES : HEADER_BYTES + length])))
            del self._bytes[: HEADER_BYTES + length]
        return found


class Ledger:
    """One channel between two incarnations of members, over all its connections."""

    def __init__(self) -> None:
        self.credit_upto = 0  # as the sender has been told
        self.batches: list[tuple[int, int, int, bool]] = []  # decoded bytes before it, its own, hash, last
        self.delivered_upto = 0  # the receiver's process has read all below
        self.acked_upto = 0  # the highest ack the receiver has said


class DataTap:
    """One connection. Those that turn out not to carry a channel are not looked at any further."""

    def __init__(self, cluster: Cluster, dialling: Endpoint, listening: Endpoint) -> None:
        self._cluster = cluster
        self._dialling = dialling
        self._listening = listening
        self._written = {dialling: _Stream(), listening: _Stream()}
        self._read = {dialling: _Stream(), listening: _Stream()}
        self._channel: ChannelId | None = None
        self._is_watched = True

    def wrote(self, endpoint: Endpoint, chunk: bytes) -> None:
        if not self._is_watched:
            return
        for frame in self._written[endpoint].frames(chunk):
            message = decode(frame)
            if isinstance(message, Hello):
                self._dialling.kind = self._listening.kind = message.kind
                self._is_watched = message.kind == "data"
            elif isinstance(message, OpenChannel):
                self._channel = message.channel
            elif isinstance(message, Batch):
                self._sent(message, zlib.crc32(split_batch(frame)[1]))
            elif isinstance(message, Grant):
                self._acked(message)

    def got(self, endpoint: Endpoint, chunk: bytes) -> None:
        if not self._is_watched:
            return
        for frame in self._read[endpoint].frames(chunk):
            message = decode(frame)
            if self._channel is None:
                continue
            ledger = self._ledger()
            if isinstance(message, ChannelOk | ChannelPending | Grant):
                ledger.credit_upto = max(ledger.credit_upto, message.credit_upto)
            elif isinstance(message, Batch) and message.seq == ledger.delivered_upto:
                ledger.delivered_upto += 1

    def _ledger(self) -> Ledger:
        key = (self._channel, self._dialling.process, self._listening.process)
        return self._cluster.ledgers.setdefault(key, Ledger())

    def _sent(self, batch: Batch, body_hash: int) -> None:
        """Only within credit, the same again when it is sent again, and nothing after the end."""
        ledger, seq = self._ledger(), batch.seq
        known = ledger.batches
        if seq > len(known):
            return self._wrong(f"batch {seq} was sent after batch {len(known) - 1}")
        before = known[-1][0] + known[-1][1] if known else 0
        if seq == len(known):
            if known and known[-1][3]:
                return self._wrong(f"batch {seq} was sent after the end mark")
            known.append((before, batch.decoded_bytes, body_hash, batch.last))
        before, size, former_hash, last = known[seq]
        if (size, former_hash, last) != (batch.decoded_bytes, body_hash, batch.last):
            return self._wrong(f"batch {seq} is another one than when it was first sent")
        if batch.decoded_bytes and before >= ledger.credit_upto:
            return self._wrong(f"batch {seq} was sent at {before} with a credit of {ledger.credit_upto}")
        return None

    def _acked(self, grant: Grant) -> None:
        """Only what is in the receiver's spool, and never less than before."""
        ledger = self._ledger()
        if grant.acked_upto > ledger.delivered_upto:
            self._wrong(f"batches up to {grant.acked_upto} were acked, {ledger.delivered_upto} were delivered")
        if grant.acked_upto < ledger.acked_upto:
            self._wrong(f"the ack went back from {ledger.acked_upto} to {grant.acked_upto}")
        ledger.acked_upto = max(ledger.acked_upto, grant.acked_upto)
        assert self._channel is not None
        arriving = self._cluster.arriving(self._channel, self._listening.process)
        if arriving is None:
            return
        kept, ends = arriving.spool.length, sum(1 for batch in ledger.batches[: grant.acked_upto] if batch[3])
        if grant.acked_upto - ends > kept:
            self._wrong(f"batches up to {grant.acked_upto} were acked, {kept} are in the spool")
        if grant.acked_upto and arriving.channel.is_pending:
            self._wrong("rows were acked before their query began: a restart would lose them unseen")

    def _wrong(self, what: str) -> None:
        self._cluster.violated(f"{self._channel}: {what}")


def tap_maker(cluster: Cluster) -> Callable[[Endpoint, Endpoint], DataTap]:
    return lambda dialling, listening: DataTap(cluster, dialling, listening)
