"""Spark's types as text, as pyspark objects and as Arrow: the three agree here and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyspark.sql.types as st

from skerry.model.errors import InternalError, SqlError
from skerry.model.results import Schema
from skerry.model.table import Column
from skerry.wire.codec import encode_schema

# What has one short text, one pyspark object and one Arrow type.
PLAIN: dict[str, tuple[st.DataType, pa.DataType]] = {
    "boolean": (st.BooleanType(), pa.bool_()),
    "tinyint": (st.ByteType(), pa.int8()),
    "smallint": (st.ShortType(), pa.int16()),
    "int": (st.IntegerType(), pa.int32()),
    "bigint": (st.LongType(), pa.int64()),
    "float": (st.FloatType(), pa.float32()),
    "double": (st.DoubleType(), pa.float64()),
    "string": (st.StringType(), pa.string()),
    "binary": (st.BinaryType(), pa.binary()),
    "date": (st.DateType(), pa.date32()),
    "timestamp": (st.TimestampType(), pa.timestamp("us", tz="UTC")),
    "timestamp_ntz": (st.TimestampNTZType(), pa.timestamp("us")),
    "void": (st.NullType(), pa.null()),
}
_TEXT_OF = {type(spark): text for text, (spark, _) in PLAIN.items() if text != "string"}

_WORD = re.compile(r"[a-z_]+( [a-z_]+)*")  # "interval day to second" is one word
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTED = re.compile(r"`((?:[^`]|``)*)`")


class Unsupported(Exception):
    """A type that Arrow cannot carry to another site as Spark means it."""


def schema_of(struct: st.StructType) -> Schema:
    """A result's columns and the Arrow schema of the batches that its tasks send."""
    return Schema(columns_of(struct), encode_schema(arrow_schema(struct)))


def columns_of(struct: st.StructType) -> tuple[Column, ...]:
    """Names and types as Spark gives them; a type that cannot travel is refused by name."""
    columns = []
    for field in struct.fields:
        try:
            columns.append(Column(field.name, type_text(field.dataType)))
        except Unsupported as error:
            raise SqlError(
                f"column {field.name} has type {error}, which cannot leave its site",
                suggestion=f"leave {field.name} out, or cast it to string",
            ) from None
    return tuple(columns)


def type_text(kind: st.DataType) -> str:
    """Spark's short text; names of struct fields are quoted where the text would not parse back otherwise."""
    match kind:
        case st.CharType() | st.VarcharType():
            return "string"
        case st.StringType():
            if kind.simpleString() != "string":  # a collation changes what equals what
                raise Unsupported(kind.simpleString())
            return "string"
        case st.DecimalType() | st.DayTimeIntervalType() | st.TimeType():
            return kind.simpleString()
        case st.ArrayType():
            return f"array<{type_text(kind.elementType)}>"
        case st.MapType():
            if isinstance(kind.keyType, st.NullType):  # map(): Arrow's keys are never null, and void is nothing else
                raise Unsupported(kind.simpleString())
            return f"map<{type_text(kind.keyType)},{type_text(kind.valueType)}>"
        case st.StructType():
            return f"struct<{','.join(f'{_quoted(f.name)}:{type_text(f.dataType)}' for f in kind.fields)}>"
    text = _TEXT_OF.get(type(kind))
    if text is None:
        raise Unsupported(kind.simpleString())
    return text


def arrow_schema(struct: st.StructType) -> pa.Schema:
    """All fields may be null: sites may disagree on that, and a batch's layout does not depend on it."""
    return pa.schema([pa.field(field.name, arrow_type(field.dataType)) for field in struct.fields])


def arrow_type(kind: st.DataType) -> pa.DataType:
    match kind:
        case st.CharType() | st.VarcharType() | st.StringType():
            return pa.string()
        case st.DecimalType():
            return pa.decimal128(kind.precision, kind.scale)
        case st.DayTimeIntervalType():
            return pa.duration("us")
        case st.TimeType():
            return pa.time64("ns")
        case st.ArrayType():
            return pa.list_(pa.field("element", arrow_type(kind.elementType)))
        case st.MapType():
            key = pa.field("key", arrow_type(kind.keyType), nullable=False)
            return pa.map_(key, pa.field("value", arrow_type(kind.valueType)))
        case st.StructType():
            return pa.struct([pa.field(field.name, arrow_type(field.dataType)) for field in kind.fields])
    return PLAIN[type_text(kind)][1]


def struct_of(columns: Sequence[Column]) -> st.StructType:
    """The pyspark schema of these columns; everything may be null."""
    return st.StructType([st.StructField(column.name, parse_type(column.type)) for column in columns])


def parse_type(text: str) -> st.DataType:
    """The inverse of `type_text`, without asking Spark (which costs a round trip a column)."""
    reader = _Reader(text)
    kind = reader.type()
    if reader.position != len(text):
        raise reader.wrong()
    return kind


def _quoted(name: str) -> str:
    return name if _NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def wrong(self) -> InternalError:
        # Columns come from `type_text` or from the configuration, which checks them.
        return InternalError(f"{self.text!r} is not a column type that Skerry knows (at character {self.position})")

    def type(self) -> st.DataType:
        word = self._match(_WORD)[0]
        nested: dict[str, Callable[[], st.DataType]] = {"array": self._array, "map": self._map, "struct": self._struct}
        if word in nested:
            self._expect("<")
            kind = nested[word]()
            self._expect(">")
            return kind
        if word in PLAIN:
            return PLAIN[word][0]
        if word == "decimal":
            numbers = self._match(re.compile(r"\((\d+),(\d+)\)"))
            return st.DecimalType(int(numbers[1]), int(numbers[2]))
        if word == "time":
            return st.TimeType(int(self._match(re.compile(r"\((\d+)\)"))[1]))
        if word.startswith("interval "):
            return self._interval(word)
        raise self.wrong()

    def _array(self) -> st.DataType:
        return st.ArrayType(self.type())

    def _map(self) -> st.DataType:
        key = self.type()
        self._expect(",")
        return st.MapType(key, self.type())

    def _struct(self) -> st.DataType:
        fields: list[st.StructField] = []
        while not self._at(">"):
            if fields:
                self._expect(",")
            quoted = self._at("`")
            name = self._match(_QUOTED)[1].replace("``", "`") if quoted else self._match(_NAME)[0]
            self._expect(":")
            fields.append(st.StructField(name, self.type()))
        return st.StructType(fields)

    def _interval(self, word: str) -> st.DataType:
        codes = {name: code for code, name in st.DayTimeIntervalType._fields.items()}
        names = word.removeprefix("interval ").split(" to ")
        if not all(name in codes for name in names):
            raise self.wrong()
        return st.DayTimeIntervalType(codes[names[0]], codes[names[-1]])

    def _at(self, mark: str) -> bool:
        return self.text.startswith(mark, self.position)

    def _expect(self, mark: str) -> None:
        if not self._at(mark):
            raise self.wrong()
        self.position += len(mark)

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        match = pattern.match(self.text, self.position)
        if match is None:
            raise self.wrong()
        self.position = match.end()
        return match
