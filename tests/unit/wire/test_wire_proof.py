"""Members prove that they know the secret; the proof fails for anything else than this one connection."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from skerry.model.errors import PeerError
from skerry.wire.frames import encode_message
from skerry.wire.greeting import make_hello
from skerry.wire.messages import Challenge, Proof
from skerry.wire.proof import NONCE_BYTES, Bound, Secret, Side, admit, answer_to, confirm, make_proof
from skerry.wire.session import Identity

KEY = b"00112233445566778899aabbccddeeff"
BOUND = Bound("control", "fjords", "bergen", 22, b"\1" * NONCE_BYTES, "oslo", 11, b"\2" * NONCE_BYTES)
GOLDEN = {
    Side.DIALLER: "64222d66f39db7dc8fc73e747ab0fcdeb91b53761f1e9aab35a89bf456efa2aa",
    Side.LISTENER: "37766068323e761137563195ebf2e25525cac28f7e856248d885ad5cb9c1e09d",
}
HELLO = make_hello(Identity("fjords", "bergen", 22), "data")
CHALLENGE = Challenge("oslo", 11, b"\2" * NONCE_BYTES)


def secret(*keys: bytes) -> Secret:
    return Secret(keys, lambda: b"\1" * NONCE_BYTES)


@pytest.mark.parametrize("side", list(Side))
def test_proofs_have_these_bytes(side: Side) -> None:
    assert make_proof(KEY, side, BOUND).hex() == GOLDEN[side]


def test_frames_have_these_bytes() -> None:
    frames = [
        b"".join(map(bytes, encode_message(m))).hex() for m in (Challenge("oslo", 11, b"\2"), Proof(b"\1", b"\3"))
    ]
    assert frames == [
        "0000000a0522c532d193a46f736c6f0bc40102",
        "0000000706d4a5999192c40101c40103",
    ]


def test_both_sides_prove_themselves() -> None:
    answer = answer_to(CHALLENGE, HELLO, "oslo", secret(KEY), b"\1" * NONCE_BYTES)
    shown = admit(answer, HELLO, CHALLENGE, secret(KEY))
    confirm(shown, answer, HELLO, CHALLENGE, secret(KEY))
    assert answer.proof != shown.proof


def test_what_a_dialler_said_is_no_answer_of_a_listener() -> None:
    answer = answer_to(CHALLENGE, HELLO, "oslo", secret(KEY), b"\1" * NONCE_BYTES)
    with pytest.raises(PeerError, match="'oslo' did not prove to bergen"):
        confirm(answer, answer, HELLO, CHALLENGE, secret(KEY))
    # Nor may the listener's answer, or the nonce, be shown as a dialler's.
    shown = admit(answer, HELLO, CHALLENGE, secret(KEY))
    for proof in (shown.proof, b"", answer.nonce):
        with pytest.raises(PeerError, match="'bergen' did not prove to oslo"):
            admit(Proof(answer.nonce, proof), HELLO, CHALLENGE, secret(KEY))


def test_a_new_key_is_taken_member_by_member() -> None:
    old, new = b"o" * 32, b"n" * 32
    steps = [(old,), (old, new), (new, old), (new,)]
    # Any two neighbours are there at once, while members are started again one by one.
    for one, other in itertools.pairwise(steps):
        for dialler, listener in ((one, other), (other, one)):
            answer = answer_to(CHALLENGE, HELLO, "oslo", secret(*dialler), b"\1" * NONCE_BYTES)
            confirm(admit(answer, HELLO, CHALLENGE, secret(*listener)), answer, HELLO, CHALLENGE, secret(*dialler))
    answer = answer_to(CHALLENGE, HELLO, "oslo", secret(old), b"\1" * NONCE_BYTES)
    with pytest.raises(PeerError, match="its secret is another"):
        admit(answer, HELLO, CHALLENGE, secret(new))


def test_a_proof_is_made_for_the_member_that_was_meant_alone() -> None:
    # Whoever sits at oslo's address might pass tromso's challenge on.
    with pytest.raises(PeerError, match="oslo's address answers as 'tromso'"):
        answer_to(msgspec.structs.replace(CHALLENGE, member="tromso"), HELLO, "oslo", secret(KEY), b"\1" * NONCE_BYTES)
    with pytest.raises(PeerError, match="a nonce has 32 bytes, not 2"):
        answer_to(msgspec.structs.replace(CHALLENGE, nonce=b"ab"), HELLO, "oslo", secret(KEY), b"\1" * NONCE_BYTES)
    with pytest.raises(PeerError, match="a nonce has 32 bytes, not 0"):
        admit(Proof(b"", b""), HELLO, CHALLENGE, secret(KEY))
    with pytest.raises(PeerError, match="bergen has none"):
        answer_to(CHALLENGE, HELLO, "oslo", None, b"")


def test_a_secret_is_never_printed() -> None:
    assert "0011" not in repr(Identity("fjords", "oslo", 1, secret=secret(KEY)))
