"""Queries in FROM whose tables are all at one site are answered there; only their result travels.

A WITH query is put in the place of its name first (Spark does the same): mentions that turn out alike are then
answered once, and others may be reduced each in its own way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property

from sqlglot import exp

from skerry.catalog.table import Column, ColumnStats, PartStats, TablePart
from skerry.plan.estimate import Estimate
from skerry.plan.rules.outputs import Outputs
from skerry.sql.dialect import render
from skerry.sql.functions import admitted, call_name
from skerry.sql.names import TableRef
from skerry.sql.scope import Scope, Scopes, Source
from skerry.sql.statement import Query, Scan

# Which of several values they give is up to the order in which rows come.
_FIRST_COME = frozenset("first first_value last last_value any_value collect_list array_agg listagg string_agg".split())
# More copies than that would cost more than they save.
_NODES_MAX = 5_000


def is_stable(tree: exp.Expr) -> bool:
    """Does the query give the same rows each time it is answered?"""
    for node in tree.walk():
        if isinstance(node, exp.Limit | exp.Offset | exp.Window):
            return False
        name = call_name(node)
        if name is not None:
            function = admitted().functions.get(name)
            if function is None or not function.deterministic or name in _FIRST_COME:
                return False
    return True


def without_ctes(query: Query) -> Query:
    """WITH queries in the places of their names; the same query when any of them has to stay."""
    tree = query.tree
    with_ = tree.args.get("with_")
    if with_ is None or len(list(tree.find_all(exp.With))) > 1:
        return query
    names = [cte.alias.lower() for cte in with_.expressions]
    if len(set(names)) < len(names) or not all(is_stable(cte.this) for cte in with_.expressions):
        return query
    tree = tree.copy()
    with_ = tree.args["with_"]
    tree.set("with_", None)
    scans = {scan.node_name: scan for scan in query.tables}
    copies = _Copies(scans, {node.name.lower() for node in query.tree.find_all(exp.Identifier)})
    defined: dict[str, exp.CTE] = {}
    for cte in with_.expressions:
        _put(cte.this, defined, copies)
        defined[cte.alias.lower()] = cte
    _put(tree, defined, copies)
    if sum(1 for _ in tree.walk()) > _NODES_MAX:
        return query
    left = {node.name for node in tree.find_all(exp.Table)}
    tables = tuple(scan for name, scan in copies.scans.items() if name in left)
    return dataclasses.replace(query, tree=tree, tables=tables)


class _Copies:
    """Scans of copied queries get names of their own."""

    def __init__(self, scans: Mapping[str, Scan], taken: set[str]) -> None:
        self.scans = dict(scans)
        self._taken = taken
        self._used: set[str] = set()

    def rename(self, tree: exp.Expr) -> None:
        for node in tree.find_all(exp.Table):
            if node.name not in self.scans:
                continue
            if node.name in self._used:
                scan = self.scans[node.name]
                name = self._free(node.name)
                self.scans[name] = dataclasses.replace(scan, node_name=name)
                node.set("this", exp.Identifier(this=name, quoted=False))
            self._used.add(node.name)

    def _free(self, name: str) -> str:
        number = 2
        while f"{name}_{number}" in self._taken:
            number += 1
        self._taken.add(f"{name}_{number}")
        return f"{name}_{number}"


def _put(tree: exp.Expr, defined: Mapping[str, exp.CTE], copies: _Copies) -> None:
    for node in list(tree.find_all(exp.Table)):
        cte = defined.get(node.name.lower())
        if cte is None or node.name in copies.scans or not isinstance(node.this, exp.Identifier) or node.args.get("db"):
            continue
        body = cte.this.copy()
        copies.rename(body)
        said, own = node.args.get("alias"), cte.args["alias"]
        name = said.this if said is not None else node.this
        columns = (said.args.get("columns") if said is not None else None) or own.args.get("columns")
        alias = exp.TableAlias(this=name.copy(), columns=[column.copy() for column in columns] if columns else None)
        node.replace(exp.Subquery(this=body, alias=alias))


@dataclasses.dataclass(frozen=True, eq=False)
class Block:
    """A query in FROM whose tables are all at `member`; `tables` has the table of each of its scans."""

    source: Source
    scope: Scope
    body: exp.Expr
    tables: Mapping[str, str]
    member: str
    columns: tuple[Column, ...]
    reason: str = "its tables are there"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.tables)

    @cached_property
    def text(self) -> str:
        """The query with its tables' names, and the names of its columns: equal for blocks with equal answers."""
        body = self.body.copy()
        for node in body.find_all(exp.Table):
            if node.name in self.tables:
                node.set("this", exp.Identifier(this=self.tables[node.name], quoted=True))
        return f"{render(body)} at {self.member} as {', '.join(column.name for column in self.columns)}"


def blocks(scopes: Scopes, holders: Mapping[str, Sequence[TablePart]]) -> list[Block]:
    """`holders` has the parts of each scan's table. A query that may look outside of itself is no block."""
    outputs = Outputs(scopes)
    found: list[Block] = []
    for scope in scopes.all:
        for source in scope.sources:
            node = source.node
            if scope.parent is not None or not isinstance(node, exp.Subquery) or not isinstance(node.this, exp.Query):
                continue
            if node.args.get("joins") or not source.alias or isinstance(node.this, exp.Subquery):
                continue
            names = [table.name for table in node.this.find_all(exp.Table)]
            # A name that WITH gives, or a table function, is nothing that another site knows.
            if not names or any(name not in holders for name in names):
                continue
            tables = {name: holders[name] for name in names}
            members = {part.member for parts in tables.values() for part in parts}
            if len(members) != 1 or any(len(parts) > 1 for parts in tables.values()) or not is_stable(node.this):
                continue
            columns = outputs.of(node.this, node.args.get("alias"))
            if columns is not None:
                held = {name: parts[0].table for name, parts in tables.items()}
                found.append(Block(source, scope, node.this, held, next(iter(members)), columns))
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
        stats.append(ColumnStats(column.name, ndv=min(own.ndv, rows) if own is not None else rows))
    return TablePart(name, block.member, block.columns, rows, rows * 16 * len(stats), 0, 0, PartStats(tuple(stats)))


def as_scan(name: str, block: Block) -> Scan:
    table = TableRef(name, block.member, block.columns)
    return Scan(name, table, tuple(column.name for column in block.columns), ())
