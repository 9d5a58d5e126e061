"""What a member keeps over its restarts: statistics of the files as they were, and nothing of other ones."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from skerry.catalog.believed import believed
from skerry.member import keeping, lull
from skerry.member.kept import Kept, KeptSize, KeptTable, Unreadable, decode, encode
from skerry.model.table import Bound, Column, ColumnStats, PartStats, TablePart
from skerry.plan.observed import Size
from tests.unit.member.table_world import ROWS, by_name, world

STATS = PartStats((ColumnStats("k", 1, 3, 0, 3.0, 4.0, True), ColumnStats("s", "a", "é" * 32)), "analyze")
KEPT = Kept(
    "c.oslo", {"t": KeptTable(2**63 - 1, "as", 3, STATS), "u": KeptTable(1, "", None)}, "p", (KeptSize("x y", 1, 2),)
)
MIB = 1024 * 1024
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lull, "_MOMENT_S", 0.01)
    monkeypatch.setattr(keeping, "_STATISTICS_S", 0.01)


def run(test: Callable[[], Any]) -> None:
    asyncio.run(test())


@contextlib.contextmanager
def largest_file(size_bytes: int) -> Iterator[None]:
    """What the disk has room for."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def file_of(folder: Path) -> Path:
    return folder / "state" / "_c.oslo.kept"


# --- bytes ---------------------------------------------------------------------------------------
def test_bytes_and_back() -> None:
    assert decode(encode(KEPT, MIB), "c.oslo") == KEPT
    assert decode(encode(Kept("c.oslo"), MIB), "c.oslo") == Kept("c.oslo")


def test_only_what_was_encoded_is_read() -> None:
    data = encode(KEPT, MIB)
    for place in range(0, len(data), 7):
        broken = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        with pytest.raises(Unreadable, match=r"damaged|another version"):
            decode(broken, "c.oslo")
        with pytest.raises(Unreadable):
            decode(data[:place], "c.oslo")
    with pytest.raises(Unreadable, match="another version"):
        decode(data.replace(b"kept 1", b"kept 2"), "c.oslo")
    with pytest.raises(Unreadable, match="another member's"):
        decode(data, "c.bergen")


def test_a_bound_keeps_statistics_and_the_sizes_used_last() -> None:
    sizes = tuple(KeptSize(f"size {number:05}", number, 2**40) for number in range(5000))
    full = Kept("c.oslo", KEPT.tables, "p", sizes)
    data = encode(full, 64 * 1024)
    assert 32 * 1024 < len(data) <= 64 * 1024
    found = decode(data, "c.oslo")
    assert found.tables == KEPT.tables
    assert 0 < len(found.sizes) < len(sizes)
    assert found.sizes == sizes[-len(found.sizes) :]
    tables = {f"t{number}": KeptTable(1, "as", 3, STATS) for number in range(1000)}
    data = encode(Kept("c.oslo", tables, "p", sizes), 32 * 1024)
    assert len(data) <= 32 * 1024
    found = decode(data, "c.oslo")
    assert 0 < len(found.tables) < 1000
    assert not found.sizes


# --- a member that starts again ------------------------------------------------------------------
def test_a_scan_outlasts_the_member(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path, state="state") as w:
            await w.look()
            stats = await w.settle()
            assert (len(w.spark.jobs), w.spark.counts) == (1, 1)
        assert stat.S_IMODE(file_of(tmp_path).stat().st_mode) == 0o600
        assert os.listdir(tmp_path / "state") == [file_of(tmp_path).name]
        async with world(tmp_path, state="state") as w:
            assert await w.look() == stats
            assert not w.tasks
            assert (len(w.spark.jobs), w.spark.counts) == (0, 0)
            # Other files: none of it holds.
            w.write("b", "4,c\n")
            assert await w.look() is None
            assert await w.settle() == stats
            assert (len(w.spark.jobs), w.spark.counts) == (1, 1)

    run(test)


