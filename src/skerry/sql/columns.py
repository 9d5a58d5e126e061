"""Names of columns that certainly do not exist are refused here, with the place; Spark reports the rest."""

from __future__ import annotations

import re
from collections.abc import Container

from sqlglot import exp

from skerry.model.names import TableRef
from skerry.model.nearest import did_you_mean
from skerry.sql.functions import BARE_CALLS, is_generator
from skerry.sql.nodes import VariantPath
from skerry.sql.position import error_at
from skerry.sql.scope import Scope, Scopes
from skerry.sql.walk import find_all, nodes_of

# Calls whose first argument is a unit (a bare word), not a column.
UNIT_CALLS = frozenset({"dateadd", "date_add", "datediff", "date_diff", "timestampadd", "timestampdiff", "timediff"})
# Words that Spark knows before it looks for anything of that name.
ALWAYS = BARE_CALLS | {"grouping__id", "spark_grouping_id", "localtimestamp", "true", "false", "null"}
# What Spark calls a column that has no name of its own is its text: `count(1)`, `(k + 1)`; no more than a word if it is
# a literal or a field.
_WORD = re.compile(r"\w+")


def defined_names(tree: exp.Expr, tables: dict[int, TableRef], without: Container[int] = ()) -> set[str]:
    """Every name that some column of a table, or anything that names a thing in the statement, has.

    `without`: columns, by their identity, that are none.
    """
    names = {column.name.lower() for table in tables.values() for column in table.columns}
    for node in nodes_of(tree):
        if id(node) in without:
            continue
        if isinstance(node, exp.Alias):
            names.add(node.alias.lower())
        elif isinstance(node, exp.Aliases | exp.Lambda):
            names |= {part.name.lower() for part in node.expressions}
        elif isinstance(node, exp.TableAlias):
            names |= {part.name.lower() for part in [node.this, *(node.args.get("columns") or [])] if part is not None}
        elif isinstance(node, exp.Kwarg):
            names.add(node.this.name.lower())
        elif isinstance(node, exp.Literal) or (isinstance(node, exp.Column) and len(node.parts) > 1):
            names.add(node.name.lower())
        elif isinstance(node, VariantPath):
            names.add(node.output_name.lower())
        elif isinstance(node, exp.Dot):
            names.add(node.expression.name.lower())
    return names


def check_columns(tree: exp.Expr, scopes: Scopes, tables: dict[int, TableRef], text: str) -> None:
    """Never a false alarm: what a struct, a generator or an unknown relation could hold is left to Spark."""
    defined = defined_names(tree, tables)
    values = _value_names(tree)
    relations = {source.alias for scope in scopes.all for source in scope.sources}
    foggy = any(hides_names(node, relations) for node in nodes_of(tree))
    for scope in scopes.all:
        for column in scope.columns:
            if isinstance(column.this, exp.Star) or is_unit(column):
                continue
            parts = column.parts
            if len(parts) == 1:
                name = parts[0].name
                known = name.lower() in defined or name.lower() in ALWAYS
                if not foggy and not known and _WORD.fullmatch(name):
                    raise error_at(f"unknown column {name}{did_you_mean(name, defined)}", text, column)
            elif len(parts) == 2:
                _check_qualified(column, scope, values, text)


def _value_names(tree: exp.Expr) -> set[str]:
    """Names of values in the statement itself: `o.x` may be a field of one, though a table is called o as well."""
    names: set[str] = set()
    for node in find_all(tree, exp.Alias, exp.Aliases, exp.Lambda):
        parts = [node.args["alias"]] if isinstance(node, exp.Alias) else node.expressions
        names |= {part.name.lower() for part in parts}
    return names


def _check_qualified(column: exp.Column, scope: Scope, values: set[str], text: str) -> None:
    alias, name = (part.name for part in column.parts)
    if alias.lower() in values:
        return
    for around in scope.chain():
        owners = [source for source in around.sources if source.alias == alias.lower()]
        if not owners:
            continue
        table = owners[0].table
        if len(owners) > 1 or table is None or owners[0].renamed or table.column(alias) is not None:
            return
        # A column named like the table's alias could be a struct: then this is its field.
        if any(
            source.columns is None or alias.lower() in source.columns
            for each in scope.chain()
            for source in each.sources
        ):
            return
        if table.column(name) is None and name.lower() != "_metadata":
            known = [item.name for item in table.columns]
            raise error_at(f"table {table.name} has no column {name}{did_you_mean(name, known)}", text, column.this)
        return


def is_unit(column: exp.Column) -> bool:
    """Is it DAY in `dateadd(DAY, 1, d)`? In `date_add(d, 1)` there is none."""
    call = column.parent
    if not isinstance(call, exp.Anonymous) or call.name.lower() not in UNIT_CALLS:
        return False
    return column.index == 0 and len(column.parts) == 1 and len(call.expressions) > 2


def hides_names(node: exp.Expr, relations: set[str]) -> bool:
    """Relations, calls and structs that bring columns which the text does not name."""
    if isinstance(node, exp.Pivot | exp.Lateral | exp.Values):
        return True
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        return len(node.parts) > 2 or node.table.lower() not in relations
    if isinstance(node, exp.Table):
        return isinstance(node.this, exp.Anonymous)
    return is_generator(node) or (isinstance(node, exp.Anonymous) and node.name.lower() in ("window", "session_window"))
