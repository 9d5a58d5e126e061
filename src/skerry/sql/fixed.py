"""What a query's initiator fixes once, for all sites: its time, who asks, and in which schema. Calls become markers."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlglot import exp

from skerry.model.errors import SqlError
from skerry.sql.naming import item_of, names_matter, spark_name
from skerry.sql.nodes import SparkType, TypedLiteral
from skerry.sql.position import error_at
from skerry.sql.walk import find_all, nodes_of

NOW, TODAY = "skerry_now", "skerry_today"
CALLER, CATALOG, SCHEMA, PATH = "skerry_caller", "skerry_catalog", "skerry_schema", "skerry_path"
MARKERS = frozenset({NOW, TODAY, CALLER, CATALOG, SCHEMA, PATH})

# function → the column's name that Spark gives to a call without alias
_CALLS = {
    "now": "now()",
    "current_timestamp": "current_timestamp()",
    "current_date": "current_date()",
    "curdate": "current_date()",
    "localtimestamp": "localtimestamp()",
    "unix_timestamp": "unix_timestamp(current_timestamp(), yyyy-MM-dd HH:mm:ss)",
    "current_user": "current_user()",
    "user": "user()",
    "session_user": "session_user()",
    "current_catalog": "current_catalog()",
    "current_database": "current_schema()",
    "current_schema": "current_schema()",
    "current_path": "current_path()",
}
# Calls that tell of who asks.
_OF_CALLER = {
    "current_user": CALLER,
    "user": CALLER,
    "session_user": CALLER,
    "current_catalog": CATALOG,
    "current_database": SCHEMA,
    "current_schema": SCHEMA,
    "current_path": PATH,
}
_SPARK_CATALOG = "spark_catalog"
_PLAIN = re.compile(r"(?!\d+$)\w+", re.ASCII)
_BARE = frozenset({"current_timestamp", "current_date"})
# DATE 'tomorrow': days from that of the query
_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
_TIMESTAMPS = {"TIMESTAMP": "TIMESTAMP", "TIMESTAMP_LTZ": "TIMESTAMP", "TIMESTAMP_NTZ": "TIMESTAMP_NTZ"}


@dataclass(frozen=True)
class Use:
    """`made` stands for a mention of a variable; `shown`: in a column's name, None where Spark's way is not proven."""

    made: exp.Expr
    shown: str | None


def fix_calls(tree: exp.Expr, defined: set[str], bare: set[int], uses: Mapping[int, Use], text: str) -> frozenset[str]:
    """Replace every call in place; answers the markers that stand for them.

    `defined` are the names that some column or alias has; `bare`: the words without brackets that call for who asks;
    `uses`: what stands for the columns that mean variables of the session.
    """
    names_of = {id(node): name for node in nodes_of(tree) if (name := _call(node, defined, bare)) is not None}
    calls = [
        node for node in nodes_of(tree) if id(node) in names_of or id(node) in uses or special_time(node) is not None
    ]
    names: dict[int, tuple[exp.Expr, str]] = {}
    for node in calls:
        item = item_of(node)
        if item is None or id(item) in names or not names_matter(item):
            continue
        # Spark names the column after the whole expression, with the call in it.
        name = _name(item, names_of, uses)
        if name is None:
            is_told = names_of.get(id(node)) in _OF_CALLER
            what = "a variable" if id(node) in uses else "who asks" if is_told else "the time of the query"
            raise error_at(f"give this column a name (AS …): its value depends on {what}", text, node)
        names[id(item)] = (item, name)
    for item, name in names.values():
        alias = exp.Alias(alias=exp.Identifier(this=name, quoted=True))
        item.replace(alias)
        alias.set("this", item)
    markers: set[str] = set()
    for node in calls:
        if id(node) in uses:
            node.replace(uses[id(node)].made)
            continue
        word = special_time(node)
        made = _fixed(names_of[id(node)]) if word is None else _of_day(node.args["kind"].name, word)
        markers |= {marker.name for marker in find_all(made, exp.Placeholder)}
        node.replace(made)
    return frozenset(markers)


def _name(item: exp.Expr, names_of: Mapping[int, str], uses: Mapping[int, Use]) -> str | None:
    whole = item
    while isinstance(whole, exp.Paren):
        whole = whole.this
    if id(whole) in uses:
        return whole.name
    if any(id(part) in uses and uses[id(part)].shown is None for part in nodes_of(item)):
        return None

    def known(part: exp.Expr) -> str | None:
        return uses[id(part)].shown if id(part) in uses else _CALLS.get(names_of.get(id(part), ""))

    return spark_name(item, known)


def special_time(node: exp.Expr) -> str | None:
    """The word of `DATE 'today'` and its kin, which Spark reads as a time; of none with more than the word."""
    if not isinstance(node, TypedLiteral) or node.args["kind"].name not in ("DATE", *_TIMESTAMPS):
        return None
    word = str(node.this.this).strip(" ").lower()
    return word if word == "now" or word in _DAYS else None


def _of_day(kind: str, word: str) -> exp.Expr:
    """What stands for such a literal, of its type."""
    if word == "now" and kind != "DATE":
        return exp.Cast(this=exp.Placeholder(this=NOW), to=SparkType(this=_TIMESTAMPS[kind]))
    day: exp.Expr = exp.Placeholder(this=TODAY)
    if days := _DAYS.get(word, 0):
        day = exp.Anonymous(this="date_add", expressions=[day, exp.Literal.number(str(days))])
    return day if kind == "DATE" else exp.Cast(this=day, to=SparkType(this=_TIMESTAMPS[kind]))


def fixed_values(markers: Collection[str], now: datetime.datetime, user: str, schema: str) -> dict[str, object]:
    """The values of these markers for a query that `user` began at `now` (an aware time) in `schema`."""
    if now.tzinfo is None:
        raise SqlError("the time of a query needs a time zone")
    utc = now.astimezone(datetime.UTC)
    # Spark quotes a name that needs it.
    quoted = schema if _PLAIN.fullmatch(schema) else f"`{schema.replace('`', '``')}`"
    path = f"system.builtin,system.session,{_SPARK_CATALOG}.{quoted}"
    known = {NOW: utc, TODAY: utc.date(), CALLER: user, CATALOG: _SPARK_CATALOG, SCHEMA: quoted, PATH: path}
    return {marker: known[marker] for marker in markers}


def _fixed(name: str) -> exp.Expr:
    """What stands for the call: of the same type, whatever the type of the value that is bound."""
    if name in _OF_CALLER:
        return exp.Placeholder(this=_OF_CALLER[name])
    if name in ("current_date", "curdate"):
        return exp.Placeholder(this=TODAY)
    now = exp.Placeholder(this=NOW)
    if name == "localtimestamp":
        return exp.Cast(this=now, to=SparkType(this="TIMESTAMP_NTZ"))
    if name == "unix_timestamp":
        return exp.Anonymous(this=name, expressions=[now])
    return now


def _call(node: exp.Expr, defined: set[str], bare: set[int]) -> str | None:
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        return name if name in _CALLS and not node.expressions else None
    if isinstance(node, exp.Column) and len(node.parts) == 1:
        name = node.name.lower()
        if id(node) in bare:
            # Spark names the column by its first name.
            return "current_user" if _OF_CALLER[name] == CALLER else name
        return name if name in _BARE and name not in defined else None
    return None
