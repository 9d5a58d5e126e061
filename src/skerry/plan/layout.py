"""How the rows of a FROM lie at the members: the proof behind rule `colocated` (rules/colocated.py), for one SELECT.

A relation lies in one of two ways: every member has all its rows (copies, constants), or each row is at one member,
made of rows that are there (`members`). `keys` are the columns that have the values of the sharding key in every row;
they are never NULL. A join, a group or a window is done at the members if all rows that it puts together are at one
member, because they have one key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from sqlglot import exp

from skerry.plan.grouping import has_grouping_sets, set_leaves
from skerry.plan.relations import aggregates, join_kind
from skerry.sql.push import conjuncts, split
from skerry.sql.scope import Scope, Source, passes
from skerry.sql.walk import bare, children_of

_MERGED = 0  # stands for the source of a column that USING made

# A source of a FROM, by identity, and one of its columns in lower case.
Column = tuple[int, str]


@dataclass(frozen=True)
class Layout:
    """Where rows are: at `members`, each at one of them; nowhere in particular if there are none: at all of them.

    keys: for each column of the sharding key, of so many types, what has its value: columns of a FROM, or places of a
    list. Empty if that is not known.
    """

    members: frozenset[str] = frozenset()
    keys: tuple[frozenset[object], ...] = ()
    types: tuple[str, ...] = ()

    @property
    def is_apart(self) -> bool:
        return bool(self.members)

    def covers(self, found: Iterable[object]) -> bool:
        """Whether these have the values of the whole key."""
        among = frozenset(found)
        return bool(self.keys) and all(not among.isdisjoint(each) for each in self.keys)


@dataclass(frozen=True)
class Output:
    """Of a query: `names` of its columns in lower case, None if they are not known."""

    layout: Layout
    names: tuple[str, ...] | None = None


# By the names that WITH gives.
Env = Mapping[str, Output]


class NotAlike(Exception):
    """Why rows of several members have to come together. `scans`: tables that could come to each member instead."""

    def __init__(self, reason: str, scans: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.scans = tuple(scans)


class Reader(Protocol):
    """Who knows the relations of a FROM, and queries in its conditions."""

    def source(self, source: Source, env: Env) -> tuple[Layout, Mapping[str, str]]:
        """With names of its columns as keys, and types of some of them. NotAlike if nobody knows."""

    def may_ship(self, sources: Sequence[Source]) -> list[str]:
        """Tables among these that could come to every member."""

    def check_subqueries(self, root: exp.Expr, env: Env, around: From | None) -> None:
        """NotAlike for a condition whose queries ask for other rows than those at a row's member.

        around: where the row is from; None if that is not known.
        """


class From:
    """The relations of one SELECT, joined in their order."""

    def __init__(self, reader: Reader, scope: Scope, env: Env, around: From | None = None) -> None:
        self._scope = scope
        self._around = around
        self._types: dict[Column, str] = {}
        self._merged: set[str] = set()
        self._hidden: list[Source] = []  # behind SEMI and ANTI
        self._equal: list[tuple[Column, Column]] = []
        from_ = scope.select.args.get("from_")
        self.layout = Layout()
        if from_ is None:
            return
        by_node = {id(source.node): source for source in scope.sources}
        joins = scope.select.args.get("joins") or []
        nodes = [from_.this, *(join.this for join in joins)]
        if not scope.plain or any(id(each) not in by_node for each in nodes) or len(nodes) != len(scope.sources):
            raise NotAlike("")
        self._sources = [by_node[id(each)] for each in nodes]
        layouts = [self._read(reader, each, env) for each in self._sources]
        for conjunct, allowed in conjuncts(scope):
            self._equal += [pair for pair in self._pairs(conjunct) if self._are_of(pair, allowed)]
        left, before = layouts[0], self._sources[:1]
        for join, right, source in zip(joins, layouts[1:], self._sources[1:], strict=True):
            left = self._joined(reader, join, left, right, before, source)
            before.append(source)
            if join.args.get("on") is not None:
                reader.check_subqueries(join.args["on"], env, None)
        classes = _classes(self._equal)
        self.layout = replace(
            left, keys=tuple(key.union(*(each for each in classes if not key.isdisjoint(each))) for key in left.keys)
        )

    def _read(self, reader: Reader, source: Source, env: Env) -> Layout:
        layout, types = reader.source(source, env)
        self._types |= {(id(source), name): type_ for name, type_ in types.items()}
        keys = tuple(frozenset((id(source), name) for name in key) for key in layout.keys)
        return Layout(layout.members, keys, layout.types)

    # --- joins ----------------------------------------------------------------------------------------
    def _joined(
        self, reader: Reader, join: exp.Expr, left: Layout, right: Layout, before: Sequence[Source], source: Source
    ) -> Layout:
        if not isinstance(join, exp.Join) or join.args.get("method") or join.args.get("nearest"):
            raise NotAlike("")
        kind, on = join_kind(join), join.args.get("on")
        is_inner = kind in ("inner", "cross", "comma", "semi")
        own = [pair for conjunct in (split(on) if on is not None else ()) for pair in self._pairs(conjunct)]
        using = [name.name.lower() for name in join.args.get("using") or ()]
        sides = [(self._side(name, before), (id(source), name)) for name in using]
        own += [(mine, yours) for mine, yours in sides if mine is not None and self._are_alike(mine, yours)]
        if is_inner and using:
            self._equal += own
        if kind in ("semi", "anti"):
            self._hidden.append(source)
        found = self._meet(kind, left, right, _classes(self._equal + own if is_inner else own))
        if found is None:
            raise NotAlike(self._why(left, right), reader.may_ship((*before, source)))
        return self._merged_in(found, kind, using, sides, (left, right)) if using else found

    def _meet(self, kind: str, left: Layout, right: Layout, classes: Sequence[frozenset[object]]) -> Layout | None:
        if kind == "right":
            return self._meet("left", right, left, classes)
        if not right.is_apart:
            # Rows that the other side has everywhere are kept, unmatched, by every member.
            return None if kind == "full" and left.is_apart else left
        is_inner = kind in ("inner", "cross", "comma")
        if not left.is_apart:
            return right if is_inner else None
        if not left.keys or left.types != right.types:
            return None
        for mine, yours in zip(left.keys, right.keys, strict=True):
            if not any(not mine.isdisjoint(each) and not yours.isdisjoint(each) for each in classes):
                return None
        both = left.members & right.members
        if is_inner and both:
            keys = tuple(mine | yours for mine, yours in zip(left.keys, right.keys, strict=True))
            return Layout(both, keys, left.types)
        if kind == "full":
            return Layout(left.members) if left.members == right.members else None
        return left if left.members <= right.members else None

    def _merged_in(
        self,
        found: Layout,
        kind: str,
        using: Sequence[str],
        sides: Sequence[tuple[Column | None, Column]],
        both: tuple[Layout, Layout],
    ) -> Layout:
        """USING makes one column of two: the left one, the right one of a RIGHT join, either of a FULL one."""
        left, right = both
        is_full = kind == "full" and found.is_apart
        keys = [set(key) for key in found.keys] if not is_full else [set[object]() for _ in left.keys]
        for name, (mine, yours) in zip(using, sides, strict=True):
            self._merged.add(name)
            if mine is not None and self._are_alike(mine, yours):
                self._types[_MERGED, name] = self._types[yours]
            for number, key in enumerate(keys):
                if is_full:
                    is_key = mine in left.keys[number] and yours in right.keys[number]
                else:
                    is_key = (yours if kind == "right" else mine) in key
                if is_key:
                    key.add((_MERGED, name))
        if not keys or not all(keys):
            return Layout(found.members)
        return Layout(found.members, tuple(map(frozenset, keys)), left.types if is_full else found.types)

    def _side(self, name: str, before: Sequence[Source]) -> Column | None:
        if name in self._merged:
            return _MERGED, name
        holders = [each for each in before if each not in self._hidden and name in (each.columns or ())]
        is_known = all(each.columns is not None for each in before)
        return (id(holders[0]), name) if is_known and len(holders) == 1 else None

    def _why(self, left: Layout, right: Layout) -> str:
        if not left.is_apart or not right.is_apart:
            return "an outer join keeps rows that every member has"
        if not left.keys or not right.keys:
            return "the sharding key is not known above a join or a query"
        if left.types != right.types:
            return f"the sharding keys have the types ({', '.join(left.types)}) and ({', '.join(right.types)})"
        names = [", ".join(sorted({str(each[1]) for each in key})) for key in left.keys]  # type: ignore[index]
        return f"a join does not equate all columns of DISTRIBUTED BY ({'; '.join(names)})"

    # --- names ----------------------------------------------------------------------------------------
    def column(self, node: exp.Expr) -> Column | None:
        """The column that it surely is, of this FROM."""
        node = bare(node)
        if not isinstance(node, exp.Column) or node.is_star:
            return None
        parts = [part.name.lower() for part in node.parts]
        sources = self._scope.sources
        if len(parts) == 1:
            if parts[0] in self._merged:
                return _MERGED, parts[0]
            if any(each.columns is None for each in sources):
                return None
            holders = [each for each in sources if parts[0] in (each.columns or ())]
        elif len(parts) == 2:
            holders = [each for each in sources if each.alias == parts[0]]
        else:
            return None
        if len(holders) != 1 or (holders[0].columns or ()).count(parts[-1]) != 1:
            return None
        return id(holders[0]), parts[-1]

    def outer(self, node: exp.Expr) -> Column | None:
        """The column of the FROM around this one that it surely is."""
        node = bare(node)
        if self._around is None or not isinstance(node, exp.Column) or not passes(node, self._scope):
            return None
        return self._around.column(node)

    def has(self, node: exp.Expr, number: int) -> bool:
        """Whether it is that column of the key."""
        return number < len(self.layout.keys) and self.column(node) in self.layout.keys[number]

    def listed(self, select: exp.Select) -> tuple[tuple[str, ...] | None, list[Column | None]]:
        """Names and columns of the list; what is computed is no column."""
        names: list[str] = []
        columns: list[Column | None] = []
        for item in select.expressions:
            if item.is_star:
                starred = self._starred(item)
                if starred is None:
                    return None, []
                names += [name for _, name in starred]
                columns += starred
            else:
                names.append(item.alias_or_name.lower())
                columns.append(self.column(item.unalias()))
        return tuple(names), columns

    def _starred(self, item: exp.Expr) -> list[Column] | None:
        star = item.this if isinstance(item, exp.Column) else item
        named = [part.name.lower() for part in item.parts[:-1]] if isinstance(item, exp.Column) else []
        if not isinstance(star, exp.Star) or any(star.args.values()) or len(named) > 1 or self._merged:
            return None
        sources = [each for each in self._scope.sources if each not in self._hidden]
        sources = [each for each in sources if not named or each.alias == named[0]]
        if not sources or any(each.columns is None for each in sources):
            return None
        return [(id(each), name) for each in sources for name in each.columns or ()]

    # --- equalities -----------------------------------------------------------------------------------
    def _pairs(self, conjunct: exp.Expr) -> list[tuple[Column, Column]]:
        for one, other in sides_of(conjunct)[:1]:
            mine, yours = self.column(one), self.column(other)
            if mine is not None and yours is not None and self._are_alike(mine, yours):
                return [(mine, yours)]
        return []

    def _are_alike(self, one: Column, other: Column) -> bool:
        """By their types: what two types make of equal values is not looked at."""
        type_ = self._types.get(one)
        return type_ is not None and type_ == self._types.get(other)

    def _are_of(self, pair: tuple[Column, Column], allowed: Sequence[Source]) -> bool:
        return {pair[0][0], pair[1][0]} <= {id(each) for each in allowed}


def check_groups(node: exp.Select, from_: From) -> None:
    group = node.args.get("group")
    if group is None and not aggregates(node):
        return
    items = node.expressions
    if group is None or has_grouping_sets(group):
        raise NotAlike("groups have rows of several members")
    leaves = list(items) if group.args.get("all") else list(set_leaves(group))
    found: list[Column | None] = []
    for leaf in leaves:
        if isinstance(leaf, exp.Literal) and not leaf.is_string and str(leaf.this).isdecimal():
            place = int(leaf.this)
            leaf = items[place - 1] if 1 <= place <= len(items) else leaf
        found.append(from_.column(leaf.unalias()))
    if not from_.layout.covers(found):
        raise NotAlike(f"GROUP BY without {key_text(from_.layout)} groups rows of several members")


def check_windows(node: exp.Select, from_: From) -> None:
    """Those of the list; elsewhere a name may be one of the list."""
    stack: list[tuple[exp.Expr, bool]] = [(item, True) for item in node.expressions]
    stack += [(node.args[key], False) for key in ("order", "having", "qualify") if node.args.get(key) is not None]
    while stack:
        each, is_listed = stack.pop()
        if isinstance(each, exp.Query):
            continue
        if isinstance(each, exp.Window):
            partition = [from_.column(part) for part in each.args.get("partition_by") or ()]
            if not is_listed or not from_.layout.covers(partition):
                raise NotAlike(f"a window without PARTITION BY {key_text(from_.layout)} has rows of several members")
        stack += [(child, is_listed) for child in children_of(each)]


def key_text(layout: Layout) -> str:
    names = [min((str(each[1]) for each in key if isinstance(each, tuple)), default="") for key in layout.keys]
    return ", ".join(names) or "the sharding key"


def sides_of(conjunct: exp.Expr) -> list[tuple[exp.Expr, exp.Expr]]:
    """Both ways round. No key is NULL, so `<=>` is no other."""
    conjunct = bare(conjunct)
    if not isinstance(conjunct, exp.EQ | exp.NullSafeEQ):
        return []
    one, other = bare(conjunct.this), bare(conjunct.expression)
    return [(one, other), (other, one)]


def _classes(pairs: Iterable[tuple[Column, Column]]) -> list[frozenset[object]]:
    """What is equal to each other."""
    found: list[set[object]] = []
    for pair in pairs:
        touched = [each for each in found if not each.isdisjoint(pair)]
        found = [each for each in found if each.isdisjoint(pair)] + [set(pair).union(*touched)]
    return [frozenset(each) for each in found]
