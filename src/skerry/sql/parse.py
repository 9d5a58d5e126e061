"""Statement text → tree."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import Token

from skerry.model.errors import SqlError
from skerry.sql.grammar.pipes import PipeGrammar
from skerry.sql.lexer import tokens_of
from skerry.sql.nodes import SparkType

_TYPE_DEPTH = 50


def parse_query(tokens: list[Token], text: str) -> exp.Expr:
    """The tree of the one query that `tokens` are."""
    grammar = PipeGrammar(tokens, text)
    try:
        return grammar.whole(grammar.query, "query")
    except RecursionError:
        raise SqlError("the statement is nested too deeply") from None


def parse_expression(text: str) -> exp.Expr:
    """The tree of a column's default, as it is kept."""
    grammar = PipeGrammar(tokens_of(text, _TYPE_DEPTH), text)
    return grammar.whole(grammar.expression, "expression")


def parse_type(text: str) -> SparkType:
    """The tree of a column's type, as Spark writes it."""
    grammar = PipeGrammar(tokens_of(text, _TYPE_DEPTH), text)
    return grammar.whole(grammar.data_type, "type")
