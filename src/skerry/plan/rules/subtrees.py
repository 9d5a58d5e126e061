"""Relations of one site that an outer, semi or anti join of FROM joins are joined there, as a query in FROM is.

`(o LEFT JOIN l ON …) JOIN c` is `(SELECT … FROM o LEFT JOIN l ON …) AS s JOIN c`: what FROM begins with is a relation
by itself, whatever joins it (so is what follows a comma). Elsewhere a join is taken out of its place and made first. It
may be when its condition speaks of the block S and of its own relation t alone, for then it asks nothing of the rows
that S is joined with:

    (R JOIN S) J t = R JOIN (S J t)            J: inner, left, semi, anti; likewise R RIGHT JOIN S, where S is kept
    (R LEFT JOIN S) LEFT JOIN t = R LEFT JOIN (S LEFT JOIN t)    if no row of NULLs in S meets a t; likewise FULL

An equality of a column of S meets none. Inner, left, semi and anti joins of R with others may stand in between: they
ask nothing of t, and keep or drop rows of S or put others beside them. After a right or full join nothing is moved,
since it makes rows of NULLs of S. A condition that is asked of more rows so must not fail on them. Where a name is in
doubt, or a join is NATURAL, or something asks for the column that USING makes, everything stays as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from skerry.model.names import TableRef
from skerry.model.table import Column, TablePart
from skerry.plan.rules.blocks import ANSWER, blocks
from skerry.plan.rules.computed import cannot_fail, types_in
from skerry.plan.rules.filters import without_moved
from skerry.plan.rules.joined import End, Reader, scopes_within
from skerry.plan.trees import conjunction, rename
from skerry.sql.functions import is_deterministic
from skerry.sql.prune import stars
from skerry.sql.push import conjuncts, owner, resolve, split
from skerry.sql.scope import Scope, Scopes, Source
from skerry.sql.walk import bare, columns_right_in, find_all

JOINED = "joined there as the query joins them"
_ONE_SIDED = ("SEMI", "ANTI")
_RIGHT = ("RIGHT", "FULL")


@dataclass(frozen=True, eq=False)
class Relation:
    """One of a FROM: `join` brings it, None if it is the first. `home`: the one member that has its rows, if any."""

    name: str
    source: Source
    join: exp.Join | None
    home: str

    @property
    def side(self) -> str:
        """LEFT, RIGHT or FULL of an outer join."""
        return "" if self.is_one_sided or self.join is None else self.join.args.get("side") or ""

    @property
    def is_one_sided(self) -> bool:
        return self.join is not None and self.join.args.get("kind") in _ONE_SIDED

    @property
    def is_first(self) -> bool:
        """Does FROM, or what stands after a comma, begin with it?"""
        return self.join is None or self.join.args.get("kind") == "COMMA"

    @property
    def on(self) -> exp.Expr | None:
        return self.join.args.get("on") if self.join is not None else None


@dataclass(frozen=True, eq=False)
class Subtree:
    """Relations that are joined in their order before the others, in the place of the first.

    moved: conjuncts of WHERE that are asked there. uses: columns that the rest names, own: those of them that it must
    find under their own names.
    """

    scope: Scope
    inside: tuple[Relation, ...]
    moved: tuple[exp.Expr, ...]
    uses: tuple[tuple[exp.Column, End], ...]
    own: frozenset[End]


def put_subtree(
    scopes: Scopes, holders: Mapping[str, Sequence[TablePart]], tried: set[tuple[str, ...]], name: str
) -> bool:
    """Puts the first subtree that was not tried in FROM, as `name`; the tree is changed only if there is one.

    `holders` has the parts of each scan's table.
    """
    for each in blocks(scopes, holders):
        # A query that is answered at its site has columns as a table has.
        each.source.table = TableRef(each.source.alias, each.member, each.columns)
        each.source.columns = tuple(column.name.lower() for column in each.columns)
    within = scopes_within(scopes)
    for scope in scopes.all:
        relations = _relations(scope, holders) if _is_open(scope) else None
        if relations is None or not _without_using(scope, within[id(scope)]):
            continue
        for inside in _grown(scope, relations):
            key = tuple(each.name for each in inside)
            found = _subtree(scope, within[id(scope)], inside, holders) if key not in tried else None
            tried.add(key)
            if found is not None:
                _put(found, name)
                return True
    return False


def has_outer_join(tree: exp.Expr) -> bool:
    """Whether it is worth to look for subtrees at all."""
    return any(map(_is_outer, find_all(tree, exp.Join)))


def _is_outer(join: exp.Join) -> bool:
    return bool(join.args.get("side")) or join.args.get("kind") in _ONE_SIDED


def _is_open(scope: Scope) -> bool:
    """A flat FROM of relations whose columns are all known, outside of subqueries, some of them outer joined."""
    select = scope.select
    joins = select.args.get("joins") or []
    if scope.parent is not None or not scope.plain or select.args.get("laterals") or any(stars(select)):
        return False
    if not any(map(_is_outer, joins)):
        return False
    if any(isinstance(join.this, exp.Lateral) or join.args.get("method") for join in joins):
        return False
    return len(joins) > 1 and all(source.columns is not None for source in scope.sources)


def _without_using(scope: Scope, within: Sequence[Scope]) -> bool:
    """USING (k) is ON a.k = b.k if only these two have a k, and nobody asks for the one that it makes of both."""
    joins = [join for join in scope.select.args["joins"] if join.args.get("using")]
    names = {column.name.lower() for join in joins for column in join.args["using"]}
    holders = {name: [source for source in scope.sources if name in (source.columns or ())] for name in names}
    if names & {column.parts[0].name.lower() for each in within for column in each.columns}:
        return False
    for join in joins:
        sides = [holders[column.name.lower()] for column in join.args["using"]]
        if any(len(side) != 2 or side[1].node is not join.this for side in sides):
            return False
    for join in joins:
        equal: list[exp.Expr] = []
        for name in [column.name for column in join.args["using"]]:
            ends = [
                exp.Column(this=exp.Identifier(this=name, quoted=True), table=_alias(source).copy())
                for source in holders[name.lower()]
            ]
            scope.columns.extend(ends)
            equal.append(exp.EQ(this=ends[0], expression=ends[1]))
        join.set("on", conjunction(equal))
        join.set("using", None)
    return True


def _relations(scope: Scope, holders: Mapping[str, Sequence[TablePart]]) -> list[Relation] | None:
    """In the order of FROM; None if they are all at one member, where they are a block as a whole."""
    by_node = {id(source.node): source for source in scope.sources}
    select = scope.select
    steps: list[tuple[exp.Expr, exp.Join | None]] = [(select.args["from_"].this, None)]
    steps += [(join.this, join) for join in select.args["joins"]]
    aliases = Counter(source.alias for source in scope.sources)
    found: list[Relation] = []
    for number, (node, join) in enumerate(steps):
        source = by_node.get(id(node))
        if source is None:
            return None
        home = _home(source, holders) if aliases[source.alias] == 1 and not source.renamed else ""
        name = source.node.name if isinstance(node, exp.Table) else f"{number} {source.alias}"
        found.append(Relation(name, source, join, home))
    return found if len({each.home for each in found}) > 1 else None


def _home(source: Source, holders: Mapping[str, Sequence[TablePart]]) -> str:
    if source.table is None or source.node.meta.get(ANSWER) == JOINED:
        return ""
    if isinstance(source.node, exp.Table):
        parts = holders.get(source.node.name, ())
        return parts[0].member if len(parts) == 1 else ""
    return source.table.member or ""


def _grown(scope: Scope, relations: Sequence[Relation]) -> Iterator[tuple[Relation, ...]]:
    """From each relation, all that may be joined with it at its site; then without the last of them, and so on."""
    for start, first in enumerate(relations):
        if not first.home or first.is_one_sided:
            continue
        inside = [first]
        for place in range(start + 1, len(relations)):
            each = relations[place]
            if each.is_first:
                break
            # What FROM begins with is as it was written, and needs no proof.
            is_whole = first.is_first and len(inside) == place - start
            if each.home == first.home and _joins(scope, inside, each, is_whole):
                inside.append(each)
            elif each.side in _RIGHT:
                break
        for count in range(len(inside), 1, -1):
            if any(each.side or each.is_one_sided for each in inside[1:count]):
                yield tuple(inside[:count])


def _joins(scope: Scope, inside: Sequence[Relation], each: Relation, is_whole: bool) -> bool:
    """May it be joined with these before they are joined with others?"""
    if each.on is None:
        return is_whole
    known = {id(relation.source) for relation in (*inside, each)}
    if not is_deterministic(each.on) or each.on.find(exp.Query, exp.Lambda) is not None:
        return False
    if any(id(resolve(column, scope)) not in known for column in find_all(each.on, exp.Column)):
        return False
    if is_whole:
        return True
    types, conditions = types_in(scope), split(each.on)
    if each.side in _RIGHT or not all(cannot_fail(condition, types) for condition in conditions):
        return False
    is_equal = any(_equates(condition, scope, inside, each) for condition in conditions)
    if inside[0].side in ("LEFT", "FULL"):
        return each.side == "LEFT" and is_equal
    return is_equal or each.side == "LEFT" or each.is_one_sided


def _equates(condition: exp.Expr, scope: Scope, inside: Sequence[Relation], each: Relation) -> bool:
    """A column of `inside` that equals one of the other relation, so none that is NULL."""
    condition = bare(condition)
    if not isinstance(condition, exp.EQ):
        return False
    ends = [condition.this, condition.args["expression"]]
    sources = [resolve(end, scope) if isinstance(end, exp.Column) else None for end in ends]
    return each.source in sources and any(relation.source in sources for relation in inside)


def _subtree(
    scope: Scope, within: list[Scope], inside: Sequence[Relation], holders: Mapping[str, Sequence[TablePart]]
) -> Subtree | None:
    """None if a name is in doubt that the rest may mean one of these relations by."""
    reader = Reader(scope, within, {each.name: each for each in inside})
    reader.read()
    if reader.doubtful:
        return None
    sources = [each.source for each in inside]
    where = scope.select.args.get("where")
    asked = {id(conjunct) for conjunct in split(where.this)} if where is not None else set()
    # Only what may be asked of one of them before all joins; more is asked of what the block gives, as of any block.
    moved = tuple(
        conjunct
        for conjunct, allowed in conjuncts(scope)
        if id(conjunct) in asked and (single := owner(conjunct, scope)) in sources and single in allowed
    )
    gone = [*moved, *(each.on for each in inside[1:] if each.on is not None)]
    taken = {id(column) for condition in gone for column in find_all(condition, exp.Column)}
    uses = tuple((node, end) for node, end, _ in reader.uses if id(node) not in taken)
    hidden = {each.name for each in inside if each.is_one_sided}
    if any(end[0] in hidden for _, end in uses):
        return None  # Spark does not know it there
    others = list(_others(scope, gone)) if not _is_contiguous(scope, inside) else []
    # Chance would decide of each row again that a join has made of one.
    if any(not is_deterministic(each) or _may_fail(each, scope, inside, holders) for each in others):
        return None
    return Subtree(scope, tuple(inside), moved, uses, frozenset(reader.own))


def _is_contiguous(scope: Scope, inside: Sequence[Relation]) -> bool:
    """Are they what FROM, or what follows a comma, begins with?"""
    joins = [each.join for each in inside[1:]]
    place = next((place for place, join in enumerate(scope.select.args["joins"]) if join is inside[0].join), -1)
    return inside[0].is_first and joins == scope.select.args["joins"][place + 1 : place + 1 + len(joins)]


def _others(scope: Scope, gone: Sequence[exp.Expr]) -> Iterator[exp.Expr]:
    """Conjuncts that stay in the tree."""
    taken = {id(each) for condition in gone for each in split(condition)}
    return (conjunct for conjunct, _ in conjuncts(scope) if id(conjunct) not in taken)


def _may_fail(
    conjunct: exp.Expr, scope: Scope, inside: Sequence[Relation], holders: Mapping[str, Sequence[TablePart]]
) -> bool:
    """Is it one that the block would be asked, of rows that others had dropped before, and that may fail on them?"""
    homes = [[part.member for part in holders.get(table.name, ())] for table in find_all(conjunct, exp.Table)]
    if any(home != [inside[0].home] for home in homes):
        return False  # its subquery reads what is not there
    columns = columns_right_in(scope.select, conjunct)
    sources = [each.source for each in inside]
    if any((source := resolve(column, scope)) is not None and source not in sources for column in columns):
        return False
    return not cannot_fail(conjunct, types_in(scope))


def _put(subtree: Subtree, name: str) -> None:
    """The relations as a query in FROM that gives the columns which the rest asks for."""
    select, alias = subtree.scope.select, exp.Identifier(this=name, quoted=False)
    by_name = {each.name: each.source for each in subtree.inside}
    columns = _columns(subtree, by_name, name)
    items: list[exp.Expr] = [
        exp.Alias(
            this=exp.Column(this=exp.Identifier(this=own.name, quoted=True), table=_alias(by_name[end[0]]).copy()),
            alias=exp.Identifier(this=called, quoted=True),
        )
        for end, (own, called) in columns.items()
    ]
    if not items:
        items = [exp.Alias(this=exp.Literal.number(1), alias=exp.Identifier(this=f"{name}_0", quoted=True))]
    for node, end in subtree.uses:
        rename(node, by_name[end[0]].alias, alias, columns[end][1])
    moved = [bare(conjunct).copy() for conjunct in subtree.moved]
    without_moved(select, {id(conjunct) for conjunct in subtree.moved})
    first, *others = subtree.inside
    gone = {id(each.join) for each in others}
    body = exp.Select(expressions=items, joins=[each.join.copy() for each in others if each.join is not None])
    body.set("from_", exp.From(this=first.source.node.copy()))
    if moved:
        body.set("where", exp.Where(this=conjunction(moved)))
    derived = exp.Subquery(this=body, alias=exp.TableAlias(this=alias))
    derived.meta[ANSWER] = JOINED
    first.source.node.replace(derived)
    select.set("joins", [join for join in select.args["joins"] if id(join) not in gone] or None)


def _columns(subtree: Subtree, by_name: Mapping[str, Source], name: str) -> dict[End, tuple[Column, str]]:
    """Each with what the block calls it: its own name, unless another has that."""
    taken: set[str] = set()
    found: dict[End, tuple[Column, str]] = {}
    for end in sorted({end for _, end in subtree.uses}, key=lambda end: (end not in subtree.own, end)):
        table = by_name[end[0]].table
        column = table.column(end[1]) if table is not None else None
        assert column is not None, "what is no column of its table is in doubt"
        found[end] = column, f"{name}_{len(found)}" if end[1] in taken else column.name
        taken.add(end[1])
    return found


def _alias(source: Source) -> exp.Identifier:
    return source.node.args["alias"].this  # type: ignore[no-any-return]
