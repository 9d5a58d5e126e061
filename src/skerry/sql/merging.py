"""MERGE as a query: which clause each pair of rows meets, and what that clause sets or gives. Pure."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Literal

from sqlglot import exp

from skerry.model.sharded import OwnTable
from skerry.sql.columns import ALWAYS, is_unit
from skerry.sql.functions import is_deterministic
from skerry.sql.grammar.changes import Merged, Piece, When
from skerry.sql.position import error_at
from skerry.sql.statement import Given, check_said
from skerry.sql.walk import find_all

# What is called so in the query.
_GIVEN = "skerry_given"
_MARK = "skerry_mark"
_CLAUSE = "skerry_clause"
_VALUE = "skerry_value_"
_SHOWN = {"matched": "MATCHED", "not matched": "NOT MATCHED", "not matched by source": "NOT MATCHED BY SOURCE"}


class Merging:
    """One statement. Each part of it is checked, and its columns are those that it may see, before `query` is made.

    As in Delta: ON and the clauses hold no queries, their conditions give the same each time, and where one side has no
    row a clause sees only columns of the other.
    """

    def __init__(self, said: Merged, table: OwnTable, given: Given) -> None:
        self.said = said
        self.target = said.name.alias_or_name
        self.source = said.source.tree.alias_or_name or _GIVEN
        self._table = table
        self._columns = {column.name.lower() for column in table.columns}
        self._given = given
        self._text = given.text
        self._listed: list[exp.Expr] = []
        if self.target.lower() == self.source.lower():
            raise error_at(f"both are called {self.target}: give one of them an alias", self._text, said.name)
        check_said(said.source.tree, said.source.tokens, self._text)
        self._check_order()
        self._check_condition(said.on)
        for clause in said.clauses:
            if clause.condition is not None:
                self._check_condition(clause.condition)
                self._bind(clause, clause.condition.tree)
        self._number = self._clause_number()

    @property
    def may_match_again(self) -> bool:
        """Whether several rows may match one: if all that is done with such a row is to delete it."""
        matched = [each for each in self.said.clauses if each.on == "matched"]
        return len(matched) == 1 and matched[0].action == "delete" and matched[0].condition is None

    def check(self, clause: When, piece: Piece) -> None:
        """SqlError for a value that is not admitted; names in it are bound to what the clause sees."""
        self._check(piece)
        self._bind(clause, piece.tree)

    def add(self, number: int, value: exp.Expr) -> None:
        """The next value of the query: NULL where clause `number` is not met, and not computed there."""
        is_met = exp.EQ(this=exp.Paren(this=self._number.copy()), expression=exp.Literal.number(number))
        self._listed.append(exp.Case(ifs=[exp.If(this=is_met, true=value)]))

    def query(self) -> exp.Select:
        """The clause's number, the key of the table's row, and all values that were added."""
        marked = [exp.Star(), _called(exp.Boolean(this=True), _MARK)]
        given = exp.Select(expressions=marked, from_=exp.From(this=self.said.source.tree))
        alias = exp.TableAlias(this=exp.Identifier(this=self.source, quoted=True))
        join = exp.Join(this=exp.Subquery(this=given, alias=alias), on=self.said.on.tree, **self._kind())
        return exp.Select(
            expressions=[
                _called(self._number, _CLAUSE),
                *(column_of(name, self.target) for name in self._table.primary_key),
                *(_called(tree, f"{_VALUE}{place}") for place, tree in enumerate(self._listed)),
            ],
            from_=exp.From(this=self.said.name),
            joins=[join],
            where=exp.Where(this=_is_there(exp.Paren(this=self._number.copy()))),
        )

    def _kind(self) -> dict[str, str]:
        """Of a join that has the rows without a match that a clause is about."""
        about = {clause.on for clause in self.said.clauses}
        if "not matched" in about:
            return {"side": "FULL" if "not matched by source" in about else "RIGHT", "kind": "OUTER"}
        return {"side": "LEFT", "kind": "OUTER"} if "not matched by source" in about else {"kind": "INNER"}

    def _clause_number(self) -> exp.Expr:
        """Of the first clause that a pair of rows meets, NULL if none. It stands in the query for each value."""
        has_target = _is_there(column_of(self._table.primary_key[0], self.target))
        has_source = _is_there(column_of(_MARK, self.source))
        there: dict[str, list[exp.Expr]] = {
            "matched": [has_target, has_source],
            "not matched": [_not(has_target)],
            "not matched by source": [_not(has_source)],
        }
        ifs = []
        for number, clause in enumerate(self.said.clauses):
            conditions = [each.copy() for each in there[clause.on]]
            if clause.condition is not None:
                conditions.append(exp.Paren(this=clause.condition.tree))
            whole = functools.reduce(lambda one, other: exp.And(this=one, expression=other), conditions)
            ifs.append(exp.If(this=whole, true=exp.Literal.number(number)))
        return exp.Case(ifs=ifs)

    # --- checks -------------------------------------------------------------------------------------------------------
    def _check_order(self) -> None:
        """Whatever follows a clause without a condition, of its kind, would never be met."""
        whole: set[Literal["matched", "not matched", "not matched by source"]] = set()
        for clause in self.said.clauses:
            if clause.on in whole:
                message = f"only the last WHEN {_SHOWN[clause.on]} may leave its condition out"
                raise error_at(message, self._text, self.said.name)
            if clause.condition is None:
                whole.add(clause.on)

    def _check(self, piece: Piece) -> None:
        check_said(piece.tree, piece.tokens, self._text)
        for query in find_all(piece.tree, exp.Query):
            raise error_at("MERGE takes no query here: join it in USING", self._text, query)

    def _check_condition(self, piece: Piece) -> None:
        self._check(piece)
        if not is_deterministic(piece.tree):
            message = "a condition of MERGE must give the same each time: compute such a value in USING"
            raise error_at(message, self._text, piece.tree)

    def _bind(self, clause: When, tree: exp.Expr) -> None:
        """Where one side has no row, names mean the other's columns, also if both have such a column."""
        if clause.on == "matched":
            return
        hidden, seen = (
            (self.source, self.target) if clause.on == "not matched by source" else (self.target, self.source)
        )
        for column in _columns_in(tree):
            first, name = column.parts[0].name.lower(), column.name.lower()
            if len(column.parts) > 1 and first == hidden.lower():
                message = f"WHEN {_SHOWN[clause.on]} has no row of {hidden}: only columns of {seen} are there"
                raise error_at(message, self._text, column)
            if len(column.parts) > 1 or isinstance(column.this, exp.Star):
                continue
            if name in self._columns:
                column.set("table", exp.Identifier(this=seen, quoted=True))
            elif clause.on == "not matched by source" and name not in ALWAYS | self._given.variables.keys():
                raise error_at(f"table {self._table.name} has no column {column.name[:100]}", self._text, column)


def _columns_in(tree: exp.Expr) -> Iterator[exp.Column]:
    """Those that are no names of a lambda's own, and no units."""
    named = {
        id(column)
        for each in find_all(tree, exp.Lambda)
        for column in find_all(each.this, exp.Column)
        if column.parts[0].name.lower() in {name.name.lower() for name in each.expressions}
    }
    return (each for each in find_all(tree, exp.Column) if id(each) not in named and not is_unit(each))


def column_of(name: str, table: str) -> exp.Column:
    return exp.Column(this=exp.Identifier(this=name, quoted=True), table=exp.Identifier(this=table, quoted=True))


def _called(tree: exp.Expr, name: str) -> exp.Alias:
    return exp.Alias(this=tree, alias=exp.Identifier(this=name, quoted=False))


def _is_there(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=value, expression=exp.Null()))


def _not(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Paren(this=value))
