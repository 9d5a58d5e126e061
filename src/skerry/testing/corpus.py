"""Reads a file of queries that carry what they are for; its own first lines say how it is written."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec


class Entry(msgspec.Struct, frozen=True):
    """One query: `oracle` is the text a single Spark session runs, `error` the class of Spark's error, if any."""

    name: str
    sql: str
    oracle: str
    purpose: str
    ordered: bool
    keys: tuple[str, ...]
    error: str


SITE_NAME = re.compile(r"\b(oslo|bergen|tromso)\.(\w+)")


def read_corpus(path: Path) -> dict[str, Entry]:
    """All entries by name, in the file's order."""
    chunks = re.split(r"^-- name: ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    entries = [_entry(chunk) for chunk in chunks]
    names = [entry.name for entry in entries]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{path.name}: names used twice: {', '.join(twice)}")
    return dict(zip(names, entries, strict=True))


def part_view(site: str, table: str) -> str:
    """What the oracle calls one site's part of a table: a temporary view has no schema."""
    return f"{site}_{table}"


def _entry(chunk: str) -> Entry:
    head, _, body = chunk.partition("\n")
    name, *flags = (piece.strip() for piece in head.split(" | "))
    flag = dict(piece.split(": ", 1) for piece in flags)
    sql, _, oracle = body.partition("-- oracle:\n")
    sql, oracle = _statement(sql), _statement(oracle)
    order = flag["ordered"]
    return Entry(
        name=name,
        sql=sql,
        oracle=oracle or SITE_NAME.sub(lambda match: part_view(match[1], match[2]), sql),
        purpose=flag["for"],
        ordered=order != "no",
        keys=tuple(key.strip() for key in order.removeprefix("ties ").split(",")) if order.startswith("ties ") else (),
        error=flag.get("error", ""),
    )


def _statement(text: str) -> str:
    # Lines between entries that only hold a heading belong to no statement.
    lines = [line for line in text.splitlines() if not line.startswith("-- ====")]
    return "\n".join(lines).strip().removesuffix(";")
