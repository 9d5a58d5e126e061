"""Spark's types as texts → Arrow's, the eleven type codes of document 002, and what a value of each is in msgpack.

All types that Skerry carries between sites have a form (`spark/types.py` has the same list as pyspark's objects).
"""

from __future__ import annotations

import functools
import re
from typing import Annotated, Any, NamedTuple

import pyarrow as pa
from msgspec import Meta

from skerry.model.limits import VALUE_DEPTH
from skerry.wire.execution import TypeCode

DAY_NS = 86_400 * 10**9
TYPES_KEPT = 1000
TYPE_CHARS = 10_000


class BadTupleType(ValueError):
    """Not a type whose values travel."""


class Kind(NamedTuple):
    """A type: `sizes` of a decimal or time, `items` of what is nested, `names` of a struct's fields."""

    word: str
    sizes: tuple[int, ...] = ()
    items: tuple[Kind, ...] = ()
    names: tuple[str, ...] = ()


def _whole(bits: int) -> Any:
    return Annotated[int, Meta(ge=-(2 ** (bits - 1)), le=2 ** (bits - 1) - 1)]


# Arrow's type, the type code, and what a value is read as.
_PLAIN: dict[str, tuple[pa.DataType, TypeCode, Any]] = {
    "boolean": (pa.bool_(), TypeCode.BOOLEAN, bool),
    "tinyint": (pa.int8(), TypeCode.INTEGER, _whole(8)),
    "smallint": (pa.int16(), TypeCode.INTEGER, _whole(16)),
    "int": (pa.int32(), TypeCode.INTEGER, _whole(32)),
    "bigint": (pa.int64(), TypeCode.INTEGER, _whole(64)),
    "float": (pa.float32(), TypeCode.DOUBLE, float),
    "double": (pa.float64(), TypeCode.DOUBLE, float),
    "string": (pa.string(), TypeCode.STRING, str),
    # One value that no code of the document is for: the document's family keeps binary in its `scalar`, too.
    "binary": (pa.binary(), TypeCode.SCALAR, bytes),
    "date": (pa.date32(), TypeCode.DATETIME, _whole(32)),
    "timestamp": (pa.timestamp("us", tz="UTC"), TypeCode.DATETIME, _whole(64)),
    "timestamp_ntz": (pa.timestamp("us"), TypeCode.DATETIME, _whole(64)),
    "interval": (pa.duration("us"), TypeCode.SCALAR, _whole(64)),
    "void": (pa.null(), TypeCode.ANY, None),
}
_UNITS = ("day", "hour", "minute", "second")
_TOKEN = re.compile(r"`((?:[^`]|``)+)`|([A-Za-z_][A-Za-z0-9_]*)|([0-9]{1,3})|([<>(),: ])")
_NESTED_CODES = {"array": TypeCode.ARRAY, "map": TypeCode.MAP, "struct": TypeCode.ARRAY}


def kind_of(text: str) -> Kind:
    """The tree of a type's text; BadTupleType if its values do not travel."""
    return _kind_of(text)


@functools.lru_cache(TYPES_KEPT)
def _kind_of(text: str) -> Kind:
    if len(text) > TYPE_CHARS:
        raise BadTupleType(f"a type of {len(text)} characters")
    reader = _Reader(text)
    kind = reader.type(0)
    reader.take("")
    return kind


def type_code(text: str) -> TypeCode:
    """The document's code of a Spark type. A uuid is a string in Spark, and has that code."""
    kind = kind_of(text)
    if kind.word == "decimal":
        return TypeCode.DECIMAL
    if kind.word == "time":
        return TypeCode.SCALAR
    return _NESTED_CODES[kind.word] if kind.word in _NESTED_CODES else _PLAIN[kind.word][1]


def types_of(code: TypeCode) -> tuple[str, ...]:
    """The words of the Spark types that a code may stand for; all of them for ANY, a text for UUID."""
    if code == TypeCode.UUID:
        return ("string",)
    words = {**{word: found[1] for word, found in _PLAIN.items()}, **_NESTED_CODES}
    words |= {"decimal": TypeCode.DECIMAL, "time": TypeCode.SCALAR}
    return tuple(word for word, its in words.items() if code in (its, TypeCode.ANY))


