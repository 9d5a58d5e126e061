"""Prints into docs/sql.md what the gate admits, and what it says to all that it refuses.

The lists are those of the code: `admitted.json`, which the gate reads, and the answers to tests/unit/sql/refused.sql.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from skerry.model.errors import SqlError
from skerry.model.limits import Limits
from skerry.model.names import TableRef
from skerry.model.table import Column
from skerry.sql.changes import analyse_change
from skerry.sql.owntables import Known, explained, is_about_own
from skerry.sql.statement import analyse

_ROOT = Path(__file__).resolve().parents[1]
FIXTURES = _ROOT / "tests/unit/sql"
JSON = _ROOT / "src/skerry/sql/admitted.json"
DOCS = _ROOT / "docs/sql.md"


class _Two:
    """A catalog with the tables t and u."""

    def lookup(self, parts: tuple[str, ...]) -> TableRef | None:
        columns = (Column("a", "int"), Column("b", "string"))
        return TableRef(parts[0], None, columns) if parts in (("t",), ("u",)) else None

    def names(self) -> list[str]:
        return ["t", "u"]


def read_forms(path: Path) -> list[tuple[str, str]]:
    """`-- group`, then `-- name` lines, each followed by its SQL up to a line that ends in `;`."""
    found: list[tuple[str, str]] = []
    group, name = "", ""
    lines: list[str] = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        if not lines and line.startswith("-- "):
            group, name = (name, line[3:]) if name else (group, line[3:])
        elif lines or line.strip():
            lines.append(line)
            if line.rstrip().endswith(";"):
                found.append((f"{group}: {name}", "\n".join(lines).rstrip()[:-1]))
                name, lines = "", []
    return found


def refused() -> dict[str, str]:
    """What each text of refused.sql is told; empty where it passed."""
    said = {}
    for name, sql in read_forms(FIXTURES / "refused.sql"):
        try:
            if is_about_own(sql):
                found = explained(sql)
                analyse_change(found.sql if found is not None else sql, None, Known(_Two(), {}, ("oslo",)), Limits())
            else:
                analyse(sql, None, _Two(), Limits())
        except SqlError as error:
            said[name] = error.message.split("\n")[0]
        else:
            said[name] = ""
    return said


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


def write_docs() -> None:
    begin, end = "<!-- generated: begin -->", "<!-- generated: end -->"
    text = DOCS.read_text(encoding="utf-8")
    before, rest = text.split(begin, 1)
    after = rest.split(end, 1)[1]
    made = json.loads(JSON.read_text(encoding="utf-8"))
    DOCS.write_text(f"{before}{begin}\n{document(made, refused())}{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    write_docs()
