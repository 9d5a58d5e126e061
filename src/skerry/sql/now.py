"""The time of a query is fixed once, by its initiator: `now()` and its kin become markers."""

from __future__ import annotations

import datetime

from sqlglot import exp

from skerry.model.errors import SqlError
from skerry.sql.naming import spark_name
from skerry.sql.nodes import SparkType, TypedLiteral
from skerry.sql.position import error_at
from skerry.sql.walk import nodes_of

NOW, TODAY = "skerry_now", "skerry_today"

# function → the column's name that Spark gives to a call without alias
_CALLS = {
    "now": "now()",
    "current_timestamp": "current_timestamp()",
    "current_date": "current_date()",
    "curdate": "current_date()",
    "localtimestamp": "localtimestamp()",
    "unix_timestamp": "unix_timestamp(current_timestamp(), yyyy-MM-dd HH:mm:ss)",
}
_BARE = frozenset({"current_timestamp", "current_date"})
# DATE 'tomorrow': days from that of the query
_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
_TIMESTAMPS = {"TIMESTAMP": "TIMESTAMP", "TIMESTAMP_LTZ": "TIMESTAMP", "TIMESTAMP_NTZ": "TIMESTAMP_NTZ"}


def fix_now(tree: exp.Expr, defined: set[str], text: str) -> bool:
    """Replace every call in place; `defined` are the names that some column or alias has. True if there was any."""
    calls = [node for node in nodes_of(tree) if _call(node, defined) is not None or special_time(node) is not None]
    names: dict[int, tuple[exp.Expr, str]] = {}
    for node in calls:
        item = _item_of(node)
        if item is None or id(item) in names or not _names_matter(item):
            continue
        # Spark names the column after the whole expression, with the call in it.
        name = spark_name(item, lambda part: _CALLS.get(_call(part, defined) or ""))
        if name is None:
            raise error_at("give this column a name (AS …): its value depends on the time of the query", text, node)
        names[id(item)] = (item, name)
    for item, name in names.values():
        alias = exp.Alias(alias=exp.Identifier(this=name, quoted=True))
        item.replace(alias)
        alias.set("this", item)
    for node in calls:
        word = special_time(node)
        node.replace(_fixed(_call(node, defined) or "") if word is None else _of_day(node.args["kind"].name, word))
    return bool(calls)


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


def now_parameters(now: datetime.datetime) -> dict[str, object]:
    """The values of all markers for a query that began at `now` (an aware time)."""
    if now.tzinfo is None:
        raise SqlError("the time of a query needs a time zone")
    utc = now.astimezone(datetime.UTC)
    return {NOW: utc, TODAY: utc.date()}


def _fixed(name: str) -> exp.Expr:
    """What stands for the call: of the same type, whatever the type of the value that is bound."""
    if name in ("current_date", "curdate"):
        return exp.Placeholder(this=TODAY)
    now = exp.Placeholder(this=NOW)
    if name == "localtimestamp":
        return exp.Cast(this=now, to=SparkType(this="TIMESTAMP_NTZ"))
    if name == "unix_timestamp":
        return exp.Anonymous(this=name, expressions=[now])
    return now


def _call(node: exp.Expr, defined: set[str]) -> str | None:
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        return name if name in _CALLS and not node.expressions else None
    if isinstance(node, exp.Column) and len(node.parts) == 1:
        name = node.name.lower()
        return name if name in _BARE and name not in defined else None
    return None


def _item_of(node: exp.Expr) -> exp.Expr | None:
    """The item of a select list without alias that holds `node`; None when it has one, or stands elsewhere."""
    child, parent = node, node.parent
    while parent is not None:
        if isinstance(parent, exp.Select):
            return child if child.arg_key == "expressions" and not isinstance(child, exp.Alias | exp.Aliases) else None
        if isinstance(parent, exp.Query):
            return None
        child, parent = parent, parent.parent
    return None


def _names_matter(item: exp.Expr) -> bool:
    """Nobody sees the column names of EXISTS (…), IN (…) and of a subquery that is a value."""
    select = item.parent
    assert select is not None
    around = select.parent
    if isinstance(around, exp.Exists | exp.In):
        return False
    if not isinstance(around, exp.Subquery):
        return True
    return isinstance(
        around.parent, exp.From | exp.Join | exp.Lateral | exp.CTE | exp.SetOperation | exp.Subquery | None
    )
