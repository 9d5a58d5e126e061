"""Session variables in queries: each mention becomes a marker of the variable's type, as the calls of fixed.py do."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping

from sqlglot import exp

from skerry.model.limits import VARIABLE_NAME_CHARS, VARIABLE_SHOWN_CHARS
from skerry.model.names import TableRef
from skerry.model.results import Value
from skerry.model.variables import Variable
from skerry.sql.columns import ALWAYS, defined_names, hides_names, is_unit
from skerry.sql.fixed import Use
from skerry.sql.impossible import bound_error, is_bound
from skerry.sql.parse import parse_type
from skerry.sql.position import error_at
from skerry.sql.scope import Scope, Scopes
from skerry.sql.walk import find_all, nodes_of

PREFIX = "skerry_variable_"
# Words before a variable's name: session.x, system.session.x
_SESSION = ("system", "session")
_PLAIN = re.compile(r"(?!\d+$)\w+", re.ASCII)
# A column that is a variable has another name in Spark if IDENTIFIER said it.
_CLAUSE = re.compile(r"IDENTIFIER\s*\(", re.IGNORECASE)
_VALUES_COLUMN = re.compile(r"col\d+")
_NUMBERS = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}
_EPOCH = datetime.date(1970, 1, 1)
_FIRST_DAY = (datetime.date.min - _EPOCH).days
_DAYS = (datetime.date.max - datetime.date.min).days


def name_of(parts: list[str]) -> str | None:
    """The variable that `x`, `session.x` or `system.session.x` names; None for a name that is of no variable."""
    *around, name = (part.lower() for part in parts)
    return name if not around or tuple(around) in (_SESSION[1:], _SESSION) else None


def uses_of(
    tree: exp.Expr, variables: Mapping[str, Variable], tables: dict[int, TableRef], text: str
) -> tuple[dict[int, Use], dict[str, Value]]:
    """What stands for each column that means a variable, by its identity; and the values of the markers in them."""
    found = _mentions(tree, variables, tables)
    if not found:
        return {}, {}
    markers = {name: f"{PREFIX}{place}" for place, name in enumerate(dict.fromkeys(found.values()))}
    uses = {}
    for column in find_all(tree, exp.Column):
        name = found.get(id(column))
        if name is not None:
            if _CLAUSE.match(text, int(column.this.meta.get("start", column.meta.get("start", 0)))):
                raise error_at(f"write the variable's name as it is: session.{name}", text, column)
            made = _made(column, name, variables[name], markers[name], text)
            uses[id(column)] = Use(made, _shown(name, variables[name]))
    return uses, {marker: variables[name].value for name, marker in markers.items()}


def _mentions(tree: exp.Expr, variables: Mapping[str, Variable], tables: dict[int, TableRef]) -> dict[int, str]:
    """The variable of each column that surely means one, by the column's identity.

    Spark looks for columns first, of the queries around too, then for aliases. What may be one of these stays: no
    engine knows the variable, so that nobody gets an answer that is made of the wrong one.
    """
    if not variables:
        return {}
    columns = [each for each in find_all(tree, exp.Column) if not each.is_star and not is_unit(each)]
    qualified = {id(each): name for each in columns if (name := _qualified(each)) is not None}
    found = {place: name for place, name in qualified.items() if name in variables}
    words = [each for each in columns if len(each.parts) == 1 and each.name.lower() in variables]
    if not found and not words:
        return {}
    # session.x names nothing else.
    given = defined_names(tree, {}, without=found)
    everything = given | defined_names(tree, tables, without=found)
    if "session" in everything or "system" in everything:
        found = {}
    scopes = Scopes(tables)
    scopes.read(tree, {}, None)
    scope_of = {id(column): scope for scope in scopes.all for column in scope.columns}
    for word in words:
        name, scope = word.name.lower(), scope_of.get(id(word))
        if name in given or name in ALWAYS:
            continue
        if scope is None:
            is_value = isinstance(word.find_ancestor(exp.Values, exp.Select), exp.Values)
            is_free = name not in everything and all(_hides_nothing(each, name) for each in scopes.all)
            is_sure = is_value and is_free
        else:
            is_sure = all(_hides_nothing(each, name) for each in scope.chain())
        if is_sure:
            found[id(word)] = name
    return found


def _made(column: exp.Expr, name: str, variable: Variable, marker: str, text: str) -> exp.Expr:
    """Of the variable's type, whatever the type of its value."""
    made = exp.Placeholder(this=marker)
    bound = column.find_ancestor(exp.Limit, exp.Offset, exp.Query)
    if isinstance(bound, exp.Limit | exp.Offset):
        if column.parent is not bound:
            raise error_at(f"{type(bound).__name__.upper()} takes a variable alone", text, column)
        if variable.type != "int" or not is_bound(variable.value.value):
            raise bound_error(bound, _value(variable) or variable.type, text, f"variable {name}: ")
        return made
    return made if variable.type == "void" else exp.Cast(this=made, to=parse_type(variable.type))


def _shown(name: str, variable: Variable) -> str | None:
    """How Spark writes it into the name of a column."""
    value = _value(variable)
    quoted = name if _PLAIN.fullmatch(name) else f"`{name.replace('`', '``')}`"
    return None if value is None else f"variablereference(system.session.{quoted}={value})"


def _qualified(column: exp.Column) -> str | None:
    return name_of([part.name for part in column.parts]) if len(column.parts) > 1 else None


def _hides_nothing(scope: Scope, name: str) -> bool:
    """Every column of its relations and of its list is known, and none of the relations has one of this name."""
    for source in scope.sources:
        is_counted = isinstance(source.node, exp.Values) and not _VALUES_COLUMN.fullmatch(name)
        if name in (source.columns or ()) or (source.columns is None and not is_counted):
            return False
    relations = {source.alias for source in scope.sources}
    return not any(hides_names(node, relations) for item in scope.select.expressions for node in nodes_of(item))


def _value(variable: Variable) -> str | None:
    """A literal as Spark writes one, for types of which that is proven."""
    kind, value = variable.type, variable.value.value
    if value is None:
        return "NULL" if kind == "void" else f"CAST(NULL AS {kind.upper()})"
    if kind in _NUMBERS and isinstance(value, int):
        return f"{value}{_NUMBERS[kind]}"
    if kind == "boolean":
        return "true" if value else "false"
    if kind == "string" and len(str(value)) <= VARIABLE_SHOWN_CHARS:
        escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    if kind == "date" and isinstance(value, int) and 0 <= value - _FIRST_DAY <= _DAYS:
        return f"DATE '{_EPOCH + datetime.timedelta(days=value)}'"
    return None


def names_in(variables: Mapping[str, Variable]) -> dict[str, str]:
    """What IDENTIFIER(x) says, of each x that is a string."""
    texts = {name: each.value.value for name, each in variables.items() if each.type == "string"}
    return {name: text for name, text in texts.items() if isinstance(text, str) and len(text) <= VARIABLE_NAME_CHARS}
