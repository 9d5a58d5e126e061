"""What looks as if a rule were for it, and would have another answer, or an error, if the rule were used."""

from __future__ import annotations

import pytest

from skerry.model.fragment import Plan
from skerry.plan.cut import make_plan
from skerry.plan.rules import Rules
from tests.plans.plan_cases import CATALOG, LIMITS, bound
from tests.plans.test_plans_executed import site

JOINED = "FROM orders JOIN customer ON o_cust = c_id"


def plans(sql: str) -> list[Plan]:
    """One plan for each initiator, with all rules and links so slow that every byte counts."""
    return [make_plan(bound(sql), CATALOG, site(0.001, at, Rules()), LIMITS) for at in ("oslo", "bergen", "tromso")]


@pytest.mark.parametrize(
    "value",
    [
        "year(c_name)",
        "extract(year FROM c_name)",
        "substring('abc', c_name)",
        "substring(c_name, c_name, 1)",
        "left(c_name, '1')",
        "c_name LIKE c_name",
        r"c_name LIKE 'x\\y'",
        "c_name AND c_name = 'y'",
        "c_name OR c_name = 'x'",
        "c_nation = 0.00000000000000000000000000000000000001",
    ],
)
def test_what_may_fail_is_not_computed_before_its_join(value: str) -> None:
    """Spark casts a string to the date, number or boolean that is wanted: of a row without partner it never does."""
    for plan in plans(f"SELECT o_id, {value} AS v {JOINED}"):
        assert not any("value_0" in fragment.sql for fragment in plan.fragments), plan.fragments


@pytest.mark.parametrize(
    "value",
    [
        "transform(array('a', 'b'), c_name -> upper(c_name))",
        "filter(array('a', 'b'), c_name -> c_name LIKE 'a%')",
        "exists(array(1, 2), c_nation -> c_nation BETWEEN 1 AND 2 AND c_nation = o_id)",
    ],
)
def test_what_a_lambda_makes_of_its_variable_is_not_computed_from_a_column(value: str) -> None:
    for plan in plans(f"SELECT o_id, {value} AS v {JOINED}"):
        assert not any("value_0" in fragment.sql for fragment in plan.fragments), plan.fragments


@pytest.mark.parametrize("value", ["substring(c_name, 1, 2)", "c_name LIKE 'x%'", "c_name = 'x' AND c_nation IS NULL"])
def test_what_cannot_fail_is(value: str) -> None:
    found = plans(f"SELECT o_id, {value} AS v {JOINED}")
    assert any("value_0" in fragment.sql for plan in found for fragment in plan.fragments)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 AS one, count(*) AS n FROM sales GROUP BY ALL",
        "SELECT 1, count(*) + 1 FROM sales GROUP BY ALL",
        "SELECT count(*) AS n FROM sales GROUP BY GROUPING SETS ((), ())",
    ],
)
def test_groups_by_constants_are_not_made_of_partial_rows(sql: str) -> None:
    """They have no row when the table has none, and a count at each site always has one."""
    for plan in plans(sql):
        assert not plan.finish.aggregate
        assert sum("count(" in fragment.sql for fragment in plan.fragments) == 1, plan.fragments


@pytest.mark.parametrize("cast", ["CAST(s_cust AS STRING)", "TRY_CAST(s_cust AS STRING)", "sales.s_cust::STRING"])
def test_having_that_means_a_cast_is_not_made_of_partial_rows(cast: str) -> None:
    """Spark names the cast after its column, and compares strings here."""
    for plan in plans(f"SELECT {cast}, count(*) AS n FROM sales GROUP BY s_cust HAVING s_cust < '5'"):
        assert sum("count(" in fragment.sql for fragment in plan.fragments) == 1, plan.fragments


