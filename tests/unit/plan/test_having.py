"""How many groups a HAVING keeps, about."""

from __future__ import annotations

import pytest
from sqlglot import exp

from skerry.plan.estimate import Estimate
from skerry.plan.having import having_share
from skerry.plan.selectivity import ColumnEstimate
from skerry.sql.lexer import tokens_of
from skerry.sql.parse import parse_query

# As TPC-H's lineitem: four rows an order, quantities from 1 to 50.
ROWS = Estimate(6000.0, {"q": ColumnEstimate("decimal(15,2)", 16.0, 50.0, 50.0, 1.0, 50.0)}, 6000.0)
GROUPS = 1500.0


def condition(text: str) -> exp.Expr:
    sql = f"SELECT k FROM t GROUP BY k HAVING {text}"
    found: exp.Expr = parse_query(tokens_of(sql, 100), sql).args["having"].this
    return found


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("sum(q) > 102", 0.45, 0.55),
        ("sum(q) > 300", 0.0001, 0.001),
        ("300 < sum(q)", 0.0001, 0.001),
        ("sum(q) <= 300", 0.99, 1.0),
        ("count(*) >= 20", 0.0001, 0.0001),
        ("count(*) < 20 AND (sum(q) > 102)", 0.45, 0.55),
        ("sum(q) > 1000000", 0.0001, 0.0001),
        ("max(q) > 49", 1.0, 1.0),
        ("sum(z) > 49", 1.0, 1.0),
        ("sum(q) > (SELECT 3)", 1.0, 1.0),
    ],
)
def test_share_of_groups(text: str, least: float, most: float) -> None:
    assert least <= having_share(condition(text), ROWS, GROUPS) <= most
