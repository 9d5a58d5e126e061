"""Where statements end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import skerry
from skerry.cli.prompt import describe_statement, is_complete
from skerry.cli.statements import done_text, first_word, is_told_as_text, split


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("", [], ""),
        (" ;; ", [], ""),
        ("SELECT 1", [], "SELECT 1"),
        ("SELECT 1; SELECT 2 ;", ["SELECT 1", "SELECT 2"], ""),
        ("SELECT ';' ; b", ["SELECT ';'"], "b"),
        ("""SELECT ";'", `;`;""", ["""SELECT ";'", `;`"""], ""),
        (r"SELECT 'it\'s;' ; b", [r"SELECT 'it\'s;'"], "b"),
        (r"SELECT r'\' ; b", [r"SELECT r'\'"], "b"),
        (r"SELECT bar'\';' ; b", [r"SELECT bar'\';'"], "b"),
        ("SELECT 'it''s;' ; b", ["SELECT 'it''s;'"], "b"),
        ("a -- b; c\n; d", ["a -- b; c"], "d"),
        ("a /* ; /* ; */ ; */ b; c", ["a /* ; /* ; */ ; */ b"], "c"),
        ("-- nothing; at all", [], ""),
        ("/* nothing */ ; a", [], "a"),
        ("a 'open ;", [], "a 'open ;"),
        ("a /* open ;", [], "a /* open ;"),
        ("a 'open \\", [], "a 'open \\"),
        ("a - b / c; d", ["a - b / c"], "d"),
    ],
)
def test_split(text: str, statements: list[str], rest: str) -> None:
    assert split(text) == (statements, rest)


@given(st.text("a;'\"`\\-/*rR \n"))
def test_split_ends_and_loses_nothing(text: str) -> None:
    statements, rest = split(text)
    at = 0
    for part in [*statements, rest]:
        at = text.index(part, at) + len(part)
    assert at <= len(text)
    assert all(statements)


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        ("explain SELECT 1", "EXPLAIN"),
        ("  -- a comment\n /* and /* another */ */ Explain\nANALYZE SELECT 1", "EXPLAIN"),
        ("(SELECT 1)", "SELECT"),
        ("SELECT 'EXPLAIN'", "SELECT"),
        ("'EXPLAIN'", "EXPLAIN"),
        ("-- EXPLAIN", ""),
        ("", ""),
    ],
)
def test_the_first_word(statement: str, word: str) -> None:
    assert first_word(statement) == word


@pytest.mark.parametrize("text", ["", " \n", "\\d", "\\d orders", "help", "QUIT", "SELECT 1;", "SELECT 1; -- done"])
def test_enter_ends_the_input(text: str) -> None:
    assert is_complete(text)


@pytest.mark.parametrize("text", ["SELECT 1", "SELECT ';", "SELECT 1; SELECT 2", "-- a comment;"])
def test_enter_begins_a_line(text: str) -> None:
    assert not is_complete(text)


def test_describe_is_built_from_a_name() -> None:
    assert describe_statement("oslo.orders") == "DESCRIBE oslo.orders"
    assert describe_statement("oslo.`odd ``name`") == "DESCRIBE oslo.`odd ``name`"
    for text in ("'x", "a b", "a; DROP TABLE b", "a.", "`", "``"):
        with pytest.raises(skerry.ProgrammingError, match="takes a table's name, not "):
            describe_statement(text)


def test_what_was_done_is_told_by_its_words() -> None:
    assert done_text("-- new\ncreate  table t (a INT) …") == "CREATE TABLE done"
    assert done_text("SET VAR x = 1") == "SET done"
    assert done_text("INSERT INTO t VALUES (1)") == ""


@pytest.mark.parametrize(
    ("statement", "is_text"),
    [
        ("EXPLAIN SELECT 1", True),
        ("-- the text\nshow  create table t", True),
        ("SHOW TABLES", False),
        ("SELECT 'SHOW CREATE TABLE t'", False),
    ],
)
def test_statements_that_are_told_as_text(statement: str, is_text: bool) -> None:
    assert is_told_as_text(statement) is is_text
