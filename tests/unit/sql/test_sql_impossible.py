"""What no row can make right is refused before anything runs; whatever Spark's parser and analyser take is not."""

from __future__ import annotations

import pytest

from skerry.model.errors import SqlError
from tests.unit.sql.impossible_cases import RIGHT, WRONG
from tests.unit.sql.sql_cases import query, statement


@pytest.mark.parametrize(
    ("sql", "says"),
    WRONG,
)
def test_it_is_refused_with_its_place(sql: str, says: str) -> None:
    with pytest.raises(SqlError) as caught:
        statement(sql)
    assert says in caught.value.message
    assert "^" in caught.value.message


@pytest.mark.parametrize(
    "sql",
    RIGHT,
)
def test_what_may_be_right_passes(sql: str) -> None:
    assert query(sql).tree is not None
