"""Passwords that were right lately, so that a client that connects again need not wait for scrypt. Pure."""

from __future__ import annotations

import hmac
from collections import OrderedDict

from skerry.access.passwords import PasswordHash, password_bytes
from skerry.model.limits import PASSWORDS_KNOWN, PASSWORDS_KNOWN_S


class KnownPasswords:
    """Keeps no password: a code of it under a key that only this process has, bound to the hash in the users file."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._until: OrderedDict[bytes, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._until)

    def has(self, user: str, known: PasswordHash, password: str, now: float) -> bool:
        while self._until and next(iter(self._until.values())) <= now:
            self._until.popitem(last=False)
        return self._code(user, known, password) in self._until

    def add(self, user: str, known: PasswordHash, password: str, now: float) -> None:
        code = self._code(user, known, password)
        self._until.pop(code, None)  # at the end again: the first to expire stands first
        self._until[code] = now + PASSWORDS_KNOWN_S
        while len(self._until) > PASSWORDS_KNOWN:
            self._until.popitem(last=False)

    def _code(self, user: str, known: PasswordHash, password: str) -> bytes:
        # The hash has one length, and no name a NUL: no two of them give the same bytes.
        return hmac.digest(
            self._key, b"\0".join((str(known).encode(), user.encode(), password_bytes(password))), "sha256"
        )
