"""Rule `joined` at work: tables are joined before they travel where the joins search says that this costs less."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from skerry.model.names import TableRef
from skerry.model.table import Column, ColumnStats, PartStats, TablePart
from skerry.plan.estimate import Estimate
from skerry.plan.join_sizes import From, key_of
from skerry.plan.joined_tree import Body, absorbed, named, put, sent_ends
from skerry.plan.joins import EXACT_MAX, Joins, Piece, bottom_up
from skerry.plan.joins import Costs as JoinCosts
from skerry.plan.mention import Mention, Shipment
from skerry.plan.mentions import Mentions
from skerry.plan.place import JOB_S, Costs, capacity_of, common_ancestor
from skerry.plan.reduce import columns_of
from skerry.plan.rules.joined import End, Input, Joinable, Joined, joinables
from skerry.plan.rules.semijoin import LOOK_UP_S, Reducer
from skerry.plan.site import Site
from skerry.sql.scope import Source
from skerry.sql.statement import Scan

# Sizes of joins are guessed more roughly than those of tables.
_ROUGH = 1.03
# One edge instead of several is worth little of what edges cost: it is bytes that have to be fewer.
_EDGE_KEPT = 0.8

ShipmentOf = Callable[[str, str], Shipment]


class Joiner:
    """`shipment_of`: how a mention alone comes to a member."""

    def __init__(self, mentions: Mentions, site: Site, costs: Costs, reducer: Reducer, shipment_of: ShipmentOf) -> None:
        self._site = site
        self._costs = costs
        self._reducer = reducer
        self._shipment_of = shipment_of
        self._prefix = mentions.free_prefix("joined_")
        self._count = 0
        found = joinables(mentions.scopes, mentions.all) if site.rules.has("joined") else ()
        count = sum(each.block is None for each in mentions.all.values())
        self._froms = [From(each, reducer, site, count) for each in found]
        self._searches: dict[tuple[int, tuple[str, ...], frozenset[str]], Joins] = {}
        self._groups: dict[str, dict[str, tuple[Joinable, Mention]]] = {}
        self._branches: dict[tuple[str, str, str], list[tuple[str, float, float]]] = {}

    def at(self, root: str, found: Mapping[str, Shipment], hosted: Counter[str]) -> dict[str, Shipment]:
        """The shipments to `root`, those of tables that are joined first in the place of theirs.

        `hosted`: fragments that members host already.
        """
        result = dict(found)
        groups = self._groups[root] = {}
        hosted = hosted.copy()
        for index, each in enumerate(self._froms):
            pieces, full = self._with_room(index, each, root, found, hosted)
            for piece in pieces:
                if piece.inputs:
                    group, shipment = self._group(each, piece, root, full)
                    assert isinstance(group.block, Joined)
                    if self._was_worse(group, shipment, found):
                        continue
                    hosted.update(_hosts(piece))
                    groups[group.name] = each.joinable, group
                    result = {name: ship for name, ship in result.items() if name not in group.block.names}
                    result[group.name] = shipment
        return result

    def _was_worse(self, group: Mention, shipment: Shipment, found: Mapping[str, Shipment]) -> bool:
        """Was it seen that what is joined so costs more than its tables, each by itself?"""
        observed = self._site.observed
        assert group.block is not None
        if not observed or not any(observed.size(key) for key in (*group.known, *shipment.node.known)):
            return False
        return shipment.cost_s > sum(found[name].cost_s for name in group.block.names)

    def groups(self, root: str) -> dict[str, Mention]:
        """The joined tables that travel when the rest is at `root`."""
        return {name: group for name, (_, group) in self._groups.get(root, {}).items()}

    def moved(self, root: str) -> set[int]:
        """Conjuncts that were applied when tables were joined."""
        return {
            conjunct
            for joinable, group in self._groups.get(root, {}).values()
            if group.block is not None
            for conjunct in absorbed(joinable, group.block.names)
        }

    def put(self, root: str) -> None:
        """Change the tree of the rest."""
        of_scope: dict[int, tuple[Joinable, list[Mention]]] = {}
        for joinable, group in self._groups.get(root, {}).values():
            of_scope.setdefault(id(joinable), (joinable, []))[1].append(group)
        for joinable, groups in of_scope.values():
            put(joinable, groups)

    # --- what is joined where ------------------------------------------------------------------------
    def _with_room(
        self, index: int, from_: From, root: str, found: Mapping[str, Shipment], hosted: Counter[str]
    ) -> tuple[list[Piece], list[str]]:
        """Joins that would be more than a member may host move on: the search goes again without that member."""
        full: set[str] = set()
        while True:
            pieces = self._pieces(index, from_, root, found, full)
            more = Counter(member for piece in pieces for member in _hosts(piece))
            over = {each for each in more if hosted[each] + more[each] > capacity_of(self._site.topology, each)}
            if not over:
                return pieces, sorted(full)
            assert not over & full, "who is full hosts nothing"
            full |= over

    def _pieces(self, index: int, from_: From, root: str, found: Mapping[str, Shipment], full: set[str]) -> list[Piece]:
        names = tuple(name for name in from_.names if name in found)
        if len(names) < 2 or not any(found[name].cost_s for name in names):
            return []
        from_.choose(names)
        site = self._site
        if site.rules.strategy == "bottom-up":
            holders = [from_.joinable.mentions[name].members for name in names]

            def meets(at: Sequence[str]) -> str:
                ways = common_ancestor(site.topology, at, root, site.data_members)
                return next((member for member in ways if member not in full), root)

            return bottom_up(from_.adjacent, holders, root, meets, from_.may_join)
        hosts = frozenset(site.data_members) - full
        key = index, names, hosts
        if key not in self._searches:
            alone_s = [
                {member: self._shipment_of(name, member).cost_s for member in site.data_members} for name in names
            ]
            # Among hosts that cost the same, one that holds rows: another may be down.
            holding = {member for name in names for member in from_.joinable.mentions[name].members}
            members = sorted(site.data_members, key=lambda member: member not in holding)
            self._searches[key] = Joins(from_.adjacent, members, hosts, self._join_costs(from_, alone_s))
        from_.is_exact = self._searches[key].is_exact
        return self._searches[key].pieces(root)

    def _join_costs(self, from_: From, alone_s: Sequence[Mapping[str, float]]) -> JoinCosts:
        def made_s(tables: int, host: str, member: str, waits: bool) -> float:
            if not from_.may_join(tables):
                return math.inf
            size_bytes = from_.size_bytes(tables) * _ROUGH
            edges_s = self._costs.ship_s(host, member, 0.0) * (tables.bit_count() - 1) * _EDGE_KEPT
            ship_s = self._reduced_s(from_.named(tables), host, member, size_bytes)
            return ship_s + edges_s + LOOK_UP_S * (tables.bit_count() - 1) + JOB_S * waits

        return JoinCosts(alone_s, made_s)

    def _reduced_s(self, names: Sequence[str], host: str, member: str, size_bytes: float) -> float:
        """To send what was joined, without the rows that keys of others drop: those that would reduce a table alone."""
        best_s, spent_s = self._costs.ship_s(host, member, size_bytes), 0.0
        for name in names:
            for other, share, keys_s in self._branches_of(name, host, member):
                if other not in names:
                    reduced_s = spent_s + keys_s + self._costs.ship_s(host, member, size_bytes * share)
                    if reduced_s < best_s:
                        best_s, spent_s, size_bytes = reduced_s, spent_s + keys_s, size_bytes * share
        return best_s

    def _branches_of(self, name: str, host: str, member: str) -> list[tuple[str, float, float]]:
        key = name, host, member
        if key not in self._branches:
            self._branches[key] = self._reducer.branches(self._shipment_of(name, member).node, host)
        return self._branches[key]

    # --- what it is then -----------------------------------------------------------------------------
    def _group(self, from_: From, piece: Piece, receiver: str, full: Sequence[str]) -> tuple[Mention, Shipment]:
        mentions: list[Mention] = []
        shipments: list[Shipment] = []
        for each in piece.inputs:
            if each.inputs:
                mention, shipment = self._group(from_, each, piece.member, full)
            else:
                (name,) = from_.named(each.tables)
                mention, shipment = from_.joinable.mentions[name], self._shipment_of(name, piece.member)
            mentions.append(mention)
            shipments.append(shipment)
        group = self._mention(from_, piece, mentions, shipments, full)
        columns = [column.name for column in group.scan.table.columns]
        shipment = self._reducer.shipment(group, receiver, columns, self._site.rules.has("semijoin"))
        cost_s = shipment.cost_s + sum(each.cost_s for each in shipments)
        sent_bytes = shipment.sent_bytes + sum(each.sent_bytes for each in shipments)
        return group, dataclasses.replace(shipment, cost_s=cost_s, sent_bytes=sent_bytes)

    def _mention(
        self,
        from_: From,
        piece: Piece,
        mentions: Sequence[Mention],
        shipments: Sequence[Shipment],
        full: Sequence[str],
    ) -> Mention:
        name = f"{self._prefix}{self._count}"
        self._count += 1
        joinable = from_.joinable
        body = Body(joinable, mentions, piece.member)
        ends = sent_ends(joinable, body.names)
        columns = named(joinable, ends, name)
        query = body.query(columns)
        if not columns:
            # How many rows there are is all that is asked.
            query.set("expressions", [exp.alias_(exp.Literal.number(1), f"{name}_0")])
        sent = tuple(columns.values()) or (Column(f"{name}_0", "int"),)
        table = exp.Table(this=exp.Identifier(this=name, quoted=False))
        table.set("alias", exp.TableAlias(this=exp.Identifier(this=name, quoted=False)))
        ref = TableRef(name, piece.member, sent)
        source = Source(name, table, tuple(column.name.lower() for column in sent), ref)
        inputs = tuple(
            Input(
                mention,
                shipment,
                columns_of(mention, sorted(body.read[mention.name])) or mention.scan.table.columns[:1],
            )
            for mention, shipment in zip(mentions, shipments, strict=True)
        )
        here = {each.name: each.parts[0].table for each in mentions if each.members == (piece.member,)}
        block = Joined(
            source,
            joinable.scope,
            query,
            here,
            piece.member,
            sent,
            _reason(joinable, body.names, full, from_.is_exact),
            inputs,
            {end: columns[to].name for end, to in ends.items()},
            body.names,
        )
        part = _part(name, piece.member, sent, columns, from_.estimate(piece.tables))
        scan = Scan(name, ref, tuple(column.name for column in sent), ())
        group = Mention(scan, source, joinable.scope, (part,), block=block)
        group.is_set = all(joinable.mentions[each].is_set for each in body.names)
        group.join_key = from_.join_key(body.names)
        group.reads = (*(_input_text(each, piece.member) for each in inputs), *from_.on(body.names))
        _add_arcs(group, block, joinable)
        return group


def _input_text(input: Input, member: str) -> str:
    """The rows that are joined; of a table with parts those at the member have not been reduced."""
    mention, known = input.mention, input.shipment.node.known
    alias = mention.alias.name.lower() if mention.block is None else ""
    at = member if len(mention.parts) > 1 else ""
    return f"{alias}={','.join(known)} {at}" if all(known) else ""


def _hosts(piece: Piece) -> list[str]:
    return [member for each in piece.inputs for member in _hosts(each)] + ([piece.member] if piece.inputs else [])


def _reason(joinable: Joinable, names: Sequence[str], full: Sequence[str], is_exact: bool) -> str:
    tables = ", ".join(joinable.mentions[name].alias.name for name in names)
    room = f"; no room at {', '.join(full)}" if full else ""
    search = "" if is_exact else f"; of more than {EXACT_MAX} tables not every order is tried"
    return f"{tables} are joined there before they travel{room}{search}"


def _add_arcs(group: Mention, block: Joined, joinable: Joinable) -> None:
    """Equalities with mentions outside."""
    for name in block.names:
        for other, pairs in joinable.mentions[name].arcs.items():
            if other in block.names:
                continue
            for own, theirs in pairs:
                column = block.ends.get((name, own.lower()))
                pair = (column or "", theirs)
                if column is not None and pair not in group.arcs.get(other, ()):
                    group.arcs[other] = (*group.arcs.get(other, ()), pair)


def _part(
    name: str, member: str, sent: tuple[Column, ...], columns: Mapping[End, Column], estimate: Estimate
) -> TablePart:
    """What was joined, as if it were a table of the member."""
    rows = max(1, int(estimate.rows))
    stats: list[ColumnStats] = []
    for end, column in columns.items():
        known = estimate.columns.get(key_of(end))
        ndv = max(1.0, min(known.ndv, rows)) if known is not None else None
        width = known.width_bytes if known is not None else None
        stats.append(ColumnStats(column.name, ndv=ndv, width_bytes=width))
    return TablePart(name, member, sent, rows, rows * 16 * len(sent), 0, 0, PartStats(tuple(stats)))
