"""A plan by the rules: what travels is reduced, and the rest runs where that costs least."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
from sqlglot import exp

from skerry.errors import ConfigError
from skerry.plan.build import Builder, Source
from skerry.plan.estimate import Estimate
from skerry.plan.joining import Joiner
from skerry.plan.mentions import Mention, Mentions, free_prefix, read_scopes
from skerry.plan.place import Costs, capacity_of, cheapest, common_ancestor
from skerry.plan.reduce import columns_of, signature
from skerry.plan.rules import Rules
from skerry.plan.rules.blocks import without_ctes
from skerry.plan.rules.computed import compute_at_source
from skerry.plan.rules.filters import without_moved
from skerry.plan.rules.joined import Joined
from skerry.plan.rules.prune import KeptParts
from skerry.plan.rules.semijoin import Node, Reducer, Shipment
from skerry.plan.rules.subqueries import is_below
from skerry.plan.site import Site
from skerry.plan.size import Sizer
from skerry.plan.unnest import put_in_from
from skerry.sql.prune import needed_columns
from skerry.sql.scope import Scopes
from skerry.sql.statement import Query

# So many subqueries of a query are tried in FROM; each costs another plan, and has to save more than a guess.
_SUBQUERIES_MAX = 6
_SAVES_S = 1e-5


def add_improved(builder: Builder, query: Query, kept: KeptParts, site: Site, partials: Sequence[Source] = ()) -> None:
    """Fragments of a query over several sites; `partials` stand in its tree, and are none of its tables."""
    if site.rules.has("blocks") and not partials:  # a copy of what reads partial rows would read them twice
        query = without_ctes(query)
    draft = _best_draft(query, kept, site, partials, builder.result if partials or builder.is_result_seen else None)
    tree, mentions, joiner, root, shipments = draft.tree, draft.mentions, draft.joiner, draft.root, draft.shipments
    builder.result = draft.result
    sent = {name: mentions.all[name] for name in shipments if root not in mentions.all[name].members}
    without_moved(tree, joiner.moved(root) | (_moved(sent) if site.rules.has("filters") else set()))
    _replace_blocks(tree, sent)
    joiner.put(root)
    builder.mentions = mentions.all
    builder.key_prefix = free_prefix(tree, "key_")
    left = {name: each.scan for name, each in mentions.all.items() if name in _tables(tree)}
    scopes = read_scopes(tree, left)
    if site.rules.has("computed"):
        _compute(tree, scopes, _alone(sent, shipments))
        left = {name: mentions.all[name].scan for name in left}
        scopes = read_scopes(tree, left)
    placed = {source.node.name: source for scope in scopes.all for source in scope.sources if source.table is not None}
    needed = needed_columns(tree, scopes, placed)
    sources = _sources({name: mentions.all[name] for name in left}, shipments, needed)
    rest = dataclasses.replace(query, tree=tree, tables=tuple(left.values()))
    builder.add_rest(rest, [*sources, *partials], root, draft.reason)


@dataclasses.dataclass(frozen=True, eq=False)
class _Draft:
    """A tree with what would travel for it, before anything of it is changed."""

    tree: exp.Expr
    mentions: Mentions
    joiner: Joiner
    root: str
    shipments: Mapping[str, Shipment]
    reason: str
    cost_s: float
    result: Estimate


def _draft(
    query: Query, tree: exp.Expr, kept: KeptParts, site: Site, partials: Sequence[Source], result: Estimate | None
) -> _Draft:
    """`result`: as large as the answer is, if that is known."""
    mentions = Mentions(query, tree, kept, site.rules, site.estimator)
    choice = _Choice(mentions, tree, site, partials, result)
    return _Draft(tree, mentions, choice.joiner, *choice.best(), choice.result)


def _best_draft(
    query: Query, kept: KeptParts, site: Site, partials: Sequence[Source], result: Estimate | None
) -> _Draft:
    """Subqueries are put in FROM one by one, and stay there where their answers travel and that costs less."""
    best = _draft(query, query.tree.copy(), kept, site, partials, result)
    if not site.rules.has("answers") and not site.rules.has("lookups"):
        return best
    scans = {scan.node_name: scan for scan in query.tables}
    holders = {name: kept.of(scan) for name, scan in scans.items()}
    tried: set[tuple[str, ...]] = set()
    prefix = free_prefix(best.tree, "answer_")
    for number in range(1, _SUBQUERIES_MAX + 1):
        tree, name = best.tree.copy(), f"{prefix}{number}"
        if not put_in_from(read_scopes(tree, scans), holders, site.rules, tried, name):
            break
        other = _draft(query, tree, kept, site, partials, best.result)
        answers = [other.mentions.all[each] for each in other.shipments if other.mentions.all[each].alias.name == name]
        is_sent = any(other.root not in mention.members for mention in answers)
        if is_sent and other.cost_s < best.cost_s - _SAVES_S:
            best = other
    return best


def _tables(tree: exp.Expr) -> set[str]:
    return {node.name for node in tree.find_all(exp.Table)}


def _alone(sent: Mapping[str, Mention], shipments: Mapping[str, Shipment]) -> dict[str, Mention]:
    """Those that no other mention shares its rows with, and that send every row."""
    counts = Counter(signature(shipments[name].node) for name in sent)
    return {
        name: mention
        for name, mention in sent.items()
        if counts[signature(shipments[name].node)] == 1 and not mention.is_set
    }


def _compute(tree: exp.Expr, scopes: Scopes, sent: Mapping[str, Mention]) -> None:
    """What is computed from a mention alone becomes a column that it sends."""
    for name, columns in compute_at_source(scopes, sent, free_prefix(tree, "value_")).items():
        mention = sent[name]
        mention.computed = {each.column.name: each.value for each in columns}
        table = mention.scan.table
        wider = msgspec.structs.replace(table, columns=(*table.columns, *(each.column for each in columns)))
        mention.scan = dataclasses.replace(mention.scan, table=wider)


def _replace_blocks(tree: exp.Expr, sent: Mapping[str, Mention]) -> None:
    """A block that is answered elsewhere stands in the tree as a table of its columns."""
    for name, mention in sent.items():
        if mention.block is not None and not isinstance(mention.block, Joined):
            alias = exp.TableAlias(this=mention.alias.copy())
            mention.source.node.replace(exp.Table(this=exp.Identifier(this=name, quoted=False), alias=alias))


def _moved(sent: Mapping[str, Mention]) -> set[int]:
    """The conjuncts that every row of their mention has passed before it comes to the root."""
    return {
        id(condition.stands)
        for mention in sent.values()
        for condition in mention.conditions
        if condition.stands is not None
    }


def _is_within(mention: Mention, outer: Mention) -> bool:
    """Does the block stand inside the other?"""
    if mention.block is None or mention is outer or outer.block is None:
        return False
    node: exp.Expr | None = mention.source.node
    while node is not None and node is not outer.block.body:
        node = node.parent
    return node is not None


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


class _Choice:
    """Where the rest of the query runs, and how each mention comes there."""

    def __init__(
        self, mentions: Mentions, tree: exp.Expr, site: Site, partials: Sequence[Source], result: Estimate | None
    ) -> None:
        """`result`: how large the answer is, if that is known better than from the tree."""
        self._mentions: dict[str, Mention] = mentions.all
        self._partials = partials
        self._site = site
        self._costs = Costs(site.topology)
        self._reducer = Reducer(mentions.all, self._costs, site.estimator, site.rules.has("ranges"))
        self._columns = _columns_if_sent(mentions.all, tree, site.rules)
        self._shipments: dict[tuple[str, str], Shipment] = {}
        self.joiner = Joiner(mentions, tree, site, self._costs, self._reducer, self._shipment)
        self.result = result or Sizer(mentions.all, site.estimator).of(tree)

    def best(self) -> tuple[str, dict[str, Shipment], str, float]:
        """The member, what comes to it, why it is there, and the cost of that."""
        found = {member: self._at(member) for member in self._candidates()}
        room = {member: each for member, each in found.items() if self._has_room(member, each)}
        # Rows are where they are: when nobody has room, the member that would be chosen takes one more.
        found = room or found
        if self._site.rules.strategy == "bottom-up":
            found = dict([next(iter(found.items()))])
        costs_s = {
            member: sum(each.cost_s for each in _once(shipments))
            + self._costs.ship_s(member, self._site.initiator, self.result.size_bytes)
            + self._of_partials_s(member)
            for member, shipments in found.items()
        }
        holders = self._holders()
        root = cheapest(costs_s, holders, self._site.data_members)
        if costs_s[root] == float("inf"):
            raise _no_way(self._costs, holders, root, self._site.initiator)
        self._mentions.update(self.joiner.groups(root))
        return root, found[root], self._reason(root, costs_s), costs_s[root]

    def _reason(self, root: str, costs_s: Mapping[str, float]) -> str:
        rules = self._site.rules
        if rules.root == "initiator":
            return "the client asked for the initiator"
        if rules.root_at:
            return f"rows of {rules.root_at} may not leave it"
        if rules.strategy == "bottom-up":
            return f"all its rows pass {root} on their way to {self._site.initiator}"
        others = sorted((cost_s, member) for member, cost_s in costs_s.items() if member != root)
        beside = f", {_seconds(others[0][0])} at {others[0][1]}" if others else ""
        return f"the links take {_seconds(costs_s[root])}{beside}"

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
            return common_ancestor(site.topology, self._holders(), site.initiator, site.data_members)
        return site.data_members

    def _has_room(self, member: str, shipments: Mapping[str, Shipment]) -> bool:
        """For the rest of the query, beside the keys that the member has to give."""
        hosted = 1 + sum(_given(each.node, member) for each in _once(shipments))
        return hosted <= capacity_of(self._site.topology, member)

    def _of_partials_s(self, member: str) -> float:
        return sum(
            self._costs.ship_s(sender, member, size_bytes)
            for source in self._partials
            for sender, size_bytes in source.sent_bytes().items()
        )

    def _at(self, member: str) -> dict[str, Shipment]:
        """Shipments to that member, but for mentions that stay inside a subquery that is answered elsewhere."""
        found = {name: self._shipment(name, member) for name in self._mentions}
        for name, mention in self._mentions.items():
            if mention.block is None or name not in found:
                continue
            inside = {each: found[each] for each in mention.block.names if each in found}
            apart_s = sum(each.cost_s for each in _once(inside))
            if mention.block.member == member or found[name].cost_s > apart_s:
                del found[name]
            else:
                gone = set(inside) | {other for other in found if _is_within(self._mentions[other], mention)}
                found = {each: shipment for each, shipment in found.items() if each not in gone}
        found = self._shared(found, member)
        if self._site.rules.has("filters"):
            # A block that does not travel itself has no conjuncts that moved.
            sent = {name: self._mentions[name] for name in found if member not in self._mentions[name].members}
            inside_moved = _inside_moved(sent)
            found = {
                name: shipment
                for name, shipment in found.items()
                if name not in inside_moved and not _is_moved(self._mentions[name], sent)
            }
        return self.joiner.at(member, found) if self._site.rules.has("joined") else found

    def _shared(self, found: dict[str, Shipment], member: str) -> dict[str, Shipment]:
        """Mentions of the same rows travel as one, unreduced, where that costs less than each reduced by itself."""
        alike: dict[str, list[str]] = {}
        for name in found:
            if member not in self._mentions[name].members:
                alike.setdefault(signature(self._reducer.plain(self._mentions[name])), []).append(name)
        for names in alike.values():
            apart = {name: found[name] for name in names}
            if len(_once(apart)) < 2:
                continue
            columns = list(dict.fromkeys(column for name in names for column in self._columns[name]))
            whole = {name: self._reducer.shipment(self._mentions[name], member, columns, False) for name in names}
            if max(each.cost_s for each in whole.values()) < sum(each.cost_s for each in _once(apart)):
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


def _once(shipments: Mapping[str, Shipment]) -> Sequence[Shipment]:
    return list({signature(each.node): each for each in shipments.values()}.values())


def _given(node: Node, member: str) -> int:
    """Fragments of that member that give keys to others."""
    count = 0
    for _, child in node.children:
        gives = member in child.mention.members and any(other != member for other in node.mention.members)
        count += gives + _given(child, member)
    for _, other in node.ranges:
        count += member in other.mention.members and any(each != member for each in node.mention.members)
    return count


def _seconds(cost_s: float) -> str:
    return f"~{cost_s:.2g} s" if cost_s < float("inf") else "for ever"


def _no_way(costs: Costs, holders: Sequence[str], root: str, initiator: str) -> ConfigError:
    pairs = [(member, root) for member in holders] + [(root, initiator)]
    sender, receiver = next((each for each in pairs if costs.ship_s(*each, 1.0) == float("inf")), (root, initiator))
    return ConfigError(
        f"no link leads from {sender} to {receiver}, not even through other members, and the query needs one",
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
