"""What the prompt offers while one types."""

from __future__ import annotations

import threading

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from skerry.cli.completion import Names, SqlCompleter, candidates

TABLES = {"orders": ["o_orderkey", "o_comment"], "oslo.orders": ["o_orderkey"], "lineitem": ["l_orderkey"]}


class Known(Names):
    """Names that are there at once."""

    def __init__(self) -> None:
        super().__init__(lambda: TABLES)

    def tables(self) -> dict[str, list[str]]:
        return TABLES


def offered(text: str) -> list[str]:
    completer = SqlCompleter(Known())
    return [each.text for each in completer.get_completions(Document(text), CompleteEvent())]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("SELECT * FROM or", ["orders", "ORDER", "OR"]),
        ("SELECT * FROM ORD", ["orders", "ORDER"]),
        ("SELECT o_ FROM orders WHERE o_", ["o_orderkey", "o_comment"]),
        ("SELECT * FROM orders WHERE orders.o_c", ["orders.o_comment"]),
        ("SELECT * FROM oslo.", ["oslo.orders"]),
        ("SELECT * FROM lineitem l JOIN orders AS o WHERE o.", ["o.o_orderkey", "o.o_comment"]),
        ("SELECT * FROM lineitem l JOIN orders AS o WHERE l.", ["l.l_orderkey"]),
        ("SELECT * FROM lineitem l WHERE x.", []),
        ("SELECT * FROM orders JOIN lineitem ON l_", ["l_orderkey"]),
        ("SELECT l_", ["l_orderkey"]),
        ("\\", ["\\d", "\\x", "\\format", "\\timing", "\\q", "\\?"]),
        ("he", ["help"]),
        ("SELECT ", []),
        ("SELECT nothing_like_this", []),
    ],
)
def test_completions(text: str, first: list[str]) -> None:
    assert offered(text)[: len(first) or None] == first


def test_columns_of_tables_that_are_not_mentioned_are_not_offered() -> None:
    assert "l_orderkey" not in list(candidates("l", "SELECT l FROM orders", TABLES))


def test_names_come_in_the_background_and_an_error_offers_nothing() -> None:
    asked = threading.Event()

    def ask() -> dict[str, list[str]]:
        asked.set()
        raise OSError("no member there")

    names = Names(ask)
    assert names.tables() == {}
    assert asked.wait(60)
    assert names.tables() == {}