def arrow_type(kind: Kind) -> pa.DataType:
    """As Spark hands values of the type over; everything but a map's key may be null."""
    match kind.word:
        case "decimal":
            return pa.decimal128(*kind.sizes)
        case "time":
            return pa.time64("ns")
        case "array":
            return pa.list_(pa.field("element", arrow_type(kind.items[0])))
        case "map":
            key, value = map(arrow_type, kind.items)
            return pa.map_(pa.field("key", key, nullable=False), pa.field("value", value))
        case "struct":
            return pa.struct(
                [pa.field(name, arrow_type(item)) for name, item in zip(kind.names, kind.items, strict=True)]
            )
    return _PLAIN[kind.word][0]


def read_type(kind: Kind, *, may_be_null: bool = True) -> Any:
    """What msgspec reads a value as: with it a wrong one is refused before Arrow meets it."""
    match kind.word:
        case "decimal":
            read: Any = Annotated[str, Meta(pattern=_digits(*kind.sizes))]
        case "time":
            read = Annotated[int, Meta(ge=0, le=DAY_NS - 1, multiple_of=10 ** (9 - kind.sizes[0]))]
        case "array":
            read = list[read_type(kind.items[0])]  # type: ignore[misc]
        case "map":
            key, value = kind.items
            read = list[tuple[read_type(key, may_be_null=False), read_type(value)]]  # type: ignore[misc]
        case "struct":
            read = tuple[tuple(read_type(item) for item in kind.items)]  # type: ignore[misc]
        case _:
            read = _PLAIN[kind.word][2]
    return read | None if may_be_null and read is not None else read


def _digits(precision: int, scale: int) -> str:
    """Exactly `scale` digits behind the point, and no more before it than there is room for."""
    before = f"[0-9]{{1,{precision - scale}}}" if precision > scale else "0"
    return rf"^-?{before}\.[0-9]{{{scale}}}\Z" if scale else rf"^-?{before}\Z"


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str]] = []  # what it is, and its text; the next one last
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise self.wrong()
            if match[1] is not None:
                self.tokens.append(("name", match[1].replace("``", "`")))
            elif match[2] or match[3]:
                self.tokens.append(("word" if match[2] else "number", match[2] or match[3]))
            else:
                self.tokens.append(("sign", match[4]))
            at = match.end()
        self.tokens.reverse()

    def wrong(self) -> BadTupleType:
        return BadTupleType(f"{self.text[:100]!r} is not a type whose values travel")

    def sees(self, sign: str) -> bool:
        return bool(self.tokens) and self.tokens[-1] == ("sign", sign)

    def take(self, sign: str) -> None:
        """This sign; "" for the end."""
        if (not self.tokens) if sign == "" else self.sees(sign):
            del self.tokens[-1:]
            return
        raise self.wrong()

    def next(self, *what: str) -> str:
        if not self.tokens or self.tokens[-1][0] not in what:
            raise self.wrong()
        return self.tokens.pop()[1]

    def type(self, depth: int) -> Kind:
        if depth > VALUE_DEPTH:
            raise BadTupleType(f"a type nested more than {VALUE_DEPTH} deep")
        word = self.next("word")
        if word in ("decimal", "time"):
            return self.sized(word)
        if word == "interval":
            return self.interval()
        if word in ("array", "map", "struct"):
            return self.nested(word, depth + 1)
        if word not in _PLAIN:
            raise self.wrong()
        return Kind(word)

    def sized(self, word: str) -> Kind:
        self.take("(")
        sizes = [int(self.next("number"))]
        if word == "decimal":
            self.take(",")
            sizes.append(int(self.next("number")))
        self.take(")")
        precision, scale = (*sizes, 0)[:2]
        if word == "time" and precision > 6:
            raise self.wrong()
        if word == "decimal" and not (1 <= precision <= 38 and scale <= precision):
            raise self.wrong()
        return Kind(word, tuple(sizes))

    def interval(self) -> Kind:
        """`interval day to second`; intervals of years and months do not leave their site."""
        self.take(" ")
        first = last = self.next("word")
        if self.sees(" "):
            self.take(" ")
            if self.next("word") != "to":
                raise self.wrong()
            self.take(" ")
            last = self.next("word")
        if first not in _UNITS or last not in _UNITS or _UNITS.index(first) > _UNITS.index(last):
            raise self.wrong()
        return Kind("interval")

    def nested(self, word: str, depth: int) -> Kind:
        self.take("<")
        names: list[str] = []
        items: list[Kind] = []
        while not items or self.sees(","):
            if items:
                self.take(",")
            if word == "struct":
                names.append(self.next("word", "name", "number"))
                self.take(":")
            items.append(self.type(depth))
        self.take(">")
        if len(items) != {"array": 1, "map": 2}.get(word, len(items)) or (word == "map" and items[0].word == "void"):
            raise self.wrong()
        return Kind(word, (), tuple(items), tuple(names))
