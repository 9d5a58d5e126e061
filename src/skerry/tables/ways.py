"""Which way a write goes (T7): as tuples, without any Spark, or by Spark. Pure; `reason` is what EXPLAIN tells.

Tuples: all values are constants, all keys are known, at most 4096 rows and 1 MiB; of `executemany`, which has no other
way, 100,000 rows and 4 MiB. A constant that Spark might see
otherwise than we do goes to Spark (`sql/constants.py`); one that no column takes is an error either way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any, TypeAlias

import msgspec
from sqlglot import exp

from skerry.model.errors import SqlError
from skerry.model.limits import COMPUTED_BYTES, COMPUTED_ROWS, WRITE_TUPLES, WRITE_TUPLES_BYTES
from skerry.model.sharded import OwnColumn, OwnTable
from skerry.sql.constants import Misfit, Unsure, assigned, check_together, constant, matched, stays
from skerry.sql.owntables import Change, Delete, Insert, Update, key_columns, key_places
from skerry.sql.parameters import Bound, bind_again
from skerry.sql.parse import parse_expression
from skerry.sql.position import error_at
from skerry.sql.walk import find_all
from skerry.wire import execution as packets
from skerry.wire.tuples import encode_plain, encode_tuple, plain_value

Packet: TypeAlias = packets.Insert | packets.LocalUpdate | packets.Delete
Row: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class ByTuples:
    """`packet` is for the table as a whole; `keys` are those of its tuples or items, in msgpack's form, one for one.

    All rows of a table are deleted by a packet without tuples: it has no keys, and goes to all members.
    """

    packet: Packet
    keys: tuple[Row, ...]
    reason: str


@dataclass(frozen=True)
class BySpark:
    """A statement that was read without a query is read again, with one (`needs_query`)."""

    reason: str


def way_of(change: Change, bound: Bound | None = None) -> ByTuples | BySpark:
    """SqlError for a value that its column does not take. `bound`: its parameters' values, and others with which it
    does the same; of two that mean one row the later one counts, as though they came one after the other."""
    if change.query is not None:
        return BySpark(change.reason or "the query was asked for")
    bound = bound or bind_again(change.parameters)
    try:
        match change:
            case Insert():
                return _inserted(change, bound)
            case Update():
                return _updated(change, bound)
            case Delete():
                return _deleted(change, bound)
    except Unsure as error:
        return BySpark(error.reason)
    raise AssertionError(change)


def with_constants(change: Change) -> Change:
    """The same, with the columns that no marker's value decides: a text that comes again need not read its literals
    again. One that is wrong, or not sure, is told when the statement is carried out."""
    if not isinstance(change, Insert) or change.rows is None:
        return change
    constants: dict[int, Sequence[Any]] = {}
    markers: dict[int, Sequence[tuple[str, exp.Expr]]] = {}
    for place, nodes in enumerate(_nodes(change, change.rows)):
        if not any(node is not None and find_all(node, exp.Placeholder) for node in nodes):
            with suppress(Unsure, SqlError):
                constants[place] = _column(change, place, nodes, Bound(1, {}))
        elif all(isinstance(node, exp.Placeholder) for node in nodes):
            markers[place] = [(node.name, node) for node in nodes if node is not None]
    return replace(change, constants=constants, markers=markers, key=key_places(change.table))


def _nodes(change: Insert, rows: Sequence[Sequence[exp.Expr | None]]) -> Iterable[Sequence[exp.Expr | None]]:
    """By column of the table, what the rows give it; None is its default."""
    given = {place: at for at, place in enumerate(change.columns)}
    for place in range(len(change.table.columns)):
        at = given.get(place)
        yield [None] * len(rows) if at is None else [row[at] for row in rows]


def _inserted(change: Insert, bound: Bound) -> ByTuples:
    table, rows, constants = change.table, change.rows, change.constants
    assert rows is not None
    _check_count(len(rows) * bound.times, "rows", bound)
    key = change.key or key_places(table)
    # A known text's columns are all constants or markers, mostly: then its tree is not walked.
    is_known = len(constants) + len(change.markers) == len(table.columns)
    given = dict.fromkeys(range(len(table.columns)), ()) if is_known else dict(enumerate(_nodes(change, rows)))
    columns = [
        [*constants[place]] * bound.times if place in constants else _values(change, place, nodes, bound)
        for place, nodes in given.items()
    ]
    tuples = encode_plain(zip(*columns, strict=True))
    _check_bytes(sum(map(len, tuples)), bound)
    keys = tuple(zip(*[columns[place] for place in key], strict=True))
    packet = packets.Insert(table.id, table.version, change.policy, tuples)
    return ByTuples(packet, keys, f"{_counted(len(tuples), 'row')} of constants")


def _updated(change: Update, bound: Bound) -> ByTuples:
    assert change.keys is not None
    columns = [(place, _column(change, place, [value], bound)) for place, value in change.assignments]
    set_to: dict[Row, tuple[tuple[Any, int], ...]] = {}
    for number, values in enumerate(bound.each()):
        made = tuple((column[number], place) for place, column in columns)
        set_to |= dict.fromkeys(_keys(change.table, change.keys, values), made)
        _check_count(len(set_to), "keys", bound)
    keys = tuple(set_to)
    items = tuple(packets.LocalItem(key, made) for key, made in set_to.items())
    size_bytes = sum(len(msgspec.msgpack.encode(made)) + len(encode_tuple(key)) for key, made in set_to.items())
    _check_bytes(size_bytes, bound)
    packet = packets.LocalUpdate(change.table.id, change.table.version, items)
    return ByTuples(packet, keys, f"{_counted(len(keys), 'key')} and constants")


def _deleted(change: Delete, bound: Bound) -> ByTuples:
    table = change.table
    if change.keys is None:
        return ByTuples(packets.Delete(table.id, table.version), (), "all rows, without a condition")
    found: dict[Row, None] = {}
    for values in bound.each():
        found |= dict.fromkeys(_keys(table, change.keys, values))
        _check_count(len(found), "keys", bound)
    keys = tuple(found)
    tuples = tuple(map(encode_tuple, keys))
    _check_bytes(sum(map(len, tuples)), bound)
    return ByTuples(packets.Delete(table.id, table.version, tuples), keys, _counted(len(keys), "key"))


def _keys(table: OwnTable, said: tuple[tuple[exp.Expr, ...], ...], values_of: Mapping[str, Any]) -> Iterable[Row]:
    """Every combination of the values that columns of the key may have, once."""
    _check_count(prod(map(len, said)), "keys", None)
    values = []
    for column, nodes in zip(key_columns(table), said, strict=True):
        found = matched([constant(node, values_of) for node in nodes], column.type)
        values.append(list(dict.fromkeys(map(plain_value, found))))
    return product(*values)


def _column(change: Change, place: int, nodes: Sequence[exp.Expr | None], bound: Bound) -> list[Any]:
    """A column's values in msgpack's form, for one set of parameters after the other; None is its default."""
    given = [[None] if node is None else _given(node, bound) for node in nodes]
    if len(nodes) > 1:
        for together in zip(*(_for_each(values, bound) for values in given), strict=True):
            check_together(together)
    column = change.table.columns[place]
    made = [_stored(change, column, node, values) for node, values in zip(nodes, given, strict=True)]
    columns: list[list[Any]] = [_for_each(values, bound) for values in made]
    return columns[0] if len(columns) == 1 else [value for together in zip(*columns, strict=True) for value in together]


def _values(change: Insert, place: int, nodes: Sequence[exp.Expr | None], bound: Bound) -> Sequence[Any]:
    """The same of a column that markers alone may give, one a row."""
    marked = change.markers.get(place)
    if marked is None:
        return _column(change, place, nodes, bound)
    column = change.table.columns[place]
    if len(marked) == 1:
        name, node = marked[0]
        return _stored(change, column, node, bound.values[name])
    if bound.times == 1:
        values = [bound.values[name][0] for name, _ in marked]
        if stays(values, column.type) and (column.is_nullable or None not in values):
            return values  # of one type, so Spark brings them to no other one
    return _column(change, place, [node for _, node in marked], bound)


def _given(node: exp.Expr, bound: Bound) -> list[Any]:
    """Its value for each set of parameters; one, if it is a constant."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Placeholder):
        return list(bound.values[node.name])
    return [constant(node, {})]


