"""What plain Sail answers, a cluster on Sail answers over parts; where Sail is wrong, by Spark's meaning.

What Sail cannot run is asked on Apache Spark, with what may go wrong over parts alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from pyspark.errors import PySparkException

import skerry
from skerry.client.dbapi import Connection
from skerry.spark.engine import Engine
from skerry.testing.checkers import same_table
from skerry.testing.cluster import LocalCluster

SITES = ("oslo", "bergen", "tromso")
WIDE = Decimal(10**38 - 1)
ROWS = 240

# t has parts at all sites, u and w are whole at one.
SAME = [
    "SELECT k, sum(b), avg(b) FROM t GROUP BY k",
    "SELECT sum(b), avg(b), avg(c), sum(c), stddev(b) FROM t",
    "SELECT k, avg(b) FILTER (WHERE b > 5), sum(b) FILTER (WHERE b > 5) FROM t GROUP BY k",
    "SELECT k, sum(b) + avg(b) AS both FROM t GROUP BY k HAVING avg(b) > 1 ORDER BY both",
    "SELECT k, avg(d) AS a, stddev(d) AS s FROM t WHERE d = 2 GROUP BY k",
    "WITH g AS (SELECT k, b FROM t) SELECT k, sum(b) AS n FROM g GROUP BY k HAVING sum(b) > (SELECT avg(b) FROM g)",
    "WITH g AS (SELECT k, a FROM u UNION ALL SELECT k, a FROM w) "
    "SELECT k, sum(a) FROM g GROUP BY k HAVING sum(a) > (SELECT avg(a) FROM g)",
    "WITH g AS (SELECT DISTINCT k, b FROM t) "
    "SELECT k FROM g GROUP BY k HAVING count(*) > (SELECT count(*) / 10 FROM g)",
    "SELECT k, sum(b) FROM t GROUP BY k HAVING sum(b) = (SELECT max(s) FROM (SELECT sum(b) AS s FROM t GROUP BY k))",
    "SELECT k, sum(a) FROM u GROUP BY k HAVING sum(a) > (SELECT max(b) FROM t WHERE t.k = u.k)",
    "SELECT k, stddev(x) FROM t GROUP BY k ORDER BY stddev(x) DESC, k LIMIT 2",
    "SELECT k, sum(b) FROM t GROUP BY k HAVING sum(b) > 1 ORDER BY sum(b) DESC",
    "SELECT u.k, sum(w.a) FROM u JOIN w ON u.k < w.k GROUP BY u.k HAVING sum(w.a) > 0 ORDER BY sum(w.a)",
    "SELECT k, var_pop(b) AS v FROM t GROUP BY k HAVING var_pop(b) > 1 ORDER BY v, k LIMIT 3",
    "SELECT id FROM u WHERE EXISTS (SELECT 1 FROM t WHERE t.k = u.k AND t.b > u.a)",
    "SELECT id FROM u WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = u.k LIMIT 1)",
    "SELECT id FROM u WHERE k IN (SELECT k FROM t ORDER BY id LIMIT 4)",
    "SELECT id FROM u WHERE k NOT IN (SELECT k FROM t WHERE k IS NOT NULL)",
    "SELECT w.a, count(*), sum(t.b) FROM w, u, t, u AS v WHERE t.k = w.k AND t.k = v.k AND t.k = u.k GROUP BY w.a",
    "SELECT id, name, value FROM u UNPIVOT (value FOR name IN (k, a))",
]
# By Spark's meaning, where Sail says something else of the same rows, or nothing.
MEANT: list[tuple[str, list[dict[str, Any]]]] = [
    ("SELECT max(z) AS a, min(z) AS b FROM t", [{"a": math.nan, "b": -1.0}]),
    ("SELECT count(*) AS n FROM (SELECT k, max(z) AS m FROM t GROUP BY k) WHERE isnan(m)", [{"n": 5}]),
    ("SELECT count_if(isnan(x)) AS n, max(x) AS m FROM nan", [{"n": 2, "m": math.nan}]),
    ("SELECT k FROM u GROUP BY k HAVING k IN (SELECT k FROM w WHERE a = 2)", [{"k": 2}]),
    (
        "SELECT count(*) AS n FROM (SELECT (SELECT count(*) IS NULL FROM w WHERE w.k = u.k) AS m FROM u) WHERE NOT m",
        [{"n": 8}],
    ),
    ("SELECT current_user FROM (SELECT k AS current_user FROM t WHERE k = 3) LIMIT 1", [{"current_user": 3}]),
    # Forms that Sail does not read, in an order that it does.
    ("FROM t |> WHERE k = 1 |> AGGREGATE sum(b) AS s GROUP BY k", [{"k": 1, "s": 6063}]),
    ("FROM t SELECT count(*) AS n", [{"n": 720}]),
    (
        "SELECT w.a, 7 AS g, count(*) AS n FROM w JOIN t ON t.k = w.k WHERE w.a = 2 GROUP BY ALL",
        [{"a": 2, "g": 7, "n": 144}],
    ),
    ("SELECT k, b FROM t WHERE id < 4 ORDER BY ALL LIMIT 1", [{"k": 0, "b": None}]),
    ("FROM t |> ORDER BY id DESC |> SELECT explode(array(id)) AS e |> LIMIT 2", [{"e": 719}, {"e": 718}]),
    ("TABLE w |> AGGREGATE count(*) AS n", [{"n": 3}]),
    ("SELECT /*+ BROADCAST(u), REPARTITION(3), x(1) */ count(*) AS n FROM t JOIN u ON t.k = u.k", [{"n": 720}]),
    ("SELECT div(max(b), 2) AS d FROM t", [{"d": 48}]),
    ("SELECT timestampdiff(DAY, DATE '2020-01-01', DATE '2020-02-01') AS d FROM t WHERE id = 1", [{"d": 31}]),
    ("SELECT from_xml('<p><a>1</a></p>', 'a INT', map('mode', 'PERMISSIVE')) AS x", [{"x": {"a": 1}}]),
    ("SELECT timestampadd(DAY, 1, TIMESTAMP '2020-01-01 00:00:00') = '2020-01-02' AS d FROM w LIMIT 1", [{"d": True}]),
    ("SELECT k + 1, count(*) FROM t WHERE k = 1 GROUP BY k + 1", [{"(k + 1)": 2, "count(1)": 144}]),
    ("SELECT `all` FROM (SELECT max(b) AS `all` FROM t)", [{"all": 96}]),
    # An average is a sum and a count, which are said so that Sail can hold both.
    (
        "SELECT k, sum(b) AS s, avg(b + 0.5) AS a FROM t WHERE k = 1 GROUP BY k",
        [{"k": 1, "s": 6063, "a": Decimal("46.78244")}],
    ),
    ("SELECT name, count(*) AS n FROM t UNPIVOT (v FOR name IN (b)) GROUP BY name", [{"name": "b", "n": 654}]),
    # HAVING makes one group of all rows.
    ("SELECT 1 AS one FROM t HAVING 1 < 2", [{"one": 1}]),
    ("SELECT 1 AS one FROM t WHERE id = 1 HAVING 1 > 2", []),
    ("SELECT count(*) AS n FROM w WHERE EXISTS (SELECT 1 FROM t WHERE id < 0 HAVING true)", [{"n": 3}]),
    ("SELECT sum(b) AS s FROM t WHERE k < 2 GROUP BY k HAVING max(b) > 1 ORDER BY sum(b)", [{"s": 6026}, {"s": 6063}]),
    (
        "SELECT * FROM w LEFT ANTI JOIN (SELECT * FROM t WHERE id < 0) AS n ORDER BY k LIMIT 1",
        [{"id": 0, "k": 0, "a": 0}],
    ),
    ("SELECT a, k FROM w LEFT SEMI JOIN t ORDER BY k DESC LIMIT 1", [{"a": 2, "k": 2}]),
    ("SELECT concat('a', k) AS s, 'c' FROM (SELECT k, 'b' AS c FROM t) GROUP BY k, c HAVING c > 'b'", []),
]
# NaN is the greatest, however the rows are spread and whatever the rules make of the statement.
NAN = math.nan
OF_NANS: list[tuple[str, list[dict[str, Any]]]] = [
    ("SELECT min(z) AS a, max(z) AS b FROM t", [{"a": -1.0, "b": NAN}]),
    (
        "SELECT u.id, min(t.z), max(t.z) FROM t JOIN u ON t.k = u.k WHERE u.id < 2 GROUP BY u.id ORDER BY u.id",
        [{"id": 0, "min(z)": -1.0, "max(z)": NAN}, {"id": 1, "min(z)": -1.0, "max(z)": NAN}],
    ),
    (
        "SELECT k, min(z) AS a, count(DISTINCT b) > 1 AS c FROM t WHERE k < 2 GROUP BY k "
        "HAVING isnan(max(z)) ORDER BY k",
        [{"k": 0, "a": -1.0, "c": True}, {"k": 1, "a": -1.0, "c": True}],
    ),
    (
        "SELECT max(z) FILTER (WHERE id % 3 > 0) AS a, min(DISTINCT z) FILTER (WHERE id % 3 = 0) AS b, "
        "max(z) FILTER (WHERE id < 0) AS c FROM t",
        [{"a": 1.0, "b": NAN, "c": None}],
    ),
    (
        "SELECT DISTINCT k, min(z) OVER (PARTITION BY k) AS a, max(t.z) OVER (PARTITION BY k) AS b "
        "FROM t WHERE k > 2 ORDER BY k",
        [{"k": 3, "a": -1.0, "b": NAN}, {"k": 4, "a": -1.0, "b": NAN}],
    ),
    (
        "SELECT min(m) AS a, max(m) AS b FROM (SELECT z * 2 AS m, b FROM t UNION ALL SELECT x, 1 FROM nan)",
        [{"a": -2.0, "b": NAN}],
    ),
    (
        "SELECT k, count(DISTINCT b) > 1 AS c, min(z) FROM t GROUP BY k ORDER BY min(z), k DESC LIMIT 1",
        [{"k": 4, "c": True, "min(z)": -1.0}],
    ),
    (
        "SELECT count(DISTINCT b) AS n, max(DISTINCT t.z), 1 + min(z) * 2 > 0 FROM t, u WHERE t.id = u.id",
        [{"n": 7, "max(DISTINCT z)": NAN, "((1 + (min(z) * 2)) > 0)": False}],
    ),
    (
        "SELECT k, min(y) AS a, max(-y) AS b, max(y) AS c, min(y) FILTER (WHERE y IS NULL) AS d "
        "FROM (SELECT k, z * CAST('Infinity' AS DOUBLE) AS y FROM t WHERE z = 1 AND k = 2) GROUP BY k",
        [{"k": 2, "a": math.inf, "b": -math.inf, "c": math.inf, "d": None}],
    ),
    (
        "WITH c(j, y) AS (SELECT * FROM (SELECT k, z, concat('a', b) FROM t) AS s(j, y, w) "
        "|> SELECT j, y + CAST(0 AS FLOAT)) "
        "SELECT min(y) AS a, max(abs(y)) AS b, max(y * ?) AS c FROM c, (VALUES (1)) AS v(one)",
        [{"a": -1.0, "b": NAN, "c": NAN}],
    ),
    ("SELECT id, (SELECT max(z) FROM t WHERE t.k = u.k) AS m FROM u WHERE id = 1", [{"id": 1, "m": NAN}]),
    (
        "SELECT min(CAST(z AS FLOAT)) AS a, max(CAST(z AS FLOAT)) AS b FROM t JOIN w ON t.k <= w.k",
        [{"a": -1.0, "b": NAN}],
    ),
    # Columns that only the engine can name.
    ("SELECT abs(min(x)), round(max(x), 2) FROM g WHERE k < 2", [{"abs(min(x))": 1.0, "round(max(x), 2)": NAN}]),
    (
        "SELECT k, max(x) FILTER (WHERE k > 0), max(x) IS NULL AS e FROM g GROUP BY k ORDER BY k LIMIT 2",
        [{"k": 0, "max(x)": None, "e": False}, {"k": 1, "max(x)": NAN, "e": False}],
    ),
    (
        "SELECT DISTINCT k, sign(max(x) OVER (PARTITION BY k)) FROM g ORDER BY 1 DESC LIMIT 3",
        [{"k": k, "sign(max(x))": sign} for k, sign in ((4, 1.0), (3, -1.0), (2, 1.0))],
    ),
    (
        "WITH c AS (SELECT k, sqrt(max(x)) FROM g GROUP BY k) "
        "SELECT * FROM c WHERE k = 1 UNION SELECT 1, CAST('NaN' AS DOUBLE)",
        [{"k": 1, "SQRT(max(x))": NAN}],
    ),
    # Sorted by what is computed from them, or with a condition on groups.
    (
        "SELECT k, count(*) AS n FROM g GROUP BY k ORDER BY -max(x), k DESC",
        [{"k": k, "n": n} for k, n in ((2, 2), (4, 3), (3, 2), (1, 3), (0, 3))],
    ),
    (
        "SELECT k, round(max(x), 2) FROM g GROUP BY k ORDER BY max(x) DESC, min(x) LIMIT 3",
        [{"k": k, "round(max(x), 2)": most} for k, most in ((0, NAN), (1, NAN), (2, math.inf))],
    ),
    (
        "SELECT k, max(x) AS m, min(x) FROM g GROUP BY k HAVING min(x) >= 1 ORDER BY max(x) DESC, k",
        [{"k": k, "m": m, "min(x)": least} for k, m, least in ((1, NAN, 1.0), (2, math.inf, math.inf), (4, 3.0, 1.0))],
    ),
    (
        "SELECT k AS j, max(x) AS m FROM g GROUP BY k HAVING isnan(max(x)) ORDER BY abs(m) + max(x), -j",
        [{"j": 1, "m": NAN}, {"j": 0, "m": NAN}],
    ),
    (
        "SELECT j FROM (SELECT k AS j, rank() OVER (ORDER BY max(x) DESC, k) AS r FROM g GROUP BY k) WHERE r = 2",
        [{"j": 1}],
    ),
    ("SELECT k, x FROM g ORDER BY max(x) OVER (PARTITION BY k), x, k LIMIT 1", [{"k": 3, "x": -math.inf}]),
    ("SELECT k FROM g GROUP BY k ORDER BY -max(x), k LIMIT 2", [{"k": 2}, {"k": 4}]),
    (
        "SELECT k, max(x) AS m FROM g GROUP BY k ORDER BY -m, k DESC LIMIT 4",
        [{"k": k, "m": m} for k, m in ((2, math.inf), (4, 3.0), (3, -math.inf), (1, NAN))],
    ),
    # NaN that is computed has a minus: -x, the root of a negative number, infinity less infinity.
    ("SELECT k FROM g WHERE k < 3 ORDER BY -x, k LIMIT 3", [{"k": 2}, {"k": 2}, {"k": 1}]),
    ("SELECT k, sqrt(x) AS r FROM g WHERE x < 2 ORDER BY r, k LIMIT 1", [{"k": 0, "r": 1.0}]),
    ("SELECT k FROM g WHERE k > 1 ORDER BY x - x DESC, k LIMIT 2", [{"k": 2}, {"k": 2}]),
    # A column that the engine names, in the order of its group at each part.
    (
        "SELECT k, max(x) FILTER (WHERE k > 0) FROM g GROUP BY k ORDER BY k",
        [{"k": k, "max(x)": m} for k, m in ((0, None), (1, NAN), (2, math.inf), (3, -math.inf), (4, 3.0))],
    ),
    # An alias that is a column, too: in HAVING the column is meant inside of aggregates, and where it is grouped by.
    (
        "SELECT k, max(x) AS x FROM g GROUP BY k HAVING max(x) > 3 ORDER BY k",
        [{"k": k, "x": m} for k, m in ((0, NAN), (1, NAN), (2, math.inf))],
    ),
    ("SELECT k + 1 AS k, count(*) AS x FROM g GROUP BY k HAVING k > 3 AND x > 2", [{"k": 5, "x": 3}]),
    (
        "SELECT k AS x, sum(k) AS k FROM g GROUP BY k HAVING sum(k) > 3 AND x < 4 ORDER BY x",
        [{"x": 2, "k": 4}, {"x": 3, "k": 6}],
    ),
    # Of values whose type nobody tells, or which is inside another.
    (
        "SELECT max(s.x) AS a, max(g.s.x) AS b, min(a[0]) AS c, max(m['x']) AS d, max(element_at(a, 1)) AS e FROM g "
        "WHERE k < 2",
        [{"a": NAN, "b": NAN, "c": -1.0, "d": NAN, "e": NAN}],
    ),
    (
        "SELECT k, min(s.x) AS a, max(s.x) AS b FROM g WHERE k > 1 GROUP BY k ORDER BY k",
        [{"k": k, "a": a, "b": b} for k, a, b in ((2, math.inf, math.inf), (3, -math.inf, -math.inf), (4, 1.0, 3.0))],
    ),
    (
        "SELECT max(v) AS a, min(v) AS b, max(w) AS c FROM (SELECT explode(a) AS v, concat('N', 'aN') AS w FROM g)",
        [{"a": NAN, "b": -math.inf, "c": "NaN"}],
    ),
    ("SELECT max(element_at(array('NaN', 'x'), k + 1)) AS a FROM g WHERE k < 2", [{"a": "x"}]),
]
REFUSED = [
    ("SELECT max(struct(b, k)) AS m FROM t", "max of structs or arrays over several sites"),
    (
        "SELECT k, max(x) FILTER (WHERE k > 1) FROM g GROUP BY k ORDER BY -max(x)",
        "ORDER BY computes something from min or max, beside columns without a name",
    ),
    ("SELECT typeof(sum(b)) AS s FROM t", "typeof of an aggregate over several sites"),
    ("SELECT (SELECT count(*) + 1 IS NULL FROM w WHERE w.k = u.k) AS m FROM u", "takes a count of no rows for NULL"),
    ("SELECT sum(wide) AS s FROM t WHERE id < 2", r"site \w+: arithmetic overflow: column \d has .*\(fragment \d\)"),
    ("SELECT id FROM u WHERE a IN (SELECT b FROM t WHERE t.k = u.k LIMIT 3)", r"cannot run this IN .*\(fragment \d\)"),
    ("SELECT id FROM u WHERE a NOT IN (SELECT b FROM t WHERE t.k = u.k)", r"cannot run this NOT IN .*\(fragment \d\)"),
    ("SELECT (SELECT b FROM t WHERE t.k = u.k ORDER BY id LIMIT 1) AS m FROM u", r"this subquery.*\(fragment \d\)"),
    ("SELECT k FROM t GROUP BY k ORDER BY avg(b)", "an aggregate that only ORDER BY has"),
    ("SELECT k FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY id) = 1", "does not know .* at QUALIFY"),
    ("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r", "WITH RECURSIVE"),
    ("SELECT * FROM (SELECT k, b FROM t) PIVOT (sum(b) FOR k IN (1, 2)) AS p", "does not know what begins at k"),
    ("SELECT v:a FROM (SELECT parse_json('{}') AS v FROM t)", r"does not know what begins at|parse_json"),
    ("SELECT timediff(DAY, DATE '2020-01-01', DATE '2020-02-01') AS d FROM t", "attribute DAY is missing"),
    ("SELECT * FROM u UNPIVOT (v FOR n IN (k AS one, a))", "an alias in the list of UNPIVOT"),
    ("SELECT * FROM u UNPIVOT ((v, w) FOR n IN ((k, a), (a, k)))", "UNPIVOT into several columns"),
    ("SELECT k FROM t WHERE max(x) > 1", "cannot run this aggregate, window or generator: it stands where"),
    ("SELECT max(max(x)) FROM t", "cannot run this aggregate: another one is its argument"),
    ("SELECT max(x, b) AS m FROM t", r"site \w+: .*\(fragment \d\)"),
    ("SELECT rank() AS r FROM t", "does not know the function rank"),
    ("SELECT sum(k, b) AS s FROM t", r"site \w+: Function 'sum' expects 1 arguments but received 2 \(fragment \d\)"),
    ("SELECT a FROM u UNION ALL SELECT x FROM t WHERE id = 1", r"site \w+: Sail announced column 1 as int32"),
    ("SELECT b / 0 AS q FROM t", r"site \w+: divide by zero \(fragment \d\)"),
    ("SELECT CAST(concat('x', b) AS INT) AS q FROM t", r"site \w+: Cast error: .*\(fragment \d\)"),
    ("SELECT array(b)[7] AS q FROM t", r"INVALID_ARRAY_INDEX.*\(fragment \d\)"),
    ("SELECT make_date(2020, 13, k + 1) AS q FROM t", r"site \w+: Month value '13' is out of range \(fragment \d\)"),
]
# Sail's own refusals among them: it does not run these when it has all rows either.
SAILS_OWN = ("cannot run this", "this subquery", "ORDER BY has", "does not know", "is missing", "WITH RECURSIVE")
# On Apache Spark, as one session of it.
ON_SPARK = [
    *(sql for sql in SAME if sql.startswith("WITH g")),
    "SELECT k, stddev(x) FROM t GROUP BY k ORDER BY stddev(x) DESC, k LIMIT 2",
    "SELECT k FROM t GROUP BY k ORDER BY var_pop(b), k LIMIT 3",
    "SELECT id FROM u WHERE a IN (SELECT b FROM t WHERE t.k = u.k LIMIT 1000)",
    "SELECT id FROM u WHERE a NOT IN (SELECT b FROM t WHERE t.k = u.k)",
    "SELECT id, (SELECT count(*) IS NULL FROM w WHERE w.k = u.k) AS m FROM u",
    "SELECT max(struct(b, k)) AS m FROM t",
    "SELECT 1 AS one FROM t HAVING 1 < 2",
    "SELECT 1 AS one FROM t WHERE id < 0 HAVING true ORDER BY one",
    # Two maps that differ in the order of their entries are two to DISTINCT, and one to GROUP BY.
    "SELECT count(DISTINCT m) AS n FROM t",
    "SELECT id FROM u WHERE EXISTS (SELECT 1 FROM kept WHERE kept.k = u.k AND b > 50)",
    "SELECT id FROM u WHERE NOT EXISTS (SELECT * FROM kept WHERE kept.k = u.k AND kept.b > u.a)",
]
# t may leave its sites as groups alone.
TESTED = [
    "SELECT id FROM u WHERE EXISTS (SELECT 1 FROM kept WHERE kept.k = u.k AND b > 50)",
    "SELECT id FROM u WHERE NOT EXISTS (SELECT * FROM kept WHERE kept.k = u.k AND kept.b > u.a)",
    "SELECT id FROM u WHERE EXISTS (SELECT 1 FROM kept WHERE b > 1000)",
    "SELECT id FROM u WHERE NOT EXISTS (SELECT 1 FROM kept WHERE b > 1000)",
    "SELECT id FROM u WHERE a IN (SELECT b FROM kept)",
    "SELECT id FROM u WHERE a NOT IN (SELECT b FROM kept WHERE b IS NOT NULL)",
    "SELECT u.id FROM u LEFT SEMI JOIN kept ON kept.k = u.k AND kept.b = u.a",
    "SELECT u.id FROM u LEFT ANTI JOIN kept ON kept.k = u.k AND kept.b = u.a",
    "SELECT EXISTS (SELECT 1 FROM kept WHERE b = 7) AS e",
]


def rows(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "k": pa.array([i % 5 for i in ids], pa.int32()),
            "b": pa.array([None if i % 11 == 0 else i % 97 for i in ids], pa.int32()),
            "c": pa.array([i * 1000 for i in ids], pa.int64()),
            "x": pa.array([(i * i % 13) / 4 for i in ids], pa.float64()),
            "z": pa.array([(math.nan, 1.0, -1.0)[i % 3] for i in ids], pa.float64()),
            "d": pa.array([Decimal("2.00") if i % 2 else None for i in ids], pa.decimal128(10, 2)),
            "wide": pa.array([WIDE] * count, pa.decimal128(38, 0)),
        }
    )


def turned_maps(count: int) -> pa.Array:
    """Two maps that are equal, with their entries in two orders."""
    entries = [("a", 1), ("b", 2)]
    return pa.array([entries if i % 2 else entries[::-1] for i in range(count)], pa.map_(pa.string(), pa.int32()))


def reals(found: Sequence[tuple[int, float | None]]) -> pa.Table:
    """As columns, in a struct, an array and a map."""
    values = [x for _, x in found]
    return pa.table(
        {
            "k": pa.array([k for k, _ in found], pa.int32()),
            "x": pa.array(values, pa.float64()),
            "s": pa.array([{"x": x} for x in values], pa.struct([("x", pa.float64())])),
            "a": pa.array([[x] for x in values], pa.list_(pa.float64())),
            "m": pa.array([[("x", x)] for x in values], pa.map_(pa.string(), pa.float64())),
        }
    )


def whole(count: int) -> pa.Table:
    numbers = list(range(count))
    return pa.table({"id": numbers, "k": pa.array(numbers, pa.int32()), "a": pa.array(numbers, pa.int32())})


@pytest.fixture(scope="module")
def cluster(sail_engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(str(with_parts(tmp_path_factory.mktemp("parts"), sail=True)), engine=sail_engine) as cluster:
        yield cluster


def with_parts(root: Path, *, sail: bool) -> Path:
    members: dict[str, Any] = {
        site: {
            "address": f"127.0.0.1:{7101 + at}",
            "spark": {"sail": True} if sail else {"master": "local[2]"},
            "tables": {},
        }
        for at, site in enumerate(SITES)
    }

    def place(table: str, site: str, found: pa.Table, **rules: str) -> None:
        path = root / site / table
        path.mkdir(parents=True)
        pq.write_table(found, path / "a.parquet", row_group_size=64)
        members[site]["tables"][table] = {"format": "parquet", "path": f"{site}/{table}"} | rules

    for at, site in enumerate(SITES):
        place("t", site, rows(at * ROWS, ROWS).append_column("m", turned_maps(ROWS)))
        place("kept", site, rows(at * ROWS, ROWS), leaves="aggregated")
    for site in SITES[:2]:
        place("nan", site, pa.table({"x": [1.0, math.nan]}))
    place("g", "oslo", reals([(0, NAN), (0, 1.0), (1, 2.0), (2, math.inf), (3, -math.inf), (4, 1.0)]))
    place("g", "bergen", reals([(4, None), (4, 3.0), (3, -math.inf), (2, math.inf), (1, 1.0), (1, NAN), (0, -1.0)]))
    place("u", "oslo", whole(8))
    place("w", "bergen", whole(3))
    config: dict[str, Any] = {"cluster": "parts", "data_root": str(root), "members": members}
    config["links"] = [{"between": list(pair), "mbit": 1} for pair in ((SITES[0], SITES[1]), SITES[1:], SITES[::2])]
    path = Path(root / "skerry.yaml")
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def plain(sail_engine: Any, cluster: LocalCluster) -> Any:
    """Sail alone, with every table whole."""
    return with_wholes(sail_engine.session, cluster)


def with_wholes(session: Any, cluster: LocalCluster) -> Any:
    for table in ("t", "kept", "u", "w"):
        files = [str(each) for each in sorted(Path(cluster.config.data_root).glob(f"*/{table}/a.parquet"))]
        session.read.parquet(*files).createOrReplaceTempView(table)
    return session


@pytest.fixture(scope="module")
def connection(cluster: LocalCluster) -> Connection:
    return cluster.connect("oslo")


@pytest.mark.sail
def test_what_plain_sail_answers_is_answered_over_parts(connection: Connection, plain: Any) -> None:
    check_same((*SAME, *TESTED), connection, plain)


def check_same(statements: Sequence[str], connection: Connection, plain: Any) -> None:
    for sql in statements:
        with connection.cursor() as cursor:
            found = cursor.execute(sql).fetch_arrow_table()
        try:
            same_table(found, plain.sql(sql).toArrow(), ordered=False)
        except AssertionError as error:
            raise AssertionError(sql) from error


@pytest.mark.spark
def test_what_plain_spark_answers_is_answered_over_parts(spark_engine: Any, tmp_path: Path) -> None:
    with LocalCluster(str(with_parts(tmp_path, sail=False)), engine=spark_engine) as cluster:
        plain = with_wholes(spark_engine.session.newSession(), cluster)
        with cluster.connect("oslo") as connection:
            check_same(ON_SPARK, connection, plain)
            with pytest.raises(skerry.Error, match="cannot be represented as Decimal"):
                connection.cursor().execute("SELECT sum(wide) AS s FROM t WHERE id < 2").fetch_arrow_table()
            # Spark itself forgets the order here.
            sql = "SELECT id, (SELECT b FROM t WHERE t.k = u.k ORDER BY t.id DESC LIMIT 1) AS m FROM u"
            firsts = {k: max(n for n in range(3 * ROWS) if n % 5 == k) for k in range(5)}
            meant = [(k, rows(firsts[k], 1)["b"][0].as_py() if k in firsts else None) for k in range(8)]
            assert sorted(connection.cursor().execute(sql).fetchall()) == meant


@pytest.mark.sail
def test_where_sail_is_wrong_the_answer_is_spark_s(connection: Connection) -> None:
    for sql, meant in MEANT:
        with connection.cursor() as cursor:
            found = cursor.execute(sql).fetch_arrow_table()
        assert repr(found.to_pylist()) == repr(meant), sql


@pytest.mark.sail
def test_what_sail_does_not_run_over_parts_it_does_not_run_at_all(plain: Any) -> None:
    alone = [sql for sql, said in REFUSED if any(each in said for each in SAILS_OWN)]
    assert len(alone) >= 10
    for sql in alone:
        with pytest.raises(PySparkException):
            plain.sql(sql).toArrow()


@pytest.mark.sail
@pytest.mark.parametrize("rules", ["", "none"])
def test_nan_is_the_greatest_whichever_rows_come_first(connection: Connection, rules: str) -> None:
    wrong = []
    for sql, meant in OF_NANS:
        with connection.cursor() as cursor:
            values = [2.0] * sql.count("?")
            try:
                found = cursor.execute(sql, values, planning={"rules": rules} if rules else {}).fetch_arrow_table()
            except skerry.Error as error:
                wrong.append((sql, str(error)))
                continue
        if repr(found.to_pylist()) != repr(meant):
            wrong.append((sql, repr(found.to_pylist())))
    assert not wrong, "\n".join(f"{sql}: {found}" for sql, found in wrong)


@pytest.mark.sail
def test_averages_of_decimals_are_rounded_whoever_merges_them(connection: Connection) -> None:
    given = [(i % 5, Decimal(i % 97)) for i in range(3 * ROWS) if i % 11]
    of = {k: [b for key, b in given if key == k] for k in range(5)}
    meant = [(k, (sum(of[k]) / len(of[k])).quantize(Decimal("0.000001"), ROUND_HALF_UP)) for k in range(5)]
    average = "avg(CAST(b AS DECIMAL(10, 2)))"
    for sql in (
        f"SELECT k, {average} AS a FROM t GROUP BY k ORDER BY k",
        f"SELECT t.k, {average} AS a FROM t JOIN u ON t.k = u.k GROUP BY t.k ORDER BY t.k",
        f"SELECT k, a FROM (SELECT k, {average} AS a, array_sort(collect_set(b)) AS c FROM t GROUP BY k) ORDER BY k",
    ):
        with connection.cursor() as cursor:
            assert cursor.execute(sql).fetchall() == meant, sql


@pytest.mark.sail
def test_no_wrong_row_comes_in_silence_and_failures_say_where_and_why(connection: Connection) -> None:
    for sql, said in REFUSED:
        with connection.cursor() as cursor, pytest.raises(skerry.Error, match=said) as caught:
            cursor.execute(sql).fetch_arrow_table()
        assert "\n" not in str(caught.value), sql
