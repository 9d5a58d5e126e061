"""Strings in double quotes that other databases would take for a column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot.tokens import Token, TokenType

from skerry.model.limits import WARNINGS_MAX
from skerry.model.names import TableRef


def quoted_columns(tokens: Sequence[Token], text: str, tables: Iterable[TableRef]) -> tuple[str, ...]:
    """A warning for each string in double quotes that is also the name of a column of these tables."""
    known = {column.name.lower(): (ref.name, column.name) for ref in tables for column in ref.columns}
    found: dict[str, str] = {}
    for token in tokens:
        if token.token_type != TokenType.STRING or text[token.start] != '"' or token.text.lower() not in known:
            continue
        table, column = known[token.text.lower()]
        found[column] = (
            f'"{column}" in double quotes is a string in Spark SQL, not column {column} of {table}; '
            f"write {column} or `{column}` for the column, '{column}' for the string"
        )
    return tuple(found.values())[:WARNINGS_MAX]
