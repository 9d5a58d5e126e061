"""Statement text → what it asks for: the way in to this layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from skerry.model.errors import SqlError
from skerry.model.limits import Limits
from skerry.model.names import Catalog, Moment, TableRef
from skerry.model.nearest import did_you_mean
from skerry.model.position import sql_error
from skerry.model.results import Value
from skerry.model.variables import Variable
from skerry.sql import bind, columns, expected, gate, parameters, sizes
from skerry.sql.asof import Said, one_moment, taken_out
from skerry.sql.by_all import spell_out_all
from skerry.sql.commands import Command, read_command
from skerry.sql.declare import Assignment, read_assignment
from skerry.sql.dialect import render
from skerry.sql.fixed import fix_calls
from skerry.sql.functions import is_generator
from skerry.sql.having import qualify_in_having
from skerry.sql.impossible import check_literals
from skerry.sql.lexer import tokens_of
from skerry.sql.parse import parse_query
from skerry.sql.pipes import in_usual_order
from skerry.sql.prune import needed_columns
from skerry.sql.push import pushed_filters
from skerry.sql.quoted import quoted_columns
from skerry.sql.roundtrip import check_roundtrip
from skerry.sql.scope import Scopes
from skerry.sql.variables import names_in, uses_of
from skerry.sql.views import NO_VIEWS, Expanded, View, Views
from skerry.sql.walk import find_all, nodes_of

__all__ = ["Assign", "Explain", "Query", "Scan", "Statement", "analyse", "render"]

_QUERY_STARTS = {TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.L_PAREN, TokenType.FROM, TokenType.TABLE}
_FIRST_WORDS = frozenset(
    "SELECT WITH VALUES FROM TABLE EXPLAIN SHOW DESCRIBE USE ANALYZE DECLARE SET CREATE ALTER DROP TRUNCATE FLUSH"
    " REBALANCE INSERT UPDATE DELETE MERGE BEGIN COMMIT ROLLBACK".split()
)
_SLIP = 0.8  # SELEC is a slip, RESET and COMMENT are words of their own
# Spark's kinds of EXPLAIN that ask for more of the plan: ours is told whole as it is.
_SPARK_EXPLAINS = frozenset({"EXTENDED", "FORMATTED", "COST"})
_BEFORE_A_KIND = frozenset({"CREATE", "DROP", "ALTER", "OR", "REPLACE", "GLOBAL", "TEMPORARY", "TEMP"})


@dataclass(frozen=True)
class Scan:
    """One mention of a table. `node_name` stands for it in the tree; `filters` may be applied at the source."""

    node_name: str
    table: TableRef
    columns: tuple[str, ...]
    filters: tuple[exp.Expr, ...]


@dataclass(frozen=True)
class Query:
    """A bound query. `parameters` has the value of every marker in `tree` but those in `fixed` (see fixed.py)."""

    tree: exp.Expr
    tables: tuple[Scan, ...]
    parameters: dict[str, Any] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()
    variables: dict[str, Value] = field(default_factory=dict)  # of the session, by the markers that stand for them
    expected: dict[str, str] = field(default_factory=dict)  # types of markers, where they are known
    is_named: bool = False  # the markers are :name, not ?
    warnings: tuple[str, ...] = ()  # right by Spark's rules, but perhaps not what was meant
    as_of: Moment | None = None  # when tables of our own are read; None: now
    views: tuple[tuple[str, str], ...] = ()  # names and texts of those that it reads


@dataclass(frozen=True)
class Explain:
    query: Query
    analyze: bool = False
    is_json: bool = False


@dataclass(frozen=True)
class Assign:
    """DECLARE or SET VAR: see declare.Assignment."""

    query: Query
    targets: tuple[str, ...]
    default: str | None


Statement = Query | Explain | Assign | Command


@dataclass(frozen=True)
class Given:
    """What a statement comes with. `variables` of the session, by their names in lower case."""

    text: str
    values: Sequence[Any] | Mapping[str, Any] | None
    catalog: Catalog
    variables: Mapping[str, Variable] = field(default_factory=dict)
    views: Views = NO_VIEWS


def analyse(
    text: str,
    parameters: Sequence[Any] | Mapping[str, Any] | None,
    catalog: Catalog,
    limits: Limits,
    variables: Mapping[str, Variable] = MappingProxyType({}),
    views: Views = NO_VIEWS,
) -> Statement:
    """The one statement of `text`, gated and bound; SqlError says what is wrong with it, and where."""
    try:
        tokens = statement_tokens(text, limits, variables)
        return _statement(tokens, Given(text, parameters, catalog, variables, views))
    except RecursionError:
        raise SqlError("the statement is nested too deeply") from None


def statement_tokens(
    text: str, limits: Limits, variables: Mapping[str, Variable] = MappingProxyType({})
) -> list[Token]:
    """The tokens of the one statement that `text` is."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > limits.sql_bytes:
        raise SqlError(f"the statement has {size} bytes; at most {limits.sql_bytes} are admitted (limits.sql_bytes)")
    return _one(tokens_of(text, limits.sql_depth, limits.sql_tokens, said=names_in(variables)), text)


