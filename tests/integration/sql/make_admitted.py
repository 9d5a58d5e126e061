"""Makes src/skerry/sql/admitted.json and the tables of docs/sql.md from Spark's own list of functions.

Run it (with Spark and Java at hand) after a change of Spark's version, of the grammar or of the policy:
    PYTHONPATH=src python -m tests.integration.sql.make_admitted
"""

from __future__ import annotations

import json
import re
from typing import Any

from sqlglot import exp

from scripts.sql_forms import FIXTURES, JSON, read_forms, write_docs
from skerry.model.errors import SqlError
from skerry.sql import policy
from tests.integration.sql.sql_fidelity import Fidelity

_CATALYST = "org.apache.spark.sql.catalyst.expressions."
_AGGREGATES = ("aggregate.AggregateFunction", "RuntimeReplaceableAggregate")
_RANDOM = ("Nondeterministic", "ExpressionWithRandomSeed")


def examples(description: str) -> list[str]:
    """The statements of the Examples section of DESCRIBE FUNCTION EXTENDED."""
    section = re.search(r"Examples:\n(.*?)(?:\n\s*(?:Note|Since|Arguments|Deprecated):|\Z)", description, re.S)
    return [each.strip() for each in re.findall(r"^\s*> (.*?);\s*$", section.group(1), re.M | re.S)] if section else []


def build(spark: Any) -> dict[str, Any]:
    """All of admitted.json, from scratch."""
    fidelity = Fidelity(spark)
    nodes: dict[str, set[str]] = {}
    forms = {name: _verdict(fidelity, sql, nodes) for name, sql in read_forms(FIXTURES / "forms.sql")}
    functions = {name: _function(spark, fidelity, name, info, nodes) for name, info in sorted(_registry(spark).items())}
    for name, sql in policy.OF_THE_GRAMMAR.items():
        reason = _verdict(fidelity, sql, nodes)
        functions[name] = {"kind": "scalar", **({"refused": reason} if reason else {})}
    return {
        "spark": spark.version,
        "functions": dict(sorted(functions.items())),
        "table_functions": {name: policy.REFUSED_TABLE_FUNCTIONS.get(name, "") for name in _table_functions(spark)},
        "nodes": {name: sorted(keys) for name, keys in sorted(nodes.items())},
        "forms": forms,
    }


def _verdict(fidelity: Fidelity, sql: str, nodes: dict[str, set[str]]) -> str:
    try:
        tree, wrong = fidelity.roundtrip(sql)
    except SqlError as error:
        return error.message.split("\n")[0]
    if not wrong:
        _note(tree, nodes)
    return wrong


def _note(tree: exp.Expr, nodes: dict[str, set[str]]) -> None:
    for node in tree.walk():
        keys = nodes.setdefault(type(node).__name__, set())
        keys |= {key for key, value in node.args.items() if value not in (None, [], False)}


def _registry(spark: Any) -> dict[str, Any]:
    registry = spark._jsparkSession.sessionState().functionRegistry()
    found = {}
    names = registry.listFunction().iterator()
    while names.hasNext():
        name = names.next()
        if re.fullmatch(r"\w+", name.funcName()):
            found[name.funcName()] = registry.lookupFunction(name).get()
    return found


def _table_functions(spark: Any) -> list[str]:
    names = spark._jsparkSession.sessionState().tableFunctionRegistry().listFunction().iterator()
    found = []
    while names.hasNext():
        found.append(names.next().funcName())
    return sorted(found)


def _function(spark: Any, fidelity: Fidelity, name: str, info: Any, nodes: dict[str, set[str]]) -> dict[str, Any]:
    described = "\n".join(row[0] for row in spark.sql(f"DESCRIBE FUNCTION EXTENDED `{name}`").collect())
    entry: dict[str, Any] = {"kind": _kind(spark, name, info)}
    if name in policy.NONDETERMINISTIC or _is_a(spark, info.getClassName(), _RANDOM):
        entry["deterministic"] = False
    reason = policy.REFUSED_FUNCTIONS.get(name, "")
    for sql in [*filter(fidelity.is_query, examples(described)), f"SELECT `{name}`(a, b + 1) FROM t"]:
        if reason:
            break
        reason = _verdict(fidelity, sql, nodes)
    if reason:
        entry["refused"] = reason
    return entry


def _kind(spark: Any, name: str, info: Any) -> str:
    group, cls = info.getGroup(), info.getClassName()
    if group == "window_funcs":
        return "window"
    if group == "generator_funcs" or _is_a(spark, cls, ("Generator",)):
        return "generator"
    if group == "agg_funcs" or _is_a(spark, cls, _AGGREGATES) or re.search(r"_agg(_|$)|_combine$|_accumulate$", name):
        return "aggregate"
    return "other" if name in policy.NOT_SCALAR else "scalar"


def _is_a(spark: Any, cls: str, kinds: tuple[str, ...]) -> bool:
    java = spark._jvm.java.lang.Class
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        found = java.forName(cls, False, loader)
    except Exception:  # a builder whose class is an object without a class file of that name
        return False
    return any(java.forName(_CATALYST + kind, False, loader).isAssignableFrom(found) for kind in kinds)


def to_text(made: dict[str, Any]) -> str:
    """One line an entry, so that a change shows as one line."""
    parts = []
    for key, value in made.items():
        if isinstance(value, dict):
            lines = ",\n".join(f"    {json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in value.items())
            parts.append(f"  {json.dumps(key)}: {{\n{lines}\n  }}")
        else:
            parts.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    from tests.integration.sql.sql_session import start_session

    session = start_session()
    content = build(session)
    JSON.write_text(to_text(content), encoding="utf-8")
    write_docs()
    session.stop()
