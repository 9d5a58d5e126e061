"""Estimates of TPC-H's scans and joins against what DuckDB counts. Spark-free: statistics are the member's own."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from sqlglot import exp

from skerry.catalog.footers import Footers
from skerry.catalog.listing import list_table
from skerry.catalog.statistics import gather
from skerry.config import TableConfig
from skerry.model.limits import Limits
from skerry.model.names import TableRef
from skerry.model.table import TablePart
from skerry.plan.estimate import Estimate, Estimator
from skerry.sql.push import split
from skerry.sql.statement import Query, Scan, analyse, render
from skerry.testing.oracle import TPCH_TABLES, make_tpch

pytestmark = pytest.mark.slow

QUERIES = Path(__file__).parents[1] / "integration" / "queries" / "tpch"
ESTIMATOR = Estimator()


class Tpch:
    """Catalog, statistics and DuckDB over the same files."""

    def __init__(self, folder: Path) -> None:
        self.parts: dict[str, TablePart] = {}
        self.duck = duckdb.connect()
        make_tpch(folder, 0.01)
        for table in TPCH_TABLES:
            listing = list_table(folder, TableConfig("oslo", table, "parquet", table))
            footer = Footers().of(listing)
            stats = gather(listing.files, footer.columns, Limits())
            self.parts[table] = TablePart(table, "oslo", footer.columns, footer.rows, footer.size_bytes, 1, 1, stats)
            self.duck.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet({list(listing.files)})")

    def lookup(self, parts: tuple[str, ...]) -> TableRef | None:
        part = self.parts.get(parts[-1].lower())
        return TableRef(part.table, None, part.columns) if part is not None else None

    def names(self) -> list[str]:
        return list(self.parts)

    def scan(self, scan: Scan, alias: str = "") -> Estimate:
        return ESTIMATOR.scan([self.parts[scan.table.name]], scan.filters, alias=alias)

    def count(self, tables: list[str], conditions: list[str]) -> int:
        where = " AND ".join(f"({each})" for each in conditions) or "true"
        found = self.duck.execute(
            f"SELECT count(*) FROM {', '.join(tables)} WHERE {where}".replace("`", '"')
        ).fetchone()
        assert found is not None
        return int(found[0])


@pytest.fixture(scope="module")
def tpch(tmp_path_factory: pytest.TempPathFactory) -> Tpch:
    return Tpch(tmp_path_factory.mktemp("tpch"))


@pytest.fixture(scope="module")
def queries(tpch: Tpch) -> list[Query]:
    found = [analyse(file.read_text(), None, tpch, Limits()) for file in sorted(QUERIES.glob("*.sql"))]
    return [query for query in found if isinstance(query, Query)]


def ratio(estimate: Estimate, actual: int) -> float:
    """How many times too large or too small; a row more or less is nothing."""
    times = (estimate.rows + 1) / (actual + 1)
    return max(times, 1 / times)


def test_scans(tpch: Tpch, queries: list[Query]) -> None:
    ratios = [
        ratio(tpch.scan(scan), tpch.count([scan.table.name], [render(each) for each in scan.filters]))
        for query in queries
        for scan in query.tables
        if scan.filters
    ]
    assert len(ratios) > 30
    assert statistics.median(ratios) < 1.2
    assert statistics.quantiles(ratios, n=10)[-1] < 3


def test_joins(tpch: Tpch, queries: list[Query]) -> None:
    ratios = [ratio(estimate, actual) for query in queries for estimate, actual in _joins(tpch, query)]
    assert len(ratios) > 40
    assert statistics.median(ratios) < 1.3
    assert statistics.quantiles(ratios, n=10)[-1] < 4


def _joins(tpch: Tpch, query: Query) -> Iterator[tuple[Estimate, int]]:
    """The inner joins of each FROM, one table more at a time, in the order in which keys connect them."""
    scans = {scan.node_name: scan for scan in query.tables}
    for select in query.tree.find_all(exp.Select):
        joins = select.args.get("joins") or []
        relations = [relation.this for relation in (select.args.get("from_"), *joins) if relation is not None]
        plain = all(isinstance(each, exp.Table) and each.name in scans for each in relations)
        if len(relations) < 2 or not plain or any(map(_is_other, joins)):
            continue
        aliases = {each.alias.lower(): scans[each.name] for each in relations}
        yield from _grown(tpch, aliases, list(_keys(select, {a: tpch.scan(s, a) for a, s in aliases.items()})))


def _is_other(join: exp.Join) -> bool:
    return bool(join.args.get("side")) or join.args.get("kind") in ("SEMI", "ANTI")


def _keys(select: exp.Select, estimates: dict[str, Estimate]) -> Iterator[tuple[str, str]]:
    """Pairs `alias.column` of equalities between two tables."""
    clauses = [select.args.get("where"), *(join.args.get("on") for join in select.args.get("joins") or [])]
    for clause in (each for each in clauses if each is not None):
        for condition in split(clause.this if isinstance(clause, exp.Where) else clause):
            if isinstance(condition, exp.EQ):
                sides = [_owned(side, estimates) for side in (condition.this, condition.expression)]
                if sides[0] and sides[1] and sides[0].split(".")[0] != sides[1].split(".")[0]:
                    yield sides[0], sides[1]


def _owned(side: exp.Expr, estimates: dict[str, Estimate]) -> str | None:
    owners = [key for estimate in estimates.values() if (key := estimate.key(side)) is not None]
    if isinstance(side, exp.Column) and side.table:
        owners = [key for key in owners if key.startswith(f"{side.table.lower()}.")]
    return owners[0] if len(owners) == 1 else None


def _grown(tpch: Tpch, aliases: dict[str, Scan], keys: list[tuple[str, str]]) -> Iterator[tuple[Estimate, int]]:
    waiting = list(aliases)
    joined = [waiting.pop(0)]
    estimate = tpch.scan(aliases[joined[0]], joined[0])
    while waiting:
        found = next(((a, own) for a in waiting if (own := _between(keys, joined, a))), None)
        if found is None:
            return
        alias, own = found
        estimate = ESTIMATOR.join(estimate, tpch.scan(aliases[alias], alias), own)
        joined.append(alias)
        waiting.remove(alias)
        inside = [f"{a} = {b}" for a, b in keys if {a.split(".")[0], b.split(".")[0]} <= set(joined)]
        filters = [_qualified(each, name) for name in joined for each in aliases[name].filters]
        yield estimate, tpch.count([f"{aliases[name].table.name} AS {name}" for name in joined], inside + filters)


def _between(keys: list[tuple[str, str]], joined: list[str], alias: str) -> list[tuple[str, str]]:
    """Keys of what is joined and of `alias`, in that order."""
    both = [*keys, *((b, a) for a, b in keys)]
    return [(a, b) for a, b in both if a.split(".")[0] in joined and b.split(".")[0] == alias]


def _qualified(condition: exp.Expr, alias: str) -> str:
    copy = condition.copy()
    for column in copy.find_all(exp.Column):
        column.set("table", exp.to_identifier(alias))
    return render(copy)
