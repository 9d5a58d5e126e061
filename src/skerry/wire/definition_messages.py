"""The messages by which members learn of tables of our own (docs/protocol.md, 12)."""

from __future__ import annotations

from skerry.model.ids import QueryId
from skerry.model.sharded import Catalogue, TableStatus, Wish
from skerry.wire.messages import Failure, Message


class Define(Message, frozen=True):
    """To the keeper of definitions. `query` is the client's: said again it is obeyed once. `clock` is the sender's."""

    query: QueryId
    wish: Wish
    user: str = ""
    roles: tuple[str, ...] = ()
    clock: int = 0


class Defined(Message, frozen=True):
    """The keeper's answer: it is durable, and all members that are up know it."""

    query: QueryId
    version: int = 0
    failure: Failure | None = None


class Definitions(Message, frozen=True):
    """From the keeper: all definitions, as they are on its disk, and the version that each member has had on its own.

    One that finds less there than it has had knows that its disk is not the one that it was.
    """

    catalogue: Catalogue
    had: tuple[tuple[str, int], ...] = ()


class KnownDefinitions(Message, frozen=True):
    """To the keeper: the sender has this version on its disk. If there is a newer one, or it `asks`, it is told."""

    member: str
    version: int
    asks: bool = False


class FlushTable(Message, frozen=True):
    """What was committed to the table until now shall be in files."""

    request_id: str
    table: int
    user: str = ""
    roles: tuple[str, ...] = ()


class Flushed(Message, frozen=True):
    request_id: str
    member: str
    failure: Failure | None = None


class AskStatus(Message, frozen=True):
    """What the member holds of these tables."""

    request_id: str
    tables: tuple[int, ...]
    user: str = ""
    roles: tuple[str, ...] = ()


class StatusOf(Message, frozen=True):
    """Of those tables that are asked for and known there."""

    request_id: str
    member: str
    tables: tuple[TableStatus, ...] = ()


DefinitionMessage = Define | Defined | Definitions | KnownDefinitions | FlushTable | Flushed | AskStatus | StatusOf
