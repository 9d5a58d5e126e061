"""Questions put to other members, which wait for their answers: one counts only from the member that was asked."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class Questions(Generic[Answer]):
    """By their ids. Belongs to the member's loop; who asks bounds the wait, and forgets what it asked."""

    def __init__(self) -> None:
        self._asked: dict[str, tuple[str, asyncio.Future[Answer]]] = {}

    def put(self, member: str) -> tuple[str, asyncio.Future[Answer]]:
        """A new question's id, and its own answer: one that was on its way before knows nothing of it."""
        request_id = uuid.uuid4().hex
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._asked[request_id] = member, answer
        return request_id, answer

    def answered(self, sender: str, request_id: str, message: Answer) -> None:
        member, answer = self._asked.get(request_id, ("", None))
        if answer is not None and member == sender and not answer.done():
            answer.set_result(message)

    def open_at(self, peer: str) -> list[asyncio.Future[Answer]]:
        """Answers that this member owes."""
        return [answer for member, answer in self._asked.values() if member == peer and not answer.done()]

    def forget(self, request_ids: Iterable[str]) -> None:
        for request_id in request_ids:
            self._asked.pop(request_id, None)
