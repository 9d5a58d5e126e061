"""The text of a fragment that another member made → its tree, if it is one that our own planner could have made.

It passes the gate that clients' statements pass. Only plans have hints, which the lexer knows in one form.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from sqlglot import exp

from skerry.model.errors import SqlError
from skerry.model.names import TableRef
from skerry.model.table import Column
from skerry.sql import sizes
from skerry.sql.bind import RECURSIVE
from skerry.sql.dialect import render
from skerry.sql.gate import check_bare_calls, check_gate
from skerry.sql.lexer import tokens_of
from skerry.sql.parse import parse_query
from skerry.sql.pipes import is_in_usual_order
from skerry.sql.position import error_at
from skerry.sql.roundtrip import check_roundtrip
from skerry.sql.scope import Scopes, tables_of
from skerry.sql.walk import find_all

_RECURSIVE = re.compile(rf"(skerry_)*{RECURSIVE}\d+")
_PLACEHOLDER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_fragment(text: str, leaves: Mapping[str, tuple[Column, ...]], depth: int) -> tuple[exp.Expr, str]:
    """The tree of `text`, and how it is written here, which is what Spark gets; SqlError for anything else.

    leaves: columns by placeholder. Relations are these, subqueries, and the names of WITH.
    """
    tokens = tokens_of(text, depth, has_hints=True)
    tree = parse_query(tokens, text)
    if not is_in_usual_order(tree):
        raise SqlError("planners write SELECT … FROM …, in this order")
    hints = [(select, select.args.pop("hint")) for select in find_all(tree, exp.Select) if "hint" in select.args]
    check_gate(tree, text)
    sizes.check_relations(tree, text)
    sizes.check_values(tree, text)
    _check_values(tree, text)
    for marker in find_all(tree, exp.Placeholder):
        if not marker.this:
            raise error_at("planners give every marker a name", text, marker)
    scopes = Scopes(_tables(tree, text, leaves))
    scopes.read(tree, {}, None)
    check_bare_calls(tree, scopes, text)
    for select, hint in hints:
        select.set("hint", hint)
    written = render(tree)
    if written != text:  # another release may write otherwise
        check_roundtrip(tree, tokens, text)
    _check_once(written, tree, leaves)
    return tree, written


def _check_values(tree: exp.Expr, text: str) -> None:
    """Planners put VALUES into brackets: Spark may take what follows a comma for the next relation of FROM."""
    for values in find_all(tree, exp.Values):
        around = values.parent
        if isinstance(around, exp.From | exp.Join) or (isinstance(around, exp.Subquery) and around.args.get("joins")):
            raise error_at("VALUES stands without brackets of its own", text, values)


def _tables(tree: exp.Expr, text: str, leaves: Mapping[str, tuple[Column, ...]]) -> dict[int, TableRef]:
    """What each mention of a leaf stands for; any other name is refused."""
    found: dict[int, TableRef] = {}
    for node, ctes in tables_of(tree):
        if len(node.parts) == 1 and node.name in leaves:
            found[id(node)] = TableRef(node.name, None, leaves[node.name])
        elif len(node.parts) > 1 or node.name.lower() not in ctes:
            raise error_at("this relation is no leaf of the fragment", text, node)
    for cte in find_all(tree, exp.CTE):
        assert cte.parent is not None
        if cte.parent.args.get("recursive") and not _RECURSIVE.fullmatch(cte.alias):
            raise error_at(
                "planners name what reads itself otherwise: an engine may have a table of this name", text, cte
            )
        if cte.alias.lower() in {name.lower() for name in leaves}:
            raise error_at("this WITH query has the name of a leaf", text, cte)
    return found


def _check_once(written: str, tree: exp.Expr, leaves: Mapping[str, tuple[Column, ...]]) -> None:
    """The names of views are put in by text: a placeholder stands nowhere else, not even in a string."""
    tables = Counter(table.name for table in find_all(tree, exp.Table))
    for name in leaves:
        if not _PLACEHOLDER.fullmatch(name) or len(re.findall(rf"\b{name}\b", written)) != tables[name]:
            raise SqlError("the name of a leaf stands for something else as well")
