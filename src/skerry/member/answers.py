"""Statements the initiator answers by itself: SHOW, DESCRIBE, USE, EXPLAIN."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import assert_never

import msgspec
import pyarrow as pa

from skerry.catalog.catalog import OWN_FORMAT
from skerry.member.initiator import Initiated
from skerry.member.planning import Explained, Planner
from skerry.member.requests import RowsAnswer
from skerry.model.config import Leaves, MemberConfig
from skerry.model.errors import InternalError
from skerry.model.names import DEFAULT_SCHEMA, base_of, schema_of
from skerry.model.results import Page, Schema
from skerry.model.table import Column, TablePart
from skerry.plan.explain import Actual, Grew, LinkUse, Ran, describe, explain
from skerry.plan.reasons import with_reasons
from skerry.sql.commands import (
    AnalyzeTable,
    Command,
    DescribeTable,
    DropVariable,
    ShowColumns,
    ShowSchemas,
    ShowTables,
    UseSchema,
)
from skerry.sql.patterns import Pattern
from skerry.wire.codec import encode_batch, encode_schema


def answer_statement(planner: Planner, statement: Explained | Command) -> RowsAnswer:
    match statement:
        case Explained(plan, is_json, refused, ran, warnings, views):
            plan = with_reasons(plan)
            lines = [f"view {name} stands for: {' '.join(sql.split())}" for name, sql in views]
            lines += explain(plan, planner.name, planner.topology, ran, refused) if not is_json else []
            if is_json:
                found = describe(plan, planner.name, planner.topology, ran, refused)
                found |= {"views": dict(views)} if views else {}
                lines = [json.dumps(found, ensure_ascii=False, indent=2)]
            return msgspec.structs.replace(told_rows({"plan": lines}), warnings=warnings)
        case ShowSchemas(pattern):
            shown = Pattern(pattern)
            return told_rows({"namespace": [name for name in planner.catalog.schemas() if shown.matches(name)]})
        case UseSchema(schema):
            name = planner.catalog.schema(schema)
            used = told_rows({"namespace": [name or DEFAULT_SCHEMA]})
            return msgspec.structs.replace(used, schema_name=name)
        case ShowColumns(ref):
            return told_rows({"col_name": [column.name for column in ref.columns]})
        case ShowTables(pattern, schema):
            shown = Pattern(pattern)
            tables = [line for line in planner.catalog.show_tables(schema) if shown.matches(line.table)]
            return told_rows(
                {
                    "table": [line.table for line in tables],
                    "members": [", ".join(line.members) for line in tables],
                    "rows": [line.rows for line in tables],
                    "bytes": [line.size_bytes for line in tables],
                    "format": [line.format for line in tables],
                    "problem": [line.problem or None for line in tables],
                }
            )
        case DescribeTable(ref, is_extended):
            rows = [(column.name, column.type) for column in ref.columns]
            rows += describe_parts(planner.catalog.parts(ref), planner) if is_extended else []
            return told_rows({"col_name": [name for name, _ in rows], "data_type": [kind for _, kind in rows]})
        case AnalyzeTable() | DropVariable():
            raise InternalError(f"{type(statement).__name__} is answered elsewhere")
        case never:
            assert_never(never)


def describe_parts(parts: Sequence[TablePart], planner: Planner) -> list[tuple[str, str]]:
    """What DESCRIBE EXTENDED says below the columns: where each part is, how large, and what is known of its values."""
    lines = [("", ""), ("# Parts", "")]
    for part in parts:
        is_veiled = planner.catalog.is_veiled(part.member, part.table)
        rows = "unknown" if part.rows is None else str(part.rows)
        size = "unknown" if is_veiled else str(part.size_bytes)
        source = part.stats.source if part.stats is not None else "none yet"
        if part.own:
            ranges = ", ".join(f"{first} to {upto - 1}" for first, upto in part.own.here)
            buckets = f"{ranges} of {part.own.buckets}" if part.own.columns else "all, as at each member"
            kept = [("  format", OWN_FORMAT), ("  buckets", buckets), ("  rows", rows), ("  bytes", size)]
            lines += [(f"{part.member}.{part.table}", ""), *kept]
            continue
        format_, path, leaves = _said_of(part, planner.config.members[part.member])
        lines += [
            (f"{part.member}.{part.table}", ""),
            ("  format", format_),
            ("  path", path),
            ("  rows", rows),
            ("  bytes", size),
            ("  leaves", leaves.value),
            ("  statistics", "not for you" if is_veiled else source),
        ]
    return lines


def _said_of(part: TablePart, member: MemberConfig) -> tuple[str, str, Leaves]:
    """Format, path and mark: what the configuration says of a table, or of the schema that has it."""
    base = base_of(part.table)
    table = next((each for name, each in member.tables.items() if name.lower() == base.lower()), None)
    if table is not None:
        return table.format, table.shown_path or table.path, table.leaves
    schema = next(each for name, each in member.schemas.items() if name.lower() == schema_of(base))
    return "catalog", ".".join((*schema.namespace, base.partition(".")[2])), schema.leaves


def ran_as(initiated: Initiated, seconds: float) -> Actual:
    """What a query that has ended did."""
    fragments, links = initiated.core.progress()
    ran = {each.fragment: Ran(each.rows, each.size_bytes, each.seconds, each.jobs) for each in fragments}
    used = tuple(LinkUse(each.sender, each.receiver, each.size_bytes, each.rows, each.stalled_s) for each in links)
    grew = {
        each.fragment: Grew(each.recruits, each.epoch, each.splits, each.rows_forwarded, each.spilled_bytes)
        for each in initiated.core.grown.values()
    }
    return Actual(ran, used, initiated.result.rows, seconds, grew)


_BIGINT = frozenset({"rows", "bytes", "buckets", "overlay_rows", "overlay_bytes", "files", "file_bytes"})


def told_rows(columns: Mapping[str, Sequence[object]]) -> RowsAnswer:
    fields = [pa.field(name, pa.int64() if name in _BIGINT else pa.string()) for name in columns]
    schema = pa.schema(fields)
    batch = pa.record_batch([pa.array(columns[f.name], f.type) for f in fields], schema=schema)
    described = tuple(Column(f.name, "bigint" if f.name in _BIGINT else "string") for f in fields)
    page = Page(0, (memoryview(encode_batch(batch)),), batch.num_rows, True)
    return RowsAnswer(Schema(described, encode_schema(schema)), page)
