"""Aggregates over tables with parts, with the rule and without: the rows, types and names of one plain Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import skerry
from skerry.testing.checkers import same_table
from skerry.testing.cluster import LocalCluster
from skerry.testing.corpus import Entry, read_corpus
from skerry.testing.oracle import SparkOracle

pytestmark = pytest.mark.spark

Known = Callable[..., pa.Table]

CORPUS = read_corpus(Path(__file__).parent / "aggregates.sql")
# Fires for none of these.
WHOLE = {"not_partial", "correlated_block", "joined_other_way", "joined_with_itself", "by_all_constant", "empty_sets"}
# And for these, as sketches are longer than the rows of small tables: test_partials.py merges them.
WHOLE |= {"bitmaps", "bitmaps_of_nothing", "theta_sketches"}


def entries(names: Any = tuple(CORPUS)) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("entry", [pytest.param(CORPUS[name], id=name) for name in names])


def check(entry: Entry, cluster: LocalCluster, oracle: SparkOracle, rules: str, at: str = "oslo") -> None:
    with cluster.connect(at) as connection, connection.cursor() as cursor:
        if entry.error:
            with pytest.raises(skerry.Error, match=entry.error):
                cursor.execute(entry.sql, planning={"rules": rules}).fetchall()
            with pytest.raises(Exception, match=entry.error):
                oracle.run(entry.oracle)
            return
        found = cursor.execute(entry.sql, planning={"rules": rules}).fetch_arrow_table()
    same_table(found, oracle.answer(entry.oracle), entry.ordered, keys=[int(key) for key in entry.keys])


@entries()
def test_answer_is_sparks(entry: Entry, cluster: LocalCluster, oracle: SparkOracle) -> None:
    """All rules but one: parts that have no row would be left out, and there would be nothing to merge."""
    check(entry, cluster, oracle, "-prune")


# All of them run both ways on Sail.
@entries(list(CORPUS)[::5])
def test_answer_is_sparks_without_rules(entry: Entry, cluster: LocalCluster, oracle: SparkOracle) -> None:
    check(entry, cluster, oracle, "none")


@pytest.mark.parametrize("at", ["bergen", "tromso"])
@entries(("by_string", "in_order_of_keys_limited", "computed_ordered", "nasty_overflow", "global"))
def test_from_every_initiator(entry: Entry, at: str, cluster: LocalCluster, oracle: SparkOracle) -> None:
    check(entry, cluster, oracle, "all", at)


@entries(("by_string", "nasty_keys", "in_order_of_keys_limited", "computed"))
def test_with_one_row_a_batch(entry: Entry, tiny_cluster: LocalCluster, oracle: SparkOracle) -> None:
    check(entry, tiny_cluster, oracle, "all")


# Sail's own ways, with the rule or without.
UNKNOWN_TO_SAIL = {
    # it cannot run them at all
    *("by_all", "by_all_of_nothing", "by_all_constant", "order_by_unlisted_aggregate", "correlated_block"),
    *("lateral_alias", "bitmaps", "bitmaps_of_nothing", "theta_sketches", "about_how_many_closely"),
    # its least and greatest of NaN depend on the order of the rows, and so do its sums of infinities
    *("nasty_ends", "nasty_ends_by_group", "joined_with_small"),
    # its averages of decimals are cut off, those of a derived table have another type, and it wraps where Spark has an
    # error
    *("derived_table", "nasty_decimals", "nasty_overflow", "nasty_decimal_overflow"),
    # it tells -0.0 from 0.0
    *("nasty_distinct", "nasty_distinct_rows", "nasty_doubles_as_keys", "nasty_keys_in_order"),
}


# Sail's averages of decimals are cut off; those that are made of partial ones are rounded, as Spark's are. These are
# compared with what Spark answers, which the test below keeps true.
KNOWN = ("order_by_aggregate", "computed", "count_distinct_global", "count_distinct_of_several", "rollup")
KNOWN += ("arrays_as_keys", "spreads_in_spark", "global", "by_hidden_keys", "by_string")


@entries(KNOWN)
def test_known_answers_are_sparks(entry: Entry, known: Known, oracle: SparkOracle) -> None:
    answer = oracle.answer(entry.oracle)
    same_table(known(entry.name, answer), answer, ordered=False)


@pytest.mark.sail
@entries([name for name in CORPUS if name not in UNKNOWN_TO_SAIL])
def test_sail_gives_the_same_with_the_rule_and_without(entry: Entry, known: Known, sail_cluster: LocalCluster) -> None:
    with sail_cluster.connect("oslo") as connection, connection.cursor() as cursor:
        if entry.error:
            for rules in ("aggregates", "none"):
                with pytest.raises(skerry.Error):
                    cursor.execute(entry.sql, planning={"rules": rules}).fetchall()
            return
        whole = cursor.execute(entry.sql, planning={"rules": "none"}).fetch_arrow_table()
        found = cursor.execute(entry.sql, planning={"rules": "aggregates"}).fetch_arrow_table()
    # Sail has names of its own for columns without an alias.
    expected = known(entry.name).rename_columns(whole.column_names) if entry.name in KNOWN else whole
    same_table(found, expected, entry.ordered, keys=[int(key) for key in entry.keys])


def explained(cluster: LocalCluster, sql: str, rules: str) -> str:
    with cluster.connect("oslo") as connection, connection.cursor() as cursor:
        return "\n".join(str(row[0]) for row in cursor.execute(f"EXPLAIN {sql}", planning={"rules": rules}).fetchall())


# As many groups as rows, or no rows: once the tables' statistics are known, the rule declines.
TOO_MANY_GROUPS = {
    "nasty_nothing_left",
    "nasty_doubles_as_keys",
    "nasty_keys",
    "nasty_times_as_keys",
    "nasty_distinct_rows",
}


@entries([name for name in CORPUS if name not in TOO_MANY_GROUPS])
def test_the_rule_fires(entry: Entry, cluster: LocalCluster) -> None:
    """Else the comparison above would compare the baseline with itself."""
    text = explained(cluster, entry.sql, "-prune")
    fires = ", aggregate edge" in text or ", aggregate, " in text or "AS part_0" in text
    assert fires is (entry.name not in WHOLE), text
