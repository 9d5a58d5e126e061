"""Writes fuzz/corpus anew: a small valid input of every kind. Run `python -m fuzz.seeds` after a message was added."""

from __future__ import annotations

import enum
import types
import typing
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from fuzz.target import FRAME, MISS, MISS_REPLY, PACKET, REQUEST, ROWS, SCHEMA, SCHEMAS, STREAM, TUPLE, TYPES
from skerry.model.commits import Policy
from skerry.model.results import Value
from skerry.wire.codec import encode_batch, encode_schema
from skerry.wire.execution import (
    Body,
    CacheMiss,
    CacheMissReply,
    Column,
    Delete,
    DeleteSelected,
    Dql,
    Exact,
    Fixed,
    Insert,
    InsertSelected,
    LocalItem,
    LocalUpdate,
    Options,
    Reference,
    Request,
    SharedItem,
    SharedUpdate,
    TypeCode,
    UpdateSelected,
    member_number,
    plan_number,
)
from skerry.wire.execution_codec import encode_miss, encode_miss_reply, encode_request
from skerry.wire.frames import NUMBERED, encode_batch_frame, encode_message, encode_numbered
from skerry.wire.kinds import KINDS
from skerry.wire.messages import Batch, Goodbye, Hello, Message, OpenChannel
from skerry.wire.tuples import encode_tuple

CORPUS = Path(__file__).parent / "corpus"
HEADER_BYTES = 9
VALUES = (Value("int", 7), Value("date", 20_000), Value("decimal(5,2)", "123.45"), Value("array<string>", ["a", None]))
ROWS_OF = (
    {"i": [1, None], "s": ["a", "ø"], "b": [True, None], "d": [None, None]},
    {"l": [["x"], None], "m": [[("k", 1)], []], "st": [{"x": 1}, None], "n": [None, None]},
)
FINGERPRINT = bytes(range(16))
QUERY = Dql(
    *(
        {128: 1},
        plan_number(FINGERPRINT),
        member_number("oslo"),
        {"TMP_1": (b"\x91\x01",)},
        Options(100, 200),
        (3, "x"),
    ),
    Exact(FINGERPRINT, "oslo", ("int", "string")),
)
BODIES: dict[str, Body] = {
    "dql": QUERY,
    "insert": Insert(128, 1, Policy.NOTHING, (b"\x92\x01\x02",)),
    "shared-update": SharedUpdate(128, 1, (SharedItem((1, "a"), b"\x92\x02\xa1a"),)),
    "local-update": LocalUpdate(128, 1, (LocalItem((1,), ((True, 1), (None, 2))),)),
    "delete": Delete(128, 1, (b"\x91\x01",)),
    "delete-all": Delete(128, 1),
    "delete-selected": DeleteSelected(128, 1, QUERY),
    "insert-selected": InsertSelected(128, 1, (0, 2), Policy.FAIL, (Reference(1), Fixed("x")), QUERY),
    "update-selected": UpdateSelected(128, 1, {1: 2}, (0,), QUERY),
}
REPLY = CacheMissReply(
    {128: 1}, {"TMP_1": (Column("a", TypeCode.INTEGER, "bigint"), Column("b", TypeCode.ANY))}, "SELECT 1"
)
ROW: tuple[Any, ...] = (
    *(True, -5, 2**40, 0.5, -0.0, f"-{'9' * 20}.{'1' * 18}", "0.00001", "ø", b"\xff", 20_000, -1, 1, 10**9, 7),
    *(["7", None], [("k", 3)], (1, [0.25, None]), None),
)


def seeds() -> dict[str, bytes]:
    """By name: all of them are accepted by `fuzz.target.check`."""
    found: dict[str, bytes] = {}
    for kind, message in sorted(KINDS.items()):
        frame = _frame(kind, _sample(message))
        found[f"frame-{message.__name__}"] = bytes([FRAME, kind]) + frame[HEADER_BYTES:]
    for name, body in BODIES.items():
        found[f"packet-{name}"] = bytes([PACKET, REQUEST]) + encode_request(Request("r", body))
    found["packet-miss"] = bytes([PACKET, MISS]) + encode_miss(CacheMiss("r", 7))
    found["packet-miss-reply"] = bytes([PACKET, MISS_REPLY]) + encode_miss_reply(REPLY)
    found["tuple-all"] = bytes([TUPLE]) + encode_tuple(ROW)
    found["tuple-nulls"] = bytes([TUPLE]) + encode_tuple([None] * len(TYPES))
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
        if old.name.startswith(("frame-", "schema-", "rows-", "stream-", "packet-", "tuple-")):
            old.unlink()
    for name, content in seeds().items():
        (CORPUS / name).write_bytes(content)
    print(f"{len(seeds())} seeds in {CORPUS}")


if __name__ == "__main__":
    main()
