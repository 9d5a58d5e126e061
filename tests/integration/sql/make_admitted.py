"""Makes src/skerry/sql/admitted.json and the tables of docs/sql.md from Spark's own list of functions.

Run it (with Spark and Java at hand) after a change of Spark's version, of the grammar or of the policy:
    PYTHONPATH=src python -m tests.integration.sql.make_admitted
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from sqlglot import exp

from skerry.model.errors import SqlError
from skerry.sql import policy
from tests.integration.sql.sql_fidelity import Fidelity, read_forms

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "tests/unit/sql"
JSON = ROOT / "src/skerry/sql/admitted.json"
DOCS = ROOT / "docs/sql.md"
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
    return {
        "spark": spark.version,
        "functions": functions,
        "table_functions": {name: policy.REFUSED_TABLE_FUNCTIONS.get(name, "") for name in _table_functions(spark)},
        "nodes": {name: sorted(keys) for name, keys in sorted(nodes.items())},
        "forms": forms,
    }


def refused() -> dict[str, str]:
    """What each text of refused.sql is told; empty where it passed."""
    # Imported late: they read the file that this script makes.
    from skerry.model.limits import Limits
    from skerry.sql.statement import analyse
    from tests.unit.sql.sql_catalog import FakeCatalog

    said = {}
    for name, sql in read_forms(FIXTURES / "refused.sql"):
        try:
            analyse(sql, None, FakeCatalog({"t": "a int, b string", "u": "a int, b string"}), Limits())
        except SqlError as error:
            said[name] = error.message.split("\n")[0]
        else:
            said[name] = ""
    return said


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


def document(made: dict[str, Any], said: dict[str, str]) -> str:
    """The generated part of docs/sql.md."""
    functions = made["functions"]
    fine = [name for name, entry in functions.items() if not entry.get("refused")]
    lines = [
        f"Compared with Spark {made['spark']}.",
        "",
        f"### Functions: {len(fine)} admitted, {len(functions) - len(fine)} refused",
        "",
    ]
    for kind in ("scalar", "aggregate", "window", "generator", "other"):
        names = [name for name in fine if functions[name]["kind"] == kind]
        lines += [f"**{kind}** ({len(names)}): " + ", ".join(f"`{name}`" for name in names) + ".", ""]
    random = [name for name in fine if functions[name].get("deterministic") is False]
    lines += [
        "Never moved to the sources, because two calls may differ: " + ", ".join(f"`{n}`" for n in random) + ".",
        "",
    ]
    lines += ["| refused function | because |", "| --- | --- |"]
    lines += [f"| `{name}` | {entry['refused']} |" for name, entry in functions.items() if entry.get("refused")]
    tables = made["table_functions"]
    lines += ["", "Table functions: " + ", ".join(f"`{name}`" for name, why in tables.items() if not why) + "."]
    lines += [f"Refused: `{name}` ({why})." for name, why in tables.items() if why]
    lines += ["", f"### Forms: {len(made['forms'])} compared", "", "| group | admitted |", "| --- | --- |"]
    groups: dict[str, list[str]] = {}
    for name, wrong in made["forms"].items():
        group, form = name.split(": ", 1)
        groups.setdefault(group, []).append(form if not wrong else f"~~{form}~~ ({wrong})")
    lines += [f"| {group} | {', '.join(names)} |" for group, names in groups.items()]
    lines += ["", "### Refused, and what the client is told", "", "| form | message |", "| --- | --- |"]
    lines += [f"| {name} | {message.replace('|', chr(92) + '|')} |" for name, message in said.items()]
    return "\n".join(lines) + "\n"


def write_docs(made: dict[str, Any], said: dict[str, str]) -> None:
    begin, end = "<!-- generated: begin -->", "<!-- generated: end -->"
    text = DOCS.read_text(encoding="utf-8")
    before, rest = text.split(begin, 1)
    after = rest.split(end, 1)[1]
    DOCS.write_text(f"{before}{begin}\n{document(made, said)}{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    from tests.integration.sql.sql_session import start_session

    session = start_session()
    content = build(session)
    JSON.write_text(to_text(content), encoding="utf-8")
    if DOCS.exists():
        write_docs(content, refused())
    session.stop()
