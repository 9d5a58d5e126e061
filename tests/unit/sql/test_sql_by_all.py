"""GROUP BY ALL and ORDER BY ALL become places of the list, or a column of that name."""

# ruff: noqa: E501 (a statement reads best on one line)

from __future__ import annotations

import pytest

from tests.unit.sql.sql_cases import rendered

ITEM = "scan_0 AS item"
NAMED = f"(SELECT i_part AS all, i_count FROM {ITEM})"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("SELECT i_part, 7, max(i_count) FROM item GROUP BY ALL", f"SELECT i_part, 7, max(i_count) FROM {ITEM} GROUP BY 1, 2"),
        ("SELECT max(i_count), i_part + 1 AS p FROM item GROUP BY ALL", f"SELECT max(i_count), i_part + 1 AS p FROM {ITEM} GROUP BY 2"),
        ("SELECT max(i_count) + 1 AS m FROM item GROUP BY ALL", f"SELECT max(i_count) + 1 AS m FROM {ITEM}"),
        # Not certain here: left to the engine.
        ("SELECT i_part + sum(i_count) FROM item GROUP BY ALL", f"SELECT i_part + sum(i_count) FROM {ITEM} GROUP BY ALL"),
        ("SELECT *, count(*) FROM item GROUP BY ALL", f"SELECT *, count(*) FROM {ITEM} GROUP BY ALL"),
        ("SELECT id, count(*) FROM range(3) GROUP BY ALL", "SELECT id, count(*) FROM range(3) GROUP BY ALL"),
        # A column comes first, or an alias.
        (f"SELECT all, count(*) FROM {NAMED} GROUP BY ALL", f"SELECT all, count(*) FROM {NAMED} GROUP BY `all`"),
        ("SELECT i_part AS all, count(*) FROM item GROUP BY ALL", f"SELECT i_part AS all, count(*) FROM {ITEM} GROUP BY `all`"),
        (f"SELECT i_count FROM {NAMED} ORDER BY ALL DESC", f"SELECT i_count FROM {NAMED} ORDER BY `all` DESC"),
        ("SELECT i_count, i_part AS all FROM item ORDER BY ALL", f"SELECT i_count, i_part AS all FROM {ITEM} ORDER BY `all`"),
        # DISTINCT hides what it does not list.
        (f"SELECT DISTINCT i_count FROM {NAMED} ORDER BY ALL", f"SELECT DISTINCT i_count FROM {NAMED} ORDER BY 1"),
    ],
)  # fmt: skip
def test_what_all_means(text: str, meant: str) -> None:
    assert rendered(text.replace(ITEM, "item")) == meant
