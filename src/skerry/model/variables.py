"""A session's variables: typed constants that a client keeps and sends with each of its statements."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from skerry.model.errors import UserError
from skerry.model.limits import DECIMAL_DIGITS, VARIABLES, VARIABLES_BYTES
from skerry.model.results import Value

# What a value may be (wire/values.py); of an array, what its elements may be.
_KEPT = re.compile(
    r"(array<)*(void|boolean|tinyint|smallint|int|bigint|float|double|string|binary|date|timestamp|timestamp_ntz"
    r"|decimal\(([0-9]{1,2}),([0-9]{1,2})\))>*"
)


class Variable(msgspec.Struct, frozen=True, array_like=True):
    """`type` as Spark writes it; `default`: the text of the expression that SET VAR … = DEFAULT computes again."""

    type: str
    value: Value
    default: str = ""


def check_variables(variables: Mapping[str, Variable]) -> None:
    """UserError when these are more than one session may have, or not what a member gave to its client."""
    if len(variables) > VARIABLES:
        raise UserError(f"a session has at most {VARIABLES} variables; drop some (DROP TEMPORARY VARIABLE name)")
    size = variables_bytes(variables)
    if size > VARIABLES_BYTES:
        message = f"the session's variables have {size} bytes together; at most {VARIABLES_BYTES} are kept"
        raise UserError(message, suggestion="keep large values in a table")
    for name, variable in variables.items():
        if not name:
            raise UserError("a variable has a name")
        if name != name.lower():
            raise UserError(f"variable {name[:100]!r}: names of variables are sent in lower case")
        check_kept(name, variable.type)


def variables_bytes(variables: Mapping[str, Variable]) -> int:
    """What they take on their way, and may make of a statement."""
    return sum(len(name.encode()) for name in variables) + len(msgspec.msgpack.encode(list(variables.values())))


def check_kept(name: str, kind: str) -> None:
    kept = _KEPT.fullmatch(kind)
    digits, behind = (int(kept[3]), int(kept[4])) if kept is not None and kept[3] else (1, 0)
    if kept is None or not max(1, behind) <= digits <= DECIMAL_DIGITS or kind.count("<") != kind.count(">"):
        raise UserError(
            f"variable {name[:100]}: a value of type {kind[:100]} is not kept in a variable",
            suggestion="use numbers, strings, dates, timestamps, binaries, booleans or arrays of these",
        )
