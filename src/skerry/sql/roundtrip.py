"""Proof that nothing of a statement was lost: its tokens and those of its rendered tree are the same."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from skerry.model.position import sql_error
from skerry.sql.dialect import render
from skerry.sql.lexer import tokens_of

_VALUES = {TokenType.STRING, TokenType.HEX_STRING, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.HINT}
_FOREVER = 1 << 30


def check_roundtrip(tree: exp.Expr, tokens: list[Token], text: str) -> None:
    """Refuse a statement whose tree does not say the same; AS is optional, synonyms share a token type."""
    said = [token for token in tokens if token.token_type != TokenType.ALIAS]
    again = [
        token for token in tokens_of(render(tree), _FOREVER, has_hints=True) if token.token_type != TokenType.ALIAS
    ]
    for ours, theirs in zip(again, said, strict=False):
        if _word(ours) != _word(theirs):
            raise sql_error(_reason(theirs), text, theirs.start, theirs.end)
    if len(said) != len(again):
        last = said[min(len(again), len(said) - 1)]
        raise sql_error(_reason(last), text, last.start, last.end)


def _reason(token: Token) -> str:
    if token.token_type == TokenType.VAR and not token.text.isascii():
        return f"{token.text} is not admitted without backquotes, as in Spark: write `{token.text}`"
    return "this form is not admitted: it would not reach Spark as written"


def _word(token: Token) -> tuple[TokenType, str]:
    kind = token.token_type
    if kind in _VALUES:
        return kind, token.text
    return kind, token.text.upper() if kind == TokenType.VAR else ""
