"""Writes of several statements to one key become one."""

from __future__ import annotations

import pytest

from skerry.model.commits import Part, Policy, Staged, Versions, Write
from skerry.model.errors import UserError
from skerry.tables.transaction import Transaction
from tests.unit.tables.commit_members import TABLE, put, txn

FAIL, NOTHING, REPLACE = Policy.FAIL, Policy.NOTHING, Policy.REPLACE


def transaction() -> Transaction:
    return Transaction(txn().query, read_ts=5, first_start=3)


@pytest.mark.parametrize(
    ("first", "second", "policy", "row"),
    [
        ((FAIL, "a"), (REPLACE, "b"), FAIL, b"b"),
        ((FAIL, "a"), (REPLACE, None), FAIL, None),
        ((FAIL, "a"), (NOTHING, "b"), FAIL, b"a"),
        ((NOTHING, "a"), (REPLACE, "b"), REPLACE, b"b"),
        ((NOTHING, "a"), (REPLACE, None), REPLACE, None),
        ((NOTHING, "a"), (NOTHING, "b"), NOTHING, b"a"),
        ((REPLACE, "a"), (NOTHING, "b"), REPLACE, b"a"),
        ((REPLACE, "a"), (REPLACE, None), REPLACE, None),
        ((REPLACE, None), (FAIL, "b"), REPLACE, b"b"),
        ((REPLACE, None), (NOTHING, "b"), REPLACE, b"b"),
    ],
)
def test_the_first_demand_and_the_last_row_count(
    first: tuple[Policy, str | None], second: tuple[Policy, str | None], policy: Policy, row: bytes | None
) -> None:
    whole = transaction()
    for demand, value in (first, second):
        whole.add("oslo", put("k", value, demand))
    write = Write(TABLE, b"k", row, policy)
    assert whole.own("oslo", TABLE) == {b"k": write}
    assert whole.parts() == {"oslo": Part((write,))}


def test_an_insert_deleted_again_must_still_have_been_possible() -> None:
    whole = transaction()
    for row, policy in (("a", FAIL), (None, REPLACE), ("b", FAIL)):
        whole.add("oslo", put("k", row, policy))
    assert whole.parts()["oslo"].writes == (Write(TABLE, b"k", b"b", FAIL),)


@pytest.mark.parametrize("first", [FAIL, NOTHING, REPLACE])
def test_a_row_of_its_own_is_in_the_way_too(first: Policy) -> None:
    whole = transaction()
    whole.add("oslo", put("k", "a", first))
    with pytest.raises(UserError, match="same primary key"):
        whole.add("oslo", Part((*put("l").writes, *put("k", "b", FAIL).writes)))
    assert set(whole.own("oslo", TABLE)) == {b"k"}


def test_files_and_rows_of_one_table_do_not_mix() -> None:
    whole = transaction()
    whole.add("oslo", Part(staged=(Staged(TABLE, ("a.parquet",)),)))
    with pytest.raises(UserError, match="both single rows and files"):
        whole.add("oslo", put("k"))
    assert whole.own("oslo", TABLE) == {}
    assert whole.own("bergen", TABLE) == {}


def test_a_table_that_changes_on_the_way_is_noticed() -> None:
    whole = transaction()
    whole.add("oslo", Part(put("k").writes, versions=(Versions(TABLE, 1, 1),)))
    with pytest.raises(UserError, match="has changed"):
        whole.add("oslo", Part(put("l").writes, versions=(Versions(TABLE, 2, 1),)))
    assert whole.parts()["oslo"].versions == (Versions(TABLE, 1, 1),)
