"""Writes fuzz/corpus anew: a small valid input of every kind. Run `python -m fuzz.seeds` after a message was added."""

from __future__ import annotations

import enum
import types
import typing
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from fuzz.target import FRAME, ROWS, SCHEMA, SCHEMAS, STREAM
from skerry.model.results import Value
from skerry.wire.codec import encode_batch, encode_schema
from skerry.wire.frames import NUMBERED, encode_batch_frame, encode_message, encode_numbered
from skerry.wire.kinds import KINDS
from skerry.wire.messages import Batch, Goodbye, Hello, Message, OpenChannel

CORPUS = Path(__file__).parent / "corpus"
HEADER_BYTES = 9
VALUES = (Value("int", 7), Value("date", 20_000), Value("decimal(5,2)", "123.45"), Value("array<string>", ["a", None]))
ROWS_OF = (
    {"i": [1, None], "s": ["a", "ø"], "b": [True, None], "d": [None, None]},
    {"l": [["x"], None], "m": [[("k", 1)], []], "st": [{"x": 1}, None], "n": [None, None]},
)


def seeds() -> dict[str, bytes]:
    """By name: all of them are accepted by `fuzz.target.check`."""
    found: dict[str, bytes] = {}
    for kind, message in sorted(KINDS.items()):
        frame = _frame(kind, _sample(message))
        found[f"frame-{message.__name__}"] = bytes([FRAME, kind]) + frame[HEADER_BYTES:]
    bodies = []
    for number, (schema, rows) in enumerate(zip(SCHEMAS, ROWS_OF, strict=True)):
        found[f"schema-{number}"] = bytes([SCHEMA]) + encode_schema(schema)
        batch = pa.RecordBatch.from_pydict(rows, schema=schema)
        for codec in ("", "lz4", "zstd"):
            body = bytes(encode_batch(batch, codec))
            found[f"rows-{number}{codec and '-'}{codec}"] = bytes([ROWS, number]) + body
        bodies.append(body)
    hello = Hello("data", (1,), "c", "oslo", 1)
    stream = [_joined(encode_message(message)) for message in (hello, _sample(OpenChannel), Goodbye())]
    stream[2:2] = [
        _joined(encode_batch_frame(Batch(seq, seq, False, 2, 999, 0), body)) for seq, body in enumerate(bodies)
    ]
    found["stream-data"] = bytes([STREAM]) + b"".join(stream)
    numbered = [
        _joined(encode_numbered(seq, _sample(KINDS[kind]))) for seq, kind in enumerate(sorted(NUMBERED & {*KINDS}))
    ]
    found["stream-control"] = bytes([STREAM]) + b"".join(numbered)
    return found


def _frame(kind: int, message: Message) -> bytes:
    if isinstance(message, Batch):
        return _joined(encode_batch_frame(Batch(0, 0, True, 0, 0, 0)))
    return _joined(encode_numbered(3, message) if kind in NUMBERED else encode_message(message))


def _joined(parts: list[Any]) -> bytes:
    return b"".join(bytes(part) for part in parts)


def _sample(kind: Any) -> Any:
    """A value of a type: short, and with one element in every collection."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _sample(next(each for each in inner if each is not type(None)))
    if origin is tuple:
        if inner[0] is Value:
            return VALUES
        return (_sample(inner[0]),) if inner[1:] == (...,) else tuple(map(_sample, inner))
    if origin is dict:
        return {_sample(inner[0]): _sample(inner[1])}
    if origin in (list, frozenset):
        return origin([_sample(inner[0])])
    if kind is Value:
        return VALUES[0]
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = typing.get_type_hints(kind)
        fields = {field.name: _sample(hints[field.name]) for field in msgspec.structs.fields(kind)}
        if kind is OpenChannel:
            fields["schema"], fields["codec"] = encode_schema(SCHEMAS[0]), ""
        return kind(**fields)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return next(iter(kind))
    plain = {bool: True, int: 1, float: 0.5, str: "x", bytes: b"b", memoryview: memoryview(b"b"), Any: 1}
    return plain[kind]


def main() -> None:
    CORPUS.mkdir(exist_ok=True)
    for old in CORPUS.iterdir():
        if old.name.startswith(("frame-", "schema-", "rows-", "stream-")):
            old.unlink()
    for name, content in seeds().items():
        (CORPUS / name).write_bytes(content)
    print(f"{len(seeds())} seeds in {CORPUS}")


if __name__ == "__main__":
    main()
