"""Where the parser stands in the tokens, and how it complains."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from skerry.model.errors import SqlError
from skerry.model.position import sql_error

T = TypeVar("T")


class Mismatch(Exception):
    """The rule at hand does not match at `token`; another may (see `Cursor.attempt`)."""

    def __init__(self, message: str, token: Token) -> None:
        super().__init__(message)
        self.message = message
        self.token = token


Node = TypeVar("Node", bound=exp.Expr)

_NOT_WORDS = {TokenType.STRING, TokenType.HEX_STRING, TokenType.NUMBER, TokenType.IDENTIFIER}
NAMES = {TokenType.VAR, TokenType.IDENTIFIER}
# What makes a pipe of a single `|` before it; before anything else it is the operator of bits.
_PIPE_STARTS = frozenset(
    "SELECT EXTEND SET DROP AS WHERE PIVOT UNPIVOT TABLESAMPLE INNER CROSS LEFT RIGHT FULL NATURAL SEMI ANTI JOIN UNION"
    " EXCEPT MINUS INTERSECT ORDER CLUSTER DISTRIBUTE SORT LIMIT OFFSET AGGREGATE WINDOW LATERAL".split()
)


class Cursor:
    """Reads tokens one by one; every `take_…` moves on only when it matches."""

    def __init__(self, tokens: list[Token], text: str) -> None:
        self.tokens = tokens
        self.text = text
        self.at = 0
        self.furthest: tuple[int, Mismatch | None] = (-1, None)
        self._end = Token(TokenType.SENTINEL, "", start=len(text.rstrip()), end=len(text.rstrip()))

    def peek(self, ahead: int = 0) -> Token:
        index = self.at + ahead
        return self.tokens[index] if 0 <= index < len(self.tokens) else self._end

    def next(self) -> Token:
        token = self.peek()
        self.at += 1
        return token

    def sees(self, *kinds: TokenType, ahead: int = 0) -> bool:
        return self.peek(ahead).token_type in kinds

    def sees_words(self, *words: str, ahead: int = 0) -> bool:
        """Whether the next tokens are these bare words, in any case."""
        for offset, word in enumerate(words):
            token = self.peek(ahead + offset)
            if token.token_type in _NOT_WORDS or token.text.upper() != word:
                return False
        return True

    def take(self, *kinds: TokenType) -> Token | None:
        return self.next() if self.sees(*kinds) else None

    def take_words(self, *words: str) -> bool:
        if not self.sees_words(*words):
            return False
        self.at += len(words)
        return True

    def sees_pipe(self) -> bool:
        """`|>`, or `|` before a word that only an operator of a pipe begins with."""
        if not self.sees(TokenType.PIPE):
            return self.sees(TokenType.PIPE_GT)
        token = self.peek(1)
        return token.token_type not in _NOT_WORDS and token.text.split(" ")[0].upper() in _PIPE_STARTS

    def expect(self, kind: TokenType, what: str) -> Token:
        token = self.take(kind)
        if token is None:
            self.fail(f"expected {what}")
        return token

    def fail(self, message: str) -> NoReturn:
        """What stands here cannot stand here. The failure that got furthest is the one worth showing."""
        error = Mismatch(message, self.peek())
        if self.at > self.furthest[0]:
            self.furthest = (self.at, error)
        raise error

    def explained(self, error: Mismatch) -> SqlError:
        """The error for the user: of all that did not match, what stands furthest in the text."""
        worst = self.furthest[1] or error
        token = worst.token
        if not token:
            return sql_error(f"syntax error: {worst.message} at the end of the statement", self.text, token.start)
        shown = self.text[token.start : token.end + 1].split("\n")[0][:40]
        return sql_error(f"syntax error at {shown}: {worst.message}", self.text, token.start, token.end)

    def refuse(self, message: str, token: Token | None = None) -> NoReturn:
        """No other rule is tried after this."""
        token = token or self.peek()
        raise sql_error(message, self.text, token.start, token.end)

    def whole(self, rule: Callable[[], T], named: str) -> T:
        """What `rule` reads, if that is all there is; SqlError otherwise, with `named` for what it reads."""
        try:
            read = rule()
            if self.peek():
                self.fail(f"the {named} should end here")
        except Mismatch as error:
            raise self.explained(error) from None
        return read

    def attempt(self, rule: Callable[[], T]) -> T | None:
        """What `rule` reads, or None and no move when it does not match."""
        start = self.at
        try:
            return rule()
        except Mismatch:
            self.at = start
            return None

    def remembered(self, memo: dict[int, tuple[exp.Expr, int] | Mismatch], rule: Callable[[], exp.Expr]) -> exp.Expr:
        """`rule` at this place, run once: attempts that overlap stay linear."""
        known = memo.get(self.at)
        if isinstance(known, Mismatch):
            raise known
        if known is not None:
            self.at = known[1]
            return known[0]
        start = self.at
        try:
            node = rule()
        except Mismatch as error:
            memo[start] = error
            raise
        memo[start] = (node, self.at)
        return node

    def listed(self, rule: Callable[[], T]) -> list[T]:
        items = [rule()]
        while self.take(TokenType.COMMA):
            items.append(rule())
        return items

    def wrapped(self, rule: Callable[[], T]) -> T:
        self.expect(TokenType.L_PAREN, "(")
        item = rule()
        self.expect(TokenType.R_PAREN, ")")
        return item

    def identifier(self, what: str = "a name", *, is_whole: bool = False) -> exp.Identifier:
        """Any word may be a name where only a name can stand. is_whole: IDENTIFIER('a.b') may stand here, too."""
        token = self.peek()
        if token.comments and not is_whole:
            self.refuse("IDENTIFIER says one name here, as one string", token)
        if token.token_type not in NAMES and not (token.text[:1].isalpha() or token.text[:1] == "_"):
            self.fail(f"expected {what}")
        if token.token_type in (TokenType.STRING, TokenType.HEX_STRING):
            self.fail(f"expected {what}; a name is quoted with backquotes")
        self.next()
        return placed(exp.Identifier(this=token.text, quoted=token.token_type == TokenType.IDENTIFIER), token)

    def names(self) -> list[exp.Identifier]:
        return self.wrapped(lambda: self.listed(self.identifier))


def placed(node: Node, first: Token, last: Token | None = None) -> Node:
    """The node, with its place in the text."""
    node.meta["start"] = first.start
    node.meta["end"] = (last or first).end
    return node
