"""Packets of document 002: their bytes, worked out by hand from its tables, and what is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from skerry.model.commits import Policy
from skerry.model.errors import Overloaded, PeerError
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
from skerry.wire.execution_codec import (
    decode_miss,
    decode_miss_reply,
    decode_request,
    encode_miss,
    encode_miss_reply,
    encode_request,
)

UUID = "0b8f9d2a-6a3e-4f0e-9c1b-1f2e3d4c5b6a"
HEAD = "93 d924" + UUID.encode().hex()
TUPLES = (b"\x92\x01\x02", b"\x92\x03\x04")
FINGERPRINT = bytes(range(16))
# schema_info {128: 1}, plan_id 258, sender_id 3, vtables {"TMP_13": one tuple}, options and params of the document.
QUERY = Dql({128: 1}, 258, 3, {"TMP_13": (b"\x91\x07",)}, Options(100, 200), (3, True, 1.0, 10))
DQL = "81 cc80 01  cd0102  03  81 a6 544d505f3133 91 c402 9107  92 64 ccc8  94 03 c3 cb3ff0000000000000 0a"

GOLDEN: dict[str, tuple[Body, str]] = {
    "query": (QUERY, f"00 96 {DQL}"),
    "query with nothing": (Dql({}, 0, 0, {}, Options(), ()), "00 96 80 00 00 80 92 00 00 90"),
    "delete all": (Delete(128, 1), "01 92 02 92 cc80 01"),
    "delete none": (Delete(128, 1, ()), "01 92 02 93 cc80 01 90"),
    "delete two": (Delete(128, 1, TUPLES), "01 92 02 93 cc80 01 92 c403 920102 c403 920304"),
    "insert, fail": (Insert(128, 1, Policy.FAIL, ()), "01 92 00 94 cc80 01 00 90"),
    "insert, nothing": (
        Insert(128, 1, Policy.NOTHING, TUPLES),
        "01 92 00 94 cc80 01 01 92 c403 920102 c403 920304",
    ),
    "insert, replace": (Insert(1, 2**64 - 1, Policy.REPLACE, ()), "01 92 00 94 01 cfffffffffffffffff 02 90"),
    "shared update": (
        SharedUpdate(128, 1, (SharedItem((1, "some"), b"\x92\x05\xc0"),)),
        "01 92 01 94 cc80 01 00 91 92 92 01 a4736f6d65 c403 9205c0",
    ),
    "local update": (
        LocalUpdate(128, 1, (LocalItem((1, b"k"), ((True, 1), ("some", 2))),)),
        "01 92 01 94 cc80 01 01 91 92 92 01 c4016b 92 92 c3 01 92 a4736f6d65 02",
    ),
    "delete + query": (DeleteSelected(128, 1, QUERY), f"02 92 02 98 cc80 01 {DQL}"),
    "insert + query": (
        InsertSelected(128, 1, (1, 2, 3), Policy.NOTHING, (Reference(0), Fixed("x")), QUERY),
        f"02 92 00 9b cc80 01 93 010203 01 92 92 00 00 92 01 a178 {DQL}",
    ),
    "update + query": (
        UpdateSelected(128, 1, {1: 2, 2: 3}, (0, 4), QUERY),
        f"02 92 01 9a cc80 01 82 0102 0203 92 00 04 {DQL}",
    ),
}
EXACT = Dql(
    *({}, plan_number(FINGERPRINT), member_number("oslo"), {}, Options(), (20_000,)),
    Exact(FINGERPRINT, "oslo", ("date",)),
)
REPLY = CacheMissReply({128: 1}, {"TMP_1": (Column("a", TypeCode.INTEGER), Column("b", TypeCode.MAP))}, "SELECT 1")


@pytest.mark.parametrize("name", GOLDEN)
def test_a_request_has_the_bytes_of_the_document(name: str) -> None:
    body, expected = GOLDEN[name]
    request = Request(UUID, body)
    assert encode_request(request).hex() == (HEAD + expected).replace(" ", "")
    assert decode_request(encode_request(request)) == request


def test_a_cache_miss_and_its_reply_have_the_bytes_of_the_document() -> None:
    assert encode_miss(CacheMiss("ab", 258)).hex() == "92a26162cd0102"
    assert decode_miss(encode_miss(CacheMiss("ab", 258))) == CacheMiss("ab", 258)
    expected = "93 81cc8001 81 a5544d505f31 92 92a16105 92a16200 a853454c4543542031"
    assert encode_miss_reply(REPLY).hex() == expected.replace(" ", "")
    assert decode_miss_reply(encode_miss_reply(REPLY)) == REPLY


def test_what_the_document_lacks_stands_behind_its_fields() -> None:
    plain = encode_request(Request("r", msgspec.structs.replace(EXACT, exact=msgspec.UNSET)))
    exact = encode_request(Request("r", EXACT))
    added = "93 c410 000102030405060708090a0b0c0d0e0f a46f736c6f 91a464617465".replace(" ", "")
    assert exact.hex() == plain.hex().replace("0096", "0097", 1) + added
    assert decode_request(exact) == Request("r", EXACT)
    spark = msgspec.structs.replace(REPLY, vtables={"TMP_1": (Column("a", TypeCode.SCALAR, "binary"),)})
    assert decode_miss_reply(encode_miss_reply(spark)) == spark


def test_fields_of_a_newer_release_are_not_looked_at() -> None:
    assert decode_request(packed("r", 1, [0, [1, 2, 0, [], "new"], "new"], "new")) == Request("r", GOLDEN_EMPTY)
    assert decode_request(packed("r", 1, [2, [1, 2, [], "new"]])) == Request("r", Delete(1, 2, ()))


GOLDEN_EMPTY = Insert(1, 2, Policy.FAIL, ())
NO_QUERY = [{}, 0, 0, {}, [0, 0], []]
DEEP: Any = 1
for _ in range(30):
    DEEP = [DEEP]


def packed(*fields: Any) -> bytes:
    return msgspec.msgpack.encode(fields)


REFUSED: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "request: Input data was truncated"),
    "a claim of four billion fields": (b"\xdd\xff\xff\xff\xff", "request: Input data was truncated"),
    "no request id": (packed("", 0, []), "request: request_id: Expected `str` of length >= 1"),
    "a long request id": (packed("x" * 65, 0, []), "request_id: Expected `str` of length <= 64"),
    "an unknown type": (packed("r", 3, []), "request: type: Invalid enum value 3"),
    "an unknown DML": (packed("r", 1, [3, []]), "request 'r': type: Invalid enum value 3"),
    "an unknown policy": (packed("r", 1, [0, [1, 1, 3, []]]), "INSERT: policy: Invalid enum value 3"),
    "an unknown update": (packed("r", 1, [1, [1, 1, 2, []]]), "UPDATE: type: Invalid enum value 2"),
    "a table beyond 32 bits": (packed("r", 1, [2, [2**32, 1]]), "DELETE: table: Expected `int` <= 4294967295"),
    "a negative version": (packed("r", 1, [2, [1, -1]]), "DELETE: version: Expected `int` >= 0"),
    "nil where all rows would go": (packed("r", 1, [2, [1, 1, None]]), "DELETE: tuples: Expected `array`, got `None`"),
    "a delete without version": (packed("r", 1, [2, [1]]), "at least length 2, got 1"),
    "too many tuples": (packed("r", 1, [2, [1, 1, [b""] * 4097]]), "tuples: Expected `array` of length <= 4096"),
    "text for a tuple": (packed("r", 1, [2, [1, 1, ["x"]]]), "tuples: Expected `bytes`, got `str`"),
    "an update of nothing": (packed("r", 1, [1, [1, 1, 1, [[[1], []]]]]), "Expected `array` of length >= 1"),
    "an update without key": (packed("r", 1, [1, [1, 1, 0, [[[], b""]]]]), "Expected `array` of length >= 1"),
    "a column set twice": (
        packed("r", 1, [1, [1, 1, 1, [[[1], [[1, 3], [2, 3]]]]]]),
        "UPDATE (LOCAL): values: a position stands there twice",
    ),
    "a column beyond all": (packed("r", 1, [1, [1, 1, 1, [[[1], [[1, 256]]]]]]), "Expected `int` <= 255"),
    "a query without its end": (packed("r", 0, [{}, 1, 1]), "DQL: Expected `array` of at least length 6, got 3"),
    "DML + DQL without query": (packed("r", 2, [2, [1, 1]]), "DELETE + DQL: 2 fields where 2 and those of a query"),
    "too many fields": (packed("r", 2, [2, [1] * 16]), "DELETE + DQL: Expected `array` of length <= 15"),
    "a negative plan": (packed("r", 2, [2, [1, 1, {}, -1, 1, {}, [0, 0], []]]), "query.plan_id: Expected `int` >= 0"),
    "a map as value": (packed("r", 0, [*NO_QUERY[:5], [{1: 2}]]), "params: a value of msgpack type dict"),
    "an extension as value": (packed("r", 0, [*NO_QUERY[:5], [msgspec.msgpack.Ext(1, b"")]]), "msgpack type Ext"),
    "a deep value": (packed("r", 0, [*NO_QUERY[:5], [DEEP]]), "params: a value nested more than 20 deep"),
    "depths": (b"\x93\xa1r\x00" + b"\x91" * 5000 + b"\x01", "request: maximum recursion depth"),
    "a column twice": (
        packed("r", 2, [0, [1, 1, [1, 1], 0, [], *NO_QUERY]]),
        "INSERT + DQL: columns: a position stands there twice",
    ),
    "an unknown target": (packed("r", 2, [0, [1, 1, [1], 0, [[2, 1]], *NO_QUERY]]), "Invalid value 2"),
    "a key twice": (
        packed("r", 2, [1, [1, 1, {1: 1}, [0, 0], *NO_QUERY]]),
        "UPDATE + DQL: pk_positions: a position stands there twice",
    ),
    "another plan": (
        packed("r", 0, [*NO_QUERY, [FINGERPRINT, "oslo", []]]),
        "plan_id 0 is not that of plan 000102030405060708090a0b0c0d0e0f",
    ),
    "another sender": (
        packed("r", 0, [{}, plan_number(FINGERPRINT), 1, *NO_QUERY[3:], [FINGERPRINT, "oslo", []]]),
        "sender_id 1 is not that of member 'oslo'",
    ),
    "types without values": (
        packed("r", 0, [{}, EXACT.plan_id, EXACT.sender_id, *NO_QUERY[3:], [FINGERPRINT, "oslo", ["int"]]]),
        "1 types for 0 params",
    ),
    "bytes behind the end": (packed("r", 1, [2, [1, 1]]) + b"\x00", "request: MessagePack data is malformed"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_request_is_refused(name: str) -> None:
    data, message = REFUSED[name]
    with pytest.raises(PeerError) as caught:
        decode_request(data)
    assert message in caught.value.message


@pytest.mark.parametrize(
    "body",
    [
        Delete(1, 1, (b"",) * 4097),
        LocalUpdate(1, 1, (LocalItem((1,), ((1, 1),)),) * 4097),
        DeleteSelected(1, 1, msgspec.structs.replace(QUERY, vtables={"T": (b"",) * 4097})),
    ],
    ids=lambda body: type(body).__name__,
)
def test_nobody_sends_more_tuples_than_are_taken(body: Body) -> None:
    with pytest.raises(Overloaded, match="4097 tuples in one packet or virtual table are over the limit of 4096"):
        encode_request(Request("r", body))


def test_sizes_are_bounded_both_ways() -> None:
    request = Request("r", Insert(1, 1, Policy.FAIL, (bytes(2000),)))
    with pytest.raises(Overloaded, match="over the limit of 1000"):
        encode_request(request, 1000)
    with pytest.raises(PeerError, match="request: 2014 bytes are over the limit of 1000"):
        decode_request(encode_request(request), 1000)
    with pytest.raises(PeerError, match="over the limit of 10"):
        decode_miss_reply(encode_miss_reply(REPLY), 10)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["a", 11], "vtables: Invalid enum value 11"),
        (["", 5], "vtables: Expected `str` of length >= 1"),
        (["a", 5, "string"], "column 'a' of 'T' says type INTEGER and string, which is STRING"),
        (["a", 5, "array<"], "column 'a' of 'T': 'array<' is not a type whose values travel"),
        (["a", 5, None], "vtables: Expected `str`, got `None`"),
    ],
)
def test_a_reply_whose_columns_are_wrong_is_refused(column: list[Any], message: str) -> None:
    with pytest.raises(PeerError) as caught:
        decode_miss_reply(packed({}, {"T": [column]}, "SELECT 1"))
    assert message in caught.value.message