@pytest.mark.parametrize("ending", ["HAVING grouping(s_cust) = 1 OR sum(s_id) > 3", "ORDER BY grouping_id(s_cust), n"])
def test_what_asks_of_the_grouping_above_is_not_made_of_partial_rows(ending: str) -> None:
    """Spark would look for the keys of the partial rows in the list, where they have other names."""
    for plan in plans(f"SELECT s_cust, count(*) AS n FROM sales GROUP BY CUBE (s_cust) {ending}"):
        assert sum("count(" in fragment.sql for fragment in plan.fragments) == 1, plan.fragments


def test_group_by_all_of_nothing_is_no_clause() -> None:
    for plan in plans("SELECT count(*) + 1 AS n FROM sales GROUP BY ALL"):
        assert sum("count(*)" in fragment.sql for fragment in plan.fragments) == 2
        assert not any("GROUP BY" in fragment.sql for fragment in plan.fragments), plan.fragments


def test_an_alias_of_a_subquery_is_not_seen_in_its_where() -> None:
    """There `o_cust` is the column of orders, which is not where customer is."""
    inner = "SELECT n_id AS o_cust FROM nation WHERE n_id = o_cust"
    for plan in plans(f"SELECT o_id FROM orders, customer WHERE c_id = o_id AND c_nation IN ({inner})"):
        asking = [fragment for fragment in plan.fragments if "AS nation WHERE" in fragment.sql]
        assert asking
        assert all("AS orders" in fragment.sql for fragment in asking), plan.fragments


ALIKE = "customer AS a, customer AS b, orders WHERE a.c_id = b.c_id AND b.c_id = o_cust AND a.c_name = 'x'"
CHAIN = "orders, customer, nation WHERE o_cust = c_id AND c_nation = n_id AND n_name = 'x'"


def joined(sql: str) -> list[str]:
    """Fragments that join tables before they travel; nothing else is on, so that it would always pay."""
    rules = Rules(frozenset({"filters", "joined"}))
    found = [make_plan(bound(sql), CATALOG, site(0.001, at, rules), LIMITS) for at in ("oslo", "bergen", "tromso")]
    return [each.sql for plan in found for each in plan.fragments if "joined there" in each.reason]


@pytest.mark.parametrize(
    "sql",
    [
        # A star has every column of every table, in their order.
        f"SELECT * FROM {CHAIN}",
        f"SELECT o_id, customer.* FROM {CHAIN}",
        # Something is named after columns that share a name.
        f"SELECT max(a.c_name), max(b.c_name) FROM {ALIKE}",
        f"SELECT a.c_name, b.c_name FROM {ALIKE} ORDER BY a.c_name, b.c_name",
        f"SELECT DISTINCT a.c_name, b.c_name FROM {ALIKE}",
        # Whose it is depends on where it stands.
        "SELECT o_id FROM orders JOIN customer ON o_cust = c_id LEFT JOIN nation ON c_nation = n_id",
        "SELECT o_id FROM orders JOIN customer ON o_cust = c_id, LATERAL (SELECT 1 FROM nation WHERE n_id = c_id)",
        "SELECT o_id FROM orders, customer AS t(a, b, c), nation AS u(x, y) WHERE o_cust = t.a AND t.c = u.x",
        "SELECT o_id FROM orders, (customer JOIN nation ON c_nation = n_id) WHERE o_cust = c_id",
        "SELECT a.c_name FROM customer AS a JOIN customer AS b USING (c_id) JOIN orders ON o_cust = a.c_id",
        "SELECT o_id FROM orders, sales, customer JOIN nation ON n_id = o_cust AND c_nation = n_id WHERE o_id = c_id",
        # In WHERE the name would be that of two tables.
        "SELECT a.c_id FROM customer AS a JOIN nation ON c_nation = n_id JOIN orders ON o_cust = n_id"
        " JOIN customer AS b ON b.c_id = o_id",
        "SELECT o_id FROM orders JOIN customer AS a ON o_cust IN (SELECT l_order FROM lineitem WHERE l_qty = c_id)"
        " JOIN nation ON a.c_nation = n_id JOIN customer AS b ON b.c_nation = n_id WHERE n_name = 'x' AND o_id = n_id",
        # Were they one relation, rows without an order could make it fail.
        f"SELECT o_id FROM {CHAIN} AND 1 / (c_nation - n_id) > 0",
        f"SELECT o_id FROM {CHAIN} AND c_name + n_id > 0",
        f"SELECT o_id FROM {CHAIN} AND c_id / n_id > (SELECT max(l_qty) FROM lineitem)",
        # Nothing says how they belong together.
        "SELECT o_id FROM orders, customer, nation WHERE c_nation < n_id AND o_cust = 3 AND c_name = 'x' AND n_id = 4",
        # Chance is not asked twice.
        "SELECT o_id FROM orders JOIN customer ON o_cust = c_id AND rand() < 0.5 JOIN nation ON c_nation = n_id",
        # A name that a lambda gives hides the column.
        f"SELECT o_id, transform(array(1), c_id -> c_id + n_id) AS t FROM {CHAIN}",
    ],
)
def test_tables_that_travel_apart(sql: str) -> None:
    assert joined(sql) == []


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT o_id, c_name FROM {CHAIN}",
        f"SELECT max(a.c_name), b.c_nation + 1 FROM {ALIKE} GROUP BY b.c_nation",
        f"SELECT a.c_name, b.c_name AS other FROM {ALIKE}",
        f"SELECT count(*) FROM {CHAIN} AND (c_id > n_id OR o_id < 3)",
        f"SELECT o_id FROM {CHAIN} AND o_total / n_id > 3",
        f"SELECT c_nation, n_id, count(*) FROM {CHAIN} GROUP BY c_nation, n_id",
    ],
)
def test_tables_that_travel_joined(sql: str) -> None:
    assert joined(sql)


