"""What the rules know of each mention of a table: the conditions on it alone, and whose rows it must match.

A mention may lose rows that take no part in the answer, long before its joins. Two things say which rows those are:
a *condition* over the mention alone, and an *arc*: an equality with another mention, so that a row without an equal
there is of no use. Both hold only where `sql/push.py` says that the conjunct may drop rows of the mention: never
those that an outer join preserves.

Why any mixture of them is right: call a row useful when it survives all conditions and arcs however often they are
repeated. Conditions and arcs only look for rows that exist, so fewer rows elsewhere never make a row useful. Every
reduction by them keeps the useful rows, and the query, which still has all its own conjuncts, gives the same answer
for any inputs between the useful rows and all rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from sqlglot import exp

from skerry.plan.block import Block
from skerry.plan.condition import Condition
from skerry.plan.estimate import Estimate, Estimator
from skerry.plan.known import block_key, reads
from skerry.plan.mention import Mention, is_key
from skerry.plan.rules import NO_RULES, Rules
from skerry.plan.rules.apart import Apart, moved, spread_blocks
from skerry.plan.rules.blocks import as_part, as_scan, blocks
from skerry.plan.rules.disjunctions import implied
from skerry.plan.rules.equalities import infer_filters
from skerry.plan.rules.prune import KeptParts
from skerry.plan.rules.sets import is_asked_about, is_set
from skerry.plan.rules.subqueries import movable
from skerry.plan.selectivity import VALUES
from skerry.plan.size import Sizer
from skerry.sql.push import conjuncts, owner, resolve
from skerry.sql.scope import Scope, Scopes, Source, passes
from skerry.sql.statement import Query, Scan
from skerry.sql.walk import bare, find_all

# Rules that put a query in FROM.
MAKE_BLOCKS = ("blocks", "answers", "lookups", "subtrees", "grouped")

# Marks a query in FROM that was given up in a tree which this is a copy of: ends of the names under which it was.
BARRED = "barred"


class Mentions:
    """All mentions of a query's tree, by the names of their scans. The tree is not changed."""

    def __init__(
        self,
        query: Query,
        tree: exp.Expr,
        kept: KeptParts,
        rules: Rules,
        estimator: Estimator,
        barred: frozenset[str] = frozenset(),
    ) -> None:
        """`barred`: names of blocks that their member has no room for; another may answer them (`apart`).

        Those that the tree has marked are added to them.
        """
        self.barred = barred
        self.scans = {scan.node_name: scan for scan in query.tables}
        self.scopes = read_scopes(tree, self.scans)
        self._tree = tree
        self._by_source: dict[int, Mention] = {}
        self.all: dict[str, Mention] = {}
        for scope in self.scopes.all:
            for source in scope.sources:
                if source.table is not None:
                    scan = self.scans[source.node.name]
                    mention = Mention(scan, source, scope, kept.of(scan))
                    if rules.has("sets") and (is_set(scope) or is_asked_about(scope, source.node)):
                        mention.is_set = all(map(is_key, _types(scan)))
                    self.all[scan.node_name] = self._by_source[id(source)] = mention
        self.apart: dict[str, Mention] = {}
        if any(map(rules.has, MAKE_BLOCKS)):
            self._blocks(rules)
        if rules.has("apart"):
            self._apart(rules)
        for scope in self.scopes.all:
            if scope.plain:
                self._conditions(scope, rules)
                equal = self._arcs(scope)
                if rules.has("equalities"):
                    infer_filters(equal)
        for mention in self.all.values():
            for name in self.apart:  # no member is known that could give its keys
                mention.arcs.pop(name, None)
        self.all = {name: each for name, each in self.all.items() if name not in self.apart}
        for mention in self.all.values():
            # Conditions that the rules have found refute more parts than those that were written on the table.
            known = [each.plain for each in mention.conditions if each.subquery is None]
            mention.parts = kept.among(mention.parts, known)
        self._share()
        self._size(estimator)

    @cached_property
    def _names(self) -> set[str]:
        return _names_in(self._tree)

    def free_prefix(self, prefix: str) -> str:
        """As `free_prefix` says of the tree."""
        return _free(prefix, self._names)

    def _share(self) -> None:
        """An arm's table that travels for another mention too, all its rows, is better off without DISTINCT."""
        whole = {_rows(each) for each in self.all.values() if each.block is None and not each.is_set}
        for mention in self.all.values():
            asks = isinstance(mention.scope.select.parent, exp.Exists | exp.In)
            if mention.block is None and not asks and _rows(mention) in whole:
                mention.is_set = False

    def _blocks(self, rules: Rules) -> None:
        """Blocks stand beside their own tables' mentions: which of both travels is a matter of cost."""
        full: list[tuple[str, Apart]] = []
        prefix = self.free_prefix("block_")
        holders = {name: each.parts for name, each in self.all.items()}
        for number, block in enumerate(blocks(self.scopes, holders, only_answers=not rules.has("blocks"))):
            name = f"{prefix}{number}"
            self._bar(name, block)
            if name in self.barred:
                full.append((name, moved(block)))
                block = full[-1][1]
            self._add_block(name, block, rules)
        # Those in which others stand come after them.
        for name, _ in sorted(full, key=lambda item: len(item[1].text)):
            self.apart[name] = self.all[name]

    def _apart(self, rules: Rules) -> None:
        """Blocks over several sites are mentions while conditions are found; who answers them is asked later."""
        prefix = self.free_prefix("apart_")
        tables = {name: each for name, each in self.all.items() if each.block is None}
        holders = {name: each.parts for name, each in tables.items()}
        refs = {name: each.scan.table for name, each in tables.items()}
        found = spread_blocks(self._tree, self.scopes, holders, refs, only_answers=not rules.has("blocks"))
        for number, block in enumerate(found):
            self._bar(f"{prefix}{number}", block)
            self._add_block(f"{prefix}{number}", block, rules)
            self.apart[f"{prefix}{number}"] = self.all[f"{prefix}{number}"]

    def _bar(self, name: str, block: Block) -> None:
        self.barred = self.barred.union(f"{name}{end}" for end in block.source.node.meta_get(BARRED, ()))

    def _add_block(self, name: str, block: Block, rules: Rules) -> None:
        scan = as_scan(name, block)
        block.source.table = scan.table
        block.source.columns = tuple(column.name.lower() for column in block.columns)
        part = as_part(name, block, Estimate(1.0, {}, 1.0))  # as large as it is when its conditions are known
        mention = Mention(scan, block.source, block.scope, (part,), block=block)
        mention.is_set = block.is_set and rules.has("sets") and all(map(is_key, _types(scan)))
        self.all[name] = self._by_source[id(block.source)] = mention

    def _size(self, estimator: Estimator) -> None:
        """Blocks, and sets that conditions look into, as large as they are when all conditions are known."""
        held = {name: each.parts for name, each in self.all.items()}
        sizer = Sizer({name: each for name, each in self.all.items() if each.block is None}, estimator)
        for name, mention in {**self.all, **self.apart}.items():
            for condition in mention.conditions:
                if condition.subquery is not None and isinstance(condition.filter, exp.In):
                    condition.plain.meta[VALUES] = max(1.0, sizer.of(condition.filter.args["query"]).rows)
            if mention.block is not None:
                size = sizer.of(mention.block.body)
                if estimator.observed:
                    size = estimator.as_seen(size, block_key(mention.block, held))
                mention.parts = (as_part(name, mention.block, size),)
                mention.reads = reads(mention.block.names, held)
            for condition in mention.conditions:
                if condition.subquery is not None:
                    mention.reads += reads(condition.subquery.names, held)

    def _conditions(self, scope: Scope, rules: Rules) -> None:
        for conjunct, allowed in conjuncts(scope):
            source = owner(conjunct, scope)
            if source is not None:
                if source in allowed:
                    self._by_source[id(source)].conditions.append(Condition(bare(conjunct).copy(), conjunct))
                continue
            if rules.has("disjunctions"):
                for source, filter_ in implied(conjunct, scope):
                    if source in allowed:
                        self._by_source[id(source)].conditions.append(Condition(filter_, None))
            if rules.has("subqueries"):
                self._subquery(conjunct, allowed, scope)

    def _subquery(self, conjunct: exp.Expr, allowed: Sequence[Source], scope: Scope) -> None:
        found = movable(conjunct, scope, self.scopes)
        if found is None or found.owner not in allowed:
            return
        mention = self._by_source[id(found.owner)]
        inside = [self.all[name] for name in found.names]
        if (
            len(mention.parts) == 1
            and all(each.parts[0].member == mention.parts[0].member for each in inside)
            and all(len(each.parts) == 1 for each in inside)
        ):
            mention.conditions.append(Condition(bare(conjunct).copy(), conjunct, found))

    def _arcs(self, scope: Scope) -> list[list[tuple[Mention, str]]]:
        """Answers the groups of columns that are equal in every row that survives."""
        equal: dict[tuple[int, str], set[tuple[int, str]]] = {}
        by_id: dict[int, Mention] = {}
        for conjunct, allowed in conjuncts(scope):
            sides = _equality(conjunct)
            if sides is None:
                continue
            (a, a_is_own), (b, b_is_own) = (self._column(side, scope) for side in sides)
            if a is None or b is None or a[0] is b[0] or not (a_is_own or b_is_own):
                continue
            for (one, own), (other, _) in (((a, a_is_own), (b, b_is_own)), ((b, b_is_own), (a, a_is_own))):
                if own and one[0].source in allowed:
                    _add(one, other)
            if a_is_own and b_is_own and a[0].source in allowed and b[0].source in allowed and _type(a) == _type(b):
                by_id |= {id(each): each for each, _ in (a, b)}
                _unite(equal, (id(a[0]), a[1]), (id(b[0]), b[1]))
        groups = []
        for group in {id(group): group for group in equal.values()}.values():
            members = sorted(((by_id[key], column) for key, column in group), key=lambda item: (item[0].name, item[1]))
            for one in members:
                for other in members:
                    if one[0] is not other[0]:
                        _add(one, other)
            groups.append(members)
        return groups

    def _column(self, node: exp.Column, scope: Scope) -> tuple[tuple[Mention, str] | None, bool]:
        """The mention and the column's name, and whether it is of this scope and not of one around it."""
        for around in scope.chain():
            source = resolve(node, around)
            if source is not None:
                column = source.table.column(node.name) if source.table is not None else None
                if column is None or not is_key(column.type):
                    return None, False
                return (self._by_source[id(source)], column.name), around is scope
            if not passes(node, around):
                return None, False
        return None, False


