"""Which statements surely change nothing: only those may run twice."""

from __future__ import annotations

from skerry.model.errors import SkerryError

# What a statement that only reads begins with, and the words that none of them has outside quotes.
# USE, DECLARE and SET VAR only tell this client what to send with its next statements.
READS = frozenset(
    {"SELECT", "WITH", "VALUES", "FROM", "TABLE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "USE", "DECLARE", "SET", "("}
)
CHANGES = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "DROP", "ALTER", "TRUNCATE", "REPLACE"})


def only_reads(sql: str) -> bool:
    """Whether a statement surely changes nothing; when in doubt it is taken for one that does."""
    words = _words(sql)
    return bool(words) and words[0] in READS and not CHANGES.intersection(words)


def may_change(sql: str) -> bool:
    """Whether it has a word of those that change something."""
    return bool(CHANGES.intersection(_words(sql)))


def _words(sql: str) -> list[str]:
    from skerry.model.lexemes import lexemes  # slow to load, and only needed when a member or a connection was lost

    try:
        return [sql[each.start : each.upto].upper() for each in lexemes(sql)]
    except SkerryError:
        return []
