"""Who may say what on a control connection (docs/protocol.md, 3). Pure.

A connection proves who its peer is. A message that says it is another's is not believed: so a member that was taken
over speaks for itself and for nobody else.
"""

from __future__ import annotations

from skerry.model.errors import PeerError
from skerry.wire.messages import (
    Cancel,
    Execute,
    FragmentDone,
    Message,
    PlanReply,
    Progress,
    Receipt,
    Started,
    Tables,
)


def refuse_forged(sender: str, message: Message, me: str) -> None:
    """PeerError unless `sender`, which has proven to be that member, may say this to member `me`."""
    match message:
        case Execute():
            _must_be(sender, message.sender, message)
            # Only its own queries: an answer goes to the initiator, and so do the rights of whoever asked.
            _must_be(sender, message.query.initiator, message)
        case PlanReply():
            _must_be(sender, message.query.initiator, message)
        case Cancel():
            _must_be(sender, message.by, message)
            # A participant tells the initiator, the initiator tells the participants: nobody tells anyone else.
            if message.query.initiator != me:
                _must_be(sender, message.query.initiator, message)
        case Started() | FragmentDone() | Progress() | Receipt() | Tables():
            _must_be(sender, message.member, message)


def _must_be(sender: str, claimed: str, message: Message) -> None:
    if sender != claimed:
        raise PeerError(f"{type(message).__name__} came from {sender}, and only {claimed[:100]!r} may say it")
