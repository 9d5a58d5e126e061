"""How many rows a query can have at most, going by the tables it reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import TypeVar

from sqlglot import exp

from skerry.sql.functions import is_generator
from skerry.sql.shape import is_global_aggregate
from skerry.sql.walk import contains, nodes_of

Count = TypeVar("Count", int, float)

# What a SELECT may have without having more rows than its tables joined have.
_KEEPS = frozenset("expressions from_ joins where group having order limit offset distinct said_all hint".split())


def most_rows(rows: Iterable[Count]) -> Count:
    """Rows of a join of tables with so many rows, outer joins included: a full one has a·b + a + b at most."""
    return prod(count + 1 for count in rows)


def reads_tables_only(tree: exp.Expr, mentions: Mapping[str, object]) -> bool:
    """Is this one SELECT from these tables, joined, with nothing in it that makes rows?"""
    if not isinstance(tree, exp.Select):
        return False
    if any(value not in (None, [], False) and key not in _KEEPS for key, value in tree.args.items()):
        return False
    # Anywhere: GROUP BY CUBE (a, b) and GROUP BY a, b WITH CUBE repeat rows.
    if contains(tree, exp.Cube, exp.Rollup, exp.GroupingSets):
        return False
    if any(is_generator(node) for node in nodes_of(tree)):
        return False
    from_ = tree.args.get("from_")
    tables = [from_.this, *(join.this for join in tree.args.get("joins") or [])] if from_ is not None else []
    return bool(tables) and all(_is_table(table, mentions) for table in tables)


def is_bounded(tree: exp.Expr, rows: int) -> bool:
    """Does the text itself bound its rows to so many?"""
    limit = tree.args.get("limit")
    if limit is not None and isinstance(limit.expression, exp.Literal) and limit.expression.is_int:
        return int(limit.expression.name) <= rows
    if isinstance(tree, exp.Select) and tree.args.get("from_") is None:
        return not any(is_generator(node) for node in nodes_of(tree))
    return is_global_aggregate(tree)


def _is_table(node: exp.Expr, mentions: Mapping[str, object]) -> bool:
    if not isinstance(node, exp.Table) or node.name not in mentions:
        return False
    return not any(value for key, value in node.args.items() if key not in ("this", "db", "catalog", "alias"))
