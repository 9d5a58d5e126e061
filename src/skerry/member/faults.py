"""Fault policies: how long a query waits for a peer without a connection. Pure (docs/protocol.md, 3.4)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from skerry.config import FaultPolicy
from skerry.model.limits import Limits
from skerry.wire.session import LinkState

OPTION = "fault_policy"


class Patience(msgspec.Struct, frozen=True):
    """What one query's policy comes to. Refused connections and restarts end every query, whatever its policy."""

    policy: FaultPolicy
    wait_s: float  # for a connection that was lost; 0: not at all
    first_wait_s: float  # for the first connection to a peer

    @classmethod
    def of(cls, policy: FaultPolicy, limits: Limits, timeout_s: float) -> Patience:
        wait_s = {FaultPolicy.FAIL: 0.0, FaultPolicy.WAIT: limits.wait_s, FaultPolicy.BUFFER: timeout_s}[policy]
        # Every participant begins soon or never: rows that overtake an Execute are not kept longer than wait_s by a
        # member that cannot reach the initiator, and a tombstone of them not longer than marker_s.
        return cls(policy, wait_s, limits.wait_s)


class Watch:
    """One query's look at the links to its peers: says when one of them counts as lost for this query."""

    def __init__(self, patience: Patience) -> None:
        self.patience = patience
        self._links: dict[str, int] = {}  # which link of a peer was the first one seen

    def look(self, peer: str, state: LinkState | None, now: float) -> str:
        """Why the peer is lost to this query, or "". Without a session its loss is told by the session's end."""
        if state is None:
            return ""
        if state.is_linked:
            self._links.setdefault(peer, state.links)
        first = self._links.get(peer)
        if first is not None and self.patience.wait_s <= 0:
            is_first = state.is_linked and state.links == first
            return "" if is_first else "its connection was lost, and this query does not wait"
        wait_s = self.patience.wait_s if first is not None else self.patience.first_wait_s
        if state.is_linked or now - state.since < wait_s:
            return ""
        return f"no connection for {wait_s:g} s"


def policy_of(options: Mapping[str, int | str]) -> FaultPolicy:
    """The policy that an initiator's Execute names; a newer release may have one that is not known here."""
    name = options.get(OPTION)
    return next((policy for policy in FaultPolicy if policy.value == name), FaultPolicy.WAIT)
