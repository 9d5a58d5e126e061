"""A star schema made of TPC-H's data, as SSB makes one: one fact, four dimensions, and 13 queries of SSB's kind.

The fact has a part at each of three sites, each dimension at two. Conditions are wide enough that every query finds
rows at scale 0.01 too: a nation has four cities, where SSB's have ten.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from bench.frame import CACHE, tpch_files
from skerry.testing.topologies import Files, Shape

STAR_SCALE = 0.01  # what a job and an edge cost shows where rows are few
FACT = "lineorder"
STAR = Shape(
    "star-schema",
    {
        FACT: ("oslo", "bergen", "tromso"),
        "dates": ("oslo", "bergen"),
        "customer": ("oslo", "bergen"),
        "supplier": ("bergen", "tromso"),
        "part": ("tromso", "oslo"),
    },
)

_CITY = "rpad(n_name, 9, ' ') || ({key} % 4)::VARCHAR"
_DAY = "strftime({day}, '%Y%m%d')::INTEGER"
_TABLES = {
    FACT: f"""
        SELECT l_orderkey AS lo_orderkey, l_linenumber::INTEGER AS lo_linenumber, o_custkey AS lo_custkey,
               l_partkey AS lo_partkey, l_suppkey AS lo_suppkey, {_DAY.format(day="o_orderdate")} AS lo_orderdate,
               o_orderpriority AS lo_orderpriority, l_quantity::INTEGER AS lo_quantity,
               (l_extendedprice * 100)::BIGINT AS lo_extendedprice, (l_discount * 100)::INTEGER AS lo_discount,
               (l_extendedprice * (1 - l_discount) * 100)::BIGINT AS lo_revenue,
               (ps_supplycost * 100)::BIGINT AS lo_supplycost
        FROM lineitem JOIN orders ON o_orderkey = l_orderkey
        JOIN partsupp ON ps_partkey = l_partkey AND ps_suppkey = l_suppkey ORDER BY l_orderkey, l_linenumber""",
    "dates": f"""
        SELECT {_DAY.format(day="day")} AS d_datekey, year(day)::INTEGER AS d_year,
               strftime(day, '%Y%m')::INTEGER AS d_yearmonthnum, strftime(day, '%b%Y') AS d_yearmonth,
               week(day)::INTEGER AS d_weeknuminyear
        FROM (SELECT unnest(generate_series(DATE '1992-01-01', DATE '1998-12-31', INTERVAL 1 DAY))::DATE AS day)
        ORDER BY 1""",
    "customer": f"""
        SELECT c_custkey, c_name, {_CITY.format(key="c_custkey")} AS c_city, n_name AS c_nation, r_name AS c_region,
               c_mktsegment
        FROM customer JOIN nation ON n_nationkey = c_nationkey JOIN region ON r_regionkey = n_regionkey
        ORDER BY c_custkey""",
    "supplier": f"""
        SELECT s_suppkey, s_name, {_CITY.format(key="s_suppkey")} AS s_city, n_name AS s_nation, r_name AS s_region
        FROM supplier JOIN nation ON n_nationkey = s_nationkey JOIN region ON r_regionkey = n_regionkey
        ORDER BY s_suppkey""",
    "part": """
        SELECT p_partkey, p_name, 'MFGR#' || right(p_mfgr, 1) AS p_mfgr, 'MFGR#' || right(p_brand, 2) AS p_category,
               'MFGR#' || right(p_brand, 2) || lpad((p_partkey % 10)::VARCHAR, 2, '0') AS p_brand, p_size
        FROM part ORDER BY p_partkey""",
}

_FLIGHT_1 = """
SELECT sum(lo_extendedprice * lo_discount) AS revenue FROM lineorder, dates
WHERE lo_orderdate = d_datekey AND {}"""
_FLIGHT_2 = """
SELECT sum(lo_revenue) AS revenue, d_year, p_brand FROM lineorder, dates, part, supplier
WHERE lo_orderdate = d_datekey AND lo_partkey = p_partkey AND lo_suppkey = s_suppkey AND {}
GROUP BY d_year, p_brand ORDER BY d_year, p_brand"""
_FLIGHT_3 = """
SELECT {0}, d_year, sum(lo_revenue) AS revenue FROM customer, lineorder, supplier, dates
WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey AND {1}
GROUP BY {0}, d_year ORDER BY d_year ASC, revenue DESC, {0}"""
_FLIGHT_4 = """
SELECT {0}, sum(lo_revenue - lo_supplycost) AS profit FROM dates, customer, supplier, part, lineorder
WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey AND lo_orderdate = d_datekey AND {1}
GROUP BY {0} ORDER BY {0}"""
_CITIES = "c_city IN ('CHINA    1', 'CHINA    2') AND s_city IN ('CHINA    1', 'CHINA    2', 'CHINA    3')"

QUERIES = {
    "1.1": _FLIGHT_1.format("d_year = 1993 AND lo_discount BETWEEN 1 AND 3 AND lo_quantity < 25"),
    "1.2": _FLIGHT_1.format(
        "d_yearmonthnum = 199401 AND lo_discount BETWEEN 4 AND 6 AND lo_quantity BETWEEN 26 AND 35"
    ),
    "1.3": _FLIGHT_1.format(
        "d_weeknuminyear = 6 AND d_year = 1994 AND lo_discount BETWEEN 5 AND 7 AND lo_quantity BETWEEN 26 AND 35"
    ),
    "2.1": _FLIGHT_2.format("p_category = 'MFGR#12' AND s_region = 'AMERICA'"),
    "2.2": _FLIGHT_2.format("p_brand BETWEEN 'MFGR#2201' AND 'MFGR#2208' AND s_region = 'ASIA'"),
    "2.3": _FLIGHT_2.format("p_brand = 'MFGR#2209' AND s_region = 'EUROPE'"),
    "3.1": _FLIGHT_3.format(
        "c_nation, s_nation", "c_region = 'ASIA' AND s_region = 'ASIA' AND d_year BETWEEN 1992 AND 1997"
    ),
    "3.2": _FLIGHT_3.format(
        "c_city, s_city", "c_nation = 'UNITED STATES' AND s_nation = 'UNITED STATES' AND d_year BETWEEN 1992 AND 1997"
    ),
    "3.3": _FLIGHT_3.format("c_city, s_city", f"{_CITIES} AND d_year BETWEEN 1992 AND 1997"),
    "3.4": _FLIGHT_3.format("c_city, s_city", f"{_CITIES} AND d_yearmonth IN ('Nov1997', 'Dec1997', 'Jan1998')"),
    "4.1": _FLIGHT_4.format(
        "d_year, c_nation", "c_region = 'AMERICA' AND s_region = 'AMERICA' AND p_mfgr IN ('MFGR#1', 'MFGR#2')"
    ),
    "4.2": _FLIGHT_4.format(
        "d_year, s_nation, p_category",
        "c_region = 'AMERICA' AND s_region = 'AMERICA' AND d_year IN (1997, 1998) AND p_mfgr IN ('MFGR#1', 'MFGR#2')",
    ),
    "4.3": _FLIGHT_4.format(
        "d_year, s_city, p_brand",
        "c_region = 'AMERICA' AND s_nation = 'UNITED STATES' AND d_year IN (1997, 1998) AND p_category = 'MFGR#14'",
    ),
}


def star_files(scale: float) -> Files:
    """Each table in as many slices as sites hold it, made of TPC-H's files on first use."""
    root = CACHE / f"star-{scale:g}"
    if not root.exists():
        folders = tpch_files(scale)
        # Made beside and renamed at the end: an interrupted run leaves no half of the data.
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch, duckdb.connect() as connection:
            for table, folder in folders.items():
                connection.read_parquet(str(folder / "*.parquet")).create_view(table)
            made = {table: connection.sql(text).arrow().read_all() for table, text in _TABLES.items()}
            for table, rows in made.items():
                _write_slices(rows, Path(scratch) / "whole" / table, len(STAR.places[table]))
            shutil.move(Path(scratch) / "whole", root)
    slices = {
        table: tuple(str(root / table / str(index)) for index in range(len(at))) for table, at in STAR.places.items()
    }
    return Files(root, slices)


def _write_slices(rows: pa.Table, folder: Path, count: int) -> None:
    """Each slice has rows from all over, so that no condition rules one out."""
    for index in range(count):
        path = folder / str(index) / "part-0.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(rows.take(pa.array(range(index, rows.num_rows, count))), path)
