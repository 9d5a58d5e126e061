"""How large the joins of the tables of one FROM are: for the joins search (`joins.py`), which knows tables as bits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from skerry.plan.estimate import Estimate, width_bytes
from skerry.plan.joined_tree import sent_ends
from skerry.plan.known import join_key
from skerry.plan.rules.joined import Conjunct, End, Joinable
from skerry.plan.rules.semijoin import Reducer
from skerry.plan.site import Site
from skerry.sql.dialect import render


def key_of(end: End) -> str:
    """The name of a column among those of several tables."""
    return f"{end[0]}.{end[1]}"


class From:
    """The tables of one FROM as bits, and the sizes of their joins."""

    def __init__(self, joinable: Joinable, reducer: Reducer, site: Site, tables_in_all: int) -> None:
        self.joinable = joinable
        self._tables_in_all = tables_in_all
        self.names: tuple[str, ...] = tuple(joinable.mentions)
        self._reducer = reducer
        self._estimator = site.estimator
        self._chosen: tuple[str, ...] = ()
        self.adjacent: list[int] = []
        self.is_exact = True
        self._estimates: dict[tuple[str, ...], Estimate] = {}
        self._sizes: dict[tuple[str, ...], float] = {}
        self._texts: dict[frozenset[str], tuple[str, ...]] | None = None
        self._ends: list[list[tuple[str, str]]] = []
        self._plain: dict[str, str] = {}

    def choose(self, names: tuple[str, ...]) -> None:
        """The tables that are bits from now on."""
        if names == self._chosen:
            return
        self._chosen = names
        bits = {name: 1 << index for index, name in enumerate(names)}
        self.adjacent = [0] * len(names)
        ends = [*self.joinable.equal, *(each.pair for each in self.joinable.conjuncts if each.pair is not None)]
        for group in ends:
            together = sum({bits[name] for name, _ in group if name in bits})
            for name in {name for name, _ in group if name in bits}:
                self.adjacent[bits[name].bit_length() - 1] |= together & ~bits[name]

    def named(self, tables: int) -> tuple[str, ...]:
        return tuple(name for index, name in enumerate(self._chosen) if tables >> index & 1)

    def may_join(self, tables: int) -> bool:
        """All tables of the query are joined where the rest is; nor may a condition that may fail meet more rows."""
        names = self.named(tables)
        return len(names) < self._tables_in_all and not any(each.issubset(names) for each in self.joinable.risky)

    def size_bytes(self, tables: int) -> float:
        names = self.named(tables)
        if names not in self._sizes:
            self._sizes[names] = self._size_bytes(names)
        return self._sizes[names]

    def _size_bytes(self, names: tuple[str, ...]) -> float:
        estimate = self._of(names)
        width = 0.0
        for end in set(sent_ends(self.joinable, names).values()):
            known = estimate.columns.get(key_of(end))
            column = self.joinable.mentions[end[0]].scan.table.column(end[1])
            width += known.width_bytes if known is not None else width_bytes(column.type if column else "")
        return estimate.rows * width

    def estimate(self, tables: int) -> Estimate:
        return self._of(self.named(tables))

    def _of(self, names: tuple[str, ...]) -> Estimate:
        """Tables are joined one by one, the last of them in the order of the text that leaves the others connected."""
        found = self._estimates.get(names)
        if found is not None:
            return found
        if len(names) == 1:
            plain = self._reducer.plain(self.joinable.mentions[names[0]]).estimate
            columns = {key_of((names[0], column)): each for column, each in plain.columns.items()}
            found = Estimate(plain.rows, columns, plain.base_rows)
        else:
            last = next((each for each in reversed(names) if self._leaves_connected(names, each)), names[-1])
            rest = tuple(each for each in names if each != last)
            found = self._join(self._of(rest), self._of((last,)), self._keys(rest, last))
            if self._estimator.observed:
                found = self._estimator.as_seen(found, self.join_key(names))
        self._estimates[names] = found
        return found

    def join_key(self, names: Sequence[str]) -> str:
        """The name of these tables joined with nothing else."""
        for name in names:
            if name not in self._plain:
                mention = self.joinable.mentions[name]
                is_known = all(mention.known)
                self._plain[name] = f"{mention.alias.name.lower()}={','.join(mention.known)}" if is_known else ""
        return join_key(sorted(self._plain[name] for name in names), self.on(names))

    def on(self, names: Sequence[str]) -> list[str]:
        """What joins these tables, as text."""
        if self._texts is None:
            self._texts = _conjunct_texts(self.joinable.conjuncts)
            aliases = {name: each.alias.name.lower() for name, each in self.joinable.mentions.items()}
            self._ends = [[(end[0], f"{aliases[end[0]]}.{end[1]}") for end in group] for group in self.joinable.equal]
        within = set(names)
        found = [text for of, texts in self._texts.items() if of <= within for text in texts]
        for group in self._ends:
            ends = [text for name, text in group if name in within]
            if len(ends) > 1:
                found.append(" = ".join(ends))
        return sorted(found)

    def _join(self, left: Estimate, right: Estimate, keys: Sequence[tuple[str, str]]) -> Estimate:
        """Where nobody knows how many values the keys have, one side is taken to refer to the other."""
        joined = self._estimator.join(left, right, keys)
        known = [side.columns[name] for pair in keys for side, name in zip((left, right), pair, strict=True)]
        if not any(column.is_guessed for column in known):
            return joined
        kept = [side.rows / max(1.0, side.base_rows) for side in (left, right)]
        rows = max(joined.rows, left.rows * kept[1], right.rows * kept[0])
        return msgspec.structs.replace(joined, rows=rows, base_rows=max(rows, joined.base_rows))

    def _leaves_connected(self, names: tuple[str, ...], last: str) -> bool:
        bits = {name: 1 << index for index, name in enumerate(self._chosen)}
        within = sum(bits[name] for name in names if name != last)
        reached = within & -within
        while True:
            more = reached
            for index, beside in enumerate(self.adjacent):
                if reached >> index & 1:
                    more |= beside & within
            if more == reached:
                return reached == within
            reached = more

    def _keys(self, rest: tuple[str, ...], last: str) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for group in self.joinable.equal:
            there = [end for end in group if end[0] in rest]
            here = [end for end in group if end[0] == last]
            found += [(key_of(there[0]), key_of(end)) for end in here] if there else []
        for each in self.joinable.conjuncts:
            if each.pair is None or each.is_implied:
                continue
            for one, other in (each.pair, each.pair[::-1]):
                if one[0] in rest and other[0] == last:
                    found.append((key_of(one), key_of(other)))
        return found


def _conjunct_texts(conjuncts: Iterable[Conjunct]) -> dict[frozenset[str], tuple[str, ...]]:
    """By the mentions that they are of."""
    found: dict[frozenset[str], tuple[str, ...]] = {}
    for each in conjuncts:
        found[each.names] = (*found.get(each.names, ()), render(each.node))
    return found
