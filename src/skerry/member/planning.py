"""From a client's text to a plan: analysed and cut by a worker, again when tables turn out to have changed."""

from __future__ import annotations

import asyncio
import datetime
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol, Self, TypeVar, assert_never

import msgspec

from skerry.catalog.catalog import Catalog, Undescribed
from skerry.catalog.seen import seen_by
from skerry.catalog.topology import Topology
from skerry.config import Config
from skerry.member.clientoptions import plan_rules
from skerry.member.ownplaces import placed
from skerry.member.peertables import PeerTables
from skerry.member.requests import PrepareStatement, RunStatement
from skerry.model import trace
from skerry.model.errors import SiteError, SqlError, UserError
from skerry.model.fragment import Count, LeftOut, Plan, Rows, Written
from skerry.model.limits import Limits
from skerry.model.names import DEFAULT_SCHEMA, TableRef
from skerry.model.results import Parameter, Value
from skerry.model.rights import Rights
from skerry.model.table import TablePart
from skerry.model.variables import Variable, check_variables
from skerry.plan.analyze import analyze_plan
from skerry.plan.explain import Actual
from skerry.plan.lawful import plan_query
from skerry.plan.site import Site
from skerry.sql.commands import (
    AnalyzeTable,
    Command,
    DescribeTable,
    DropVariable,
    ShowColumns,
    ShowSchemas,
    ShowTables,
    UseSchema,
)
from skerry.sql.expected import BOUND
from skerry.sql.fixed import fixed_values
from skerry.sql.owntables import is_about_own
from skerry.sql.parameters import Unbound
from skerry.sql.statement import Assign, Explain, Query, Statement, analyse
from skerry.sql.views import NO_VIEWS, View, Views, known_as, views_of
from skerry.tables.clock import COUNTER_BITS
from skerry.wire.values import from_value, from_values, to_value

# A plan that leaves out parts is made again when their files have changed, so often.
_PRUNED_TRIES = 3
# A site is asked about a table so often for one statement: its answer is dropped when it describes all of its tables.
_DESCRIBED_TRIES = 3
_TOO_DEEP = "the statement is nested too deeply, or has too many UNIONs in a row, to be planned"

M = TypeVar("M")
T = TypeVar("T")


class Knowledge(msgspec.Struct, frozen=True):
    """What a plan is made of, in whichever process."""

    name: str
    config: Config
    catalog: Catalog
    topology: Topology
    site: Site

    @property
    def limits(self) -> Limits:
        return self.config.limits

    def seen_by(self, rights: Rights) -> Self:
        """For whoever has these rights: what is hidden from it is not in the catalog."""
        return self if rights.is_open else msgspec.structs.replace(self, catalog=seen_by(self.catalog, rights))


class Worker(Protocol):
    """Whoever plans: threads of the member, or processes of its own."""

    async def run(self, work: Callable[[Any, Any], T], planner: Any, message: Any, /) -> T: ...


class Planner(Knowledge, frozen=True):
    """What an initiator plans with."""

    workers: Worker
    peer_tables: PeerTables


class Planned(msgspec.Struct, frozen=True):
    """`is_veiled`: rows or values of its tables are hidden from who asks; the sizes of its run tell others nothing."""

    plan: Plan
    parameters: dict[str, Value]
    warnings: tuple[str, ...] = ()
    is_veiled: bool = False
    as_of: int = 0  # when tables of our own are read; 0: now
    views: tuple[tuple[str, str], ...] = ()  # names and texts of those that EXPLAIN tells of


class Explained(msgspec.Struct, frozen=True):
    """EXPLAIN. `refused`: why the plan may not be run; `ran`: EXPLAIN ANALYZE, after the run."""

    plan: Plan
    is_json: bool
    refused: str = ""
    ran: Actual | None = None
    warnings: tuple[str, ...] = ()
    views: tuple[tuple[str, str], ...] = ()


class Tried(msgspec.Struct, frozen=True):
    """EXPLAIN ANALYZE: to be run, its rows to be thrown away."""

    planned: Planned
    is_json: bool


