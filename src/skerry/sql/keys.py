"""Which keys a WHERE names: equalities of all columns of the key with constants, and nothing else. Pure."""

from __future__ import annotations

from sqlglot import exp

from skerry.model.sharded import OwnTable
from skerry.sql.constants import Unsure, is_plain
from skerry.sql.walk import operands


def keys_said(where: exp.Expr, table: OwnTable, alias: str) -> tuple[tuple[exp.Expr, ...], ...]:
    """For each column of the key, in its order, the constants that it may equal; Unsure says what else is asked."""
    while isinstance(where, exp.Paren):
        where = where.this
    keys = {name.lower(): name for name in table.primary_key}
    found: dict[str, tuple[exp.Expr, ...]] = {}
    for condition in operands(where) if isinstance(where, exp.And) else [where]:
        column, values = equality(condition)
        name = _own_name(column, alias)
        if name not in keys:
            shown = ".".join(part.name for part in column.parts)[:100]
            raise Unsure(f"WHERE asks for {shown}, which is no column of the key")
        if name in found:
            raise Unsure(f"WHERE asks for {keys[name]} twice")
        found[name] = values
    missing = [name for key, name in keys.items() if key not in found]
    if missing:
        raise Unsure(f"WHERE does not say {' and '.join(missing)} of the key")
    return tuple(found[name] for name in keys)


def _own_name(column: exp.Column, alias: str) -> str:
    names = [part.name.lower() for part in column.parts]
    return names[-1] if len(names) == 1 or (len(names) == 2 and names[0] == alias.lower()) else ""


def equality(condition: exp.Expr) -> tuple[exp.Column, tuple[exp.Expr, ...]]:
    """A column and the constants that it may equal; Unsure if the condition says anything else."""
    while isinstance(condition, exp.Paren):
        condition = condition.this
    values: tuple[exp.Expr, ...] = ()
    if isinstance(condition, exp.EQ):
        one, other = condition.this, condition.expression
        column, values = (one, (other,)) if isinstance(one, exp.Column) else (other, (one,))
    elif isinstance(condition, exp.In) and condition.expressions:
        column, values = condition.this, tuple(condition.expressions)
    if not values or not isinstance(column, exp.Column) or not all(map(is_plain, values)):
        raise Unsure("WHERE is more than columns of the key that equal constants")
    return column, values
