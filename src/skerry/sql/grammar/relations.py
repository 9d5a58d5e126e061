"""What stands after FROM: tables, subqueries, joins, lateral views, VALUES, table functions, PIVOT."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import TokenType

from skerry.sql.grammar.cursor import NAMES, placed
from skerry.sql.grammar.expressions import ExpressionGrammar, column_of
from skerry.sql.nodes import Nearest, Sample

_TABLE_ALIASES = NAMES | {
    TokenType.FIRST,
    TokenType.RANGE,
    TokenType.ROW,
    TokenType.ROWS,
    TokenType.FILTER,
    TokenType.ANY,
}
_NEAREST_JOINS = ((None, None), (None, "INNER"), ("LEFT", None), ("LEFT", "OUTER"))
_NEAREST_MAX = 100_000
JOIN_STARTS = (
    TokenType.JOIN,
    TokenType.INNER,
    TokenType.CROSS,
    TokenType.LEFT,
    TokenType.RIGHT,
    TokenType.FULL,
    TokenType.SEMI,
    TokenType.ANTI,
    TokenType.NATURAL,
)


class RelationGrammar(ExpressionGrammar):
    def from_clause(self) -> tuple[exp.From, list[exp.Expr], list[exp.Lateral], list[exp.Expr]]:
        """FROM's first relation, its joins in order (PIVOTs among them), lateral views, PIVOTs after those."""
        self.expect(TokenType.FROM, "FROM")
        first = self._relation()
        joins: list[exp.Expr] = self.extensions()
        while self.take(TokenType.COMMA):
            joins.append(exp.Join(this=self._relation(), kind="COMMA"))
            joins.extend(self.extensions())
        laterals = self.lateral_views()
        pivots: list[exp.Expr] = []
        while (pivot := self.pivot()) is not None:
            pivots.append(pivot)
        return exp.From(this=first), joins, laterals, pivots

    def lateral_views(self) -> list[exp.Lateral]:
        views = []
        while self.sees_words("LATERAL", "VIEW"):
            start = self.next()
            self.next()
            outer = bool(self.take(TokenType.OUTER))
            if not self.sees(*NAMES) or not self.sees(TokenType.L_PAREN, ahead=1):
                self.fail("expected a generator such as explode(…)")
            call = self.plain_call()
            table = self.identifier("the view's name") if self.sees(*NAMES) else None
            columns = []
            if self.take(TokenType.ALIAS) or (table is not None and self.sees(*NAMES)):
                columns = self.listed(self.identifier)
            alias = exp.TableAlias(this=table, columns=columns) if table is not None or columns else None
            views.append(placed(exp.Lateral(this=call, view=True, outer=outer or None, alias=alias), start))
        return views

    def _relation(self) -> exp.Expr:
        if self.sees(TokenType.LATERAL) and not self.sees_words("LATERAL", "VIEW"):
            return self._lateral()
        return self._relation_primary()

    def _lateral(self) -> exp.Expr:
        start = self.expect(TokenType.LATERAL, "LATERAL")
        if self.sees(TokenType.L_PAREN):
            query = exp.Subquery(this=self.wrapped(self.query))
            return placed(exp.Lateral(this=query, alias=self.table_alias()), start)
        this = self._table_function()
        return placed(exp.Lateral(this=this, alias=self.table_alias()), start)

    def _relation_primary(self) -> exp.Expr:
        start = self.peek()
        if self.sees(TokenType.L_PAREN):
            query = self.attempt(lambda: self.wrapped(self.query))
            if query is not None:
                sample = self.sample()
                return placed(exp.Subquery(this=query, sample=sample, alias=self.table_alias()), start)
            self.next()
            inner = self._relation()
            joins = self.extensions()
            self.expect(TokenType.R_PAREN, ")")
            if self.sees(TokenType.TABLE_SAMPLE):
                self.refuse("TABLESAMPLE stands behind a table or a query, not behind a join in brackets")
            # A parenthesised join: a Subquery over its first relation, which carries the joins.
            return placed(exp.Subquery(this=inner, joins=joins, alias=self.table_alias()), start)
        if self.sees(TokenType.VALUES):
            return self.inline_table()
        if self.sees(*NAMES, TokenType.RANGE) and self.sees(TokenType.L_PAREN, ahead=1):
            return placed(exp.Table(this=self._table_function(), alias=self.table_alias()), start)
        return self.table()

    def table(self) -> exp.Table:
        """A table with its alias."""
        table = self.named_table()
        self._refuse_versions()
        table.set("sample", self.sample())
        table.set("alias", self.table_alias())
        return table

    def named_table(self) -> exp.Table:
        start = self.peek()
        if not self.sees(*NAMES):
            self.fail("expected a table")
        parts = [self.identifier("a table", is_whole=True)]
        while self.take(TokenType.DOT):
            parts.append(self.identifier("a table"))
        if self.sees(TokenType.L_PAREN) and len(parts) > 1:
            shown = ".".join(part.name for part in parts)
            self.refuse(f"unknown table function {shown}: name it without catalog or schema", start)
        if len(parts) > 3:
            self.refuse("a table's name has at most three parts", start)
        keys = ("this", "db", "catalog")
        return placed(exp.Table(**dict(zip(keys, reversed(parts), strict=False))), start, self.peek(-1))

    def _refuse_versions(self) -> None:
        if (
            self.sees(TokenType.FOR)
            or self.sees_words("VERSION", "AS", "OF")
            or self.sees_words("TIMESTAMP", "AS", "OF")
        ):
            self.refuse("VERSION AS OF and TIMESTAMP AS OF take a constant, behind a table of our own")

    def _nearest_follows(self) -> bool:
        return self.sees_words("APPROX", "NEAREST") or self.sees_words("EXACT", "NEAREST")

    def _nearest(self, join: exp.Join) -> Nearest:
        start = self.next()
        self.next()
        number = self.take(TokenType.NUMBER)
        if number is not None and not (number.text.isdecimal() and 1 <= int(number.text) <= _NEAREST_MAX):
            self.refuse(f"NEAREST takes 1 to {_NEAREST_MAX} rows", number)
        # Spark knows no others; nor those of a LATERAL relation.
        is_known = not join.args.get("method") and (join.args.get("side"), join.args.get("kind")) in _NEAREST_JOINS
        if not is_known or isinstance(join.this, exp.Lateral):
            self.refuse("NEAREST stands behind an inner or left outer join", start)
        if not (self.take_words("BY", "DISTANCE") or self.take_words("BY", "SIMILARITY")):
            self.fail("expected BY DISTANCE or BY SIMILARITY")
        direction = exp.var(self.peek(-1).text.upper())
        made = Nearest(kind=exp.var(start.text.upper()), direction=direction, this=self.expression())
        if number is not None:
            made.set("number", exp.Literal.number(number.text))
        return placed(made, start)

    def sample(self) -> Sample | None:
        """TABLESAMPLE, in the forms that are a LIMIT or the whole; which rows others take, files and tasks decide."""
        start = self.take(TokenType.TABLE_SAMPLE)
        if start is None:
            return None
        made = Sample(this=self.attempt(lambda: self.wrapped(self._sample_rows)))
        if made.this is None:
            words = self.wrapped(self._sample_words)
            made.set("this", exp.var(" ".join(words)))
            whole = words in (["100", "PERCENT"], ["BUCKET", words[1], "OUT", "OF", words[1]])
            if not whole:
                self.refuse(
                    "TABLESAMPLE is admitted for a number of ROWS or the whole table: which rows another sample holds "
                    "depends on how each site stores the table",
                    start,
                )
        if self.take_words("REPEATABLE"):
            made.set("seed", self.wrapped(lambda: exp.Literal.number(self.expect(TokenType.NUMBER, "a number").text)))
        return placed(made, start)

    def _sample_rows(self) -> exp.Expr:
        rows = self.expression()
        self.expect(TokenType.ROWS, "ROWS")
        return rows

    def _sample_words(self) -> list[str]:
        words = []
        while not self.sees(TokenType.R_PAREN) and self.peek():
            words.append(self.next().text.upper())
        return words if len(words) > 1 else [*words, "", ""]

    def _table_function(self) -> exp.Expr:
        if not (self.sees(*NAMES, TokenType.RANGE) and self.sees(TokenType.L_PAREN, ahead=1)):
            self.fail("expected a table function")
        return self.plain_call()

    def inline_table(self) -> exp.Values:
        start = self.expect(TokenType.VALUES, "VALUES")
        rows = self.listed(self.expression)
        return placed(exp.Values(expressions=rows, alias=self.table_alias()), start)

    def table_alias(self) -> exp.TableAlias | None:
        explicit = self.take(TokenType.ALIAS)
        if not explicit and (not self.sees(*_TABLE_ALIASES) or self.qualify_follows() or self._nearest_follows()):
            return None
        start = self.peek()
        name = self.identifier("an alias")
        columns = self.names() if self.sees(TokenType.L_PAREN) else None
        return placed(exp.TableAlias(this=name, columns=columns), start)

    def extensions(self) -> list[exp.Expr]:
        found: list[exp.Expr] = []
        while True:
            if self.sees(*JOIN_STARTS):
                found.append(self.join())
            elif (pivot := self.pivot()) is not None:
                found.append(pivot)
            else:
                return found

    def join(self) -> exp.Join:
        start = self.peek()
        join = exp.Join()
        if self.take(TokenType.NATURAL):
            join.set("method", "NATURAL")
        if token := self.take(TokenType.LEFT, TokenType.RIGHT, TokenType.FULL):
            join.set("side", token.text.upper())
            if kind := self.take(TokenType.OUTER, TokenType.SEMI, TokenType.ANTI):
                join.set("kind", kind.text.upper())
        elif token := self.take(TokenType.INNER, TokenType.CROSS, TokenType.SEMI, TokenType.ANTI):
            join.set("kind", token.text.upper())
        self.expect(TokenType.JOIN, "JOIN")
        join.set("this", self._relation())
        if self._nearest_follows():
            join.set("nearest", self._nearest(join))
        elif self.take(TokenType.ON):
            join.set("on", self.expression())
        elif self.take(TokenType.USING):
            join.set("using", self.names())
        return placed(join, start)

    def pivot(self) -> exp.Pivot | None:
        if not self.sees(TokenType.PIVOT, TokenType.UNPIVOT):
            return None
        start = self.next()
        unpivot = start.token_type == TokenType.UNPIVOT
        nulls = None
        if unpivot and (self.sees_words("INCLUDE", "NULLS") or self.sees_words("EXCLUDE", "NULLS")):
            nulls = self.next().text.upper() == "INCLUDE"
            self.next()
        self.expect(TokenType.L_PAREN, "(")
        values = [self._pivot_columns()] if unpivot else self.listed(self.named_expression)
        self.expect(TokenType.FOR, "FOR")
        column = self._pivot_columns()
        self.expect(TokenType.IN, "IN")
        items = self.wrapped(lambda: self.listed(self.named_expression))
        self.expect(TokenType.R_PAREN, ")")
        field = exp.In(this=column, expressions=items)
        pivot = exp.Pivot(expressions=values, fields=[field], unpivot=unpivot, include_nulls=nulls)
        alias = self.table_alias()
        if alias is not None and alias.args.get("columns"):
            self.refuse("the alias of PIVOT and UNPIVOT takes no columns", start)
        pivot.set("alias", alias)
        return placed(pivot, start)

    def _pivot_columns(self) -> exp.Expr:
        if self.sees(TokenType.L_PAREN):
            return exp.Tuple(expressions=[column_of([name]) for name in self.names()])
        return column_of([self.identifier("a column")])
