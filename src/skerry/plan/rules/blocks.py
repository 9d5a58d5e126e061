"""Queries in FROM whose tables are all at one site are answered there; only their result travels.

WITH queries are put in the places of their names first (ctes.py), and arms of set operations in FROM (arms.py). A query
that may give other rows when it is answered again, with a LIMIT, a window or a call that differs, is a block too, but
it is answered once: it shares its answer with no other, however alike, and gives no keys ahead of its rows.
Conditions and keys are applied to its answer, never inside it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from skerry.model.names import TableRef
from skerry.model.table import ColumnStats, PartStats, TablePart
from skerry.plan.block import Block
from skerry.plan.estimate import Estimate
from skerry.plan.rules.outputs import Outputs
from skerry.sql.functions import admitted, call_name
from skerry.sql.scope import Scope, Scopes, Source
from skerry.sql.statement import Scan
from skerry.sql.walk import find_all, nodes_of

# Which of several values they give is up to the order in which rows come.
_FIRST_COME = frozenset("first first_value last last_value any_value collect_list array_agg listagg string_agg".split())
# Marks a query in FROM that stands for a subquery, with the reason for it.
ANSWER = "answer"
# Marks one of which it does not matter how often a row comes (arms.py).
SET = "set"


def is_stable(tree: exp.Expr) -> bool:
    """Does the query give the same rows each time it is answered?"""
    for node in nodes_of(tree):
        if isinstance(node, exp.Limit | exp.Offset | exp.Window):
            return False
        name = call_name(node)
        if name is not None:
            function = admitted().functions.get(name)
            if function is None or not function.deterministic or name in _FIRST_COME:
                return False
    return True


def home_of(
    query: exp.Expr, holders: Mapping[str, Sequence[TablePart]], *, is_once: bool = False
) -> dict[str, TablePart] | None:
    """The one part of each of the query's scans, if all are at one member and the query can be answered there.

    `is_once`: it will not be answered again, so it may be one that would differ then.
    """
    names = [table.name for table in find_all(query, exp.Table)]
    # A name that WITH gives, or a table function, is nothing that another site knows.
    if not names or any(len(holders.get(name, ())) != 1 for name in names):
        return None
    parts = {name: holders[name][0] for name in names}
    return parts if len({part.member for part in parts.values()}) == 1 and (is_once or is_stable(query)) else None


def queries_in_from(scopes: Scopes, *, only_answers: bool) -> Iterator[tuple[Scope, Source, exp.Subquery]]:
    """Those that may be answered by themselves. In a subquery: only if another rule has put them there (`ANSWER`)."""
    for scope in scopes.all:
        for source in scope.sources:
            node = source.node
            if not isinstance(node, exp.Subquery) or not isinstance(node.this, exp.Query):
                continue
            if ANSWER not in node.meta and (only_answers or scope.parent is not None):
                continue
            if not node.args.get("joins") and source.alias and not isinstance(node.this, exp.Subquery):
                yield scope, source, node


def blocks(scopes: Scopes, holders: Mapping[str, Sequence[TablePart]], *, only_answers: bool = False) -> list[Block]:
    """`holders` has the parts of each scan's table. A query that may look outside of itself is no block."""
    outputs = Outputs(scopes)
    found: list[Block] = []
    for scope, source, node in queries_in_from(scopes, only_answers=only_answers):
        parts = home_of(node.this, holders, is_once=True)
        columns = outputs.of(node.this, node.args.get("alias")) if parts is not None else None
        if parts is not None and columns is not None:
            # With their member: two blocks that are answered at a third one are alike if they read the same.
            held = {name: f"{part.member}.{part.table}" for name, part in parts.items()}
            member = next(iter(parts.values())).member
            reason = "; ".join(["its tables are there", *filter(None, [node.meta.get(ANSWER)])])
            block = Block(source, scope, node.this, held, member, columns, reason)
            found.append(dataclasses.replace(block, is_stable=is_stable(node.this), is_set=SET in node.meta))
    return found


def as_part(name: str, block: Block, estimate: Estimate) -> TablePart:
    """The block's result as if it were a table of its member."""
    rows = max(1, int(estimate.rows))
    # The estimate's columns are named as the block's list names them, which an alias may rename.
    known = list(estimate.columns.values()) if len(estimate.columns) == len(block.columns) else []
    by_name = {key.rpartition(".")[2]: each for key, each in estimate.columns.items()}
    stats: list[ColumnStats] = []
    for index, column in enumerate(block.columns):
        own = known[index] if known else by_name.get(column.name.lower())
        if own is None:
            stats.append(ColumnStats(column.name, ndv=rows))
            continue
        # A guess, so never none or all of them, which would be a proof (refute.py).
        nulls = min(int(own.nulls * rows), rows - 1) or None
        width = own.width_bytes if own.type == column.type else None
        stats.append(ColumnStats(column.name, nulls=nulls, ndv=min(own.ndv, rows), width_bytes=width))
    return TablePart(name, block.member, block.columns, rows, rows * 16 * len(stats), 0, 0, PartStats(tuple(stats)))


def as_scan(name: str, block: Block) -> Scan:
    table = TableRef(name, block.member, block.columns)
    return Scan(name, table, tuple(column.name for column in block.columns), ())
