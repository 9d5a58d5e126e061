"""How members prove to each other that they know the cluster's secret. Pure (docs/protocol.md, 2.1).

Both sides say a nonce and show an HMAC over all that tells this connection from any other: so a proof that was seen
cannot be shown again, to another member, on another kind of connection, or back to whoever made it.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
from collections.abc import Callable, Sequence

import msgspec

from skerry.model.errors import PeerError
from skerry.wire.messages import Challenge, Hello, Proof

NONCE_BYTES = 32
_LABEL = "skerry member proof 1"


class Side(enum.Enum):
    DIALLER = "dialler"
    LISTENER = "listener"


class Secret:
    """The first key proves, any is accepted: so that members take a new one while others still have the old one.

    A class without fields that anyone would print, log or send.
    """

    def __init__(self, keys: Sequence[bytes], new_nonce: Callable[[], bytes]) -> None:
        assert keys
        self._keys = tuple(keys)
        self.new_nonce = new_nonce

    @property
    def keys(self) -> tuple[bytes, ...]:
        return self._keys

    def __repr__(self) -> str:
        return "Secret(…)"


class Bound(msgspec.Struct, frozen=True):
    """All that a proof is made for, in the order in which it is written."""

    kind: str
    cluster: str
    dialler: str
    dialler_epoch: int
    dialler_nonce: bytes
    listener: str
    listener_epoch: int
    listener_nonce: bytes

    @classmethod
    def of(cls, hello: Hello, challenge: Challenge, dialler_nonce: bytes) -> Bound:
        return cls(
            kind=hello.kind,
            cluster=hello.cluster,
            dialler=hello.member,
            dialler_epoch=hello.epoch,
            dialler_nonce=dialler_nonce,
            listener=challenge.member,
            listener_epoch=challenge.epoch,
            listener_nonce=challenge.nonce,
        )


def make_proof(key: bytes, side: Side, bound: Bound) -> bytes:
    """HMAC-SHA256 over one msgpack array: no two lists of fields have the same bytes."""
    fields = (_LABEL, side.value, *msgspec.structs.astuple(bound))
    return hmac.digest(key, msgspec.msgpack.encode(fields), hashlib.sha256)


def answer_to(challenge: Challenge, hello: Hello, listener: str, secret: Secret | None, nonce: bytes) -> Proof:
    """The dialler's proof, for the member that it means to reach and for nobody else."""
    if secret is None:
        raise PeerError(
            f"{listener} asks for the cluster's secret, and {hello.member} has none",
            suggestion="give all members of the cluster the same file (secret: in skerry.yaml)",
        )
    if challenge.member != listener:
        # Whoever answers there could show the proof to the member that it names.
        raise PeerError(f"{listener}'s address answers as {challenge.member[:100]!r}")
    _check_nonce(challenge.nonce)
    bound = Bound.of(hello, challenge, nonce)
    return Proof(nonce, make_proof(secret.keys[0], Side.DIALLER, bound))


def admit(shown: Proof, hello: Hello, challenge: Challenge, secret: Secret) -> Proof:
    """The listener's own proof, by the key that the dialler has shown to know; PeerError if it knows none."""
    _check_nonce(shown.nonce)
    bound = Bound.of(hello, challenge, shown.nonce)
    # All are tried: how long it takes says nothing of which one it was.
    known = [key for key in secret.keys if hmac.compare_digest(make_proof(key, Side.DIALLER, bound), shown.proof)]
    if not known:
        raise _unproven(hello.member, challenge.member)
    return Proof(challenge.nonce, make_proof(known[0], Side.LISTENER, bound))


def confirm(shown: Proof, answer: Proof, hello: Hello, challenge: Challenge, secret: Secret) -> None:
    """PeerError unless the listener knows the key that the dialler has proven to know."""
    bound = Bound.of(hello, challenge, answer.nonce)
    if not hmac.compare_digest(make_proof(secret.keys[0], Side.LISTENER, bound), shown.proof):
        raise _unproven(challenge.member, hello.member)


def _check_nonce(nonce: bytes) -> None:
    if len(nonce) != NONCE_BYTES:
        raise PeerError(f"a nonce has {NONCE_BYTES} bytes, not {len(nonce)}")


def _unproven(who: str, whom: str) -> PeerError:
    return PeerError(
        f"{who[:100]!r} did not prove to {whom[:100]} that it is a member: its secret is another",
        suggestion="give all members of the cluster the same file (secret: in skerry.yaml)",
    )
