"""Fixtures of statements about tables of our own: a statement, and what is made of it in the comment behind it.

`-- parameters:` may stand before the statement. SKERRY_UPDATE_CHANGES=1 writes the comments anew: look at each.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from skerry.model.errors import SqlError
from skerry.model.limits import Limits
from skerry.model.sharded import OwnTable
from skerry.sql.changes import analyse_change
from skerry.sql.definitions import shown_table
from skerry.sql.dialect import render
from skerry.sql.owntables import AlterTable, Change, CreateAs, CreateTable, Definition, Insert, Known, Merge, Update
from tests.unit.sql.sql_cases import CATALOG

UPDATES = bool(os.environ.get("SKERRY_UPDATE_CHANGES"))
MEMBERS = ("oslo", "bergen", "tromso")
_CASE = re.compile(r"-- case: (.+)\n(?:-- parameters: (.+)\n)?((?:.|\n)+?)\n/\*\n((?:.|\n)*?)\*/\n")

ACCOUNT = (
    "CREATE TABLE account (id BIGINT, region STRING, balance DECIMAL(12, 2) NOT NULL DEFAULT 0, opened DATE,"
    " note STRING DEFAULT 'new', active BOOLEAN NOT NULL)"
    " PRIMARY KEY (region, id) DISTRIBUTED BY (region)"
)
READING = (
    "CREATE TABLE reading (k INT, tiny TINYINT, f FLOAT, d DOUBLE, exact DECIMAL(38, 18), bin BINARY, at TIMESTAMP,"
    " ntz TIMESTAMP_NTZ, tags ARRAY<BIGINT>, day DATE, s STRING) PRIMARY KEY (k) DISTRIBUTED BY (k) IN (oslo)"
)
BY_DAY = "CREATE TABLE by_day (day DATE, price DECIMAL(5, 2), x DOUBLE) PRIMARY KEY (day, price) DISTRIBUTED BY (day)"
BY_DOUBLE = "CREATE TABLE by_double (x DOUBLE, `DEFAULT` INT) PRIMARY KEY (x) DISTRIBUTED GLOBALLY"


def made_tables() -> dict[str, OwnTable]:
    tables: dict[str, OwnTable] = {}
    for number, text in enumerate((ACCOUNT, READING, BY_DAY, BY_DOUBLE), 128):
        statement = analyse_change(text, None, Known(CATALOG, tables, MEMBERS), Limits())
        assert isinstance(statement, CreateTable)
        tables[statement.table.name] = msgspec.structs.replace(statement.table, id=number, version=1)
    return tables


KNOWN = Known(CATALOG, made_tables(), MEMBERS)


@dataclass(frozen=True)
class Case:
    name: str
    parameters: Any
    text: str
    expected: str

    def analysed(self, *, needs_query: bool = False) -> Change | Definition:
        return analyse_change(self.text, self.parameters, KNOWN, Limits(), needs_query=needs_query)


def cases(path: Path, tell: Callable[[Case], str] | None = None) -> list[Case]:
    content = path.read_text(encoding="utf-8")
    found = list(_CASE.finditer(content))
    assert "".join(match.group() + "\n" for match in found).strip() == content.strip(), "what is no case?"
    read = [Case(match[1], ast.literal_eval(match[2]) if match[2] else None, match[3], match[4]) for match in found]
    if not UPDATES or tell is None:
        return read
    blocks = []
    for case in read:
        parameters = f"-- parameters: {case.parameters!r}\n" if case.parameters is not None else ""
        blocks.append(f"-- case: {case.name}\n{parameters}{case.text}\n/*\n{tell(case)}*/\n")
    path.write_text("\n".join(blocks), encoding="utf-8")
    return [replace(case, expected=tell(case)) for case in read]


def told(case: Case) -> str:
    """What was made of it, in lines."""
    try:
        return "\n".join(lines_of(case.analysed())) + "\n"
    except SqlError as error:
        return f"{error.message}\n"


def lines_of(statement: Change | Definition) -> list[str]:
    lines = [type(statement).__name__]
    match statement:
        case CreateTable():
            return [*lines, *(["if not exists"] if statement.if_not_exists else []), shown_table(statement.table)]
        case CreateAs(query):
            return [*lines, *([f"query: {render(query.tree)}"] if query is not None else [])]
        case AlterTable():
            return [f"{lines[0]}, {statement.said}", shown_table(statement.changed)]
        case Change():
            return [*lines, *_change_lines(statement)]
    table = getattr(statement, "table", None)
    return [f"{lines[0]} {table.name}"] if table is not None else lines


def _change_lines(change: Change) -> list[str]:
    names = [column.name for column in change.table.columns]
    lines = []
    if isinstance(change, Insert):
        lines.append(f"{', '.join(names[place] for place in change.columns)}; {change.policy.name}")
    if isinstance(change, Update):
        lines.append(f"sets {', '.join(names[place] for place, _ in change.assignments)}")
        lines += ["rows move"] if change.moves_rows else []
    if isinstance(change, Merge):
        lines += [
            f"{action} {', '.join(names[place] for place in places)}".rstrip() for action, places in change.clauses
        ]
    if change.query is None:
        return [*lines, "constants", *([str(change.parameters)] if change.parameters else [])]
    shown = [f"query: {render(change.query.tree)}", *([str(change.parameters)] if change.parameters else [])]
    shown += [f"as of: {change.query.as_of}"] if change.query.as_of is not None else []
    return [*lines, *shown, f"reason: {change.reason}"]
