"""How often one statement is planned again, for its tables are no longer what they were (docs/adr/0069)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from skerry.model.errors import EngineEnded, StaleSchema
from skerry.model.limits import STALE_CHANGES, STALE_MOVES
from skerry.model.sharded import Definition

Definitions = Mapping[str, Definition]


class Replans:
    """`definitions`: of the tables of our own that are known now, by name in lower case; a mapping that stays so."""

    def __init__(self, definitions: Callable[[], Definitions]) -> None:
        self._definitions = definitions
        self._seen = definitions()
        self._changes = 0
        self._moves = 0
        self._engines = 0

    def note(self, error: StaleSchema | EngineEnded, tables: Iterable[str]) -> None:
        """When it is known what has changed. Raises the error if it is one too many.

        `tables`: of the statement, as "member.table".
        """
        if isinstance(error, EngineEnded):
            # An engine that ends a second time may well end because of this very statement.
            self._engines += 1
            if self._engines > 1:
                raise error
            return
        before, self._seen = self._seen, self._definitions()
        if has_only_moved({part.rpartition(".")[2].lower() for part in tables}, before, self._seen):
            self._moves += 1
            if self._moves > STALE_MOVES:
                why = f"its rows moved {self._moves} times while it was planned, or ran"
                raise _again(error, why, "run it again; a smaller limits.move_bytes_s leaves more time between moves")
            return
        self._changes += 1
        if self._changes > STALE_CHANGES:
            why = f"its tables changed {self._changes} times while it was planned, or ran"
            raise _again(error, why, "run it again when nobody alters them, or replaces their files")


def has_only_moved(names: Iterable[str], before: Definitions, now: Definitions) -> bool:
    """Whether rows of a table are elsewhere, and all of them have the columns that they had."""
    pairs = [(before.get(name), now.get(name)) for name in names if name in before or name in now]
    both = [(old, new) for old, new in pairs if old is not None and new is not None]
    if len(both) < len(pairs) or any(_table(old) != _table(new) for old, new in both):
        return False
    return any(old.buckets.version != new.buckets.version for old, new in both)


def _table(definition: Definition) -> tuple[int, int]:
    return definition.table.id, definition.table.version


def _again(error: StaleSchema, why: str, suggestion: str) -> StaleSchema:
    return StaleSchema(f"{error.message}; {why}", member=error.member, suggestion=suggestion)
