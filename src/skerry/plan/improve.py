"""A plan by the rules: what travels is reduced, and the rest runs where that costs least."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import msgspec
from sqlglot import exp

from skerry.plan.apart import total_s
from skerry.plan.build import Builder
from skerry.plan.capacity import FEW, Barred, mark
from skerry.plan.choice import Choice
from skerry.plan.estimate import Estimate
from skerry.plan.joining import Joiner
from skerry.plan.known import table_text
from skerry.plan.mention import Shipment
from skerry.plan.mentions import Mentions, read_scopes
from skerry.plan.place import JOB_S, Cost, Costs
from skerry.plan.rest import rest_at
from skerry.plan.rules.answers import asked
from skerry.plan.rules.arms import put_arms
from skerry.plan.rules.ctes import without_ctes
from skerry.plan.rules.grouped import Grouped, grouped_body, may_be_grouped, put_grouped
from skerry.plan.rules.prune import KeptParts
from skerry.plan.rules.subtrees import has_outer_join, put_subtree
from skerry.plan.site import Site
from skerry.plan.size import Sizer
from skerry.plan.source import Source
from skerry.plan.unnest import put_in_from
from skerry.sql.statement import Query
from skerry.sql.walk import contains

# So many subqueries of a query are tried in FROM; each costs another plan, and has to save more than a guess.
_SUBQUERIES_MAX = 6
# Likewise subtrees of FROM, and tables that are grouped before they are joined. Sizes of joins are guessed more roughly
# than those of tables, by so much of the cost.
_SUBTREES_MAX = 4
_GROUPED_MAX, _GROUPS_SHARE = 4, 0.8
_ROUGH_SHARE = 0.03
_SAVES_S = 1e-5
_NOTHING = Barred()


def add_improved(builder: Builder, query: Query, kept: KeptParts, site: Site, partials: Sequence[Source] = ()) -> None:
    """Fragments of a query over several sites; `partials` stand in its tree, and are none of its tables."""
    if site.rules.has("blocks"):
        query = without_ctes(query, [name for each in partials for name in each.mentions])
    draft = _best_draft(query, kept, site, partials, builder.result if partials or builder.is_result_seen else None)
    builder.result = draft.result
    tree, left, sources = rest_at(
        builder, draft.tree, draft.mentions, draft.joiner, draft.root, draft.shipments, site.rules
    )
    rest = dataclasses.replace(query, tree=tree, tables=tuple(left.values()))
    builder.add_rest(rest, [*sources, *partials], draft.root, draft.reason)


@dataclasses.dataclass(frozen=True, eq=False)
class _Draft:
    """A tree with what would travel for it, before anything of it is changed."""

    tree: exp.Expr
    mentions: Mentions
    joiner: Joiner
    root: str
    shipments: Mapping[str, Shipment]
    reason: str
    cost: Cost
    result: Estimate
    has_room: bool
    barred: Barred

    def copied(self) -> tuple[exp.Expr, Barred]:
        """The tree, to be written in another form, and what that form begins without: all that was given up, if that
        was much. To find it anew for each form would take as many plans again."""
        if len(self.barred.blocks) < FEW:
            return self.tree.copy(), _NOTHING
        mark([*self.mentions.all.values(), *self.mentions.apart.values()], self.barred)
        return self.tree.copy(), msgspec.structs.replace(self.barred, blocks=frozenset())

    def travels(self, names: Sequence[str]) -> bool:
        """Would the rest cost less, by more than an answer costs, if these mentions did not come to it?"""
        others = {name: each for name, each in self.shipments.items() if not self._is_of(name, names)}
        return total_s(self.shipments) - total_s(others) > JOB_S

    def answer_s(self, name: str) -> float:
        """What it costs to send the answer of the query in FROM that is called so; infinite if it does not travel."""
        for each, shipment in self.shipments.items():
            mention = self.mentions.all[each]
            if mention.alias.name == name and self.root not in mention.members:
                return shipment.cost_s
        return math.inf

    def _is_of(self, name: str, names: Sequence[str]) -> bool:
        block = self.mentions.all[name].block
        return set(block.names if block is not None else (name,)) <= set(names)


def _draft(
    query: Query,
    tree: exp.Expr,
    kept: KeptParts,
    site: Site,
    partials: Sequence[Source],
    result: Estimate | None,
    barred: Barred = _NOTHING,
) -> _Draft:
    """`result`: as large as the answer is, if that is known. `barred`: what is given up from the start.

    Where members are full the search is bounded: what is least missed is given up, bit by bit, and of the drafts that
    all members have room for the cheapest is taken. Without any, the last: rows are where they are.
    """
    found: list[_Draft] = []
    tries_max = FEW if barred.told else math.inf
    while True:
        mentions = Mentions(query, tree, kept, site.rules, site.estimator, barred.blocks)
        barred = msgspec.structs.replace(barred, blocks=mentions.barred)
        choice = Choice(mentions, tree, site, partials, result, barred, query, kept)
        found.append(_Draft(tree, mentions, choice.joiner, *choice.best(), choice.result, choice.has_room, barred))
        fewer = choice.fewer
        is_enough = site.rules.strategy == "bottom-up" and choice.has_room
        if fewer is None or is_enough or len(found) > tries_max:
            break
        barred, tree = fewer, tree.copy()
    roomy = [each for each in found if each.has_room]
    best = roomy[0] if roomy else found[-1]
    for each in roomy[1:]:
        best = each if each.cost.is_less(best.cost) else best
    return best


def _best_draft(
    query: Query, kept: KeptParts, site: Site, partials: Sequence[Source], result: Estimate | None
) -> _Draft:
    """Subqueries are put in FROM one by one, and stay there where their answers travel and that costs less."""
    best = _draft(query, query.tree.copy(), kept, site, partials, result)
    scans = {scan.node_name: scan for scan in query.tables}
    holders = {name: kept.of(scan) for name, scan in scans.items()}
    if site.rules.has("blocks") and contains(query.tree, exp.SetOperation, exp.CTE):
        tree = query.tree.copy()
        if put_arms(tree, holders, best.mentions.free_prefix("arm_")):
            other = _draft(query, tree, kept, site, partials, best.result)
            best = other if _is_better(other, best) else best
    tried: set[tuple[str, ...]] = set()
    prefix = best.mentions.free_prefix("subtree_")
    may_have = site.rules.has("subtrees") and has_outer_join(best.tree)
    for number in range(1, _SUBTREES_MAX + 1) if may_have else ():
        (tree, barred), name = best.copied(), f"{prefix}{number}"
        if not put_subtree(read_scopes(tree, scans), holders, tried, name):
            break
        other = _draft(query, tree, kept, site, partials, best.result, barred)
        best = other if _is_better(other, best, _doubt_s(other, name, site)) else best
    best = _with_groups(best, query, kept, site, partials) if site.rules.has("grouped") else best
    if not site.rules.has("answers") and not site.rules.has("lookups"):
        return best
    return _with_answers(best, query, kept, site, partials)


def _with_groups(best: _Draft, query: Query, kept: KeptParts, site: Site, partials: Sequence[Source]) -> _Draft:
    """Tables of one site as a query that groups them, where that travels and costs less."""
    scans = {scan.node_name: scan for scan in query.tables}
    asked = {name: scan.table for name, scan in scans.items()}, {name: kept.of(scan) for name, scan in scans.items()}
    tried: set[tuple[str, ...]] = set()
    prefix = best.mentions.free_prefix("grouped_")
    found = may_be_grouped(best.mentions.scopes, *asked)
    while len(tried) < _GROUPED_MAX:
        names = next((each.names for each in found if each.names not in tried and _are_fewer(best, each, site)), ())
        if not names:
            break
        tried.add(names)
        (tree, barred), name = best.copied(), f"{prefix}{len(tried)}"
        again = (each for each in may_be_grouped(read_scopes(tree, scans), *asked) if each.names == names)
        grouped = next(again, None)
        if grouped is None:
            continue  # a query in FROM has columns that only its draft knows
        put_grouped(grouped, name)
        other = _draft(query, tree, kept, site, partials, best.result, barred)
        if _is_better(other, best, _doubt_s(other, name, site)):
            best, found = other, may_be_grouped(other.mentions.scopes, *asked)
    return best


def _are_fewer(draft: _Draft, grouped: Grouped, site: Site) -> bool:
    """Are there fewer groups than rows, by so much that a plan is worth to be made?"""
    sizer, body = Sizer(draft.mentions.all, site.estimator), grouped_body(grouped, "")
    groups = sizer.of(body).rows
    body.set("group", None)
    body.set("expressions", [exp.Literal.number(1)])
    return groups < _GROUPS_SHARE * sizer.of(body).rows


def _with_answers(best: _Draft, query: Query, kept: KeptParts, site: Site, partials: Sequence[Source]) -> _Draft:
    """Each subquery by itself, then those together that read the same tables: the rows that they share travel once, so
    that one answer alone may spare them no way."""
    scans = {scan.node_name: scan for scan in query.tables}
    holders = {name: kept.of(scan) for name, scan in scans.items()}
    tried: set[tuple[str, ...]] = set()
    left: dict[frozenset[str], list[tuple[str, ...]]] = {}

    def put(tree: exp.Expr, seen: set[tuple[str, ...]], name: str) -> tuple[str, ...]:
        return put_in_from(read_scopes(tree, scans), holders, site.rules, seen, name, best.travels)

    def better(tree: exp.Expr, names: Sequence[str], barred: Barred) -> _Draft:
        other = _draft(query, tree, kept, site, partials, best.result, barred)
        are_sent = all(other.answer_s(name) < math.inf for name in names)
        return other if are_sent and _is_better(other, best) else best

    prefix = best.mentions.free_prefix("answer_")
    for number in range(1, _SUBQUERIES_MAX + 1):
        if all(each.names in tried for each in asked(best.mentions.scopes)):
            break
        (tree, barred), name = best.copied(), f"{prefix}{number}"
        found = put(tree, tried, name)
        if not found:
            break
        before, best = best, better(tree, [name], barred)
        if best is before:
            left.setdefault(frozenset(table_text(part) for each in found for part in holders[each]), []).append(found)
    for alike in (each for each in left.values() if len(each) > 1):
        (tree, barred), prefix, others = best.copied(), best.mentions.free_prefix("answer_"), tried.difference(alike)
        names = [f"{prefix}{number}" for number in range(1, len(alike) + 1)]
        if all(put(tree, others, name) for name in names):
            best = better(tree, names, barred)
    return best


def _doubt_s(draft: _Draft, name: str, site: Site) -> float:
    """What a subtree has to save beyond what it is estimated to save; infinite if it does not travel.

    One edge instead of several counts for nothing: it is bytes that have to be fewer.
    """
    edges_s = 0.0
    for mention in (draft.mentions.all[each] for each in draft.shipments):
        if mention.alias.name == name and mention.block is not None:
            edge_s = Costs(site.topology).ship_s(mention.block.member, draft.root, 0.0)
            edges_s = edge_s * len(mention.block.body.args.get("joins") or ())
    return _ROUGH_SHARE * draft.answer_s(name) + edges_s


def _is_better(other: _Draft, best: _Draft, doubt_s: float = 0.0) -> bool:
    doubted = Cost(other.cost.cost_s + doubt_s + _SAVES_S, other.cost.sent_bytes)
    return (other.has_room or not best.has_room) and doubted.is_less(best.cost)
