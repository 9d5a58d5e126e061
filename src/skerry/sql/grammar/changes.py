"""Statements about tables of our own, as they were written: CREATE TABLE, ALTER TABLE, INSERT, UPDATE, DELETE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from skerry.model.commits import Policy
from skerry.sql.grammar.cursor import placed
from skerry.sql.grammar.pipes import PipeGrammar
from skerry.sql.nodes import SparkType

_PLAIN = (
    *(TokenType.STRING, TokenType.NUMBER, TokenType.HEX_STRING, TokenType.NULL, TokenType.TRUE, TokenType.FALSE),
    *(TokenType.PLACEHOLDER, TokenType.COLON),
)
_POLICIES = {"FAIL": Policy.FAIL, "NOTHING": Policy.NOTHING, "REPLACE": Policy.REPLACE}


@dataclass(frozen=True)
class Defined:
    """A column of CREATE TABLE or ADD COLUMN. `default_tokens`: what its DEFAULT was written as."""

    name: exp.Identifier
    type: SparkType
    type_tokens: list[Token]
    is_nullable: bool = True
    default: exp.Expr | None = None
    default_tokens: list[Token] = field(default_factory=list)


@dataclass(frozen=True)
class TableDefinition:
    """`keys`: every PRIMARY KEY that was said. `distributed`: columns, none for GLOBALLY; None if nothing was said.

    Without columns a `query` gives them, which `tokens` are.
    """

    name: exp.Table
    if_not_exists: bool
    columns: list[Defined]
    keys: list[list[exp.Identifier]]
    distributed: list[exp.Identifier] | None
    members: list[exp.Identifier] | None
    options: list[tuple[exp.Identifier, Token]]
    query: exp.Expr | None = None
    tokens: list[Token] = field(default_factory=list)


@dataclass(frozen=True)
class Inserted:
    """`rows` of VALUES, or the `query`, which `tokens` are."""

    name: exp.Table
    columns: list[exp.Identifier] | None
    rows: list[exp.Expr] | None
    query: exp.Expr | None
    tokens: list[Token]
    policy: Policy


@dataclass(frozen=True)
class Piece:
    """A part of a statement, with its tokens: what is rendered from it must say the same."""

    tree: exp.Expr
    tokens: list[Token]


@dataclass(frozen=True)
class Changed:
    """UPDATE, or DELETE without assignments. `from_`: a SELECT with the relations behind FROM, and nothing else."""

    name: exp.Table
    assignments: list[tuple[exp.Identifier, Piece]]
    from_: Piece | None
    where: Piece | None


@dataclass(frozen=True)
class When:
    """A clause of MERGE. `assignments`: what UPDATE sets and INSERT gives; None is `*`."""

    on: Literal["matched", "not matched", "not matched by source"]
    condition: Piece | None
    action: Literal["insert", "update", "delete"]
    assignments: list[tuple[exp.Identifier, Piece]] | None


@dataclass(frozen=True)
class Merged:
    name: exp.Table
    source: Piece
    on: Piece
    clauses: list[When]


class ChangeGrammar(PipeGrammar):
    def ended(self) -> None:
        if self.peek():
            self.fail("the statement should end here")

    def own_name(self, *, may_be_called: bool = False) -> exp.Table:
        """`t`, or `t AS x` where the statement may call it so."""
        start = self.peek()
        parts = [self.identifier("a table's name", is_whole=True)]
        while self.take(TokenType.DOT):
            parts.append(self.identifier("a table's name"))
        if len(parts) > 1:
            shown = ".".join(part.name for part in parts)[:100]
            message = f"{shown}: a table of our own is at all its members, and named without a schema"
            self.refuse(message, Token(start.token_type, "", start=start.start, end=self.peek(-1).end))
        table = placed(exp.Table(this=parts[0]), start)
        if may_be_called:
            said = bool(self.take(TokenType.ALIAS))
            is_word = self.sees_words("SET") or self.sees_words("USING")
            if said or (self.sees(TokenType.VAR, TokenType.IDENTIFIER) and not is_word):
                table.set("alias", exp.TableAlias(this=self.identifier("an alias")))
        return table

    def create_table(self) -> TableDefinition:
        if_not_exists = self.take_words("IF", "NOT", "EXISTS")
        name = self.own_name()
        if self.sees(TokenType.ALIAS):
            self.refuse("write the key first: CREATE TABLE t PRIMARY KEY (a) DISTRIBUTED BY (a) AS SELECT …")
        keys: list[list[exp.Identifier]] = []
        columns: list[Defined] = []
        has_columns = not self.sees_words("PRIMARY", "KEY") and not self.sees_words("DISTRIBUTED")
        if has_columns:
            self.expect(TokenType.L_PAREN, "( and the columns")
        while has_columns:
            if self.sees_words("PRIMARY", "KEY") and self.sees(TokenType.L_PAREN, ahead=2):
                self.at += 2
                keys.append(self.names())
            else:
                columns.append(self.column())
            if not self.take(TokenType.COMMA):
                self.expect(TokenType.R_PAREN, ", or )")
                break
        if self.take_words("PRIMARY", "KEY"):
            keys.append(self.names())
        distributed, members = self._distributed()
        options = self._options() if self.take(TokenType.WITH) else []
        if has_columns and self.sees(TokenType.ALIAS):
            self.refuse("the query behind AS gives the columns: leave them out, or INSERT … SELECT afterwards")
        if has_columns:
            self.ended()
            return TableDefinition(name, if_not_exists, columns, keys, distributed, members, options)
        self.expect(TokenType.ALIAS, "AS and a query, which gives the columns")
        first = self.at
        query = self.query()
        self.ended()
        said = (name, if_not_exists, columns, keys, distributed, members, options)
        return TableDefinition(*said, query, self.tokens[first:])

    def _distributed(self) -> tuple[list[exp.Identifier] | None, list[exp.Identifier] | None]:
        if not self.take_words("DISTRIBUTED"):
            return None, None
        if self.take_words("GLOBALLY"):
            if self.sees(TokenType.IN):
                self.refuse("DISTRIBUTED GLOBALLY is at all members: leave IN (…) out")
            return [], None
        if not self.take_words("BY"):
            self.fail("expected BY (columns) or GLOBALLY")
        columns = self.names()
        return columns, self.names() if self.take(TokenType.IN) else None

    def _options(self) -> list[tuple[exp.Identifier, Token]]:
        return self.wrapped(lambda: self.listed(self._option))

    def _option(self) -> tuple[exp.Identifier, Token]:
        name = self.identifier("an option")
        self.expect(TokenType.EQ, "=")
        token = self.peek()
        if not self.take(TokenType.NUMBER, TokenType.STRING):
            self.fail("expected a number or a string")
        return name, token

    def column(self) -> Defined:
        name = self.identifier("a column's name")
        first = self.at
        kind = self.data_type()
        type_tokens = self.tokens[first : self.at]
        nullable: bool | None = None
        default: exp.Expr | None = None
        default_tokens: list[Token] = []
        while True:
            token = self.peek()
            if nullable is None and self.take_words("NOT", "NULL"):
                nullable = False
            elif nullable is None and self.take(TokenType.NULL):
                nullable = True
            elif default is None and self.take_words("DEFAULT"):
                first = self.at
                default = self.expression()
                default_tokens = self.tokens[first : self.at]
            elif self.sees_words("PRIMARY", "KEY"):
                self.refuse("write PRIMARY KEY (column, …) behind the columns", token)
            else:
                return Defined(name, kind, type_tokens, nullable is not False, default, default_tokens)

    def added(self) -> tuple[list[Defined], bool]:
        """`ADD COLUMN [IF NOT EXISTS] a INT` or `ADD COLUMNS (a INT, b INT)`."""
        if not self.take_words("COLUMN") and not self.take_words("COLUMNS"):
            self.fail("expected COLUMN")
        if_not_exists = self.take_words("IF", "NOT", "EXISTS")
        if self.sees(TokenType.L_PAREN):
            return self.wrapped(lambda: self.listed(self.column)), if_not_exists
        return self.listed(self.column), if_not_exists

    def dropped(self) -> tuple[list[exp.Identifier], bool]:
        if not self.take_words("COLUMN") and not self.take_words("COLUMNS"):
            self.fail("expected COLUMN")
        if_exists = self.take_words("IF", "EXISTS")
        names = self.names() if self.sees(TokenType.L_PAREN) else self.listed(self.identifier)
        return names, if_exists

    def renamed(self) -> tuple[exp.Identifier, exp.Identifier]:
        if not self.take_words("COLUMN"):
            self.fail("expected COLUMN")
        old = self.identifier("a column's name")
        if not self.take_words("TO"):
            self.fail("expected TO")
        return old, self.identifier("the column's new name")

    def insert(self) -> Inserted:
        if not self.take_words("INTO"):
            self.fail("expected INTO")
        if self.sees(TokenType.TABLE) and not self.sees(TokenType.L_PAREN, ahead=1):
            self.next()
        name = self.own_name()
        columns = None
        if self.sees(TokenType.L_PAREN) and not self._query_follows(1) and not self.sees(TokenType.FROM, ahead=1):
            columns = self.names()
        policy = self._policy()
        first = self.at
        if self.sees(TokenType.VALUES):
            self.next()
            rows = self.listed(lambda: self.attempt(self._plain_row) or self.expression())
            self.ended()
            return Inserted(name, columns, rows, None, self.tokens[first:], policy)
        query = self.query()
        self.ended()
        return Inserted(name, columns, None, query, self.tokens[first:], policy)

    def _plain_row(self) -> exp.Expr:
        """A row of literals and markers, as almost all are: it needs no look ahead, and there may be thousands."""
        start = self.expect(TokenType.L_PAREN, "(")
        values: list[exp.Expr] = []
        while not values or self.take(TokenType.COMMA):
            value = self._literal(self.peek()) if self.sees(*_PLAIN) else None
            if value is None or not self.sees(TokenType.COMMA, TokenType.R_PAREN):
                self.fail("expected a value")
            values.append(value)
        self.expect(TokenType.R_PAREN, ")")
        return placed(exp.Tuple(expressions=values) if len(values) > 1 else exp.Paren(this=values[0]), start)

    def _policy(self) -> Policy:
        """ON CONFLICT DO stands at the end, where a query's own ON may stand as well: it is taken off first."""
        starts = [place for place in range(self.at, len(self.tokens)) if self._is_conflict(place)]
        if not starts:
            return Policy.FAIL
        said = self.tokens[starts[-1] + 3 :]
        policy = _POLICIES.get(said[0].text.upper()) if len(said) == 1 and said[0].token_type == TokenType.VAR else None
        if policy is None:
            self.refuse("write ON CONFLICT DO FAIL, DO NOTHING or DO REPLACE", self.tokens[starts[-1]])
        self.tokens = self.tokens[: starts[-1]]
        return policy

    def _is_conflict(self, place: int) -> bool:
        return self.tokens[place].token_type == TokenType.ON and self.sees_words(
            "ON", "CONFLICT", "DO", ahead=place - self.at
        )

    def update(self) -> Changed:
        name = self.own_name(may_be_called=True)
        if not self.take_words("SET"):
            self.fail("expected SET")
        assignments = self.listed(self._set)
        from_ = self._piece(self._relations) if self.sees(TokenType.FROM) else None
        where = self._where()
        self.ended()
        return Changed(name, assignments, from_, where)

    def merge(self) -> Merged:
        if not self.take_words("INTO"):
            self.fail("expected INTO")
        name = self.own_name(may_be_called=True)
        if not self.take_words("USING"):
            self.fail("expected USING")
        source = self._piece(self._relation_primary)
        self.expect(TokenType.ON, "ON")
        on = self._piece(self.expression)
        clauses = []
        while self.take_words("WHEN"):
            clauses.append(self._when(name.alias_or_name))
        if not clauses:
            self.fail("expected WHEN MATCHED or WHEN NOT MATCHED")
        self.ended()
        return Merged(name, source, on, clauses)

    def _when(self, target: str) -> When:
        is_not = self.take_words("NOT")
        if not self.take_words("MATCHED"):
            self.fail("expected MATCHED")
        is_by_source = is_not and self.take_words("BY", "SOURCE")
        if is_not and not is_by_source:
            self.take_words("BY", "TARGET")
        condition = self._piece(self.expression) if self.take(TokenType.AND) else None
        if not self.take_words("THEN"):
            self.fail("expected THEN")
        if is_not and not is_by_source:
            if not self.take_words("INSERT"):
                self.fail("expected INSERT: no row of the table is meant")
            return When("not matched", condition, "insert", self._merge_insert())
        on: Literal["matched", "not matched by source"] = "not matched by source" if is_by_source else "matched"
        if self.take_words("DELETE"):
            return When(on, condition, "delete", [])
        if not self.take_words("UPDATE", "SET"):
            self.fail("expected UPDATE SET or DELETE")
        if not is_by_source and self.take(TokenType.STAR):
            return When(on, condition, "update", None)
        return When(on, condition, "update", self.listed(lambda: self._merge_set(target)))

    def _merge_insert(self) -> list[tuple[exp.Identifier, Piece]] | None:
        if self.take(TokenType.STAR):
            return None
        columns = self.names()
        self.expect(TokenType.VALUES, "VALUES")
        start = self.peek()
        values = self.wrapped(lambda: self.listed(lambda: self._piece(self.expression)))
        if len(values) != len(columns):
            self.refuse(f"{len(values)} values for {len(columns)} columns", start)
        return list(zip(columns, values, strict=True))

    def _merge_set(self, target: str) -> tuple[exp.Identifier, Piece]:
        column = self.identifier("a column")
        if self.take(TokenType.DOT):
            if column.name.lower() != target.lower():
                self.refuse(f"columns of {target} are set, and no others", self.peek(-2))
            column = self.identifier("a column")
        self.expect(TokenType.EQ, "=")
        return column, self._piece(self.expression)

    def delete(self) -> Changed:
        self.expect(TokenType.FROM, "FROM")
        name = self.own_name(may_be_called=True)
        where = self._where()
        self.ended()
        return Changed(name, [], None, where)

    def _set(self) -> tuple[exp.Identifier, Piece]:
        column = self.identifier("a column")
        if self.sees(TokenType.DOT):
            self.refuse("a column of the table itself is set, named without its table")
        self.expect(TokenType.EQ, "=")
        return column, self._piece(self.expression)

    def _relations(self) -> exp.Expr:
        select = exp.Select(expressions=[], written="FROM")
        self._from(select)
        return select

    def _where(self) -> Piece | None:
        return self._piece(self.expression) if self.take(TokenType.WHERE) else None

    def _piece(self, rule: Callable[[], exp.Expr]) -> Piece:
        first = self.at
        tree = rule()
        return Piece(tree, self.tokens[first : self.at])
