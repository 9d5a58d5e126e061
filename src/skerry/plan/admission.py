"""Whether a member runs what another one planned: its own gate, tables and rules decide. Pure.

An initiator is believed in nothing that could harm this site. One that was taken over gets here what a client of this
member would get, and no more (docs/protocol.md, 3; ADR 21).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import assert_never

import msgspec
from sqlglot import exp

from skerry.model.config import Config, Leaves
from skerry.model.errors import PeerError, SqlError, StaleSchema, quoting
from skerry.model.fragment import (
    MERGED_FROM,
    Count,
    EdgeLeaf,
    Facts,
    Finish,
    Fragment,
    GroupHere,
    MergeStep,
    OperatorFragment,
    Output,
    Plan,
    Rows,
    SortKey,
    SparkFragment,
    TableLeaf,
    VirtualLeaf,
    Written,
)
from skerry.model.limits import FRAGMENT_DEPTH, PLAN_FRAGMENTS, ROWS_MAX, Limits
from skerry.model.table import Column, TablePart
from skerry.plan.analyze import is_analysis
from skerry.plan.bound import is_bounded, reads_tables_only
from skerry.plan.cache import check_fingerprint
from skerry.plan.egress import check_marks, marks_of
from skerry.plan.estimate import held_row_bytes, most_row_bytes
from skerry.plan.maker import operator_depth
from skerry.plan.treatment import treatment
from skerry.sql.fragment import read_fragment
from skerry.sql.functions import is_deterministic
from skerry.sql.width import only_copies

_ORDERS = ("any", "lanes", "merge", "groups")


class Home(msgspec.Struct, frozen=True):
    """What a member knows by itself. `marks`: of its own tables that are not free, as in `EgressRules`."""

    member: str
    members: frozenset[str]
    marks: Mapping[tuple[str, str], Leaves]
    limits: Limits


# A member's own tables as they are now, by name in lower case.
OwnParts = Mapping[str, TablePart]


def home_of(member: str, config: Config) -> Home:
    return Home(member, frozenset(config.members), marks_of([config.member(member)]), config.limits)


def own_tables(plan: Plan, member: str) -> tuple[str, ...]:
    """The tables that the plan reads at a member, in lower case."""
    leaves = (leaf for fragment in plan.fragments if fragment.member == member for leaf in fragment.leaves)
    return tuple(sorted({leaf.table.lower() for leaf in leaves if isinstance(leaf, TableLeaf)}))


def admit(plan: Plan, initiator: str, home: Home, parts: OwnParts) -> Plan:
    """The plan as it is run here: texts as this member writes them, and what it found out about them itself.

    parts: at least those of `own_tables`.

    PeerError for a plan that no honest planner makes; UserError for one that breaks this member's own rules;
    StaleSchema if a table has other columns by now.
    """
    try:
        check_fingerprint(plan)
        _check_names(plan, initiator, home)
        _check_size(plan, home)
        fragments = tuple(_admitted(fragment, plan, home, parts) for fragment in plan.fragments)
        admitted = msgspec.structs.replace(plan, fragments=fragments)
        check_marks(admitted, home.marks)
    except SqlError as error:
        raise quoting(PeerError(f"the plan of member {initiator} is not admitted here: {error.message}")) from None
    except PeerError as error:
        raise PeerError(f"the plan of member {initiator} is not admitted here: {error.message}") from None
    except RecursionError:
        raise PeerError(f"the plan of member {initiator} is not admitted here: it is nested too deeply") from None
    return admitted


# --- the plan as a whole ---------------------------------------------------------------------------
def _check_names(plan: Plan, initiator: str, home: Home) -> None:
    """Members, edges and numbers fit together."""
    if len(plan.fragments) > PLAN_FRAGMENTS:
        raise PeerError(f"it has {len(plan.fragments)} fragments, and at most {PLAN_FRAGMENTS} are admitted")
    by_id = {fragment.id: fragment for fragment in plan.fragments}
    if len(by_id) != len(plan.fragments):
        raise PeerError("two of its fragments have the same number")
    _check_members((initiator,), home)
    for fragment in plan.fragments:
        _check_members((fragment.member, *fragment.output.receivers), home)
        _check_receivers(fragment)
    feeding = plan.feeding()
    match plan.ends_in:
        case Rows(edge, whose):
            _check_members(whose, home)
            if any(to != initiator for number, to in feeding if number == edge):
                raise PeerError("its result goes to another member than its initiator")
        case Count(counted) | Written(_, counted):
            if not by_id.keys() >= {*counted}:
                raise PeerError("it counts a fragment that it does not have")
        case never:
            assert_never(never)
    for fragment in plan.fragments:
        for leaf in fragment.leaves if fragment.member == home.member else ():
            if not isinstance(leaf, EdgeLeaf):
                continue
            if {each.member for each in feeding.get((leaf.edge, home.member), ())} != {*leaf.senders}:
                raise PeerError(f"fragment {fragment.id} reads edge {leaf.edge}, whose senders are others")
    _check_order(plan)


def _check_members(names: Iterable[str], home: Home) -> None:
    for name in names:
        if name not in home.members:
            raise PeerError(f"it names {name[:100]!r}, which is no member")


def _check_receivers(fragment: Fragment) -> None:
    """A receiver gets a sender's rows over one channel."""
    receivers = fragment.output.receivers
    if not receivers or len({*receivers}) != len(receivers):
        raise PeerError(f"fragment {fragment.id} sends to nobody, or to one member twice")


