"""Waiting for a place: the shell around `Shares`."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar

from skerry.member.shares import Shares

T = TypeVar("T", bound=Hashable)


class Places(Generic[T]):
    def __init__(self, shares: Shares[T]) -> None:
        self._shares = shares
        self._waiting: dict[T, asyncio.Future[None]] = {}

    async def take(self, one: T, user: str) -> bool:
        """Returns when it has a place; True if it had to wait. Who is cancelled meanwhile has none."""
        self._begin(begun := self._shares.ask(one, user))
        if one in begun:
            return False
        self._waiting[one] = asyncio.get_running_loop().create_future()
        try:
            await self._waiting[one]
        except BaseException:
            self.leave(one)
            raise
        return True

    def leave(self, one: T) -> None:
        """Also of one that has no place."""
        self._waiting.pop(one, None)
        self._begin(self._shares.leave(one))

    def place(self, one: T) -> int:
        return self._shares.place(one)

    def _begin(self, begun: list[T]) -> None:
        for one in begun:
            waiting = self._waiting.pop(one, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(None)