def test_it_is_written_while_the_member_runs(tmp_path: Path) -> None:
    """One that is killed has not lost it."""

    async def test() -> None:
        async with world(tmp_path, state="state", stats_scan_bytes=0) as w:
            await w.look()
            version = w.tables._known["t"].files.version
            await w.until(file_of(tmp_path).exists)  # the number of rows alone
            before = file_of(tmp_path).read_bytes()
            w.tables.analyzed("t", version, PartStats((ColumnStats("k", ndv=77.0),), "analyze"), ROWS)
            await w.until(lambda: file_of(tmp_path).read_bytes() != before)
            kept = decode(file_of(tmp_path).read_bytes(), "c.oslo").tables["t"]
            assert (kept.files_version, kept.rows) == (version, ROWS)
            assert by_name(kept.stats)["k"].ndv == 77.0

    run(test)


class SlowDisk:
    """Writes are begun at once, and go on when `is_free` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.writes = 0
        self.is_free = threading.Event()
        self._write = keeping._write
        monkeypatch.setattr(keeping, "_write", self.write)

    def write(self, path: str, data: bytes) -> None:
        self.writes += 1
        self.is_free.wait()
        self._write(path, data)


def test_a_member_that_stops_waits_for_what_is_being_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SlowDisk(monkeypatch)

    async def test() -> None:
        async with world(tmp_path, state="state", stats_scan_bytes=0) as w:
            try:
                await w.look()
                await w.until(lambda: disk.writes)
                closing = asyncio.ensure_future(w.keeping.close())
                for _ in range(10):
                    await asyncio.sleep(0)
                assert not closing.done()
            finally:
                disk.is_free.set()
            await closing
            assert decode(file_of(tmp_path).read_bytes(), "c.oslo").tables["t"].rows == ROWS

    run(test)


def test_what_was_written_at_the_end_is_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the task that was about to write it: its thread would outlive the member."""
    disk = SlowDisk(monkeypatch)

    async def test() -> None:
        async with world(tmp_path, state="state", stats_scan_bytes=0) as w:
            try:
                w.observed.restore([("a", Size(1, 2))])
                w.keeping.sizes_changed()
                closing = asyncio.ensure_future(w.keeping.close())
                await w.until(lambda: disk.writes)
                writing = asyncio.ensure_future(w.keeping._write())
                await asyncio.sleep(0)
            finally:
                disk.is_free.set()
            await asyncio.gather(closing, writing)
        assert disk.writes == 1

    run(test)


def test_what_analyze_found_is_there_and_the_rest_is_gathered(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path, state="state", stats_scan_bytes=0) as w:
            await w.look()
            version = w.tables._known["t"].files.version
            w.tables.analyzed("t", version, PartStats((ColumnStats("k", ndv=77.0),), "analyze"), ROWS)
        async with world(tmp_path, state="state") as w:
            assert by_name(await w.look())["k"].ndv == 77.0
            stats = await w.settle()
            assert stats is not None
            assert stats.source == "analyze"
            assert {name: each.ndv for name, each in by_name(stats).items()} == {"k": 77.0, "s": 2.0}

    run(test)


@pytest.mark.parametrize("table", ["options: {mode: DROPMALFORMED}", "leaves: never"])
def test_files_that_are_read_otherwise_are_other_files(tmp_path: Path, table: str) -> None:
    """Bounds are proof for some options and none for others, and may not be told of some tables."""

    async def test() -> None:
        async with world(tmp_path, state="state") as w:
            await w.look()
            k = by_name(await w.settle())["k"]
            assert (k.low, k.is_exact) == (1, True)
        async with world(tmp_path, table, state="state") as w:
            assert await w.look() is None
            k = by_name(await w.settle())["k"]
            assert (k.low, k.is_exact) != (1, True)
            assert len(w.spark.jobs) == 1

    run(test)


def test_other_columns_are_other_files(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path, state="state") as w:
            await w.look()
            await w.settle()
        async with world(tmp_path, state="state") as w:
            w.spark.columns = tuple(reversed(w.spark.columns))
            assert await w.look() is None
            await w.settle()
            assert len(w.spark.jobs) == 1

    run(test)


