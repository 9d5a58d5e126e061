"""TPC-H's tables over three sites, and statements of every size with their right answers, by DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from skerry.testing.oracle import make_tpch

SCALE = 0.05  # lineitem has 300,000 rows


@dataclass(frozen=True)
class Statement:
    """`$n` in its text becomes a number, so that some texts were seen before and some were not.

    `rows`: the right ones; None if only their number and the sum of their first column are known.
    """

    name: str
    text: str
    count: int = 0
    total: int = 0
    rows: Sequence[tuple[Any, ...]] | None = None

    def sql(self, number: int) -> str:
        return self.text.replace("$n", str(number))

    def wrong(self, found: pa.Table) -> str:
        """What is wrong with an answer; "" if nothing is."""
        if found.num_rows != self.count:
            return f"{found.num_rows} rows instead of {self.count}"
        if self.rows is not None:
            rows = sorted(zip(*(column.to_pylist() for column in found.columns), strict=True), key=repr)
            return "" if rows == self.rows else f"wrong rows, the first {rows[:1]} instead of {self.rows[:1]}"
        total = pc.sum(found.column(0)).as_py() if self.total else 0
        return "" if total == self.total else f"its first column sums up to {total} instead of {self.total}"


SMALL = {
    "one table": "SELECT n_name, n_regionkey FROM nation WHERE n_nationkey < 10 AND n_nationkey > -$n",
    "aggregate": "SELECT o_orderstatus, count(*) AS n, sum(o_totalprice) AS total FROM orders "
    "WHERE o_orderkey > -$n GROUP BY o_orderstatus",
    "join": "SELECT n_name, count(*) AS n, sum(o_totalprice) AS total FROM orders "
    "JOIN customer ON o_custkey = c_custkey JOIN nation ON c_nationkey = n_nationkey GROUP BY n_name",
    "join of three sites": "SELECT s_name, c_mktsegment, sum(l_quantity) AS q FROM lineitem "
    "JOIN supplier ON l_suppkey = s_suppkey JOIN orders ON l_orderkey = o_orderkey "
    "JOIN customer ON o_custkey = c_custkey WHERE s_nationkey = 3 AND l_orderkey > -$n GROUP BY s_name, c_mktsegment",
    "distinct": "SELECT p_brand, count(DISTINCT ps_suppkey) AS n FROM part JOIN partsupp ON p_partkey = ps_partkey "
    "GROUP BY p_brand",
    "semi-join": "SELECT count(*) AS n FROM orders WHERE o_custkey IN (SELECT c_custkey FROM customer "
    "WHERE c_acctbal > 9000) AND o_orderkey > -$n",
    "ordered": "SELECT o_orderkey, o_totalprice FROM orders WHERE o_orderdate < DATE '1992-03-01' "
    "ORDER BY o_totalprice DESC, o_orderkey",
    "top": "SELECT l_orderkey, l_linenumber, c_name FROM lineitem JOIN orders ON l_orderkey = o_orderkey "
    "JOIN customer ON o_custkey = c_custkey ORDER BY l_extendedprice DESC, l_orderkey, l_linenumber LIMIT 50",
}
LARGE = {
    "large": "SELECT l_orderkey, l_linenumber, l_quantity, l_comment FROM lineitem WHERE l_orderkey > -$n",
    "large join": "SELECT o_orderkey, c_name, o_comment FROM orders JOIN customer ON o_custkey = c_custkey",
}
LIMITED = {
    "limit": ("SELECT l_orderkey, l_comment FROM lineitem LIMIT 500", 500),
    "limit of a join": ("SELECT c_name, o_orderkey FROM customer JOIN orders ON c_custkey = o_custkey LIMIT 200", 200),
}
# Cancelled: they would take long.
HEAVY = {
    "heavy join": "SELECT count(*) AS n FROM lineitem a JOIN lineitem b ON a.l_suppkey = b.l_suppkey "
    "WHERE a.l_comment < b.l_comment AND a.l_orderkey > -$n",
    "heavy across sites": "SELECT count(*) AS n FROM lineitem JOIN partsupp ON l_suppkey = ps_suppkey "
    "WHERE l_comment < ps_comment",
}
WRONG = (
    "SELEC 1",
    "SELECT no_such_column FROM orders",
    "SELECT * FROM no_such_table",
    "SELECT java_method('java.lang.System', 'exit', 1)",
    "SELECT o_orderkey FROM orders GROUP BY o_custkey",
)
FAILING = (
    "SELECT sum(CAST(o_comment AS INT)) AS n FROM orders WHERE o_orderkey > -$n",
    "SELECT c_name, CAST(o_comment AS INT) AS n FROM orders JOIN customer ON o_custkey = c_custkey",
)


@dataclass(frozen=True)
class Statements:
    right: tuple[Statement, ...]
    large: tuple[Statement, ...]


def make_tables(folder: Path) -> dict[str, Path]:
    return make_tpch(folder, SCALE)


def right_answers(tables: dict[str, Path]) -> Statements:
    with duckdb.connect() as database:
        for name, folder in tables.items():
            database.read_parquet(f"{folder}/*.parquet").create_view(name)

        def rows_of(text: str) -> list[tuple[Any, ...]]:
            return database.sql(text.replace("$n", "1")).fetchall()

        right = []
        for name, text in SMALL.items():
            rows = sorted(rows_of(text), key=repr)
            right.append(Statement(name, text, len(rows), rows=rows))
        large = []
        for name, text in LARGE.items():
            rows = rows_of(text)
            large.append(Statement(name, text, len(rows), sum(row[0] for row in rows)))
    right += [Statement(name, text, count) for name, (text, count) in LIMITED.items()]
    return Statements(tuple(right), tuple(large))
