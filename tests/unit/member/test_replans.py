"""A statement is planned again once if files of its tables change, and some times if tables of our own do."""

from __future__ import annotations

import msgspec
import pytest

from skerry.member.replans import Replans
from skerry.model.errors import EngineEnded, StaleSchema
from skerry.model.limits import STALE_OWN
from skerry.model.sharded import BucketMap, Definition, OwnColumn, OwnTable

STALE = StaleSchema("site oslo: table t has changed, or is gone", member="oslo")
TABLE = OwnTable(1, "T", 1, (OwnColumn("id", "bigint"),), ("id",), ("id",), ("oslo",))


class Known:
    def __init__(self) -> None:
        self.definitions = {"t": Definition(TABLE, BucketMap(1, 1, ((0, 16384, "oslo"),)))}
        self.replans = Replans(lambda: self.definitions)

    def alter(self) -> None:
        before = self.definitions["t"]
        table = msgspec.structs.replace(before.table, version=before.table.version + 1)
        self.definitions = {"t": msgspec.structs.replace(before, table=table)}

    def move(self) -> None:
        before = self.definitions["t"]
        buckets = msgspec.structs.replace(before.buckets, version=before.buckets.version + 1)
        self.definitions = {"t": msgspec.structs.replace(before, buckets=buckets)}


def test_tables_of_our_own_that_are_altered_and_move_are_followed_some_times() -> None:
    known = Known()
    for number in range(STALE_OWN):
        (known.move if number % 2 else known.alter)()
        known.replans.note(STALE, ("oslo.orders", "oslo.T"))
    known.move()
    with pytest.raises(StaleSchema, match=f"its tables changed {STALE_OWN + 1} times") as raised:
        known.replans.note(STALE, ("oslo.orders", "oslo.T"))
    assert raised.value.member == "oslo"
    assert raised.value.suggestion == "run it again when nobody alters them and no rows move"


@pytest.mark.parametrize("tables", [("oslo.orders",), ("oslo.t",), ()])
def test_what_is_stale_again_without_such_a_change_is_an_error_that_says_what_to_do(tables: tuple[str, ...]) -> None:
    known = Known()
    known.replans.note(STALE, tables)
    if "oslo.t" not in tables:
        known.alter()  # another table than the statement's
    with pytest.raises(StaleSchema, match="its tables changed 2 times") as raised:
        known.replans.note(STALE, tables)
    assert raised.value.suggestion == "run it again when nobody replaces their files"


def test_an_engine_that_ends_twice_ends_the_statement() -> None:
    known, ended = Known(), EngineEnded("Sail ended")
    known.replans.note(ended, ())
    known.replans.note(STALE, ())
    with pytest.raises(EngineEnded):
        known.replans.note(ended, ())