def test_sizes_of_edges(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path, state="state") as w:
            w.observed.restore([("a", Size(1, 2)), ("b", Size(3, 4))])
            w.keeping.sizes_changed()
        async with world(tmp_path, state="state") as w:
            assert w.observed.all() == [("a", Size(1, 2)), ("b", Size(3, 4))]
            assert w.observed.size("b") == Size(3, 4)
        # Their names do not say how tables are read.
        async with world(tmp_path, "options: {sep: ';'}", state="state") as w:
            assert w.observed.all() == []

    run(test)


def test_without_a_place_nothing_is_written(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path) as w:
            await w.look()
            assert await w.settle() is not None
            w.keeping.sizes_changed()
        assert os.listdir(tmp_path) == ["t"]

    run(test)


# --- files that are no good ----------------------------------------------------------------------
@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (lambda data: b"", "it is of another version"),
        (lambda data: data[:-1], "it is damaged"),
        (lambda data: data.replace(b"kept 1", b"kept 9"), "it is of another version"),
        (lambda data: data + bytes(MIB), "it is larger than 1048576 bytes (limits.kept_bytes)"),
    ],
)
def test_a_file_that_says_nothing_is_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[bytes], bytes], line: str
) -> None:
    async def test() -> None:
        async with world(tmp_path, state="state") as w:
            await w.look()
            stats = await w.settle()
        file_of(tmp_path).write_bytes(damage(file_of(tmp_path).read_bytes()))
        async with world(tmp_path, state="state", kept_bytes=MIB) as w:
            assert await w.look() is None
            assert await w.settle() == stats
        assert decode(file_of(tmp_path).read_bytes(), "c.oslo").tables["t"].stats == stats

    caplog.set_level(logging.INFO)
    run(test)
    assert [record.getMessage() for record in caplog.records] == [
        f"member oslo: kept statistics cannot be used, they are gathered anew: {line}"
    ]


def test_a_place_where_nothing_can_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        (tmp_path / "state").write_text("a file")
        async with world(tmp_path, state="state") as w:
            await w.look()
            assert await w.settle() is not None
            await w.until(lambda: len(caplog.records) == 2)
            w.observed.restore([("a", Size(1, 2))])
            w.keeping.sizes_changed()
        assert (tmp_path / "state").read_text() == "a file"

    caplog.set_level(logging.INFO)
    run(test)
    assert [record.getMessage() for record in caplog.records] == [
        "member oslo: kept statistics cannot be used, they are gathered anew: not a directory",
        "member oslo: statistics are not kept (check state): file exists",
    ]


