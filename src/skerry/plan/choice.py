"""Where the rest of a query runs, and how each of its tables comes there."""

from __future__ import annotations

import dataclasses
import math
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from sqlglot import exp

from skerry.model.errors import ConfigError
from skerry.model.fragment import Leaf
from skerry.plan.apart import Answer, Aparts, once, stands_in, total_s
from skerry.plan.capacity import Barred, answered, at_once, blocks_hosted, crowded, hosted, keys_hosted
from skerry.plan.estimate import Estimate
from skerry.plan.fragments import Fragments
from skerry.plan.joining import Joiner
from skerry.plan.mention import Mention, Shipment, signature
from skerry.plan.mentions import MAKE_BLOCKS, Mentions
from skerry.plan.money import cost_text, seconds_of
from skerry.plan.place import Cost, Costs, bottom_up_places, bottom_up_reason, cheapest
from skerry.plan.reduce import read_sources
from skerry.plan.rest import rest_at, tables_in
from skerry.plan.rules.apart import Apart
from skerry.plan.rules.prune import KeptParts
from skerry.plan.rules.semijoin import Reducer
from skerry.plan.rules.subqueries import is_below
from skerry.plan.sent_columns import columns_if_sent
from skerry.plan.site import Site
from skerry.plan.size import Sizer
from skerry.plan.source import Source
from skerry.sql.statement import Query

# The rules by which members answer or join something before the rest.
_BEFORE_REST = {*MAKE_BLOCKS, "apart", "joined"}


