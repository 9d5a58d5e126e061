"""Whatever a job's tasks and its driver say: a fragment is complete only if the member holds just what they report."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skerry.exchange.intake import Attempt, Intake, SinkRow, body_hash, combine
from skerry.model.errors import SiteError

BODIES = st.lists(st.sampled_from([b"a", b"b", b"ab"]), max_size=3)


def checksum_of(bodies: list[bytes]) -> int:
    checksum = 0
    for body in bodies:
        checksum = combine(checksum, body_hash(body))
    return checksum


@st.composite
def attempts(draw: st.DrawFn) -> dict[tuple[int, int], tuple[list[bytes], bool]]:
    """One attempt of each partition, or more where tasks are retried: what it delivered, and whether it ended."""
    keys = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4)), unique=True, max_size=4))
    return {key: (draw(BODIES), draw(st.sampled_from([True, True, True, False]))) for key in keys}


def claims(bodies: list[bytes]) -> st.SearchStrategy[list[bytes]]:
    """The truth, as many other rows in as many batches, or anything."""
    return st.just(bodies) | st.just([body[::-1] if len(body) > 1 else b"?" for body in bodies]) | BODIES


@given(attempts(), st.booleans(), st.data())
def test_complete_means_that_member_and_driver_agree(
    delivered: dict[tuple[int, int], tuple[list[bytes], bool]], retries_tasks: bool, data: st.DataObject
) -> None:
    if not retries_tasks:  # rows go on as they come: a second attempt is refused before this
        delivered = {key: told for key, told in delivered.items() if key == min(k for k in delivered if k[0] == key[0])}
    intake = Intake(1, retries_tasks)
    for key, (bodies, has_ended) in delivered.items():
        intake.open(key)
        for body in bodies:
            intake.batch(key, len(body), len(body), body_hash(body))
        if has_ended:
            intake.end(key, len(bodies), sum(map(len, bodies)), checksum_of(bodies))
    # The driver tells the truth about some of them; or it tells of other rows, or of tasks that nobody saw.
    reported = data.draw(st.lists(st.sampled_from([*delivered, (7, 7)]), max_size=4, unique=True), "reported")
    said = {key: data.draw(claims(delivered.get(key, ([], False))[0]), "said") for key in reported}
    rows = [SinkRow(*key, len(b), sum(map(len, b)), checksum_of(b)) for key, b in said.items()]
    is_proven = (
        all(key in delivered and delivered[key] == (said[key], True) for key in reported)
        and len({partition for partition, _ in reported}) == len(reported)
        and (retries_tasks or set(reported) == set(delivered))
    )
    try:
        winners = intake.settle(rows)
    except SiteError:
        assert not is_proven
    else:
        assert is_proven
        assert winners == sorted(Attempt(*key) for key in reported)
        assert intake.rows == sum(sum(map(len, bodies)) for bodies in said.values())
