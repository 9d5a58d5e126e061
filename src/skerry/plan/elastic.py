"""A group-by that grows over members: which queries may have one, at whom, and what is sent for it.

Each part sends partial rows and the hash of their keys. Members fold them (`GroupHere`), one at first. Then each runs
what is above the partial rows over its own groups, whose rows are all there: `SiteMerge.final`, as one site would.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import exp

from skerry.model.errors import ConfigError
from skerry.model.fragment import MergeStep
from skerry.model.limits import Limits
from skerry.model.ranges import PLACE_SHIFT
from skerry.model.table import Column
from skerry.plan.grouping import BesideOf
from skerry.plan.partial_cost import PartsOf
from skerry.plan.partial_plan import AtSite, at_sites
from skerry.plan.partials import REAL, called, cast
from skerry.plan.place import Rooms, fewest_arriving
from skerry.plan.rules.topn import LIMIT_MAX
from skerry.plan.site import Site
from skerry.plan.sortable import kind_of_type
from skerry.sql.shape import Shape
from skerry.sql.statement import Query
from skerry.sql.types import decimal_of

_SUMMED = frozenset(("bigint", "double"))
# Of these `xxhash64` is the same on all engines; others are hashed as texts, which equal values have alike.
_HASHED = frozenset("boolean tinyint smallint int bigint string binary date".split())
_DIGITS_HASHED = 18
_PLACE_UNIT = 1 << PLACE_SHIFT


@dataclass(frozen=True)
class Elastic:
    """`query` is over the partial rows of `at`, which have `columns`; `sent` computes these: the hash of the keys is
    the last one, the others are those of `partial`.

    members: who may fold its groups, the manager first.
    """

    query: Query
    at: AtSite
    partial: exp.Select
    sent: exp.Select
    keys: tuple[int, ...]
    steps: tuple[MergeStep, ...]
    members: tuple[str, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.at.merge.columns


def elastic(
    query: Query,
    parts: PartsOf,
    shape: Shape,
    mergeable: bool,
    site: Site,
    limits: Limits,
    beside_of: BesideOf | None = None,
) -> Elastic | None:
    """None if the query is not one block of groups that members can fold, or its bounds cannot be applied again."""
    if not shape.bounds_known or (shape.limit or 0) + shape.offset > LIMIT_MAX or (shape.has_order and not mergeable):
        return None
    above, found = at_sites(query, parts, shape, site, True, None, False, beside_of)
    if len(found) != 1 or above.tables:
        return None
    (at,) = found
    merge = at.merge
    if shape.has_order and site.has_sail and not isinstance(above.tree, exp.Select):
        return None  # Sail does not find a column again whose name is an expression
    if merge.steps is None or not merge.keys or not _are_known(merge.columns, merge.grouped, merge.steps):
        return None
    members = _members(at, [part.member for part in parts[merge.scan]], site, limits)
    if len(members) < 2:
        return None
    keys = tuple(range(merge.grouped))
    sent = _hashed(merge.partial, merge.columns, merge.keys, merge.grouped)
    hash_column = Column(sent.expressions[-1].alias, "bigint")
    scan = dataclasses.replace(merge, columns=(*merge.columns, hash_column), partial=sent)
    return Elastic(above, dataclasses.replace(at, merge=scan), merge.partial, sent, keys, merge.steps, members)


def _are_known(columns: Sequence[Column], grouped: int, steps: Sequence[MergeStep]) -> bool:
    """Whether a member can compare all keys, and merge all that is not one."""
    if not all(kind_of_type(column.type) is not None for column in columns[:grouped]):
        return False
    for step in steps:
        type_ = columns[step.index].type
        is_summed = type_ in _SUMMED or decimal_of(type_) is not None
        if step.kind == "sum" and not is_summed:
            return False
        if step.kind in ("min", "max") and kind_of_type(type_) is None:
            return False
    return True


def _hashed(partial: exp.Select, columns: Sequence[Column], keys: int, grouped: int) -> exp.Select:
    """The partial rows, and the hash of their keys as the last column.

    All rows of one group go to one member, by the upper half of it: so that is made of what the query groups by, and of
    no value that counts once within a group. By the lower half such values are told apart.
    """
    prefix = columns[0].name
    inner = exp.Subquery(this=partial.copy(), alias=exp.TableAlias(this=exp.to_identifier(f"{prefix}_rows")))
    hashed: exp.Expr = called("xxhash64", *map(_hashable, columns[:keys]))
    if grouped > keys:
        place = exp.BitwiseAnd(this=hashed, expression=exp.Paren(this=exp.Neg(this=exp.Literal.number(_PLACE_UNIT))))
        every = called("xxhash64", *map(_hashable, columns[:grouped]))
        rest = exp.BitwiseAnd(this=every, expression=exp.Literal.number(_PLACE_UNIT - 1))
        hashed = exp.BitwiseOr(this=exp.Paren(this=place), expression=exp.Paren(this=rest))
    items: list[exp.Expr] = [exp.column(column.name) for column in columns]
    return exp.Select(expressions=[*items, exp.alias_(hashed, f"{prefix}_hash")], from_=exp.From(this=inner))


def _hashable(column: Column) -> exp.Expr:
    """Alike for values that are one key: there is one NaN and one zero."""
    value, digits = exp.column(column.name), decimal_of(column.type)
    if column.type in REAL:
        nan = exp.If(this=called("isnan", value.copy()), true=cast(exp.Literal.string("NaN"), "double"))
        is_zero = exp.EQ(this=value.copy(), expression=cast(exp.Literal.number(0), column.type))
        zero = exp.If(this=is_zero, true=cast(exp.Literal.number(0), "double"))
        return exp.Case(ifs=[nan, zero], default=cast(value, "double"))
    if column.type in _HASHED or (digits is not None and digits[0] <= _DIGITS_HASHED):
        return value
    return cast(value, "string")


def _members(at: AtSite, holders: Sequence[str], site: Site, limits: Limits) -> tuple[str, ...]:
    """Those who have room, and whom rows may reach from every part and every other one; the manager is where the fewest
    rows arrive, then come those that have parts."""
    senders = tuple(dict.fromkeys(holders))
    rooms = Rooms(site.topology)
    able = [member for member in site.data_members if rooms.take([member]) and rooms.take([member])]
    able = [member for member in able if _may_go(member, [site.initiator], site, 0)]
    able = [each for each in able if all(_may_go(sender, [each], site, _bytes(at, sender)) for sender in senders)]
    if not able:
        return ()
    held = {member: _bytes(at, member) for member in senders}
    manager, total = fewest_arriving(held, able), sum(held.values())
    members = [manager]
    for each in sorted((each for each in able if each != manager), key=lambda each: each not in senders):
        # Whatever came to one of them may have to go on to the other.
        reaches = _may_go(each, members, site, total) and all(_may_go(other, [each], site, total) for other in members)
        if reaches and len(members) < limits.group_by_members:
            members.append(each)
    return tuple(members)


def _bytes(at: AtSite, member: str) -> int:
    return at.rows.get(member, 0) * at.row_bytes


def _may_go(sender: str, receivers: Sequence[str], site: Site, size_bytes: int) -> bool:
    """Whether links lead there, and so many bytes may pass each of them."""
    if site.topology is None:
        return True
    for receiver in receivers:
        try:
            route = site.topology.route(sender, receiver) if sender != receiver else ()
        except ConfigError:
            return False
        budgets = [site.topology.budgets.get(hop) for hop in pairwise(route)]
        if any(budget is not None and size_bytes > budget for budget in budgets):
            return False
    return True
