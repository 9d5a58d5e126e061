"""Statements that no row can make right, with what is said of them; and some that look alike and are right."""

from __future__ import annotations

WRONG = [
    ("SELECT o_id FROM orders LIMIT -1", "LIMIT takes a number of rows, 0 or more, not -1"),
    ("SELECT o_id FROM orders LIMIT (- 2)", "not -2"),
    ("SELECT o_id FROM orders LIMIT 1.5", "not 1.5"),
    ("SELECT o_id FROM orders LIMIT '5'", "not '5'"),
    ("SELECT o_id FROM orders LIMIT NULL", "not NULL"),
    ("SELECT o_id FROM orders LIMIT 1 OFFSET -1", "OFFSET takes a number of rows, 0 or more, not -1"),
    ("SELECT 1 FROM (SELECT o_id FROM orders LIMIT -1)", "LIMIT takes"),
    ("SELECT DATE '2023-02-29'", "there is no DATE '2023-02-29' (write DATE 'yyyy-mm-dd')"),
    ("SELECT o_id FROM orders WHERE o_date > DATE '2024-13-01'", "there is no DATE '2024-13-01'"),
    ("SELECT DATE '2024-00-01'", "there is no DATE"),
    ("SELECT DATE '24-01-01'", "there is no DATE"),
    ("SELECT DATE 'soon'", "there is no DATE 'soon'"),
    ("SELECT TIMESTAMP '2024-02-30 10:00:00'", "(write TIMESTAMP 'yyyy-mm-dd hh:mm:ss')"),
    ("SELECT TIMESTAMP_NTZ 'soon'", "there is no TIMESTAMP_NTZ 'soon'"),
]
RIGHT = [
    "SELECT o_id FROM orders LIMIT 0",
    "SELECT o_id FROM orders LIMIT ALL",
    "SELECT o_id FROM orders LIMIT 2 + 3 OFFSET 0",
    "SELECT o_id FROM orders LIMIT -1 + 1",
    "SELECT o_id FROM orders LIMIT -0",
    "SELECT o_id FROM orders LIMIT CAST('5' AS INT)",
    "SELECT DATE '2024-02-29'",
    "SELECT DATE '2000-2-29', DATE '+2024-12-31 whatever', DATE '-0004-02-29', DATE '2024', DATE '2024-1'",
    "SELECT DATE 'epoch', TIMESTAMP 'epoch'",
    "SELECT TIMESTAMP '2024-02-29 10:00:00.123 Europe/Oslo', TIMESTAMP '12:30', TIMESTAMP_NTZ '2024'",
    "SELECT CAST('2023-02-29' AS DATE), try_to_date('2023-02-29')",
    "SELECT o_id FROM orders WHERE o_note = '2023-02-29'",
]