def _one(tokens: list[Token], text: str) -> list[Token]:
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise SqlError("the statement is empty")
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            raise sql_error("one statement a call: send what follows this ; on its own", text, token.start)
    return tokens


def _statement(tokens: list[Token], given: Given) -> Statement:
    text = given.text
    words = [token.text.upper() if token.token_type != TokenType.STRING else "" for token in tokens[:2]] + [""]
    if tokens[0].token_type in _QUERY_STARTS:
        return _query(tokens, given)
    if words[0] == "EXPLAIN":
        return _explain(tokens, given)
    assignment = read_assignment(tokens, text, given.variables)
    if isinstance(assignment, Assignment):
        return _assign(assignment, given)
    command = assignment or read_command(tokens, text, given.catalog)
    if command is not None:
        if given.values:
            raise SqlError(f"{words[0]} takes no parameters")
        return command
    slip = did_you_mean(words[0], _FIRST_WORDS, _SLIP) if words[0] not in _FIRST_WORDS else ""
    if slip:
        raise sql_error(f"{words[0]} begins no statement{slip}", text, tokens[0].start, tokens[0].end)
    # CREATE alone is admitted: which kind of it is not?
    last = next((at for at, each in enumerate(tokens[:6]) if each.text.upper() not in _BEFORE_A_KIND), 0)
    named = " ".join(token.text.upper() for token in tokens[: last + 1])[:40]
    admitted = (
        "queries (SELECT …), EXPLAIN, SHOW, DESCRIBE, USE, ANALYZE TABLE, DECLARE, SET VAR, and for tables of its own "
        "CREATE, ALTER, DROP, TRUNCATE and FLUSH TABLE, INSERT, UPDATE, DELETE, MERGE, BEGIN, COMMIT and ROLLBACK"
    )
    raise sql_error(f"{named} is not admitted: Skerry runs {admitted}", text, tokens[0].start, tokens[last].end)


def _assign(assignment: Assignment, given: Given) -> Assign:
    query = _query(assignment.tokens, given)
    if assignment.default is not None:
        if query.parameters:
            raise SqlError("DECLARE takes no parameters: SET VAR … = DEFAULT computes its expression again")
        if len(find_all(query.tree, exp.Query)) > 1:
            message = "[INVALID_DEFAULT_VALUE.SUBQUERY_EXPRESSION] the value of DECLARE holds no query; use SET VAR"
            raise SqlError(message)
    given_from = query.tree.args.get("from_")
    row = given_from.this.this if given_from is not None else None
    if isinstance(row, exp.Select) and not any(item.is_star for item in row.expressions):
        wanted, found = len(assignment.targets), len(row.expressions)
        if wanted != found and not any(is_generator(node) for item in row.expressions for node in nodes_of(item)):
            raise SqlError(f"[ASSIGNMENT_ARITY_MISMATCH] {wanted} variables are set to a row of {found} values")
    return Assign(query, assignment.targets, assignment.default)


