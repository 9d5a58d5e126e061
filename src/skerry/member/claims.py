"""Who may say what on a control connection (docs/protocol.md, 3). Pure.

A connection proves who its peer is. A message that says it is another's is not believed: so a member that was taken
over speaks for itself and for nobody else.
"""

from __future__ import annotations

from skerry.config import Config, Role
from skerry.member.defining import keeper_of
from skerry.model.commits import Part
from skerry.model.errors import PeerError
from skerry.model.limits import COMPUTED_ROWS, OWN_NAME_CHARS, TIMESTAMP_MAX
from skerry.wire.commit_messages import AskOutcome, CommitMessage, OutcomeOf, Prepare, Submit
from skerry.wire.definition_messages import Define, Flushed, KnownDefinitions, StatusOf
from skerry.wire.finding_messages import FindRows, RowsFound
from skerry.wire.groupby_messages import Grown
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
from skerry.wire.moving_messages import GroupSent
from skerry.wire.staging_messages import DropRows, RowsStaged, StageRows


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
        case Submit():
            _must_be(sender, message.txn.query.initiator, message)
        case AskOutcome() | Define() | StageRows() | DropRows() | FindRows():
            _must_be(sender, message.query.initiator, message)
        case (
            Started()
            | FragmentDone()
            | Progress()
            | Receipt()
            | Tables()
            | KnownDefinitions()
            | Flushed()
            | StatusOf()
            | OutcomeOf()
            | RowsStaged()
            | RowsFound()
            | GroupSent()
            | Grown()
        ):
            _must_be(sender, message.member, message)


def refuse_unfit(sender: str, message: CommitMessage, me: str, config: Config) -> None:
    """PeerError for what no member says about commits (docs/protocol.md, 11): numbers must fit on a disk."""
    data = {name for name, member in config.members.items() if member.role is Role.DATA}
    is_asking = isinstance(message, Submit | AskOutcome)
    if sender not in data and not is_asking:
        raise PeerError(f"{type(message).__name__} came from {sender}, which has no tables")
    match message:
        case Submit():
            # Who is to decide takes part, or decides for those without a disk.
            decides = me in message.parts or (sender not in data and me == min(data))
            # Such a member asks what it has forgotten by a transaction of nobody.
            if not decides or not data.issuperset(message.parts):
                raise PeerError(f"transaction {message.txn}: its participants are not such as there are")
            for part in message.parts.values():
                _check_part(part)
                if any(staged.moving is not None for staged in part.staged):
                    raise PeerError(f"transaction {message.txn}: a move, which only the keeper of definitions begins")
        case Prepare():
            # The initiator decides, unless it has no disk.
            if sender != message.txn.query.initiator and message.txn.query.initiator in data:
                raise PeerError(f"transaction {message.txn}: {sender} is not who decides it")
            _check_part(message.part)
            if any(staged.moving is not None for staged in message.part.staged) and sender != keeper_of(config):
                raise PeerError(f"transaction {message.txn}: {sender} does not keep definitions, and moves no rows")
        case _:
            pass
    numbers = [
        getattr(message, name, 0) for name in ("first_start", "read_ts", "clock", "prepare_ts", "commit_ts", "rows")
    ]
    query = message.query if isinstance(message, AskOutcome | OutcomeOf) else message.txn.query
    attempt = 1 if isinstance(message, AskOutcome | OutcomeOf) else message.txn.attempt
    is_named = 0 < len(query.local) <= OWN_NAME_CHARS and query.initiator in config.members
    if not is_named or not 0 < attempt < 1 << 31 or not all(0 <= number <= TIMESTAMP_MAX for number in numbers):
        raise PeerError(f"{type(message).__name__} from {sender}: a name or a number that cannot be")


def refuse_unfit_question(message: FindRows) -> None:
    """PeerError for one that no member asks (docs/protocol.md, 14)."""
    _check_part(message.part)
    if message.part.staged or not 0 < message.read_ts <= TIMESTAMP_MAX:
        raise PeerError(f"FindRows of query {message.query}: staged rows, or a moment that cannot be")


def _check_part(part: Part) -> None:
    for staged in part.staged:
        is_named = len(staged.files) == 1 and staged.files[0].isdecimal() and len(staged.files[0]) <= OWN_NAME_CHARS
        if not is_named or staged.body or len(part.staged) > 1 or part.writes or not 0 < staged.table < 1 << 32:
            raise PeerError("staged rows that cannot be: a part has those of one table, or single rows")
    if len(part.writes) > 2 * COMPUTED_ROWS or not all(0 < write.table < 1 << 32 for write in part.writes):
        raise PeerError(f"{len(part.writes)} writes, or of a table that cannot be")


def _must_be(sender: str, claimed: str, message: Message) -> None:
    if sender != claimed:
        raise PeerError(f"{type(message).__name__} came from {sender}, and only {claimed[:100]!r} may say it")
