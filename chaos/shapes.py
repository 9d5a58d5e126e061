"""Four shapes of queries over three sites, and the right answer to each, by DuckDB over the same files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

SITES = ("oslo", "bergen", "tromso")
ASKED_AT = "oslo"
TICKS = 20_000  # rows of `ticks` at each site: a client's page holds 4096 of them
WIDE = 60_000  # rows of `wide`, at bergen


@dataclass(frozen=True)
class Shape:
    """`sql` has a place for a number, so that each round has a plan of its own, in no cache."""

    name: str
    sql: str
    others: tuple[str, ...]  # participants beside the initiator, those a fault may hit
    ordered: bool = False
    pause_s: float = 0.0  # of the reader, after each page

    def text(self, number: int) -> str:
        return self.sql.replace("$n", str(number))


SHAPES = (
    Shape("one site", "SELECT id, kind, note FROM bergen.ticks WHERE id > -$n", ("bergen",)),
    Shape(
        "join",
        "SELECT a.id, a.note AS a, b.note AS b, c.note AS c FROM oslo.ticks a JOIN bergen.ticks b ON a.id = b.id "
        "JOIN tromso.ticks c ON b.id = c.id WHERE a.id > -$n",
        ("bergen", "tromso"),
    ),
    Shape(
        "ordered",
        "SELECT kind, note, id FROM ticks WHERE id > -$n ORDER BY kind, note, id",
        ("bergen", "tromso"),
        ordered=True,
    ),
    Shape("large", "SELECT id, note FROM bergen.wide WHERE id > -$n", ("bergen",), pause_s=0.02),
)


def make_tables(folder: Path) -> dict[str, dict[str, Path]]:
    """Site → table → folder. Notes differ by site, so that no row can be taken for another."""
    placed: dict[str, dict[str, Path]] = {}
    for site in SITES:
        tables = {"ticks": _rows(site, TICKS, 20), "wide": _rows(site, WIDE, 120)}
        placed[site] = {}
        for name, table in tables.items() if site == "bergen" else [("ticks", tables["ticks"])]:
            path = folder / site / name
            path.mkdir(parents=True)
            pq.write_table(table, path / "part.parquet", row_group_size=5000)
            placed[site][name] = path
    return placed


def _rows(site: str, count: int, width: int) -> pa.Table:
    notes = [f"{site} {each * 7919 % 1_000_003:>07} {'x' * (each % width)}" for each in range(count)]
    kinds = pa.array([each % 7 for each in range(count)], pa.int32())
    return pa.table({"id": pa.array(range(count), pa.int64()), "kind": kinds, "note": notes})


def right_answers(tables: dict[str, dict[str, Path]]) -> dict[str, list[tuple[object, ...]]]:
    """Rows by shape; sorted, unless the query itself sorts them."""
    database = duckdb.connect()
    names: dict[str, list[str]] = {}
    for site, placed in tables.items():
        database.execute(f"CREATE SCHEMA {site}")
        for name, path in placed.items():
            database.execute(f"CREATE VIEW {site}.{name} AS SELECT * FROM '{path}/*.parquet'")
            names.setdefault(name, []).append(f"SELECT * FROM {site}.{name}")
    for name, parts in names.items():
        database.execute(f"CREATE VIEW {name} AS {' UNION ALL '.join(parts)}")
    answers = {}
    for shape in SHAPES:
        rows = database.execute(re.sub(r"\$n", "1", shape.sql)).fetchall()
        answers[shape.name] = rows if shape.ordered else sorted(rows)
    database.close()
    return answers
