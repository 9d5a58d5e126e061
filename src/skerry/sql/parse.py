"""Statement text → tree."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import Token

from skerry.model.errors import SqlError
from skerry.sql.grammar.cursor import Mismatch
from skerry.sql.grammar.queries import QueryGrammar
from skerry.sql.lexer import tokens_of
from skerry.sql.nodes import SparkType

_TYPE_DEPTH = 50


def parse_query(tokens: list[Token], text: str) -> exp.Expr:
    """The tree of the one query that `tokens` are."""
    grammar = QueryGrammar(tokens, text)
    try:
        tree = grammar.query()
        if grammar.peek():
            if grammar.sees_words("QUALIFY", ahead=-1):
                grammar.refuse(
                    "QUALIFY is not Spark SQL: filter the window function in an outer SELECT", grammar.peek(-1)
                )
            grammar.fail("the query should end here")
    except Mismatch as error:
        raise grammar.explained(error) from None
    except RecursionError:
        raise SqlError("the statement is nested too deeply") from None
    return tree


def parse_type(text: str) -> SparkType:
    """The tree of a column's type, as Spark writes it."""
    grammar = QueryGrammar(tokens_of(text, _TYPE_DEPTH), text)
    try:
        tree = grammar.data_type()
        if grammar.peek():
            grammar.fail("the type should end here")
    except Mismatch as error:
        raise grammar.explained(error) from None
    return tree
