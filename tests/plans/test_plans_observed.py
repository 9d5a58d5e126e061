"""Plans change by what was seen: queries are run, their sizes learned, and planned again. Fragments run in DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from metamorphic.in_duckdb import Runner
from skerry.catalog.catalog import Catalog
from skerry.catalog.topology import Topology
from skerry.config import parse
from skerry.model.fragment import Plan, SparkFragment
from skerry.model.limits import Limits
from skerry.model.table import ColumnStats, PartStats, TablePart
from skerry.plan.cut import Site, make_plan
from skerry.plan.observed import Observed, Size
from skerry.plan.rules import Rules
from skerry.sql.statement import Query, analyse

pytestmark = pytest.mark.slow

CONFIG = parse("""
cluster: c
members:
  oslo:
    address: h:1
    tables:
      orders: {format: parquet, path: o, columns: {o_id: bigint, o_cust: bigint, o_day: bigint, o_note: string}}
      logs: &logs {format: parquet, path: g, columns: {g_key: bigint, g_word: string, g_cost: bigint}}
  bergen:
    address: h:2
    tables:
      customer: {format: parquet, path: c, columns: {c_id: bigint, c_name: string, c_nation: bigint}}
      logs: *logs
  tromso:
    address: h:3
    tables:
      lineitem: {format: parquet, path: l, columns: {l_order: bigint, l_cust: bigint, l_note: string}}
links:
  - {between: [oslo, bergen], mbit: 0.1}
  - {between: [oslo, tromso], mbit: 0.1}
  - {between: [bergen, tromso], mbit: 0.1}
""")
TOPOLOGY = Topology(CONFIG)
DATA = tuple(CONFIG.members)


def some(count: int, of: int) -> pa.Array:
    return pa.array([number % of for number in range(count)], pa.int64())


def words(count: int, start: str = "x") -> pa.Array:
    return pa.array([f"{start}{number % 500} with some more letters" for number in range(count)])


TABLES: Mapping[tuple[str, str], pa.Table] = {
    # Every name begins with x, orders are of few customers, lines of one day's orders.
    ("oslo", "orders"): pa.table(
        {"o_id": some(6000, 6000), "o_cust": some(6000, 40), "o_day": some(6000, 2), "o_note": words(6000)}
    ),
    ("bergen", "customer"): pa.table({"c_id": some(2000, 2000), "c_name": words(2000), "c_nation": some(2000, 5)}),
    ("tromso", "lineitem"): pa.table({"l_order": some(9000, 6000), "l_cust": some(9000, 40), "l_note": words(9000)}),
    ("oslo", "logs"): pa.table({"g_key": some(3000, 3000), "g_word": words(3000), "g_cost": some(3000, 7)}),
    ("bergen", "logs"): pa.table({"g_key": some(4000, 4000), "g_word": words(4000), "g_cost": some(4000, 7)}),
}
# What statistics say, however wrong: of a number that is not here, one value a row.
NDV = {"o_cust": 2000.0, "o_day": 200.0, "c_nation": 500.0, "l_cust": 2000.0, "l_order": 20.0, "g_key": 10.0}


def catalog(files_version: int = 1) -> Catalog:
    found = Catalog(CONFIG)
    for name, member in CONFIG.members.items():
        parts = []
        for table, each in member.tables.items():
            rows = TABLES[name, table].num_rows
            stats = [ColumnStats(c.name, nulls=0, ndv=NDV.get(c.name, float(rows))) for c in each.columns]
            parts.append(
                TablePart(table, name, each.columns, rows, rows * 30, 1, files_version, PartStats(tuple(stats)))
            )
        found.learn(name, parts, {})
    return found


CATALOG = catalog()


class Measured(Runner):
    """Keeps what each fragment of the last plan sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[int, Size] = {}

    def _answer(self, fragment: SparkFragment, tables: Any, edges: Any) -> pa.Table:
        answer = super()._answer(fragment, tables, edges)
        self.sizes[fragment.id] = Size(answer.num_rows, answer.nbytes)
        return answer


RUNNER = Measured()


def planned(sql: str, observed: Observed, at: str) -> Plan:
    query = analyse(sql, None, CATALOG, Limits())
    assert isinstance(query, Query)
    return make_plan(query, CATALOG, Site(at, DATA, Rules(), TOPOLOGY, observed), Limits())


def run(plan: Plan, observed: Observed) -> tuple[Counter[tuple[Any, ...]], int]:
    """The answer, and the bytes that travelled for it."""
    RUNNER.sizes.clear()
    answer = RUNNER.run(plan, TABLES)
    observed.learn(plan, RUNNER.sizes, CATALOG.files_version)
    sent = [each.id for each in plan.fragments for to in each.output.receivers if each.member != to]
    return answer, sum(RUNNER.sizes[number].size_bytes for number in sent)


