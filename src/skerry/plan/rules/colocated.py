"""Rule `colocated`: what members can do with their own parts of tables of our own is done there, and nothing travels.

Tables are *alike* if they have as many buckets, at the same members, in the same places. Equal keys of them are at one
member, so a join over all columns of `DISTRIBUTED BY` needs no row of another one. A copy is at every member.

`plan/layout.py` has the proof for one SELECT; here is that for queries around and inside of it. A set operation or a
subquery is done at the members, too, if all rows that it puts together are at one member, because they have one key.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from skerry.model.amounts import listed
from skerry.model.names import TableRef
from skerry.model.table import TablePart
from skerry.plan.layout import Env, From, Layout, NotAlike, Output, check_groups, check_windows, key_text, sides_of
from skerry.plan.relations import aggregates
from skerry.sql.functions import is_deterministic
from skerry.sql.push import split
from skerry.sql.scope import Scopes, Source
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

Parts = tuple[TablePart, ...]


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
        from_, where = From(self, self._scopes[id(select)], {}), select.args.get("where")
        if where is not None:
            self.check_subqueries(where, {}, from_)
        return from_.layout

    # --- queries --------------------------------------------------------------------------------------
    def query(self, node: exp.Expr, env: Env, around: From | None, is_root: bool = False) -> Output:
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
            return Output(Layout())
        raise NotAlike("")

    def _set_operation(self, node: exp.SetOperation, env: Env, is_root: bool) -> Output:
        if not is_root and (node.args.get("limit") or node.args.get("offset")):
            raise NotAlike("a LIMIT chooses among rows of several members")
        one, other = (self.query(node.args[key], env, None) for key in ("this", "expression"))
        left, right = one.layout, other.layout
        if not left.is_apart and not right.is_apart:
            return Output(Layout(), one.names)
        if left.is_apart != right.is_apart or left.members != right.members:
            raise NotAlike("the operands of a set operation are not at the same members")
        keys: tuple[frozenset[object], ...] = ()
        if left.types == right.types:
            keys = tuple(mine & yours for mine, yours in zip(left.keys, right.keys, strict=True))
        layout = Layout(left.members, keys, left.types)
        is_all = isinstance(node, exp.Union) and not node.args.get("distinct")
        if not is_all and not (keys and all(keys)):
            raise NotAlike("equal rows of a set operation may be at several members")
        return Output(layout if keys and all(keys) else Layout(left.members), one.names)

    def _select(self, node: exp.Select, env: Env, around: From | None, is_root: bool) -> Output:
        scope = self._scopes[id(node)]
        from_ = From(self, scope, env, around)
        layout = from_.layout
        self._check_clauses(node, env, from_)
        if not is_root and (node.args.get("limit") or node.args.get("offset")):
            raise NotAlike("a LIMIT chooses among rows of several members")
        if layout.is_apart:
            check_groups(node, from_)
            check_windows(node, from_)
        names, columns = from_.listed(node)
        keys = tuple(frozenset(place for place, each in enumerate(columns) if each in key) for key in layout.keys)
        made = Layout(layout.members, keys, layout.types) if keys and all(keys) else Layout(layout.members)
        if layout.is_apart and node.args.get("distinct") and not made.keys:
            raise NotAlike(f"DISTINCT without {key_text(layout)} compares rows of several members")
        return Output(made, names)

    # --- subqueries in expressions --------------------------------------------------------------------
    def _check_clauses(self, node: exp.Select, env: Env, from_: From) -> None:
        """In HAVING and ORDER BY a name may be one of the list: there no subquery is looked into."""
        for key, value in node.args.items():
            if key in ("from_", "joins", "with_"):
                continue
            around = from_ if key in ("expressions", "where") else None
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, exp.Expr):
                    self.check_subqueries(each, env, around)

    def check_subqueries(self, root: exp.Expr, env: Env, around: From | None) -> None:
        """Each gives a row at its member what it would give it over all parts: `around` is where the row is from."""
        stack = [root]
        while stack:
            node = stack.pop()
            if isinstance(node, exp.Query):
                asked = node.parent if isinstance(node.parent, exp.In) else None
                self._check_subquery(node, env, around, asked)
                continue
            stack += children_of(node)

    def _check_subquery(self, node: exp.Expr, env: Env, around: From | None, asked: exp.In | None) -> None:
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

    def _is_pinned(self, node: exp.Select, env: Env, around: From, tested: Sequence[exp.Expr]) -> bool:
        """Whether all rows that it reads for a row around it have that row's key: whatever it makes of them is right.

        tested: what its columns are compared with, too.
        """
        inner = From(self, self._scopes[id(node)], env, around)
        self._check_clauses(node, env, inner)
        if inner.layout.types != around.layout.types or not inner.layout.keys or not around.layout.keys:
            return False
        where = node.args.get("where")
        equal: set[int] = set()
        for conjunct in split(where.this) if where is not None else ():
            for one, other in sides_of(conjunct):
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
    def source(self, source: Source, env: Env) -> tuple[Layout, Mapping[str, str]]:
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


def _tested(asked: exp.In) -> list[exp.Expr]:
    """What IN compares the columns of its query with."""
    value = bare(asked.this)
    return list(value.expressions) if isinstance(value, exp.Tuple) else [value]


def _renamed(output: Output, alias: exp.Expr | None) -> Output:
    columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    return replace(output, names=tuple(each.name.lower() for each in columns)) if columns else output


def _named(output: Output) -> tuple[Layout, Mapping[str, str]]:
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
