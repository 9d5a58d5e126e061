"""Runs plans without Spark: fragments in DuckDB, edges as tables, the finish by the member's own operators.

What is compared is one plan with another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from metamorphic.reading import parse_fragment
from skerry.exchange.aggregate import Aggregate
from skerry.exchange.gather import Gather
from skerry.exchange.input import END, Input, Polled
from skerry.exchange.limit import Limit
from skerry.exchange.merge import Merge
from skerry.model.fragment import EdgeLeaf, Plan, SparkFragment, TableLeaf, VirtualLeaf
from skerry.sql.dialect import render
from skerry.wire.tuples import decode_tuples

# By member and table.
Tables = Mapping[tuple[str, str], pa.Table]

GIVEN_MAX = 200  # answers of fragments that are kept

_HINT = re.compile(r"/\*\+ .*? \*/ ")
_KEEPS_RIGHT = re.compile(r" (?:RIGHT|FULL)\b.* JOIN ")


class Runner:
    """One DuckDB for many plans; `tables` are the sites'."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("SET threads = 1")
        self._held: dict[int, tuple[str, pa.Table]] = {}  # the sites' tables, by identity
        self._virtual: set[str] = set()
        # Plans of one statement share fragments: what each has given, by its text and by whatever it received.
        self._given: dict[tuple[Any, ...], tuple[pa.Table, list[list[pa.Table]]]] = {}

    def run(self, plan: Plan, tables: Tables) -> Counter[tuple[Any, ...]]:
        """The rows of the result, in no order."""
        return Counter(self.rows(plan, tables))

    def rows(self, plan: Plan, tables: Tables) -> list[tuple[Any, ...]]:
        """The rows of the result in its order, if it has one."""
        edges: dict[tuple[int, str], list[pa.Table]] = {}  # by receiver: senders may be others for each
        for fragment in plan.jobs:
            answer = self._answer(fragment, tables, edges)
            for receiver in fragment.output.receivers:
                edges.setdefault((fragment.output.edge, receiver), []).append(answer)
        (result,) = (each for way, each in edges.items() if way[0] == plan.rows.edge)
        found = _finished(plan, result)
        return [tuple(_comparable(value) for value in row) for row in found]

    def _answer(
        self, fragment: SparkFragment, tables: Tables, edges: Mapping[tuple[int, str], list[pa.Table]]
    ) -> pa.Table:
        sql, edge_leaves = _in_duckdb(fragment.sql), []
        for leaf in fragment.leaves:
            match leaf:
                case TableLeaf(placeholder, table):
                    sql = sql.replace(placeholder, self._hold(tables[fragment.member, table]))
                case EdgeLeaf():
                    edge_leaves.append(leaf)
                case VirtualLeaf(placeholder, columns):
                    assert fragment.facts is not None
                    rows = decode_tuples(dict(fragment.facts.virtual)[placeholder], columns)
                    if placeholder not in self._virtual:
                        self._virtual.add(placeholder)
                        self._put(placeholder, pa.Table.from_batches([rows]))
        received = [edges[leaf.edge, fragment.member] for leaf in edge_leaves]
        came_of = zip(edge_leaves, received, strict=True)
        key = (sql, *((leaf.placeholder, leaf.columns, *map(id, came)) for leaf, came in came_of))
        if key not in self._given:
            if len(self._given) == GIVEN_MAX:
                self._given.clear()
            # With what it received: as long as that is kept, nothing else has its identity.
            self._given[key] = self._run(sql, edge_leaves, received), received
        return self._given[key][0]

    def _run(self, sql: str, leaves: list[EdgeLeaf], received: list[list[pa.Table]]) -> pa.Table:
        for leaf, came in zip(leaves, received, strict=True):
            self._put(leaf.placeholder, _together(came).rename_columns([each.name for each in leaf.columns]))
        try:
            return self._connection.execute(sql).to_arrow_table()
        finally:
            for leaf in leaves:
                self._connection.execute(f"DROP TABLE {leaf.placeholder}")

    def _hold(self, table: pa.Table) -> str:
        """Its name in DuckDB; a site's table is read by many plans."""
        if id(table) not in self._held:
            name = f"held_{len(self._held)}"
            self._put(name, table)
            self._held[id(table)] = name, table
        return self._held[id(table)][0]

    def _put(self, name: str, table: pa.Table) -> None:
        """As a table of its own: DuckDB 1.5 fails on some plans over Arrow's."""
        self._connection.register("received", table)
        self._connection.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM received")
        self._connection.unregister("received")


