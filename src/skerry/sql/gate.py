"""The allow-list: kinds of nodes, functions and relations. What is not on it is refused by name."""

from __future__ import annotations

import re

from sqlglot import exp

from skerry.model.names import TableRef
from skerry.model.nearest import did_you_mean
from skerry.sql.fixed import special_time
from skerry.sql.functions import BARE_CALLS, admitted, call_name
from skerry.sql.nodes import ColonCast, TypedLiteral
from skerry.sql.policy import FIXED_FUNCTIONS
from skerry.sql.position import error_at
from skerry.sql.scope import Scope, Scopes
from skerry.sql.walk import find_all, nodes_of

_SPECIAL_TIMES = ("now", "today", "tomorrow", "yesterday")
_TIME_TYPES = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"})
_TIME_CALLS = frozenset({"date", "timestamp", "to_date", "to_timestamp", "timestamp_ntz", "timestamp_ltz"})
# Their options may name a file of the site (an XSD): the place of the options, and those that name none.
_XML_CALLS = {"from_xml": 2, "schema_of_xml": 1}
_XML_OPTIONS = frozenset(
    "rowtag mode columnnameofcorruptrecord dateformat timestampformat timestampntzformat timeformat timezone locale"
    " encoding charset attributeprefix valuetag nullvalue treatemptyvaluesasnulls ignoresurroundingspaces"
    " ignorenamespace excludeattribute samplingratio inferschema preferdate prefersdecimal wildcardcolname"
    " singlevariantcolumn enabledatetimeparsingfallback validatename".split()
)
_HIDDEN = frozenset({"_metadata"})
# Spark's grammar calls it wherever it stands without quotes; it looks for columns named like the other calls first.
_KEYWORD = "current_path"
# What Spark knows tables and edges by while a query runs.
_VIEWS = re.compile(r"skerry_(table|edge)_\d+", re.IGNORECASE)


def check_gate(tree: exp.Expr, text: str, *, is_asked: bool = False) -> None:
    """Raise SqlError at the first node that is not admitted. is_asked: by a client, whose name and schema are fixed."""
    for node in nodes_of(tree):
        _check_kind(node, text)
        if isinstance(node, exp.Anonymous):
            (_check_table_function if _is_relation(node) else _check_function)(node, text)
            _check_fixed(node, text, is_asked)
        elif isinstance(node, exp.Identifier) and node.name.lower() in _HIDDEN:
            raise error_at(f"{node.name} shows the files of a site: not admitted", text, node)
        elif isinstance(node, exp.CTE) and _VIEWS.fullmatch(node.alias):
            raise error_at(f"{node.alias} is a name that Skerry gives to tables: choose another", text, node)
        elif isinstance(node, TypedLiteral | exp.Cast | ColonCast):
            _check_special_time(node, text)


def bare_calls(tree: exp.Expr, tables: dict[int, TableRef], defined: set[str]) -> set[int]:
    """The words `current_user`, … that surely call for who asks; check_bare_calls refuses those that only may."""
    words = [each for each in find_all(tree, exp.Column) if _is_word(each) and each.name.lower() in FIXED_FUNCTIONS]
    if not words:
        return set()
    scopes = Scopes(tables)
    scopes.read(tree, {}, None)
    scope_of = {id(column): scope for scope in scopes.all for column in scope.columns}
    return {id(word) for word in words if _is_call(word, scope_of.get(id(word)), defined)}


def _is_word(column: exp.Column) -> bool:
    is_quoted = column.this.args.get("quoted") and column.name.lower() == _KEYWORD
    return len(column.parts) == 1 and column.name.lower() in BARE_CALLS and not is_quoted


def _is_call(word: exp.Column, scope: Scope | None, defined: set[str]) -> bool:
    """Where something else has the name, only a SELECT's list and WHERE are sure: the rest sees aliases, too."""
    name = word.name.lower()
    if _is_bound(word):
        return False
    if name == _KEYWORD:
        return True
    if scope is None:
        return name not in defined and isinstance(word.find_ancestor(exp.Values, exp.Select), exp.Values)
    if any(source.columns is None or name in source.columns for source in scope.sources):
        return False
    if name not in defined:
        return True
    node: exp.Expr = word
    while node.parent is not None and node.parent is not scope.select:
        node = node.parent
        if isinstance(node, exp.Lambda | exp.Kwarg):
            return False
    return node.arg_key in ("expressions", "where")


def check_bare_calls(tree: exp.Expr, scopes: Scopes, text: str) -> None:
    """`current_user` needs no brackets: the bare word is a call unless a relation of its own FROM has that column.

    Spark takes it for a call before it looks at aliases of the same SELECT and at the queries around.
    """
    scope_of = {id(column): scope for scope in scopes.all for column in scope.columns}
    for column in find_all(tree, exp.Column):
        name = column.name.lower()
        if not _is_word(column):
            continue
        reason = admitted().functions[name].refused
        scope = scope_of.get(id(column))
        if not (reason or name in FIXED_FUNCTIONS) or (scope is not None and _is_column(column, name, scope)):
            continue
        if not reason:
            message = f"{name} may be a call or a column here: write {name}() or its table too (t.{name})"
            raise error_at(message, text, column)
        advice = f"; if you mean a column, write its table too (t.{name})"
        raise error_at(f"function {name} is not admitted: {reason}{advice}", text, column)


