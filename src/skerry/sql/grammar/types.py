"""Data types: `DECIMAL(10, 2)`, `ARRAY<STRUCT<a: INT>>`, `INTERVAL DAY TO SECOND`."""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.tokens import TokenType

from skerry.model.limits import DECIMAL_DIGITS
from skerry.sql.grammar.cursor import Cursor, placed
from skerry.sql.nodes import SparkType, StructField

_SIMPLE = frozenset(
    "BOOLEAN TINYINT BYTE SMALLINT SHORT INT INTEGER BIGINT LONG FLOAT REAL DOUBLE DATE TIME TIMESTAMP TIMESTAMP_NTZ"
    " TIMESTAMP_LTZ STRING CHAR CHARACTER VARCHAR BINARY DECIMAL DEC NUMERIC VOID VARIANT GEOMETRY GEOGRAPHY".split()
)
_PLAIN = re.compile(r"\w+", re.ASCII)
_DECIMALS = frozenset({"DECIMAL", "DEC", "NUMERIC"})
_UNITS = frozenset("YEAR MONTH DAY HOUR MINUTE SECOND".split())


class TypeGrammar(Cursor):
    def data_type(self) -> SparkType:
        token = self.peek()
        word = token.text.upper()
        if token.token_type == TokenType.IDENTIFIER or not (
            word in _SIMPLE or word in {"ARRAY", "MAP", "STRUCT", "INTERVAL"}
        ):
            self.fail("expected a data type")
        self.next()
        if word in {"ARRAY", "MAP"}:
            self.expect(TokenType.LT, "<")
            items: list[exp.Expr] = list(self.listed(self.data_type))
            self.expect(TokenType.GT, ">")
            if len(items) != (1 if word == "ARRAY" else 2):
                self.refuse(f"{word} takes {'one type' if word == 'ARRAY' else 'two types'}", token)
            return placed(SparkType(this=word, expressions=items, nested=True), token)
        if word == "STRUCT":
            return placed(SparkType(this=word, expressions=self._fields(), nested=True), token)
        if word == "INTERVAL":
            return placed(self._interval_type(), token)
        if word in {"GEOMETRY", "GEOGRAPHY"} and self.sees(TokenType.ANY, ahead=1):
            return placed(
                SparkType(this=word, expressions=[self.wrapped(lambda: exp.var(self.next().text.upper()))]), token
            )
        if word == "STRING" and self.take(TokenType.COLLATE):
            # Part of the word: no rule takes it for a plain string.
            return placed(SparkType(this=f"{word} COLLATE {self._collation()}"), token)
        made = placed(SparkType(this=word, expressions=self._sizes()), token)
        if word in _DECIMALS and made.expressions:
            digits, behind = [*(int(each.name) for each in made.expressions), 0][:2]
            if not max(1, behind) <= digits <= DECIMAL_DIGITS:
                self.refuse(f"{word}(p, s) has 1 to {DECIMAL_DIGITS} digits, s of them behind the point", token)
        if word in {"TIME", "TIMESTAMP"} and self.take_words("WITHOUT", "TIME", "ZONE"):
            made.set("zone", "WITHOUT TIME ZONE")
        elif word == "TIMESTAMP" and self.take_words("WITH", "LOCAL", "TIME", "ZONE"):
            made.set("zone", "WITH LOCAL TIME ZONE")
        return made

    def _collation(self) -> str:
        token = self.peek()
        if token.token_type != TokenType.VAR or not _PLAIN.fullmatch(token.text):
            self.fail("expected a collation")
        return self.next().text

    def _sizes(self) -> list[exp.Expr]:
        if not self.take(TokenType.L_PAREN):
            return []
        sizes: list[exp.Expr] = list(self.listed(self._size))
        self.expect(TokenType.R_PAREN, ")")
        return sizes

    def _size(self) -> exp.Expr:
        token = self.expect(TokenType.NUMBER, "a number")
        if not token.text.isdecimal():
            self.refuse("a type's size is a whole number", token)
        return exp.Literal.number(token.text)

    def _fields(self) -> list[StructField]:
        if self.take(TokenType.NEQ):  # STRUCT<>
            return []
        self.expect(TokenType.LT, "<")
        if self.take(TokenType.GT):
            return []
        fields = self.listed(self._field)
        self.expect(TokenType.GT, ">")
        return fields

    def _field(self) -> StructField:
        name = self.identifier("a field's name")
        colon = bool(self.take(TokenType.COLON))
        field = StructField(this=name, kind=self.data_type(), colon=colon or None)
        if self.take_words("NOT", "NULL"):
            field.set("not_null", True)
        if self.take_words("COMMENT"):
            field.set("comment", exp.Literal.string(self.expect(TokenType.STRING, "a string").text))
        return field

    def _interval_type(self) -> SparkType:
        if self.peek().text.upper() not in _UNITS:
            return SparkType(this="INTERVAL")
        unit = exp.var(self.next().text.upper())
        to = None
        if self.take_words("TO"):
            if self.peek().text.upper() not in _UNITS:
                self.fail("expected a unit such as MONTH or SECOND")
            to = exp.var(self.next().text.upper())
        return SparkType(this="INTERVAL", expressions=[unit], to=to)