def test_groups_that_lack_a_column_do_not_show_its_equal() -> None:
    plain = joined(f"SELECT c_nation AS a, n_id AS b, count(*) FROM {CHAIN} GROUP BY c_nation, n_id")
    sets = joined(f"SELECT c_nation AS a, n_id AS b, count(*) FROM {CHAIN} GROUP BY ROLLUP (c_nation, n_id)")
    assert plain
    assert not any("AS `n_id`" in sql for sql in plain)
    assert all("AS `n_id`" in sql and "AS `c_nation`" in sql for sql in sets)
    assert sets


@pytest.mark.parametrize(
    "asked",
    [
        "c_nation, n_id, count(*) AS n FROM {} GROUP BY c_nation",
        "c_nation, n_id + 1 AS m, count(*) AS n FROM {} GROUP BY 1",
        "c_nation, count(*) AS n FROM {} GROUP BY c_nation HAVING n_id > 3",
        "c_nation AS k, n_id, count(*) AS n FROM {} GROUP BY k",
    ],
)
def test_a_column_that_is_not_grouped_is_no_other_column(asked: str) -> None:
    """Spark refuses it, although a column that is grouped equals it."""
    found = joined(f"SELECT {asked.format(CHAIN)}")
    assert found
    assert all("AS `n_id`" in sql and "AS `c_nation`" in sql for sql in found)


def test_units_are_no_columns_and_dates_are() -> None:
    """`date_add(d, 3)` is spelt like `date_add(DAY, 3, d)`."""
    where = "a.o_id = b.o_id AND a.o_id = l_order AND a.o_total = 3 AND b.o_cust = 4"
    same = f"orders AS a, orders AS b, lineitem WHERE {where}"
    for value in ("date_add(a.o_date, 3)", "date_add(DAY, 3, a.o_date)", "datediff(a.o_date, b.o_date)"):
        plan = make_plan(bound(f"SELECT {value} AS d FROM {same}"), CATALOG, site(0.001, "tromso", Rules()), LIMITS)
        assert any("a, b are joined there" in fragment.reason for fragment in plan.fragments), plan.fragments
        (root,) = [fragment for fragment in plan.fragments if fragment.output.edge == plan.rows.edge]
        assert "DAY" not in value or "(DAY, 3, " in root.sql
        assert "o_date" in root.sql
        assert " a.o_date" not in root.sql.replace("(", " ")
        assert " b.o_date" not in root.sql.replace("(", " ")


