"""Who asks a member for something, whichever door it came through."""

from __future__ import annotations

import enum

import msgspec


class Rights(enum.Enum):
    """What a caller may do. There are no users or roles yet: whoever a door lets in may do everything."""

    EVERYTHING = "everything"


class Caller(msgspec.Struct, frozen=True):
    """`name`: from its certificate; "" for one that has shown none. `door` and `address`: how it is reached.

    `session` is one stay of a caller, and no two of them share it: cursors that nobody may come back for end with it.
    """

    name: str
    door: str
    address: str
    session: str
    rights: Rights = Rights.EVERYTHING

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
