"""The audit: one line a statement, that no text can break, in a file that is its member's alone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skerry.access import auditfile
from skerry.access.audit import Begun, Ended, Refusals, encode, fingerprint, who
from skerry.access.auditfile import AuditFile
from skerry.config import parse
from skerry.config.ownfiles import NotOurs
from skerry.model.caller import Caller
from skerry.model.config import AuditConfig
from skerry.model.errors import ConfigError, Unaudited
from skerry.model.progress import LinkBytes

NASTY = 'a"\\\n\r\x1b[2J\x7f\x85\x9b\u2028\u2029\u202e\udcff é'
ANN = Caller("ann", "native", "10.0.0.7:5123", "native 1")


def ended(**changes: Any) -> Ended:
    fields = {
        "time": "2026-11-17T02:00:00.000+00:00",
        "query": "oslo/1",
        "statement": "SELECT 1",
        "tables": ("oslo.orders",),
        "rows": 3,
        "links": (LinkBytes("oslo", "bergen", 100, 3, 0.5),),
        "outcome": "done",
        "code": 0,
        "seconds": 0.25,
    }
    return Ended(**(who(ANN) | fields | changes))


# --- a line --------------------------------------------------------------------------------------
def test_a_line_says_who_asked_for_what_and_what_came_of_it() -> None:
    assert json.loads(encode(ended(), "text")) == {
        "event": "statement",
        "time": "2026-11-17T02:00:00.000+00:00",
        "user": "ann",
        "roles": [],
        "door": "native",
        "address": "10.0.0.7:5123",
        "query": "oslo/1",
        "statement": "SELECT 1",
        "tables": ["oslo.orders"],
        "rows": 3,
        "links": [{"from": "oslo", "to": "bergen", "bytes": 100}],
        "outcome": "done",
        "code": 0,
        "seconds": 0.25,
    }


def test_nothing_in_it_makes_another_line() -> None:
    line = encode(ended(statement=NASTY, user=NASTY, tables=(NASTY,), outcome=NASTY), "text")
    assert line.endswith(b"}\n")
    assert all(32 <= byte < 127 for byte in line[:-1])
    assert json.loads(line)["statement"] == NASTY


def test_a_statement_of_any_length_makes_a_bounded_line() -> None:
    line = json.loads(encode(ended(statement="x" * 3_000_000), "text"))
    assert (len(line["statement"]), line["statement_chars"]) == (1024 * 1024, 3_000_000)


def test_a_fingerprint_tells_no_value() -> None:
    one = fingerprint("SELECT a FROM t WHERE ssn = '078-05-1120' AND n < 7 AND h = X'AB'")
    assert one == fingerprint("select A -- mine\nfrom t where ssn='x' /* y */ and n<1.5e3 and h=X''")
    assert one != fingerprint("SELECT a FROM u WHERE ssn = '078-05-1120' AND n < 7 AND h = X'AB'")
    assert fingerprint("SELECT 'never closed") == fingerprint('SELECT "otherwise') == "unreadable"
    line = encode(ended(statement="SELECT '078-05-1120'"), "fingerprint")
    assert b"078" not in line
    assert json.loads(line)["fingerprint"] == fingerprint("SELECT ''")


def test_strangers_do_not_fill_it() -> None:
    refusals = Refusals()
    assert [refusals.take(1000.0) for _ in range(100)] == [0] * 100
    assert [refusals.take(1059.0) for _ in range(250)] == [None] * 250
    assert refusals.take(1060.0) == 250
    assert refusals.take(1060.0) == 0


# --- the file ------------------------------------------------------------------------------------
@contextlib.contextmanager
def largest_file(size_bytes: int) -> Iterator[None]:
    """What the disk has room for."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextlib.contextmanager
def opened(folder: Path, **changes: Any) -> Iterator[AuditFile]:
    file = AuditFile(AuditConfig(str(folder / "audit"), **changes), "oslo", lambda: "now")
    file.start()
    try:
        yield file
    finally:
        file.close(60.0)


def lines_of(folder: Path, suffix: str = "") -> list[dict[str, Any]]:
    text = (folder / "audit" / f"oslo.jsonl{suffix}").read_text()
    assert not text or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def numbers(lines: list[dict[str, Any]]) -> list[int]:
    return [line["rows"] for line in lines]


def begun(query: str) -> Begun:
    return Begun(time="now", query=query, statement="SELECT 1", **who(ANN))


def test_lines_are_its_owners_alone_and_stay_over_restarts(tmp_path: Path) -> None:
    for start in (0, 3):
        with opened(tmp_path) as file:
            for number in range(start, start + 3):
                file.put(ended(rows=number))
    assert numbers(lines_of(tmp_path)) == [0, 1, 2, 3, 4, 5]
    assert stat.S_IMODE((tmp_path / "audit").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "audit/oslo.jsonl").stat().st_mode) == 0o600


