"""Rule `colocated`: what members can do with their own parts of tables of our own is done there, and nothing travels.

Tables are *alike* if they have as many buckets, at the same members, in the same places. Equal keys of them are at one
member, so a join over all columns of `DISTRIBUTED BY` needs no row of another one. A copy is at every member.

A relation lies in one of two ways: every member has all its rows (copies, constants), or each row is at one member,
made of rows that are there (`members`). `keys` are the columns that have the values of the sharding key in every row;
they are never NULL. What follows is the proof, clause by clause: a join, a group, a set, a window or a subquery is done
at the members if all rows that it puts together are at one member, because they have one key.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from skerry.model.amounts import listed
from skerry.model.names import TableRef
from skerry.model.table import TablePart
from skerry.plan.grouping import has_grouping_sets, set_leaves
from skerry.plan.relations import aggregates, join_kind
from skerry.sql.functions import is_deterministic
from skerry.sql.push import conjuncts, split
from skerry.sql.scope import Scope, Scopes, Source, passes
from skerry.sql.statement import Query
from skerry.sql.types import decimal_of
from skerry.sql.walk import bare, children_of, find_all

# Values of these types that are equal to Spark have one bucket; texts with a collation are equal in other ways.
_TYPES = frozenset(
    "boolean tinyint smallint int bigint float double string binary date timestamp timestamp_ntz".split()
)
_CLAUSES = frozenset(
    "expressions from_ joins where group having windows distinct said_all order limit offset hint with_ qualify".split()
)
_SET_CLAUSES = frozenset("this expression distinct said_distinct order limit offset with_".split())
_MERGED = 0  # stands for the source of a column that USING made

# A source of a FROM, by identity, and one of its columns in lower case.
Column = tuple[int, str]
Parts = tuple[TablePart, ...]


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
class _Output:
    """Of a query: `names` of its columns in lower case, None if they are not known."""

    layout: Layout
    names: tuple[str, ...] | None = None


class NotAlike(Exception):
    """Why rows of several members have to come together. `scans`: tables that could come to each member instead."""

    def __init__(self, reason: str, scans: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.scans = tuple(scans)


@dataclass(frozen=True)
class PartsBeside:
    """A query that runs at each of `members`, over its part of `scan` and its parts of all `others`."""

    scan: str
    others: tuple[str, ...]
    members: frozenset[str]

    @property
    def beside(self) -> frozenset[str]:
        return frozenset(self.others)


class Alike:
    """The tables of our own in a query. `parts_of` gives all parts of one, () of any other; None: the rule is off.

    `why_not`: the first reason why some are not joined where they are.
    """

    def __init__(self, query: Query, parts_of: Callable[[TableRef], Parts] | None) -> None:
        self.query = query
        self.scans = {scan.node_name: scan for scan in query.tables}
        self.why_not = ""
        self._found = {name: parts_of(scan.table) if parts_of else () for name, scan in self.scans.items()}

    def whole(self) -> PartsBeside | None:
        """The query, if every member can answer it for its own parts, and the answers together are the answer."""
        first = next(filter(self.is_spread, self._found), None)
        if first is None or not all(self._found.values()) or not is_deterministic(self.query.tree):
            return None
        try:
            layout = _Reader(self, self.query.tree, first).query(self.query.tree, {}, None, is_root=True).layout
        except NotAlike as error:
            self.why_not = self.why_not or error.reason
            return None
        others = tuple(name for name in self._found if name != first)
        return PartsBeside(first, others, layout.members) if layout.is_apart else None

    def beside(self, select: exp.Select, cut: str) -> frozenset[str] | None:
        """What members read their own part of, if the FROM can be joined where the parts of `cut` are; all else comes
        there whole. None if it cannot, or nothing is beside it."""
        if not self.is_spread(cut) or not is_deterministic(select):
            return None
        shipped: set[str] = set()
        while True:
            reader = _Reader(self, select, cut, frozenset(shipped), ships=True)
            try:
                layout = reader.relations(select)
                break
            except NotAlike as error:
                self.why_not = self.why_not or error.reason
                more = [name for name in error.scans if name not in shipped]
                if not more:
                    return None
                shipped.add(min(more, key=lambda name: (sum(each.rows or 0 for each in self._found[name]), name)))
        near = frozenset(name for name in reader.seen if name not in shipped and self.is_near(name, cut))
        # Each part of the one that is cut is read: none of the others may be one part alone.
        is_whole = not any(self.scans[name].table.member for name in near)
        return near - {cut} if len(near) > 1 and layout.is_apart and is_whole else None

    @property
    def note(self) -> str:
        """For EXPLAIN, of a query in which one might expect tables to be joined where they are."""
        own = [name for name, parts in self._found.items() if parts]
        is_expected = len(own) > 1 and any(map(self.is_spread, own))
        return (
            f"tables of our own are not joined where they are: {self.why_not}" if is_expected and self.why_not else ""
        )

    def reason(self, cut: str, beside: Collection[str]) -> str:
        """Why the parts of these are read together."""
        names = [cut, *sorted(beside)]
        spread = list(dict.fromkeys(self.scans[name].table.name for name in names if self.is_spread(name)))
        copied = list(dict.fromkeys(self.scans[name].table.name for name in beside if not self.is_spread(name)))
        if not spread:
            return ""
        own = self._found[cut][0].own
        assert own is not None
        told = f"rows of {spread[0]} with equal {', '.join(own.columns)} are there"
        if len(spread) > 1:
            told = f"{listed(spread)} are spread alike, so rows with equal keys are there"
        return f"{told}; {listed(copied)} {'is' if len(copied) == 1 else 'are'} copied there" if copied else told

    def parts(self, name: str = "") -> Parts:
        """All of one of our own, or of all of them."""
        if name:
            return self._found[name]
        return tuple(part for parts in self._found.values() for part in parts)

    # --- tables ---------------------------------------------------------------------------------------
    def is_spread(self, name: str) -> bool:
        return bool(self._found.get(name)) and not self._found[name][0].is_copy

    def is_near(self, name: str, first: str) -> bool:
        """Whether each member of `first` can read its own part of it."""
        parts, others = self._found[name], self._found[first]
        if not parts:
            return False
        if parts[0].is_copy:
            return {each.member for each in parts} >= {each.member for each in others}
        return _places(parts) == _places(others)

    def layout(self, name: str) -> Layout:
        """Of a scan that is near."""
        parts, table = self._found[name], self.scans[name].table
        own = parts[0].own
        assert own is not None
        if parts[0].is_copy:
            return Layout()
        members = frozenset((table.member,)) if table.member else frozenset(each.member for each in parts)
        columns = [table.column(each) for each in own.columns]
        types = tuple(column.type if column is not None else "" for column in columns)
        if not all(each in _TYPES or decimal_of(each) is not None for each in types):
            return Layout(members)
        return Layout(members, tuple(frozenset((each.lower(),)) for each in own.columns), types)

    def why_apart(self, one: str, other: str) -> str:
        """Of two that are not near each other."""
        names = [self.scans[each].table.name for each in (one, other)]
        parts = [self._found[each] for each in (one, other)]
        if not all(parts):
            return ""
        owns = [each[0].own for each in parts]
        if owns[0] is not None and owns[1] is not None and owns[0].buckets != owns[1].buckets:
            return f"{names[0]} has {owns[0].buckets} buckets and {names[1]} {owns[1].buckets}"
        return f"{names[0]} and {names[1]} have their buckets at different members"


def _places(parts: Parts) -> frozenset[object]:
    return frozenset((each.member, each.own.buckets, each.own.here) for each in parts if each.own is not None)


class _Reader:
    """Of one tree; `first` is the scan beside which all others are read, `shipped` those that come to every member."""

    def __init__(
        self, alike: Alike, tree: exp.Expr, first: str, shipped: frozenset[str] = frozenset(), ships: bool = False
    ) -> None:
        self._alike = alike
        self._first = first
        self._shipped = shipped
        self._ships = ships
        scans = {id(each): alike.scans[each.name] for each in find_all(tree, exp.Table) if each.name in alike.scans}
        scopes = Scopes({number: scan.table for number, scan in scans.items()})
        scopes.read(tree, {}, None)
        self._scopes = {id(each.select): each for each in scopes.all}
        self.seen: list[str] = []

    def relations(self, select: exp.Select) -> Layout:
        """Of its FROM, if subqueries of its WHERE are asked there too."""
        from_, where = _From(self, self._scopes[id(select)], {}), select.args.get("where")
        if where is not None:
            self.check_subqueries(where, {}, from_)
        return from_.layout

    # --- queries --------------------------------------------------------------------------------------
    def query(self, node: exp.Expr, env: Mapping[str, _Output], around: _From | None, is_root: bool = False) -> _Output:
        with_ = node.args.get("with_")
        if with_ is not None:
            if with_.args.get("recursive"):
                raise NotAlike("")
            for cte in with_.expressions:
                made = self.query(cte.this, env, None)
                env = {**env, cte.alias.lower(): _renamed(made, cte.args.get("alias"))}
        if isinstance(node, exp.Subquery) and _said(node) <= {"this", "alias", "with_"}:
            return self.query(node.this, env, around, is_root)
        if isinstance(node, exp.SetOperation) and _said(node) <= _SET_CLAUSES:
            return self._set_operation(node, env, is_root)
        if isinstance(node, exp.Select) and _said(node) <= _CLAUSES:
            return self._select(node, env, around, is_root)
        if isinstance(node, exp.Values):
            return _Output(Layout())
        raise NotAlike("")

    def _set_operation(self, node: exp.SetOperation, env: Mapping[str, _Output], is_root: bool) -> _Output:
        if not is_root and (node.args.get("limit") or node.args.get("offset")):
            raise NotAlike("a LIMIT chooses among rows of several members")
        one, other = (self.query(node.args[key], env, None) for key in ("this", "expression"))
        left, right = one.layout, other.layout
        if not left.is_apart and not right.is_apart:
            return _Output(Layout(), one.names)
        if left.is_apart != right.is_apart or left.members != right.members:
            raise NotAlike("the operands of a set operation are not at the same members")
        keys: tuple[frozenset[object], ...] = ()
        if left.types == right.types:
            keys = tuple(mine & yours for mine, yours in zip(left.keys, right.keys, strict=True))
        layout = Layout(left.members, keys, left.types)
        is_all = isinstance(node, exp.Union) and not node.args.get("distinct")
        if not is_all and not (keys and all(keys)):
            raise NotAlike("equal rows of a set operation may be at several members")
        return _Output(layout if keys and all(keys) else Layout(left.members), one.names)

    def _select(self, node: exp.Select, env: Mapping[str, _Output], around: _From | None, is_root: bool) -> _Output:
        scope = self._scopes[id(node)]
        from_ = _From(self, scope, env, around)
        layout = from_.layout
        self._check_clauses(node, env, from_)
        if not is_root and (node.args.get("limit") or node.args.get("offset")):
            raise NotAlike("a LIMIT chooses among rows of several members")
        if layout.is_apart:
            _check_groups(node, from_)
            _check_windows(node, from_)
        names, columns = from_.listed(node)
        keys = tuple(frozenset(place for place, each in enumerate(columns) if each in key) for key in layout.keys)
        made = Layout(layout.members, keys, layout.types) if keys and all(keys) else Layout(layout.members)
        if layout.is_apart and node.args.get("distinct") and not made.keys:
            raise NotAlike(f"DISTINCT without {_shown(layout)} compares rows of several members")
        return _Output(made, names)

    # --- subqueries in expressions --------------------------------------------------------------------
    def _check_clauses(self, node: exp.Select, env: Mapping[str, _Output], from_: _From) -> None:
        """In HAVING and ORDER BY a name may be one of the list: there no subquery is looked into."""
        for key, value in node.args.items():
            if key in ("from_", "joins", "with_"):
                continue
            around = from_ if key in ("expressions", "where") else None
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, exp.Expr):
                    self.check_subqueries(each, env, around)

    def check_subqueries(self, root: exp.Expr, env: Mapping[str, _Output], around: _From | None) -> None:
        """Each gives a row at its member what it would give it over all parts: `around` is where the row is from."""
        stack = [root]
        while stack:
            node = stack.pop()
            if isinstance(node, exp.Query):
                asked = node.parent if isinstance(node.parent, exp.In) else None
                self._check_subquery(node, env, around, asked)
                continue
            stack += children_of(node)

    def _check_subquery(
        self, node: exp.Expr, env: Mapping[str, _Output], around: _From | None, asked: exp.In | None
    ) -> None:
        while isinstance(node, exp.Subquery) and _said(node) <= {"this"}:
            node = node.this
        tested = _tested(asked) if asked is not None else []
        try:
            found = self.query(node, env, around)
        except NotAlike as error:
            if around is None or not isinstance(node, exp.Select) or _said(node) - _CLAUSES or node.args.get("with_"):
                raise
            if not self._is_pinned(node, env, around, []):
                raise NotAlike(error.reason or "a subquery reads rows of several members") from None
            return
        layout = found.layout
        if not layout.is_apart:
            return
        if around is None:
            raise NotAlike("a subquery reads rows of several members")
        equal = [
            any(around.has(each, number) for place, each in enumerate(tested) if place in key)
            for number, key in enumerate(layout.keys)
        ]
        if equal and all(equal) and layout.types == around.layout.types:
            return
        if not isinstance(node, exp.Select) or node.args.get("with_"):
            raise NotAlike("a subquery is not asked about equal keys alone")
        is_plain = not aggregates(node) and not (_said(node) - {"expressions", "from_", "joins", "where"})
        if not self._is_pinned(node, env, around, tested if is_plain else []):
            raise NotAlike("a subquery is not asked about equal keys alone")

    def _is_pinned(
        self, node: exp.Select, env: Mapping[str, _Output], around: _From, tested: Sequence[exp.Expr]
    ) -> bool:
        """Whether all rows that it reads for a row around it have that row's key: whatever it makes of them is right.

        tested: what its columns are compared with, too.
        """
        inner = _From(self, self._scopes[id(node)], env, around)
        self._check_clauses(node, env, inner)
        if inner.layout.types != around.layout.types or not inner.layout.keys or not around.layout.keys:
            return False
        where = node.args.get("where")
        equal: set[int] = set()
        for conjunct in split(where.this) if where is not None else ():
            for one, other in _sides(conjunct):
                mine, yours = inner.column(one), inner.outer(other)
                for number, key in enumerate(inner.layout.keys):
                    if mine in key and yours in around.layout.keys[number]:
                        equal.add(number)
        _, columns = inner.listed(node)
        for place, each in enumerate(tested):
            for number, key in enumerate(inner.layout.keys):
                if place < len(columns) and columns[place] in key and around.has(each, number):
                    equal.add(number)
        return equal >= set(range(len(inner.layout.keys)))

    # --- sources --------------------------------------------------------------------------------------
    def source(self, source: Source, env: Mapping[str, _Output]) -> tuple[Layout, Mapping[str, str]]:
        """With names of its columns as keys, and types of some of them."""
        node = source.node
        if _said(node) - {"this", "alias", "expressions"}:
            raise NotAlike("")  # a sample, or what else chooses among all rows
        if isinstance(node, exp.Table) and source.table is not None:
            return self._table(node.name, source)
        if isinstance(node, exp.Table) and node.name.lower() in env and not isinstance(node.this, exp.Anonymous):
            return _named(_renamed(env[node.name.lower()], node.args.get("alias")))
        if isinstance(node, exp.Subquery) and _said(node) <= {"this", "alias"}:
            return _named(_renamed(self.query(node.this, env, None), node.args.get("alias")))
        if isinstance(node, exp.Values):
            return Layout(), {}
        raise NotAlike("")

    def _table(self, name: str, source: Source) -> tuple[Layout, Mapping[str, str]]:
        assert source.table is not None
        self.seen.append(name)
        types = {column.name.lower(): column.type for column in source.table.columns}
        if source.renamed:
            types = {}
        if name in self._shipped or (self._ships and not self._alike.is_near(name, self._first)):
            return Layout(), types
        if not self._alike.is_near(name, self._first):
            raise NotAlike(self._alike.why_apart(self._first, name))
        layout = self._alike.layout(name)
        return (Layout(layout.members) if source.renamed else layout), types

    def may_ship(self, sources: Sequence[Source]) -> list[str]:
        """Tables among these that could come to every member."""
        names = [each.node.name for each in sources if each.table is not None] if self._ships else []
        return [name for name in names if name not in (self._first, *self._shipped) and self._alike.is_spread(name)]


class _From:
    """The relations of one SELECT, joined in their order."""

    def __init__(self, reader: _Reader, scope: Scope, env: Mapping[str, _Output], around: _From | None = None) -> None:
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
            reader.check_subqueries(join.args["on"], env, None) if join.args.get("on") is not None else None
        classes = _classes(self._equal)
        self.layout = replace(
            left, keys=tuple(key.union(*(each for each in classes if not key.isdisjoint(each))) for key in left.keys)
        )

    def _read(self, reader: _Reader, source: Source, env: Mapping[str, _Output]) -> Layout:
        layout, types = reader.source(source, env)
        self._types |= {(id(source), name): type_ for name, type_ in types.items()}
        keys = tuple(frozenset((id(source), name) for name in key) for key in layout.keys)
        return Layout(layout.members, keys, layout.types)

    # --- joins ----------------------------------------------------------------------------------------
    def _joined(
        self, reader: _Reader, join: exp.Expr, left: Layout, right: Layout, before: Sequence[Source], source: Source
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
        for one, other in _sides(conjunct)[:1]:
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


def _check_groups(node: exp.Select, from_: _From) -> None:
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
        raise NotAlike(f"GROUP BY without {_shown(from_.layout)} groups rows of several members")


def _check_windows(node: exp.Select, from_: _From) -> None:
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
                raise NotAlike(f"a window without PARTITION BY {_shown(from_.layout)} has rows of several members")
        stack += [(child, is_listed) for child in children_of(each)]


def _shown(layout: Layout) -> str:
    names = [min((str(each[1]) for each in key if isinstance(each, tuple)), default="") for key in layout.keys]
    return ", ".join(names) or "the sharding key"


def _tested(asked: exp.In) -> list[exp.Expr]:
    """What IN compares the columns of its query with."""
    value = bare(asked.this)
    return list(value.expressions) if isinstance(value, exp.Tuple) else [value]


def _sides(conjunct: exp.Expr) -> list[tuple[exp.Expr, exp.Expr]]:
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


def _renamed(output: _Output, alias: exp.Expr | None) -> _Output:
    columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    return replace(output, names=tuple(each.name.lower() for each in columns)) if columns else output


def _named(output: _Output) -> tuple[Layout, Mapping[str, str]]:
    """By the names of columns, those that are one column's."""
    layout, names = output.layout, output.names or ()
    known = {place: name for place, name in enumerate(names) if names.count(name) == 1}
    keys = tuple(frozenset(name for place, name in known.items() if place in key) for key in layout.keys)
    if not keys or not all(keys):
        return Layout(layout.members), {}
    types = {name: type_ for key, type_ in zip(keys, layout.types, strict=True) for name in key}
    return Layout(layout.members, keys, layout.types), types


def _said(node: exp.Expr) -> set[str]:
    return {key for key, value in node.args.items() if value not in (None, [], False)}
