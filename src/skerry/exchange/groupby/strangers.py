"""What a member says about a group-by that it knows nothing of: it has restarted, or has forgotten it. Pure.

Everybody who takes part gets an end by this, even if the one who would have told it is gone.
"""

from __future__ import annotations

from skerry.model.errors import SiteError
from skerry.wire.groupby_messages import (
    Dismiss,
    Dismissed,
    End,
    Ended,
    Failed,
    GroupByMessage,
    Recruit,
    ToManager,
)
from skerry.wire.values import failure_of


def answer(me: str, message: GroupByMessage) -> GroupByMessage | None:
    """None: nothing need be said. A Recruit is no such message: it makes a worker, or is refused for want of room."""
    assert not isinstance(message, Recruit)
    match message:
        case End():
            return Ended(message.group)
        case Dismiss():
            return Dismissed(message.group)
        case Ended() | Dismissed() | Failed():
            return None
    failure = failure_of(SiteError(f"{message.group}: {me} knows nothing of it", member=me))
    is_for_manager = isinstance(message, ToManager)
    return End(message.group, failure) if is_for_manager else Failed(message.group, failure)
