"""The one place where fragments are made: text of a tree, and what others want to know of it, seen in the tree."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from skerry.model.config import Leaves
from skerry.model.fragment import Facts, Leaf, Output, SparkFragment, TableLeaf
from skerry.plan.egress import EgressRules
from skerry.plan.observed import texts_of
from skerry.plan.treatment import treatment
from skerry.sql.dialect import render
from skerry.sql.functions import is_aggregate
from skerry.sql.nodes import SpokenCall, UnaryPlus, UnsignedShift
from skerry.sql.push import split

# A row of these is a deep tree: a OR b OR …, a + b + …, NOT NOT ….
_OPERATORS: tuple[type[exp.Expr], ...] = (
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
)
_IS_OPERATOR = frozenset(_OPERATORS)
_SETS = (exp.SetOperation,)
_CALLS = (exp.Anonymous, SpokenCall)
# What a SELECT may have that does nothing but scan.
_PLAIN = frozenset(("expressions", "from_", "where", "hint"))
# A UNION ALL whose first operand has no rows: it gives the columns their names.
_NAMES_ONLY = "names_only"


def gives_names_only(union: exp.SetOperation) -> None:
    """The planner made this union; its first operand has no rows, and neither is an operator of the query."""
    union.meta[_NAMES_ONLY] = True


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
    seen = _Seen(tree)
    facts = Facts(
        operators=seen.operators(),
        markers=seen.markers(),
        has_limit=exp.Limit in seen.kinds,
        scan=_scan(tree, leaves),
        done=_done(tree, member, leaves, egress),
    )
    return SparkFragment(
        number,
        member,
        render(tree),
        tuple(leaves),
        output,
        rows,
        size_bytes,
        is_narrow,
        reason,
        analyzes,
        seen.depth,
        facts,
    )


class _Seen:
    """One walk over a tree, each node once."""

    def __init__(self, tree: exp.Expr) -> None:
        self.kinds: set[type[exp.Expr]] = set()
        self.depth = 0
        self._own_kinds: set[type[exp.Expr]] = set()
        self._aggregates = self._is_distinct = False
        self._markers: list[str] = []
        sets = 0
        # A node, how many operators are above it, and whether it is of the query itself.
        stack: list[tuple[exp.Expr, int, bool]] = [(tree, 0, True)]
        while stack:
            node, depth, is_own = stack.pop()
            kind = type(node)
            self.kinds.add(kind)
            if kind in _IS_OPERATOR:
                depth += 1
                self.depth = max(self.depth, depth)
            elif kind is exp.Placeholder:
                self._markers.append(node.name)
            empty = None
            if isinstance(node, _SETS):
                sets += 1
                if node.meta.get(_NAMES_ONLY):
                    empty = node.this
            if is_own and empty is None:
                self._note(node, kind)
            if node.is_primitive:
                continue
            for value in node.args.values():
                if isinstance(value, exp.Expr):
                    stack.append((value, depth, is_own and value is not empty))
                elif type(value) is list:
                    stack += [(each, depth, is_own) for each in value if isinstance(each, exp.Expr)]
        # Operands of a set operation follow each other too; of all of them it is rather too many.
        self.depth = max(self.depth, sets)

    def _note(self, node: exp.Expr, kind: type[exp.Expr]) -> None:
        self._own_kinds.add(kind)
        if kind is exp.Select:
            self._aggregates = self._aggregates or bool(node.args.get("group"))
            self._is_distinct = self._is_distinct or bool(node.args.get("distinct"))
        elif not self._aggregates and kind in _CALLS:
            self._aggregates = is_aggregate(node)

    def operators(self) -> tuple[str, ...]:
        kinds = self._own_kinds
        has = {
            "scan": exp.Table in kinds,
            "filter": exp.Where in kinds or exp.Having in kinds,
            "join": exp.Join in kinds,
            "union": any(issubclass(kind, exp.SetOperation) for kind in kinds),
            "aggregate": self._aggregates,
            "window": exp.Window in kinds,
            "distinct": self._is_distinct,
            "sort": exp.Order in kinds or exp.Sort in kinds,
            "limit": exp.Limit in kinds,
        }
        return tuple(name for name, is_there in has.items() if is_there) or ("values",)

    def markers(self) -> tuple[str, ...]:
        return tuple(sorted(set(self._markers)))


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