def result_size(query: Query, kept: KeptParts, estimator: Estimator) -> Estimate:
    """How large the result is likely to be, whatever is done to its tables."""
    tree = query.tree.copy()
    mentions = Mentions(query, tree, kept, NO_RULES, estimator)
    return Sizer(mentions.all, estimator).of(tree)


def read_scopes(tree: exp.Expr, scans: Iterable[str] | dict[str, Scan]) -> Scopes:
    """The scopes of a tree whose tables are scans already."""
    assert isinstance(scans, dict)
    tables = {id(node): scans[node.name].table for node in find_all(tree, exp.Table) if node.name in scans}
    scopes = Scopes(tables)
    scopes.read(tree, {}, None)
    return scopes


def free_prefix(tree: exp.Expr, prefix: str) -> str:
    """The prefix, or more of it where the tree has names that begin so."""
    return _free(prefix, _names_in(tree))


def _names_in(tree: exp.Expr) -> set[str]:
    """All names, in lower case."""
    return {node.name.lower() for node in find_all(tree, exp.Identifier)}


def _free(prefix: str, taken: set[str]) -> str:
    while any(name.startswith(prefix) for name in taken):
        prefix = f"skerry_{prefix}"
    return prefix


def alike(mentions: Iterable[Mention]) -> list[list[Mention]]:
    """Tables of which the same rows are asked for more than once."""
    found: dict[tuple[str, str | None, tuple[str, ...]], list[Mention]] = {}
    for mention in mentions:
        if mention.block is None:
            found.setdefault(_rows(mention), []).append(mention)
    return [each for each in found.values() if len(each) > 1]


