"""Queries that group an inner join and aggregate what one or two of its tables hold."""

from __future__ import annotations

from metamorphic.expressions import Item
from metamorphic.grammar import Query
from metamorphic.joins import Joins


class Groups(Joins):
    """One query a seed: what is aggregated may be grouped before it is joined with the rest."""

    def query(self) -> Query:
        relation = self._tables_joined(self._random.choice((2, 2, 3, 3, 4)))
        tables = sorted({_table(item) for item in relation.items})
        summed = self._random.sample(tables, min(len(tables), self._random.choice((1, 1, 1, 2))))
        if self._made.chance(0.5):  # where there is most to spare
            summed = [_table(max(relation.items, key=lambda item: self._tables[item.origin.split(".")[0]].rows))]
        inside = [item for item in relation.items if _table(item) in summed]
        outside = [item for item in relation.items if item not in inside and item.is_exact] or inside
        groups = [self._random.choice(outside) for _ in range(self._random.choice((0, 1, 1, 2)))]
        if self._made.chance(0.15):
            groups.append(self._random.choice(inside))
        groups = [item for item in dict.fromkeys(groups) if item.is_exact]
        values = [self._made.value(groups) for _ in groups if not self._made.chance(0.2)] if groups else []
        values = [value for value in values if value.is_exact]
        values += [self._made.aggregate(inside) for _ in range(self._random.randint(1, 3))]
        if self._made.chance(0.3):
            values.append(self._made.aggregate(relation.items))
        tail = self._tail(relation)
        by = ", ".join(item.ref for item in groups)
        if groups:
            tail += f" GROUP BY {f'ROLLUP ({by})' if self._made.chance(0.1) else by}"
        if self._made.chance(0.2):
            tail += f" HAVING {self._random.choice(('count(*) > 1', 'count(*) % 2 = 0'))}"
        return self._ordered(self._select("SELECT ", values, tail, relation, is_top=False))

    def _kind(self, has_every: bool, is_last: bool) -> str:
        return "JOIN"


def _table(item: Item) -> str:
    return item.ref.partition(".")[0]
