"""Queries that join many tables in one FROM."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from metamorphic.grammar import ROWS_MAX, Grammar, Query, Relation, both
from metamorphic.tables import partners

OUTER = ("LEFT JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")
EVERY = ("JOIN", "JOIN", "JOIN", "LEFT JOIN", *OUTER, "RIGHT JOIN", "FULL JOIN")


class Joins(Grammar):
    """One query a seed: of inner joins, with another kind at their end now and then, or of joins of every kind."""

    def query(self) -> Query:
        """Three tables or more in one FROM, joined by equalities: inner joins may be made in any order, anywhere.

        Others only where that is the same: some of one site before those with another's tables.
        """
        relation = self._tables_joined(self._random.randint(3, 6))
        if self._made.chance(0.5):
            counts = Counter(_bare(item.ref) for item in relation.items)
            items = [item.renamed(_bare(item.ref)) if counts[_bare(item.ref)] == 1 else item for item in relation.items]
            relation = replace(relation, items=tuple(items), key=())
        shape = self._random.random()
        if shape < 0.45:
            return self._ordered(self._aggregate(relation, is_top=True))
        if shape < 0.55 and relation.key:
            return self._ordered(self._windowed(relation, is_top=True))
        return self._ordered(self._plain(relation, 1, is_top=True))

    def _tables_joined(self, count: int) -> Relation:
        relation = self._source(self._any_table(), 0)
        has_commas = self._made.chance(0.4)
        has_every = not has_commas and self._made.chance(0.8)
        for number in range(count - 1):
            ways = [(item, other) for item in relation.items if item.origin for other in partners(item.origin)]
            if not ways:
                break
            item, other = self._random.choice(ways)
            right = self._source(other.split(".")[0], 0)
            found = next(each for each in right.items if each.origin == other)
            rows = max(relation.rows, right.rows) * 4
            if rows > ROWS_MAX * 2:
                continue
            conditions = [f"{item.ref} {'<=>' if self._made.chance(0.05) else '='} {found.ref}"]
            if self._made.chance(0.4):
                conditions.append(self._made.compare(right.items))
            if self._made.chance(0.15):
                conditions.append(f"({self._made.compare(relation.items)} OR {self._made.compare(right.items)})")
            items, key = relation.items + right.items, both(relation, right)
            if has_commas:
                wanted = (*relation.conditions, *conditions)
                relation = Relation(f"{relation.sql}, {right.sql}", items, rows, key, wanted)
            else:
                how = self._kind(has_every, is_last=number == count - 2)
                sql = f"{relation.sql} {how} {right.sql} ON {' AND '.join(conditions)}"
                is_seen = how not in ("LEFT SEMI JOIN", "LEFT ANTI JOIN")
                relation = Relation(sql, items if is_seen else relation.items, rows, key if is_seen else relation.key)
        return relation

    def _kind(self, has_every: bool, is_last: bool) -> str:
        is_inner = not has_every and (not is_last or self._made.chance(0.6))
        return "JOIN" if is_inner else self._random.choice(EVERY if has_every else OUTER)


def _bare(ref: str) -> str:
    """The column's name without its table."""
    return ref.partition(".")[2]