def _check_order(plan: Plan) -> None:
    feeding = plan.feeding()
    order = TopologicalSorter[int]()
    for fragment in plan.fragments:
        edges = (leaf.edge for leaf in fragment.leaves if isinstance(leaf, EdgeLeaf))
        order.add(fragment.id, *(each.id for edge in edges for each in feeding.get((edge, fragment.member), ())))
    try:
        order.prepare()
    except CycleError:
        raise PeerError("its fragments wait for each other") from None


def _check_size(plan: Plan, home: Home) -> None:
    size = sum(len(fragment.sql) for fragment in plan.jobs if fragment.member == home.member)
    if size > home.limits.plan_sql_bytes:
        most = home.limits.plan_sql_bytes
        raise PeerError(f"its SQL has {size} characters, and at most {most} are admitted (limits.plan_sql_bytes)")


# --- one fragment ----------------------------------------------------------------------------------
def _admitted(fragment: Fragment, plan: Plan, home: Home, parts: OwnParts) -> Fragment:
    if fragment.member != home.member:
        return fragment
    _check_output(fragment.output, fragment.id)
    match fragment:
        case SparkFragment():
            return _job(fragment, plan, home, parts)
        case OperatorFragment():
            _check_operator(fragment, plan, home)
            return fragment
        case never:
            assert_never(never)


def _check_output(output: Output, number: int) -> None:
    if output.order not in _ORDERS:
        raise PeerError(f"fragment {number} has an unknown order {output.order[:100]!r}")
    _check_keys(output.keys, number)
    if not 0 <= output.rows_max <= ROWS_MAX:
        raise PeerError(f"fragment {number} bounds its rows to {output.rows_max}")


def _check_keys(keys: Iterable[SortKey], number: int, width: int | None = None) -> None:
    if any(key.index < 0 or (width is not None and key.index >= width) for key in keys):
        raise PeerError(f"fragment {number} is ordered by a column that it does not have")


def check_keys(fragment: Fragment, columns: int) -> None:
    """PeerError for a fragment that is ordered by a column which it turns out not to have."""
    _check_keys(fragment.output.keys, fragment.id, columns)


def _check_operator(fragment: OperatorFragment, plan: Plan, home: Home) -> None:
    """Its edges are alike; its numbers are those of their columns."""
    columns = {leaf.columns for leaf in fragment.leaves}
    edges = [leaf.edge for leaf in fragment.leaves]
    if len(columns) != 1 or len({*edges}) != len(edges):
        raise PeerError(f"fragment {fragment.id} reads edges that are not alike")
    match fragment.operator:
        case Finish() as finish:
            _check_finish(finish, len(columns.pop()), fragment.id)
        case GroupHere() as shape:
            _check_groups(fragment, shape, len(columns.pop()), plan, home)
        case never:
            assert_never(never)


def _check_groups(fragment: OperatorFragment, shape: GroupHere, width: int, plan: Plan, home: Home) -> None:
    """All that fold its groups are told the same, and all that send for them reach each of these."""
    where = f"fragment {fragment.id}"
    (edge,) = (leaf.edge for leaf in fragment.leaves)
    _check_members(shape.members, home)
    if fragment.member not in shape.members or len({*shape.members}) != len(shape.members):
        raise PeerError(f"{where} folds groups of members that it is not among, or among twice")
    if len(shape.members) > home.limits.group_by_members:
        raise PeerError(f"{where}: {len(shape.members)} members fold its groups (limits.group_by_members)")
    used = [each.output.edge for each in plan.fragments if each.output.edge != fragment.output.edge]
    if shape.forwards == shape.shares or {shape.forwards, shape.shares} & {*used, fragment.output.edge}:
        raise PeerError(f"{where} forwards rows over an edge that has other rows")
    if fragment.output != Output(fragment.output.edge, (fragment.member,)):
        raise PeerError(f"{where} gives its groups to another member")
    for sender in plan.feeding().get((edge, fragment.member), ()):
        if sender.output != Output(
            edge, shape.members, "groups", through_driver=sender.output.through_driver, rows_max=sender.output.rows_max
        ):
            raise PeerError(f"{where} folds rows of fragment {sender.id}, which goes by other members")
    operators = (each for each in plan.fragments if isinstance(each, OperatorFragment))
    if any(each.operator != shape for each in operators if any(leaf.edge == edge for leaf in each.leaves)):
        raise PeerError(f"{where} folds the groups of edge {edge} in another way than others do")
    made = {*shape.keys, *(place for step in shape.steps for place in (step.index, *step.inputs))}
    if not shape.keys or made != {*range(width - 1)}:
        raise PeerError(f"{where}: each column but the last is a key, or is merged")
    _check_steps(shape.steps, width - 1, fragment.id)


