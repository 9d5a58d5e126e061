"""How a table of PostgreSQL is read so that its values mean to Spark what they mean there. Pure: questions and texts.

Spark hands conditions to the database as text, which the database understands in its own way. So each column is read in
a form whose comparisons are Spark's (strings by their bytes), and one that has none is kept from conditions.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any

import msgspec
from sqlglot import exp, parse_one

from skerry.catalog.statistics import bound
from skerry.model.errors import SiteError
from skerry.model.table import Column, ColumnStats, PartStats

DIALECT = "postgres"
DATABASE = "database"  # PartStats.source of what the database's own statistics say
# Collations by which PostgreSQL compares bytes, as Spark does, if the database is in UTF-8.
_BYTES = ("C", "POSIX", "ucs_basic", "pg_c_utf8", "C.UTF-8", "C.utf8")
_DIGITS_MAX = 38
# NUMERIC without digits, as Spark's own JDBC source takes it.
_BARE = (38, 18)

# One row a column. Two levels of domains are looked through; what is deeper is read as text.
_QUESTION = """
SELECT a.attname::text AS name,
  COALESCE(b2.typname, b1.typname, t.typname)::text AS type,
  COALESCE(b2.typtype, b1.typtype, t.typtype)::text AS kind,
  CASE WHEN t.typtype = 'd' AND b1.typtype = 'd' THEN b1.typtypmod WHEN t.typtype = 'd' THEN t.typtypmod
    ELSE a.atttypmod END AS modifier,
  a.attndims::int AS dims,
  CASE WHEN l.collname = 'default'
    THEN COALESCE(to_jsonb(d)->>'datlocprovider', 'c') <> 'i' AND d.datcollate IN ({bytes})
    ELSE COALESCE(l.collname IN ({bytes}) AND l.collnamespace = 'pg_catalog'::regnamespace, true) END AS by_bytes,
  getdatabaseencoding()::text = 'UTF8' AS utf8,
  c.reltuples::float8 AS rows,
  pg_table_size(c.oid)::bigint AS bytes,
  s.null_frac::float8 AS nulls, s.n_distinct::float8 AS ndv, s.avg_width::int AS width,
  (s.histogram_bounds::text::text[])[1] AS low,
  (s.histogram_bounds::text::text[])[array_upper(s.histogram_bounds::text::text[], 1)] AS high
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_catalog.pg_type b1 ON t.typtype = 'd' AND b1.oid = t.typbasetype
LEFT JOIN pg_catalog.pg_type b2 ON b1.typtype = 'd' AND b2.oid = b1.typbasetype
LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation
JOIN pg_catalog.pg_database d ON d.datname = current_database()
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_stats s ON s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = a.attname
WHERE c.oid = to_regclass({table})
ORDER BY a.attnum
"""


class Kept(StrEnum):
    """What Spark does with a column so that it hands no condition on it to the database; each changes no value."""

    FREE = ""  # nothing: conditions mean the same there
    DOUBLE = "double"  # Spark writes NaN and infinity as names of columns
    FLOAT = "float"  # 0.1 is another number to a database that compares it as a double
    JOINED = "joined"  # Spark writes bytes and lists in no way that a database reads


class Fact(msgspec.Struct, frozen=True):
    """A row of the answer to `question`: a column, and what is known of the table."""

    name: str
    type: str
    kind: str
    modifier: int
    dims: int
    by_bytes: bool
    utf8: bool
    rows: float | None = None
    bytes: int | None = None
    nulls: float | None = None
    ndv: float | None = None
    width: int | None = None
    low: str | None = None
    high: str | None = None


class ReadColumn(msgspec.Struct, frozen=True):
    """A column as Spark reads it. `read_type`: what the driver gives; the view makes `type` of it."""

    name: str
    type: str
    kept: Kept = Kept.FREE


class Reading(msgspec.Struct, frozen=True):
    """`text`: the query that stands for the table."""

    text: str
    columns: tuple[ReadColumn, ...]


def question(table: Sequence[str]) -> str:
    """What the database's catalog knows of the table; no row if there is none."""
    name = ".".join(exp.to_identifier(part, quoted=True).sql(DIALECT) for part in table)
    collations = ", ".join(exp.Literal.string(each).sql(DIALECT) for each in _BYTES)
    return _QUESTION.format(bytes=collations, table=exp.Literal.string(name).sql(DIALECT))


