"""The order of FROM lists with hinted relations: hints keep Spark from looking for an order without products."""

from __future__ import annotations

import re

import pytest

from tests.plans.plan_cases import planned

_NAMES = re.compile(r"(?:edge|leaf)_\w+ AS (\w+)")
# o: orders, l: lineitem; c: customer and n: nation, which arrive and are small.
_EQUAL = "o_id = l_order AND o_cust = c_id AND c_nation = n_id"
_BOTH = "c_nation = n_id AND l_order = c_id"


def _from_of(sql: str) -> tuple[bool, str]:
    """Whether there is a hint, and the FROM that Spark is given; relations by their aliases."""
    (rest,) = (each.sql for each in planned(sql).fragments if " JOIN " in each.sql or ", leaf" in each.sql)
    listed = re.search(r" FROM (.*?)(?: GROUP BY .*| LIMIT .*)?$", rest)
    assert listed is not None
    return "BROADCAST" in rest, _NAMES.sub(r"\1", listed[1])


@pytest.mark.parametrize(
    ("written", "ordered"),
    [
        # As it was written, where each relation is connected with those before it.
        (f"lineitem l, orders o, customer c, nation n WHERE {_EQUAL}", f"l, o, c, n WHERE {_EQUAL}"),
        # Small ones first; a chain from its end; from its middle.
        (f"nation n, lineitem l, customer c, orders o WHERE {_EQUAL}", f"n, c, o, l WHERE {_EQUAL}"),
        (f"customer c, lineitem l, nation n, orders o WHERE {_EQUAL}", f"c, n, o, l WHERE {_EQUAL}"),
        # What nothing connects comes when all else is joined; a product that is wanted is made as it was written.
        (
            "nation n, customer c, lineitem l, orders o WHERE o_id = l_order AND o_cust = c_id",
            "n, c, o, l WHERE o_id = l_order AND o_cust = c_id",
        ),
        ("lineitem l, customer c, nation n WHERE l_qty > c_id + n_id", "l, c, n WHERE l_qty > c_id + n_id"),
        # The same table twice.
        (
            "customer c, customer d, lineitem l WHERE l_order = c.c_id AND l_qty = d.c_id",
            "c, l, d WHERE l_order = c.c_id AND l_qty = d.c_id",
        ),
        # JOIN with ON: the conditions are WHERE's before those that stand there.
        (
            "nation n CROSS JOIN lineitem l JOIN customer c ON c_nation = n_id AND l_order = c_id WHERE l_qty > 3",
            "n, c, l WHERE c_nation = n_id AND l_order = c_id AND l_qty > 3",
        ),
        # Before an outer join there are no commas.
        (
            f"nation n, lineitem l, customer c LEFT JOIN orders o ON o_cust = c_id WHERE {_BOTH}",
            f"n CROSS JOIN c CROSS JOIN l LEFT JOIN o ON o_cust = c_id WHERE {_BOTH}",
        ),
    ],
)
def test_relations_come_when_a_condition_connects_them(written: str, ordered: str) -> None:
    assert _from_of(f"SELECT count(*) FROM {written}") == (True, ordered)


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT * FROM nation n, lineitem l, customer c, orders o WHERE {_EQUAL}",
        f"SELECT n_name FROM nation n, lineitem l, customer c, LATERAL (SELECT c.c_id AS k) t WHERE {_BOTH} AND k > 1",
        f"SELECT n_name FROM nation n, lineitem l, customer c RIGHT JOIN orders o ON o_cust = c_id WHERE {_BOTH}",
        f"SELECT n_name FROM nation n CROSS JOIN lineitem l JOIN customer c ON {_BOTH} AND rand() < 2",
    ],
)
def test_a_list_that_has_to_stay_as_it_is_gets_no_hints(sql: str) -> None:
    """Columns of a star, what a LATERAL sees, rows that an outer join keeps: Spark finds the order itself."""
    is_hinted, listed = _from_of(sql)
    assert not is_hinted
    assert listed.startswith(("n, l, c", "n CROSS JOIN l JOIN c"))


@pytest.mark.parametrize(
    ("written", "ordered"),
    [
        # Spark makes one list, of ON and then WHERE; with hints it would take WHERE first.
        (
            "lineitem l JOIN customer c ON l_order = c_id AND l_qty <> 0 JOIN nation n ON c_nation = n_id "
            "WHERE 9 / l_qty > 2",
            "l, c, n WHERE l_order = c_id AND l_qty != 0 AND c_nation = n_id AND 9 / l_qty > 2",
        ),
        # … and the last ON before the first, whatever is in front of an outer join.
        (
            "lineitem l JOIN customer c ON l_order = c_id AND l_qty <> 0 JOIN nation n ON c_nation = n_id "
            "AND 9 / l_qty > 2 LEFT JOIN orders o ON o_cust = c_id",
            "l CROSS JOIN c JOIN n ON l_order = c_id AND l_qty != 0 AND c_nation = n_id AND 9 / l_qty > 2 "
            "LEFT JOIN o ON o_cust = c_id",
        ),
        # A value that is read twice has a name for a while: Spark keeps it out of its list, above it.
        (
            "lineitem l, customer c, nation n WHERE l_order = c_id AND c_nation = n_id AND 9 / l_qty > 2 "
            "AND abs(l_qty) BETWEEN 1 AND 5",
            "l, c, n WHERE abs(l_qty) BETWEEN 1 AND 5 AND l_order = c_id AND c_nation = n_id AND 9 / l_qty > 2",
        ),
        # Nothing fails: as it was written.
        (
            "lineitem l JOIN customer c ON l_order = c_id AND l_qty <> 0 JOIN nation n ON c_nation = n_id "
            "WHERE l_qty > 2",
            "l JOIN c ON l_order = c_id AND l_qty != 0 JOIN n ON c_nation = n_id WHERE l_qty > 2",
        ),
    ],
)
def test_conditions_that_may_fail_are_in_sparks_order(written: str, ordered: str) -> None:
    assert _from_of(f"SELECT count(*) FROM {written}") == (True, ordered)


def test_conditions_in_an_order_that_cannot_be_said_get_no_hints() -> None:
    """The inner joins that Spark makes a list of come behind an outer one."""
    is_hinted, _ = _from_of(
        "SELECT count(*) FROM lineitem l LEFT JOIN orders o ON o_id = l_order JOIN customer c ON l_order = c_id "
        "AND l_qty <> 0 JOIN nation n ON c_nation = n_id WHERE 9 / l_qty > 2"
    )
    assert not is_hinted


@pytest.mark.parametrize(
    "listed",
    [
        "lineitem l JOIN customer c ON l_order = c_id JOIN nation n ON c_nation = n_id",
        "lineitem l LEFT JOIN customer c ON l_order = c_id JOIN nation n ON c_nation = n_id",
        "customer c LEFT SEMI JOIN nation n ON c_nation = n_id JOIN lineitem l ON l_order = c_id",
    ],
)
def test_hints_stay_where_no_product_is_made(listed: str) -> None:
    is_hinted, _ = _from_of(f"SELECT count(*) FROM {listed}")
    assert is_hinted
