"""Statements about tables of our own, typed: what `analyse_change` makes of a text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from sqlglot import exp

from skerry.model.commits import Policy
from skerry.model.errors import SqlError, UserError
from skerry.model.lexemes import lexemes
from skerry.model.names import Catalog, TableRef
from skerry.model.rights import Action, Rights
from skerry.model.sharded import OwnColumn, OwnTable
from skerry.model.table import Column
from skerry.sql.statement import Query


@dataclass(frozen=True)
class Known:
    """What statements are checked against; as a catalog it knows all tables. `tables` by their names in lower case."""

    catalog: Catalog
    tables: Mapping[str, OwnTable]
    members: Sequence[str]
    rights: Rights | None = None

    def check_may(self, action: Action, table: OwnTable) -> None:
        """UserError if no member lets the user: before anything is said of the table's columns."""
        rights = self.rights
        if rights is not None and not any(rights.may(action, member, table.name) for member in table.members):
            raise UserError(f"user {rights.user} may not {action} rows of table {table.name}")

    def lookup(self, parts: tuple[str, ...]) -> TableRef | None:
        own = self.tables.get(parts[0].lower()) if len(parts) == 1 else None
        if own is None:
            return self.catalog.lookup(parts)
        return TableRef(own.name, None, tuple(Column(each.name, each.type) for each in own.columns), is_own=True)

    def names(self) -> list[str]:
        return [*self.catalog.names(), *(table.name for table in self.tables.values())]


@dataclass(frozen=True)
class Configured:
    """A catalog without tables of our own, whose names are `own`: statements find those by themselves."""

    catalog: Catalog
    own: frozenset[str]

    def lookup(self, parts: tuple[str, ...]) -> TableRef | None:
        return None if parts[-1].lower() in self.own else self.catalog.lookup(parts)

    def names(self) -> list[str]:
        return [name for name in self.catalog.names() if name.rpartition(".")[2].lower() not in self.own]


@dataclass(frozen=True)
class CreateTable:
    """`table` has number 0 and version 0: whoever makes it gives them."""

    table: OwnTable
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateAs:
    """CREATE TABLE … AS: the query gives columns and rows (`created_as`). None where nobody makes queries."""

    query: Query | None


@dataclass(frozen=True)
class DropTable:
    """`table` is None when there is none of the name, and IF EXISTS was said."""

    table: OwnTable | None


@dataclass(frozen=True)
class TruncateTable:
    table: OwnTable


@dataclass(frozen=True)
class AlterTable:
    """`changed` is what the table shall be: its columns and the names in its keys; `said` is what was asked for.

    Columns of both have numbers, those that are new 0. Both are equal if there is nothing to do.
    """

    table: OwnTable
    changed: OwnTable
    said: str


@dataclass(frozen=True)
class FlushTable:
    table: OwnTable


@dataclass(frozen=True)
class ShowCreateTable:
    table: OwnTable


@dataclass(frozen=True)
class ShowTableStatus:
    """None: of all tables of our own."""

    table: OwnTable | None


@dataclass(frozen=True)
class Rebalance:
    """One move of a group of rows, or only what there is to move. `leaving`: members that shall have none."""

    leaving: tuple[str, ...]
    is_plan: bool


@dataclass(frozen=True)
class Begin:
    pass


@dataclass(frozen=True)
class Commit:
    pass


@dataclass(frozen=True)
class Rollback:
    pass


@dataclass(frozen=True)
class Change:
    """A write. Its parts are constants and markers, whose values are in `parameters`; or there is a `query` for Spark.

    `reason` says why there is one.
    """

    table: OwnTable
    text: str = field(repr=False)
    parameters: Mapping[str, Any]
    query: Query | None
    reason: str


@dataclass(frozen=True)
class Insert(Change):
    """`columns` are positions in the table, of each value of a row; None among `rows` is a column's default.

    The query gives the same values. `constants`: by position, columns whose values are known before any marker's, as
    the table keeps them. `markers`: of a known text, columns that a marker alone gives in each row, and its name
    (`tables/ways.with_constants`). `key`: positions of the table's key, of a text that is known.
    """

    columns: tuple[int, ...]
    policy: Policy
    rows: tuple[tuple[exp.Expr | None, ...], ...] | None
    constants: Mapping[int, Sequence[Any]] = field(default_factory=dict, repr=False)
    markers: Mapping[int, Sequence[tuple[str, exp.Expr]]] = field(default_factory=dict, repr=False)
    key: Sequence[int] = field(default=(), repr=False)


