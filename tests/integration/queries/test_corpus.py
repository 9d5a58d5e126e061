"""Queries of every kind over three sites: the rows, types and names of one plain Spark."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import skerry
from skerry.testing.checkers import same_table
from skerry.testing.corpus import Entry, read_corpus
from skerry.testing.nasty import SITES
from skerry.testing.oracle import SparkOracle

pytestmark = pytest.mark.spark

CORPUS = read_corpus(Path(__file__).parent / "corpus.sql")

PARAMETERS: dict[str, list[Any] | dict[str, Any]] = {
    "parameters_positional": ["it's", Decimal("350000.00"), "F", "O", dt.date(1996, 1, 1)],
    "parameters_named": {"label": "æ", "nation": 7, "least": 200000, "many": 50},
    "parameters_types": {
        "t": True,
        "i": 42,
        "big": 2**40,
        "f": 1.5,
        "nan": math.nan,
        "dec": Decimal("123.4500"),
        "s": "it's ?",
        "b": b"\x00\xff",
        "d": dt.date(2024, 2, 29),
        "ts": dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.UTC),
        "tsn": dt.datetime(2024, 3, 31, 2, 30, 0, 1),
        "none": None,
        "arr": [1, 2, 3],
    },
    "parameters_hostile": ["'; DROP TABLE nation; --", "' OR '1' = '1"],
}

# Entries whose oracle text holds the values themselves: plain PySpark binds them with other types.
BOUND_IN_TEXT = {"parameters_types"}

# Entries that Skerry does not answer as Spark does, and why. A fix makes the test fail: then the line goes.
GAPS: dict[str, str] = {}

# With one row a batch a large result takes long and shows nothing new.
SMALL = (
    "window_over_groups",
    "scalar_correlated",
    "not_in_nulls",
    "cte_nested",
    "union_all_types",
    "grouping_sets",
    "lateral_view_outer",
    "full_join_nulls",
    "three_site_join",
    "empty_scan",
    "empty_join",
    "select_star",
    "order_doubles",
    "limit_offset",
    "duplicate_names",
    "parameters_named",
    "parts_merge_limit",
    "parts_group",
    "parts_one",
    "global_aggregate",
)

FROM_ANYWHERE = (
    "scalar_correlated",
    "set_operations_mixed",
    "three_site_join",
    "empty_join",
    "parts_merge",
    "parts_group",
    "select_star",
    "qualified_table",
    "select_without_from",
)


def entries(names: Any = tuple(CORPUS)) -> pytest.MarkDecorator:
    marks = {name: [pytest.mark.xfail(reason=GAPS[name], strict=True)] if name in GAPS else [] for name in names}
    return pytest.mark.parametrize("entry", [pytest.param(CORPUS[name], marks=marks[name], id=name) for name in names])


def check(entry: Entry, ask: Callable[..., pa.Table], oracle: SparkOracle, at: str = "oslo") -> None:
    parameters = PARAMETERS.get(entry.name)
    if entry.error:
        with pytest.raises(skerry.Error, match=entry.error):
            ask(entry.sql, parameters, at=at)
        return
    is_bound = parameters is not None and entry.name not in BOUND_IN_TEXT
    expected = oracle.run(entry.oracle, parameters) if is_bound else oracle.answer(entry.oracle)
    same_table(ask(entry.sql, parameters, at=at), expected, entry.ordered, keys=entry.keys)


# Queries for the rules are asked in test_rules.py, here too where these links give another plan.
@entries([name for name in CORPUS if not name.startswith("rules_")])
def test_answer_is_sparks(entry: Entry, ask: Callable[..., pa.Table], oracle: SparkOracle):
    check(entry, ask, oracle)


@entries(SMALL)
def test_with_one_row_a_batch(entry: Entry, ask_tiny: Callable[..., pa.Table], oracle: SparkOracle):
    check(entry, ask_tiny, oracle)


@pytest.mark.parametrize("at", [site for site in SITES if site != "oslo"])
@entries(FROM_ANYWHERE)
def test_from_every_initiator(entry: Entry, at: str, ask: Callable[..., pa.Table], oracle: SparkOracle):
    check(entry, ask, oracle, at)


@pytest.mark.parametrize("at", SITES)
def test_no_initiator_is_special_for_errors(at: str, ask: Callable[..., pa.Table], oracle: SparkOracle):
    check(CORPUS["divide_by_zero"], ask, oracle, at)
