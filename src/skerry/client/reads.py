"""Which statements surely change nothing: only those may run twice."""

from __future__ import annotations

from skerry.model.errors import SkerryError

# What a statement that only reads begins with, and the words that none of them has outside quotes.
# USE, DECLARE and SET VAR only tell this client what to send with its next statements.
READS = frozenset(
    {"SELECT", "WITH", "VALUES", "FROM", "TABLE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "USE", "DECLARE", "SET", "("}
)
# What begins and ends a transaction: words that other statements have as names.
TRANSACTIONS = frozenset({"BEGIN", "START", "COMMIT", "ROLLBACK"})
CHANGES = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "DROP", "ALTER", "TRUNCATE", "REPLACE"})
# What can be part of no transaction, or needs none.
ALONE = TRANSACTIONS | {"CREATE", "DROP", "ALTER", "FLUSH", "ANALYZE", "SHOW", "DESCRIBE", "DESC", "USE", "EXPLAIN"}
ALONE |= {"REBALANCE"}


def only_reads(sql: str) -> bool:
    """Whether a statement surely changes nothing; when in doubt it is taken for one that does."""
    words = _words(sql)
    return bool(words) and words[0] in READS and not CHANGES.intersection(words)


def may_change(sql: str) -> bool:
    """Whether it has a word of those that change something, or is about a transaction."""
    words = _words(sql)
    return bool(CHANGES.intersection(words)) or not TRANSACTIONS.isdisjoint(words[:1])


def is_commit(sql: str) -> bool:
    return _words(sql)[:1] == ["COMMIT"]


def begins_transaction(sql: str) -> bool:
    """Whether a connection without autocommit begins one before it: not for what can be part of none."""
    return ALONE.isdisjoint(_words(sql)[:1])


def _words(sql: str) -> list[str]:
    from skerry.model.lexemes import lexemes  # slow to load, and only needed when a member or a connection was lost

    try:
        return [sql[each.start : each.upto].upper() for each in lexemes(sql)]
    except SkerryError:
        return []
