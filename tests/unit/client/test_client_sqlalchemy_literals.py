"""Values that SQLAlchemy writes into a statement stay values, whatever stands in them."""

from __future__ import annotations

import datetime

import pytest
import sqlalchemy as sa
from hypothesis import example, given
from hypothesis import strategies as st

from skerry.model.lexemes import Lexeme, lexemes
from skerry.sqlalchemy import SkerryDialect

ORDERS = sa.table("orders", sa.column("name", sa.String), sa.column("kind", sa.Enum("a\\", "b", name="kind")))


def written(statement: sa.sql.ClauseElement) -> list[Lexeme]:
    return list(lexemes(str(statement.compile(dialect=SkerryDialect(), compile_kwargs={"literal_binds": True}))))


def strings(statement: sa.sql.ClauseElement) -> list[str]:
    return [lexeme.value for lexeme in written(statement) if lexeme.kind == "string"]


@given(st.text())
@example("\\")
@example("'")
@example("\\'")
@example("''\\''")
@example("x\\' OR 1 = 1 -- ")
@example("\\u0027 OR 1 = 1 -- \\047\\Z\\%\\_")
@example("${env:HOME} %s %(x)s :name ? \n\r\t\0")
def test_a_string_is_read_as_it_was_given(value: str) -> None:
    value = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    statement = sa.select(ORDERS.c.name).where(ORDERS.c.name == value)
    assert strings(statement) == [value]
    assert len(written(statement)) == len(written(sa.select(ORDERS.c.name).where(ORDERS.c.name == "x")))


@pytest.mark.parametrize("value", ["\\", "\\' OR true -- ", "' OR true -- ", "a\\' UNION SELECT * FROM secrets -- "])
def test_no_string_ends_before_its_end(value: str) -> None:
    # The second string would be the statement's text, had the first hidden its closing quote.
    condition = (ORDERS.c.name == value) & (ORDERS.c.name == " OR true -- ")
    assert strings(sa.select(ORDERS.c.name).where(condition)) == [value, " OR true -- "]
    assert strings(sa.select(ORDERS.c.name).where(ORDERS.c.name.in_([value, "b"]))) == [value, "b"]
    assert strings(sa.select(ORDERS.c.name).where(ORDERS.c.name.like(value, escape="\\"))) == [value, "\\"]


def test_other_values() -> None:
    assert strings(sa.select(ORDERS.c.name).where(ORDERS.c.kind == "a\\")) == ["a\\"]
    found = written(sa.select(sa.literal(b"\\'\0", sa.LargeBinary)))
    assert ("hex", "5c2700") in [(lexeme.kind, lexeme.value) for lexeme in found]
    assert strings(sa.select(sa.literal(datetime.date(2024, 2, 29), sa.Date))) == ["2024-02-29"]
