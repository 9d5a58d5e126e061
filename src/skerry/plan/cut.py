"""Cut a bound query into fragments (the baseline): scans at the sites that hold the tables, the rest in one Spark.

Five shapes, tried in this order:
1. everything at one site: the query runs there whole;
2. one table with parts at several sites and nothing but projection, filter, order and limit: each site
   runs the query on its part, the initiator gathers or merges; so for any query over tables of our own whose answer
   is made of what each member has (rule `colocated`);
3. such a table grouped: each site groups its part, the initiator merges the groups (rule `aggregates`);
4. such a table joined with others, which go to each part: as 2, where that costs less (rule `topn`);
5. otherwise the rest runs at the site where the fewest bytes arrive (strategy `bottom-up`: where the rows meet).
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Sequence

import msgspec
import xxhash
from sqlglot import exp

from skerry.catalog.topology import Topology
from skerry.model.fragment import Plan, SortKey
from skerry.model.limits import Limits
from skerry.model.table import Column, TablePart
from skerry.plan.build import Builder
from skerry.plan.elastic import Elastic, elastic
from skerry.plan.estimate import Estimate, Estimator
from skerry.plan.improve import add_improved
from skerry.plan.known import groups_key, result_key
from skerry.plan.mentions import result_size
from skerry.plan.ordered import with_orders_kept
from skerry.plan.partial_plan import AtSite, InMember, at_sites, in_member
from skerry.plan.partials import called
from skerry.plan.place import Rooms, bottom_up_places, bottom_up_reason, fewest_arriving, with_ways
from skerry.plan.rules.colocated import Alike, PartsBeside
from skerry.plan.rules.prune import KeptParts, Parts
from skerry.plan.rules.topn import LIMIT_MAX
from skerry.plan.sail_gaps import for_sail
from skerry.plan.site import Site
from skerry.plan.sortable import keys_are_mergeable
from skerry.plan.source import Source
from skerry.plan.topn_plan import PartsJoined, at_parts, bounded_at_sites, cheaper
from skerry.sql.functions import has_aggregate
from skerry.sql.nodes import Nearest
from skerry.sql.shape import Shape, result_shape, without_limit
from skerry.sql.statement import Query, Scan, render
from skerry.sql.walk import find_all
from skerry.sql.width import only_copies


def make_plan(query: Query, catalog: Parts, site: Site, limits: Limits) -> Plan:
    """The plan of a query that the gate admitted and bind has bound."""
    query = _with_one_group(_without_brackets(query))
    is_split = len({part.member for scan in query.tables for part in catalog.parts(scan.table)}) > 1
    if is_split:
        query = with_orders_kept(query)
    if site.has_sail:
        query = for_sail(query, is_split)
    is_recursive = any(with_.args.get("recursive") for with_ in find_all(query.tree, exp.With))
    if is_recursive or find_all(query.tree, Nearest):
        # What reads itself is read again and again, each time with other rows; NEAREST chooses among all rows.
        # No rule has proven itself over either.
        site = msgspec.structs.replace(site, rules=msgspec.structs.replace(site.rules, on=frozenset()))
    plan, doubt = _plan(query, catalog, site, limits)
    if doubt:
        # What the parts are joined with goes to each of them: rows that travel reduced may be fewer. So may those of
        # tables whose join has more.
        fewer = msgspec.structs.replace(site.rules, on=site.rules.on - {doubt})
        other, _ = _plan(query, catalog, msgspec.structs.replace(site, rules=fewer), limits)
        plan = cheaper(plan, other, site)
    _check_ways(plan, site.topology)
    return plan


def _with_one_group(query: Query) -> Query:
    """HAVING makes one group of all rows, also where no aggregate stands beside it: then one is written there."""
    if not any(map(_lacks_group, find_all(query.tree, exp.Having))):
        return query
    tree = query.tree.copy()
    for having in filter(_lacks_group, find_all(tree, exp.Having)):
        is_one = exp.GTE(this=called("count", exp.Literal.number(1)), expression=exp.Literal.number(0))
        having.set("this", exp.and_(is_one, having.this))
    return dataclasses.replace(query, tree=tree)


def _lacks_group(having: exp.Having) -> bool:
    select = having.parent
    if not isinstance(select, exp.Select) or select.args.get("group") is not None:
        return False
    order = select.args.get("order")
    return not any(map(has_aggregate, (*select.expressions, having.this, *(order.expressions if order else ()))))


def _plan(query: Query, catalog: Parts, site: Site, limits: Limits) -> tuple[Plan, str]:
    """And the rule in it without which a plan may cost less, if there is one."""
    is_whole, doubt = site.rules.baseline == "tables", ""
    kept = KeptParts(catalog, site.rules.has("prune") and not is_whole, site.initiator)
    estimator = site.estimator
    sources = _whole_tables(query.tables, kept, estimator) if is_whole else _sources(query.tables, kept, estimator)
    holders = {part.member for source in sources for part in source.parts}
    shape = result_shape(query)
    mergeable = keys_are_mergeable(query, shape)
    text = render(query.tree)
    builder = Builder(_nonce(text), site, limits, shape, mergeable, _rows_are_narrow(query, sources, limits))
    _see_result(builder, result_key(text, _parts_of(sources)), site)
    alike = Alike(query, kept.beside if site.rules.has("colocated") and not is_whole else None)
    if is_whole or (site.rules.root == "initiator" and not site.rules.on):
        _size_result(builder, query, kept, estimator)
        builder.add_rest(query, sources, _home(holders, site))
    elif len(holders) <= 1:
        _size_result(builder, query, kept, estimator)
        builder.add_rest(query, sources, next(iter(holders), "") or _home(holders, site))
    elif _runs_at_every_part(sources, shape, mergeable):
        _size_result(builder, query, kept, estimator)
        builder.add_parts(query, sources[0])
    elif (beside := _at_members(query, alike, shape, mergeable)) is not None:
        doubt = _add_at_members(builder, beside, query, kept, estimator, alike)
    elif (grown := _elastic(query, sources, shape, mergeable, site, limits, alike)) is not None:
        _size_result(builder, query, kept, estimator)
        builder.add_elastic(grown, _partial_source(grown.at, query, kept, estimator, alike), "it was asked for")
    elif (merged := _in_member(query, sources, shape, site, limits, alike)) is not None:
        builder.add_merged(merged, *_cut_and_joined(merged, query, kept, estimator, alike))
    elif (each := _at_parts(query, sources, shape, mergeable, site, alike)) is not None:
        doubt = "topn"
        _add_joined_parts(builder, each, query, kept, estimator, alike)
    elif site.rules.on:
        doubt = "topn" if _add_improved(builder, query, sources, shape, kept, site, alike) else ""
    else:
        _size_result(builder, query, kept, estimator)
        builder.add_rest(query, sources, *_rest_member(sources, site))
    return builder.plan(sources, tuple(query.parameters), kept.left_out, alike.parts()), doubt


def _add_improved(
    builder: Builder,
    query: Query,
    sources: Sequence[Source],
    shape: Shape,
    kept: KeptParts,
    site: Site,
    alike: Alike,
) -> bool:
    """A plan by the rules; answers whether rule `topn` is in it."""
    whole, estimator = query, site.estimator
    rooms = Rooms(site.topology)
    found: list[AtSite] = []
    bounded: list[AtSite] = []
    if site.rules.has("aggregates"):
        always, is_bounded = site.rules.aggregates_always, site.rules.has("topn")
        query, found = at_sites(query, _parts_of(sources), shape, site, always, rooms, is_bounded, alike.beside)
    if site.rules.has("topn"):
        query, bounded = bounded_at_sites(query, _parts_of(sources), site, rooms, alike.beside)
    if not any(each.beside for each in (*found, *bounded)):
        builder.note = alike.note
    partials = [_partial_source(each, whole, kept, estimator, alike) for each in (*found, *bounded)]
    # Nobody knows the values of partial rows: the result is that of the query as it was written.
    if partials:
        _size_result(builder, whole, kept, estimator)
    add_improved(builder, query, kept, site, partials)
    return bool(bounded)


def _at_parts(
    query: Query, sources: Sequence[Source], shape: Shape, mergeable: bool, site: Site, alike: Alike
) -> PartsJoined | None:
    if not site.rules.has("topn"):
        return None
    return at_parts(query, _parts_of(sources), shape, mergeable, alike.beside)


def _add_joined_parts(
    builder: Builder, each: PartsJoined, query: Query, kept: KeptParts, estimator: Estimator, alike: Alike
) -> None:
    cut, joined = _cut_and_joined(each, query, kept, estimator, alike)
    # A part's share of the result is its share of the rows.
    builder.result = result_size(dataclasses.replace(query, tree=without_limit(query.tree)), kept, estimator)
    held = sum(size.rows for size in cut.sizes.values())
    rows = {member: builder.result.rows * size.rows / max(1.0, held) for member, size in cut.sizes.items()}
    builder.add_parts(query, cut, joined, rows)


def _at_members(query: Query, alike: Alike, shape: Shape, mergeable: bool) -> PartsBeside | None:
    """The same as for one table: bounds that the initiator can apply again, and an order that it can merge by."""
    is_bounded = shape.limit is not None or bool(shape.offset)
    if not shape.bounds_known or (shape.limit or 0) + shape.offset > LIMIT_MAX:
        return None
    if not isinstance(query.tree, exp.Select) and (shape.has_order or is_bounded):
        return None
    if shape.has_order and not mergeable:
        alike.why_not = "the initiator cannot merge by the order"
        return None
    return alike.whole()


def _add_at_members(
    builder: Builder, each: PartsBeside, query: Query, kept: KeptParts, estimator: Estimator, alike: Alike
) -> str:
    """Answers the rule where the answer was seen to have more bytes than the tables: then it may not be the best.

    By estimates alone nobody knows: of tables that are written to no values are known.
    """
    cut, joined = _cut_and_joined(each, query, kept, estimator, alike)
    parts = [part for part in cut.parts if part.member in each.members]
    text = render(query.tree)
    known: dict[str, str] = {}
    for part in parts:
        there = {other.mentions[0]: [at for at in other.parts if at.member == part.member] for other in joined}
        known[part.member] = groups_key(part, text, there)
    seen = {member: estimator.observed.size(key) if estimator.observed else None for member, key in known.items()}
    sizes = [size for size in seen.values() if size is not None]
    read = sum(size.size_bytes for source in (cut, *joined) for size in source.sizes.values())
    builder.result = result_size(dataclasses.replace(query, tree=without_limit(query.tree)), kept, estimator)
    held = sum(cut.sizes[part.member].rows + 1 for part in parts)
    rows = {part.member: builder.result.rows * (cut.sizes[part.member].rows + 1) / held for part in parts}
    rows |= {member: float(size.rows) for member, size in seen.items() if size is not None}
    builder.add_parts(query, msgspec.structs.replace(cut, parts=tuple(parts)), joined, rows, known)
    is_more = len(sizes) == len(parts) and sum(size.size_bytes for size in sizes) > read
    return "colocated" if joined and is_more else ""


def _cut_and_joined(
    each: InMember | PartsJoined | PartsBeside, query: Query, kept: KeptParts, estimator: Estimator, alike: Alike
) -> tuple[Source, list[Source]]:
    """The source whose parts are read apart, and those that all of them are joined with."""
    scans = {scan.node_name: scan for scan in query.tables}
    cut, *joined = (_sources([scans[name]], kept, estimator)[0] for name in (each.scan, *each.others))
    joined = [_beside(source, alike) if source.mentions[0] in each.beside else source for source in joined]
    reason = alike.reason(each.scan, each.beside) if each.beside or isinstance(each, PartsBeside) else ""
    return msgspec.structs.replace(cut, reason=reason), joined


def _beside(source: Source, alike: Alike) -> Source:
    """With all its parts: each is read by its own member alone."""
    return msgspec.structs.replace(source, parts=alike.parts(source.mentions[0]), is_beside=True)


def _without_brackets(query: Query) -> Query:
    """`(SELECT … ORDER BY …)` is what stands in the brackets, its order too."""
    tree = query.tree
    while isinstance(tree, exp.Subquery) and not any(value for key, value in tree.args.items() if key != "this"):
        tree = tree.this
    return dataclasses.replace(query, tree=tree.copy()) if tree is not query.tree else query


def _nonce(text: str) -> str:
    """What no text of this query holds: placeholders made of it are replaced without mistake."""
    nonce = xxhash.xxh3_64_hexdigest(text.encode())
    while nonce in text:
        nonce = xxhash.xxh3_64_hexdigest(nonce.encode())
    return nonce


def _see_result(builder: Builder, key: str, site: Site) -> None:
    """The result is as large as it was when the same was asked."""
    builder.result_key = key
    seen = site.observed.size(key) if site.observed is not None else None
    if seen is not None:
        rows = float(seen.rows)
        builder.result, builder.is_result_seen = Estimate(rows, {}, rows, seen.size_bytes / max(1.0, rows)), True


def _size_result(builder: Builder, query: Query, kept: KeptParts, estimator: Estimator) -> None:
    if not builder.is_result_seen:
        builder.result = result_size(query, kept, estimator)


def _runs_at_every_part(sources: Sequence[Source], shape: Shape, mergeable: bool) -> bool:
    """One table and nothing but projection, filter, order and bounds that the initiator can apply again."""
    if len(sources) != 1 or not shape.is_plain_scan or not shape.bounds_known:
        return False
    # Sites may spell a column differently; a star would then be named after whoever answers first.
    (source,) = sources
    spelt = [column.name for column in source.table.columns]
    if any([column.name for column in part.columns] != spelt for part in source.parts):
        return False
    # Beyond the maximum Spark has an error for it.
    fits = (shape.limit or 0) + shape.offset <= LIMIT_MAX
    return fits and (mergeable or not shape.has_order)


def _sources(scans: Sequence[Scan], kept: KeptParts, estimator: Estimator) -> list[Source]:
    """Scans of one table with equal filters are one source, with the columns that any of them needs."""
    grouped: dict[tuple[str, str | None, str], list[Scan]] = {}
    counts = Counter((scan.table.name, scan.table.member) for scan in scans)
    for scan in scans:
        is_alone = counts[scan.table.name, scan.table.member] == 1
        wanted = "" if is_alone else " AND ".join(render(condition) for condition in scan.filters)
        grouped.setdefault((scan.table.name, scan.table.member, wanted), []).append(scan)
    sources = []
    for same in grouped.values():
        table = same[0].table
        needed = {name for scan in same for name in scan.columns}
        columns = tuple(column for column in table.columns if column.name in needed)
        mentions = tuple(scan.node_name for scan in same)
        parts, filters = kept.of(same[0]), tuple(same[0].filters)
        sources.append(
            Source(mentions, table, columns, filters, parts, sizes=_sizes(parts, filters, columns, estimator))
        )
    return sources


def _sizes(
    parts: Sequence[TablePart], filters: Sequence[exp.Expr], columns: Sequence[Column], estimator: Estimator
) -> dict[str, Estimate]:
    """The columns of the rows that pass the filters, by member."""
    names = [column.name for column in columns]
    return {part.member: estimator.scan([part], filters, names) for part in parts}


def _parts_of(sources: Sequence[Source]) -> dict[str, tuple[TablePart, ...]]:
    return {mention: source.parts for source in sources for mention in source.mentions}


def _in_member(
    query: Query, sources: Sequence[Source], shape: Shape, site: Site, limits: Limits, alike: Alike
) -> InMember | None:
    if not site.rules.has("aggregates") or (shape.limit or 0) + shape.offset > LIMIT_MAX:
        return None
    return in_member(query, _parts_of(sources), shape, limits, site, site.rules.aggregates_always, alike.beside)


def _elastic(
    query: Query,
    sources: Sequence[Source],
    shape: Shape,
    mergeable: bool,
    site: Site,
    limits: Limits,
    alike: Alike,
) -> Elastic | None:
    if site.rules.group_by != "elastic" or not site.rules.has("aggregates"):
        return None
    return elastic(query, _parts_of(sources), shape, mergeable, site, limits, alike.beside)


def _partial_source(each: AtSite, query: Query, kept: KeptParts, estimator: Estimator, alike: Alike) -> Source:
    merge = each.merge
    at = PartsJoined(merge.scan, merge.others, each.beside)
    cut, joined = _cut_and_joined(at, query, kept, estimator, alike)
    return Source(
        cut.mentions,
        cut.table,
        merge.columns,
        (),
        cut.parts,
        merge.partial,
        each.rows,
        tuple(joined),
        partial_row_bytes=each.row_bytes,
        reason=cut.reason,
    )


def _whole_tables(scans: Sequence[Scan], kept: KeptParts, estimator: Estimator) -> list[Source]:
    """Every table as it is, all columns and rows: what a query costs without any push-down."""
    tables = {(scan.table.name, scan.table.member): scan.table for scan in scans}
    mentions = {
        key: tuple(scan.node_name for scan in scans if (scan.table.name, scan.table.member) == key) for key in tables
    }
    found = []
    for key, table in tables.items():
        parts = kept.parts(table)
        sizes = _sizes(parts, (), table.columns, estimator)
        found.append(Source(mentions[key], table, table.columns, (), parts, sizes=sizes))
    return found


def _rows_are_narrow(query: Query, sources: Sequence[Source], limits: Limits) -> bool:
    """Is no row of the result long, going by the averages of the tables it is copied from?"""
    width = sum(len(source.mentions) * source.widest_row() for source in sources)
    return width <= limits.narrow_row_bytes and only_copies(query.tree)


def _home(holders: Collection[str], site: Site) -> str:
    """The initiator, or, when it has no Spark, the first member that rows can get to and from."""
    if site.initiator in site.data_members:
        return site.initiator
    return next(iter(with_ways(site.topology, sorted(holders), site.initiator, site.data_members)), site.at_home)


def _rest_member(sources: Sequence[Source], site: Site) -> tuple[str, str]:
    """The member, and why it is that one if its strategy has to say."""
    held: dict[str, int] = {}
    for source in sources:
        for part in source.parts:
            held[part.member] = held.get(part.member, 0) + source.estimated_bytes(part)
    network = site.topology, tuple(held), site.initiator, site.data_members
    if site.rules.strategy == "bottom-up":
        member = bottom_up_places(*network)[0]
        return member, bottom_up_reason(member, *network)
    return fewest_arriving(held, with_ways(*network) or site.data_members), ""


def _check_ways(plan: Plan, topology: Topology | None) -> None:
    """ConfigError, naming both members, when rows would have to go where no link leads."""
    if topology is None:
        return
    for fragment in plan.fragments:
        for receiver in fragment.output.receivers:
            if receiver != fragment.member:
                topology.route(fragment.member, receiver)


__all__ = ["Parts", "Site", "SortKey", "make_plan"]
