"""What a transaction has written: each statement meets the snapshot under its own rows, and one commit comes of all."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from skerry.model.commits import FoundAt, Part, Policy, Versions, Write
from skerry.model.errors import KeyExists, PeerError, UserError
from skerry.model.sharded import OwnColumn, OwnTable
from skerry.tables.checks import actions_of, changes_of, encode_patch, found_of
from skerry.tables.columns import arrow_schema
from skerry.tables.lookup import FoundRow
from skerry.tables.participant import _as_found, _takes_effect
from skerry.tables.rows import decode_rows
from skerry.tables.shard import Shard
from skerry.tables.transaction import Transaction
from skerry.tables.writes import decode_body, deletes_of, encode_body, writes_of
from tests.unit.tables.table_samples import SECOND

FAIL, NOTHING, REPLACE = Policy.FAIL, Policy.NOTHING, Policy.REPLACE
COLUMNS = (OwnColumn("k", "int", is_nullable=False), OwnColumn("n", "int"), OwnColumn("t", "string"))
TABLE = OwnTable(7, "t", 1, COLUMNS, ("k",), ("k",), ("oslo",))
VERSIONS = (Versions(7, 1, 1),)
ROOM = 1 << 30
Row = tuple[int, int | None, str]


def row(*values: Any) -> Write:
    batch = pa.RecordBatch.from_pylist([dict(zip("knt", values, strict=True))], arrow_schema(TABLE))
    (write,) = writes_of(TABLE, batch)
    return write


def key(number: int) -> bytes:
    return row(number, None, "").key


def put(policy: Policy, *values: Any) -> Write:
    return msgspec.structs.replace(row(*values), policy=policy)


def patch(number: int, *values: tuple[int, Any]) -> Write:
    return Write(7, key(number), encode_patch(values), is_patch=True)


def gone(number: int) -> Write:
    keys = pa.RecordBatch.from_pylist([{"k": number}], pa.schema([("k", pa.int32())]))
    return deletes_of(TABLE, keys)[0]


class World:
    """A snapshot, and a transaction over it."""

    def __init__(self, *rows: Row, bytes_max: int = 1000, rows_max: int = 100) -> None:
        self.base = {key(each[0]): row(*each).row for each in rows}
        self.held = Transaction(5, rows_max, bytes_max)

    def found(self, write: Write) -> FoundAt:
        """As members tell it: nobody looks for what is replaced in any case."""
        there = self.base.get(write.key)
        if write.policy is REPLACE and write.row is not None and not write.is_patch:
            return FoundAt(False)
        (met,) = found_of(TABLE, [write], [FoundRow(1, there is not None, there)])
        return FoundAt(met.is_live, met.row)

    def say(self, *writes: Write, versions: tuple[Versions, ...] = VERSIONS, room: int = ROOM) -> int:
        parts, found = {"oslo": Part(writes, versions=versions)}, {"oslo": tuple(map(self.found, writes))}
        return self.held.apply(parts, found, TABLE, room)

    def seen(self) -> list[Row]:
        """What a query of the transaction reads: changes are laid over the snapshot."""
        shown = dict(self.base)
        for changed in self.held.changes(lambda table: table == 7).get("oslo", ()):
            shown |= dict(decode_body(changed.body)[1])
        return rows_of(shown)

    def committed(self) -> list[Row]:
        """What COMMIT makes, as a participant carries it out where nobody has written since."""
        shown = dict(self.base)
        for write in self.written:
            there = shown.get(write.key)
            (met,) = found_of(TABLE, [write], [FoundRow(1, there is not None, there)])
            assert not (write.policy is FAIL and met.is_live)
            if _takes_effect(write, met):
                shown[write.key] = _as_found(write, met).row
        return rows_of(shown)

    @property
    def written(self) -> tuple[Write, ...]:
        return self.held.parts("anna", ()).get("oslo", Part()).writes


def rows_of(shown: dict[bytes, bytes | None]) -> list[Row]:
    found = decode_rows(arrow_schema(TABLE), [each for each in shown.values() if each is not None])
    return sorted(tuple(each.values()) for each in found.to_pylist())  # type: ignore[misc]


@pytest.mark.parametrize(
    ("statements", "seen", "written", "actions"),
    [
        ([put(FAIL, 9, 1, "a")], (9, 1, "a"), put(FAIL, 9, 1, "a"), ("insert",)),
        ([put(NOTHING, 9, 1, "a"), patch(9, (1, 2))], (9, 2, "a"), put(FAIL, 9, 2, "a"), ("insert",)),
        ([put(FAIL, 9, 1, "a"), gone(9)], None, None, ()),
        ([put(FAIL, 9, 1, "a"), gone(9), put(FAIL, 9, 3, "c")], (9, 3, "c"), put(FAIL, 9, 3, "c"), ("insert",)),
        ([put(REPLACE, 9, 1, "a"), gone(9)], None, gone(9), ("delete",)),
        ([put(REPLACE, 9, 1, "a"), patch(9, (2, "b"))], (9, 1, "b"), put(REPLACE, 9, 1, "b"), ("insert", "update")),
        ([patch(1, (1, 2)), patch(1, (2, "b"), (1, 3))], (1, 3, "b"), patch(1, (1, 3), (2, "b")), ("update",)),
        ([patch(1, (1, 2)), gone(1)], None, gone(1), ("delete",)),
        ([gone(1), put(FAIL, 1, 3, "c")], (1, 3, "c"), put(REPLACE, 1, 3, "c"), ("insert", "update")),
        ([gone(1), put(NOTHING, 1, 3, "c"), patch(1, (1, 4))], (1, 4, "c"), put(REPLACE, 1, 4, "c"), None),
        ([patch(1, (1, 2)), put(REPLACE, 1, 3, "c")], (1, 3, "c"), put(REPLACE, 1, 3, "c"), None),
    ],
)
def test_statements_on_one_key_become_one_write(
    statements: list[Write], seen: Row | None, written: Write | None, actions: tuple[str, ...] | None
) -> None:
    """It asks for no more rights than the statements did."""
    world = World((1, 1, "x"))
    assert [world.say(each) for each in statements] == [1] * len(statements)
    number = statements[0].key
    assert [each for each in world.seen() if key(each[0]) == number] == ([seen] if seen else [])
    assert world.written == (() if written is None else (written,))
    if written is not None and actions is not None:
        assert actions_of(world.written[0]) == actions
    assert world.committed() == world.seen()


def test_what_is_not_there_is_not_changed_and_a_statement_that_fails_leaves_nothing() -> None:
    world = World((1, 1, "x"), rows_max=2)
    assert [world.say(patch(2, (1, 1))), world.say(gone(2)), world.say(put(NOTHING, 1, 5, "no"))] == [0, 0, 0]
    assert not world.held.parts("", ())
    for _ in range(2):  # a row of the snapshot, then one of its own
        with pytest.raises(KeyExists):
            world.say(put(FAIL, 3, 3, "c"), put(FAIL, 1, 9, "z"))
        assert [each[0] for each in world.seen() if each[0] != 2] == [1]
        world.say(patch(1, (1, 7)))
    assert world.say(put(FAIL, 2, 2, "b")) == 1
    with pytest.raises(UserError, match="at most 2 rows and 1000 bytes"):
        world.say(put(FAIL, 3, 3, "c"))
    with pytest.raises(UserError, match="as much as they may"):
        world.say(patch(1, (2, "longer")), room=10)
    with pytest.raises(UserError, match="has changed since"):
        world.say(gone(1), versions=(Versions(7, 2, 1),))
    with pytest.raises(PeerError, match="0 rows of 1"):
        world.held.apply({"oslo": Part((gone(1),), versions=VERSIONS)}, {"oslo": ()}, TABLE, ROOM)
    assert world.seen() == [(1, 7, "x"), (2, 2, "b")]
    assert world.say(gone(1)) == world.say(gone(2)) == 1
    assert (world.seen(), world.held.rows) == ([], 1)
    assert world.held.size_bytes == len(key(1))


def test_any_statements_are_those_of_a_dict() -> None:
    """Counts, what queries see, and what is committed."""
    random = Random(59)
    for _ in range(20):
        rows: dict[int, Row] = {number: (number, number, "x") for number in range(6) if random.random() < 0.5}
        world = World(*rows.values())
        for turn in range(8):
            keys, counted = random.sample(range(6), random.randint(1, 3)), 0
            kind = random.choice(("fail", "nothing", "replace", "set n", "set t", "delete"))
            expected, is_refused, writes = dict(rows), False, list[Write]()
            for number in keys:
                there = rows.get(number)
                if kind == "delete":
                    writes.append(gone(number))
                    counted += expected.pop(number, None) is not None
                elif kind.startswith("set"):
                    change = (1, turn) if kind == "set n" else (2, f"t{turn}")
                    writes.append(patch(number, change))
                    if there is not None:
                        made = (number, turn, there[2]) if kind == "set n" else (number, there[1], f"t{turn}")
                        expected[number], counted = made, counted + 1
                else:
                    writes.append(put(Policy[kind.upper()], number, -turn, kind))
                    is_refused |= kind == "fail" and there is not None
                    if there is None or kind == "replace":
                        expected[number], counted = (number, -turn, kind), counted + 1
            if is_refused:
                with pytest.raises(KeyExists):
                    world.say(*writes)
                continue
            assert world.say(*writes) == counted
            rows = expected
            assert world.seen() == sorted(rows.values())
        assert world.committed() == sorted(rows.values())


def test_a_shard_is_read_with_what_a_transaction_wrote() -> None:
    """As if it had been committed last; what others see stays as it is, and is told apart."""
    shard = Shard(TABLE, "nowhere")
    shard.apply(SECOND, [(write.key, write.row) for write in (row(1, 1, "a"), row(2, 2, "b"), row(3, 3, "c"))])
    shard.apply(2 * SECOND, [(key(3), None)])

    def read(*pairs: tuple[bytes, bytes | None]) -> tuple[list[Any], list[int], int]:
        body = encode_body(Write(7, *each) for each in pairs)
        snapshot = shard.snapshot(3 * SECOND, changes_of(shard, body) if pairs else None)
        shown = sorted(tuple(each.values()) for each in snapshot.rows.to_pylist())
        return shown, sorted(snapshot.keys["k"].to_pylist()), snapshot.last_ts

    before = read()
    assert before == ([(1, 1, "a"), (2, 2, "b")], [1, 2, 3], 2 * SECOND)
    told = read((key(1), None), (key(2), row(2, 9, "z").row), (key(4), row(4, 4, "d").row))
    assert told[:2] == ([(2, 9, "z"), (4, 4, "d")], [1, 2, 3, 4])
    again = read((key(3), row(3, 5, "new").row))
    assert again[:2] == ([(1, 1, "a"), (2, 2, "b"), (3, 5, "new")], [1, 2, 3])
    assert len({told[2], again[2], before[2]}) == 3
    assert max(told[2], again[2]) < 0
    assert read() == before
    for body in (
        b"\x93",
        encode_body([]),
        encode_body([row(1, 1, "a"), row(1, 2, "b")]),
        encode_body([Write(7, b"x", None)]),
    ):
        with pytest.raises(PeerError):
            changes_of(shard, body)
