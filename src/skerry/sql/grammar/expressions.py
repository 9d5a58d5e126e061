"""Expressions, with Spark's precedence: OR, AND, NOT, predicate, then the binary operators, unary, postfix."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from skerry.sql.grammar.calls import CallGrammar
from skerry.sql.grammar.cursor import NAMES, Mismatch, placed
from skerry.sql.nodes import (
    Collated,
    ColonCast,
    DistinctFrom,
    IntervalLiteral,
    IntervalPart,
    Quantified,
    TypedLiteral,
    UnaryPlus,
    UnsignedShift,
    VariantPath,
)

# Spark's binary operators, the loosest first; all of them group to the left.
_LEVELS: tuple[dict[TokenType, type[exp.Expr]], ...] = (
    {
        TokenType.EQ: exp.EQ,
        TokenType.NEQ: exp.NEQ,
        TokenType.LT: exp.LT,
        TokenType.LTE: exp.LTE,
        TokenType.GT: exp.GT,
        TokenType.GTE: exp.GTE,
        TokenType.NULLSAFE_EQ: exp.NullSafeEQ,
    },
    {TokenType.PIPE: exp.BitwiseOr},
    {TokenType.CARET: exp.BitwiseXor},
    {TokenType.AMP: exp.BitwiseAnd},
    {},  # shifts: see _shift_width
    {TokenType.PLUS: exp.Add, TokenType.DASH: exp.Sub, TokenType.DPIPE: exp.DPipe},
    {TokenType.STAR: exp.Mul, TokenType.SLASH: exp.Div, TokenType.MOD: exp.Mod, TokenType.DIV: exp.IntDiv},
)
_SHIFTS = 4
_BINARY = {token: (level, kind) for level, kinds in enumerate(_LEVELS) for token, kind in kinds.items()}
_UNARY: dict[TokenType, type[exp.Expr]] = {
    TokenType.DASH: exp.Neg,
    TokenType.PLUS: UnaryPlus,
    TokenType.TILDE: exp.BitwiseNot,
}
_LITERAL_TYPES = frozenset("DATE TIME TIMESTAMP TIMESTAMP_NTZ TIMESTAMP_LTZ".split())
_PATH_PART = re.compile(r"[\w .-]+", re.ASCII)
_INTERVAL_UNITS = frozenset(
    f"{unit}{plural}"
    for unit in "NANOSECOND MICROSECOND MILLISECOND SECOND MINUTE HOUR DAY WEEK MONTH YEAR".split()
    for plural in ("", "S")
)
# Keywords that are columns' names where nothing else can stand.
_SOFT = {
    TokenType.ALL,
    TokenType.ANY,
    TokenType.ASC,
    TokenType.CUBE,
    TokenType.DESC,
    TokenType.END,
    TokenType.ESCAPE,
    TokenType.FILTER,
    TokenType.FIRST,
    TokenType.INTERVAL,
    TokenType.LEFT,
    TokenType.OFFSET,
    TokenType.OVER,
    TokenType.PIVOT,
    TokenType.RANGE,
    TokenType.RECURSIVE,
    TokenType.RIGHT,
    TokenType.ROLLUP,
    TokenType.ROW,
    TokenType.ROWS,
    TokenType.SOME,
    TokenType.TABLE,
    TokenType.UNPIVOT,
    TokenType.VALUES,
    TokenType.WINDOW,
}


class ExpressionGrammar(CallGrammar):
    def __init__(self, tokens: list[Token], text: str) -> None:
        super().__init__(tokens, text)
        self._values: dict[int, tuple[exp.Expr, int] | Mismatch] = {}

    def expression(self) -> exp.Expr:
        disjunction: exp.Expr | None = None
        while True:
            conjunction = self._negation()
            while self.take(TokenType.AND):
                conjunction = exp.And(this=conjunction, expression=self._negation())
            disjunction = conjunction if disjunction is None else exp.Or(this=disjunction, expression=conjunction)
            if not self.take(TokenType.OR):
                return disjunction

    def _negation(self) -> exp.Expr:
        if self.take(TokenType.NOT):
            return exp.Not(this=self._negation())
        if self.sees(TokenType.EXISTS) and self.sees(TokenType.L_PAREN, ahead=1):
            start = self.next()
            query = self.attempt(lambda: self.wrapped(self.query))
            if query is not None:
                return placed(exp.Exists(this=query), start)
            self.at -= 1
        return self._predicated()

    def _predicated(self) -> exp.Expr:
        value = self.value()
        if self.take(TokenType.IS):
            negated = bool(self.take(TokenType.NOT))
            return _negated(self._is(value), negated)
        negated = self.sees(TokenType.NOT) and self.sees(
            TokenType.BETWEEN, TokenType.IN, TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE, ahead=1
        )
        if negated:
            self.next()
        predicate = self._predicate(value)
        return value if predicate is None else _negated(predicate, negated)

    def _is(self, value: exp.Expr) -> exp.Expr:
        if self.take(TokenType.NULL):
            return exp.Is(this=value, expression=exp.Null())
        if token := self.take(TokenType.TRUE, TokenType.FALSE):
            return exp.Is(this=value, expression=exp.Boolean(this=token.token_type == TokenType.TRUE))
        if self.take_words("UNKNOWN"):
            return exp.Is(this=value, expression=exp.var("UNKNOWN"))
        if self.take_words("DISTINCT", "FROM"):
            return DistinctFrom(this=value, expression=self.value())
        self.fail("expected NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM after IS")

    def _predicate(self, value: exp.Expr) -> exp.Expr | None:
        if self.take(TokenType.BETWEEN):
            low = self.value()
            self.expect(TokenType.AND, "AND (of BETWEEN)")
            return exp.Between(this=value, low=low, high=self.value())
        if self.take(TokenType.IN):
            return self._in(value)
        if self.take(TokenType.RLIKE):
            return exp.RegexpLike(this=value, expression=self.value())
        if token := self.take(TokenType.LIKE, TokenType.ILIKE):
            return self._like(value, exp.Like if token.token_type == TokenType.LIKE else exp.ILike)
        return None

    def _refuse_called(self, query: exp.Expr, begin: int, items: int) -> None:
        """To Spark `IN (SELECT (1))` and `(SELECT (1), 2)` are lists, whose first item calls a function `select`."""
        first, second = self.tokens[begin + 1 : begin + 3]
        is_called = first.token_type == TokenType.SELECT and second.token_type == TokenType.L_PAREN
        if is_called and isinstance(query, exp.Select) and len(query.expressions) >= items:
            is_list = all(key == "expressions" or value in (None, [], False) for key, value in query.args.items())
            if is_list and not isinstance(query.expressions[0], exp.Alias):
                self.refuse("Spark reads this SELECT (…) as a call: leave out the brackets behind it", first)

    def _in(self, value: exp.Expr) -> exp.Expr:
        begin = self.at
        query = self.attempt(lambda: self.wrapped(self.query))
        if query is not None:
            self._refuse_called(query, begin, 1)
            return exp.In(this=value, query=query)
        return exp.In(this=value, expressions=self.wrapped(lambda: self.listed(self.expression)))

    def _like(self, value: exp.Expr, kind: type[exp.Expr]) -> exp.Expr:
        if self.sees(TokenType.ANY, TokenType.SOME, TokenType.ALL) and self.sees(TokenType.L_PAREN, ahead=1):
            word = self.next().text.upper()
            patterns = self.wrapped(lambda: self.listed(self.expression))
            return kind(this=value, expression=Quantified(this=word, expressions=patterns))
        like = kind(this=value, expression=self.value())
        if self.take(TokenType.ESCAPE):
            mark = exp.Literal.string(self.expect(TokenType.STRING, "a string").text)
            return exp.Escape(this=like, expression=mark)
        return like

    def value(self) -> exp.Expr:
        return self.remembered(self._values, self._operation)

    def _operation(self, loosest: int = 0) -> exp.Expr:
        """Precedence climbing: one frame a level of brackets, not one a level of operators."""
        left = self._unary()
        while True:
            width = self._shift_width()
            if width is not None:
                level, kind = _SHIFTS, self._shift_kind(width)
            else:
                width = 1
                level, kind = _BINARY.get(self.peek().token_type, (-1, exp.Expr))
            if level < loosest or (kind is exp.BitwiseOr and self.sees_pipe()):
                return left
            self.at += width
            left = kind(this=left, expression=self._operation(level + 1))

    def _shift_kind(self, width: int) -> type[exp.Expr]:
        if width == 3:
            return UnsignedShift
        return exp.BitwiseLeftShift if self.sees(TokenType.LT) else exp.BitwiseRightShift

    def _shift_width(self) -> int | None:
        """`<<`, `>>`, `>>>` arrive as single signs (types nest with them); in a shift they touch."""
        kind = self.peek().token_type
        if kind not in (TokenType.LT, TokenType.GT):
            return None
        width = 1
        while self.sees(kind, ahead=width) and self.peek(width).start == self.peek(width - 1).end + 1:
            width += 1
        return width if width == 2 or (width == 3 and kind == TokenType.GT) else None

    def _unary(self) -> exp.Expr:
        kind = _UNARY.get(self.peek().token_type)
        if kind is None:
            return self._postfix(self._primary())
        self.next()
        return kind(this=self._unary())

    def _postfix(self, base: exp.Expr) -> exp.Expr:
        while True:
            if self.take(TokenType.L_BRACKET):
                index = self.value()
                self.expect(TokenType.R_BRACKET, "]")
                base = exp.Bracket(this=base, expressions=[index])
            elif self.take(TokenType.DCOLON):
                base = ColonCast(this=base, to=self.data_type())
            elif self.sees(TokenType.COLLATE):
                self.next()
                base = Collated(this=base, expression=self.identifier("a collation"))
            elif self.sees(TokenType.DOT):
                self.next()
                base = exp.Dot(this=base, expression=self.identifier("a field's name"))
            elif self.sees(TokenType.COLON):
                base = self._variant_path(base)
            else:
                return base

    def _variant_path(self, base: exp.Expr) -> exp.Expr:
        """`v:a.b[0]['c']`. Spark takes the text of the path as it stands, so its parts are those that keep theirs."""
        start = self.next()
        parts: list[exp.Expr] = []
        while True:
            if self.take(TokenType.L_BRACKET):
                token = self.peek()
                parts.append(self._literal(token) or self.fail("expected a number or a string"))
                if not isinstance(parts[-1], exp.Literal) or not _PATH_PART.fullmatch(parts[-1].name):
                    self.refuse("a part of a path holds letters, digits, spaces, dots and dashes", token)
                if not parts[-1].is_string and not parts[-1].name.isdecimal():
                    self.refuse("a place in a path is a whole number", token)
                self.expect(TokenType.R_BRACKET, "]")
            elif not parts or self.take(TokenType.DOT):
                token = self.peek()
                parts.append(self.identifier("a field's name"))
                if not _PATH_PART.fullmatch(parts[-1].name):
                    self.refuse("a part of a path holds letters, digits, spaces, dots and dashes", token)
            else:
                return placed(VariantPath(this=base, expressions=parts), start, self.peek(-1))

    def _primary(self) -> exp.Expr:
        token = self.peek()
        literal = self._literal(token)
        if literal is not None:
            return literal
        if token.token_type == TokenType.CASE:
            return self._case()
        if token.token_type == TokenType.L_PAREN:
            return self._parenthesised()
        if token.token_type == TokenType.STAR:
            return self.star(self.next(), [])
        call = self.call()
        if call is not None:
            return call
        if token.token_type in NAMES or token.token_type in _SOFT:
            if self.sees(TokenType.ARROW, ahead=1):
                return self._lambda([self.identifier()])
            return self._column()
        self.fail("expected an expression")

    def _literal(self, token: Token) -> exp.Expr | None:
        made: exp.Expr | None = None
        match token.token_type:
            case TokenType.STRING:
                made = exp.Literal.string(token.text)
            case TokenType.NUMBER:
                made = exp.Literal.number(token.text)
            case TokenType.HEX_STRING:
                made = exp.HexString(this=token.text)
            case TokenType.NULL:
                made = exp.Null()
            case TokenType.TRUE | TokenType.FALSE:
                made = exp.Boolean(this=token.token_type == TokenType.TRUE)
            case TokenType.PLACEHOLDER:
                made = exp.Placeholder()
            case TokenType.COLON:
                self.next()
                return placed(exp.Placeholder(this=self._parameter()), token, self.peek(-1))
            case TokenType.INTERVAL:
                return self.attempt(self._interval)
            case TokenType.VAR if token.text.upper() in _LITERAL_TYPES and self.sees(TokenType.STRING, ahead=1):
                self.next()
                string = exp.Literal.string(self.next().text)
                return placed(TypedLiteral(kind=exp.var(token.text.upper()), this=string), token, self.peek(-1))
        if made is not None:
            self.next()
            placed(made, token)
        return made

    def _parameter(self) -> str:
        """A parameter's name is rendered as it stands: a plain word only."""
        token = self.peek()
        name = self.identifier("a parameter's name")
        if name.quoted or not name.name.isascii():
            self.refuse("a parameter's name is a plain word", token)
        return name.name

    def _interval(self) -> exp.Expr:
        start = self.expect(TokenType.INTERVAL, "INTERVAL")
        if self.sees(TokenType.STRING) and self.peek(1).text.upper() not in _INTERVAL_UNITS:
            string = exp.Literal.string(self.next().text)
            return placed(TypedLiteral(kind=exp.var("INTERVAL"), this=string), start, self.peek(-1))
        parts = [self._interval_part()]
        while self.sees(TokenType.STRING, TokenType.NUMBER, TokenType.PLUS, TokenType.DASH):
            more = self.attempt(self._interval_part)
            if more is None:
                break
            parts.append(more)
        return placed(IntervalLiteral(expressions=parts), start, self.peek(-1))

    def _interval_part(self) -> IntervalPart:
        sign = self.take(TokenType.PLUS, TokenType.DASH)
        token = self.take(TokenType.STRING, TokenType.NUMBER)
        if token is None:
            self.fail("expected the number of an interval")
        if self.peek().text.upper() not in _INTERVAL_UNITS or not self.sees(TokenType.VAR):
            self.fail("expected a unit such as DAY")
        value = (
            exp.Literal.string(token.text) if token.token_type == TokenType.STRING else exp.Literal.number(token.text)
        )
        part = IntervalPart(this=value, unit=exp.var(self.next().text.upper()))
        if sign is not None:
            part.set("sign", exp.var(sign.text))
        if self.sees_words("TO") and self.peek(1).text.upper() in _INTERVAL_UNITS:
            self.next()
            part.set("to", exp.var(self.next().text.upper()))
        return part

    def _case(self) -> exp.Expr:
        start = self.expect(TokenType.CASE, "CASE")
        value = None if self.sees(TokenType.WHEN) else self.expression()
        branches = []
        while self.take(TokenType.WHEN):
            condition = self.expression()
            self.expect(TokenType.THEN, "THEN")
            branches.append(exp.If(this=condition, true=self.expression()))
        if not branches:
            self.fail("expected WHEN")
        default = self.expression() if self.take(TokenType.ELSE) else None
        self.expect(TokenType.END, "END (of CASE)")
        return placed(exp.Case(this=value, ifs=branches, default=default), start)

    def _parenthesised(self) -> exp.Expr:
        start = self.peek()
        names = self.attempt(self._lambda_names)
        if names is not None:
            return self._lambda(names)
        begin = self.at
        query = self.attempt(lambda: self.wrapped(self.query))
        if query is not None:
            self._refuse_called(query, begin, 2)
            return placed(exp.Subquery(this=query), start)
        self.next()
        items = self.listed(self.named_expression)
        self.expect(TokenType.R_PAREN, ")")
        if len(items) > 1:
            return placed(exp.Tuple(expressions=items), start)
        if isinstance(items[0], exp.Alias | exp.Aliases):
            self.refuse("an alias inside brackets needs a second item", start)
        return placed(exp.Paren(this=items[0]), start)

    def _lambda_names(self) -> list[exp.Identifier]:
        names = self.names()
        if not self.sees(TokenType.ARROW):
            self.fail("expected ->")
        return names

    def _lambda(self, names: list[exp.Identifier]) -> exp.Expr:
        self.expect(TokenType.ARROW, "->")
        return exp.Lambda(this=self.expression(), expressions=names)

    def _column(self) -> exp.Expr:
        start = self.peek()
        parts = [self.identifier("a column", is_whole=True)]
        while self.take(TokenType.DOT):
            if self.sees(TokenType.STAR):
                return self.star(self.next(), parts)
            parts.append(self.identifier("a column"))
        return placed(column_of(parts), start, self.peek(-1))

    def star(self, token: Token, parts: list[exp.Identifier]) -> exp.Expr:
        star = placed(exp.Star(), token)
        if self.sees(TokenType.EXCEPT) and self.sees(TokenType.L_PAREN, ahead=1) and not self._query_follows(2):
            self.next()
            star.set("except_", self.wrapped(lambda: self.listed(self._dotted)))
        return placed(column_of([*parts, star]), token) if parts else star

    def _query_follows(self, ahead: int) -> bool:
        return self.sees(TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.L_PAREN, ahead=ahead)

    def _dotted(self) -> exp.Expr:
        parts = [self.identifier()]
        while self.take(TokenType.DOT):
            parts.append(self.identifier())
        return column_of(parts)


def column_of(parts: Sequence[exp.Expr]) -> exp.Expr:
    """A Column of the first four parts at most, the rest as fields (a star is always the last part)."""
    if isinstance(parts[-1], exp.Star) and len(parts) > 4:
        return exp.Dot(this=column_of(list(parts[:-1])), expression=parts[-1])
    head, fields = parts[:4], parts[4:]
    keys = ("this", "table", "db", "catalog")
    node: exp.Expr = exp.Column(**dict(zip(keys, reversed(head), strict=False)))
    for field in fields:
        node = exp.Dot(this=node, expression=field)
    return node


def _negated(predicate: exp.Expr, negated: bool) -> exp.Expr:
    """`x NOT IN (…)` keeps its NOT inside: the renderer must give it back there."""
    return exp.Not(this=predicate, infix=True) if negated else predicate
