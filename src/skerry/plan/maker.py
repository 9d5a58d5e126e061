"""The one place where fragments are made: text of a tree, and what others want to know of it, seen in the tree."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from skerry.model.config import Leaves
from skerry.model.fragment import Facts, Leaf, Output, SparkFragment, TableLeaf
from skerry.plan.egress import EgressRules
from skerry.plan.extremes import write_out
from skerry.plan.observed import texts_of
from skerry.plan.treatment import treatment
from skerry.plan.trees import is_for_names
from skerry.plan.virtual import without_values
from skerry.sql.dialect import render
from skerry.sql.functions import is_aggregate, is_deterministic
from skerry.sql.having import qualify_leaves
from skerry.sql.nodes import ColonCast, SpokenCall, UnaryPlus, UnsignedShift
from skerry.sql.push import split

# A row of these is a deep tree: a OR b OR …, a + b + …, NOT NOT …, a = b = c ….
_OPERATORS: frozenset[type[exp.Expr]] = frozenset(
    (
        exp.And,
        exp.Or,
        exp.Not,
        exp.Neg,
        UnaryPlus,
        exp.Add,
        exp.Sub,
        exp.Mul,
        exp.Div,
        exp.IntDiv,
        exp.Mod,
        exp.DPipe,
        exp.BitwiseAnd,
        exp.BitwiseOr,
        exp.BitwiseXor,
        exp.BitwiseNot,
        exp.BitwiseLeftShift,
        exp.BitwiseRightShift,
        UnsignedShift,
        exp.EQ,
        exp.NEQ,
        exp.NullSafeEQ,
        exp.GT,
        exp.GTE,
        exp.LT,
        exp.LTE,
        ColonCast,
        exp.Bracket,
        exp.Dot,
    )
)
_SETS: frozenset[type[exp.Expr]] = frozenset((exp.Union, exp.Intersect, exp.Except))
_CALLS: frozenset[type[exp.Expr]] = frozenset((exp.Anonymous, SpokenCall))
_LOOKED_AT = _SETS | _CALLS | {exp.Select, exp.Placeholder}
# Below these is nothing but names.
_BARE: frozenset[type[exp.Expr]] = frozenset((exp.Identifier, exp.Literal, exp.Column))
# What a SELECT may have that does nothing but scan.
_PLAIN = frozenset(("expressions", "from_", "where", "hint"))


def make_fragment(
    number: int,
    member: str,
    tree: exp.Expr,
    leaves: Sequence[Leaf],
    output: Output,
    *,
    rows: int = 0,
    size_bytes: int = 0,
    is_narrow: bool = False,
    reason: str = "",
    analyzes: str = "",
    egress: EgressRules | None = None,
) -> SparkFragment:
    """The fragment that runs `tree`, in which placeholders stand for the leaves."""
    qualify_leaves(tree)
    tree = write_out(tree)
    with without_values(tree) as virtual:
        text, seen = render(tree), _Seen(tree)
    done = _done(tree, member, leaves, egress)
    facts = Facts(
        operators=seen.operators(),
        markers=seen.markers,
        has_limit=seen.has_limit,
        scan=None if virtual else _scan(tree, leaves),
        # Nothing is kept back of what the statement itself says.
        done=(*done, *(Leaves.FREELY for _ in virtual)) if done else (),
        virtual=tuple((leaf.placeholder, told) for leaf, told in virtual.items()),
    )
    return SparkFragment(
        number,
        member,
        text,
        (*leaves, *virtual),
        output,
        rows,
        size_bytes,
        is_narrow,
        reason,
        analyzes,
        seen.depth,
        facts,
        is_deterministic(tree),
    )


def operator_depth(tree: exp.Expr) -> int:
    """How many operators are above each other in it, at most."""
    return _Seen(tree).depth


class _Seen:
    """One walk over a tree. `kinds` are those of what the query does itself."""

    def __init__(self, tree: exp.Expr) -> None:
        self.kinds: set[type[exp.Expr]] = set()
        self._aggregates = self._is_distinct = False
        self._markers: set[str] = set()
        self._stacked = 0
        self._names_only: list[exp.Expr] = []
        depth = self._walk(tree)
        # An operand that gives names only works on no rows, and is run all the same.
        others = [_Seen(each) for each in self._names_only]
        # Operands of set operations, joins and LATERAL VIEWs are above each other too; all of them are rather too many.
        self.depth: int = max(depth, self._stacked, *(each.depth for each in others))
        self.has_limit: bool = exp.Limit in self.kinds or any(each.has_limit for each in others)
        self.markers: tuple[str, ...] = tuple(sorted(self._markers.union(*(each.markers for each in others))))

    def _walk(self, tree: exp.Expr) -> int:
        """Answers how many operators are above each other."""
        found, above, most = [tree], [0], 0
        for node, depth in zip(found, above, strict=True):  # both grow while they are read
            kind, left_out = type(node), None
            if kind in _LOOKED_AT:
                left_out = self._look(node, kind)
            if left_out is None:
                self.kinds.add(kind)
            if kind in _OPERATORS:
                depth += 1
                most = max(most, depth)
            for value in node.args.values():
                if type(value) is list:
                    for each in value:
                        if isinstance(each, exp.Expr) and type(each) not in _BARE:
                            found.append(each)
                            above.append(depth)
                elif isinstance(value, exp.Expr) and type(value) not in _BARE and value is not left_out:
                    found.append(value)
                    above.append(depth)
        return most

    def _look(self, node: exp.Expr, kind: type[exp.Expr]) -> exp.Expr | None:
        """Answers the operand that gives names only, of a union that has one."""
        if kind is exp.Select:
            self._aggregates = self._aggregates or bool(node.args.get("group"))
            self._is_distinct = self._is_distinct or bool(node.args.get("distinct"))
            # Each is above those before it.
            self._stacked += len(node.args.get("joins") or ()) + len(node.args.get("laterals") or ())
        elif kind is exp.Placeholder:
            self._markers.add(node.name)
        elif kind in _CALLS:
            self._aggregates = self._aggregates or is_aggregate(node)
        else:
            self._stacked += 1
            if is_for_names(node):
                self._names_only.append(node.this)
                return self._names_only[-1]
        return None

    def operators(self) -> tuple[str, ...]:
        """In the order in which rows meet them."""
        kinds = self.kinds
        has = {
            "scan": exp.Table in kinds,
            "filter": exp.Where in kinds or exp.Having in kinds,
            "join": exp.Join in kinds,
            "union": not _SETS.isdisjoint(kinds),
            "aggregate": self._aggregates,
            "window": exp.Window in kinds,
            "distinct": self._is_distinct,
            "sort": exp.Order in kinds or exp.Sort in kinds,
            "limit": exp.Limit in kinds,
        }
        return tuple(name for name, is_there in has.items() if is_there) or ("values",)


def _scan(tree: exp.Expr, leaves: Sequence[Leaf]) -> tuple[str, ...] | None:
    """The conditions of a SELECT of columns of one table."""
    if len(leaves) != 1 or not isinstance(leaves[0], TableLeaf) or not isinstance(tree, exp.Select):
        return None
    said = {key for key, value in tree.args.items() if value not in (None, [], False)}
    columns = all(isinstance(each.unalias(), exp.Column) for each in tree.expressions)
    if not said <= _PLAIN or not columns or not isinstance(tree.args["from_"].this, exp.Table):
        return None
    where = tree.args.get("where")
    return tuple(text for each in split(where.this) for text in texts_of(each)) if where is not None else ()


def _done(tree: exp.Expr, member: str, leaves: Sequence[Leaf], egress: EgressRules | None) -> tuple[Leaves, ...]:
    """Only for members with marked tables: nobody else asks."""
    if egress is None or member.lower() not in egress.marked:
        return ()
    return treatment(tree, leaves, egress.columns(member, leaves))
