"""ANALYZE TABLE as a plan: each part is looked at by its own site's Spark, which keeps what it finds.

Sites ask their Spark the same of tables whose files tell little by themselves (`member/gathering.py`).
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec
from sqlglot import exp

from skerry.catalog.statistics import ANALYZED, bound
from skerry.model.fragment import Output, Plan, Rows, TableLeaf
from skerry.model.table import Column, ColumnStats, PartStats, TablePart
from skerry.plan.cache import fingerprint
from skerry.plan.egress import check_egress
from skerry.plan.maker import make_fragment
from skerry.plan.site import Site
from skerry.sql.nodes import SparkType
from skerry.sql.statement import render

# The table, in the text of `analysis_of`.
PLACEHOLDER = "skerry_analyzed_part"
_EDGE = 1
_COMPARED = frozenset("boolean tinyint smallint int bigint float double string date timestamp timestamp_ntz".split())


def analyze_plan(parts: Sequence[TablePart], columns: Sequence[str], site: Site) -> Plan:
    """One row a part: member, rows, bytes, and what was found of the columns as JSON (all of them if none is named).

    UserError if a part's egress rule forbids it: what was found goes to the initiator.
    """
    wanted = {name.lower() for name in columns}
    fragments = [
        make_fragment(
            number,
            part.member,
            _analysis(part, [column for column in part.columns if not wanted or column.name.lower() in wanted]),
            (TableLeaf(PLACEHOLDER, part.table),),
            Output(_EDGE, (site.initiator,), through_driver=True),
            rows=1,
            analyzes=part.table,
            egress=site.egress,
        )
        for number, part in enumerate(parts, 1)
    ]
    info = {f"{part.member}.{part.table}": part.schema_version for part in parts}
    plan = Plan("", tuple(fragments), Rows(_EDGE, tuple(part.member for part in parts)), info)
    if site.egress is not None:
        check_egress(plan, site.egress)
    return msgspec.structs.replace(plan, plan_id=fingerprint(plan))


def analysis_of(part: TablePart, columns: Sequence[Column]) -> str:
    """The SELECT whose one row tells of these columns of the part; `read_found` reads the last of its four values."""
    return render(_analysis(part, columns))


def is_analysis(tree: exp.Expr, part: TablePart) -> bool:
    """Is it what `analyze_plan` makes of some columns of the part, whatever size its initiator knew?"""
    try:
        _, _, size, found = tree.expressions
        names = {name.name for name in found.this.expressions[0].expressions[::2]}
        size_bytes = int(size.this.this.name)
    except (AttributeError, IndexError, ValueError):
        return False
    columns = [column for column in part.columns if column.name in names]
    return analysis_of(msgspec.structs.replace(part, size_bytes=size_bytes), columns) == render(tree)


def _analysis(part: TablePart, columns: Sequence[Column]) -> exp.Select:
    found: list[exp.Expr] = []
    for column in columns:
        found += [exp.Literal.string(column.name), _found(column)]
    return exp.select(
        exp.alias_(exp.Literal.string(part.member), "member"),
        exp.alias_(_call("count", exp.Star()), "rows"),
        exp.alias_(exp.Cast(this=exp.Literal.number(part.size_bytes), to=SparkType(this="BIGINT")), "bytes"),
        exp.alias_(_call("to_json", _call("named_struct", *found)), "columns"),
    ).from_(exp.to_table(PLACEHOLDER))


def _found(column: Column) -> exp.Expr:
    """What Spark is asked about one column; texts, so that JSON changes no number."""
    name = exp.column(column.name, quoted=True)
    nulls = exp.Sub(this=_call("count", exp.Star()), expression=_call("count", name))
    asked: dict[str, exp.Expr] = {"nulls": nulls}
    if column.type in _COMPARED or column.type.startswith("decimal"):
        # Sail counts no distinct floats, but their texts.
        text = exp.Cast(this=name.copy(), to=SparkType(this="STRING"))
        asked["ndv"] = _call("approx_count_distinct", text if column.type in ("float", "double") else name.copy())
        asked["low"] = exp.Cast(this=_call("min", name.copy()), to=SparkType(this="STRING"))
        asked["high"] = exp.Cast(this=_call("max", name.copy()), to=SparkType(this="STRING"))
    if column.type in ("string", "binary"):
        asked["width"] = _call("avg", _call("octet_length", name.copy()))
    pairs = [each for key, value in asked.items() for each in (exp.Literal.string(key), value)]
    return _call("named_struct", *pairs)


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(arguments))


def read_found(text: str, columns: Sequence[Column], source: str = ANALYZED) -> PartStats:
    """The JSON of one part as statistics; what cannot be read is unknown."""
    try:
        found = json.loads(text)
    except ValueError:
        found = {}
    if not isinstance(found, dict):
        found = {}
    return PartStats(tuple(_column(each, found[each.name]) for each in columns if each.name in found), source)


def _column(column: Column, found: Any) -> ColumnStats:
    if not isinstance(found, dict):
        return ColumnStats(column.name)
    (low, low_exact), (high, high_exact) = (
        bound(_value(found.get(end), column.type), column.type) for end in ("low", "high")
    )
    width = found.get("width")
    return ColumnStats(
        name=column.name,
        low=low,
        high=high,
        nulls=found.get("nulls") if isinstance(found.get("nulls"), int) else None,
        ndv=float(found["ndv"]) if isinstance(found.get("ndv"), int) else None,
        width_bytes=float(width) + 4 if isinstance(width, int | float) else None,
        is_exact=low_exact and high_exact,
    )


def _value(text: object, column_type: str) -> Any:
    """A value from its text in Spark's form."""
    if not isinstance(text, str):
        return None
    try:
        match column_type:
            case "string":  # bytes that are no text were replaced on their way here
                return text if "\ufffd" not in text else None
            case "boolean":
                return text == "true"
            case "date":
                return datetime.date.fromisoformat(text)
            case "timestamp" | "timestamp_ntz":
                return datetime.datetime.fromisoformat(text)
            case "float" | "double":
                number = float(text)
                return number if math.isfinite(number) else None
            case "tinyint" | "smallint" | "int" | "bigint":
                return int(text)
        return Decimal(text)
    except (ValueError, InvalidOperation):
        return None
