"""Makes small tables that hold every type and every awkward value, the same on every run."""

from __future__ import annotations

import csv
import json
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

SEED = 20

SITES = ("oslo", "bergen", "tromso")


class SampleTable(msgspec.Struct, frozen=True):
    """A table's part at one site: its folder, and how Spark reads it (`columns` is DDL; empty: inferred)."""

    name: str
    site: str
    path: str
    format: str = "parquet"
    columns: tuple[tuple[str, str], ...] = ()
    options: dict[str, str] = {}


def make_nasty(directory: Path) -> tuple[SampleTable, ...]:
    """Writes all tables below `directory`, a folder per site and table."""
    return (
        _nasty(directory),
        *_strewn(directory),
        _empty(directory),
        *_events(directory),
        _words(directory),
        _notes(directory),
    )


NASTY = pa.schema(
    [
        ("id", pa.int64()),
        ("flag", pa.bool_()),
        ("i8", pa.int8()),
        ("i16", pa.int16()),
        ("i32", pa.int32()),
        ("i64", pa.int64()),
        ("f32", pa.float32()),
        ("f64", pa.float64()),
        ("dec5", pa.decimal128(5, 2)),
        ("dec18", pa.decimal128(18, 4)),
        ("dec38", pa.decimal128(38, 0)),
        ("dec38s", pa.decimal128(38, 18)),
        ("s", pa.string()),
        ("bin", pa.binary()),
        ("d", pa.date32()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("tsn", pa.timestamp("us")),
        ("arr", pa.list_(pa.int32())),
        ("arrs", pa.list_(pa.string())),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("st", pa.struct([("x", pa.int32()), ("y", pa.string()), ("z", pa.float64())])),
        ("nested", pa.list_(pa.struct([("k", pa.string()), ("v", pa.list_(pa.float64()))]))),
        ("größe", pa.int32()),
        ("odd name", pa.string()),
    ]
)

# Each column cycles through its own list; the lengths are coprime enough to mix them.
VALUES: dict[str, list[Any]] = {
    "flag": [True, None, False],
    "i8": [-128, 127, 0, None],
    "i16": [-32768, 32767, None, 0, 1],
    "i32": [-(2**31), 2**31 - 1, 0, None, 7, 7],
    "i64": [-(2**63), 2**63 - 1, None, 0, 42, 2**53 + 1, -1],
    "f32": [math.nan, None, -0.0, 0.0, math.inf, 1.5, -math.inf, 3.4028234663852886e38],
    "f64": [0.0, -0.0, math.nan, None, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, 0.1],
    "dec5": [Decimal("999.99"), Decimal("-999.99"), None, Decimal("0.00"), Decimal("0.01")],
    "dec18": [Decimal("99999999999999.9999"), None, Decimal("-0.0001"), Decimal("1.5000")],
    "dec38": [Decimal(10**38 - 1), Decimal(-(10**38) + 1), None, Decimal(0), Decimal(1), Decimal(10**37)],
    "dec38s": [Decimal("9" * 20 + "." + "9" * 18), None, Decimal("1e-18"), Decimal("0"), Decimal("-12.5")],
    "s": [
        "",
        None,
        "plain",
        "it's",
        'say "hi"',
        "back\\slash",
        "two\nlines\tand a tab",
        "Ærøskøbing",
        "日本語",
        "🏝️ skerry",
        "100%_sure",
        " padded ",
        "${env:HOME}",
    ],
    "bin": [b"", None, b"\x00\xff\x00", b"abc", bytes(range(256)), b"\xc3\x28"],
    "d": [
        date(1, 1, 1),
        date(9999, 12, 31),
        None,
        date(1582, 10, 4),
        date(1582, 10, 15),
        date(1969, 12, 31),
        date(2000, 2, 29),
    ],
    "ts": [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        None,
        datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(2024, 3, 31, 1, 30, tzinfo=UTC),
    ],
    "tsn": [datetime(1900, 1, 1), None, datetime(2024, 3, 31, 2, 30, 0, 1), datetime(9999, 12, 31, 23, 59, 59)],
    "arr": [[], None, [1, None, 3], [2**31 - 1], [5, 5, 5, 5], [3, 1, 2]],
    "arrs": [["a", "b"], [], None, [None], ["", "ø", "it's"]],
    "m": [[("a", 1), ("b", None)], None, [], [("ключ", 7)]],
    "st": [{"x": 1, "y": "one", "z": math.nan}, None, {"x": None, "y": None, "z": None}, {"x": 2, "y": "", "z": -0.0}],
    "nested": [
        [{"k": "a", "v": [1.0, math.nan]}, {"k": None, "v": None}],
        [],
        None,
        [None],
        [{"k": "", "v": []}],
    ],
    "größe": [180, None, 175, 0],
    "odd name": ["x", "y", None],
}

NASTY_ROWS = 60


def write_rows(table: pa.Table, path: Path, row_group_rows: int) -> None:
    """No bounds of doubles: they leave NaN out, and engines that skip row groups by them lose rows by some plans."""
    bounded = [field.name for field in table.schema if not pa.types.is_floating(field.type)]
    pq.write_table(table, path, row_group_size=row_group_rows, write_statistics=bounded)


def _nasty_rows() -> pa.Table:
    columns: dict[str, list[Any]] = {"id": list(range(1, NASTY_ROWS + 1))}
    for name, values in VALUES.items():
        columns[name] = [values[index % len(values)] for index in range(NASTY_ROWS - 1)]
        columns[name].append(None)  # the last row is NULL in every column but its id
    return pa.table([pa.array(columns[field.name], field.type) for field in NASTY], schema=NASTY)


def _nasty(directory: Path) -> SampleTable:
    folder = _folder(directory, "bergen", "nasty")
    write_rows(_nasty_rows(), folder / "part-0.parquet", 9)
    return SampleTable("nasty", "bergen", str(folder))


# Where the rows of `strewn` lie: one of its parts is empty.
STREWN = {"oslo": (0, 35), "bergen": (35, 35), "tromso": (35, NASTY_ROWS)}


def _strewn(directory: Path) -> list[SampleTable]:
    """The nasty rows again, as one table with parts at all sites."""
    parts = []
    for site, (first, upto) in STREWN.items():
        folder = _folder(directory, site, "strewn")
        write_rows(_nasty_rows().slice(first, upto - first), folder / "part-0.parquet", 9)
        parts.append(SampleTable("strewn", site, str(folder)))
    return parts


def _empty(directory: Path) -> SampleTable:
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("amount", pa.decimal128(10, 2))])
    folder = _folder(directory, "tromso", "empty")
    pq.write_table(schema.empty_table(), folder / "part-0.parquet")
    return SampleTable("empty", "tromso", str(folder))


