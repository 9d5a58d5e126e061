"""Function calls. No function is interpreted: the name stays as written, the arguments as they stand."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from skerry.sql.grammar.cursor import NAMES, placed
from skerry.sql.grammar.types import TypeGrammar
from skerry.sql.nodes import Arguments, SpokenCall

# Functions whose arguments may be parted by words, and those words in order.
_SPOKEN = {
    "EXTRACT": ("FROM",),
    "OVERLAY": ("PLACING", "FROM", "FOR"),
    "POSITION": ("IN",),
    "SUBSTR": ("FROM", "FOR"),
    "SUBSTRING": ("FROM", "FOR"),
    "TRIM": ("FROM",),
}
_TRIM_OPTIONS = ("BOTH", "LEADING", "TRAILING")
# Keywords that are functions' names as well.
_CALLABLE = NAMES | {
    TokenType.ANY,
    TokenType.COLLATE,
    TokenType.CUBE,
    TokenType.DIV,
    TokenType.EXISTS,
    TokenType.FILTER,
    TokenType.FIRST,
    TokenType.ILIKE,
    TokenType.INTERVAL,
    TokenType.LEFT,
    TokenType.LIKE,
    TokenType.RANGE,
    TokenType.RIGHT,
    TokenType.RLIKE,
    TokenType.ROLLUP,
    TokenType.SOME,
    TokenType.WINDOW,
}
_BEHIND_NAMES = (TokenType.COMMA, TokenType.R_PAREN, TokenType.DOT, TokenType.ARROW)
_CONDITION_STARTS = NAMES | {
    TokenType.CASE,
    TokenType.COLON,
    TokenType.DASH,
    TokenType.EXISTS,
    TokenType.FALSE,
    TokenType.FIRST,
    TokenType.INTERVAL,
    TokenType.NOT,
    TokenType.NULL,
    TokenType.NUMBER,
    TokenType.PLACEHOLDER,
    TokenType.STRING,
    TokenType.TRUE,
}
# Keywords that are aliases without AS.
_ALIASES = NAMES | {
    TokenType.ANY,
    TokenType.END,
    TokenType.FILTER,
    TokenType.FIRST,
    TokenType.RANGE,
    TokenType.ROW,
    TokenType.ROWS,
}


class CallGrammar(TypeGrammar):
    @abstractmethod
    def expression(self) -> exp.Expr: ...

    @abstractmethod
    def value(self) -> exp.Expr: ...

    @abstractmethod
    def query(self) -> exp.Expr: ...

    def named_expression(self) -> exp.Expr:
        """`expression [AS] name`, or `AS (a, b)` for a generator's columns."""
        value = self.expression()
        explicit = self.take(TokenType.ALIAS)
        if explicit and self.sees(TokenType.L_PAREN):
            return exp.Aliases(this=value, expressions=self.names())
        is_name = self.sees(*_ALIASES) and not self._nulls_follow() and not self.qualify_follows()
        if explicit or is_name or self._from_follows():
            return exp.Alias(this=value, alias=self.identifier("an alias"))
        if self.sees(TokenType.STRING):
            self.fail("an alias is a name; quote it with backquotes")
        return value

    def qualify_follows(self) -> bool:
        """QUALIFY is a name like any other where no condition stands behind it."""
        if not self.sees_words("QUALIFY"):
            return False
        if self.sees(TokenType.L_PAREN, ahead=1):
            # `t QUALIFY (a)` is an alias with columns.
            return self._names_end() is None
        following = self.peek(1)
        return following.token_type in _CONDITION_STARTS

    def _names_end(self) -> bool | None:
        start = self.at
        self.next()
        found = self.attempt(self.names)
        self.at = start
        return True if found is not None else None

    def _from_follows(self) -> bool:
        """The first FROM of `a FROM FROM t` is an alias to Spark."""
        return self.sees(TokenType.FROM) and self.sees(TokenType.FROM, ahead=1) and self.sees(*NAMES, ahead=2)

    def _nulls_follow(self) -> bool:
        return self.sees_words("IGNORE", "NULLS") or self.sees_words("RESPECT", "NULLS")

    def call(self) -> exp.Expr | None:
        """The function call that starts here, with its FILTER and OVER, or None."""
        start = self.peek()
        if start.token_type not in _CALLABLE:
            return None
        if not self.sees(TokenType.L_PAREN, ahead=1):
            self._refuse_qualified()
            return None
        name = start.text.upper()
        if name in ("CAST", "TRY_CAST") and start.token_type != TokenType.IDENTIFIER:
            return self._cast()
        if name in _SPOKEN and start.token_type != TokenType.IDENTIFIER:
            spoken = self.attempt(lambda: self._spoken(name))
            if spoken is not None:
                return spoken
        return self._tail(self.plain_call())

    def plain_call(self) -> exp.Expr:
        start = self.next()
        self.expect(TokenType.L_PAREN, "(")
        quoted = start.token_type == TokenType.IDENTIFIER
        name = placed(exp.Identifier(this=start.text, quoted=True), start) if quoted else start.text
        # Only struct's arguments may have aliases. What Spark would not read as an expression must not pass
        # for one here: where a list could end early, Spark would find another reading of the rest.
        rule = self.named_expression if start.text.upper() == "STRUCT" and not quoted else self.expression
        return placed(exp.Anonymous(this=name, expressions=self._arguments(rule)), start)

    def _refuse_qualified(self) -> None:
        """`a.b.f(x)`: a function of a schema. Skerry has none, and Spark's own are named without one."""
        ahead, parts = 1, [self.peek().text]
        while self.sees(TokenType.DOT, ahead=ahead) and self.sees(*_CALLABLE, ahead=ahead + 1):
            parts.append(self.peek(ahead + 1).text)
            if self.sees(TokenType.L_PAREN, ahead=ahead + 2):
                self.refuse(
                    f"unknown function {'.'.join(parts)}: name it without catalog or schema", self.peek(ahead + 1)
                )
            ahead += 2

    def _arguments(self, rule: Callable[[], exp.Expr]) -> list[exp.Expr]:
        if self.take(TokenType.R_PAREN):
            return []
        # A column or a lambda's parameter may be called all.
        is_name = self.sees(TokenType.ALL) and self.sees(*_BEHIND_NAMES, ahead=1)
        word = None if is_name else self.take(TokenType.DISTINCT, TokenType.ALL)
        items = self.listed(lambda: self._argument(rule))
        self.expect(TokenType.R_PAREN, ")")
        if word is None:
            return items
        if word.token_type == TokenType.DISTINCT:
            return [exp.Distinct(expressions=items)]
        return [Arguments(this="ALL", expressions=items)]

    def _argument(self, rule: Callable[[], exp.Expr]) -> exp.Expr:
        if self.sees(TokenType.FARROW, ahead=1):
            name = self.identifier("an argument's name")
            self.next()
            value = self._table_argument() if self.sees(TokenType.TABLE) else self.expression()
            return exp.Kwarg(this=name, expression=value)
        item = self._table_argument() if self.sees(TokenType.TABLE) else rule()
        if self.take_words("IGNORE", "NULLS"):
            return exp.IgnoreNulls(this=item)
        if self.take_words("RESPECT", "NULLS"):
            return exp.RespectNulls(this=item)
        return item

    def _table_argument(self) -> exp.Expr:
        if self.sees(TokenType.COMMA, TokenType.R_PAREN, TokenType.DOT, ahead=1):
            return self.expression()
        self.refuse("TABLE arguments are for functions written in Python, which Skerry does not run")

    def _cast(self) -> exp.Expr:
        start = self.next()
        self.expect(TokenType.L_PAREN, "(")
        value = self.expression()
        self.expect(TokenType.ALIAS, "AS")
        to = self.data_type()
        self.expect(TokenType.R_PAREN, ")")
        kind = exp.Cast if start.text.upper() == "CAST" else exp.TryCast
        return placed(kind(this=value, to=to), start)

    def _spoken(self, name: str) -> exp.Expr:
        start = self.next()
        self.expect(TokenType.L_PAREN, "(")
        option = None
        if name == "TRIM" and self.sees_words(self.peek().text.upper()) and self.peek().text.upper() in _TRIM_OPTIONS:
            option = exp.var(self.next().text.upper())
        leading = name == "TRIM" and self.sees(TokenType.FROM)
        items: list[exp.Expr] = []
        if not leading:
            items.append(self._extract_field() if name == "EXTRACT" else self.value())
        words = []
        for word in _SPOKEN[name]:
            if not self.take_words(word):
                break
            words.append(exp.var(word))
            items.append(self.value())
        if not words:
            self.fail("expected " + " or ".join(_SPOKEN[name]))
        self.expect(TokenType.R_PAREN, ")")
        call = SpokenCall(this=start.text, option=option, expressions=items, words=words, leading=leading or None)
        return placed(call, start)

    def _extract_field(self) -> exp.Expr:
        """The field of EXTRACT: a bare word, which is rendered as it stands."""
        token = self.expect(TokenType.VAR, "a field such as YEAR")
        if not token.text.isascii():
            self.refuse("a field of EXTRACT is a plain word", token)
        return exp.var(token.text)

    def _tail(self, call: exp.Expr) -> exp.Expr:
        if self.take_words("WITHIN", "GROUP"):
            self.expect(TokenType.L_PAREN, "(")
            self.expect(TokenType.ORDER_BY, "ORDER BY")
            order = exp.Order(expressions=self.listed(self.sort_item))
            self.expect(TokenType.R_PAREN, ")")
            call = exp.WithinGroup(this=call, expression=order)
        if self.sees(TokenType.FILTER) and self.sees(TokenType.L_PAREN, ahead=1):
            self.next()
            self.next()
            self.expect(TokenType.WHERE, "WHERE")
            call = exp.Filter(this=call, expression=exp.Where(this=self.expression()))
            self.expect(TokenType.R_PAREN, ")")
        if self.take_words("IGNORE", "NULLS"):
            call = exp.IgnoreNulls(this=call)
        elif self.take_words("RESPECT", "NULLS"):
            call = exp.RespectNulls(this=call)
        if self.sees(TokenType.OVER) and (self.sees(TokenType.L_PAREN, ahead=1) or self.sees(*NAMES, ahead=1)):
            over = self.next()
            call = placed(self.window(call, over), over)
        return call

    def window(self, call: exp.Expr | None, over: Token | None) -> exp.Window:
        """What follows OVER, or the definition in a WINDOW clause (then `call` is the window's name)."""
        word = "OVER" if over is not None else None
        if not self.take(TokenType.L_PAREN):
            return exp.Window(this=call, alias=self.identifier("a window"), over=word)
        if self.sees(*NAMES) and self.sees(TokenType.R_PAREN, ahead=1):
            window = exp.Window(this=call, alias=self.identifier(), over=word, wrapped=True)
        else:
            partition = self.listed(self.expression) if self.take(TokenType.PARTITION_BY) else None
            order = None
            if self.take(TokenType.ORDER_BY):
                order = exp.Order(expressions=self.listed(self.sort_item))
            window = exp.Window(this=call, partition_by=partition, order=order, spec=self._frame(), over=word)
        self.expect(TokenType.R_PAREN, ")")
        return window

    def _frame(self) -> exp.WindowSpec | None:
        token = self.take(TokenType.ROWS, TokenType.RANGE)
        if token is None:
            return None
        spec = exp.WindowSpec(kind=token.text.upper())
        between = self.take(TokenType.BETWEEN)
        spec.set("start", self._bound(spec, "start_side"))
        if between:
            self.expect(TokenType.AND, "AND (of BETWEEN)")
            spec.set("end", self._bound(spec, "end_side"))
        return spec

    def _bound(self, spec: exp.WindowSpec, side: str) -> str | exp.Expr:
        if self.take_words("CURRENT", "ROW"):
            return "CURRENT ROW"
        bound: str | exp.Expr = "UNBOUNDED" if self.take_words("UNBOUNDED") else self.value()
        if not (self.sees_words("PRECEDING") or self.sees_words("FOLLOWING")):
            self.fail("expected PRECEDING or FOLLOWING")
        spec.set(side, self.next().text.upper())
        return bound

    def sort_item(self) -> exp.Ordered:
        """`nulls_first` is set only when it was said."""
        whole = self.sees(TokenType.ALL) and not self.sees(TokenType.DOT, ahead=1)
        item = exp.Ordered(this=exp.var(self.next().text.upper()) if whole else self.expression())
        if token := self.take(TokenType.ASC, TokenType.DESC):
            item.set("desc", token.token_type == TokenType.DESC)
        if self.take_words("NULLS", "FIRST"):
            item.set("nulls_first", True)
        elif self.take_words("NULLS", "LAST"):
            item.set("nulls_first", False)
        return item
