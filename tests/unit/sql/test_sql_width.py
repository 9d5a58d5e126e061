"""Which queries can only copy and shorten what their tables hold."""

from __future__ import annotations

import pytest

from skerry.sql.width import only_copies
from tests.unit.sql.sql_cases import query


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM orders",
        "SELECT o.o_note, upper(substr(o_note, 1, 3)) AS s, o_id * 2 FROM orders o JOIN item ON true",
        "SELECT o_note, count(*), max(o_note) FROM orders GROUP BY o_note HAVING length(concat(o_note, 'x')) > 1",
        "SELECT o_note FROM orders WHERE repeat(o_note, 2) = 'aa' ORDER BY concat(o_note, 'x')",
        "SELECT o_note FROM orders WHERE o_id IN (SELECT length(space(3)))",
        "WITH t AS (SELECT o_note FROM orders) SELECT * FROM t UNION ALL SELECT lower(o_note) FROM orders",
        "SELECT row_number() OVER (ORDER BY o_id), CASE WHEN o_id > 1 THEN o_note END FROM orders",
    ],
)
def test_copies(sql: str) -> None:
    assert only_copies(query(sql).tree)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT repeat(o_note, 1000000) FROM orders",
        "SELECT o_note || o_note FROM orders",
        "SELECT collect_list(o_note) FROM orders GROUP BY o_id",
        "SELECT o_note FROM orders UNION ALL SELECT space(o_id) FROM orders",
        "WITH t AS (SELECT array_repeat(o_note, 99) AS a FROM orders) SELECT a FROM t",
        "SELECT * FROM (SELECT lpad(o_note, 100000) FROM orders)",
        "SELECT upper(concat(o_note, o_note)) FROM orders",
        "SELECT listagg(o_note) OVER (ORDER BY o_id) FROM orders",
        "SELECT transform(array(o_note), x -> x) FROM orders",
    ],
)
def test_may_widen(sql: str) -> None:
    assert not only_copies(query(sql).tree)
