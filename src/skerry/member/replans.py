"""How often one statement is planned again, for its tables are no longer what they were (docs/adr/0069)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from skerry.model.errors import EngineEnded, StaleSchema
from skerry.model.limits import STALE_FILES, STALE_OWN
from skerry.model.sharded import Definition

Definitions = Mapping[str, Definition]


class Replans:
    """`definitions`: of the tables of our own that are known now, by name in lower case; a mapping that stays so."""

    def __init__(self, definitions: Callable[[], Definitions]) -> None:
        self._definitions = definitions
        self._seen = definitions()
        self._changes = 0
        self._own_changes = 0
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
        if have_changed({part.rpartition(".")[2].lower() for part in tables}, before, self._seen):
            self._own_changes += 1
            if self._own_changes > STALE_OWN:
                raise _again(error, self._own_changes, "run it again when nobody alters them and no rows move")
            return
        self._changes += 1
        if self._changes > STALE_FILES:
            raise _again(error, self._changes, "run it again when nobody replaces their files")


def have_changed(names: Iterable[str], before: Definitions, now: Definitions) -> bool:
    """Whether one of these, a table of our own, was altered, dropped or made anew, or has rows elsewhere."""
    return any(_versions(before.get(name)) != _versions(now.get(name)) for name in names)


def _versions(definition: Definition | None) -> tuple[int, ...]:
    if definition is None:
        return ()
    return definition.table.id, definition.table.version, definition.buckets.version


def _again(error: StaleSchema, times: int, suggestion: str) -> StaleSchema:
    why = f"its tables changed {times} times while it was planned, or ran"
    return StaleSchema(f"{error.message}; {why}", member=error.member, suggestion=suggestion)
