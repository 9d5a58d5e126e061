"""Numbers of any size and form, wherever one may stand: a plan, or an error about the statement."""

from __future__ import annotations

import contextlib
import itertools

import pytest

from skerry.model.errors import SqlError, UserError
from skerry.model.limits import NUMBER_CHARS
from skerry.model.results import Value
from skerry.wire.values import from_value, to_value
from tests.plans.plan_cases import planned

NUMERALS = [
    "9" * 5000,
    "-" + "9" * 5000,
    "0" * 5000 + "1",
    "9" * 400,
    "9" * 5000 + "BD",
    "1e999999",
    "1e99999999999999999999",
    "1e400BD",
    "1.5",
    "5L",
    "٣",
    "'²'",
    "'" + "9" * 5000 + "'",
    "CAST('1e999999' AS BIGINT)",
    "DATE '٢٠٢٠-01-01'",
    "DATE '2020-01-01' + INTERVAL 2e9 DAYS",
    "INTERVAL 1e400 MONTHS",
]
FORMS = [
    "SELECT {}, count(*) FROM logs GROUP BY {}",
    "SELECT * FROM logs LIMIT {}",
    "SELECT * FROM logs ORDER BY {} LIMIT 3 OFFSET {}",
    "SELECT at, sum(id) AS s FROM logs GROUP BY at ORDER BY {}, s LIMIT {}",
    "SELECT * FROM logs TABLESAMPLE ({} ROWS)",
    "SELECT * FROM logs TABLESAMPLE ({} PERCENT)",
    "SELECT * FROM logs WHERE id > {} OR at < {} OR level = {} OR cost IN ({}, {})",
    "SELECT id % {}, count(*) FROM logs GROUP BY 1 HAVING count(*) > {}",
    "SELECT CAST(id AS DECIMAL({}, {})), CAST(level AS VARCHAR({})) FROM logs",
    "SELECT sum(id) OVER (ORDER BY at ROWS {} PRECEDING) FROM logs",
    "SELECT v_day FROM visits JOIN clicks ON v_key = k_key WHERE v_key > {} AND k_day < {}",
]


@pytest.mark.parametrize("form", FORMS)
def test_a_number_is_planned_or_refused(form: str) -> None:
    for numeral, rules in itertools.product(NUMERALS, ("none", "all")):
        with contextlib.suppress(SqlError):
            assert planned(form.replace("{}", numeral), rules=rules)


def test_a_number_has_so_many_characters() -> None:
    assert planned(f"SELECT {'9' * NUMBER_CHARS} FROM logs")
    with pytest.raises(SqlError, match=f"more than {NUMBER_CHARS} characters"):
        planned(f"SELECT * FROM logs LIMIT -{'9' * (NUMBER_CHARS + 1)}")


def test_a_parameter_is_no_number_of_rows() -> None:
    bound = from_value(Value("decimal(38,0)", "9" * 38))
    with pytest.raises(UserError, match="LIMIT takes a number of rows"):
        planned("SELECT * FROM logs LIMIT ?", parameters=[bound])


def test_a_whole_number_that_python_does_not_write() -> None:
    with pytest.raises(UserError, match="5001 digits are more than the 38"):
        to_value(10**5000, "parameter 1")
