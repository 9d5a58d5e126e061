"""Queries: WITH, SELECT, set operations, and what orders and limits them."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from skerry.sql.grammar.cursor import Mismatch, placed
from skerry.sql.grammar.relations import RelationGrammar

_SET_OPERATIONS: dict[TokenType, type[exp.SetOperation]] = {
    TokenType.UNION: exp.Union,
    TokenType.EXCEPT: exp.Except,
    TokenType.INTERSECT: exp.Intersect,
}
_QUERY_STARTS = (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN, TokenType.FROM)
_SORTS: tuple[tuple[str, TokenType, type[exp.Expr]], ...] = (
    ("order", TokenType.ORDER_BY, exp.Order),
    ("cluster", TokenType.CLUSTER_BY, exp.Cluster),
    ("distribute", TokenType.DISTRIBUTE_BY, exp.Distribute),
    ("sort", TokenType.SORT_BY, exp.Sort),
)
# What may stand behind a query, or behind |>.
ENDINGS = ("order", "cluster", "distribute", "sort", "late_windows", "limit", "offset")


class QueryGrammar(RelationGrammar):
    def __init__(self, tokens: list[Token], text: str) -> None:
        super().__init__(tokens, text)
        self._queries: dict[int, tuple[exp.Expr, int] | Mismatch] = {}

    def query(self) -> exp.Expr:
        return self.remembered(self._queries, self._query)

    def _query(self) -> exp.Expr:
        ctes = self._ctes()
        body = self._piped(self._set_operations())
        self._organise(body)
        if ctes is not None:
            if body.args.get("with_") is not None:
                self.fail("expected a query without a WITH of its own")
            if isinstance(body, exp.Values):
                self.refuse("WITH before VALUES is not admitted; write SELECT * FROM VALUES …")
            body.set("with_", ctes)
        return body

    def _ctes(self) -> exp.With | None:
        start = self.take(TokenType.WITH)
        if start is None:
            return None
        # A query may be called recursive: the word is one where a name follows.
        recursive = self.sees(TokenType.RECURSIVE) and not self.sees(TokenType.ALIAS, TokenType.L_PAREN, ahead=1)
        if recursive:
            self.next()
        return placed(exp.With(expressions=self.listed(self._cte), recursive=recursive or None), start)

    def _cte(self) -> exp.CTE:
        start = self.peek()
        alias = placed(exp.TableAlias(this=self.identifier("the name of a WITH query")), start)
        if self.sees(TokenType.L_PAREN) and not self.sees(*_QUERY_STARTS, ahead=1):
            alias.set("columns", self.names())
        level = None
        if self.take_words("MAX", "RECURSION", "LEVEL"):
            level = exp.Literal.number(self.expect(TokenType.NUMBER, "a number").text)
        explicit = self.take(TokenType.ALIAS)
        cte = exp.CTE(this=self.wrapped(self.query), alias=alias, bare=None if explicit else True, level=level)
        return placed(cte, start)

    def _piped(self, body: exp.Expr) -> exp.Expr:
        """The query with its `|>` operators, which grammar/pipes.py reads."""
        return body

    def _set_operations(self) -> exp.Expr:
        """INTERSECT binds tighter than UNION and EXCEPT; all of them group to the left."""
        left = self._intersections()
        while self.sees(TokenType.UNION, TokenType.EXCEPT):
            left = self._set_operation(left, self._intersections)
        return left

    def _intersections(self) -> exp.Expr:
        left = self._query_primary()
        while self.sees(TokenType.INTERSECT):
            left = self._set_operation(left, self._query_primary)
        return left

    def _set_operation(self, left: exp.Expr, operand: object) -> exp.Expr:
        token = self.next()
        word = self.take(TokenType.DISTINCT, TokenType.ALL)
        node = _SET_OPERATIONS[token.token_type](
            this=left, distinct=word is None or word.token_type == TokenType.DISTINCT
        )
        if word is not None and word.token_type == TokenType.DISTINCT:
            node.set("said_distinct", True)
        if self.take_words("BY", "NAME"):
            node.set("by_name", True)
        assert callable(operand)
        node.set("expression", operand())
        return placed(node, token)

    def _query_primary(self) -> exp.Expr:
        start = self.peek()
        if self.sees(TokenType.SELECT):
            return self._select()
        if self.sees(TokenType.VALUES):
            return self.inline_table()
        if self.sees(TokenType.L_PAREN):
            return placed(exp.Subquery(this=self.wrapped(self.query)), start)
        if self.sees(TokenType.TABLE) and self.sees(TokenType.VAR, TokenType.IDENTIFIER, ahead=1):
            self.next()
            from_ = exp.From(this=self.named_table())
            return placed(exp.Select(expressions=[exp.Star()], from_=from_, written="TABLE"), start)
        if self.sees(TokenType.FROM):
            return self._from_first()
        self.fail("expected SELECT")

    def _from_first(self) -> exp.Select:
        """`FROM t SELECT a WHERE b`, or `FROM t` alone, which is all of it."""
        start = self.peek()
        select = exp.Select(written="FROM")
        self._from(select)
        if not self.sees(TokenType.SELECT):
            self._refuse_script()
            return placed(select, start)
        self._select_clause(select)
        self._clauses(select)
        self._organise(select)
        if self.sees(TokenType.SELECT):
            self.refuse("one SELECT for one FROM: write a UNION ALL of two queries")
        return placed(select, start)

    def _select(self) -> exp.Select:
        start, select = self.peek(), exp.Select()
        self._select_clause(select)
        if self.sees(TokenType.FROM):
            self._from(select)
        self._clauses(select)
        return placed(select, start)

    def _select_clause(self, select: exp.Select) -> None:
        self.expect(TokenType.SELECT, "SELECT")
        if token := self.take(TokenType.HINT):
            select.set("hint", _hint(token))
        if token := self.take(TokenType.DISTINCT):
            select.set("distinct", placed(exp.Distinct(), token))
        elif self.sees(TokenType.ALL) and not self.sees(TokenType.COMMA, TokenType.FROM, TokenType.DOT, ahead=1):
            self.next()
            select.set("said_all", True)
        self._refuse_script()
        select.set("expressions", self.listed(self.named_expression))
        self._refuse_script()

    def _from(self, select: exp.Select) -> None:
        from_, joins, laterals, pivots = self.from_clause()
        select.set("from_", from_)
        select.set("joins", joins or None)
        select.set("laterals", laterals or None)
        select.set("pivots", pivots or None)

    def _clauses(self, select: exp.Select) -> None:
        """What stands between FROM (or SELECT, where FROM is first) and ORDER BY."""
        laterals = self.lateral_views()
        if laterals and select.args.get("laterals"):
            self.refuse("lateral views stand behind FROM or behind SELECT, not behind both")
        if laterals:
            select.set("laterals", laterals)
        if self.take(TokenType.WHERE):
            select.set("where", exp.Where(this=self.expression()))
        if self.sees(TokenType.GROUP_BY):
            select.set("group", self._group())
        if self.take(TokenType.HAVING):
            select.set("having", exp.Having(this=self.expression()))
        self._windows(select, "windows")
        if self.qualify_follows():
            self.next()
            select.set("qualify", exp.Qualify(this=self.expression()))

    def _refuse_script(self) -> None:
        """`SELECT TRANSFORM(…) USING 'program'` and its old names run a program at the site."""
        if self.sees(TokenType.USING) and self.sees(TokenType.STRING, ahead=1):
            self.refuse("TRANSFORM … USING runs a program at the site: not admitted")
        if (self.sees_words("MAP") or self.sees_words("REDUCE")) and not self.sees(
            TokenType.L_PAREN, TokenType.COMMA, TokenType.FROM, TokenType.DOT, ahead=1
        ):
            following = (self.peek(ahead).token_type for ahead in range(1, len(self.tokens) - self.at))
            if TokenType.USING in following:
                self.refuse("MAP/REDUCE … USING runs a program at the site: not admitted")

    def _group(self) -> exp.Group:
        start = self.expect(TokenType.GROUP_BY, "GROUP BY")
        group = placed(exp.Group(), start)
        if self.sees(TokenType.ALL) and not self.sees(TokenType.COMMA, TokenType.DOT, ahead=1):
            self.next()
            group.set("all", True)
            return group
        group.set("expressions", self.listed(self._grouping))
        if self.take_words("WITH", "ROLLUP"):
            group.set("rollup", [exp.Rollup()])
        elif self.take_words("WITH", "CUBE"):
            group.set("cube", [exp.Cube()])
        elif self.sees(TokenType.GROUPING_SETS):
            group.set("grouping_sets", [self._grouping()])
        return group

    def _grouping(self) -> exp.Expr:
        if self.take(TokenType.GROUPING_SETS):
            return exp.GroupingSets(expressions=self.wrapped(lambda: self.listed(self._grouping_set)))
        if self.sees(TokenType.ROLLUP, TokenType.CUBE) and self.sees(TokenType.L_PAREN, ahead=1):
            kind = exp.Rollup if self.next().token_type == TokenType.ROLLUP else exp.Cube
            return kind(expressions=self.wrapped(lambda: self.listed(self._grouping_set)))
        return self.expression()

    def _grouping_set(self) -> exp.Expr:
        if self.sees(TokenType.L_PAREN) and self.sees(TokenType.R_PAREN, ahead=1):
            self.at += 2
            return exp.Tuple()
        return self._grouping()

    def _windows(self, node: exp.Expr, key: str) -> None:
        """WINDOW stands before ORDER BY (`windows`, of the SELECT) or behind it (`late_windows`, of the whole)."""
        if self.sees(TokenType.WINDOW):
            self.next()
            node.set(key, self.listed(self._named_window))

    def _named_window(self) -> exp.Expr:
        name = self.identifier("a window's name")
        self.expect(TokenType.ALIAS, "AS")
        return self.window(name, None)

    def _organise(self, node: exp.Expr) -> None:
        """ORDER BY and the rest, which belong to the whole of what was read before."""
        for key, token, kind in _SORTS:
            if self.take(token):
                rule = self.sort_item if key in ("order", "sort") else self.expression
                node.set(key, kind(expressions=self.listed(rule)))
        self._windows(node, "late_windows")
        if self.take(TokenType.LIMIT):
            node.set("limit", exp.Limit(expression=exp.var("ALL") if self.take(TokenType.ALL) else self.expression()))
        if self.take(TokenType.OFFSET):
            node.set("offset", exp.Offset(expression=self.expression()))


def _hint(token: Token) -> exp.Hint:
    """The lexer has read the names; there is no other hint than this one."""
    names = [exp.Identifier(this=name.strip("`"), quoted="`" in name) for name in token.text.split(", ")]
    return exp.Hint(expressions=[exp.Anonymous(this="BROADCAST", expressions=names)])
