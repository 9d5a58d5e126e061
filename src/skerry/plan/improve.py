"""A plan by the rules: what travels is reduced, and the rest runs where that costs least."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence

from sqlglot import exp

from skerry.errors import ConfigError
from skerry.plan.build import Builder, Source
from skerry.plan.estimate import Estimate, row_bytes
from skerry.plan.mentions import Mention, Mentions, Parts, read_scopes
from skerry.plan.place import Costs, cheapest
from skerry.plan.reduce import columns_of, signature
from skerry.plan.rules import Rules
from skerry.plan.rules.filters import without_moved
from skerry.plan.rules.semijoin import Reducer, Shipment
from skerry.plan.site import Site
from skerry.plan.size import Sizer
from skerry.sql.prune import needed_columns
from skerry.sql.statement import Query


def add_improved(builder: Builder, query: Query, catalog: Parts, site: Site, partials: Sequence[Source] = ()) -> None:
    """Fragments of a query over several sites; `partials` stand in its tree, and are none of its tables."""
    tree = query.tree.copy()
    mentions = Mentions(query, tree, catalog, site.rules)
    choice = _Choice(mentions, tree, site, partials)
    root, shipments = choice.best()
    moved = _moved(mentions.all, root) if site.rules.has("filters") else {}
    without_moved(tree, moved)
    builder.mentions = mentions.all
    builder.key_prefix = _free_prefix(tree)
    left = {name: scan for name, scan in mentions.scans.items() if name in _tables(tree)}
    scopes = read_scopes(tree, left)
    placed = {source.node.name: source for scope in scopes.all for source in scope.sources if source.table is not None}
    needed = needed_columns(tree, scopes, placed)
    sources = _sources({name: mentions.all[name] for name in left}, shipments, needed)
    rest = dataclasses.replace(query, tree=tree, tables=tuple(left.values()))
    builder.add_rest(rest, [*sources, *partials], root)


def _tables(tree: exp.Expr) -> set[str]:
    return {node.name for node in tree.find_all(exp.Table)}


def _moved(mentions: Mapping[str, Mention], root: str) -> set[int]:
    """The conjuncts that every row of their mention has passed before it comes to the root."""
    return {
        id(condition.stands)
        for mention in mentions.values()
        if root not in mention.members
        for condition in mention.conditions
        if condition.stands is not None
    }


def _inside_moved(mentions: Mapping[str, Mention], root: str) -> set[str]:
    return {
        name
        for mention in mentions.values()
        if root not in mention.members
        for condition in mention.conditions
        if condition.subquery is not None
        for name in condition.subquery.names
    }


def _sources(
    mentions: Mapping[str, Mention], shipments: Mapping[str, Shipment], needed: Mapping[str, tuple[str, ...]]
) -> list[Source]:
    """Mentions of which the same rows travel are one source, with the columns that any of them needs."""
    grouped: dict[str, list[Mention]] = {}
    for name, mention in mentions.items():
        grouped.setdefault(signature(shipments[name].node), []).append(mention)
    found: list[Source] = []
    for same in grouped.values():
        first = same[0]
        columns = columns_of(first, [column for mention in same for column in needed[mention.name]])
        names = tuple(mention.name for mention in same)
        found.append(Source(names, first.scan.table, columns, (), first.parts, shipment=shipments[first.name]))
    return found


def _free_prefix(tree: exp.Expr) -> str:
    taken = {node.name.lower() for node in tree.find_all(exp.Identifier)}
    prefix = "key_"
    while any(name.startswith(prefix) for name in taken):
        prefix = f"skerry_{prefix}"
    return prefix


class _Choice:
    """Where the rest of the query runs, and how each mention comes there."""

    def __init__(self, mentions: Mentions, tree: exp.Expr, site: Site, partials: Sequence[Source]) -> None:
        self._mentions = mentions.all
        self._partials = partials
        self._site = site
        self._costs = Costs(site.topology)
        self._reducer = Reducer(mentions.all, self._costs, site.estimator)
        self._columns = _columns_if_sent(mentions.all, tree, site.rules)
        sizes = {each.mentions[0]: _size(each) for each in partials}
        self._result = Sizer(mentions.all, site.estimator).of(tree, sizes)

    def best(self) -> tuple[str, dict[str, Shipment]]:
        rules = self._site.rules
        members = (self._site.at_home,) if rules.root == "initiator" else self._site.data_members
        found = {member: self._at(member) for member in members}
        costs_s = {
            member: sum(each.cost_s for each in _once(shipments))
            + self._costs.ship_s(member, self._site.initiator, self._result.size_bytes)
            + self._of_partials_s(member)
            for member, shipments in found.items()
        }
        holders = [member for mention in self._mentions.values() for member in mention.members]
        holders += [part.member for source in self._partials for part in source.parts]
        root = cheapest(costs_s, holders, self._site.data_members)
        if costs_s[root] == float("inf"):
            raise _no_way(self._costs, holders, root)
        return root, found[root]

    def _of_partials_s(self, member: str) -> float:
        return sum(
            self._costs.ship_s(sender, member, size_bytes)
            for source in self._partials
            for sender, size_bytes in source.sent_bytes().items()
        )

    def _at(self, member: str) -> dict[str, Shipment]:
        """Shipments to that member, but for mentions that stay inside a subquery that is answered elsewhere."""
        reduces = self._site.rules.has("semijoin")
        inside = _inside_moved(self._mentions, member) if self._site.rules.has("filters") else set()
        return {
            name: self._reducer.shipment(mention, member, self._columns[name], reduces and mention.members != (member,))
            for name, mention in self._mentions.items()
            if name not in inside
        }


def _size(partial: Source) -> Estimate:
    rows = float(sum(partial.partial_rows.values()))
    return Estimate(rows, {}, rows, float(row_bytes(partial.columns)))


def _once(shipments: Mapping[str, Shipment]) -> Sequence[Shipment]:
    return list({signature(each.node): each for each in shipments.values()}.values())


def _no_way(costs: Costs, holders: Sequence[str], root: str) -> ConfigError:
    sender = next((member for member in holders if costs.ship_s(member, root, 1.0) == float("inf")), root)
    return ConfigError(
        f"no link leads from {sender} to {root}, not even through other members, and the query needs rows of both",
        suggestion="add one under links: of skerry.yaml",
    )


def _stays(column: str, own: Counter[str], total: Counter[str]) -> bool:
    return not own[column] or total[column] > own[column]


def _columns_if_sent(mentions: Mapping[str, Mention], tree: exp.Expr, rules: Rules) -> dict[str, tuple[str, ...]]:
    """The columns that a mention would send, about: a column that only its own conditions name stays where it is."""
    total = Counter(node.name.lower() for node in tree.find_all(exp.Identifier))
    found: dict[str, tuple[str, ...]] = {}
    for name, mention in mentions.items():
        own: Counter[str] = Counter()
        if rules.has("filters"):
            for condition in mention.conditions:
                if condition.stands is not None:
                    own.update(node.name.lower() for node in condition.stands.find_all(exp.Identifier))
        columns = [column for column in mention.scan.columns if _stays(column.lower(), own, total)]
        found[name] = tuple(columns) or mention.scan.columns[:1]
    return found