def reading(table: Sequence[str], facts: Sequence[Fact], declared: Sequence[Column] = ()) -> Reading:
    """How to read the table; `declared`: the columns to read, and their types. SiteError where Spark has no type."""
    known = {fact.name: fact for fact in facts}
    wanted = {column.name: column.type for column in declared} or dict.fromkeys(known, "")
    for name in wanted:
        if name not in known:
            raise SiteError(f"the database has no column {name} in {'.'.join(table)}")
    chosen = [_Chosen.of(known[name], type_) for name, type_ in wanted.items()]
    select = exp.select(*(exp.alias_(each.expression, each.column.name, quoted=True) for each in chosen))
    text = select.from_(_table(table)).sql(DIALECT)
    return Reading(text, tuple(each.column for each in chosen))


def bounds_query(reading: Reading, column: str) -> str:
    """The least and greatest value of a column, as text."""
    name = exp.column(column, quoted=True)
    ends = (exp.cast(end(this=name.copy()), "text", dialect=DIALECT) for end in (exp.Min, exp.Max))
    source = parse_one(reading.text, dialect=DIALECT)
    assert isinstance(source, exp.Select)
    return (
        exp.select(*(exp.alias_(e, n) for e, n in zip(ends, ("low", "high"), strict=True)))
        .from_(source.subquery("t"))
        .sql(DIALECT)
    )


def statistics(facts: Sequence[Fact], reading: Reading, rows: int) -> PartStats:
    """Of a sample that the database took some time ago: estimates, never proofs."""
    known = {fact.name: fact for fact in facts}
    return PartStats(tuple(_stats(known[column.name], column, rows) for column in reading.columns), DATABASE)


def _stats(fact: Fact, column: ReadColumn, rows: int) -> ColumnStats:
    ndv = fact.ndv
    if ndv is not None:
        ndv = -ndv * rows if ndv < 0 else ndv
    low, high = _bound(fact.low, column.type), _bound(fact.high, column.type)
    return ColumnStats(column.name, low, high, ndv=ndv, width_bytes=None if fact.width is None else float(fact.width))


def _bound(text: str | None, type_: str) -> Any:
    try:
        value = _parsed(text, type_) if text is not None else None
    except (ValueError, InvalidOperation):
        return None
    return bound(value, type_)[0]


def _parsed(text: str, type_: str) -> Any:
    match type_.partition("(")[0]:
        case "smallint" | "int" | "bigint":
            return int(text)
        case "decimal":
            number = Decimal(text)
            return number if number.is_finite() else None
        case "date":
            return datetime.date.fromisoformat(text)
        case "timestamp" | "timestamp_ntz":
            return datetime.datetime.fromisoformat(text)
    return None


def _table(name: Sequence[str]) -> exp.Table:
    parts = [exp.to_identifier(part, quoted=True) for part in name]
    return exp.Table(this=parts[-1], db=parts[-2] if len(parts) > 1 else None)


class _Chosen(msgspec.Struct, frozen=True):
    column: ReadColumn
    expression: Any

    @classmethod
    def of(cls, fact: Fact, wanted: str) -> _Chosen:
        here = exp.column(fact.name, quoted=True)
        if wanted == "string" and fact.type not in _STRINGS:
            return cls(_text_column(fact), _as_text(here, fact))
        if wanted.startswith("decimal") and fact.type in ("numeric", *_PLAIN_WHOLE):
            is_plain = fact.type == "numeric" and _digits(fact)[2] and _decimal(fact) == wanted
            return cls(ReadColumn(fact.name, wanted), here if is_plain else exp.cast(here, wanted, dialect=DIALECT))
        chosen = _found(cls, fact, here)
        if wanted and wanted != chosen.column.type:
            raise SiteError(
                f"column {fact.name} is {fact.type} in the database, which is read as {chosen.column.type}, "
                f"not as {wanted}",
                suggestion="declare it as string or, if it is a number, as decimal; or leave its type as it is",
            )
        return chosen


