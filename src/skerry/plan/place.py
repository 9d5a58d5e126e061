"""Where the part of a query that cannot be cut runs: at the site where the fewest bytes arrive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def fewest_arriving(held_bytes: Mapping[str, int], members: Sequence[str]) -> str:
    """`held_bytes` is what each member would have to send if it were not the chosen one.

    All that the others hold arrives, so the site that holds most wins; ties go to a site that holds some of it at
    all (another one may be down, and the query does not need it), then to the member named first in the
    configuration, so that every initiator chooses alike.
    """
    assert members, "a cluster has at least one data member"
    total = sum(held_bytes.values())

    def rank(member: str) -> tuple[int, bool, int]:
        return total - held_bytes.get(member, 0), member not in held_bytes, members.index(member)

    return min(members, key=rank)
