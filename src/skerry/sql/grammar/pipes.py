"""`query |> WHERE … |> SELECT …`: the operators of the pipe syntax, as they were written."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import TokenType

from skerry.sql.grammar.cursor import placed
from skerry.sql.grammar.queries import ENDINGS, QueryGrammar
from skerry.sql.grammar.relations import JOIN_STARTS
from skerry.sql.nodes import Assignment, Pipe, Piped

_SETS = {TokenType.UNION: "UNION", TokenType.EXCEPT: "EXCEPT", TokenType.INTERSECT: "INTERSECT"}


class PipeGrammar(QueryGrammar):
    def _piped(self, body: exp.Expr) -> exp.Expr:
        start, operators = self.peek(), []
        while self.sees_pipe():
            token = self.next()
            operator = placed(self._operator(), token)
            operator.set("single", token.token_type == TokenType.PIPE or None)
            operators.append(operator)
        return placed(Piped(this=body, expressions=operators), start) if operators else body

    def _operator(self) -> Pipe:
        kind = self.peek().token_type
        match kind:
            case TokenType.SELECT:
                return _pipe("SELECT", this=self._pipe_select())
            case TokenType.WHERE:
                self.next()
                return _pipe("WHERE", this=self.expression())
            case TokenType.ALIAS:
                self.next()
                return _pipe("AS", this=self.identifier("an alias"))
            case TokenType.PIVOT | TokenType.UNPIVOT:
                return _pipe("PIVOT", this=self.pivot())
            case TokenType.UNION | TokenType.EXCEPT | TokenType.INTERSECT:
                return self._set_operator(_SETS[kind])
            case TokenType.TABLE_SAMPLE:
                return _pipe("TABLESAMPLE", this=self.sample())
        if kind in JOIN_STARTS:
            return _pipe("JOIN", this=self.join())
        if self.take_words("EXTEND"):
            return _pipe("EXTEND", expressions=self.listed(self.named_expression))
        if self.take_words("DROP"):
            return _pipe("DROP", expressions=self.listed(self._dotted))
        if self.take_words("SET"):
            return _pipe("SET", expressions=self.listed(self._assignment))
        if self.take_words("AGGREGATE"):
            return self._aggregate()
        ends = _pipe("ENDS")
        self._organise(ends)
        if not any(ends.args.get(key) for key in ENDINGS):
            self.fail("expected an operator such as WHERE, SELECT, AGGREGATE or JOIN")
        return ends

    def _pipe_select(self) -> exp.Select:
        select = exp.Select()
        self._select_clause(select)
        if self.sees(TokenType.GROUP_BY):
            select.set("group", self._group())
        self._windows(select, "windows")
        return select

    def _set_operator(self, word: str) -> Pipe:
        self.next()
        quantifier = self.take(TokenType.DISTINCT, TokenType.ALL)
        is_distinct = quantifier is None or quantifier.token_type == TokenType.DISTINCT
        said = quantifier is not None and is_distinct
        return _pipe(word, this=self._query_primary(), distinct=is_distinct, said_distinct=said or None)

    def _assignment(self) -> Assignment:
        name = self.identifier("a column")
        self.expect(TokenType.EQ, "=")
        return Assignment(this=name, expression=self.expression())

    def _aggregate(self) -> Pipe:
        items = None if self.sees(TokenType.GROUP_BY) else self.listed(self.named_expression)
        group = None
        if start := self.take(TokenType.GROUP_BY):
            if self.sees(TokenType.ALL, TokenType.ROLLUP, TokenType.CUBE, TokenType.GROUPING_SETS):
                self.refuse("AGGREGATE groups by plain expressions, as in Spark")
            group = placed(exp.Group(expressions=self.listed(self.named_expression)), start)
        return _pipe("AGGREGATE", expressions=items, group=group)


def _pipe(kind: str, **parts: object) -> Pipe:
    return Pipe(kind=exp.var(kind), **parts)
