"""What the writes of a transaction meet at its snapshot: asked of the members that have the rows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from skerry.member.claims import refuse_unfit_question
from skerry.member.own import OwnTables
from skerry.member.questions import Questions
from skerry.model import trace
from skerry.model.commits import FoundAt, Part
from skerry.model.errors import InternalError, SiteError, SkerryError
from skerry.model.ids import QueryId
from skerry.wire.finding_messages import FindRows, RowsFound
from skerry.wire.messages import Message
from skerry.wire.values import error_of, failure_of


class Finding:
    """Belongs to the member's loop."""

    def __init__(self, member: str, own: OwnTables, send: Callable[[str, Message], None]) -> None:
        self._member = member
        self._own = own
        self._send = send
        self._questions = Questions[RowsFound]()

    async def ask(self, query: QueryId, parts: Mapping[str, Part], read_ts: int) -> dict[str, tuple[FoundAt, ...]]:
        """By member, in the order of its writes. Raises why they cannot be written."""
        asked = {member: self._questions.put(member) for member in parts}
        try:
            for member, (request_id, _) in asked.items():
                self._send(member, FindRows(request_id, query, parts[member], read_ts))
            # owner: the query's deadline
            answers = await asyncio.gather(*(answer for _, answer in asked.values()))
        finally:
            self._questions.forget(request_id for request_id, _ in asked.values())
        for found in answers:
            if found.failure is not None:
                raise error_of(found.failure)
        return {member: found.found for member, found in zip(asked, answers, strict=True)}

    async def here(self, sender: str, message: FindRows) -> None:
        """What another member, or this one, asks for."""
        failure, found = None, tuple[FoundAt, ...]()
        try:
            refuse_unfit_question(message)
            found = await self._own.find(message.query, message.part, message.read_ts)
        except SkerryError as error:
            failure = failure_of(error, self._member)
        except Exception as error:
            trace.emit(trace.WorkFailed(f"query {message.query}", message.query), error)
            failure = failure_of(InternalError(f"{type(error).__name__}: {error}"), self._member)
        self._send(sender, RowsFound(message.request_id, self._member, found, failure))

    def found(self, sender: str, message: RowsFound) -> None:
        self._questions.answered(sender, message.request_id, message)

    def lost(self, peer: str, error: SiteError) -> None:
        for answer in self._questions.open_at(peer):
            answer.set_exception(error)
