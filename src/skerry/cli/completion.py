"""What the prompt offers to complete: commands, SQL's words, tables and their columns."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

KEYWORDS = tuple(
    """SELECT FROM WHERE GROUP BY ORDER HAVING LIMIT OFFSET JOIN LEFT RIGHT FULL OUTER INNER CROSS SEMI ANTI ON USING
    UNION ALL EXCEPT INTERSECT DISTINCT AS AND OR NOT IN IS NULL LIKE BETWEEN EXISTS CASE WHEN THEN ELSE END CAST WITH
    VALUES OVER PARTITION WINDOW ROWS RANGE LATERAL VIEW EXPLODE ASC DESC NULLS FIRST LAST INTERVAL DATE TIMESTAMP
    SHOW TABLES DESCRIBE EXPLAIN count sum avg min max coalesce""".split()
)
COMMANDS = ("\\d", "\\x", "\\format", "\\timing", "\\q", "\\?", "help", "quit")
_WORD = re.compile(r"[A-Za-z0-9_.`\\]*$")
_FRESH_S = 60.0


class Names:
    """Tables and columns of the cluster, asked for in the background: typing never waits for a member."""

    def __init__(self, ask: Callable[[], dict[str, list[str]]]) -> None:
        self._ask = ask
        self._tables: dict[str, list[str]] = {}
        self._asked_at = 0.0
        self._lock = threading.Lock()

    def tables(self) -> dict[str, list[str]]:
        """Table → columns, as last heard; asks again when that is a while ago."""
        with self._lock:
            if not self._asked_at or time.monotonic() - self._asked_at > _FRESH_S:
                self._asked_at = time.monotonic()
                threading.Thread(target=self._refresh, name="skerry-names", daemon=True).start()
            return self._tables

    def _refresh(self) -> None:
        try:
            tables = self._ask()
        except Exception:  # nothing to offer is no reason to disturb who types
            return
        with self._lock:
            self._tables = tables


def candidates(word: str, text: str, tables: dict[str, list[str]]) -> Iterator[str]:
    """What `word`, at the end of `text`, may become: columns of mentioned tables first, then tables, then words."""
    qualifier, dot, _ = word.rpartition(".")
    mentioned = {name for name in tables if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", text, re.I)}
    if dot:
        named = [name for name in tables if name.lower() == qualifier.lower()]
        meant = named or [name for name in mentioned if _has_alias(name, qualifier, text)]
        columns = tables[meant[0]] if meant else []
        yield from (f"{qualifier}.{column}" for column in columns)
        yield from (name for name in tables if name.lower().startswith(qualifier.lower() + "."))
        return
    yield from dict.fromkeys(column for name in sorted(mentioned) for column in tables[name])
    yield from tables
    if not mentioned:  # SELECT is typed before FROM
        yield from dict.fromkeys(column for columns in tables.values() for column in columns)
    yield from KEYWORDS


def _has_alias(table: str, alias: str, text: str) -> bool:
    """`orders AS o`, `orders o`"""
    return re.search(rf"(?<![\w.]){re.escape(table)}\s+(AS\s+)?{re.escape(alias)}(?!\w)", text, re.I) is not None


class SqlCompleter(Completer):
    """Completes the word before the cursor."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        match = _WORD.search(document.text_before_cursor)
        word = match[0] if match else ""
        if not word:
            return
        is_command = word == document.text_before_cursor
        offered = COMMANDS if word.startswith("\\") else candidates(word, document.text, self._names.tables())
        known = [*offered, *(COMMANDS if is_command else ())]
        for name in dict.fromkeys(known):
            if name.lower().startswith(word.lower()) and name != word:
                yield Completion(name, start_position=-len(word))