class Assigned(msgspec.Struct, frozen=True):
    """DECLARE or SET VAR: to be run, its one row are the values of `targets`; of one column, of all of them.

    `default`: of what DECLARE makes; None for SET VAR, whose variables keep theirs.
    """

    planned: Planned
    targets: tuple[str, ...]
    default: str | None


class AboutOwn(msgspec.Struct, frozen=True):
    """A statement that defines or changes tables of our own (`changing.py`)."""


# A statement that is understood: to be run, or to be answered by the initiator itself.
Understood = Planned | Tried | Assigned | Explained | AboutOwn | Command


class SchemaCatalog:
    """The catalog as a client sees it whose default schema is `schema_name`."""

    def __init__(self, catalog: Catalog, schema_name: str, views: Views = NO_VIEWS) -> None:
        self._catalog = catalog
        self._schema_name = schema_name
        named = views.named.items() if views.is_told else ()
        self._views = tuple(view.name if "." not in name else name for name, view in named)

    def lookup(self, parts: tuple[str, ...]) -> TableRef | None:
        return self._catalog.lookup(parts, self._schema_name)

    def names(self) -> list[str]:
        return [*self._catalog.names(), *self._views]


async def plan_statement(planner: Planner, message: RunStatement) -> Understood:
    """Raises SqlError or SiteError only after the sites were asked what they have now."""
    if is_about_own(message.sql):
        return AboutOwn()
    for _ in range(_PRUNED_TRIES):
        planned = await with_fresh_tables(planner, _plan, message)
        left_out = _left_out(planned)
        ask = planner.peer_tables.files_version
        versions = await asyncio.gather(*(ask(each.member, each.table) for each in left_out))
        pairs = list(zip(left_out, versions, strict=True))
        changed = tuple(dict.fromkeys(each.member for each, version in pairs if version != each.files_version))
        if not changed:
            return planned
        reason = f"the files of {', '.join(changed)} may be others now"
        trace.emit(trace.QueryReplanned(message.query, reason))
        if None in versions:
            break
        await planner.peer_tables.refresh(changed)
    return await with_fresh_tables(planner, _plan_all_parts, message)


def check_expected(understood: Understood, message: RunStatement) -> None:
    """UserError for a client that said it takes rows only, or a count only, and would get the other."""
    expected = message.expected
    if isinstance(understood, AboutOwn):
        return  # who reads it tells
    counts = isinstance(understood, Assigned | DropVariable) or (
        isinstance(understood, Planned) and _counts(understood.plan)
    )
    if expected == "count" and not counts:
        raise UserError("the statement returns rows, its client expects the number of rows that it changes")
    if message.more:
        raise UserError("executemany is for INSERT, UPDATE and DELETE on tables of our own")
    if expected == "rows" and counts:
        raise UserError("the statement changes rows and returns none, its client expects rows")


def _counts(plan: Plan) -> bool:
    match plan.ends_in:
        case Rows():
            return False
        case Count() | Written():
            return True
        case never:
            assert_never(never)


async def prepare_statement(planner: Planner, message: PrepareStatement) -> tuple[Parameter, ...]:
    """The statement's markers and what is known of their types; errors as in `plan_statement`."""
    if is_about_own(message.sql):
        raise SqlError("statements about tables of our own are not prepared yet: send them with their values")
    return await with_fresh_tables(planner, _prepare, message)