def _check_finish(finish: Finish, width: int, number: int) -> None:
    _check_keys(finish.keys, number, width)
    if not all(0 <= bound <= ROWS_MAX for bound in (finish.offset, finish.limit or 0)):
        raise PeerError(f"fragment {number} skips {finish.offset} rows and gives {finish.limit}")
    _check_steps(finish.aggregate, width, number)


def _check_steps(steps: Iterable[MergeStep], width: int, number: int) -> None:
    for step in steps:
        inputs = step.inputs or (step.index,)
        if MERGED_FROM.get(step.kind) != len(inputs) or not all(0 <= index < width for index in (step.index, *inputs)):
            raise PeerError(f"fragment {number} merges a column in a way that is not known ({step.kind[:100]!r})")


def _job(fragment: SparkFragment, plan: Plan, home: Home, parts: OwnParts) -> SparkFragment:
    """The fragment with the text that Spark gets, and what only this member may say of it."""
    columns = _columns(fragment, plan, home.member, parts)
    if len(columns) != len(fragment.leaves):
        raise PeerError(f"two leaves of fragment {fragment.id} have the same name")
    tree, written = read_fragment(fragment.sql, columns, FRAGMENT_DEPTH)
    if fragment.analyzes:
        _check_analysis(fragment, tree, parts)
    done = treatment(tree, fragment.leaves, columns) if home.marks else ()
    return msgspec.structs.replace(
        fragment,
        sql=written,
        output=_bounded(fragment, tree, home.limits),
        is_narrow=fragment.is_narrow and _is_narrow(fragment, tree, home.limits, parts),
        operator_depth=operator_depth(tree),
        facts=Facts(done=done) if done else None,
        is_repeatable=is_deterministic(tree),
    )


def _bounded(fragment: SparkFragment, tree: exp.Expr, limits: Limits) -> Output:
    """Rows return through Spark's driver, and are held there, only where their number is surely small."""
    output = fragment.output
    if output.rows_max:  # the participant compares it with the rows of the tables
        tables = {leaf.placeholder: leaf for leaf in fragment.leaves if isinstance(leaf, TableLeaf)}
        fits = output.rows_max <= limits.driver_rows and reads_tables_only(tree, tables)
    else:
        fits = is_bounded(tree, limits.driver_rows)
    return output if fits or not output.through_driver else msgspec.structs.replace(output, through_driver=False)


def _is_narrow(fragment: SparkFragment, tree: exp.Expr, limits: Limits, parts: OwnParts) -> bool:
    """Nobody watches the bytes of a batch then: rows of own tables are as short as this member has seen them, and those
    of edges have no value of any length."""
    width = sum(
        held_row_bytes(parts[leaf.table.lower()]) if isinstance(leaf, TableLeaf) else most_row_bytes(leaf.columns)
        for leaf in fragment.leaves
    )
    return width <= limits.narrow_row_bytes and only_copies(tree)


def _check_analysis(fragment: SparkFragment, tree: exp.Expr, parts: OwnParts) -> None:
    """What it finds is kept as statistics of the table, which plans believe: it reads that table, and nothing else."""
    table = fragment.analyzes.lower()
    match fragment.leaves:
        case (TableLeaf(_, read),) if read.lower() == table:
            if is_analysis(tree, parts[table]):
                return
    raise PeerError(f"fragment {fragment.id} does not do what ANALYZE TABLE does")


def _columns(fragment: SparkFragment, plan: Plan, member: str, parts: OwnParts) -> dict[str, tuple[Column, ...]]:
    """Of the leaves, by placeholder: those of own tables as they are, those of edges as they will be."""
    found: dict[str, tuple[Column, ...]] = {}
    for leaf in fragment.leaves:
        match leaf:
            case EdgeLeaf(placeholder, edge, columns, senders):
                if member in senders and not _gives_groups(plan, edge, member):
                    # An operator could: its Spark has the tables themselves.
                    raise PeerError(f"fragment {fragment.id} is a job that reads edge {edge} of its own member")
                found[placeholder] = columns
            case TableLeaf(placeholder, table):
                part = parts[table.lower()]
                if plan.schema_info.get(f"{member}.{part.table}") != part.schema_version:
                    raise stale(member, table)
                found[placeholder] = part.columns
            case VirtualLeaf(placeholder, columns):
                found[placeholder] = columns
            case never:
                assert_never(never)
    return found


def _gives_groups(plan: Plan, edge: int, member: str) -> bool:
    """Whether all that comes there on the edge are groups that the member itself folded."""
    feeding = plan.feeding().get((edge, member), [])
    return all(isinstance(each, OperatorFragment) and isinstance(each.operator, GroupHere) for each in feeding)


def stale(member: str, table: str) -> StaleSchema:
    return StaleSchema(f"site {member}: the columns of {table} have changed since the query was planned")
