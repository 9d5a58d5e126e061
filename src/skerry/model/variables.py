"""A session's variables: typed constants that a client keeps and sends with each of its statements."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from skerry.model.errors import UserError
from skerry.model.limits import VARIABLES, VARIABLES_BYTES
from skerry.model.results import Value

# What a value may be (wire/values.py); of an array, what its elements may be.
_KEPT = re.compile(
    r"(array<)*(void|boolean|tinyint|smallint|int|bigint|float|double|string|binary|date|timestamp|timestamp_ntz"
    r"|decimal\(\d{1,2},\d{1,2}\))>*"
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
    size = sum(len(name.encode()) for name in variables) + len(msgspec.msgpack.encode(list(variables.values())))
    if size > VARIABLES_BYTES:
        message = f"the session's variables have {size} bytes together; at most {VARIABLES_BYTES} are kept"
        raise UserError(message, suggestion="keep large values in a table")
    for name, variable in variables.items():
        if name != name.lower():
            raise UserError(f"variable {name[:100]!r}: names of variables are sent in lower case")
        check_kept(name, variable.type)


def check_kept(name: str, kind: str) -> None:
    if not _KEPT.fullmatch(kind) or kind.count("<") != kind.count(">"):
        raise UserError(
            f"variable {name[:100]}: a value of type {kind[:100]} is not kept in a variable",
            suggestion="use numbers, strings, dates, timestamps, binaries, booleans or arrays of these",
        )