WRONG_GUESSES = {
    "keys that drop nothing": (
        "SELECT o_id, o_note, c_nation FROM orders JOIN customer ON o_cust % 2000 = c_id AND o_cust = c_id"
        " WHERE c_name LIKE 'x%' AND o_note LIKE 'x%'",
        "bergen",
    ),
    "a table that a condition hardly filters": (
        "SELECT c_nation, max(o_note) AS m FROM orders JOIN customer ON o_cust = c_id WHERE o_day = 1"
        " GROUP BY c_nation",
        "tromso",
    ),
    "tables that are joined first": (
        "SELECT o_id, o_note, c_name FROM orders, customer, lineitem"
        " WHERE o_cust = c_id AND l_cust = c_id AND o_note LIKE 'x%' AND l_order < 300 AND c_name LIKE 'x%'",
        "bergen",
    ),
    "a query in FROM": (
        "SELECT o_note, n FROM orders JOIN (SELECT l_order, count(*) AS n FROM lineitem GROUP BY l_order) AS t"
        " ON o_id = l_order",
        "tromso",
    ),
    "a result": (
        "SELECT a.o_id FROM orders AS a JOIN lineitem AS b ON a.o_cust = b.l_cust AND a.o_note < b.l_note"
        " WHERE a.o_id % 8 = 1",
        "bergen",
    ),
    "groups of parts": (
        "SELECT g_key, avg(g_cost) AS a, sum(g_cost) AS s, max(g_cost) AS m FROM logs GROUP BY g_key HAVING s > 1",
        "tromso",
    ),
}


@pytest.mark.parametrize("name", WRONG_GUESSES)
def test_plans_settle_on_one_that_sends_less(name: str) -> None:
    sql, at = WRONG_GUESSES[name]
    observed = Observed(1000)
    plan = planned(sql, observed, at)
    answer, first = run(plan, observed)
    sent = [first]
    for _ in range(8):
        again = planned(sql, observed, at)
        assert again.plan_id == planned(sql, observed, at).plan_id
        if again.plan_id == plan.plan_id:
            break
        plan = again
        same, size_bytes = run(plan, observed)
        assert same == answer
        sent.append(size_bytes)
    else:
        pytest.fail(f"no end of new plans: {sent}")
    assert sent[-1] < first, sent


def test_the_root_goes_to_a_large_result() -> None:
    sql, at = WRONG_GUESSES["a result"]
    observed = Observed(1000)
    plan = planned(sql, observed, at)
    assert plan.fragments[-1].member != at
    run(plan, observed)
    assert planned(sql, observed, at).fragments[-1].member == at


def test_values_of_keys_are_learned_from_distinct_ones_that_were_sent() -> None:
    sql, at = WRONG_GUESSES["keys that drop nothing"]
    observed = Observed(1000)
    plan = planned(sql, observed, at)
    assert any("SELECT DISTINCT" in each.sql for each in plan.fragments)
    run(plan, observed)
    # Another query with the same condition: no fewer rows pass than have been seen to have values.
    other = planned("SELECT c_name FROM customer WHERE c_name LIKE 'x%'", observed, "oslo")
    assert other.fragments[-1].estimated_rows == 2000


def test_other_files_are_something_else() -> None:
    sql, at = WRONG_GUESSES["a table that a condition hardly filters"]
    observed = Observed(1000)
    plan = planned(sql, observed, at)
    run(plan, observed)
    assert planned(sql, observed, at).plan_id != plan.plan_id
    newer = catalog(2)
    query = analyse(sql, None, newer, Limits())
    assert isinstance(query, Query)
    assert make_plan(query, newer, Site(at, DATA, Rules(), TOPOLOGY, observed), Limits()).plan_id == plan.plan_id


def test_what_depends_on_a_parameter_is_not_remembered() -> None:
    sql = "SELECT o_note, c_name FROM orders JOIN customer ON o_cust = c_id WHERE o_day = {} AND c_name = {}"
    known = {}
    for day, name, parameters in (("1", "'x'", None), ("?", "?", [1, "x"])):
        query = analyse(sql.format(day, name), parameters, CATALOG, Limits())
        assert isinstance(query, Query)
        known[day] = make_plan(query, CATALOG, Site("bergen", DATA, Rules(), TOPOLOGY), Limits()).known_by
    assert known["1"]
    assert not known["?"]