async def with_fresh_tables(planner: Planner, work: Callable[[Knowledge, M], T], message: M) -> T:
    asked: set[str] = set()
    described: Counter[tuple[str, str]] = Counter()
    while True:
        planner.peer_tables.define()
        try:
            return await planner.workers.run(work, planner, message)
        except RecursionError:
            # A row of a thousand UNIONs is a deep tree too.
            raise SqlError(_TOO_DEEP, suggestion="ask in several statements") from None
        except Undescribed as error:
            place = (error.member, error.table.lower())
            described[place] += 1
            if described[place] > _DESCRIBED_TRIES:
                raise
            await planner.peer_tables.describe(error.member, error.table)
        except SiteError as error:
            # Sites are learned one by one, as the statement needs them. If one that is there has told and still differs
            # from the rest, it may be the rest that has changed.
            if not error.member:
                raise
            reachable = _reachable(planner)
            wanted = {error.member} - asked or (set(reachable) - asked if error.member in reachable else set())
            if not wanted:
                raise
            asked |= wanted
            await planner.peer_tables.refresh(tuple(wanted))
        except SqlError as error:
            # A column may have come with a new file.
            if asked:
                raise planner.peer_tables.explained(error) from None
            asked.update(_reachable(planner))
            await planner.peer_tables.refresh(tuple(asked))


def _left_out(planned: Understood) -> tuple[LeftOut, ...]:
    match planned:
        case Planned(plan) | Explained(plan):
            return plan.left_out
        case Tried(tried) | Assigned(tried):
            return tried.plan.left_out
        case ShowSchemas() | ShowTables() | ShowColumns() | UseSchema() | DescribeTable() | AnalyzeTable():
            return ()
        case DropVariable() | AboutOwn():
            return ()
        case never:
            assert_never(never)


def _plan_all_parts(planner: Knowledge, message: RunStatement) -> Understood:
    """Where files change faster than one can ask, or nobody answers, every part is read as it is."""
    return _plan(planner, message, prunes=False)


@lru_cache(maxsize=100)
def _known_views(views: tuple[View, ...], members: frozenset[str], schema_name: str) -> Views:
    return Views(known_as(views, schema_name), members)


def views_for(config: Config, schema_name: str, rights: Rights) -> Views:
    """As a client calls them that has this default schema. Rules may hide what a view's text names."""
    views = views_of(config)
    if not views:
        return NO_VIEWS
    known = _known_views(views, frozenset(map(str.lower, config.members)), schema_name)
    return known._replace(is_told=rights.is_open)


def _reachable(planner: Planner) -> tuple[str, ...]:
    names = planner.peer_tables.holders()
    return tuple(name for name in names if planner.peer_tables.is_there(name)) or (planner.name,)


def _plan(planner: Knowledge, message: RunStatement, *, prunes: bool = True) -> Understood:
    planner = planner.seen_by(message.rights)
    given = given_values(message)
    views = views_for(planner.config, message.schema_name, message.rights)
    catalog = SchemaCatalog(planner.catalog, message.schema_name, views)
    statement: Statement = analyse(message.sql, given, catalog, planner.limits, given_variables(message), views)
    match statement:
        case Query():
            return _planned(statement, planner, message, prunes)
        case Assign(query, targets, default):
            return Assigned(_planned(query, planner, message, prunes), targets, default)
        case Explain():
            return _explain(planner, statement, message, prunes)
        case AnalyzeTable(ref, columns):
            parts = planner.catalog.parts(ref)
            _check_whole(parts, message.rights)
            if any(part.own for part in parts):
                raise UserError(f"table {ref.name} is one of our own: it is counted as it is written, not analyzed")
            return Planned(analyze_plan(parts, columns, planner.site), {})
        case ShowSchemas() | ShowTables() | ShowColumns() | UseSchema() | DescribeTable() | DropVariable():
            return statement
        case never:
            assert_never(never)


def given_values(message: RunStatement) -> Any:
    """What the statement's markers stand for."""
    return _given(message.parameters)


def given_more(message: RunStatement) -> list[Any]:
    """What else they stand for; UserError if that is of another kind."""
    kind = type(message.parameters)
    if any(type(each) is not kind for each in message.more):
        raise UserError("some parameters are given by name, and some by place")
    return [_given(each) for each in message.more]


def _given(parameters: list[Value] | dict[str, Value]) -> Any:
    if isinstance(parameters, dict):
        return {name: from_value(value) for name, value in parameters.items()}
    return from_values(parameters)


def planned_query(query: Query, planner: Knowledge, message: RunStatement) -> Planned:
    """Of a statement that is more than a query. All parts are read: nobody asks whether files have changed since."""
    return _planned(query, planner, message, False)


