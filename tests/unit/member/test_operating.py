"""An operator of the member over real spools: columns that agree, rows as they come, errors of those who send."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from skerry.exchange.spool import Budget, Spool
from skerry.member.operating import Operation
from skerry.model.errors import SiteError
from skerry.model.fragment import EdgeLeaf, Finish, MergeStep, OperatorFragment, Output, Plan, Rows, SortKey
from skerry.model.limits import MIB, Limits
from skerry.model.results import Schema
from skerry.model.table import Column
from skerry.plan.explain import describe, explain
from skerry.wire.codec import decode_schema, encode_schema
from tests.unit.member.member_samples import ARROW, SCHEMA, entry_of, rows_of, sealed, spool_of

KEYS = (SortKey(0, False, True),)
PARTIAL = pa.schema([("k", pa.int64()), ("c", pa.int64()), ("hidden", pa.string())])
SUMS = (MergeStep(0, "any"), MergeStep(1, "sum"))
COLUMNS = (Column("k", "bigint"), Column("c", "bigint"), Column("hidden", "string"))


def operator(finish: Finish, columns: tuple[Column, ...] = SCHEMA.columns) -> OperatorFragment:
    """Over two edges: bergen and oslo send on the first, tromso on the second."""
    leaves = (EdgeLeaf("", 1, columns, ("bergen", "oslo")), EdgeLeaf("", 2, columns, ("tromso",)))
    return OperatorFragment(3, "tromso", finish, leaves, Output(9, ("oslo",)))


def output_in(directory: Path) -> Spool:
    return Spool(Budget(MIB, MIB), str(directory), "output")


async def attach(operation: Operation, spools: dict[tuple[int, str], Spool], schema: pa.Schema) -> list[int]:
    consumed: list[int] = []
    for (edge, sender), spool in spools.items():
        await asyncio.sleep(0)
        operation.attach(edge, sender, spool, encode_schema(schema), consumed.append)
    return consumed


def made(
    tmp_path: Path, fragment: OperatorFragment, rows: list[list[tuple[Any, ...]]], schema: pa.Schema
) -> tuple[list[tuple[Any, ...]], Schema, list[int]]:
    keys = [(1, "bergen"), (1, "oslo"), (2, "tromso")]
    spools = {key: spool_of(tmp_path, each, schema=schema) for key, each in zip(keys, rows, strict=True)}
    output, told = output_in(tmp_path), []

    async def main() -> tuple[tuple[int, int], list[int]]:
        operation = Operation(fragment, Limits())
        run = asyncio.ensure_future(operation.run(output, told.append))
        consumed = await attach(operation, spools, schema)
        return await run, consumed

    (count, size_bytes), consumed = asyncio.run(main())
    (shown,) = told
    found = [row for at in range(output.length) for row in rows_of(output.read(at).body, decode_schema(shown.arrow))]
    assert output.finished
    assert (count, size_bytes) == (
        len(found),
        sum(output.read(at).decoded_bytes for at in range(output.length)),
    )
    assert output.budget.state_used == 0
    return found, shown, consumed


def test_sorted_rows_of_two_edges_are_merged(tmp_path: Path) -> None:
    rows = [[(1, "a"), (4, "b")], [(2, "c")], [(3, "d"), (5, "e")]]
    found, shown, consumed = made(tmp_path, operator(Finish(KEYS)), rows, ARROW)
    assert found == [(1, "a"), (2, "c"), (3, "d"), (4, "b"), (5, "e")]
    assert shown == SCHEMA
    assert len(consumed) == 3


def test_partial_groups_become_one_and_hidden_columns_stay(tmp_path: Path) -> None:
    fragment = operator(Finish(KEYS, 0, 2, SUMS), COLUMNS)
    rows = [[(1, 10, "x"), (2, 1, "x")], [(2, 5, "y")], [(3, 9, "z")]]
    found, shown, _ = made(tmp_path, fragment, rows, PARTIAL)
    assert found == [(1, 10), (2, 6)]
    assert shown.columns == COLUMNS[:2]


def test_rows_are_made_as_they_come(tmp_path: Path) -> None:
    spools = {key: spool_of(tmp_path, finished=False) for key in ((1, "bergen"), (1, "oslo"), (2, "tromso"))}
    output = output_in(tmp_path)

    async def main() -> tuple[int, int]:
        operation = Operation(operator(Finish()), Limits())
        run = asyncio.ensure_future(operation.run(output, lambda _schema: None))
        await attach(operation, spools, ARROW)
        spools[2, "tromso"].append(entry_of([(7, "x")]))
        while output.length == 0:
            await asyncio.sleep(0)
        assert not output.finished
        for spool in spools.values():
            spool.finish()
        return await run

    assert asyncio.run(main())[0] == 1


def test_a_sender_that_fails_ends_the_operator_with_its_error(tmp_path: Path) -> None:
    spools = {key: spool_of(tmp_path, finished=False) for key in ((1, "bergen"), (1, "oslo"), (2, "tromso"))}

    async def main() -> None:
        operation = Operation(operator(Finish(KEYS)), Limits())
        run = asyncio.ensure_future(operation.run(output_in(tmp_path), lambda _schema: None))
        await attach(operation, spools, ARROW)
        spools[1, "oslo"].fail(SiteError("site oslo is down"))
        await run

    with pytest.raises(SiteError, match="site oslo is down"):
        asyncio.run(main())


def test_senders_whose_columns_have_other_types_are_named(tmp_path: Path) -> None:
    async def main() -> None:
        operation = Operation(operator(Finish()), Limits())
        run = asyncio.ensure_future(operation.run(output_in(tmp_path), lambda _schema: None))
        await attach(operation, {(1, "bergen"): spool_of(tmp_path), (1, "oslo"): spool_of(tmp_path)}, ARROW)
        await attach(operation, {(2, "tromso"): spool_of(tmp_path, schema=PARTIAL)}, PARTIAL)
        await run

    with pytest.raises(SiteError, match="sites bergen and tromso give fragment 3 different columns"):
        asyncio.run(main())


def test_a_plan_with_an_operator_keeps_it_over_the_wire_and_is_explained() -> None:
    fragment = operator(Finish(KEYS, 0, 10, SUMS), COLUMNS)
    plan = sealed(Plan("", (fragment,), Rows(9, ("tromso",)), {}))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(plan), type=Plan) == plan == plan.to_run()
    other = sealed(msgspec.structs.replace(plan, fragments=(operator(Finish(KEYS), COLUMNS),)))
    assert other.plan_id != plan.plan_id
    assert plan.jobs == ()
    (told,) = describe(plan, "oslo")["fragments"]
    assert told["operators"] == ["merge", "aggregate", "limit 10"]
    assert [each["edge"] for each in told["reads"]] == [1, 2]
    assert "sql" not in told
    assert "    by the member itself" in explain(plan, "oslo")
