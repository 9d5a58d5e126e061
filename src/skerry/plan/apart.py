"""Rule `apart` at work: queries in FROM over several sites are answered at one of the members if that costs less.

A query over one site that has no room for it is answered at the first member with room that its rows pass on their way
to the rest, by either strategy. Strategy `cost` may find that it costs less to answer it with the rest.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

import msgspec
from sqlglot import exp

from skerry.model.fragment import Leaf
from skerry.plan.capacity import Barred, answered, blocks_hosted, hosted
from skerry.plan.fragments import Fragments
from skerry.plan.mention import Mention, Shipment, signature
from skerry.plan.place import JOB_S, Cost, capacity_of, cheapest, common_ancestor, on_the_way
from skerry.plan.rules.apart import Apart
from skerry.plan.rules.blocks import as_scan
from skerry.plan.rules.semijoin import Reducer
from skerry.plan.site import Site

# Sizes of what is made of joins are guessed more roughly than those of tables: a little less is no less.
_ROUGH, _SAVES_S = 0.97, 1e-5


class Nested(Protocol):
    """A query in FROM as a query of its own, planned for every member that may answer it."""

    def shipments(self, member: str) -> Mapping[str, Shipment]:
        """What comes to the member for it."""

    def read(self, builder: Fragments, member: str, leaves: list[Leaf]) -> exp.Expr:
        """Its tree at the member; `leaves` gets what it reads. Once: the plan is used up then."""


@dataclasses.dataclass(frozen=True, eq=False)
class Answer:
    """A query that is answered at its block's member; the shipment counts what comes there too."""

    mention: Mention
    shipment: Shipment
    stays_rows: float


class _Alike:
    """Mentions of queries that are written alike, and what it takes to answer one of them."""

    def __init__(self, make: Callable[[Apart], Nested]) -> None:
        self._make = make
        self._nested: Nested | None = None
        self._costs_s: dict[str, float] = {}
        self.mentions: list[Mention] = []

    @property
    def nested(self) -> Nested:
        if self._nested is None:
            self._nested = self._make(_block(self.mentions[0]))
        return self._nested

    @property
    def home(self) -> str:
        """The member without room, of a query over one site."""
        return _block(self.mentions[0]).home

    def cost_s(self, member: str) -> float:
        """The cost of all that the query reads, at the member."""
        if member not in self._costs_s:
            self._costs_s[member] = total_s(self.nested.shipments(member))
        return self._costs_s[member]

    def sent_bytes(self, member: str) -> float:
        """Likewise."""
        return sum(each.sent_bytes for each in once(self.nested.shipments(member)))

    def hosted(self, member: str) -> Counter[str]:
        """Fragments that members host for it, its own too."""
        return hosted(member, [each.node for each in once(self.nested.shipments(member))], ())

    def read(self, block: Apart, builder: Fragments, member: str, leaves: list[Leaf]) -> exp.Expr:
        """Queries that are alike are read once, but for those with conditions of their own."""
        is_first = block.body is _block(self.mentions[0]).body and self._nested is not None
        nested = self.nested if is_first else self._make(block)
        if is_first:
            self._nested = None
        return nested.read(builder, member, leaves)


