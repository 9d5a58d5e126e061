"""A member's tables without a Spark: what its files alone decide."""

from __future__ import annotations

import asyncio
import itertools
import logging
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from skerry.catalog.reads import Reads
from skerry.config import parse
from skerry.member.server import Member
from skerry.model.errors import SiteError, SkerryError
from skerry.spark.failures import translate
from tests.unit.member.table_world import world


async def _with_member(text: str, act: str, *arguments: str) -> None:
    member = Member(parse(text), "oslo", None)
    try:
        part, method = act.split(".")
        await getattr(getattr(member, part), method)(*arguments)
    finally:
        await member.stop()


def test_a_cluster_without_tables_has_nobody_to_ask() -> None:
    text = "cluster: c\nmembers: {oslo: {address: 'h:1'}}"
    assert asyncio.run(_with_member(text, "peer_tables.refresh")) is None


def test_the_bound_on_files_is_the_configurations(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.csv").write_text("1\n")
    text = (
        f"cluster: c\ndata_root: {tmp_path}\nlimits: {{table_files: 1}}\n"
        "members: {oslo: {address: 'h:1', tables: {t: {format: csv, path: '*.csv'}}}}"
    )
    with pytest.raises(SiteError, match="more than 1 files"):
        asyncio.run(_with_member(text, "tables.snapshot", "t"))


def test_a_file_without_its_header_leaves_no_value_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with world(tmp_path, "options: {header: true}") as w:
            w.write("b", "Alice,Oslo\n")
            _, broken = await w.tables.all()
            assert broken["t"].startswith("column 1 of b.csv has another name than column 1 of a.csv")

    asyncio.run(run())
    assert "column 1 of b.csv" in caplog.text
    assert "Alice" not in caplog.text


def test_reads_are_kept_up_to_the_member_s_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = [Reads(lambda file, *stamp: file) for _ in range(2)]
    for name, reads in zip(("FOOTERS", "HEADERS"), kept, strict=True):
        monkeypatch.setattr(f"skerry.member.tables.{name}", reads)

    async def opened(limit: int) -> list[int]:
        async with world(tmp_path, footers=limit):
            for reads, _, file in itertools.product(kept, range(2), ("a", "b")):
                reads.of(file, (1, 1))
            return [reads.count() for reads in kept]

    assert asyncio.run(opened(1)) == [4, 4]
    assert asyncio.run(opened(2)) == [2, 2]


def test_a_table_that_cannot_be_read_is_one_line_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def lines() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.name == "skerry.catalog"]

    async def run() -> None:
        async with world(tmp_path) as w:
            w.spark.unread = SiteError("table t: no such thing")
            for _ in range(3):  # its own member and the others ask, and ask again
                assert await w.tables.all() == ((), {"t": "no such thing"})
            assert lines() == ["table t: no such thing"]
            w.spark.unread = SiteError("table t: another thing")
            await w.tables.named(["t"])
            assert len(lines()) == 2
            w.spark.unread = None
            assert len((await w.tables.all())[0]) == 1
            w.write("b", "4,d\n")
            w.spark.unread = SiteError("table t: another thing")
            await w.tables.all()
            assert len(lines()) == 3, "it was well in between"
            await w.settle()

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())


MALFORMED = (
    "[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are detected: [4711,secret]. SQLSTATE: 22023"
)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            translate(PySparkException(MALFORMED), {}, what="table t"),
            "table t: SiteError (code 300) [MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION]",
        ),
        (translate(PySparkException("Cannot cast '4711,secret'"), {}, what="table t"), "table t: SiteError (code 300)"),
        (SiteError("table t: no file under data/t"), "table t: no file under data/t"),  # all words are ours
    ],
)
def test_a_record_of_a_table_that_cannot_be_read_stays_out_of_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, error: SkerryError, line: str
) -> None:
    async def run() -> None:
        async with world(tmp_path) as w:
            w.spark.unread = error
            parts, broken = await w.tables.all()
            assert (parts, f"table t: {broken['t']}") == ((), error.message)  # whoever asks gets all of it

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert [record.getMessage() for record in caplog.records] == [line]
