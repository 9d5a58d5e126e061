"""The SQL of rules: a filter's condition and a mask's value, over the columns of one table. Pure.

Both pass the gate that statements pass, and more is refused: whatever is not one value of one row. `session_user()`
stands for the user who asks; its name is bound as a parameter, and never becomes text.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from sqlglot import exp

from skerry.model.limits import RULE_DEPTH, RULES_KEPT
from skerry.model.nearest import did_you_mean
from skerry.sql.columns import is_unit
from skerry.sql.functions import BARE_CALLS, call_name, function_of
from skerry.sql.gate import check_gate
from skerry.sql.grammar.queries import QueryGrammar
from skerry.sql.impossible import check_literals
from skerry.sql.lexer import tokens_of
from skerry.sql.position import error_at
from skerry.sql.roundtrip import check_roundtrip
from skerry.sql.walk import bare, contains, find_all, nodes_of

USER_CALL = "session_user"
# The parameter that the user's name is bound to.
USER = "skerry_user"
_NESTED = ("array", "map", "struct")
_NOT_ONE_ROW = (exp.Query, exp.Subquery, exp.Exists, exp.Window, exp.Star, exp.Filter, exp.WithinGroup)


def read_expression(text: str) -> exp.Expr:
    """The tree of a filter or mask; SqlError if it is none. It is the caller's own."""
    return _read(text).copy()


@lru_cache(maxsize=RULES_KEPT)
def _read(text: str) -> exp.Expr:
    tokens = tokens_of(text, RULE_DEPTH)
    grammar = QueryGrammar(tokens, text)
    tree = grammar.whole(grammar.expression, "expression")
    check_roundtrip(tree, tokens, text)
    check_literals(tree, text)
    _check_markers(tree, text)
    tree = tree.transform(_user_bound)
    check_gate(tree, text)
    _check_value(tree, text)
    return tree


def _check_markers(tree: exp.Expr, text: str) -> None:
    for marker in find_all(tree, exp.Placeholder):
        raise error_at(f"a rule has no parameters; write {USER_CALL}() for the user who asks", text, marker)


def _user_bound(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Anonymous) and call_name(node) == USER_CALL and not node.expressions:
        return exp.Placeholder(this=USER)
    return node


def _check_value(tree: exp.Expr, text: str) -> None:
    for node in nodes_of(tree):
        if isinstance(node, _NOT_ONE_ROW):
            raise error_at(f"a rule looks at one row of its table: no {node.key} in it", text, node)
        function = function_of(node)
        if function is not None and function.kind != "scalar":
            raise error_at(f"{call_name(node)} is no function of one row (it is of kind {function.kind})", text, node)
        if function is not None and not function.deterministic:
            raise error_at(f"{call_name(node)} may give another value each time: not in a rule", text, node)
        if isinstance(node, exp.Column) and len(node.parts) == 1 and node.name.lower() in BARE_CALLS:
            raise error_at(f"{node.name} without brackets is a call to Spark; write {USER_CALL}()", text, node)


def uses_user(tree: exp.Expr) -> bool:
    return contains(tree, exp.Placeholder)


def check_columns(text: str, columns: Collection[str]) -> None:
    """SqlError for a column that the table has not; `columns` are all of them."""
    known = {name.lower() for name in columns}
    for first, column in _columns_of(read_expression(text)):
        if first.lower() not in known:
            raise error_at(f"the table has no column {first}{did_you_mean(first, columns)}", text, column)


def columns_in(text: str) -> frozenset[str]:
    """In lower case."""
    return frozenset(first.lower() for first, _ in _columns_of(read_expression(text)))


def _columns_of(tree: exp.Expr) -> list[tuple[str, exp.Column]]:
    """Their names, without those that a lambda gives its arguments."""
    named = {part.name.lower() for each in find_all(tree, exp.Lambda) for part in each.expressions}
    found = [(column.parts[0].name, column) for column in find_all(tree, exp.Column) if not is_unit(column)]
    return [(first, column) for first, column in found if first.lower() not in named]


def may_be(text: str, kind: str) -> bool:
    """Whether a mask may have a value of that type: a text that is no number, or no date, is surely none."""
    tree = read_expression(text)
    tree = bare(tree)
    if not (isinstance(tree, exp.Literal) and tree.is_string) or kind in ("string", "binary"):
        return True
    return not kind.startswith(_NESTED) and any(char.isdigit() for char in str(tree.this))
