"""Tokens are Spark's: strings, numbers, comments, and where they go wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot.tokens import TokenType

from skerry.model.errors import SqlError
from skerry.model.lexemes import escape, unescape
from skerry.sql.lexer import tokens_of


def texts(sql: str) -> list[str]:
    return [token.text for token in tokens_of(sql, 50)]


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("'it''s'", "it's"),
        ('"say ""x"""', 'say "x"'),
        (r"'a\'b'", "a'b"),
        (r"'\n\t\\'", "\n\t\\"),
        (r"'\%\_'", r"\%\_"),
        (r"'\q'", "q"),
        (r"'\u00e9\U0001F600'", "é😀"),
        (r"'\uD83D\uDE00'", "😀"),
        (r"'\101\0'", "A\0"),
        ("r'\\d+'", "\\d+"),
        ("'a' 'b'", "ab"),
    ],
)
def test_a_string_has_the_value_that_spark_gives_it(literal: str, value: str) -> None:
    (token,) = tokens_of(literal, 50)
    assert token.token_type == TokenType.STRING
    assert token.text == value


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_what_is_escaped_reads_back_the_same(value: str) -> None:
    literal = escape(value)
    assert unescape(literal) == value
    assert "${" not in literal
    assert len(tokens_of(literal, 1)) == 1


@pytest.mark.parametrize(
    ("sql", "tokens"),
    [
        ("1L 1.5BD .5 5. 1e-3D 007", ["1L", "1.5BD", ".5", "5.", "1e-3D", "007"]),
        ("1a 1e t.1 1.a", ["1a", "1e", "t", ".1", "1", ".", "a"]),
        ("a--b\nc", ["a", "c"]),
        ("a-- b\\\nstill\nc", ["a", "c"]),
        ("a/* x /* y */ z */b", ["a", "b"]),
        (
            "a<=>b<>c!=d==e||f->g=>h::i",
            ["a", "<=>", "b", "<>", "c", "!=", "d", "==", "e", "||", "f", "->", "g", "=>", "h", "::", "i"],
        ),
        ("GROUP /* x */ BY order\nby", ["GROUP BY", "ORDER BY"]),
        ("`a``b`", ["a`b"]),
        ("a\u00a0b\u3000c", ["a", "b", "c"]),
    ],
)
def test_text_splits_as_in_spark(sql: str, tokens: list[str]) -> None:
    assert texts(sql) == tokens


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("'abc", "never closed"),
        ("`abc", "never closed"),
        ("/* abc", "never closed"),
        ("/* /* */ abc", "never closed"),
        ("/*+ BROADCAST(t) */", "right behind SELECT"),
        ("SELECT /*+ BROADCAST('*/') */", "holds no comment"),
        ("SELECT /*+ BROADCAST(`/*`) */", "holds no comment"),
        ("SELECT /*+ BROADCAST('", "right behind SELECT"),
        ("SELECT /*+ " + "'" * 400 + "a", "right behind SELECT"),
        ("SELECT /*+ Reflect(a) */", "no function"),
        ("$1", "no part of SQL"),
        ("a \x00", "no part of SQL"),
        ("X'xyz'", "hexadecimal"),
        ("(" * 51, "nested more than 50 deep"),
    ],
)
def test_what_is_no_token_is_refused(sql: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        tokens_of(sql, 50)