def _for_each(values: Sequence[Any], bound: Bound) -> list[Any]:
    return [*values] * bound.times if len(values) < bound.times else [*values]


def _stored(change: Change, column: OwnColumn, node: exp.Expr | None, values: Sequence[Any]) -> Sequence[Any]:
    """What the column keeps of each."""
    stored: Sequence[Any]
    if node is None:
        stored = [plain_value(default_of(column))]
    elif stays(values, column.type):
        stored = values
    else:
        try:
            stored = [assigned(value, column.type) for value in values]
        except Misfit as error:
            raise error_at(f"column {column.name}: {error.message}", change.text, node) from None
        stored = list(map(plain_value, stored))
    if not column.is_nullable and None in stored:
        message = f"column {column.name} of {change.table.name} is NOT NULL"
        raise error_at(message, change.text, node or exp.Null())
    return stored


def default_of(column: OwnColumn) -> Any:
    """What a column has that no value is given for."""
    if column.default is None:
        return None
    return assigned(constant(parse_expression(column.default), {}), column.type)


def _check_count(count: int, what: str, bound: Bound | None) -> None:
    """Several sets of parameters go as tuples as far as one commit holds them: no query could take their place."""
    most = COMPUTED_ROWS if bound is not None and bound.times > 1 else WRITE_TUPLES
    if count > most:
        raise Unsure(f"{count} {what} are more than the {most} that go as tuples")


def _check_bytes(size: int, bound: Bound) -> None:
    most = COMPUTED_BYTES if bound.times > 1 else WRITE_TUPLES_BYTES
    if size > most:
        raise Unsure(f"{size} bytes are more than the {most} that go as tuples")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
