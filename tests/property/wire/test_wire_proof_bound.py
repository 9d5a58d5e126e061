"""A proof fails when anything that it is bound to is changed."""

from __future__ import annotations

import hmac

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from skerry.wire.proof import NONCE_BYTES, Bound, Side, make_proof

NONCES = st.binary(min_size=NONCE_BYTES, max_size=NONCE_BYTES)
EPOCHS = st.integers(0, 2**64 - 1)
NAMES = st.text(max_size=40)
BOUNDS = st.builds(
    Bound,
    kind=st.sampled_from(["control", "data"]),
    cluster=NAMES,
    dialler=NAMES,
    dialler_epoch=EPOCHS,
    dialler_nonce=NONCES,
    listener=NAMES,
    listener_epoch=EPOCHS,
    listener_nonce=NONCES,
)
ALL = st.tuples(st.binary(min_size=32, max_size=64), st.sampled_from(Side), BOUNDS)


@given(ALL, ALL, st.sets(st.sampled_from(["key", "side", *Bound.__struct_fields__])))
def test_a_proof_holds_for_nothing_but_what_it_was_made_for(
    one: tuple[bytes, Side, Bound], other: tuple[bytes, Side, Bound], changed: set[str]
) -> None:
    """`changed` fields are the other's: one of them, several, or none."""
    fields = {name: getattr(other[2], name) for name in changed - {"key", "side"}}
    mixed = (
        other[0] if "key" in changed else one[0],
        other[1] if "side" in changed else one[1],
        msgspec.structs.replace(one[2], **fields),
    )
    is_same = hmac.compare_digest(make_proof(*one), make_proof(*mixed))
    assert is_same == (mixed == one)


@given(BOUNDS, st.binary(min_size=32, max_size=64))
def test_fields_that_are_swapped_are_others(bound: Bound, key: bytes) -> None:
    swapped = msgspec.structs.replace(bound, dialler=bound.listener, listener=bound.dialler)
    assert (make_proof(key, Side.DIALLER, bound) == make_proof(key, Side.DIALLER, swapped)) == (swapped == bound)
