"""What a user may read, table by table, and do with others' queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from skerry.model.names import base_of, schema_of
from skerry.model.table import Column

Action = Literal["insert", "update", "delete", "define"]
CHANGES: tuple[Action, ...] = ("insert", "update", "delete", "define")


class Pattern(msgspec.Struct, frozen=True):
    """The tables that a rule is about, in lower case: `oslo.orders`, `orders`, `oslo.*`, `*`; "" stands for any."""

    member: str = ""
    table: str = ""
    schema: str = ""  # of `sales.*`

    def matches(self, member: str, table: str) -> bool:
        is_inside = not self.schema or schema_of(table) == self.schema
        return is_inside and self.member in ("", member) and self.table in ("", table)

    @property
    def rank(self) -> tuple[bool, bool, bool]:
        """Higher for fewer tables: one table before one member's, one member's part before all parts."""
        return bool(self.table), bool(self.schema), bool(self.member)


class Sight(msgspec.Struct, frozen=True):
    """How one role shows a table. `columns`: those it shows, in lower case; None: all of them.

    `where` is a condition on the rows that it shows, "" for all of them. `masks`: by lower-case column, what stands
    for its value. Both are SQL that `access/expressions.py` has read.
    """

    columns: frozenset[str] | None = None
    where: str = ""
    masks: Mapping[str, str] = {}

    @property
    def is_whole(self) -> bool:
        return self.columns is None and not self.hides_values

    @property
    def hides_values(self) -> bool:
        return bool(self.where or self.masks)

    def shows(self, column: str) -> bool:
        return self.columns is None or column.lower() in self.columns


class Rule(msgspec.Struct, frozen=True):
    """What a role may do with the tables of a pattern. `sight` is None if it may not read them."""

    pattern: Pattern
    sight: Sight | None = None
    changes: frozenset[Action] = frozenset()


class Seen(msgspec.Struct, frozen=True):
    """How a user sees a table: as each of these shows it. None of them: not at all."""

    sights: tuple[Sight, ...] = ()

    @property
    def is_hidden(self) -> bool:
        return not self.sights

    @property
    def is_whole(self) -> bool:
        return any(sight.is_whole for sight in self.sights)

    @property
    def is_veiled(self) -> bool:
        """Whether rows or values are hidden: then what is known of the table as a whole is not the user's to know."""
        return not self.is_whole and any(sight.hides_values for sight in self.sights)

    def columns(self, columns: Sequence[Column]) -> tuple[Column, ...]:
        """Those of the table's columns that there are for the user."""
        return tuple(column for column in columns if any(sight.shows(column.name) for sight in self.sights))


WHOLE = Seen((Sight(),))


class Rights(msgspec.Struct, frozen=True):
    """What one user may do. `roles`: that its proof told of; they travel with its queries, as its name does.

    `rules`: of each of its roles. Without any the user may do nothing, unless `is_open`: then there are no rules.
    """

    user: str = ""
    roles: tuple[str, ...] = ()
    rules: tuple[tuple[Rule, ...], ...] = ()
    may_see_queries: bool = False
    may_end_queries: bool = False
    is_open: bool = False

    def seen(self, member: str, table: str) -> Seen:
        """Roles add up; within a role the rule about the fewest tables is the one that counts."""
        if self.is_open:
            return WHOLE
        sights = []
        for rule in self._rules_of(member, table):
            if rule.sight is not None and rule.sight not in sights:
                sights.append(rule.sight)
        return Seen(tuple(sights))

    def sees_into(self, member: str, schema: str) -> bool:
        """Whether some table of the schema may be there for the user."""
        if self.is_open:
            return True
        shown = (rule.pattern for rules in self.rules for rule in rules if rule.sight is not None)
        inside = (each for each in shown if each.member in ("", member.lower()))
        return any(schema.lower() in (each.schema, schema_of(each.table)) or not each.table for each in inside)

    def named(self, member: str, table: str) -> Seen:
        """The same by the rules alone that are about this one table, and so about columns that it must have."""
        rules = [] if self.is_open else self._rules_of(member, table)
        return Seen(tuple(rule.sight for rule in rules if rule.sight is not None and rule.pattern.table))

    def may(self, action: Action, member: str, table: str) -> bool:
        """Whether one of its roles lets the user change the table so."""
        return self.is_open or any(action in rule.changes for rule in self._rules_of(member, table))

    def _rules_of(self, member: str, table: str) -> list[Rule]:
        """The one of each role that counts."""
        found = []
        place = member.lower(), base_of(table).lower()
        for rules in self.rules:
            matching = [rule for rule in rules if rule.pattern.matches(*place)]
            found += [max(matching, key=lambda each: each.pattern.rank)] if matching else []
        return found


def everything(user: str = "", roles: tuple[str, ...] = ()) -> Rights:
    """Where there are no rules."""
    return Rights(user, roles, may_see_queries=True, may_end_queries=True, is_open=True)


EVERYTHING = everything()
