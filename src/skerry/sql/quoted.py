"""Strings in double quotes that other databases would take for a column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from skerry.model.limits import WARNINGS_MAX
from skerry.model.names import TableRef
from skerry.sql.walk import nodes_of


def quoted_columns(tree: exp.Expr, tokens: Sequence[Token], text: str, tables: Iterable[TableRef]) -> tuple[str, ...]:
    """A warning for each string in double quotes that is also the name of a column, of these tables or by an alias."""
    quoted = [(at, token) for at, token in enumerate(tokens) if _is_quoted(token, text)]
    if not quoted:
        return ()
    known = {name.lower(): (name, "") for name in _aliases(tree)}
    known |= {column.name.lower(): (column.name, f" of {ref.name}") for ref in tables for column in ref.columns}
    found: dict[str, str] = {}
    for at, token in quoted:
        # `"total" AS total` means the string.
        own = tokens[at + 2].text if len(tokens) > at + 2 and tokens[at + 1].text.upper() == "AS" else None
        if token.text.lower() not in known or (own is not None and own.lower() == token.text.lower()):
            continue
        column, of = known[token.text.lower()]
        found[column] = (
            f'"{token.text}" in double quotes is a string in Spark SQL, not column {column}{of}; '
            f"write {column} or `{column}` for the column, '{token.text}' for the string"
        )
    return tuple(found.values())[:WARNINGS_MAX]


def _is_quoted(token: Token, text: str) -> bool:
    return token.token_type == TokenType.STRING and text[token.start] == '"'


def _aliases(tree: exp.Expr) -> Iterator[str]:
    for node in nodes_of(tree):
        if isinstance(node, exp.Alias):
            yield node.alias
        elif isinstance(node, exp.TableAlias):
            yield from (column.name for column in node.args.get("columns") or ())
