"""Every rule fires and nothing changes: links so slow that each byte saved pays, and all rules, some, or none."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import skerry
from skerry.testing.checkers import same_table
from skerry.testing.cluster import LocalCluster
from skerry.testing.corpus import Entry, read_corpus
from skerry.testing.oracle import SparkOracle, same_answer, tpch_answers

pytestmark = pytest.mark.spark

FOLDER = Path(__file__).parent
CORPUS = {name: entry for name, entry in read_corpus(FOLDER / "corpus.sql").items() if name.startswith("rules_")}
TPCH = {int(path.stem[1:]): path.read_text(encoding="utf-8") for path in sorted((FOLDER / "tpch").glob("q*.sql"))}
ONE_SITE = {1, 4, 6, 12, 16}

Ask = Callable[..., pa.Table]
Known = Callable[..., pa.Table]


@pytest.fixture(scope="module")
def ask_slow(slow_cluster: LocalCluster) -> Ask:
    def ask(sql: str, at: str = "oslo", **planning: str) -> pa.Table:
        with slow_cluster.connect(at) as connection, connection.cursor() as cursor:
            return cursor.execute(sql, planning=planning).fetch_arrow_table()

    return ask


@pytest.mark.parametrize("at", ["oslo", "bergen"])
@pytest.mark.parametrize("entry", CORPUS.values(), ids=lambda entry: entry.name)
def test_answer_is_sparks(entry: Entry, at: str, ask_slow: Ask, ask: Ask, oracle: SparkOracle) -> None:
    expected = oracle.answer(entry.oracle)
    same_table(ask_slow(entry.sql, at), expected, entry.ordered, keys=entry.keys)
    if at == "oslo" and plan_id(ask, entry.sql) != plan_id(ask_slow, entry.sql):
        same_table(ask(entry.sql), expected, entry.ordered, keys=entry.keys)


def plan_id(ask: Ask, sql: str) -> str:
    """Plans with one id are the same to the last byte, and read the same files."""
    first: str = ask(f"EXPLAIN {sql}").column(0)[0].as_py()
    assert re.match(r"plan [0-9a-f]{12},", first), first
    return first


# Sail cannot make one type of a union's decimals and whole numbers, whatever plans it.
ON_SAIL = [
    name
    for name in CORPUS
    if name.startswith(("rules_block_", "rules_cte_", "rules_arms_", "rules_fields_")) and name != "rules_arms_types"
]


@pytest.mark.sail
@pytest.mark.parametrize("name", ON_SAIL)
def test_sail_gives_the_same_with_blocks_and_without(name: str, sail_cluster: LocalCluster) -> None:
    entry = CORPUS[name]
    with sail_cluster.connect("tromso") as connection, connection.cursor() as cursor:
        whole = cursor.execute(entry.sql, planning={"rules": "none"}).fetch_arrow_table()
        found = cursor.execute(entry.sql).fetch_arrow_table()
    same_table(found, whole, entry.ordered, keys=entry.keys)


@pytest.mark.sail
@pytest.mark.parametrize("name", [name for name in CORPUS if name.startswith("rules_subtree_")])
def test_sail_gives_the_same_with_subtrees_and_without(name: str, sail_cluster: LocalCluster) -> None:
    entry = CORPUS[name]
    with sail_cluster.connect("bergen") as connection, connection.cursor() as cursor:
        whole = cursor.execute(entry.sql, planning={"rules": "none"}).fetch_arrow_table()
        for rules in ("all", "filters,subtrees"):
            found = cursor.execute(entry.sql, planning={"rules": rules}).fetch_arrow_table()
            same_table(found, whole, entry.ordered, keys=entry.keys)


@pytest.mark.sail
def test_subtrees_are_joined_at_their_site(sail_cluster: LocalCluster) -> None:
    with sail_cluster.connect("bergen") as connection, connection.cursor() as cursor:
        plans = [str(cursor.execute(f"EXPLAIN {entry.sql}").fetchall()) for entry in CORPUS.values()]
    assert sum("joined there as the query joins them" in plan for plan in plans) > 2


GROUPED = [name for name in CORPUS if name.startswith("rules_grouped_")]
# The rest where the other tables are: what is summed has to come there.
AT_INITIATOR = [{"root": "initiator"}, {"root": "initiator", "rules": "filters,grouped"}]
TOO_LARGE = "SELECT s_nationkey, sum(dec38) AS s FROM nasty JOIN supplier ON s_nationkey = i32 GROUP BY s_nationkey"


def elsewhere(sql: str) -> str:
    """A member that does not have what is summed."""
    return "tromso" if "nasty" in sql else "bergen"


@pytest.mark.parametrize("planning", AT_INITIATOR)
@pytest.mark.parametrize("name", GROUPED)
def test_rows_are_grouped_before_they_are_joined(
    name: str, planning: dict[str, str], ask_slow: Ask, oracle: SparkOracle
) -> None:
    entry = CORPUS[name]
    found = ask_slow(entry.sql, elsewhere(entry.sql), **planning)
    same_table(found, oracle.answer(entry.oracle), entry.ordered, keys=entry.keys)


def test_a_sum_that_is_too_large_is_still_an_error(ask_slow: Ask) -> None:
    explained = "\n".join(ask_slow(f"EXPLAIN {TOO_LARGE}", "tromso", root="initiator").column(0).to_pylist())
    assert "are grouped there before" in explained
    for rules in ("none", "all"):
        with pytest.raises(skerry.Error, match=r"(?i)overflow|out.of.range|cannot be represented"):
            ask_slow(TOO_LARGE, "tromso", root="initiator", rules=rules)


# It has an average of decimals: Sail cuts its own off, those made of partial ones are rounded as Spark's are.
KNOWN = "rules_grouped_join"


def test_known_answer_is_sparks(known: Known, oracle: SparkOracle) -> None:
    answer = oracle.answer(CORPUS[KNOWN].oracle)
    same_table(known(KNOWN, answer), answer, ordered=False)


@pytest.mark.sail
@pytest.mark.parametrize("name", GROUPED)
def test_sail_gives_the_same_with_groups_and_without(name: str, known: Known, sail_cluster: LocalCluster) -> None:
    entry = CORPUS[name]
    with sail_cluster.connect(elsewhere(entry.sql)) as connection, connection.cursor() as cursor:
        whole = cursor.execute(entry.sql, planning={"rules": "none"}).fetch_arrow_table()
        expected = known(name) if name == KNOWN else whole
        for planning in AT_INITIATOR:
            found = cursor.execute(entry.sql, planning=planning).fetch_arrow_table()
            same_table(found, expected, entry.ordered, keys=entry.keys)
        explained = str(cursor.execute(f"EXPLAIN {entry.sql}", planning=AT_INITIATOR[1]).fetchall())
        assert "are grouped there before" in explained


@pytest.mark.parametrize("planning", [{"rules": "filters,joined"}, {"strategy": "bottom-up", "rules": "joined"}])
@pytest.mark.parametrize("name", [name for name in CORPUS if name.startswith("rules_joined_")])
def test_joins_elsewhere(name: str, planning: dict[str, str], ask_slow: Ask, oracle: SparkOracle) -> None:
    """Without other rules, joins are what saves bytes: most of these are made before the rest."""
    entry = CORPUS[name]
    same_table(ask_slow(entry.sql, "tromso", **planning), oracle.answer(entry.oracle), entry.ordered, keys=entry.keys)


@pytest.mark.parametrize("number", [number for number in TPCH if number not in ONE_SITE])
def test_known_answer(number: int, ask_slow: Ask, oracle: SparkOracle) -> None:
    result = ask_slow(TPCH[number], "tromso")
    same_answer(result, tpch_answers(0.01)[number])
    same_table(result, oracle.answer(TPCH[number]), ordered=False)


@pytest.mark.parametrize(
    "planning", [{"rules": "none"}, {"rules": "-filters"}, {"root": "initiator"}, {"baseline": "tables"}]
)
@pytest.mark.parametrize("number", [5, 15, 20, 22])
def test_other_plans(number: int, planning: dict[str, str], ask_slow: Ask) -> None:
    same_answer(ask_slow(TPCH[number], "bergen", **planning), tpch_answers(0.01)[number])


def test_a_subquery_with_two_rows_is_still_an_error(ask_slow: Ask) -> None:
    sql = "SELECT o_orderkey FROM orders WHERE o_custkey = (SELECT ps_suppkey FROM partsupp GROUP BY ps_suppkey)"
    explained = "\n".join(ask_slow(f"EXPLAIN {sql}").column(0).to_pylist())
    assert "the subquery is answered once" in explained
    with pytest.raises(skerry.Error, match=r"SCALAR_SUBQUERY_TOO_MANY_ROWS|more than one row"):
        ask_slow(sql)


def test_a_with_query_named_twice_travels_once(ask_slow: Ask, oracle: SparkOracle) -> None:
    sql = (
        "WITH d AS (SELECT o_custkey AS k, count(*) AS n FROM orders WHERE o_orderstatus = 'P' GROUP BY o_custkey)"
        " SELECT a.k, b.n FROM customer, d AS a, d AS b WHERE c_custkey = a.k AND c_nationkey = b.k"
    )
    explained = "\n".join(ask_slow(f"EXPLAIN {sql}", "bergen").column(0).to_pylist())
    assert explained.count("reads table orders") == 1
    same_table(ask_slow(sql, "bergen"), oracle.answer(sql), ordered=False)


def test_a_with_query_that_differs_from_call_to_call_is_not_copied(ask_slow: Ask) -> None:
    sql = (
        "WITH d AS (SELECT o_orderkey AS k, rand() AS r FROM orders)"
        " SELECT count(*) AS n FROM d JOIN region ON k = r_regionkey WHERE r <= (SELECT max(r) FROM d)"
    )
    explained = "\n".join(ask_slow(f"EXPLAIN {sql}").column(0).to_pylist())
    assert explained.count("rand()") == 1
