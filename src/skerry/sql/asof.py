"""`t VERSION AS OF 5` and `t TIMESTAMP AS OF '2024-01-01 12:00:00'`: tables as they were. Pure.

The words are taken out before a query is parsed. All tables of our own of one query are read at one moment: so all of
them say the same, or none says any. A table of a site's own that keeps older versions is another table by each of them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from skerry.model.names import Moment, TableRef
from skerry.model.position import sql_error
from skerry.sql.walk import find_all

_WORDS = {"VERSION": "version", "SYSTEM_VERSION": "version", "TIMESTAMP": "timestamp", "SYSTEM_TIME": "timestamp"}
_TYPES = ("TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "DATE")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Said(NamedTuple):
    """`behind`: the end of the name of its table."""

    behind: int
    first: Token
    last: Token
    moment: Moment


def taken_out(tokens: list[Token], text: str) -> tuple[list[Token], list[Said]]:
    """The statement without the words, and what they said. What only looks like them is left."""
    left: list[Token] = []
    said: list[Said] = []
    at = 0
    while at < len(tokens):
        found = _read(tokens, at, text) if left else None
        if found is None:
            left.append(tokens[at])
            at += 1
        else:
            said.append(Said(left[-1].end, tokens[at], tokens[found[0] - 1], found[1]))
            at = found[0]
    return left, said


def _read(tokens: list[Token], at: int, text: str) -> tuple[int, Moment] | None:
    """Where the words end, and their moment."""
    words = [token.text.upper() if token.token_type != TokenType.STRING else "" for token in tokens[at : at + 5]]
    first = 1 if words[:1] == ["FOR"] else 0
    if len(words) < first + 3 or words[first] not in _WORDS or words[first + 1 : first + 3] != ["AS", "OF"]:
        return None
    kind, place = _WORDS[words[first]], at + first + 3
    if kind == "timestamp" and place < len(tokens) and tokens[place].text.upper() in _TYPES:
        place += tokens[place].token_type != TokenType.STRING
    wanted = TokenType.NUMBER if kind == "version" else TokenType.STRING
    if place >= len(tokens) or tokens[place].token_type != wanted:
        return None
    value = tokens[place]
    if kind == "version":
        if not value.text.isdecimal() or len(value.text) > 19 or int(value.text) >= 2**63:
            raise sql_error("VERSION AS OF takes the number of a commit", text, value.start, value.end)
        return place + 1, Moment("version", int(value.text))
    try:
        moment = dt.datetime.fromisoformat(value.text.strip())
    except ValueError:
        form = "TIMESTAMP AS OF takes a moment, in UTC: '2024-01-31 12:00:00'"
        raise sql_error(form, text, value.start, value.end) from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)
    return place + 1, Moment("timestamp", max(1, (moment - _EPOCH) // dt.timedelta(microseconds=1)))


def one_moment(tree: exp.Expr, tables: Mapping[int, TableRef], said: Sequence[Said], text: str) -> Moment | None:
    """When the query's tables of our own are read; None: now. `tables`: by the identity of their mentions.

    Any other table has its own version, which `bind.look_up` has found.
    """
    if not said:
        return None
    behind = {each.behind: each for each in said}
    mentions = [
        (ref, behind.pop(_end(node), None)) for node in find_all(tree, exp.Table) if (ref := tables.get(id(node)))
    ]
    own = [(ref, each) for ref, each in mentions if ref.is_own]
    first = next((each for _, each in own if each is not None), None)
    # A table that is written to is no mention of a query.
    first = first or (next(iter(behind.values()), None) if own else None)
    for stray in () if first is not None else behind.values():
        raise sql_error("AS OF stands behind a table", text, stray.first.start, stray.last.end)
    if first is None:
        return None
    if not first.moment.value:
        raise sql_error("VERSION AS OF takes the number of a commit", text, first.first.start, first.last.end)
    for ref, each in own:
        if each is None or each.moment != first.moment:
            message = f"tables of our own are read at one moment: say the same AS OF behind table {ref.name}"
            raise sql_error(message, text, first.first.start, first.last.end)
    for stray in behind.values():
        raise sql_error("AS OF stands behind a table", text, stray.first.start, stray.last.end)
    return first.moment


def _end(node: exp.Table) -> int:
    return int(node.meta.get("end", -1))


def moment_behind(node: exp.Table, said: Sequence[Said]) -> Moment | None:
    """What is said behind this mention."""
    return next((each.moment for each in said if each.behind == _end(node)), None)
