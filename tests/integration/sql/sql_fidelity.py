"""Is a text after our parse and render the same to Spark? Its own parser says so, without running anything."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from skerry.sql.dialect import render
from skerry.sql.lexer import tokens_of
from skerry.sql.parse import parse_query
from skerry.sql.roundtrip import check_roundtrip

DEPTH = 64
_IDS = re.compile(r"#\d+L?|plan_id=\d+")
_EXPRESSION_IDS = re.compile(r'"(?:exprId|resultId)":\{[^}]*\}|"(?:origin|jvmId)":[^,}]*')


def read_forms(path: Path) -> list[tuple[str, str]]:
    """`-- group`, then `-- name` lines, each followed by its SQL up to a line that ends in `;`."""
    found: list[tuple[str, str]] = []
    group, name, lines = "", "", []
    for line in path.read_text(encoding="utf-8").split("\n"):
        if not lines and line.startswith("-- "):
            group, name = (name, line[3:]) if name else (group, line[3:])
        elif lines or line.strip():
            lines.append(line)
            if line.rstrip().endswith(";"):
                found.append((f"{group}: {name}", "\n".join(lines).rstrip()[:-1]))
                name, lines = "", []
    return found


class Fidelity:
    """Compares plans of one classic Spark session."""

    def __init__(self, spark: Any) -> None:
        session = spark._jsparkSession
        # The parser asks the thread's active session whether ${…} is substituted.
        spark._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session)
        self._parser = session.sessionState().sqlParser()

    def parse(self, text: str) -> Any:
        return self._parser.parsePlan(text)

    def is_query(self, text: str) -> bool:
        return not re.match(r"\s*(SET|ADD|CREATE)\b", text, re.I)

    def same(self, one: Any, other: Any) -> bool:
        """Equal plans but for the numbers Spark gives to expressions as it parses them."""
        if one.equals(other):
            return True
        if _IDS.sub("#", one.toString()) != _IDS.sub("#", other.toString()):
            return False
        return _json(one) == _json(other) and _rows(one) == _rows(other)

    def roundtrip(self, text: str) -> tuple[Any, str]:
        """Our tree of `text`, and what is wrong with it: empty when Spark sees no difference."""
        tokens = tokens_of(text, DEPTH)
        tree = parse_query(tokens, text)
        check_roundtrip(tree, tokens, text)
        rendered = render(tree)
        return tree, "" if self.same(self.parse(text), self.parse(rendered)) else f"differs: {rendered}"


def _json(plan: Any) -> str:
    return _EXPRESSION_IDS.sub('""', plan.toJSON())


def _rows(plan: Any) -> list[str]:
    """The rows of inline tables, which Spark reads while it parses."""
    leaves = plan.collectLeaves().iterator()
    found = []
    while leaves.hasNext():
        leaf = leaves.next()
        if leaf.getClass().getSimpleName() == "LocalRelation":
            found.append(leaf.data().toString())
    return found