def test_a_full_file_moves_aside_and_so_many_are_kept(tmp_path: Path) -> None:
    size = len(encode(ended(rows=10), "text"))
    with opened(tmp_path, rotate_bytes=3 * size, keep=2) as file:

        async def write() -> None:
            for number in range(10, 20):
                await file.write(ended(rows=number))

        asyncio.run(write())
    assert numbers(lines_of(tmp_path)) == [19]
    assert numbers(lines_of(tmp_path, ".1")) == [16, 17, 18]
    assert numbers(lines_of(tmp_path, ".2")) == [13, 14, 15]
    assert sorted(os.listdir(tmp_path / "audit")) == ["oslo.jsonl", "oslo.jsonl.1", "oslo.jsonl.2"]


def test_a_file_that_was_moved_or_removed_is_made_again(tmp_path: Path) -> None:
    with opened(tmp_path) as file:

        async def write() -> None:
            path = Path(file.path)
            await file.write(ended(rows=1))
            path.rename(tmp_path / "elsewhere")
            await file.write(ended(rows=2))
            path.unlink()
            await file.write(ended(rows=3))

        asyncio.run(write())
    assert numbers(lines_of(tmp_path)) == [3]


@pytest.mark.parametrize("is_dir", [True, False])
def test_a_place_that_others_may_write_is_refused(tmp_path: Path, is_dir: bool) -> None:
    with opened(tmp_path):
        pass
    (tmp_path / "audit" if is_dir else tmp_path / "audit/oslo.jsonl").chmod(0o777)
    with pytest.raises(NotOurs, match="may be written by others"), opened(tmp_path):
        pass


def test_a_full_disk_refuses_who_waits_and_keeps_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No half of a line stays, and all goes on when there is room again."""
    monkeypatch.setattr(auditfile, "AUDIT_RETRY_S", 0.01)
    size = len(encode(ended(rows=10), "text"))

    async def write(file: AuditFile) -> None:
        await file.write(ended(rows=10))
        with largest_file(size + 20):
            for number in (11, 12):
                file.put(ended(rows=number))
            for _ in range(2):
                with pytest.raises(Unaudited, match=r"site oslo: the audit cannot be written \(file too large\)"):
                    await file.write(begun("oslo/refused"))
            assert numbers(lines_of(tmp_path)) == [10]
        await file.write(ended(rows=13))

    with opened(tmp_path, is_required=True) as file:
        asyncio.run(write(file))
    assert numbers(lines_of(tmp_path)) == [10, 11, 12, 13]


def test_lines_that_find_no_room_to_wait_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auditfile, "AUDIT_RETRY_S", 60.0)
    monkeypatch.setattr(auditfile, "AUDIT_WAITING_BYTES", 2 * (512 + 8))

    async def write(file: AuditFile) -> None:
        with largest_file(10):
            with pytest.raises(Unaudited):
                await file.write(begun("oslo/refused"))
            for number in range(5):
                file.put(ended(rows=number))
            with pytest.raises(Unaudited, match="file too large"):
                await file.write(begun("oslo/refused"))

    with opened(tmp_path) as file:
        asyncio.run(write(file))
    *kept, lost = lines_of(tmp_path)
    assert numbers(kept) == [0, 1]
    assert (lost["event"], lost["lines"]) == ("lost", 3)


def test_a_line_that_cannot_be_made_is_refused_and_the_next_is_written(tmp_path: Path) -> None:
    async def write(file: AuditFile) -> None:
        file.put(ended(rows=1, seconds=float("nan")))
        with pytest.raises(Unaudited, match="its line cannot be made"):
            await file.write(ended(rows=2, roles=(object(),)))
        await file.write(ended(rows=3))

    with opened(tmp_path) as file:
        asyncio.run(write(file))
    lines = lines_of(tmp_path)
    assert [line.get("rows") for line in lines if line["event"] == "statement"] == [3]
    assert [line["lines"] for line in lines if line["event"] == "lost"] == [1]


# --- the configuration ---------------------------------------------------------------------------
TEXT = "cluster: c\nmembers: {oslo: {address: 'h:1'}}\n"


def test_the_configuration(tmp_path: Path) -> None:
    assert parse(TEXT).audit is None
    found = parse(f"{TEXT}audit: {{path: audit}}", base_dir=tmp_path).audit
    assert found == AuditConfig(str(tmp_path / "audit"), "text", False, 64 * 1024 * 1024, 10)
    assert found.file_of("oslo") == str(tmp_path / "audit/oslo.jsonl")
    text = "audit: {path: /a, statements: fingerprint, required: true, rotate_bytes: 1 MiB, keep: 3}"
    assert parse(TEXT + text).audit == AuditConfig("/a", "fingerprint", True, 1024 * 1024, 3)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("{}", "audit.path: missing"),
        ("{path: a, statements: hash}", "hash is no form of a statement; write text or fingerprint"),
        ("{path: a, keep: 0}", "audit.keep: must be at least 1, not 0"),
        ("{path: a, rotate_bytes: 1 KiB}", "audit.rotate_bytes: must be at least 4096, not 1024"),
        ("{path: a, requierd: true}", "did you mean required?"),
    ],
)
def test_mistakes_in_the_configuration(text: str, wrong: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse(f"{TEXT}audit: {text}")
    assert wrong in error.value.message