class Aparts:
    """`blocks` are the mentions of such queries, `members` those that hold each scan's rows, `partials` those that send
    partial rows."""

    def __init__(
        self,
        blocks: Mapping[str, Mention],
        members: Mapping[str, Sequence[str]],
        site: Site,
        reducer: Reducer,
        columns: Mapping[str, Sequence[str]],
        barred: Barred,
        partials: Sequence[str],
        make: Callable[[Apart], Nested],
    ) -> None:
        self._members = members
        self._site = site
        self._reducer = reducer
        self._columns = columns
        self._barred = barred
        self._partials = partials
        self._alike: dict[str, _Alike] = {}
        for each in blocks.values():
            key = _block(each).text if _block(each).is_stable else each.name
            self._alike.setdefault(key, _Alike(make)).mentions.append(each)
        # Each mention as it is when the query is answered at one member or another.
        self.mentions: dict[str, Mention] = {}
        self._chosen: dict[str, list[Answer]] = {}

    def at(self, root: str, shipments_of: Callable[[Sequence[Answer]], dict[str, Shipment]]) -> dict[str, Shipment]:
        """The shipments to `root`, with those queries answered apart that make them cost less."""
        chosen: list[Answer] = []
        best = shipments_of(chosen)
        best_s, is_last = total_s(best), True
        for alike in self._in_order(root):
            if all(any(stands_in(own, each.mention) for each in chosen) for own in alike.mentions):
                continue
            others = [each for each in chosen if not any(stands_in(each.mention, outer) for outer in alike.mentions)]
            answers = self._answers(alike, root, self._busy(alike, root, best))
            if answers:
                tried = shipments_of([*others, *answers])
                tried_s = total_s(tried)
                is_last = self._is_less(alike, tried_s, best_s)
                if is_last:
                    chosen, best, best_s = [*others, *answers], tried, tried_s
        self._chosen[root] = chosen
        # What was joined is remembered by root, as it was asked for last.
        return best if is_last else shipments_of(chosen)

    def _in_order(self, root: str) -> list[_Alike]:
        """First those that full members pass on, the dearest first: the next may not have room for all of them either.

        The others follow as they are, innermost first.
        """
        full = [each for each in self._alike.values() if each.home and self._hosts(each.mentions[0], root)]
        full.sort(key=lambda each: -each.cost_s(root))
        return full + [each for each in self._alike.values() if not each.home]

    def _busy(self, alike: _Alike, root: str, shipments: Mapping[str, Shipment]) -> Counter[str]:
        """What members host without these queries and what stands in them; joins and keys give way to queries."""
        found = [each for one in once(shipments) for each in answered(one.node, root)]
        left = [each for each in found if not any(stands_in(each, own) for own in alike.mentions)]
        return blocks_hosted(root, left, self._partials)

    def _is_less(self, alike: _Alike, tried_s: float, best_s: float) -> bool:
        """By strategy bottom-up a query moves on whatever else that changes: it sends less than it reads."""
        if alike.home:
            return self._site.rules.strategy == "bottom-up" or tried_s < best_s - _SAVES_S
        return tried_s < best_s * _ROUGH - _SAVES_S

    def take(self, root: str) -> dict[str, Mention]:
        """The queries that are answered apart when the rest is at `root`."""
        for each in self._chosen.get(root, ()):
            block = _block(each.mention)
            sites = " and ".join(sorted({member for name in block.names for member in self._members[name]}))
            count = f"{each.shipment.rows:,.0f}"
            rows = f"~{count} {'row travels' if count == '1' else 'rows travel'} instead of ~{each.stays_rows:,.0f}"
            told = f"a query over {sites} is answered there: {rows}"
            if block.home:
                name = each.mention.alias.name
                told = f"no room at {block.home} for {name}: answered at {block.member}, on the way to {root}; {rows}"
            each.mention.block = dataclasses.replace(block, reason="; ".join(filter(None, [told, block.reason])))
        return {each.mention.name: each.mention for each in self._chosen.get(root, ())}

    def _answers(self, alike: _Alike, root: str, busy: Counter[str]) -> list[Answer]:
        """All of them at the member where that costs least, if it is less than to have what they read at the root."""
        site, stays_s = self._site, alike.cost_s(root)
        found: dict[str, list[Answer]] = {}
        for host in self._hosts(alike.mentions[0], root):
            if host == root or alike.cost_s(host) >= stays_s:
                continue
            if any(each in self._barred.blocks for own in alike.mentions for each in self._named(own, host)):
                continue
            needed = alike.hosted(host)
            if all(busy[each] + needed[each] <= capacity_of(site.topology, each) for each in needed):
                found[host] = self._at_host(alike, host, root)
        if site.rules.strategy == "bottom-up" or alike.home:
            found = dict(list(found.items())[:1])
        costs = {host: total(_shipments(answers)) for host, answers in found.items()}
        if not costs:
            return []
        host = cheapest(costs, self._holders(alike.mentions[0]), site.data_members)
        return found[host] if costs[host].cost_s < stays_s else []

    def _at_host(self, alike: _Alike, host: str, root: str) -> list[Answer]:
        """Each with its own conditions, or all of them without, as one, if that costs less."""
        own = [self._answer(alike, each, host, root) for each in alike.mentions]
        if len(once(_shipments(own))) < 2:
            return own
        whole = [self._answer(alike, each, host, root, is_whole=True) for each in alike.mentions]
        return min(own, whole, key=lambda each: total_s(_shipments(each)))

    def _answer(self, alike: _Alike, mention: Mention, host: str, root: str, is_whole: bool = False) -> Answer:
        variant = self._variant(alike, mention, host, is_whole)
        reduces = self._site.rules.has("semijoin") and not is_whole
        shipment = self._reducer.shipment(variant, root, self._columns[mention.name], reduces)
        # Strategy bottom-up asks for no more than that fewer bytes travel on.
        job_s = 0.0 if alike.home and self._site.rules.strategy == "bottom-up" else JOB_S
        cost_s, sent_bytes = shipment.cost_s + alike.cost_s(host) + job_s, shipment.sent_bytes + alike.sent_bytes(host)
        shipment = dataclasses.replace(shipment, cost_s=cost_s, sent_bytes=sent_bytes)
        return Answer(variant, shipment, sum(each.rows for each in once(alike.nested.shipments(root))))

    def _variant(self, alike: _Alike, mention: Mention, host: str, is_whole: bool) -> Mention:
        name = self._named(mention, host)[is_whole]
        if name not in self.mentions:
            own = _block(mention)
            inputs = tuple(each.node for each in once(alike.nested.shipments(host)))
            block = dataclasses.replace(own, member=host, inputs=inputs, read=partial(alike.read, own))
            parts = tuple(msgspec.structs.replace(part, table=name, member=host) for part in mention.parts)
            found = dataclasses.replace(mention, scan=as_scan(name, block), parts=parts, block=block)
            if is_whole:
                found.conditions, found.arcs = [], {}
            self.mentions[name] = found
        return self.mentions[name]

    def _named(self, mention: Mention, host: str) -> tuple[str, str]:
        """With its conditions, and without."""
        name = f"{mention.name}_{self._site.data_members.index(host)}"
        return name, f"{name}_whole"

    def _holders(self, mention: Mention) -> list[str]:
        return [member for name in _block(mention).names for member in self._members[name]]

    def _hosts(self, mention: Mention, root: str) -> Sequence[str]:
        """Who may answer it, by strategy bottom-up and on the way from a full member the nearest first."""
        site, home = self._site, _block(mention).home
        if home:
            return on_the_way(site.topology, home, root, site.data_members)
        if site.rules.strategy == "bottom-up":
            return common_ancestor(site.topology, self._holders(mention), site.initiator, site.data_members)
        return site.data_members


def _block(mention: Mention) -> Apart:
    assert isinstance(mention.block, Apart)
    return mention.block


def _shipments(answers: Sequence[Answer]) -> dict[str, Shipment]:
    return {each.mention.name: each.shipment for each in answers}


def total_s(shipments: Mapping[str, Shipment]) -> float:
    return sum(each.cost_s for each in once(shipments))


def total(shipments: Mapping[str, Shipment]) -> Cost:
    each_once = once(shipments)
    return Cost(sum(each.cost_s for each in each_once), sum(each.sent_bytes for each in each_once))


def once(shipments: Mapping[str, Shipment]) -> Sequence[Shipment]:
    """Those of which the same rows travel count as one."""
    return list({signature(each.node): each for each in shipments.values()}.values())


def stands_in(mention: Mention, outer: Mention) -> bool:
    """Does the block stand inside the other?"""
    if mention.block is None or mention is outer or outer.block is None:
        return False
    node: exp.Expr | None = mention.source.node
    while node is not None and node is not outer.block.body:
        node = node.parent
    return node is not None
