"""Where right answers come from: TPC-H's own, kept by DuckDB's extension, and one plain Spark session."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from skerry.testing.checkers import near

TPCH_TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")

# The answers were made with doubles where Spark keeps decimals: allow one unit in a decimal's last place.
DECIMAL_UNITS = 1


def tpch_queries() -> dict[int, str]:
    """The 22 queries by number, as DuckDB words them."""
    with _tpch() as connection:
        found = connection.execute("SELECT query_nr, query FROM tpch_queries() ORDER BY query_nr").fetchall()
    return {number: text.strip().rstrip(";") for number, text in found}


@functools.cache
def tpch_answers(scale: float) -> dict[int, pa.Table]:
    """The known answers by query number: tables of text, in which an empty value is NULL."""
    with _tpch() as connection:
        found = connection.execute(
            "SELECT query_nr, answer FROM tpch_answers() WHERE scale_factor = ? ORDER BY query_nr", [scale]
        ).fetchall()
    if not found:
        raise ValueError(f"no TPC-H answers are known at scale {scale}")
    return {number: _parsed(text) for number, text in found}


def same_answer(actual: pa.Table, answer: pa.Table) -> None:
    """Raises AssertionError unless `actual` holds the known answer's values, in its order.

    Columns go by position: the answers name some of them otherwise than Spark does.
    """
    shape, known = (actual.num_rows, actual.num_columns), (answer.num_rows, answer.num_columns)
    if shape != known:
        raise AssertionError(f"{shape} rows and columns, the known answer has {known}")
    for field, column, texts in zip(actual.schema, actual.columns, answer.columns, strict=True):
        for index, (value, text) in enumerate(zip(column.to_pylist(), texts.to_pylist(), strict=True)):
            if not _agrees(value, text):
                raise AssertionError(f"row {index}, {field.name} ({field.type}): {value!r}, known answer {text!r}")


def make_tpch(directory: Path, scale: float) -> dict[str, Path]:
    """Writes the eight tables, a folder and a Parquet file each; returns the folders by table.

    The known answers hold for DuckDB's generator: tpchgen-cli's addresses and comments are others,
    which changes queries 2, 10, 13, 15 and 20.
    """
    with _tpch() as connection:
        connection.execute("CALL dbgen(sf = ?)", [scale])
        folders = {}
        for table in TPCH_TABLES:
            folders[table] = directory / table
            folders[table].mkdir(parents=True, exist_ok=True)
            connection.table(table).write_parquet(str(folders[table] / "part-0.parquet"))
    return folders


class Digest(NamedTuple):
    """What rows are, whatever their order and however they are cut into batches."""

    rows: int
    checksum: int


def digest_of_files(folder: Path) -> Digest:
    """DuckDB reads the Parquet files: nothing of Skerry or Spark has a part in it."""
    with _quiet() as connection:
        return _digest(connection.read_parquet(str(folder / "*.parquet")))


def digest_of_rows(reader: pa.RecordBatchReader) -> Digest:
    """Rows are read as they come; none of them is kept."""
    with _quiet() as connection:
        return _digest(connection.from_arrow(reader))


def _quiet() -> duckdb.DuckDBPyConnection:
    """It would draw a progress bar over whatever the terminal shows."""
    return duckdb.connect().execute("SET enable_progress_bar = false")


def _digest(relation: duckdb.DuckDBPyRelation) -> Digest:
    columns = ", ".join(f'"{name}"' for name in relation.columns)
    found = relation.aggregate(f"count(*), sum(hash({columns}))").fetchone()
    assert found is not None
    return Digest(int(found[0]), int(found[1] or 0))


class SparkOracle:
    """One plain Spark session that holds every table whole: what it answers is right by definition.

    It is a session of its own inside the same Spark, so that none of its views is seen by what it judges.
    """

    def __init__(self, session: Any) -> None:
        self.session = session.newSession()
        self._answers: dict[str, pa.Table] = {}
        for name, value in {
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.ansi.enabled": "true",
            # A literal like '${…}' is text, as it is for Skerry.
            "spark.sql.variable.substitute": "false",
            # Few rows and many queries: stages of one task, nothing to adapt, and no code that is compiled to run once.
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        }.items():
            self.session.conf.set(name, value)

    def add_table(
        self,
        name: str,
        paths: Sequence[str],
        format: str = "parquet",
        schema: str = "",
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Makes a table of these files; `schema` is DDL text, needed where the format has none."""
        reader = self.session.read.format(format).options(**(options or {}))
        if schema:
            reader = reader.schema(schema)
        reader.load(list(paths)).createOrReplaceTempView(name)
        self._answers.clear()

    def run(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None) -> pa.Table:
        """Spark's own answer to the text."""
        arguments = parameters if isinstance(parameters, Mapping) else list(parameters or ())
        table: pa.Table = self.session.sql(sql, args=arguments or None).toArrow()
        return table

    def answer(self, sql: str) -> pa.Table:
        """The same, asked once: for tests that compare one text in several ways, over files that do not change."""
        if sql not in self._answers:
            self._answers[sql] = self.run(sql)
        return self._answers[sql]


def _tpch() -> duckdb.DuckDBPyConnection:
    """DuckDB with the extension that came as a Python package: nothing is fetched from a network."""
    connection = duckdb.connect()
    folder = files("duckdb_extension_tpch") / "extensions" / f"v{duckdb.__version__}"
    connection.load_extension(str(folder / "tpch.duckdb_extension"))
    return connection


def _parsed(text: str) -> pa.Table:
    # One newline ends the last row: an answer of one NULL is an empty line.
    header, *lines = text.removesuffix("\n").split("\n")
    names = header.split("|")
    values = [line.split("|") for line in lines]
    columns = [pa.array([row[index] or None for row in values], pa.string()) for index in range(len(names))]
    return pa.table(columns, names=names)


def _agrees(value: Any, text: str | None) -> bool:
    if value is None or text is None:
        return value is None and text is None
    if isinstance(value, Decimal):
        scale = -int(value.as_tuple().exponent)
        unit = Decimal(1).scaleb(-scale)
        wanted = Decimal(text).quantize(unit, rounding=ROUND_HALF_UP)
        return abs(value - wanted) <= DECIMAL_UNITS * unit or near(float(value), float(text))
    if isinstance(value, float):
        return near(value, float(text))
    return str(value) == text
