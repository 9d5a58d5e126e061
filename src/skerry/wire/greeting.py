"""The first frame of a connection, and the version that both sides then speak (docs/protocol.md, 2)."""

from __future__ import annotations

from collections.abc import Sequence

from skerry.model.errors import PeerError, VersionError
from skerry.wire.messages import CONTROL_VERSIONS, DATA_VERSIONS, PROTOCOL_VERSIONS, Hello
from skerry.wire.session import Identity


def make_hello(identity: Identity, kind: str, credentials: str = "") -> Hello:
    """The first frame of a connection that is not a control connection."""
    return Hello(
        kind, _spoken(kind), identity.cluster, identity.member, identity.epoch, credentials, 0, identity.release
    )


def choose_version(hello: Hello, identity: Identity) -> int:
    """The newest version in common; raises what to refuse the connection with."""
    # A client is told whom it reached; it need not know the cluster's name beforehand.
    if hello.cluster != identity.cluster and (hello.cluster or hello.kind != "client"):
        raise PeerError(f"this is a member of cluster {identity.cluster!r}, not of {hello.cluster[:100]!r}")
    spoken = _spoken(hello.kind)
    common = set(hello.versions) & set(spoken)
    if not common:
        raise VersionError(
            f"{hello.member[:100]} speaks protocol versions {_listed(hello.versions)} and"
            f" {identity.member} {_listed(spoken)}",
            suggestion="update the older of the two",
        )
    return max(common)


def _spoken(kind: str) -> tuple[int, ...]:
    return {"control": CONTROL_VERSIONS, "data": DATA_VERSIONS}.get(kind, PROTOCOL_VERSIONS)


def _listed(versions: Sequence[int]) -> str:
    return ", ".join(map(str, versions[:10])) or "none"