EVENTS = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("kind", pa.string()),
        ("value", pa.float64()),
        ("amount", pa.decimal128(12, 2)),
        ("tags", pa.list_(pa.string())),
    ]
)

# Rows of each file at each site, and the row group size there: one file, tiny row groups, an empty and a 1-row file.
EVENT_FILES: dict[str, tuple[tuple[int, ...], int]] = {
    "oslo": ((1200,), 1000),
    "bergen": ((500, 250, 150), 7),
    "tromso": ((0, 1, 99, 100, 100, 100, 100), 50),
}

FIRST_EVENT = datetime(2024, 1, 1, tzinfo=UTC)


def _events(directory: Path) -> list[SampleTable]:
    random = Random(SEED)
    ids = list(range(sum(sum(counts) for counts, _ in EVENT_FILES.values())))
    random.shuffle(ids)
    parts = []
    for site, (counts, row_group_rows) in EVENT_FILES.items():
        folder = _folder(directory, site, "events")
        for number, count in enumerate(counts):
            table = _event_rows([ids.pop() for _ in range(count)], random)
            write_rows(table, folder / f"part-{number}.parquet", row_group_rows)
        parts.append(SampleTable("events", site, str(folder)))
    return parts


def _event_rows(ids: list[int], random: Random) -> pa.Table:
    specials = (math.nan, None, -0.0, 0.0, math.inf)
    columns = [
        ids,
        # Several events share a moment, so that ORDER BY ts has ties within and across sites.
        [FIRST_EVENT + timedelta(minutes=random.randrange(600)) for _ in ids],
        [random.choice(("view", "click", "buy", "Ångre", None)) for _ in ids],
        [random.choice(specials) if random.random() < 0.1 else round(random.uniform(-50, 50), 3) for _ in ids],
        [None if random.random() < 0.05 else Decimal(random.randrange(-(10**6), 10**6)).scaleb(-2) for _ in ids],
        [random.choice(([], None, ["new"], ["new", "sale"], ["ø", None], ["sale", "sale", ""])) for _ in ids],
    ]
    return pa.table([pa.array(values, field.type) for values, field in zip(columns, EVENTS, strict=True)], EVENTS)


WORDS: tuple[tuple[int, str, str, str], ...] = (
    (1, "skjær", "no", "a small, rocky island"),
    (2, "sker", "is", 'said "sker"'),
    (3, "skär", "sv", "first line\nsecond line"),
    (4, "skerry", "en", "it's one, isn't it"),
    (5, "σκόπελος", "el", "back\\slash"),
    (6, "岩礁", "ja", "島 ではない"),
    (7, "", "", ""),
    (8, "récif", "fr", " padded "),
)


def _words(directory: Path) -> SampleTable:
    folder = _folder(directory, "oslo", "words")
    with (folder / "words.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        writer.writerow(("id", "word", "lang", "meaning"))
        writer.writerows(WORDS)
    columns = (("id", "bigint"), ("word", "string"), ("lang", "string"), ("meaning", "string"))
    return SampleTable(
        "words",
        "oslo",
        str(folder),
        format="csv",
        columns=columns,
        options={"header": "true", "multiLine": "true", "escape": '"'},
    )


def _notes(directory: Path) -> SampleTable:
    folder = _folder(directory, "tromso", "notes")
    lines = [
        {"id": 1, "word_id": 1, "stars": 4.5, "by": {"name": "Kari", "roles": ["editor", "author"]}},
        {"id": 2, "word_id": 1, "stars": None, "by": {"name": "O'Brien", "roles": []}},
        {"id": 3, "word_id": 5, "by": None},
        {"id": 4, "word_id": None, "stars": 0.0, "by": {"name": None, "roles": ["author"]}},
    ]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (folder / "notes.json").write_text(text, encoding="utf-8")
    columns = (
        ("id", "bigint"),
        ("word_id", "bigint"),
        ("stars", "double"),
        ("by", "struct<name:string,roles:array<string>>"),
    )
    return SampleTable("notes", "tromso", str(folder), format="json", columns=columns)


def _folder(directory: Path, site: str, table: str) -> Path:
    folder = directory / site / table
    folder.mkdir(parents=True, exist_ok=True)
    return folder
