"""Tables of databases, read by Spark's JDBC source: its connections, what a table is now, and a relation of it.

Spark's older way of JDBC (`format("jdbc")`) hands on columns and plain conditions. The newer one, of catalogs, hands on
casts, arithmetic and ORDER BY as well, which a database understands otherwise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import xxhash
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from skerry.catalog.listing import VERSION_MASK
from skerry.catalog.postgres import (
    Kept,
    ReadColumn,
    Reading,
    bounds_query,
    facts_of,
    question,
    reading,
    statistics,
)
from skerry.config.secrets import read_secret
from skerry.model.config import TableConfig
from skerry.model.errors import ConfigError, SiteError, SkerryError, StaleSchema
from skerry.model.limits import JDBC_CONNECT_S, JDBC_FETCH_ROWS, JDBC_SILENCE_S
from skerry.model.sources import Database, JdbcTable, Pinned, Told
from skerry.model.table import Column
from skerry.spark.engine import TableFiles
from skerry.spark.types import columns_of, struct_of

POSTGRESQL = "postgresql"
FORMAT = "jdbc"
_DRIVERS = {POSTGRESQL: "org.postgresql.Driver"}
_PACKAGE = "org.postgresql:postgresql:42.7.7"
_NO_DRIVER = re.compile(r"ClassNotFound|No suitable driver|org\.postgresql\.Driver")
# PostgreSQL's words, and its driver's, for what is wrong with a database and not with the statement.
_SAID = re.compile(
    r"FAILED_JDBC|\b(ERROR|FATAL|PANIC): |Connection (to \S+ )?refused|connection attempt failed|I/O error"
    r"|connection has been closed"
)
# Spark says no more than this of a connection that cannot be made.
_NO_WAY = "FAILED_JDBC.CONNECTION"
_CHECK = "no connection: check that it runs, and its jdbc, user and password in databases"
_GONE = re.compile(r"(column|relation|schema) .* does not exist")
_RANGES = ("smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz")
_KEPT = {
    "string": Kept.JOINED,
    "binary": Kept.JOINED,
    "float": Kept.FLOAT,
    "double": Kept.DOUBLE,
}


def look_at_database(session: SparkSession, table: TableConfig, source: JdbcTable) -> Told:
    """What the database says of the table now. Raises what Spark raises, or SiteError."""
    if source.database.kind != POSTGRESQL:
        columns = columns_of(_load(session, source.database, ".".join(source.name)).schema)
        _refuse_declared(table)
        return Told(_version(columns), Pinned(source, FORMAT), columns=columns)
    facts = facts_of(_rows(session, source.database, question(source.name)))
    if not facts:
        raise SiteError(
            f"database {source.database.name} has no table {'.'.join(source.name)} that "
            f"{source.database.user or 'its user'} can see (check {table.key}.table)"
        )
    found = reading(source.name, facts, table.columns)
    columns = tuple(Column(each.name, each.type) for each in found.columns)
    _check_range(table, source, columns)
    rows = facts[0].rows
    counted = round(rows) if rows is not None and rows > 0 else None
    # A new relation, with new ranges of its parts, when there are twice as many rows.
    version = _version(columns, found.text, round(math.log2(counted)) if counted else 0)
    pinned = Pinned(source, FORMAT, place=found.text)
    size_bytes = facts[0].bytes or None  # none: a view, or a table of partitions
    return Told(version, pinned, size_bytes, columns, counted, statistics(facts, found, counted or 0))


def read_database(session: SparkSession, table: TableFiles, source: JdbcTable) -> DataFrame:
    """The table as it is whenever the relation is read."""
    assert table.pinned is not None
    if source.database.kind != POSTGRESQL:
        frame = _load(session, source.database, ".".join(source.name), pushDownPredicate="false")
        kept = [ReadColumn(each.name, each.type, _KEPT.get(each.type, Kept.FREE)) for each in columns_of(frame.schema)]
        return frame.select(*_columns(frame, kept))
    facts = facts_of(_rows(session, source.database, question(source.name)))
    found = reading(source.name, facts, table.columns)
    if tuple(Column(each.name, each.type) for each in found.columns) != table.columns:
        raise SiteError(f"table {table.table}: its columns have changed in database {source.database.name}")
    frame = _load(session, source.database, f"({found.text}) t", **_range(session, source, found))
    return frame.select(*_columns(frame, found.columns))


def database_fault(told: SkerryError, table: TableConfig) -> SkerryError:
    """The error of a look at a table, in which its database is named and what to do."""
    assert isinstance(table.source, JdbcTable)
    database = table.source.database
    where = f"site {table.member}: table {table.name}: "
    said = told.message.removeprefix(where)
    if _NO_DRIVER.search(said):
        package = _PACKAGE if database.kind == POSTGRESQL else "it"
        said = f"its driver is not on this Spark: add {package} to spark.packages"
    elif _NO_WAY in said:
        said = _CHECK
    elif "password authentication" in said:
        said = f"it refuses the password of {database.user} (check databases.{database.name}.password)"
    return SiteError(f"{where}database {database.name}: {said}", member=table.member)


def job_fault(told: SkerryError, tables: Iterable[TableFiles]) -> SkerryError:
    """The error of a job. If a database made it, its tables are named; StaleSchema if they are others by now."""
    read = {each.table: each.pinned.source for each in tables if each.pinned is not None}
    named = [f"{name} (database {it.database.name})" for name, it in read.items() if isinstance(it, JdbcTable)]
    if not named or not isinstance(told, SiteError) or not _SAID.search(told.message):
        return told
    reason = _CHECK if _NO_WAY in told.message else told.message.partition(": ")[2]
    said = f"{'table' if len(named) == 1 else 'tables'} {', '.join(sorted(named))}: {reason}"
    return StaleSchema(said) if _GONE.search(told.message) else SiteError(said)


def _columns(frame: DataFrame, columns: Sequence[ReadColumn]) -> list[SparkColumn]:
    kinds = [field.dataType for field in struct_of([Column(each.name, each.type) for each in columns]).fields]
    return [
        _kept(frame[_quoted(each.name)], each, kind).alias(each.name) for each, kind in zip(columns, kinds, strict=True)
    ]


def _kept(column: SparkColumn, read: ReadColumn, kind: Any) -> SparkColumn:
    """The same value, in a form that Spark hands on no condition on."""
    match read.kept:
        case Kept.FREE:
            return column
        case Kept.FLOAT:
            return column.cast("float")
        case Kept.DOUBLE:
            return F.nanvl(column, F.lit(float("nan")))
        case Kept.JOINED:
            return F.concat(column, F.lit("").cast(kind) if not read.type.startswith("array") else F.array().cast(kind))


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _range(session: SparkSession, source: JdbcTable, found: Reading) -> dict[str, str]:
    """How the table is read in parts; no option for a table that has no values there."""
    if not source.column or source.parts == 1:
        return {}
    rows = _rows(session, source.database, bounds_query(found, source.column))
    low, high = rows[0]["low"], rows[0]["high"]
    if low is None or high is None:
        return {}
    return {
        "partitionColumn": source.column,
        "lowerBound": low,
        "upperBound": high,
        "numPartitions": str(source.parts),
    }


def _check_range(table: TableConfig, source: JdbcTable, columns: Sequence[Column]) -> None:
    if not source.column:
        return
    types = {column.name: column.type for column in columns}
    if types.get(source.column) not in _RANGES:
        what = f"is {types[source.column]}" if source.column in types else "is no column"
        raise SiteError(
            f"{source.column} {what}, and a table is read in parts by a whole number, a date or a time "
            f"(check {table.key}.partition.column)"
        )


def _refuse_declared(table: TableConfig) -> None:
    if table.columns:
        raise SiteError(f"only a table of PostgreSQL has columns of the configuration (check {table.key}.columns)")


def _rows(session: SparkSession, database: Database, query: str) -> list[dict[str, Any]]:
    return [row.asDict() for row in _load(session, database, f"({query}) q").collect()]


def _load(session: SparkSession, database: Database, table: str, **options: str) -> DataFrame:
    """`table`: a name, or a query in parentheses. Every connection has bounds: nothing waits for ever."""
    reader = session.read.format(FORMAT).options(**_connection(database), **options)
    return reader.option("dbtable", table).load()


def _connection(database: Database) -> dict[str, str]:
    found = {
        "url": database.url,
        "fetchsize": str(JDBC_FETCH_ROWS),
        "preferTimestampNTZ": "true",
    }
    if driver := database.driver or _DRIVERS.get(database.kind, ""):
        found["driver"] = driver
    if database.user:
        found["user"] = database.user
    if database.password is not None:
        try:
            found["password"] = read_secret(database.password, "its password")
        except ConfigError as error:
            raise SiteError(f"database {database.name}: {error.message} (check databases.{database.name})") from None
    if database.kind == POSTGRESQL:
        found |= {
            "connectTimeout": str(JDBC_CONNECT_S),
            "loginTimeout": str(JDBC_CONNECT_S),
            "socketTimeout": str(JDBC_SILENCE_S),
            "tcpKeepAlive": "true",
            "ApplicationName": "skerry",
            # Spark writes times of the session's zone, which is UTC at every site.
            "sessionInitStatement": "SET TIME ZONE 'UTC'",
        }
    return found


def _version(columns: Sequence[Column], *more: object) -> int:
    return xxhash.xxh3_64_intdigest(repr((tuple(columns), more)).encode()) & VERSION_MASK