def _rows(mention: Mention) -> tuple[str, str | None, tuple[str, ...]]:
    """Alike for mentions of the same rows of a table."""
    table = mention.scan.table
    return table.name, table.member, tuple(sorted(each.text for each in mention.conditions))


def _types(scan: Scan) -> list[str]:
    """The types of the columns that the query needs."""
    return [column.type for column in scan.table.columns if column.name in scan.columns]


def _equality(conjunct: exp.Expr) -> tuple[exp.Column, exp.Column] | None:
    conjunct = bare(conjunct)
    if not isinstance(conjunct, exp.EQ):
        return None
    left, right = bare(conjunct.this), bare(conjunct.expression)
    return (left, right) if isinstance(left, exp.Column) and isinstance(right, exp.Column) else None


def _type(end: tuple[Mention, str]) -> str:
    column = end[0].scan.table.column(end[1])
    assert column is not None
    return column.type


def _add(one: tuple[Mention, str], other: tuple[Mention, str]) -> None:
    pair = (one[1], other[1])
    known = one[0].arcs.get(other[0].name, ())
    if pair not in known:
        one[0].arcs[other[0].name] = (*known, pair)


def _unite(groups: dict[tuple[int, str], set[tuple[int, str]]], a: tuple[int, str], b: tuple[int, str]) -> None:
    together = groups.get(a, {a}) | groups.get(b, {b})
    for each in together:
        groups[each] = together