_PLAIN_WHOLE = {"int2": "smallint", "int4": "int", "int8": "bigint"}
_PLAIN = {**_PLAIN_WHOLE, "bool": "boolean", "date": "date", "timestamp": "timestamp_ntz", "timestamptz": "timestamp"}
_STRINGS = ("text", "varchar")
# Lists of these are lists to Spark; `_int4` is PostgreSQL's own name of a list's type.
_LISTS = {
    **{f"_{name}": f"array<{type_}>" for name, type_ in _PLAIN_WHOLE.items()},
    **{"_bool": "array<boolean>", "_float8": "array<double>", "_text": "array<string>", "_varchar": "array<string>"},
    "_date": "array<date>",
}


def _found(make: type[_Chosen], fact: Fact, here: exp.Column) -> _Chosen:
    """By the column's own type."""
    match fact.type:
        case name if name in _PLAIN:
            return make(ReadColumn(fact.name, _PLAIN[name]), here)
        case "oid":
            return make(ReadColumn(fact.name, "bigint"), exp.cast(here, "bigint", dialect=DIALECT))
        case "float8":
            return make(ReadColumn(fact.name, "double", Kept.DOUBLE), here)
        case "float4":
            return make(ReadColumn(fact.name, "float", Kept.FLOAT), exp.cast(here, "double precision", dialect=DIALECT))
        case "bytea":
            return make(ReadColumn(fact.name, "binary", Kept.JOINED), here)
        case "numeric":
            type_ = _decimal(fact)
            return make(
                ReadColumn(fact.name, type_), here if _digits(fact)[2] else exp.cast(here, type_, dialect=DIALECT)
            )
        case name if name in _STRINGS:
            return make(_text_column(fact), here if fact.by_bytes else _by_bytes(here))
        case name if name in _LISTS and fact.dims <= 1:
            return make(ReadColumn(fact.name, _LISTS[name], Kept.JOINED), here)
    return make(_text_column(fact), _as_text(here, fact))


def _decimal(fact: Fact) -> str:
    """The type of a NUMERIC; SiteError if Spark has none that holds all its values."""
    digits, after, _ = _digits(fact)
    if digits > _DIGITS_MAX:
        raise SiteError(
            f"column {fact.name} has {digits} digits, and Spark's numbers have {_DIGITS_MAX}: declare it in columns, "
            "as string or as a decimal that holds its values"
        )
    return f"decimal({digits},{after})"


def _digits(fact: Fact) -> tuple[int, int, bool]:
    """Of a NUMERIC: all digits, those after the point, and whether the database has it so."""
    if fact.modifier < 0:
        return (*_BARE, False)
    digits = (fact.modifier - 4) >> 16 & 0xFFFF
    after = ((fact.modifier - 4 & 0x7FF) ^ 1024) - 1024
    if 0 <= after <= digits <= _DIGITS_MAX:
        return digits, after, True
    return max(digits - min(0, after), after), max(0, after), False


def _text_column(fact: Fact) -> ReadColumn:
    # Bytes of another encoding are in another order than those of UTF-8.
    return ReadColumn(fact.name, "string", Kept.FREE if fact.utf8 else Kept.JOINED)


def _as_text(here: exp.Column, fact: Fact) -> exp.Expr:
    return _by_bytes(exp.cast(here, "text", dialect=DIALECT))


def _by_bytes(value: exp.Expr) -> exp.Expr:
    return exp.Collate(this=value, expression=exp.to_identifier("C", quoted=True))


def facts_of(rows: Sequence[Mapping[str, Any]]) -> tuple[Fact, ...]:
    """What came of `question`."""
    return tuple(msgspec.convert(dict(row), Fact) for row in rows)
