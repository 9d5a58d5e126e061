"""DECLARE, SET VAR and DROP TEMPORARY VARIABLE. What is set is the row of a query, made of the statement's tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot.tokens import Token, TokenType

from skerry.model.errors import SqlError
from skerry.model.nearest import did_you_mean
from skerry.model.position import sql_error
from skerry.model.variables import Variable
from skerry.sql.commands import DropVariable, words_of
from skerry.sql.lexer import tokens_of
from skerry.sql.parameters import RESERVED
from skerry.sql.variables import name_of

_WORD = re.compile(r"\w+")
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)
_QUERIES = (TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.FROM, TokenType.TABLE)
_DEPTH = 1 << 30  # of what was checked before
_DECLARE = "DECLARE [OR REPLACE] [VARIABLE] name [, …] [type] [DEFAULT expression]"
_SET = "SET VAR name = expression | DEFAULT [, …], or SET VAR (name, …) = (SELECT …)"


@dataclass(frozen=True)
class Assignment:
    """The values of `targets` are in the columns of the one row of a query, which `tokens` are.

    `default` None: SET VAR, of variables that keep theirs. DECLARE has one value for all that it names.
    """

    targets: tuple[str, ...]
    tokens: list[Token]
    default: str | None = None


def read_assignment(
    tokens: list[Token], text: str, variables: Mapping[str, Variable]
) -> Assignment | DropVariable | None:
    """None when these tokens begin no such statement."""
    words = words_of(tokens[:4])
    if words[:1] == ["DECLARE"]:
        return _declare(tokens, text, variables)
    if words[:1] == ["SET"] and words[1:2] in (["VAR"], ["VARIABLE"]) and len(tokens) > 2:
        return _set(tokens, text, variables)
    if words[:1] == ["DROP"] and words[1:2] in (["TEMPORARY"], ["TEMP"]) and words[2:3] in (["VAR"], ["VARIABLE"]):
        return _drop(tokens, text, variables)
    return None


def _declare(tokens: list[Token], text: str, variables: Mapping[str, Variable]) -> Assignment:
    at = 3 if words_of(tokens[1:3]) == ["OR", "REPLACE"] else 1
    replaces = at == 3
    word, following = words_of(tokens[at : at + 1]), tokens[at + 1 : at + 2]
    if word in (["VARIABLE"], ["VAR"]) and following and _is_name(following[0]) and words_of(following) != ["DEFAULT"]:
        at += 1
    names: list[str] = []
    while True:
        first = at
        name, at = _name(tokens, at, text, _DECLARE)
        if name is None or name.startswith(RESERVED):
            shown = text[tokens[first].start : tokens[at - 1].end + 1][:100]
            message = f"[UNRESOLVED_VARIABLE] {shown} can be no variable: it is x, session.x or system.session.x"
            raise sql_error(message, text, tokens[first].start, tokens[at - 1].end)
        if name in names:
            message = f"[DUPLICATE_VARIABLE_NAME_INSIDE_DECLARE] {name} is declared twice"
            raise sql_error(message, text, tokens[first].start, tokens[at - 1].end)
        if name in variables and not replaces:
            message = f"[VARIABLE_ALREADY_EXISTS] there is a variable {name}: write DECLARE OR REPLACE, or SET VAR"
            raise sql_error(message, text, tokens[first].start, tokens[at - 1].end)
        names.append(name)
        if at == len(tokens) or tokens[at].token_type != TokenType.COMMA:
            break
        at += 1
    rest = tokens[at:]
    is_mark = [each.token_type == TokenType.EQ or words_of([each]) == ["DEFAULT"] for each in rest]
    marks = [place for place, is_there in enumerate(is_mark) if is_there]
    kind, value = (rest[: marks[0]], rest[marks[0] + 1 :]) if marks else (rest, [])
    if (marks and not value) or not rest:
        raise sql_error(f"write {_DECLARE}, with a type, a DEFAULT or both", text, tokens[0].start, tokens[-1].end)
    default = text[value[0].start : value[-1].end + 1] if value else "NULL"
    expression = value or _said("NULL", tokens[0])
    return Assignment(tuple(names), _select([(expression, kind)], text), default)


def _set(tokens: list[Token], text: str, variables: Mapping[str, Variable]) -> Assignment:
    if tokens[2].token_type == TokenType.L_PAREN:
        return _set_row(tokens, text, variables)
    names: list[str] = []
    values: list[tuple[list[Token], list[Token]]] = []
    for part in _split(tokens[2:], text):
        name, at = _name(part, 0, text, _SET)
        known = _known(name, part[:at], text, variables)
        _check_once(known, names, part[0], text)
        value = part[at + 1 :]
        if at == len(part) or part[at].token_type != TokenType.EQ or not value or value[0].token_type in _QUERIES:
            raise sql_error(f"write {_SET}", text, part[0].start, part[-1].end)
        if words_of(value) == ["DEFAULT"]:
            value = _said(variables[known].default or "NULL", value[0])
        names.append(known)
        values.append((value, _said(variables[known].type, part[0])))
    return Assignment(tuple(names), _select(values, text))


def _set_row(tokens: list[Token], text: str, variables: Mapping[str, Variable]) -> Assignment:
    """`SELECT CAST(c0 AS type) … FROM (query) AS q(c0, …) LIMIT 2`: a second row is an error, as in Spark."""
    names: list[str] = []
    at = 3
    while True:
        first = at
        name, at = _name(tokens, at, text, _SET)
        known = _known(name, tokens[first:at], text, variables)
        _check_once(known, names, tokens[first], text)
        names.append(known)
        if at == len(tokens) or tokens[at].token_type != TokenType.COMMA:
            break
        at += 1
    kinds = [token.token_type for token in tokens[at : at + 3]]
    if kinds != [TokenType.R_PAREN, TokenType.EQ, TokenType.L_PAREN] or tokens[-1].token_type != TokenType.R_PAREN:
        raise sql_error(f"write {_SET}", text, tokens[0].start, tokens[-1].end)
    place, query = tokens[0], tokens[at + 2 :]
    _check_query(query, text)
    columns = [f"{RESERVED}column_{index}" for index in range(len(names))]
    made = _said("SELECT", place)
    for index, (name, column) in enumerate(zip(names, columns, strict=True)):
        made += _said("," if index else "", place) + _said(f"CAST({column} AS", place)
        made += [*_said(variables[name].type, place), *_said(f") AS {RESERVED}value_{index}", place)]
    made += [*_said("FROM", place), *query, *_said(f"AS {RESERVED}row({', '.join(columns)}) LIMIT 2", place)]
    return Assignment(tuple(names), made)


def _drop(tokens: list[Token], text: str, variables: Mapping[str, Variable]) -> DropVariable:
    at = 5 if words_of(tokens[3:5]) == ["IF", "EXISTS"] else 3
    name, upto = _name(tokens, at, text, "DROP TEMPORARY VARIABLE [IF EXISTS] name")
    if upto != len(tokens):
        raise sql_error("DROP TEMPORARY VARIABLE takes one name", text, tokens[upto].start, tokens[-1].end)
    if name in variables:
        return DropVariable(name)
    if at == 5 and name is not None:
        return DropVariable(None)
    shown = text[tokens[at].start : tokens[-1].end + 1][:100]
    message = f"[VARIABLE_NOT_FOUND] there is no variable {shown}{did_you_mean(shown, variables)}"
    raise sql_error(message, text, tokens[at].start, tokens[-1].end)


def _select(values: Sequence[tuple[list[Token], list[Token]]], text: str) -> list[Token]:
    """`SELECT CAST(expression AS type) AS name, …`; brackets keep each expression to itself."""
    made: list[Token] = []
    for index, (value, kind) in enumerate(values):
        _check_closed(value, kind, text)
        place = value[0]
        made += _said("," if index else "SELECT", place)
        # Aliases are names that no statement of a client has.
        ending = _said(f") AS {RESERVED}value_{index}", place)
        made += [*_said("CAST(", place), *value, *_said("AS", place), *kind] if kind else [*_said("(", place), *value]
        made += ending
    return made


def _split(tokens: list[Token], text: str) -> list[list[Token]]:
    """At the commas outside of brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if token.token_type == TokenType.COMMA and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    if not all(parts):
        raise sql_error(f"write {_SET}", text, tokens[0].start, tokens[-1].end)
    return parts