def quote_columns(tree: exp.Expr) -> None:
    """Columns that are named like a call get quotes, in which they mean the same to Spark: Sail looks for no column."""
    for column in find_all(tree, exp.Column):
        if column.name.lower() in BARE_CALLS:
            column.this.set("quoted", True)


def _is_bound(node: exp.Expr) -> bool:
    """Is it in a LIMIT, which Spark reads before it knows who asks?"""
    return isinstance(node.find_ancestor(exp.Limit, exp.Offset, exp.Query), exp.Limit | exp.Offset)


def _is_column(column: exp.Column, name: str, scope: Scope) -> bool:
    if name == _KEYWORD:
        return False
    if any(name in (source.columns or ()) for source in scope.sources):
        return True
    # ORDER BY sees what the SELECT gives.
    sorts = column.find_ancestor(exp.Order, exp.Sort, exp.Select)
    is_sorted = isinstance(sorts, exp.Order | exp.Sort) and sorts.parent is scope.select
    return is_sorted and any(name == item.alias.lower() for item in scope.select.expressions if item.alias)


def _is_relation(call: exp.Anonymous) -> bool:
    around = call.parent
    return isinstance(around, exp.Table) or (isinstance(around, exp.Lateral) and not around.args.get("view"))


def _check_kind(node: exp.Expr, text: str) -> None:
    keys = admitted().nodes.get(type(node).__name__)
    if keys is None:
        raise error_at(f"this form ({node.key}) is not admitted", text, node)
    for key, value in node.args.items():
        if key not in keys and value not in (None, [], False):
            raise error_at(f"this form ({node.key} with {key}) is not admitted", text, node)


def _check_function(node: exp.Anonymous, text: str) -> None:
    name = call_name(node) or ""
    function = admitted().functions.get(name)
    if function is None:
        _check_identifier(node, text)
        known = [key for key, each in admitted().functions.items() if not each.refused]
        raise error_at(f"unknown function {node.name}{did_you_mean(name, known)}", text, node)
    if function.refused:
        raise error_at(f"function {node.name} is not admitted: {function.refused}", text, node)
    if name in _XML_CALLS:
        _check_xml_options(node, node.expressions[_XML_CALLS[name] :], text)
    _check_special_time(node, text)


def _check_fixed(call: exp.Anonymous, text: str, is_asked: bool) -> None:
    name = call_name(call) or ""
    if name in FIXED_FUNCTIONS and not is_asked:
        raise error_at(f"function {call.name} is not admitted here: {FIXED_FUNCTIONS[name]}", text, call)
    if name in FIXED_FUNCTIONS and call.expressions:
        raise error_at(f"{call.name} takes no arguments", text, call)
    if name in FIXED_FUNCTIONS and _is_bound(call):
        raise error_at(f"LIMIT takes no {call.name}, as in Spark", text, call)


def _check_identifier(call: exp.Anonymous, text: str) -> None:
    """Names in strings have become names by now (see lexer.py); what a row or a parameter says is no name here."""
    if call.name.lower() == "identifier":
        raise error_at("IDENTIFIER takes a whole name as a string: IDENTIFIER('orders')", text, call)


def _check_xml_options(node: exp.Anonymous, options: list[exp.Expr], text: str) -> None:
    """`map('name', 'value', …)` in letters, with names that are known to reach no file."""
    is_map = len(options) == 1 and isinstance(options[0], exp.Anonymous) and options[0].name.lower() == "map"
    if options and not is_map:
        raise error_at(f"options of {node.name} are written as map('name', 'value', …)", text, node)
    for place, item in enumerate(options[0].expressions if is_map else ()):
        if not isinstance(item, exp.Literal) or not item.is_string:
            raise error_at(f"options of {node.name} are strings in the statement's text", text, node)
        if place % 2 == 0 and item.name.lower() not in _XML_OPTIONS:
            raise error_at(
                f"option {item.name} of {node.name} is not admitted: it may name files of the site", text, node
            )


def _check_table_function(call: exp.Anonymous, text: str) -> None:
    name = call.name.lower()
    reason = admitted().table_functions.get(name)
    if reason is None:
        _check_identifier(call, text)
        known = [key for key, each in admitted().table_functions.items() if not each]
        raise error_at(f"unknown table function {call.name}{did_you_mean(name, known)}", text, call)
    if reason:
        raise error_at(f"table function {call.name} is not admitted: {reason}", text, call)


def _check_special_time(node: exp.Expr, text: str) -> None:
    """A string that means today would be another day at another site: the initiator fixes literals (see fixed.py)."""
    if isinstance(node, TypedLiteral):
        if special_time(node) is not None:
            return
        kind, value = node.args["kind"].name.upper(), node.this
    elif isinstance(node, exp.Anonymous):
        kind = "DATE" if node.name.lower() in _TIME_CALLS else ""
        value = node.expressions[0] if node.expressions else None
    else:
        kind, value = str(node.args["to"].this), node.this
    if kind in _TIME_TYPES and isinstance(value, exp.Literal) and value.is_string:
        word = str(value.this).strip().lower()
        if word.startswith(_SPECIAL_TIMES):
            raise error_at(f"'{word}' as a time is not admitted here; write DATE 'today' or now()", text, node)