def test_a_full_disk(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file of a few bytes is the largest that there is room for."""

    async def test() -> None:
        async with world(tmp_path, state="state") as w:
            await w.look()
            stats = await w.settle()
        before = file_of(tmp_path).read_bytes()
        async with world(tmp_path, state="state") as w:
            assert await w.look() == stats
            w.observed.restore([("a", Size(1, 2))])
            w.keeping.sizes_changed()
            with largest_file(10):
                await w.keeping.close()
        assert file_of(tmp_path).read_bytes() == before
        assert os.listdir(tmp_path / "state") == [file_of(tmp_path).name]

    run(test)
    assert [record.getMessage() for record in caplog.records] == [
        "member oslo: statistics are not kept (check state): file too large"
    ]


# --- files that somebody else may have written ---------------------------------------------------
def by_a_link(file: Path) -> None:
    file.rename(file.with_suffix(".mine"))
    file.symlink_to(file.with_suffix(".mine"))


def by_a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    ("done", "why"),
    [
        (lambda file: file.chmod(0o620), "it may be written by others (chmod go-w)"),
        (lambda file: file.chmod(0o602), "it may be written by others (chmod go-w)"),
        (lambda file: file.parent.chmod(0o770), "its directory may be written by others (chmod go-w)"),
        (by_a_link, "too many levels of symbolic links"),
        (by_a_pipe, "it is no file"),
        pytest.param(lambda file: os.chown(file, 65534, -1), "it belongs to another user", marks=AS_ROOT),
        pytest.param(lambda file: os.chown(file.parent, 65534, -1), "its directory belongs to another", marks=AS_ROOT),
    ],
)
def test_a_file_that_others_may_have_written_is_not_believed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, done: Callable[[Path], object], why: str
) -> None:
    """Its bounds would be taken for proof: rows outside of them are left out of answers."""

    async def test() -> None:
        async with world(tmp_path, state="state") as w:
            await w.look()
            stats = await w.settle()
        done(file_of(tmp_path))
        async with world(tmp_path, state="state") as w:
            assert await w.look() is None
            assert await w.settle() == stats

    run(test)
    assert (
        caplog.records[0]
        .getMessage()
        .startswith(f"member oslo: kept statistics cannot be used, they are gathered anew: {why}")
    )


WRONG = [
    KeptTable(1, "", -1, STATS),
    *(
        KeptTable(1, "", 3, PartStats((column,), "analyze"))
        for column in (
            ColumnStats("k", 4, 3, 0, is_exact=True),
            ColumnStats("k", "1", "3", 0, is_exact=True),
            ColumnStats("k", 1, 2**31, 0, is_exact=True),
            ColumnStats("k", nulls=4),
            ColumnStats("k", nulls=-1),
            ColumnStats("k", ndv=float("nan")),
            ColumnStats("k", width_bytes=-1.0),
            ColumnStats("s", "b", "a"),
            ColumnStats("s", "a", "b" * 33),
            ColumnStats("s", 1, 2),
            ColumnStats("no column", 1, 2),
        )
    ),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_statistics_that_cannot_be_so_are_gathered_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, wrong: KeptTable
) -> None:
    async def test() -> None:
        async with world(tmp_path, state="state") as w:
            await w.look()
            stats = await w.settle()
        kept = decode(file_of(tmp_path).read_bytes(), "c.oslo")
        own = kept.tables["t"]
        lie = msgspec.structs.replace(wrong, files_version=own.files_version, read_as=own.read_as)
        file_of(tmp_path).write_bytes(encode(msgspec.structs.replace(kept, tables={"t": lie}), MIB))
        async with world(tmp_path, state="state") as w:
            assert await w.look() is None
            assert await w.settle() == stats

    run(test)
    assert [record.getMessage() for record in caplog.records] == [
        "member oslo: kept statistics cannot be used, they are gathered anew: those of table t cannot be so"
    ]


def test_sizes_below_nothing() -> None:
    with pytest.raises(Unreadable, match="sizes below 0"):
        decode(encode(Kept("c.oslo", sizes=(KeptSize("a", -1, 2),)), MIB), "c.oslo")


@pytest.mark.parametrize(
    ("type_", "low", "high", "is_so"),
    [
        ("decimal(9,2)", "9", "10", True),
        ("decimal(9,2)", "10", "9", False),
        ("decimal(9,2)", "NaN", "NaN", False),
        ("decimal(9,2)", "1e5 or 1", "2", False),
        ("boolean", 0, 1, True),
        ("boolean", -1, 1, False),
        ("double", 1.5, 2.5, True),
        ("double", 1, 2, False),
        ("double", float("-inf"), 2.5, False),
        ("date", -719162, 2932896, True),
        ("date", 0, 2932897, False),
        ("timestamp", 0, 10**17, True),
        ("timestamp", 0, 10**18, False),
        ("bigint", -(2**63), 2**63 - 1, True),
        ("array<int>", 1, 2, False),
        ("string", "a", None, True),
    ],
)
def test_what_can_be_so(type_: str, low: Bound, high: Bound, is_so: bool) -> None:
    stats = PartStats((ColumnStats("c", low, high, 0, is_exact=True),), "analyze")
    part = TablePart("t", "oslo", (Column("c", type_),), 3, 10, 1, 1, stats)
    assert believed(part) == (part if is_so else msgspec.structs.replace(part, stats=None))


def test_a_part_with_less_than_nothing() -> None:
    part = TablePart("t", "oslo", (), -1, -5, 1, 1)
    assert believed(part) == TablePart("t", "oslo", (), None, 0, 1, 1)
