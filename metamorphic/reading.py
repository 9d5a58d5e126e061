"""The tree of a fragment's own text, for tests and for those who run it elsewhere than in Spark."""

from __future__ import annotations

import re

from sqlglot import exp

from skerry.model.errors import SqlError
from skerry.sql.lexer import tokens_of
from skerry.sql.parse import parse_query

# How deeply our own text may be nested: rules wrap what the client wrote.
_DEPTH = 1000
# Only plans have hints. One inside a string is lost too, which does not matter to those who read.
_HINT = re.compile(r"/\*\+.*?\*/", re.DOTALL)


def parse_fragment(sql: str) -> exp.Expr | None:
    """None for text that the grammar does not read."""
    text = _HINT.sub("", sql)
    try:
        return parse_query(tokens_of(text, _DEPTH), text)
    except (SqlError, RecursionError):
        return None
