"""Tables of one FROM that may be joined before they travel: which they are, and what the rest asks of their columns.

Inner joins are in no order, so any of the tables that equalities connect may be joined first, anywhere; an outer join
that follows keeps them on its left. What is said
of them alone is said there: equalities, conditions on one of them, and conditions on several that cannot fail (a row
that the other tables would have dropped must not raise an error). Where a name or a table of a column is in doubt, its
table stays out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from sqlglot import exp

from skerry.model.table import Column
from skerry.plan.block import Block
from skerry.plan.mention import Mention, Shipment, is_key
from skerry.plan.rules.computed import cannot_fail, types_in
from skerry.sql.columns import is_unit
from skerry.sql.fields import names_field
from skerry.sql.functions import is_deterministic
from skerry.sql.prune import stars
from skerry.sql.push import conjuncts, owner, resolve
from skerry.sql.scope import Scope, Scopes, Source
from skerry.sql.walk import bare, columns_right_in, contains, find_all, nodes_of

# A column: the mention that it is of, and its name in lower case.
End = tuple[str, str]
_ONE_SIDED = ("SEMI", "ANTI")


@dataclass(frozen=True, eq=False)
class Conjunct:
    """A conjunct of WHERE or ON that may be applied as soon as the mentions `names` are joined, if it is safe.

    pair: it says that two columns are equal. is_implied: columns of one type, whose equality `Joinable.equal` knows.
    """

    node: exp.Expr
    names: frozenset[str]
    pair: tuple[End, End] | None = None
    is_implied: bool = False
    is_safe: bool = True


@dataclass(frozen=True, eq=False)
class Use:
    """A column in the tree. `within`: the conjunct that it stands in, if that may be moved."""

    node: exp.Column
    end: End
    within: Conjunct | None


@dataclass(frozen=True, eq=False)
class Joinable:
    """The tables of a FROM that may be joined apart from the rest of it, in the order of the text.

    equal: columns that are equal in every row that survives. own: columns that the rest must find under their own
    names, as something is named after them or as they may be aliases in the place where they stand. apart: columns
    that no equal one may stand for; one that is not among the groups' is Spark's error, whatever equals it. risky:
    the mentions of each condition that may fail; were all of them one relation, Spark could ask it of more rows.
    """

    scope: Scope
    mentions: Mapping[str, Mention]
    conjuncts: tuple[Conjunct, ...]
    equal: tuple[tuple[End, ...], ...]
    uses: tuple[Use, ...]
    own: frozenset[End]
    apart: frozenset[End]
    risky: tuple[frozenset[str], ...]

    def source_of(self, column: exp.Column) -> str:
        """The mention that a column of this scope is of."""
        source = resolve(column, self.scope)
        return next(name for name, each in self.mentions.items() if each.source is source)


@dataclass(frozen=True)
class Input:
    """What a join reads: a table, or tables that were joined before; with these columns."""

    mention: Mention
    shipment: Shipment
    columns: tuple[Column, ...]


@dataclass(frozen=True, eq=False)
class Joined(Block):
    """Tables of one FROM joined at `member`. `ends`: what it calls each column; `tables` are those that it holds."""

    inputs: tuple[Input, ...] = ()
    ends: Mapping[End, str] = field(default_factory=dict)
    inside: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return self.inside

    @property
    def known_as(self) -> str:
        # What it joins is among what its mention reads.
        return "joined"


def joinables(scopes: Scopes, mentions: Mapping[str, Mention]) -> list[Joinable]:
    """One for each FROM with two such tables or more."""
    by_source = {id(each.source): each for each in mentions.values() if each.block is None}
    inside = scopes_within(scopes)
    found = (_of_scope(scope, inside[id(scope)], by_source) for scope in scopes.all if len(scope.sources) > 1)
    return [each for each in found if each is not None]


def scopes_within(scopes: Scopes) -> dict[int, list[Scope]]:
    """By the identity of each scope, those that may look at its columns: itself, and subqueries in it."""
    inside: dict[int, list[Scope]] = {}
    for scope in scopes.all:
        for around in scope.chain():
            inside.setdefault(id(around), []).append(scope)
    return inside


def _of_scope(scope: Scope, inside: list[Scope], by_source: Mapping[int, Mention]) -> Joinable | None:
    if not is_free(scope) or any(stars(scope.select)):
        return None
    aliases = Counter(source.alias for source in scope.sources)
    first = {id(each.this) for each in (scope.select.args["from_"], *inner_joins(scope.select))}
    mentions = {
        by_source[id(source)].name: by_source[id(source)]
        for source in scope.sources
        if id(source) in by_source and id(source.node) in first and not source.renamed and aliases[source.alias] == 1
    }
    reader = Reader(scope, inside, mentions)
    reader.read()
    kept = {name: each for name, each in mentions.items() if name not in reader.doubtful and _is_plain(each)}
    if len(kept) < 2:
        return None
    conditions = list(_conjuncts(scope, kept))
    moving = [each for each in conditions if each.is_safe]
    risky = tuple(each.names for each in conditions if not each.is_safe)
    by_node = {id(each.node): each for each in moving}
    uses = tuple(Use(node, end, by_node.get(id(conjunct))) for node, end, conjunct in reader.uses if end[0] in kept)
    equal = _classes([each.pair for each in moving if each.is_implied and each.pair is not None])
    own = frozenset(reader.own)
    return Joinable(scope, kept, tuple(moving), equal, uses, own, own | _ungrouped(scope, equal, uses), risky)


def _ungrouped(scope: Scope, equal: tuple[tuple[End, ...], ...], uses: tuple[Use, ...]) -> set[End]:
    """Equal columns of which the rest asks for one that is no group of its own: it may be an error, and stays one."""
    group = scope.select.args.get("group")
    if group is None:
        return set()
    listed = {use.end for use in uses if use.node.parent is group}
    asked = {use.end for use in uses if use.within is None}
    return {end for each in equal if not asked.intersection(each) <= listed for end in each if end in asked}


def inner_joins(select: exp.Select) -> list[exp.Join]:
    """The joins that FROM begins with and that may be made in any order; an outer join ends them."""
    joins: list[exp.Join] = select.args.get("joins") or []
    outer = (index for index, join in enumerate(joins) if join.args.get("side") or join.args.get("kind") in _ONE_SIDED)
    return joins[: next(outer, len(joins))]


def is_free(scope: Scope) -> bool:
    """Relations whose columns are all known, and nothing after them that does not keep their rows as they are."""
    select = scope.select
    joins = select.args.get("joins") or []
    if not scope.plain or select.args.get("laterals") or any(source.columns is None for source in scope.sources):
        return False
    if any(isinstance(join.this, exp.Lateral) or join.args.get("using") or join.args.get("method") for join in joins):
        return False
    return not any(join.args.get("side") in ("RIGHT", "FULL") for join in joins) and is_where(scope, joins)


def is_where(scope: Scope, joins: list[exp.Join]) -> bool:
    """May each ON stand in WHERE? There Spark would see more tables, and let chance decide."""
    by_node = {id(source.node): source for source in scope.sources}
    seen = [by_node.get(id(scope.select.args["from_"].this))]
    for join in joins:
        seen = ([] if join.args.get("kind") == "COMMA" else seen) + [by_node.get(id(join.this))]
        on: exp.Expr | None = join.args.get("on")
        if on is None:
            continue
        if not is_deterministic(on):
            return False
        later = [source for source in scope.sources if source not in seen]
        if any(_may_be_of(column, later, seen) for column in find_all(on, exp.Column)):
            return False
    return True


def _may_be_of(column: exp.Column, later: list[Source], seen: list[Source | None]) -> bool:
    """Would the name also be one of these tables, in a subquery of ON too, if they were to be seen?"""
    first = column.parts[0].name.lower()
    is_qualified = len(column.parts) > 1 and any(source is not None and source.alias == first for source in seen)
    return any(source.alias == first or (not is_qualified and first in (source.columns or ())) for source in later)


def _is_plain(mention: Mention) -> bool:
    """A condition with a subquery needs more than the table."""
    return all(condition.subquery is None for condition in mention.conditions)


class Named(Protocol):
    """A relation of a FROM, and what it is called."""

    @property
    def name(self) -> str: ...

    @property
    def source(self) -> Source: ...


class Reader:
    """Finds every column of the mentions in their scope and in the scopes inside it."""

    def __init__(self, scope: Scope, inside: list[Scope], mentions: Mapping[str, Named]) -> None:
        self._scope = scope
        self._inside = inside
        self._mentions = mentions
        self._by_alias = {each.source.alias: each for each in mentions.values()}
        self._conjuncts = {id(conjunct) for conjunct, _ in conjuncts(scope)}
        self.uses: list[tuple[exp.Column, End, exp.Expr | None]] = []
        self.own: set[End] = set()
        self.doubtful: set[str] = set()
        self._places: dict[int, tuple[exp.Expr | None, exp.Expr | None]] = {}
        lambdas = find_all(scope.select, exp.Lambda)
        self._in_lambdas = {id(node) for each in lambdas for node in nodes_of(each)}

    def read(self) -> None:
        # A query in FROM sees nothing of what stands beside it.
        beside = [each.node for each in self._scope.sources if isinstance(each.node, exp.Subquery)]
        seen = {id(column) for node in beside for column in find_all(node, exp.Column)}
        for scope in self._inside:
            for column in scope.columns:
                seen.add(id(column))
                self._column(column, scope)
        for column in find_all(self._scope.select, exp.Column):
            if id(column) not in seen:  # it stands where nobody looks for columns
                parts = [part.name.lower() for part in column.parts]
                self.doubtful |= {each.name for each in self._mentions.values() if _is_of(parts, each)}
        # Two columns cannot both be called so.
        names: dict[str, set[str]] = {}
        for name, called in self.own:
            names.setdefault(called, set()).add(name)
        self.doubtful |= {name for holders in names.values() if len(holders) > 1 for name in holders}

    def _column(self, column: exp.Column, scope: Scope) -> None:
        if is_unit(column):
            return
        parts = [part.name.lower() for part in column.parts]
        is_inner = scope is not self._scope
        if parts[0] == "_metadata" or id(column) in self._in_lambdas:
            # What the text does not name as a column, or a name that a lambda may have given.
            self.doubtful |= {
                each.name for each in self._mentions.values() if parts[0] == "_metadata" or _is_of(parts, each)
            }
            return
        qualified = self._by_alias.get(parts[0]) if len(parts) > 1 else None
        if is_inner and self._may_be_inside(parts[0], scope, qualified is not None):
            # A name that a scope inside may know is its own, or in doubt: then nothing here is said of it.
            if qualified is not None and not self._is_surely_inside(parts[0], scope):
                self.doubtful.add(qualified.name)
            return
        if qualified is not None:
            table = qualified.source.table
            if len(parts) > 2 or table is None or table.column(parts[1]) is None:
                self.doubtful.add(qualified.name)
                return
            self._use(column, (qualified.name, parts[1]), is_own=is_inner)
            return
        holders = [source for source in self._scope.sources if parts[0] in (source.columns or ())]
        mine = [each for each in self._mentions.values() if each.source in holders]
        if len(holders) != 1 or (mine and (mine[0].source.columns or ()).count(parts[0]) != 1):
            self.doubtful |= {each.name for each in mine}
        elif mine:
            self._use(column, (mine[0].name, parts[0]), is_own=is_inner or len(parts) > 1)

    def _may_be_inside(self, name: str, scope: Scope, is_qualified: bool) -> bool:
        for around in scope.chain():
            if around is self._scope:
                return False
            for source in around.sources:
                if (is_qualified and source.alias == name) or name in (source.columns or ()):
                    return True
                if is_qualified and source.columns is None:
                    return True
        return False

    def _is_surely_inside(self, alias: str, scope: Scope) -> bool:
        for around in scope.chain():
            if around is self._scope:
                return False
            if any(source.alias == alias for source in around.sources):
                return True
        return False

    def _use(self, column: exp.Column, end: End, is_own: bool) -> None:
        conjunct, clause = self._place(column) if not is_own else (None, None)
        if names_field(column) or (conjunct is None and (is_own or not self._is_free(column, clause))):
            self.own.add(end)
        self.uses.append((column, end, conjunct))

    def _place(self, column: exp.Column) -> tuple[exp.Expr | None, exp.Expr | None]:
        """The conjunct that it stands in, and the part of the SELECT."""
        node: exp.Expr = column
        passed = []
        while id(node) not in self._places:
            passed.append(id(node))
            if id(node) in self._conjuncts:
                self._places[id(node)] = node, None
            elif node.parent is None or node.parent is self._scope.select:
                self._places[id(node)] = None, node
            else:
                node = node.parent
        # The next column on this way need not go it again: a row of `||` is as deep as it is long.
        place = self._places[id(node)]
        self._places.update(dict.fromkeys(passed, place))
        return place

    @cached_property
    def _has_sets(self) -> bool:
        group = self._scope.select.args.get("group")
        return group is not None and contains(group, exp.Rollup, exp.Cube, exp.GroupingSets)

    def _is_free(self, column: exp.Column, clause: exp.Expr | None) -> bool:
        """May it be called otherwise there? In ORDER BY and HAVING a name may be an alias first."""
        if clause is None or self._scope.select.args.get("distinct"):
            return False
        if clause.arg_key == "group":
            # A set of groups that lacks one of two equal columns must not show it.
            return not self._has_sets
        return clause.arg_key == "expressions" and (clause is column or isinstance(clause, exp.Alias))


def _is_of(parts: list[str], mention: Named) -> bool:
    return parts[0] == mention.source.alias or parts[0] in (mention.source.columns or ())


def _conjuncts(scope: Scope, mentions: Mapping[str, Mention]) -> Iterator[Conjunct]:
    types = types_in(scope)
    names = {id(each.source): name for name, each in mentions.items()}
    own = {id(condition.stands) for each in mentions.values() for condition in each.conditions}
    for conjunct, allowed in conjuncts(scope):
        single = owner(conjunct, scope)
        if single is not None:
            if id(single) in names and id(conjunct) in own:
                yield Conjunct(conjunct, frozenset((names[id(single)],)))
            continue
        # Subqueries ask of rows of their own; what they are compared with is asked of these.
        columns = columns_right_in(scope.select, conjunct)
        sources = [resolve(column, scope) for column in columns]
        known = {names[id(source)] for source in sources if source is not None and id(source) in names}
        if len(known) < 2 or any(source is not None and id(source) not in names for source in sources):
            continue
        if None in sources or not all(source in allowed for source in sources) or not cannot_fail(conjunct, types):
            yield Conjunct(conjunct, frozenset(known), is_safe=False)
            continue
        pair = _pair(conjunct, scope, names)
        alike = pair is not None and _type(mentions, pair[0]) == _type(mentions, pair[1])
        yield Conjunct(
            conjunct, frozenset(known), pair, alike and pair is not None and is_key(_type(mentions, pair[0]))
        )


def _pair(conjunct: exp.Expr, scope: Scope, names: Mapping[int, str]) -> tuple[End, End] | None:
    conjunct = bare(conjunct)
    if not isinstance(conjunct, exp.EQ):
        return None
    ends: list[End] = []
    for side in (conjunct.this, conjunct.args["expression"]):
        side = bare(side)
        source: Source | None = resolve(side, scope) if isinstance(side, exp.Column) else None
        if source is None:
            return None
        ends.append((names[id(source)], side.name.lower()))
    return ends[0], ends[1]


def _type(mentions: Mapping[str, Mention], end: End) -> str:
    column = mentions[end[0]].scan.table.column(end[1])
    assert column is not None
    return column.type


def _classes(pairs: list[tuple[End, End]]) -> tuple[tuple[End, ...], ...]:
    groups: dict[End, set[End]] = {}
    for a, b in pairs:
        together = groups.get(a, {a}) | groups.get(b, {b})
        for each in together:
            groups[each] = together
    return tuple(sorted(tuple(sorted(group)) for group in {id(group): group for group in groups.values()}.values()))