def _explain(tokens: list[Token], given: Given) -> Explain:
    rest = tokens[1:]
    analyze = bool(rest) and rest[0].text.upper() == "ANALYZE"
    is_spark = bool(rest) and rest[0].text.upper() in _SPARK_EXPLAINS
    rest = rest[1:] if analyze or is_spark else rest
    is_json = not is_spark and [token.text.upper() for token in rest[:2]] == ["FORMAT", "JSON"]
    rest = rest[2:] if is_json else rest
    if not rest or rest[0].token_type not in _QUERY_STARTS:
        message = "EXPLAIN [ANALYZE] [FORMAT JSON] takes a query"
        wrong = rest[0] if rest else tokens[-1]
        raise sql_error(message, given.text, wrong.start, wrong.end)
    return Explain(_query(rest, given), analyze, is_json)


def _query(tokens: list[Token], given: Given) -> Query:
    tokens, moments = taken_out(tokens, given.text)
    tree = parse_query(tokens, given.text)
    check_said(tree, tokens, given.text)
    expanded = Expanded(given.views, given.catalog, read_view, partial(_check_view, given))
    query = bound_query(expanded.expand(tree), tokens, given, moments)
    return replace(query, views=tuple((name, view.sql) for name, view in expanded.used.items()))


def read_view(text: str) -> tuple[exp.Expr, list[Token]]:
    """A view's query, gated; nobody has looked yet what its names mean."""
    tokens = statement_tokens(text, Limits())
    if tokens[0].token_type not in _QUERY_STARTS:
        raise sql_error("a view is a query", text, tokens[0].start, tokens[0].end)
    tree = parse_query(tokens, text)
    check_said(tree, tokens, text)
    return tree, tokens


def _check_view(given: Given, tree: exp.Expr, tokens: list[Token], view: View) -> None:
    """A mistake in it is told with its place in it, not in the statement that reads it."""
    bound_query(tree, tokens, Given(view.sql, None, given.catalog))


def check_said(tree: exp.Expr, tokens: list[Token], text: str) -> None:
    """Refuse what is not admitted, and a tree that does not say what `tokens` do."""
    gate.check_gate(tree, text, is_asked=True)
    check_roundtrip(tree, tokens, text)


def bound_query(tree: exp.Expr, tokens: list[Token], given: Given, moments: Sequence[Said] = ()) -> Query:
    """A tree whose parts have passed `check_said`, bound. `tokens` are all of the statement's, but for `moments`."""
    text, values, catalog = given.text, given.values, given.catalog
    check_literals(tree, text)
    sizes.check_relations(tree, text)
    sizes.check_values(tree, text)
    is_named = any(marker.this for marker in find_all(tree, exp.Placeholder))
    bound = parameters.bind_parameters(tree, values, text)
    tables = bind.look_up(tree, catalog, text, moments)
    as_of = one_moment(tree, tables, moments, text)
    tree = in_usual_order(tree, tables, text)
    if any(with_.args.get("recursive") for with_ in find_all(tree, exp.With)):
        bind.name_recursive(tree)
    defined = columns.defined_names(tree, tables)
    uses, variables = uses_of(tree, given.variables, tables, text)
    fixed = fix_calls(tree, defined, gate.bare_calls(tree, tables, defined), uses, text)
    scopes = Scopes(tables)
    scopes.read(tree, {}, None)
    if spell_out_all(tree, scopes):
        scopes = Scopes(tables)
        scopes.read(tree, {}, None)
    gate.check_bare_calls(tree, scopes, text)
    gate.quote_columns(tree)
    bind.shorten_names(scopes, text)
    columns.check_columns(tree, scopes, tables, text)
    places = expected.expected_places(tree, scopes)
    if not isinstance(values, parameters.Unbound):
        expected.check_values(places, bound | {name: each.value for name, each in variables.items()}, text)
    warnings = quoted_columns(tree, tokens, text, tables.values())
    sources = bind.place_scans(tree, scopes, tables)
    bind.wrap_values(tree)
    qualify_in_having(tree, scopes)
    _forget_places(tree)
    needed = needed_columns(tree, scopes, sources)
    filters = pushed_filters(scopes, sources)
    scans = []
    for name, source in sources.items():
        assert source.table is not None
        scans.append(Scan(name, source.table, needed[name], filters[name]))
    types = {name: known[0].type for name, known in places.items()}
    return Query(tree, tuple(scans), bound, fixed, variables, types, is_named, warnings, as_of)


def _forget_places(tree: exp.Expr) -> None:
    """Where nodes stand in the text is not asked any more, and would be copied with every tree that is tried."""
    for node in nodes_of(tree):
        node._meta = None
