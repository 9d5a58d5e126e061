"""A plan of a query that breaks no egress rule, if there is one: other plans are tried where the cheapest does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import msgspec

from skerry.model.config import Leaves
from skerry.model.errors import ConfigError, UserError
from skerry.model.fragment import Plan
from skerry.model.limits import Limits
from skerry.plan.cut import make_plan
from skerry.plan.egress import EgressRules, check_egress
from skerry.plan.rules import GivenUp, Rules
from skerry.plan.rules.prune import Parts
from skerry.plan.site import Site
from skerry.plan.tested import with_groups_tested
from skerry.sql.statement import Query


class Catalog(Parts, Protocol):
    """What planning asks of a catalog, and which files a part has."""

    def files_version(self, member: str, table: str) -> int | None: ...


class Checked(msgspec.Struct, frozen=True):
    """`refused`: the egress rule that the plan breaks, as every other plan does that was tried."""

    plan: Plan
    refused: UserError | None = None


def plan_query(query: Query, catalog: Catalog, site: Site, limits: Limits, *, prunes: bool = True) -> Checked:
    """By the rules of `site`, those of egress included. `prunes`: parts may be left out by their statistics."""
    rules = site.rules if prunes else msgspec.structs.replace(site.rules, on=site.rules.on - {"prune"})
    if _reads_marked(query, catalog, site.egress):
        rules = rules.without(GivenUp.AT_ONCE)
    plan = _plan(query, catalog, site, rules, limits)
    refused = _broken(plan, site.egress)
    if refused is None or site.egress is None or _stays(query, catalog, site):
        return Checked(plan, refused)
    tried = {rules}
    tested = with_groups_tested(query)
    for asked in (query, tested) if tested is not query else (query,):
        for others in _others(rules, plan, site.egress):
            if others in tried:
                continue
            tried.add(others)
            try:
                lawful = _plan(asked, catalog, site, others, limits)
            except ConfigError:
                continue  # no link leads to where this plan would have its root
            if _broken(lawful, site.egress) is None:
                return Checked(lawful)
        # Of tables that are only tested, groups may leave: the plans that make groups are tried once more.
        tried = {each for each in tried if not each.aggregates_always}
    return Checked(plan, refused)


def _others(rules: Rules, plan: Plan, egress: EgressRules) -> Iterator[Rules]:
    """By what a plan is made that may break no rule.

    Without groups that members fold between them; without queries that are answered at other members; without keys that
    go ahead; with groups from every part whatever they cost; with its root at a table that must not leave; without any
    rule; and with its root at the initiator, where rows of the initiator's own tables stay.
    """
    replace = msgspec.structs.replace
    if rules.group_by != "merge":
        rules = replace(rules, group_by="merge")
        yield rules
    yield rules.without(GivenUp.FIRST)
    fewer = rules.without(GivenUp.FIRST, GivenUp.NEXT)
    yield fewer
    grouped = replace(fewer, aggregates_always=True)
    yield grouped
    for name in dict.fromkeys(each.member for each in plan.fragments if each.member.lower() in egress.marked):
        yield replace(grouped, root_at=name)
    plain = replace(rules, on=frozenset())
    yield plain
    yield replace(plain, root="initiator")


def _plan(query: Query, catalog: Catalog, site: Site, rules: Rules, limits: Limits) -> Plan:
    plan = make_plan(query, catalog, msgspec.structs.replace(site, rules=rules), limits)
    return site.observed.estimate(plan, catalog.files_version) if site.observed is not None else plan


def _broken(plan: Plan, egress: EgressRules | None) -> UserError | None:
    try:
        if egress is not None:
            check_egress(plan, egress)
    except UserError as error:
        return error
    return None


def _reads_marked(query: Query, catalog: Catalog, egress: EgressRules | None) -> bool:
    """Does the query read a table that may not leave its site freely?"""
    if egress is None or not egress.marks:
        return False
    parts = [part for scan in query.tables for part in catalog.parts(scan.table)]
    return any(egress.mark(part.member, part.table) is not Leaves.FREELY for part in parts)


def _stays(query: Query, catalog: Catalog, site: Site) -> bool:
    """Does every plan break a rule? So it is with a table that never leaves, is elsewhere and has no other part.

    A table with several parts may have one that a plan leaves out.
    """
    if site.egress is None:
        return False
    only = [parts[0] for scan in query.tables if len(parts := catalog.parts(scan.table)) == 1]
    marks = [site.egress.mark(part.member, part.table) for part in only if part.member != site.initiator]
    return Leaves.NEVER in marks
