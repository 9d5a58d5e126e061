"""A statement is planned again once if its tables change, and some times if only their rows move."""

from __future__ import annotations

import msgspec
import pytest

from skerry.member.replans import Replans
from skerry.model.errors import EngineEnded, StaleSchema
from skerry.model.limits import STALE_CHANGES, STALE_MOVES
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


def test_tables_that_change_again_are_an_error_that_says_what_to_do() -> None:
    known = Known()
    assert STALE_CHANGES == 1
    known.alter()
    known.replans.note(STALE, ("oslo.T",))
    known.alter()
    with pytest.raises(StaleSchema, match="its tables changed 2 times") as raised:
        known.replans.note(STALE, ("oslo.T",))
    assert raised.value.member == "oslo"
    assert raised.value.suggestion.startswith("run it again when nobody alters them")


def test_rows_that_move_are_followed_some_times() -> None:
    known = Known()
    for _ in range(STALE_MOVES):
        known.move()
        known.replans.note(STALE, ("oslo.orders", "oslo.T"))
    known.alter()  # a change is counted by itself
    known.replans.note(STALE, ("oslo.orders", "oslo.T"))
    known.move()
    with pytest.raises(StaleSchema, match=f"its rows moved {STALE_MOVES + 1} times") as raised:
        known.replans.note(STALE, ("oslo.orders", "oslo.T"))
    assert "move_bytes_s" in raised.value.suggestion


@pytest.mark.parametrize("tables", [("oslo.orders",), ("oslo.t",), ()])
def test_a_table_of_files_and_one_that_nothing_is_known_of_count_as_changed(tables: tuple[str, ...]) -> None:
    known = Known()
    if "oslo.t" in tables:
        known.definitions = {}  # dropped
    known.replans.note(STALE, tables)
    with pytest.raises(StaleSchema):
        known.replans.note(STALE, tables)


def test_an_engine_that_ends_twice_ends_the_statement() -> None:
    known, ended = Known(), EngineEnded("Sail ended")
    known.replans.note(ended, ())
    known.replans.note(STALE, ())
    with pytest.raises(EngineEnded):
        known.replans.note(ended, ())