def _planned(query: Query, planner: Knowledge, message: RunStatement, prunes: bool) -> Planned:
    query, catalog = placed(query, planner.catalog, planner.name)
    found = plan_query(query, catalog, _site(planner, message), planner.limits, prunes=prunes)
    if found.refused is not None:
        raise found.refused
    values, is_veiled = _values(query, planner, message), _is_veiled(query, planner)
    return Planned(found.plan, values, query.warnings, is_veiled, _as_of(query))


def _as_of(query: Query) -> int:
    """A timestamp of clocks: all commits of its microsecond count."""
    if query.as_of is None:
        return 0
    kind, value = query.as_of
    return value if kind == "version" else (value << COUNTER_BITS) + (1 << COUNTER_BITS) - 1


def given_variables(message: RunStatement | PrepareStatement) -> Mapping[str, Variable]:
    """What the client keeps is what it likes: read as any other value of it."""
    check_variables(message.variables)
    for variable in message.variables.values():
        from_value(variable.value)
    return message.variables


def _explain(planner: Knowledge, statement: Explain, message: RunStatement, prunes: bool) -> Explained | Tried:
    query, catalog = placed(statement.query, planner.catalog, planner.name)
    found = plan_query(query, catalog, _site(planner, message), planner.limits, prunes=prunes)
    if found.refused is not None:
        if statement.analyze:
            raise found.refused
        return Explained(
            found.plan, statement.is_json, found.refused.message, warnings=query.warnings, views=query.views
        )
    if statement.analyze:
        values, is_veiled = _values(statement.query, planner, message), _is_veiled(statement.query, planner)
        planned = Planned(found.plan, values, query.warnings, is_veiled, _as_of(statement.query), query.views)
        return Tried(planned, statement.is_json)
    return Explained(found.plan, statement.is_json, warnings=query.warnings, views=query.views)


def _prepare(planner: Knowledge, message: PrepareStatement) -> tuple[Parameter, ...]:
    catalog = SchemaCatalog(planner.seen_by(message.rights).catalog, message.schema_name)
    statement = analyse(
        message.sql,
        Unbound(),
        catalog,
        planner.limits,
        given_variables(message),
        views_for(planner.config, message.schema_name, message.rights),
    )
    if isinstance(statement, Explain | Assign):
        statement = statement.query
    if not isinstance(statement, Query):
        return ()
    names, types = statement.parameters, {**statement.expected}
    types |= {name: "int" for name, kind in types.items() if kind == BOUND}
    return tuple(Parameter(name if statement.is_named else "", types.get(name, "")) for name in names)


def _is_veiled(query: Query, planner: Knowledge) -> bool:
    refs = [scan.table for scan in query.tables]
    parts = [part for ref in refs for part in planner.catalog.parts(ref)]
    return any(planner.catalog.is_veiled(part.member, part.table) for part in parts)


def _check_whole(parts: Sequence[TablePart], rights: Rights) -> None:
    """What ANALYZE finds is of the whole table, and everybody's plans go by it."""
    for part in parts:
        if not rights.seen(part.member, part.table).is_whole:
            shown = f"{part.member}.{part.table}"
            raise UserError(f"ANALYZE TABLE needs the right to read all of {shown}, without filter or mask")


def _site(planner: Knowledge, message: RunStatement) -> Site:
    return msgspec.structs.replace(planner.site, rules=plan_rules(message.options))


def _values(query: Query, planner: Knowledge, message: RunStatement) -> dict[str, Value]:
    """Markers' values; now(), current_user() and their kin are fixed here, once a query."""
    values = dict(query.parameters)
    if query.fixed:
        schema = planner.catalog.schema(message.schema_name or DEFAULT_SCHEMA) or DEFAULT_SCHEMA
        values |= fixed_values(query.fixed, datetime.datetime.now(datetime.UTC), message.rights.user, schema)
    return {name: to_value(value, name) for name, value in values.items()} | query.variables