SUBTREE = "SELECT o_id, c_id FROM orders JOIN customer ON o_cust = c_id LEFT ANTI JOIN nation ON n_id = c_nation"


@pytest.mark.parametrize(
    "sql",
    [
        SUBTREE.replace("= c_nation", "= c_nation AND rand() < 0.5"),
        # Each row that the join makes of one would have a chance of its own.
        SUBTREE.replace("= c_id", "= c_id AND rand() < 0.5"),
        # Of a customer without orders nothing is asked; of rows of NULLs much may be true.
        SUBTREE.replace("= c_nation", "= 100 / c_nation"),
        SUBTREE.replace("ANTI", "").replace("n_id =", "n_id <=>").replace("orders JOIN", "orders LEFT JOIN"),
        SUBTREE.replace("orders JOIN", "orders LEFT JOIN"),
        SUBTREE.replace("orders JOIN", "orders FULL JOIN"),
        SUBTREE.replace("LEFT ANTI", "FULL JOIN lineitem ON l_order = o_id LEFT ANTI"),
        SUBTREE.replace("ANTI JOIN nation ON", "JOIN nation ON") + " WHERE coalesce(100 / n_id, 1) < 2",
        # Names: of a table that cannot be seen there, of one column for two, of all columns.
        SUBTREE.replace("c_id FROM", "n_name FROM"),
        "SELECT c_nation FROM orders JOIN customer a ON o_cust = a.c_id LEFT ANTI JOIN customer b USING (c_nation)",
        SUBTREE.replace("o_id, c_id", "*"),
    ],
)
def test_joins_that_another_order_would_change_stay_where_they_are(sql: str) -> None:
    for plan in plans(sql):
        assert not any("subtree_" in fragment.sql for fragment in plan.fragments), plan.fragments


@pytest.mark.parametrize(
    "sql",
    [
        SUBTREE,
        SUBTREE.replace("orders JOIN", "orders RIGHT JOIN"),
        "SELECT o_id, a.c_id FROM orders JOIN customer a ON o_cust = a.c_id LEFT ANTI JOIN customer b USING (c_nation)",
        SUBTREE.replace("LEFT ANTI", "LEFT JOIN lineitem ON l_order = o_id LEFT ANTI"),
        SUBTREE.replace("o_id, c_id", "o_id").replace("ANTI JOIN nation ON", "JOIN nation ON") + " AND n_name = c_name",
    ],
)
def test_others_are_made_first(sql: str) -> None:
    assert any("subtree_" in fragment.sql for plan in plans(sql) for fragment in plan.fragments)


@pytest.mark.parametrize(
    "sql",
    [
        # Spark joins nation and clicks first, so that nothing is divided by zero.
        "SELECT count(*) AS n FROM nation n, clicks k, customer c "
        "WHERE n_id = c_nation AND 10 / (c_nation - k_small) > 2 AND n_id > k_small",
        # In ON a later table is not to be seen: here it is an error, which it must remain.
        "SELECT v_word, count(*) AS n FROM orders JOIN visits ON o_cust = n_id JOIN nation ON v_key = n_id "
        "GROUP BY v_word",
        # `place` in ON is a column of e; in WHERE it would be the table.
        "SELECT v_word, count(*) AS n FROM orders JOIN oslo.events AS e ON size(place.id) = o_cust "
        "JOIN visits ON o_cust = v_key JOIN tromso.mixed AS place ON place.id = v_key GROUP BY v_word",
    ],
)
def test_rows_are_not_grouped_where_conditions_would_be_asked_elsewhere(sql: str) -> None:
    for plan in plans(sql):
        assert not any("grouped_1" in fragment.sql for fragment in plan.fragments), plan.fragments
