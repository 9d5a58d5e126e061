"""The trees of rule `joined`: the query that joins tables before they travel, and the rest that reads what it gives."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from sqlglot import exp

from skerry.model.table import Column
from skerry.plan.condition import Condition
from skerry.plan.mention import Mention
from skerry.plan.rules.joined import Conjunct, End, Joinable, Joined, inner_joins
from skerry.plan.trees import conjunction, rename
from skerry.sql.columns import is_unit
from skerry.sql.push import listed, split
from skerry.sql.walk import find_all


def is_inside(conjunct: Conjunct | None, names: Collection[str]) -> bool:
    """Is it applied where these mentions are joined?"""
    return conjunct is not None and all(name in names for name in conjunct.names)


def sent_ends(joinable: Joinable, names: Collection[str]) -> dict[End, End]:
    """For each column that is known of once these mentions are joined, the one that is sent for it.

    Of columns that are equal one is enough, but for those that must be told apart.
    """
    needed = {use.end for use in joinable.uses if use.end[0] in names and not is_inside(use.within, names)}
    found = {end: end for end in needed}
    for group in joinable.equal:
        inside = [end for end in group if end[0] in names]
        wanted = [end for end in inside if end in needed]
        if wanted:
            kept = [end for end in wanted if end in joinable.apart]
            first = min(kept or wanted)
            found |= {end: end if end in kept else first for end in inside}
    return found


def named(joinable: Joinable, ends: Mapping[End, End], prefix: str) -> dict[End, Column]:
    """The columns that are sent: their own names where these are unique."""
    sent = sorted(set(ends.values()), key=lambda end: (end not in joinable.own, end))
    taken: set[str] = set()
    found: dict[End, Column] = {}
    for number, (name, column) in enumerate(sent):
        own = joinable.mentions[name].scan.table.column(column)
        assert own is not None
        found[name, column] = Column(f"{prefix}_{number}", own.type) if column in taken else own
        taken.add(column)
    return found


class Body:
    """The query over `inputs`: mentions of tables, or of tables that were joined before."""

    def __init__(self, joinable: Joinable, inputs: Sequence[Mention], member: str) -> None:
        self._joinable = joinable
        self._inputs = inputs
        self._member = member
        self.read: dict[str, set[str]] = {each.name: set() for each in inputs}
        self._by_name: dict[str, Mention] = {}
        for each in inputs:
            self._by_name |= dict.fromkeys(each.block.names if isinstance(each.block, Joined) else (each.name,), each)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._by_name)

    def query(self, columns: Mapping[End, Column]) -> exp.Select:
        items: list[exp.Expr] = [
            exp.Alias(this=self._column(end), alias=exp.Identifier(this=column.name, quoted=True))
            for end, column in columns.items()
        ]
        conditions = [*self._equalities(), *self._conjuncts(), *self._own_conditions()]
        relations: list[exp.Expr] = [
            exp.Table(this=exp.Identifier(this=each.name, quoted=False), alias=exp.TableAlias(this=each.alias.copy()))
            for each in self._inputs
        ]
        return exp.Select(
            expressions=items,
            from_=exp.From(this=relations[0]),
            joins=[exp.Join(this=each, kind="COMMA") for each in relations[1:]],
            where=exp.Where(this=conjunction(conditions)),
        )

    def _name(self, end: End) -> str:
        """What its input calls the column."""
        mention = self._by_name[end[0]]
        if isinstance(mention.block, Joined):
            return mention.block.ends[end]
        column = mention.scan.table.column(end[1])
        assert column is not None
        return column.name

    def _column(self, end: End) -> exp.Column:
        mention, name = self._by_name[end[0]], self._name(end)
        self.read[mention.name].add(name)
        return exp.Column(this=exp.Identifier(this=name, quoted=True), table=mention.alias.copy())

    def _equalities(self) -> Iterator[exp.Expr]:
        for group in self._joinable.equal:
            inside = [end for end in group if end[0] in self._by_name and self._has(end)]
            # Columns that were made one before are one here.
            columns = list({(self._by_name[end[0]].name, self._name(end)): end for end in inside}.values())
            for other in columns[1:]:
                yield exp.EQ(this=self._column(columns[0]), expression=self._column(other))

    def _has(self, end: End) -> bool:
        block = self._by_name[end[0]].block
        return not isinstance(block, Joined) or end in block.ends

    def _conjuncts(self) -> Iterator[exp.Expr]:
        """On several of the inputs; what is on one was applied before."""
        for conjunct in self._joinable.conjuncts:
            if conjunct.is_implied or not is_inside(conjunct, self._by_name):
                continue
            if len({self._by_name[name].name for name in conjunct.names}) > 1:
                yield self._moved(conjunct.node)

    def _own_conditions(self) -> Iterator[exp.Expr]:
        """The conditions on the tables that are here: those that come have passed theirs."""
        for each in self._inputs:
            if each.block is None and self._member in each.members:
                conditions: list[Condition] = each.conditions
                yield from (self._moved(condition.filter) for condition in conditions)

    def _moved(self, condition: exp.Expr) -> exp.Expr:
        holder = exp.Paren(this=condition.copy())
        for node in [each for each in find_all(holder, exp.Column) if not is_unit(each)]:
            node.replace(self._column((self._joinable.source_of(node), node.name.lower())))
        return holder.this  # type: ignore[no-any-return]


def absorbed(joinable: Joinable, names: Collection[str]) -> set[int]:
    """The conjuncts of the tree that are applied where these mentions are joined."""
    return {id(each.node) for each in joinable.conjuncts if is_inside(each, names)}


def put(joinable: Joinable, groups: Sequence[Mention]) -> None:
    """In the tree, joined tables stand as one table of the columns that they send."""
    for group in groups:
        assert isinstance(group.block, Joined)
        for use in joinable.uses:
            if use.end[0] in group.block.names and not is_inside(use.within, group.block.names):
                rename(use.node, joinable.mentions[use.end[0]].source.alias, group.alias, group.block.ends[use.end])
    select = joinable.scope.select
    standing = {
        id(joinable.mentions[name].source.node): group
        for group in groups
        if isinstance(group.block, Joined)
        for name in group.block.names
    }
    relations: dict[int, exp.Expr] = {}
    for node in (select.args["from_"].this, *(join.this for join in inner_joins(select))):
        stands = standing[id(node)].source.node if id(node) in standing else node
        relations.setdefault(id(stands), stands)
    put_inner(select, list(relations.values()))


def put_inner(select: exp.Select, relations: Sequence[exp.Expr]) -> None:
    """These relations, in this order, in the places of those of the inner joins that FROM begins with."""
    joins = inner_joins(select)
    rest = (select.args.get("joins") or [])[len(joins) :]
    on = [each for join in joins if join.args.get("on") is not None for each in split(join.args["on"])]
    on = [each for each in on if not (isinstance(each, exp.Boolean) and each.this)]
    where = split(select.args["where"].this) if select.args.get("where") is not None else []
    first, *others = relations
    # Where outer joins follow there are no commas, which would hide from their ON what stands before.
    inner = [exp.Join(this=each, kind="CROSS" if rest else "COMMA") for each in others]
    if rest and inner and on:
        inner[-1] = exp.Join(this=others[-1], on=conjunction(listed(on)))
    else:
        where = listed([*on, *where])
    select.set("from_", exp.From(this=first))
    select.set("joins", [*inner, *rest] or None)
    select.set("where", exp.Where(this=conjunction(where)) if where else None)