def _comparable(value: Any) -> Any:
    """Numbers to ten digits: sums of parts differ in their last ones, and DuckDB makes doubles of some decimals."""
    if isinstance(value, float | Decimal):
        return "NaN" if value != value else float(f"{value:.10g}") + 0.0
    return repr(value) if isinstance(value, list | dict) else value


class _Batches:
    """A sender's rows, a few at a time."""

    def __init__(self, table: pa.Table) -> None:
        self._left = table.combine_chunks().to_batches(max_chunksize=3)

    def poll(self) -> Polled:
        return self._left.pop(0) if self._left else END


def _together(answers: list[pa.Table]) -> pa.Table:
    names = answers[0].column_names
    return pa.concat_tables([each.rename_columns(names).cast(answers[0].schema) for each in answers])


def _finished(plan: Plan, answers: list[pa.Table]) -> list[tuple[Any, ...]]:
    """What the initiator makes of what its senders gave (member/result.py)."""
    finish, schema = plan.finish, answers[0].schema
    if not (finish.keys or finish.offset or finish.aggregate) and finish.limit is None:
        return list(zip(*(column.to_pylist() for column in _together(answers).columns), strict=True))
    for step in finish.aggregate:
        if step.kind == "count":  # DuckDB's count_if is wider than Spark's
            schema = schema.set(step.index, schema.field(step.index).with_type(pa.int64()))
        if step.kind == "avg":  # its average of decimals is a double; the merge makes its own of sum and count
            scale = schema.field(step.inputs[0]).type.scale + 4
            schema = schema.set(step.index, schema.field(step.index).with_type(pa.decimal128(38, scale)))
    inputs: list[Input] = [_Batches(each.rename_columns(schema.names).cast(schema)) for each in answers]
    rows: Input = Merge(inputs, finish.keys, schema, 4, 1 << 20) if finish.keys else Gather(inputs)
    if finish.aggregate:
        rows = Aggregate(rows, finish.keys, finish.aggregate, schema)
    if finish.offset or finish.limit is not None:
        rows = Limit(rows, finish.offset, finish.limit)
    found: list[tuple[Any, ...]] = []
    while (batch := rows.poll()) is not END:
        assert isinstance(batch, pa.RecordBatch)
        found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return found


def _in_brackets(sql: str) -> str:
    """What stands between commas is a relation by itself; sqlglot would make one chain of joins of all of them."""
    tree = parse_fragment(sql)
    if tree is None:
        return sql
    for select in list(tree.find_all(exp.Select)):
        relations: list[tuple[exp.Expr, list[exp.Expr]]] = []
        for join in select.args.get("joins") or []:
            if join.args.get("kind") == "COMMA":
                relations.append((join, []))
            elif relations:
                relations[-1][1].append(join)
        for first, others in relations:
            if others:
                first.set("this", exp.Subquery(this=first.this, joins=others))
        gone = {id(join) for _, others in relations for join in others}
        if gone:
            select.set("joins", [join for join in select.args["joins"] if id(join) not in gone])
    return render(tree)


@cache
def _in_duckdb(sql: str) -> str:
    plain = _HINT.sub("", sql).replace(" SORT BY ", " ORDER BY ")
    plain = plain.replace(" any(", " bool_or(").replace(" every(", " bool_and(")
    plain = re.sub(r"\btry_sum\(", "sum(", plain)
    plain = re.sub(r":skerry_\w+", "'default'", plain)  # who asks, and where
    plain = _in_brackets(plain) if _KEEPS_RIGHT.search(plain) else plain
    tree = sqlglot.parse_one(plain, read="spark")
    for node in list(tree.find_all(exp.CountIf)):  # of no rows DuckDB's is NULL
        node.replace(exp.Count(this=exp.Case(ifs=[exp.If(this=node.this, true=exp.Literal.number(1))])))
    return tree.sql("duckdb")
