"""The generated queries: the same ones for the same seed, of every kind, and all of them admitted."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from metamorphic.check import query_of
from metamorphic.tables import JOINS, KEYS, Table, read_tables
from skerry.model.limits import Limits
from skerry.model.names import TableRef
from skerry.model.table import Column
from skerry.sql.statement import Query, analyse
from skerry.testing.topologies import SHAPES, make_files

SEEDS = range(200)
FORMS = (
    "LEFT JOIN,RIGHT JOIN,FULL JOIN,LEFT SEMI JOIN,LEFT ANTI JOIN,CROSS JOIN,USING (,GROUP BY,HAVING,ROLLUP,ORDER BY,"
    "LIMIT,OFFSET,DISTINCT,UNION ALL,INTERSECT,EXCEPT,OVER (,EXISTS (,NOT EXISTS (,NOT IN (SELECT,WITH cte,CASE WHEN,"
    "FILTER (WHERE,<=>"
).split(",")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Table]:
    return read_tables(make_files(tmp_path_factory.mktemp("grammar"), 0.001))


class AnyTable:
    """A catalog with the grammar's tables; kinds stand for types."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._tables = tables

    def lookup(self, parts: tuple[str, ...]) -> TableRef | None:
        table = self._tables.get(parts[-1])
        if table is None:
            return None
        return TableRef(table.name, None, tuple(Column(column.name, "string") for column in table.columns))

    def names(self) -> list[str]:
        return list(self._tables)


def test_a_seed_gives_the_same_query_again(tables: Mapping[str, Table]) -> None:
    assert [query_of(tables, seed) for seed in SEEDS] == [query_of(tables, seed) for seed in SEEDS]


def test_every_form_is_among_the_queries(tables: Mapping[str, Table]) -> None:
    texts = [query_of(tables, seed).sql for seed in SEEDS]
    assert not [form for form in FORMS if not any(form in text for text in texts)]
    assert len(set(texts)) > 0.98 * len(texts)


def test_the_gate_admits_what_is_generated(tables: Mapping[str, Table]) -> None:
    for seed in SEEDS:
        statement = analyse(query_of(tables, seed).sql, [], AnyTable(tables), Limits())
        assert isinstance(statement, Query)


def test_joins_and_keys_name_columns_that_are_there(tables: Mapping[str, Table]) -> None:
    known = {f"{table.name}.{column.name}" for table in tables.values() for column in table.columns}
    assert {name for pair in JOINS for name in pair} <= known
    assert {f"{table}.{column}" for table, columns in KEYS.items() for column in columns} <= known


def test_every_shape_places_every_table(tables: Mapping[str, Table]) -> None:
    for shape in SHAPES.values():
        assert set(shape.places) == set(tables), shape.name
    assert [len(shape.data_members) for shape in SHAPES.values()] == [1, 2, 3, 5, 3, 3]
