"""Expressions that are alike have one form, and no others do."""

from __future__ import annotations

import pytest
from sqlglot import exp

from skerry.sql.alike import Once, alike
from skerry.sql.lexer import tokens_of
from skerry.sql.parse import parse_query


def expression(text: str) -> exp.Expr:
    sql = f"SELECT {text}"
    found = parse_query(tokens_of(sql, 50), sql).expressions[0]
    assert isinstance(found, exp.Expr)
    return found


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a + 1", "A + 1", True),
        ("`a` + 1", "a + 1", True),
        ("SUM(a)", "sum(a)", True),
        ("'A'", "'a'", False),
        ("'1'", "1", False),
        ("a + b", "b + a", False),
        ("a - b", "a + b", False),
        ("f(a, b)", "f(a)", False),
        ("f(a, b)", "f(ab)", False),
        ("f(g(a), b)", "f(g(a, b))", False),
        ("a IN (1, 2)", "a IN (1)", False),
        ("a BETWEEN 1 AND 2", "a BETWEEN 2 AND 1", False),
        ("sum(DISTINCT a)", "sum(a)", False),
        ("CAST(a AS INT)", "CAST(a AS BIGINT)", False),
        ("t.a", "a", False),
        ("CASE WHEN a THEN b END", "CASE a WHEN b THEN c END", False),
    ],
)
def test_alike(one: str, other: str, same: bool) -> None:
    assert alike(expression(one), expression(other)) is same


def test_those_that_are_alike_have_one_place() -> None:
    listed = Once(map(expression, ("a", "b + 1", "A", "c")))
    assert [str(each) for each in listed.values] == [str(expression(each)) for each in ("a", "b + 1", "c")]
    assert listed.place(expression("B + 1")) == 1
    assert listed.place(expression("d")) is None
    assert (listed.add(expression("C")), listed.add(expression("d"))) == (2, 3)