@dataclass(frozen=True)
class Update(Change):
    """`assignments`: positions, and what each column is set to; None is its default.

    `keys`: for each column of the key the values that rows may have. The query gives the key, then what is set; if a
    column of the key is set (`moves_rows`), all columns of the row as it shall be.
    """

    assignments: tuple[tuple[int, exp.Expr | None], ...]
    keys: tuple[tuple[exp.Expr, ...], ...] | None

    @property
    def moves_rows(self) -> bool:
        """Whether a row may belong to another bucket then."""
        return moves_rows(self.table, [place for place, _ in self.assignments])


@dataclass(frozen=True)
class Delete(Change):
    """No `keys` and no query: all rows. The query gives the key."""

    keys: tuple[tuple[exp.Expr, ...], ...] | None


@dataclass(frozen=True)
class Merge(Change):
    """`clauses`: what each does, and the positions of columns that it sets or gives.

    The query gives the number of the clause that a pair of rows meets, the key of the table's row (NULL if there is
    none), then the values of the first clause, of the second, …, NULL where it is not met.
    """

    clauses: tuple[tuple[Action, tuple[int, ...]], ...]
    may_match_again: bool


Definition = (
    CreateTable
    | CreateAs
    | DropTable
    | TruncateTable
    | AlterTable
    | FlushTable
    | ShowCreateTable
    | ShowTableStatus
    | Rebalance
    | Begin
    | Commit
    | Rollback
)


def with_values(change: Change, values: Mapping[str, Any]) -> Change:
    """The same write with other parameters. Each statement of a known text comes here: `replace` would go through all
    its fields, and make each anew."""
    made = object.__new__(type(change))
    made.__dict__.update(change.__dict__, parameters=values)
    return made


def column_place(table: OwnTable, name: str) -> int | None:
    """A column's position, found as Spark finds it: in any case."""
    wanted = name.lower()
    return next((place for place, column in enumerate(table.columns) if column.name.lower() == wanted), None)


def moves_rows(table: OwnTable, places: Iterable[int]) -> bool:
    """Whether a column of the key is among these."""
    keys = {name.lower() for name in table.primary_key}
    return any(table.columns[place].name.lower() in keys for place in places)


def key_columns(table: OwnTable) -> tuple[OwnColumn, ...]:
    return tuple([table.columns[place] for place in key_places(table)])


def key_places(table: OwnTable) -> list[int]:
    """Positions of the columns of the key, in its order."""
    by_name = {column.name.lower(): place for place, column in enumerate(table.columns)}
    return [by_name[name.lower()] for name in table.primary_key]


def is_plain_write(sql: str) -> bool:
    """Whether a statement surely is about tables of our own, at a glance."""
    return sql[:7].upper() in _QUICK


def is_about_own(sql: str) -> bool:
    """Whether a statement begins like one about tables of our own."""
    if is_plain_write(sql):
        return True
    try:
        words = [sql[each.start : each.upto].upper() for each in islice(lexemes(sql), 6)]
    except SqlError:
        return False
    if words[:1] == ["EXPLAIN"]:
        words = words[2:] if words[1:2] == ["ANALYZE"] else words[1:]
        words = words[2:] if words[:2] == ["FORMAT", "JSON"] else words
        return bool(words) and (words[0] in _EXPLAINED or words[:2] == ["TRUNCATE", "TABLE"])
    words = words[:3]
    return bool(words) and (words[0] in _FIRST or tuple(words[:2]) in _FIRST_TWO or tuple(words) in _FIRST_THREE)


@dataclass(frozen=True)
class Explained:
    """What is to be explained, in its place; or done and explained, if it `analyzes`."""

    sql: str
    analyzes: bool
    is_json: bool


def explained(sql: str) -> Explained | None:
    """None for what is only to be done."""
    if sql[:7].upper() in _QUICK:
        return None
    words = [(sql[each.start : each.upto].upper(), each.upto) for each in islice(lexemes(sql), 4)]
    if words[0][0] != "EXPLAIN":
        return None
    analyzes = [word for word, _ in words[1:2]] == ["ANALYZE"]
    is_json = [word for word, _ in words[1 + analyzes : 3 + analyzes]] == ["FORMAT", "JSON"]
    upto = words[analyzes + 2 * is_json][1]
    return Explained(" " * upto + sql[upto:], analyzes, is_json)


_QUICK = frozenset({"INSERT ", "UPDATE ", "DELETE "})  # nothing else begins so: the text need not be cut into words
_FIRST = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "BEGIN", "COMMIT", "ROLLBACK"})
_EXPLAINED = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})
_FIRST_TWO = frozenset(
    {("CREATE", "TABLE"), ("DROP", "TABLE"), ("ALTER", "TABLE"), ("TRUNCATE", "TABLE"), ("FLUSH", "TABLE")}
    | {("START", "TRANSACTION"), ("REBALANCE", "TABLES"), ("SHOW", "REBALANCE")}
)
_FIRST_THREE = frozenset({("SHOW", "CREATE", "TABLE"), ("SHOW", "TABLE", "STATUS")})
