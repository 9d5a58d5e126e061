"""Is a text after our parse and render the same to Spark? Its own parser says so, without running anything."""

from __future__ import annotations

import json
import re
from typing import Any

from sqlglot import exp

from skerry.model.errors import SqlError
from skerry.sql.dialect import render
from skerry.sql.lexer import tokens_of
from skerry.sql.parse import parse_query
from skerry.sql.roundtrip import check_roundtrip

DEPTH = 64
# Java shows an array of bytes by its address; the plan's text, which is compared too, shows its bytes.
_ADDRESSES = re.compile(r"\[B@[0-9a-f]+")
_HINTS = re.compile(r"""(\bSELECT\b\s*)(?:/\*\+(?:[^*'"`]|'[^']*'|"[^"]*"|`[^`]*`)*\*/\s*)+""")
_IDS = re.compile(r"#\d+L?|plan_id=\d+")
_EXPRESSION_IDS = re.compile(r'"(?:exprId|resultId)":\{[^}]*\}|"(?:origin|jvmId)":[^,}]*')


class Fidelity:
    """Compares plans of one classic Spark session."""

    def __init__(self, spark: Any) -> None:
        self._parser = spark._jsparkSession.sessionState().sqlParser()

    def parse(self, text: str) -> Any:
        return self._parser.parsePlan(text)

    def try_parse(self, text: str) -> Any | None:
        """The plan, or None where Spark finds a mistake in the text."""
        from pyspark.errors import IllegalArgumentException, ParseException

        try:
            return self.parse(text)
        except (ParseException, IllegalArgumentException):  # the second: INTERVAL '2:3' HOUR
            return None

    def is_query(self, text: str) -> bool:
        return not re.match(r"\s*(SET|ADD|CREATE)\b", text, re.I)

    def same(self, one: Any, other: Any) -> bool:
        """Equal plans but for the numbers Spark gives to expressions as it parses them."""
        if one.equals(other):
            return True
        if _IDS.sub("#", one.toString()) != _IDS.sub("#", other.toString()):
            return False
        return _json(one) == _json(other)

    def roundtrip(self, text: str) -> tuple[Any, str]:
        """Our tree of `text`, and what is wrong with it: empty when Spark sees no difference."""
        tokens = tokens_of(text, DEPTH)
        tree = parse_query(tokens, text)
        check_roundtrip(tree, tokens, text)
        rendered = render(tree)
        # Hints are left out on purpose.
        said = _HINTS.sub(r"\1", text)
        return tree, "" if self.same(self.parse(said), self.parse(rendered)) else f"differs: {rendered}"


def reads(plan: Any) -> tuple[set[str], set[str]]:
    """The relations and functions that Spark finds in a text, by name, in lower case."""
    relations: set[str] = set()
    functions: set[str] = set()
    stack = [json.loads(plan.toJSON())]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack.extend(node)
        elif isinstance(node, dict):
            kind = str(node.get("class", "")).rsplit(".", 1)[-1]
            if kind == "UnresolvedRelation":
                relations.add(_dotted(node["multipartIdentifier"]))
            elif kind in ("UnresolvedFunction", "UnresolvedTableValuedFunction"):
                functions.add(_dotted(node.get("nameParts") or node.get("name")))
            stack.extend(node.values())
    return relations, functions


def _dotted(parts: Any) -> str:
    return str(parts).strip("[]").replace(", ", ".").lower()


def tree_of(text: str) -> exp.Expr | None:
    """Our tree, or None where we find a mistake in the text."""
    try:
        return parse_query(tokens_of(text, DEPTH), text)
    except SqlError:
        return None


def _json(plan: Any) -> str:
    return _EXPRESSION_IDS.sub('""', _ADDRESSES.sub("[B", plan.toJSON()))
