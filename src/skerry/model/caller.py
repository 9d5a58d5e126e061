"""Who asks a member for something, whichever door it came through."""

from __future__ import annotations

import math

import msgspec


class User(msgspec.Struct, frozen=True):
    """Who somebody has proven to be. `name` is "" for whoever an open member lets in without a proof.

    `roles` are those that the proof tells of. `expires_at`: seconds since 1970, as a token says.
    """

    name: str = ""
    roles: tuple[str, ...] = ()
    expires_at: float = math.inf


class Caller(msgspec.Struct, frozen=True):
    """`name`: of the user; "" where nothing was shown. `door` and `address`: how it is reached.

    `session` is one stay of a caller, and no two of them share it: cursors that nobody may come back for end with it.
    `until`: when its proof expires, by the clock of the member's loop.
    """

    name: str
    door: str
    address: str
    session: str
    roles: tuple[str, ...] = ()
    until: float = math.inf

    @property
    def shown(self) -> str:
        """For people."""
        return self.name or self.address

    @property
    def share(self) -> str:
        """Whose share of a member it takes: its user's, or without a name that of its host."""
        return self.name or self.address.rpartition(":")[0] or self.address

    @property
    def logged(self) -> str:
        """Who it is, and from where it asks."""
        return f"{self.name} at {self.address}" if self.name else self.address
