"""Where tables of our own are read: of copies one, of shards the one of the key that a statement asks for. Pure.

Buckets prove it, whatever is written meanwhile: statistics of a table that changes prove nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import pyarrow as pa
from sqlglot import exp

from skerry.catalog.catalog import Catalog
from skerry.model.limits import BUCKETS_ASKED
from skerry.model.names import TableRef
from skerry.sql.constants import Unsure, constant, matched
from skerry.sql.keys import equality
from skerry.sql.push import split
from skerry.sql.statement import Query
from skerry.tables.bucket import buckets_of
from skerry.tables.columns import arrow_type


def placed(query: Query, catalog: Catalog, initiator: str) -> tuple[Query, Catalog]:
    """The query, and the catalog that it is planned with."""
    tables = tuple(
        replace(scan, table=_shard_of(scan.table, scan.filters, catalog, query.parameters)) for scan in query.tables
    )
    others = [scan.table for scan in tables if not catalog.is_copied(scan.table)]
    if len(others) < len(tables):
        catalog = catalog.nearest(_nearest(others, catalog, initiator))
    return replace(query, tables=tables), catalog


def _nearest(others: Iterable[TableRef], catalog: Catalog, initiator: str) -> list[str]:
    """Members by how much of the other tables is there, the initiator first among equals."""
    held = Counter(dict.fromkeys(catalog.schemas()[1:], 0))
    for ref in others:
        for part in catalog.parts(ref):
            held[part.member] += part.size_bytes + 1
    return sorted(held, key=lambda name: (-held[name], name != initiator))


def _shard_of(ref: TableRef, filters: Iterable[exp.Expr], catalog: Catalog, values: Mapping[str, Any]) -> TableRef:
    """The one part that can have rows which pass the filters, if there is one; else the table.

    Who sees masked values filters by these, and buckets are of others.
    """
    spread = catalog.spread(ref)
    if not spread or any(catalog.is_veiled(member, ref.name) for member in spread):
        return ref
    first = next(iter(spread.values()))
    conditions = [each for condition in filters for each in split(condition)]
    try:
        said = [_said(name, ref, conditions, values) for name in first.columns]
    except Unsure:
        return ref
    if not 0 < prod(map(len, said)) <= BUCKETS_ASKED:
        return ref
    kinds = [column.type for name in first.columns if (column := ref.column(name)) is not None]
    keys = zip(*product(*said), strict=True)
    arrays = [pa.array(list(key), arrow_type(kind)) for key, kind in zip(keys, kinds, strict=True)]
    places = buckets_of(arrays, first.buckets).tolist()
    owners = {
        member
        for member, each in spread.items()
        if any(begin <= place < upto for place in places for begin, upto in each.here)
    }
    return TableRef(ref.name, owners.pop(), ref.columns) if len(owners) == 1 else ref


def _said(name: str, ref: TableRef, conditions: Iterable[exp.Expr], values: Mapping[str, Any]) -> list[Any]:
    """The values that the column may have; Unsure if no condition says so, or Spark alone knows what it says."""
    column = ref.column(name)
    for condition in conditions:
        try:
            asked, nodes = equality(condition)
        except Unsure:
            continue
        if column is not None and asked.name.lower() == name.lower() and len(asked.parts) == 1:
            return matched([constant(node, values) for node in nodes], column.type)
    raise Unsure(f"{name} may have any value")
