"""Which equalities connect the two sides of a join, tables or queries in FROM: by the names that each side gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from skerry.sql.push import split
from skerry.sql.walk import bare

_BOTH = frozenset((True, False))


@dataclass(frozen=True)
class Side:
    """Relations by alias: how the keys of their estimates begin, and the names of their columns (None: unknown)."""

    seen: Mapping[str, tuple[str, frozenset[str] | None]] = field(default_factory=dict)

    def __or__(self, other: Side) -> Side:
        return Side({**self.seen, **other.seen})

    def key(self, column: exp.Column) -> str | None:
        """What an estimate calls the column, if it is of this side."""
        parts = [part.name.lower() for part in column.parts]
        if len(parts) > 1:
            known = self.seen.get(parts[-2]) or self.seen.get(parts[0])
            return f"{known[0]}.{parts[-1]}" if known is not None else None
        for prefix, names in self.seen.values():
            if names is not None and parts[0] in names:
                return f"{prefix}.{parts[0]}"
        return None

    @property
    def names(self) -> set[str]:
        """The names of all columns that are known."""
        return {name for _, names in self.seen.values() for name in names or ()}

    @property
    def is_open(self) -> bool:
        """May a name that nobody knows be one of its columns?"""
        return any(names is None for _, names in self.seen.values())


@dataclass(frozen=True)
class Equal:
    """`keys`: pairs (left, right) of columns that are equal. `connects`: rows are matched by equality, of whatever."""

    keys: tuple[tuple[str, str], ...] = ()
    connects: bool = False


def equal_between(conditions: Iterable[exp.Expr], left: Side, right: Side) -> Equal:
    """What the conjuncts of ON and WHERE say of the two sides."""
    keys: list[tuple[str, str]] = []
    connects = False
    for condition in conditions:
        node = bare(condition)
        if not _connects(node, left, right):
            continue
        connects = True
        pair = _pair(node, left, right) or _pair(node, right, left)[::-1]
        if pair:
            keys.append(pair)
    return Equal(tuple(dict.fromkeys(keys)), connects)


def equal_by_name(names: Sequence[str], left: Side, right: Side) -> Equal:
    """USING, NATURAL."""
    columns = [exp.column(name) for name in names]
    pairs = ((left.key(column), right.key(column)) for column in columns)
    return Equal(tuple((a, b) for a, b in pairs if a is not None and b is not None), True)


def _connects(node: exp.Expr, left: Side, right: Side) -> bool:
    """Is something of one side equal to something that needs the other?"""
    if isinstance(node, exp.Or):
        return all(
            any(_connects(bare(each), left, right) for each in split(bare(branch)))
            for branch in (node.this, node.expression)
        )
    if not isinstance(node, exp.EQ | exp.NullSafeEQ) or node.find(exp.Query) is not None:
        return False
    ends = [list(end.find_all(exp.Column)) for end in (node.this, node.expression)]
    if not all(ends):
        return False
    of: set[bool] = set()
    for column in (each for end in ends for each in end):
        if left.key(column) is not None:
            of.add(True)
        elif right.key(column) is not None:
            of.add(False)
        elif len(column.parts) == 1 and left.is_open:
            of.add(True)
        elif len(column.parts) == 1 and right.is_open:
            of.add(False)
        else:
            return False  # of a table that is joined later
    return of == _BOTH


def _pair(node: exp.Expr, left: Side, right: Side) -> tuple[str, str] | tuple[()]:
    if not isinstance(node, exp.EQ | exp.NullSafeEQ):
        return ()
    ends = bare(node.this), bare(node.expression)
    if not isinstance(ends[0], exp.Column) or not isinstance(ends[1], exp.Column):
        return ()
    a, b = left.key(ends[0]), right.key(ends[1])
    return (a, b) if a is not None and b is not None else ()