def _check_closed(value: list[Token], kind: list[Token], text: str) -> None:
    """No bracket of an expression or type closes one of ours, and no comma outside of brackets makes two of it."""
    if not value:
        raise SqlError("the value of a variable has no expression")
    for tokens, what in ((value, "expression"), (kind, "type")):
        depth = 0
        for token in tokens:
            depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
            is_next = token.token_type == TokenType.COMMA and depth == 0 and tokens is value
            if depth < 0 or is_next:
                raise sql_error(f"the {what} should end here", text, token.start, token.end)
    if value[0].token_type in _QUERIES:
        raise sql_error("a query that is a value stands in brackets", text, value[0].start, value[0].end)


def _check_query(tokens: list[Token], text: str) -> None:
    """It is one query in brackets: no relation, and no row of them."""
    depth = 0
    for token in tokens[:-1]:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth == 0:
            raise sql_error("the query in brackets should end the statement", text, token.start, token.end)
    first = next((token for token in tokens if token.token_type != TokenType.L_PAREN), tokens[0])
    if first.token_type not in _QUERIES:
        raise sql_error(f"write {_SET}", text, first.start, first.end)


def _known(name: str | None, tokens: list[Token], text: str, variables: Mapping[str, Variable]) -> str:
    if name is not None and name in variables:
        return name
    shown = text[tokens[0].start : tokens[-1].end + 1][:100]
    message = f"[UNRESOLVED_VARIABLE] there is no variable {shown}{did_you_mean(shown, variables)}: DECLARE it first"
    raise sql_error(message, text, tokens[0].start, tokens[-1].end)


def _check_once(name: str, names: list[str], token: Token, text: str) -> None:
    if name in names:
        raise sql_error(f"[DUPLICATE_ASSIGNMENTS] {name} is set twice", text, token.start, token.end)


def _name(tokens: list[Token], at: int, text: str, form: str) -> tuple[str | None, int]:
    """The variable that is named there, None if no variable is called so; and where the name has ended."""
    if at >= len(tokens) or not _is_name(tokens[at]):
        raise sql_error(f"write {form}", text, tokens[min(at, len(tokens) - 1)].start)
    parts = [tokens[at].text]
    at += 1
    while at + 1 < len(tokens) and tokens[at].token_type == TokenType.DOT and _is_name(tokens[at + 1]):
        parts.append(tokens[at + 1].text)
        at += 2
    return name_of(parts), at


def _is_name(token: Token) -> bool:
    quoted = (TokenType.STRING, TokenType.HEX_STRING, TokenType.NUMBER, TokenType.HINT)
    is_word = _WORD.fullmatch(token.text) is not None and token.token_type not in quoted
    return token.token_type == TokenType.IDENTIFIER or is_word


def _said(text: str, place: Token) -> list[Token]:
    """The tokens of `text`; what is wrong with them is shown at `place`."""
    try:
        tokens = tokens_of(text, _DEPTH)
    except SqlError:
        raise SqlError(f"a variable's type or default is no SQL: {text[:100]}") from None
    return [
        Token(each.token_type, each.text, start=place.start, end=place.end, comments=each.comments) for each in tokens
    ]
