"""Column types as Spark writes them, and whether two parts of a table have the same columns."""

from __future__ import annotations

import re
from collections.abc import Sequence

from skerry.model.limits import DECIMAL_DIGITS
from skerry.model.table import Column

NAMES = {
    "boolean": "boolean",
    "tinyint": "tinyint",
    "byte": "tinyint",
    "smallint": "smallint",
    "short": "smallint",
    "int": "int",
    "integer": "int",
    "bigint": "bigint",
    "long": "bigint",
    "float": "float",
    "real": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "decimal": "decimal(10,0)",
    "dec": "decimal(10,0)",
    "numeric": "decimal(10,0)",
}
# Types whose values all take the same number of bytes.
FIXED_BYTES = {
    "boolean": 1,
    "tinyint": 1,
    "smallint": 2,
    "int": 4,
    "date": 4,
    "float": 4,
    "bigint": 8,
    "double": 8,
    "timestamp": 8,
    "timestamp_ntz": 8,
}
NESTED = ("array", "map", "struct")
TOKEN = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*|[0-9]{1,3}|[<>(),:])")
DEPTH_MAX = 20


class BadType(ValueError):
    """Not a type that Spark can read from files."""


def normal_type(text: str) -> str:
    """Spark's own short text for a type: `DECIMAL(15, 2)` gives `decimal(15,2)`; BadType otherwise."""
    tokens: list[str] = []
    position = 0
    text = text.strip()
    while position < len(text):
        match = TOKEN.match(text, position)
        if match is None:
            raise BadType(text)
        tokens.append(match[1])
        position = match.end()
    reader = _Reader(text, tokens)
    normal = reader.type(0)
    if reader.tokens:
        raise BadType(text)
    return normal


class _Reader:
    def __init__(self, text: str, tokens: list[str]) -> None:
        self.text = text
        self.tokens = tokens[::-1]

    def take(self, wanted: str = "") -> str:
        if not self.tokens or (wanted and self.tokens[-1] != wanted):
            raise BadType(self.text)
        return self.tokens.pop()

    def type(self, depth: int) -> str:
        if depth > DEPTH_MAX:
            raise BadType(self.text)
        word = self.take().lower()
        if word in NESTED:
            self.take("<")
            inner = {"array": self.array, "map": self.map, "struct": self.struct}[word](depth + 1)
            self.take(">")
            return f"{word}<{inner}>"
        if word in ("decimal", "dec", "numeric") and self.tokens and self.tokens[-1] == "(":
            return self.decimal()
        if word not in NAMES:
            raise BadType(self.text)
        return NAMES[word]

    def decimal(self) -> str:
        self.take("(")
        precision, scale = self.digits(), 0
        if self.tokens and self.tokens[-1] == ",":
            self.take(",")
            scale = self.digits()
        self.take(")")
        if not 1 <= precision <= DECIMAL_DIGITS or scale > precision:
            raise BadType(self.text)
        return f"decimal({precision},{scale})"

    def digits(self) -> int:
        word = self.take()
        if not word.isdigit():
            raise BadType(self.text)
        return int(word)

    def array(self, depth: int) -> str:
        return self.type(depth)

    def map(self, depth: int) -> str:
        key = self.type(depth)
        self.take(",")
        return f"{key},{self.type(depth)}"

    def struct(self, depth: int) -> str:
        fields = []
        while True:
            name = self.take()
            if not name[0].isalpha() and name[0] != "_":
                raise BadType(self.text)
            self.take(":")
            fields.append(f"{name}:{self.type(depth)}")
            if not self.tokens or self.tokens[-1] != ",":
                return ",".join(fields)
            self.take(",")


def difference(here: Sequence[Column], there: Sequence[Column]) -> str:
    """How `here` differs from `there`, in words; "" when they are the same table.

    Names and types compare in any case; a type of "" is not known and equals all.
    """
    mine = {column.name.lower(): column for column in here}
    theirs = {column.name.lower(): column for column in there}
    for column in here:
        if column.name.lower() not in theirs:
            return f"{column.name} is only here"
    for column in there:
        if column.name.lower() not in mine:
            return f"{column.name} is only there"
    for column in here:
        other = theirs[column.name.lower()]
        if column.type and other.type and column.type.lower() != other.type.lower():
            return f"{column.name} is {column.type} here and {other.type} there"
    if list(mine) != list(theirs):
        return "the columns stand in another order"
    return ""


def decimal_digits(text: str) -> tuple[int, int]:
    """The digits before and after the point: (13, 2) of `decimal(15,2)`."""
    precision, scale = (int(digits) for digits in re.findall("[0-9]+", text))
    return precision - scale, scale


def split_types(text: str) -> list[str]:
    """The parts between the outermost commas: `a:int,b:map<int,int>` has two."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