class Choice:
    """Where the rest of the query runs, and how each mention comes there."""

    def __init__(
        self,
        mentions: Mentions,
        tree: exp.Expr,
        site: Site,
        partials: Sequence[Source],
        result: Estimate | None,
        barred: Barred,
        query: Query,
        kept: KeptParts,
    ) -> None:
        """`result`: how large the answer is, if that is known better than from the tree."""
        self._barred = barred
        self.has_room = True
        self.fewer: Barred | None = None  # what to give up next, if a plan that costs less had no room
        self._mentions: dict[str, Mention] = mentions.all
        self._partials = partials
        self._site = site
        self._costs = Costs(site.topology)
        self._reducer = Reducer(mentions.all, self._costs, site.estimator, site.rules.has("ranges"), barred.givers)
        self._columns = columns_if_sent({**mentions.all, **mentions.apart}, tree, site.rules)
        self._shipments: dict[tuple[str, str], Shipment] = {}
        self.joiner = Joiner(mentions, site, self._costs, self._reducer, self._shipment)
        members = {name: each.members for name, each in mentions.all.items()}
        # Where a rule names the root, rows are to stay there.
        blocks = mentions.apart if not site.rules.root_at else {}
        self._aparts = Aparts(
            blocks,
            members,
            site,
            self._reducer,
            self._columns,
            barred,
            self._grouping(),
            lambda block: _Nested(query, block, kept, site, barred),
        )
        self._known = ChainMap(self._mentions, self._aparts.mentions)
        self.result = result or Sizer(mentions.all, site.estimator).of(tree)

    def best(self) -> tuple[str, dict[str, Shipment], str, Cost]:
        """The member, what comes to it, why it is there, and the cost of that."""
        found = {member: self._at(member) for member in self._candidates()}
        each_once = {member: once(shipments) for member, shipments in found.items()}
        over = {member: self._crowded(member, shipments) for member, shipments in each_once.items()}
        costs = {member: self._cost(member, shipments) for member, shipments in each_once.items()}
        costs_s = {member: cost.cost_s for member, cost in costs.items()}
        roomy = [member for member in found if not over[member] and costs_s[member] < float("inf")]
        self.has_room = bool(roomy)
        holders = self._holders()
        wanted, root = self._cheapest(costs, holders, found), self._cheapest(costs, holders, roomy or found)
        if costs_s[root] == float("inf"):
            raise _no_way(self._costs, holders, root, self._site.initiator)
        if over[wanted]:
            # So many have to go at least until another root has room.
            too_many = min(sum(each.values()) for each in over.values() if each)
            self.fewer = self._fewer(over[wanted], wanted, found[wanted], too_many)
        full = list(over[wanted]) if wanted != root or not roomy else []
        among = {member: costs[member] for member in roomy or found}
        reason = self._reason(root, among, each_once) + self._room_text(wanted, full)
        self.take(root)
        return root, found[root], reason, costs[root]

    def _cost(self, root: str, shipments: Sequence[Shipment]) -> Cost:
        """The cost of all that comes to `root`, and of the result's way from there."""
        costs, result = self._costs, (root, self._site.initiator, self.result.size_bytes)
        partials = [(sender, root, size) for each in self._partials for sender, size in each.sent_bytes().items()]
        return Cost(
            sum(each.cost_s for each in shipments) + sum(costs.ship_s(*each) for each in (result, *partials)),
            sum(each.sent_bytes for each in shipments) + sum(costs.sent_bytes(*each) for each in (result, *partials)),
        )

    def _cheapest(self, costs: Mapping[str, Cost], holders: Sequence[str], among: Iterable[str]) -> str:
        if self._site.rules.strategy == "bottom-up":
            return next(iter(among))
        return cheapest({member: costs[member] for member in among}, holders, self._site.data_members)

    def _fewer(
        self, full: Mapping[str, int], root: str, shipments: Mapping[str, Shipment], too_many: int
    ) -> Barred | None:
        """What is given up next for room at the full members: the queries in FROM, or their keys, that save least."""
        saved_s: dict[str, float] = {}
        for mention in (each for one in shipments.values() for each in answered(one.node, root)):
            if mention.block is not None and mention.block.member in full:
                inside_s = sum(self._shipment(each, root).cost_s for each in mention.block.names)
                is_apart = mention.name in self._aparts.mentions
                own = shipments[mention.name] if is_apart else self._shipment(mention.name, root)
                saved_s[mention.name] = inside_s - own.cost_s
        keys = keys_hosted(root, [each.node for each in once(shipments)])
        giving = [member for member in full if keys[member]]
        least = min(saved_s, key=lambda name: (saved_s[name], name), default=None)
        # Where keys alone are too many, no query that goes would be enough.
        if giving and (least is None or crowded(keys, self._site.topology)):
            return self._barred.and_keys(giving)
        if least is None:
            return None
        keys_s = self._reducer.saved_s(root, once(shipments)) if giving else math.inf
        if keys_s < saved_s[least]:
            return self._barred.and_keys(giving)
        going: list[Mention] = []
        left = dict(full)
        for name in sorted(saved_s, key=lambda name: (saved_s[name], name)):
            mention = self._known[name]
            assert mention.block is not None
            if len(going) == at_once(too_many) or keys_s < saved_s[name]:
                break
            if left[mention.block.member]:
                left[mention.block.member] -= 1
                going.append(mention)
        return self._barred.and_blocks(going)

    def _room_text(self, wanted: str, full: Sequence[str]) -> str:
        told = list(self._barred.told)
        if not self.has_room:
            told.append(f"nobody has room, so the capacity of {' and '.join(full)} is exceeded")
        elif full:
            told.append(f"{wanted} would be chosen, but there is no room at {', '.join(full)}")
        return "".join(f"; {each}" for each in told)

    def take(self, root: str) -> None:
        """Queries and joins that are answered before the rest are mentions from now on."""
        self._mentions.update(self.joiner.groups(root))
        self._mentions.update(self._aparts.take(root))

    def _reason(self, root: str, costs: Mapping[str, Cost], shipments: Mapping[str, Sequence[Shipment]]) -> str:
        rules = self._site.rules
        if rules.root == "initiator":
            return "the client asked for the initiator"
        if rules.root_at:
            return f"rows of {rules.root_at} may not leave it"
        if rules.strategy == "bottom-up":
            site = self._site
            return bottom_up_reason(root, site.topology, self._holders(), site.initiator, site.data_members)
        others = sorted((cost.cost_s, member) for member, cost in costs.items() if member != root)
        told: list[str] = []
        for cost_s, member in [(costs[root].cost_s, root), *others[:1]]:
            size_bytes, mentions = self.result.size_bytes, self._mentions
            seconds = seconds_of(cost_s, member, shipments[member], self._partials, size_bytes, mentions, self._site)
            told.append(cost_text(cost_s, seconds))
        beside = f", {told[1]} at {others[0][1]}" if others else ""
        if others and others[0][0] < costs[root].cost_s and costs[others[0][1]].sent_bytes > costs[root].sent_bytes:
            beside += ", which sends more bytes"
        return f"the links take {told[0]}{beside}"

    def _holders(self) -> list[str]:
        found = [member for mention in self._mentions.values() for member in mention.members]
        return found + [part.member for source in self._partials for part in source.parts]

    def _candidates(self) -> tuple[str, ...]:
        site = self._site
        if site.rules.root == "initiator":
            return (site.at_home,)
        if site.rules.root_at in site.data_members:
            return (site.rules.root_at,)
        if site.rules.strategy == "bottom-up":
            return bottom_up_places(site.topology, self._holders(), site.initiator, site.data_members)
        return site.data_members

    def _crowded(self, root: str, shipments: Sequence[Shipment]) -> dict[str, int]:
        """Members that would host more than they may, and how many more."""
        return crowded(hosted(root, [each.node for each in shipments], self._grouping()), self._site.topology)

    def _grouping(self) -> list[str]:
        """Members that send partial rows."""
        return [part.member for source in self._partials for part in source.parts]

    def _at(self, member: str) -> dict[str, Shipment]:
        return self._aparts.at(member, lambda answers: self.shipments(member, answers))

    def shipments(self, member: str, answers: Sequence[Answer] = ()) -> dict[str, Shipment]:
        """Shipments to that member, but for mentions that stay inside a subquery that is answered elsewhere."""
        found = {name: self._shipment(name, member) for name in self._mentions}
        for answer in answers:
            names = answer.mention.block.names if answer.mention.block is not None else ()
            gone = {*names, *(name for name in found if stands_in(self._known[name], answer.mention))}
            found = {name: each for name, each in found.items() if name not in gone}
            found[answer.mention.name] = answer.shipment
        for name, mention in self._mentions.items():
            if mention.block is None or name not in found:
                continue
            inside = {each: found[each] for each in mention.block.names if each in found}
            apart_s = total_s(inside)
            if mention.block.member == member or found[name].cost_s > apart_s:
                del found[name]
            else:
                gone = set(inside) | {other for other in found if stands_in(self._known[other], mention)}
                found = {each: shipment for each, shipment in found.items() if each not in gone}
        found = self._shared(found, member)
        if self._site.rules.has("filters"):
            # A block that does not travel itself has no conjuncts that moved.
            sent = {name: self._known[name] for name in found if member not in self._known[name].members}
            inside_moved = _inside_moved(sent)
            found = {
                name: shipment
                for name, shipment in found.items()
                if name not in inside_moved and not _is_moved(self._known[name], sent)
            }
        if self._site.rules.has("joined"):
            blocks = [each for each in (self._known[name] for name in found) if each.block is not None]
            found = self.joiner.at(member, found, blocks_hosted(member, blocks, self._grouping()))
        return self._with_arriving(found, member)

    def _with_arriving(self, found: dict[str, Shipment], member: str) -> dict[str, Shipment]:
        """Whole tables that come to the member anyway give it their keys too: more rows may be worth reducing then."""
        if not self._site.rules.has("semijoin"):
            return found
        sent = {name: each for name, each in found.items() if name in self._mentions}
        whole = {name for name, each in sent.items() if not each.node.children and not each.node.ranges}
        relied: set[str] = set()
        for name, each in sent.items():
            gains = self._reducer.asked(self._mentions[name], member) & whole - {name}
            if not gains or name in relied or self._is_shared(name, found):
                continue
            arriving = frozenset(signature(found[other].node) for other in gains)
            other = self._reducer.shipment(self._mentions[name], member, self._columns[name], True, arriving)
            if other.cost.is_less(each.cost):
                found = found | {name: other}
                relied |= gains
                whole.discard(name)
        return found

    def _is_shared(self, name: str, found: Mapping[str, Shipment]) -> bool:
        """Do its rows travel for another mention too?"""
        own = signature(found[name].node)
        return any(signature(each.node) == own for other, each in found.items() if other != name)

    def _shared(self, found: dict[str, Shipment], member: str) -> dict[str, Shipment]:
        """Mentions of the same rows travel as one, unreduced, where that costs less than each reduced by itself."""
        alike: dict[str, list[str]] = {}
        for name in found:
            if name in self._mentions and member not in self._mentions[name].members:
                alike.setdefault(signature(self._reducer.plain(self._mentions[name])), []).append(name)
        for names in alike.values():
            apart = {name: found[name] for name in names}
            if len(once(apart)) < 2:
                continue
            columns = list(dict.fromkeys(column for name in names for column in self._columns[name]))
            whole = {name: self._reducer.shipment(self._mentions[name], member, columns, False) for name in names}
            if max(each.cost_s for each in whole.values()) < total_s(apart):
                found = found | whole
        return found

    def _shipment(self, name: str, member: str) -> Shipment:
        """How a mention alone comes to a member."""
        known = self._shipments.get((name, member))
        if known is None:
            mention = self._mentions[name]
            reduces = self._site.rules.has("semijoin") and mention.members != (member,)
            known = self._reducer.shipment(mention, member, self._columns[name], reduces)
            self._shipments[name, member] = known
        return known


