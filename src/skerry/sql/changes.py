"""Statements about tables of our own: text → typed statement. Pure.

A write whose parts are all constants is left as they are (`tables/ways.py` makes tuples of it). For any other, and for
those where `needs_query` is said, the query is made that gives keys and values, gated and bound as any query.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from sqlglot import exp
from sqlglot.tokens import Token

from skerry.model.commits import Policy
from skerry.model.errors import SqlError
from skerry.model.limits import Limits
from skerry.model.nearest import did_you_mean
from skerry.model.position import sql_error
from skerry.model.rights import Action
from skerry.model.sharded import OwnTable
from skerry.model.table import Column
from skerry.model.variables import Variable
from skerry.sql.asof import Said, taken_out
from skerry.sql.columntypes import type_text
from skerry.sql.constants import Unsure, is_plain
from skerry.sql.definitions import alter_table, create_table, members_named, new_name
from skerry.sql.grammar.changes import Changed, ChangeGrammar, Defined, Inserted, Merged, Piece, TableDefinition, When
from skerry.sql.grammar.cursor import Mismatch
from skerry.sql.keys import keys_said
from skerry.sql.merging import Merging, column_of
from skerry.sql.owntables import (
    Begin,
    Change,
    Commit,
    CreateAs,
    CreateTable,
    Definition,
    Delete,
    DropTable,
    FlushTable,
    Insert,
    Known,
    Merge,
    Rebalance,
    Rollback,
    ShowCreateTable,
    ShowTableStatus,
    TruncateTable,
    Update,
    column_place,
    moves_rows,
)
from skerry.sql.parameters import bind_parameters
from skerry.sql.parse import parse_expression, parse_type
from skerry.sql.position import error_at
from skerry.sql.statement import Given, Query, bound_query, check_said, statement_tokens

Values = Sequence[Any] | Mapping[str, Any] | None

# What is called so in a query that is made here.
_GIVEN = "skerry_given"
_VALUE = "skerry_value_"
_ALL_DELETED = "all rows are deleted, whose keys are read first"
_ADMITTED = (
    "CREATE TABLE, DROP TABLE, TRUNCATE TABLE, ALTER TABLE, INSERT, UPDATE, DELETE, MERGE, BEGIN, COMMIT, "
    "ROLLBACK, FLUSH TABLE, REBALANCE TABLES, SHOW CREATE TABLE, SHOW TABLE STATUS and SHOW REBALANCE"
)


class NeedsQuery(Exception):
    """A write that is more than constants. `reason` is for EXPLAIN; `is_read`: it reads the rows that it changes."""

    def __init__(self, reason: str, table: OwnTable, is_read: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.table = table
        self.is_read = is_read


def analyse_change(
    text: str,
    values: Values,
    known: Known,
    limits: Limits,
    *,
    needs_query: bool = False,
    casts: bool = False,
    as_is: Sequence[int] = (),
    is_whole: bool = False,
    variables: Mapping[str, Variable] = MappingProxyType({}),
) -> Change | Definition:
    """The one statement of `text`; SqlError says what is wrong with it, and where.

    `casts`: its query gives values of the columns' own types, but for those numbered `as_is`; `is_whole`: and all
    columns of rows that are updated. TRUNCATE is a Delete where a query is needed.
    """
    return _read(
        text, limits, variables, values, known, needs_query=needs_query, casts=casts, as_is=as_is, is_whole=is_whole
    )


def analyse_constants(
    text: str,
    values: Values,
    known: Known,
    limits: Limits,
    variables: Mapping[str, Variable] = MappingProxyType({}),
) -> Change | Definition:
    """The same for whoever makes no queries: NeedsQuery for a write that needs one, read no further than to see it."""
    return _read(text, limits, variables, values, known, binds=False)


def analyse_load(text: str, known: Known, limits: Limits) -> Insert:
    """INSERT … VALUES (?, …), whose values are a client's batches of rows; `rows` is None.

    Its client's user has not written that: no error shows it.
    """
    reader = _Reader(statement_tokens(text, limits), Given("", None, known, {}), known, False, False, False)
    try:
        if not reader.grammar.take_words("INSERT"):
            raise SqlError("rows are loaded by INSERT INTO … VALUES (?, …)")
        return reader.load(reader.grammar.insert())
    except Mismatch as error:
        raise reader.grammar.explained(error) from None


def created_as(text: str, columns: Sequence[Column], known: Known, limits: Limits) -> CreateTable:
    """The table that CREATE TABLE … AS makes, whose query gives these columns."""
    grammar = ChangeGrammar(taken_out(statement_tokens(text, limits), text)[0], text)
    grammar.take_words("CREATE", "TABLE")
    said = grammar.create_table()
    defined = []
    for column in columns:
        try:
            kind = parse_type(column.type)
            type_text(kind, column.type)
        except SqlError:
            shown = f"column {column.name[:100]} of the query is {column.type}, which no table holds"
            raise SqlError(shown, suggestion="CAST it to another type") from None
        defined.append(Defined(exp.Identifier(this=column.name, quoted=True), kind, []))
    return create_table(replace(said, columns=defined, query=None), known, text)


def _read(
    text: str,
    limits: Limits,
    variables: Mapping[str, Variable],
    values: Values,
    known: Known,
    *,
    needs_query: bool = False,
    casts: bool = False,
    as_is: Sequence[int] = (),
    is_whole: bool = False,
    binds: bool = True,
) -> Change | Definition:
    try:
        tokens, moments = taken_out(statement_tokens(text, limits, variables), text)
        reader = _Reader(tokens, Given(text, values, known, variables), known, needs_query, casts, binds, moments)
        reader.is_whole, reader.as_is = is_whole, as_is
        return reader.read()
    except RecursionError:
        raise SqlError("the statement is nested too deeply") from None


class _Reader:
    def __init__(
        self,
        tokens: list[Token],
        given: Given,
        known: Known,
        needs_query: bool,
        casts: bool,
        binds: bool,
        moments: Sequence[Said] = (),
    ) -> None:
        self.grammar = ChangeGrammar(tokens, given.text)
        self.given = given
        self.text = given.text
        self.values = given.values
        self.known = known
        self.needs_query = needs_query
        self.casts = casts
        self.binds = binds
        self.moments = moments
        self.is_whole = False
        self.as_is: Sequence[int] = ()

    def read(self) -> Change | Definition:
        grammar = self.grammar
        try:
            change = self._change()
            if change is not None:
                return change
            definition = self._definition()
        except Mismatch as error:
            raise grammar.explained(error) from None
        if not isinstance(definition, CreateAs):
            self._refuse_moments()
        if self.values and not isinstance(definition, CreateAs):
            raise SqlError(f"{grammar.tokens[0].text.upper()[:40]} takes no parameters")
        return definition

    def _change(self) -> Change | None:
        grammar = self.grammar
        if grammar.take_words("INSERT"):
            return self._insert(grammar.insert())
        if grammar.take_words("UPDATE"):
            return self._update(grammar.update())
        if grammar.take_words("DELETE"):
            return self._delete(grammar.delete())
        if grammar.take_words("MERGE"):
            return self._merge(grammar.merge())
        if self.needs_query and grammar.take_words("TRUNCATE", "TABLE"):
            name = grammar.own_name()
            grammar.ended()
            return self._delete(Changed(name, [], None, None))
        return None

    def _definition(self) -> Definition:
        grammar = self.grammar
        if grammar.take_words("CREATE", "TABLE"):
            return self._create(grammar.create_table())
        if grammar.take_words("DROP", "TABLE"):
            if_exists = grammar.take_words("IF", "EXISTS")
            return DropTable(self._named(if_exists))
        if grammar.take_words("ALTER", "TABLE"):
            return alter_table(grammar, self._table(grammar.own_name()), self.text)
        if grammar.take_words("TRUNCATE", "TABLE"):
            table = self._only()
            self._needs_query(_ALL_DELETED, table)
            return TruncateTable(table)
        if grammar.take_words("FLUSH", "TABLE"):
            return FlushTable(self._only())
        if grammar.take_words("SHOW", "CREATE", "TABLE"):
            return ShowCreateTable(self._only())
        if grammar.take_words("SHOW", "TABLE", "STATUS"):
            return ShowTableStatus(self._only() if grammar.peek() else None)
        if grammar.take_words("REBALANCE", "TABLES"):
            return Rebalance(self._leaving(), is_plan=False)
        if grammar.take_words("SHOW", "REBALANCE"):
            return Rebalance(self._leaving(), is_plan=True)
        if grammar.take_words("START", "TRANSACTION"):
            grammar.ended()
            return Begin()
        for word, kind in (("BEGIN", Begin), ("COMMIT", Commit), ("ROLLBACK", Rollback)):
            if grammar.take_words(word):
                grammar.take_words("TRANSACTION") or grammar.take_words("WORK")
                grammar.ended()
                return kind()
        start = grammar.peek()
        shown = start.text.upper()[:40]
        message = f"{shown} is no statement about tables of our own: these are {_ADMITTED}"
        raise sql_error(message, self.text, start.start, start.end)

    def _create(self, said: TableDefinition) -> CreateTable | CreateAs:
        if said.query is None:
            return create_table(said, self.known, self.text)
        name = new_name(said, self.known, self.text)
        if name.lower() in self.known.tables:
            return CreateTable(self.known.tables[name.lower()], if_not_exists=True)
        if not self.binds:
            return CreateAs(None)
        check_said(said.query, said.tokens, self.text)
        return CreateAs(self._bound_query(said.query, said.tokens))

    def _leaving(self) -> tuple[str, ...]:
        """Members that shall have no rows any more."""
        leaving = self.grammar.names() if self.grammar.take_words("WITHOUT") else []
        self.grammar.ended()
        return members_named("WITHOUT", leaving, self.known, self.text)

    def _only(self) -> OwnTable:
        table = self._named(False)
        assert table is not None
        return table

    def _named(self, if_exists: bool) -> OwnTable | None:
        """The table that the rest of the statement names."""
        name = self.grammar.own_name()
        self.grammar.ended()
        return None if if_exists and name.name.lower() not in self.known.tables else self._table(name)

    def _table(self, name: exp.Table) -> OwnTable:
        table = self.known.tables.get(name.name.lower())
        if table is not None:
            return table
        if self.known.catalog.lookup((name.name,)) is not None:
            message = f"table {name.name} is one of the configuration, which Skerry only reads"
            raise error_at(f"{message}; CREATE TABLE makes tables that are written", self.text, name)
        known = [each.name for each in self.known.tables.values()]
        raise error_at(f"unknown table {name.name}{did_you_mean(name.name, known)}", self.text, name)

    def _written(self, name: exp.Table, action: Action) -> OwnTable:
        table = self._table(name)
        self.known.check_may(action, table)
        return table

    # --- INSERT ---
    def _insert(self, said: Inserted) -> Insert:
        table = self._written(said.name, "insert")
        columns = self._places(table, said.columns)
        self._check_missing(table, columns, said.name)
        if said.rows is None:
            assert said.query is not None
            reason = "a query gives the rows"
            self._needs_query(reason, table, is_read=False)
            self._check_width(said.query, table, columns)
            check_said(said.query, said.tokens, self.text)
            query = self._bound_query(self._as_stored(said.query, table, columns), said.tokens)
            return Insert(table, self.text, query.parameters, query, reason, columns, said.policy, None)
        self._refuse_moments()
        rows = tuple(self._row(row, table, columns, place) for place, row in enumerate(said.rows, 1))
        is_plain_row = all(value is None or is_plain(value) for row in rows for value in row)
        if is_plain_row and not self.needs_query:
            parameters = self._bound([value for row in rows for value in row if value is not None])
            return Insert(table, self.text, parameters, None, "", columns, said.policy, rows)
        reason = "" if is_plain_row else "a value is computed by Spark"
        self._needs_query(reason, table, is_read=False)
        check_said(exp.Values(expressions=said.rows), said.tokens, self.text)
        made = exp.Values(expressions=[])
        for row in rows:
            values = [self._or_default(value, table, place) for value, place in zip(row, columns, strict=True)]
            made.append("expressions", exp.Tuple(expressions=values))
        query = self._bound_query(self._as_stored(made, table, columns), said.tokens)
        return Insert(table, self.text, query.parameters, query, reason, columns, said.policy, None)

    def load(self, said: Inserted) -> Insert:
        table = self._written(said.name, "insert")  # before any row is sent
        if said.policy is Policy.REPLACE:
            self.known.check_may("update", table)
        columns = self._places(table, said.columns)
        self._check_missing(table, columns, said.name, "the rows that are loaded must have it")
        rows = [self._row(row, table, columns, place) for place, row in enumerate(said.rows or (), 1)]
        if len(rows) != 1 or not all(isinstance(value, exp.Placeholder) for value in rows[0]):
            raise SqlError("rows are loaded by INSERT INTO … VALUES (?, …): one row of markers")
        return Insert(table, self.text, {}, None, "", columns, said.policy, None)

    def _needs_query(self, reason: str, table: OwnTable, *, is_read: bool = True) -> None:
        if not self.binds:
            raise NeedsQuery(reason, table, is_read)

    def _bound_query(self, tree: exp.Expr, tokens: list[Token]) -> Query:
        return bound_query(tree, tokens, self.given, self.moments)

    def _refuse_moments(self) -> None:
        """What is written is read as it is now, and so is all else beside it."""
        for each in self.moments:
            message = (
                "AS OF is for SELECT, INSERT … SELECT and CREATE TABLE … AS: this statement reads what is there now"
            )
            raise sql_error(message, self.text, each.first.start, each.last.end)

    def _as_stored(self, query: exp.Expr, table: OwnTable, columns: tuple[int, ...]) -> exp.Expr:
        """The query, around it the casts to the columns' types if they are asked for."""
        if not self.casts:
            return query
        names = [f"{_VALUE}{number}" for number in range(len(columns))]
        alias = exp.TableAlias(this=_name(_GIVEN), columns=[_name(name) for name in names])
        given = [column_of(name, _GIVEN) for name in names]
        pairs = enumerate(zip(given, columns, strict=True))
        casts = [self._cast(value, table, place, number) for number, (value, place) in pairs]
        listed = [exp.Alias(this=value, alias=_name(name)) for value, name in zip(casts, names, strict=True)]
        return exp.Select(expressions=listed, from_=exp.From(this=exp.Subquery(this=query, alias=alias)))

    def _cast(self, value: exp.Expr, table: OwnTable, place: int, number: int) -> exp.Expr:
        """`number`: of the value among those that the query gives."""
        if not self.casts or number in self.as_is:
            return value
        return exp.Cast(this=value, to=parse_type(table.columns[place].type))

    def _places(self, table: OwnTable, names: list[exp.Identifier] | None) -> tuple[int, ...]:
        if names is None:
            return tuple(range(len(table.columns)))
        found: list[int] = []
        for name in names:
            place = self._place(table, name)
            if place in found:
                raise error_at(f"column {name.name} stands there twice", self.text, name)
            found.append(place)
        return tuple(found)

    def _place(self, table: OwnTable, name: exp.Identifier) -> int:
        place = column_place(table, name.name)
        if place is None:
            nearest = did_you_mean(name.name, [column.name for column in table.columns])
            raise error_at(f"table {table.name} has no column {name.name[:100]}{nearest}", self.text, name)
        return place

    def _check_missing(
        self,
        table: OwnTable,
        columns: tuple[int, ...],
        name: exp.Table,
        must: str = "the INSERT must give it a value",
    ) -> None:
        for place, column in enumerate(table.columns):
            if place not in columns and not column.is_nullable and column.default is None:
                message = f"column {column.name} is NOT NULL and has no default: {must}"
                raise error_at(message, self.text, name)

    def _check_width(self, query: exp.Expr, table: OwnTable, columns: tuple[int, ...]) -> None:
        """Where the query's own list tells how many columns it gives."""
        items = query.expressions if isinstance(query, exp.Select) else []
        if not items or query.args.get("written") or any(item.find(exp.Star, exp.Aliases) for item in items):
            return
        if len(items) != len(columns):
            message = f"the query gives {len(items)} columns, table {table.name} takes {len(columns)} here"
            raise error_at(message, self.text, query)

    def _row(self, row: exp.Expr, table: OwnTable, columns: tuple[int, ...], place: int) -> tuple[exp.Expr | None, ...]:
        values = row.expressions if isinstance(row, exp.Tuple) else [row.this if isinstance(row, exp.Paren) else row]
        if len(values) != len(columns):
            message = f"row {place} has {len(values)} values for {len(columns)} columns of {table.name}"
            raise error_at(message, self.text, row)
        for value in values:
            if isinstance(value, exp.Alias | exp.Aliases):
                raise error_at("a value has no alias", self.text, value)
        return tuple(None if _is_default(value) else value for value in values)

    def _or_default(self, value: exp.Expr | None, table: OwnTable, place: int) -> exp.Expr:
        if value is not None:
            return value
        column = table.columns[place]
        if column.default is None:
            return exp.Null()
        return exp.Cast(this=parse_expression(column.default), to=parse_type(column.type))

    # --- UPDATE and DELETE ---
    def _update(self, said: Changed) -> Update:
        table = self._written(said.name, "update")
        self._refuse_moments()
        assignments: dict[int, Piece] = {}
        for name, piece in said.assignments:
            place = self._place(table, name)
            if place in assignments:
                raise error_at(f"column {table.columns[place].name} is set twice", self.text, name)
            assignments[place] = piece
        trees = {place: None if _is_default(piece.tree) else piece.tree for place, piece in assignments.items()}
        alias = said.name.alias_or_name
        try:
            keys = self._update_keys(said, table, trees, alias)
            reason = ""
        except Unsure as error:
            keys, reason = None, error.reason
        if keys is not None and not self.needs_query:
            parameters = self._bound([*(tree for tree in trees.values() if tree is not None), *_flat(keys)])
            return Update(table, self.text, parameters, None, "", tuple(trees.items()), keys)
        self._needs_query(reason, table)
        if moves_rows(table, trees) or self.is_whole:
            places: Sequence[int] = range(len(table.columns))
        else:
            places = list(trees)
        listed = [
            self._cast(self._or_default(trees[place], table, place), table, place, number)
            if place in trees
            else column_of(table.columns[place].name, alias)
            for number, place in enumerate(places)
        ]
        query = self._keyed_query(said, table, alias, listed, list(assignments.values()))
        return Update(table, self.text, query.parameters, query, reason, tuple(trees.items()), None)

    def _update_keys(
        self, said: Changed, table: OwnTable, trees: Mapping[int, exp.Expr | None], alias: str
    ) -> tuple[tuple[exp.Expr, ...], ...]:
        if said.from_ is not None:
            raise Unsure("FROM joins other tables")
        if moves_rows(table, trees):
            raise Unsure("a column of the key is set, so that rows move, which are read first")
        if any(tree is not None and not is_plain(tree) for tree in trees.values()):
            raise Unsure("a value is computed by Spark")
        if said.where is None:
            raise Unsure("all rows are updated, whose keys are read first")
        return keys_said(said.where.tree, table, alias)

    def _delete(self, said: Changed) -> Delete:
        table = self._written(said.name, "delete")
        self._refuse_moments()
        alias = said.name.alias_or_name
        if said.where is None and self.binds and not self.needs_query:
            if self.values:
                self._bound([])
            return Delete(table, self.text, {}, None, "", None)
        reason = _ALL_DELETED if said.where is None else ""
        try:
            keys = keys_said(said.where.tree, table, alias) if said.where is not None else ()
        except Unsure as error:
            reason = error.reason
        if not reason and not self.needs_query:
            return Delete(table, self.text, self._bound(_flat(keys)), None, "", keys)
        self._needs_query(reason, table)
        query = self._keyed_query(said, table, alias, [], [])
        return Delete(table, self.text, query.parameters, query, reason, None)

    # --- MERGE ---
    def _merge(self, said: Merged) -> Merge:
        table = self._table(said.name)
        for clause in said.clauses:
            self.known.check_may(clause.action, table)
        reason = "MERGE reads the table and what is merged into it"
        self._refuse_moments()
        self._needs_query(reason, table)
        merging = Merging(said, table, self.given)
        clauses, given = [], itertools.count()
        for number, clause in enumerate(said.clauses):
            values = self._merge_values(merging, clause, table)
            for place, value in values.items():
                merging.add(number, self._cast(value, table, place, next(given)))
            clauses.append((clause.action, tuple(values)))
        query = self._bound_query(merging.query(), self.grammar.tokens)
        return Merge(table, self.text, query.parameters, query, reason, tuple(clauses), merging.may_match_again)

    def _merge_values(self, merging: Merging, clause: When, table: OwnTable) -> dict[int, exp.Expr]:
        """By position: what a clause sets or gives; of a row whose key it sets, all of it."""
        if clause.assignments is None:
            return {place: column_of(column.name, merging.source) for place, column in enumerate(table.columns)}
        values: dict[int, exp.Expr] = {}
        for name, piece in clause.assignments:
            place = self._place(table, name)
            if place in values:
                raise error_at(f"column {table.columns[place].name} is set twice", self.text, name)
            is_default = _is_default(piece.tree)
            if not is_default:
                merging.check(clause, piece)
            values[place] = self._or_default(None if is_default else piece.tree, table, place)
        if clause.action == "insert":
            self._check_missing(table, tuple(values), merging.said.name)
        elif clause.action == "update" and (moves_rows(table, values) or self.is_whole):
            for place, column in enumerate(table.columns):
                values.setdefault(place, column_of(column.name, merging.target))
        return values

    def _keyed_query(
        self, said: Changed, table: OwnTable, alias: str, listed: list[exp.Expr], pieces: list[Piece]
    ) -> Query:
        """The query that gives the key of each row that is meant, and `listed`."""
        for piece in (*pieces, said.from_, said.where):
            if piece is not None and not _is_default(piece.tree):
                check_said(piece.tree, piece.tokens, self.text)
        keys: list[exp.Expr] = [column_of(name, alias) for name in table.primary_key]
        values = [exp.Alias(this=tree, alias=_name(f"{_VALUE}{place}")) for place, tree in enumerate(listed)]
        select = exp.Select(expressions=[*keys, *values], from_=exp.From(this=said.name))
        if said.from_ is not None:
            others = said.from_.tree
            joins = [exp.Join(this=others.args["from_"].this, kind="COMMA"), *(others.args.get("joins") or [])]
            select.set("joins", joins)
            for key in ("laterals", "pivots"):
                select.set(key, others.args.get(key))
        if said.where is not None:
            select.set("where", exp.Where(this=said.where.tree))
        return self._bound_query(select, self.grammar.tokens)

    def _bound(self, nodes: Sequence[exp.Expr]) -> dict[str, Any]:
        return bind_parameters(exp.Tuple(expressions=list(nodes)), self.values, self.text)


def _flat(keys: tuple[tuple[exp.Expr, ...], ...]) -> list[exp.Expr]:
    return [value for values in keys for value in values]


def _is_default(node: exp.Expr) -> bool:
    """The word DEFAULT; a column may be called so, in backquotes."""
    is_column = isinstance(node, exp.Column) and len(node.parts) == 1
    return is_column and node.name.upper() == "DEFAULT" and not node.this.quoted


def _name(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=False)