class _Nested:
    """A query in FROM as a query of its own (rule `apart`); queries in it are not looked at likewise."""

    def __init__(self, query: Query, block: Apart, kept: KeptParts, site: Site, barred: Barred) -> None:
        # What a full member has no room for is not made there in pieces either.
        off = _BEFORE_REST if block.home else {"apart"}
        rules = msgspec.structs.replace(site.rules, on=site.rules.on - off, root="anywhere")
        self._site = msgspec.structs.replace(site, rules=rules)
        self._tree = block.body.copy()
        names = tables_in(self._tree)
        own = tuple(scan for scan in query.tables if scan.node_name in names)
        query = dataclasses.replace(query, tree=self._tree, tables=own)
        self._mentions = Mentions(query, self._tree, kept, rules, site.estimator)
        unasked = Estimate(1.0, {}, 1.0)
        self._choice = Choice(
            self._mentions, self._tree, self._site, (), unasked, Barred(givers=barred.givers), query, kept
        )
        self._shipments: dict[str, dict[str, Shipment]] = {}

    def shipments(self, member: str) -> Mapping[str, Shipment]:
        if member not in self._shipments:
            self._shipments[member] = self._choice.shipments(member)
        return self._shipments[member]

    def read(self, builder: Fragments, member: str, leaves: list[Leaf]) -> exp.Expr:
        shipments = self.shipments(member)
        self._choice.take(member)
        around = builder.mentions, builder.key_prefix
        tree, _, sources = rest_at(
            builder, self._tree, self._mentions, self._choice.joiner, member, shipments, self._site.rules
        )
        read_sources(builder, tree, sources, member, leaves)
        builder.mentions, builder.key_prefix = around
        return tree


def _no_way(costs: Costs, holders: Sequence[str], root: str, initiator: str) -> ConfigError:
    pairs = [(member, root) for member in holders] + [(root, initiator)]
    sender, receiver = next((each for each in pairs if costs.ship_s(*each, 1.0) == float("inf")), (root, initiator))
    return ConfigError(
        f"no link leads from {sender} to {receiver}, not even through other members, and the query needs one",
        suggestion="add one under links: of skerry.yaml",
    )


def _inside_moved(sent: Mapping[str, Mention]) -> set[str]:
    return {
        name
        for mention in sent.values()
        for condition in mention.conditions
        if condition.subquery is not None
        for name in condition.subquery.names
    }


def _is_moved(mention: Mention, sent: Mapping[str, Mention]) -> bool:
    """Does the block stand in a subquery that moves with its conjunct?"""
    return mention.block is not None and any(
        condition.subquery is not None
        and condition.stands is not None
        and is_below(mention.source.node, condition.stands)
        for each in sent.values()
        for condition in each.conditions
    )
