"""A seeded grammar of queries: joins of every kind, groups, windows, set operations, subqueries, CTEs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from metamorphic.expressions import Expressions, Item, Value
from metamorphic.tables import KEYS, Table, partners

# No join is made that is likely to have more rows.
ROWS_MAX = 30_000
PLAIN = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)


@dataclass(frozen=True)
class Query:
    """`keys` are positions of the result by which its rows are in order."""

    sql: str
    keys: tuple[int, ...] = ()


@dataclass(frozen=True)
class Partition:
    """A query and its three parts: where a predicate is true, false and NULL."""

    whole: str
    parts: tuple[str, str, str]


@dataclass(frozen=True)
class Relation:
    """What stands after FROM. `key` names each row; empty if that is not known."""

    sql: str
    items: tuple[Item, ...]
    rows: float
    key: tuple[Item, ...] = ()
    conditions: tuple[str, ...] = ()  # joins by comma have theirs in WHERE
    is_list: bool = True


@dataclass(frozen=True)
class _Block:
    """A query without ORDER BY: its columns, and what they may be asked for by the query around it."""

    sql: str
    values: tuple[Value, ...]
    names: tuple[str, ...]  # "" where Spark makes the name
    rows: float


class Grammar:
    """One query a seed: `Grammar(tables, Random(seed)).query()`."""

    def __init__(self, tables: Mapping[str, Table], random: Random) -> None:
        self._tables = tables
        self._random = random
        self._made = Expressions(random)
        self._count = 0

    def query(self) -> Query:
        shape = self._random.random()
        if shape < 0.14:
            block = self._set_operation()
        elif shape < 0.28:
            return self._with_cte()
        else:
            block = self._block(1, is_top=True)
        return self._ordered(block)

    def partition(self) -> Partition:
        """For ternary logic partitioning: rows of a join, with and without a condition."""
        relation = self._relation(1)
        values = [self._made.value(relation.items) for _ in range(self._random.randint(1, 4))]
        listed = ", ".join(f"{value.sql} AS x{index}" for index, value in enumerate(values))
        sides = self._made.predicate(relation.items)
        if self._made.chance(0.3):
            sides = f"({sides} {self._random.choice(('AND', 'OR'))} {self._subquery(relation.items)})"
        start = f"SELECT {listed} FROM {relation.sql}"

        def where(*more: str) -> str:
            conditions = [*relation.conditions, *more]
            return f"{start} WHERE {' AND '.join(conditions)}" if conditions else start

        return Partition(where(), (where(f"({sides})"), where(f"NOT ({sides})"), where(f"({sides}) IS NULL")))

    # --- the end of a query ------------------------------------------------------------------------------
    def _ordered(self, block: _Block) -> Query:
        """ORDER BY some columns, or by all of them where a LIMIT needs one answer."""
        places = [place for place, value in enumerate(block.values) if value.is_exact]
        if not places or self._made.chance(0.35):
            return Query(block.sql)
        self._random.shuffle(places)
        is_limited = self._made.chance(0.5)
        if not is_limited:
            places = places[: self._random.randint(1, len(places))]
        terms = [self._term(block, place) for place in places]
        if is_limited:
            inexact = [place for place, value in enumerate(block.values) if not value.is_exact]
            terms += [self._term(block, place) for place in inexact]
        sql = f"{block.sql} ORDER BY {', '.join(terms)}"
        if is_limited:
            sql += f" LIMIT {self._random.choice((1, 3, 10, 50, 1000))}"
            sql += f" OFFSET {self._random.choice((1, 5))}" if self._made.chance(0.2) else ""
        return Query(sql, tuple(places))

    def _term(self, block: _Block, place: int) -> str:
        named = block.names[place] if self._made.chance(0.5) else ""
        # Spark calls an item without an alias after the column that it is, or casts: the name may stand there twice.
        unnamed = [value.sql for value, name in zip(block.values, block.names, strict=True) if not name]
        if any(re.search(rf"\b{named}\b", sql) for sql in unnamed):
            named = ""
        end = self._random.choice(("", "", " DESC", " ASC NULLS LAST", " DESC NULLS FIRST"))
        return f"{named or place + 1}{end}"

    def _set_operation(self) -> _Block:
        kinds = [self._random.choice(("int", "str", "date", "int", "str")) for _ in range(self._random.randint(1, 3))]
        one, other = self._of_kinds(kinds), self._of_kinds(kinds)
        operator = self._random.choice(("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"))
        sql = f"{one.sql} {operator} {other.sql}"
        if self._made.chance(0.25):
            sql = f"({sql}) {self._random.choice(('UNION ALL', 'EXCEPT', 'UNION'))} {self._of_kinds(kinds).sql}"
        block = replace(one, sql=sql, rows=one.rows + other.rows)
        if self._made.chance(0.3):
            return self._over(block)
        return block

    def _of_kinds(self, kinds: Sequence[str]) -> _Block:
        relation = self._relation(0)
        values = [Value(self._made.of_kind(relation.items, kind, self._random.randint(0, 1)), kind) for kind in kinds]
        names = tuple(f"x{index}" for index in range(len(kinds)))
        listed = ", ".join(f"{value.sql} AS {name}" for value, name in zip(values, names, strict=True))
        return _Block(f"SELECT {listed} FROM {self._tail(relation)}", tuple(values), names, relation.rows)

    def _over(self, block: _Block) -> _Block:
        """An aggregate of a block."""
        alias = self._alias("u")
        items = tuple(
            Item(f"{alias}.{name}", value.kind) for value, name in zip(block.values, block.names, strict=True)
        )
        return self._aggregate(Relation(f"({block.sql}) {alias}", items, block.rows, is_list=False), is_top=True)

    def _with_cte(self) -> Query:
        """A CTE that is named once, or joined with itself."""
        inner = self._block(0, is_top=False)
        name = self._alias("cte")
        sources = [self._named(name, inner) for _ in range(self._random.choice((1, 1, 2)))]
        relation = sources[0]
        for other in sources[1:]:
            pairs = [
                (left, right)
                for left, right in zip(relation.items, other.items, strict=True)
                if left.is_exact and left.kind != "bool"
            ]
            if not pairs or inner.rows > 400:
                break
            on = " AND ".join(f"{left.ref} <=> {right.ref}" for left, right in pairs)
            how = self._random.choice(("JOIN", "LEFT JOIN", "FULL JOIN"))
            items = relation.items + other.items
            relation = Relation(f"{relation.sql} {how} {other.sql} ON {on}", items, relation.rows, is_list=False)
        is_grouped = self._made.chance(0.5)
        block = self._aggregate(relation, is_top=True) if is_grouped else self._plain(relation, 0, is_top=True)
        query = self._ordered(block)
        return replace(query, sql=f"WITH {name} AS ({inner.sql}) {query.sql}")

    def _named(self, name: str, block: _Block) -> Relation:
        alias = self._alias("c")
        items = tuple(
            _outer(value, f"{alias}.{column}") for value, column in zip(block.values, block.names, strict=True)
        )
        return Relation(f"{name} {alias}", items, block.rows, is_list=False)

    # --- SELECT ------------------------------------------------------------------------------------------
    def _block(self, depth: int, *, is_top: bool) -> _Block:
        relation = self._relation(depth)
        shape = self._random.random()
        if shape < 0.42:
            return self._aggregate(relation, is_top=is_top)
        if shape < 0.54 and relation.key:
            return self._windowed(relation, is_top=is_top)
        return self._plain(relation, depth, is_top=is_top)

    def _plain(self, relation: Relation, depth: int, *, is_top: bool) -> _Block:
        if is_top and relation.is_list and not relation.conditions and self._made.chance(0.06):
            return self._star(relation)
        values = [self._made.value(relation.items) for _ in range(self._random.randint(1, 5))]
        if depth and self._made.chance(0.1):
            values.append(Value(self._scalar(relation.items), "other"))
        elif depth and self._made.chance(0.06):
            values.append(Value(f"CASE WHEN {self._subquery(relation.items)} THEN 1 ELSE 0 END", "other"))
        distinct = "DISTINCT " if self._made.chance(0.2) else ""
        return self._select(f"SELECT {distinct}", values, self._tail(relation, depth), relation, is_top)

    def _star(self, relation: Relation) -> _Block:
        values = tuple(Value(item.ref, item.kind, item.is_exact, item) for item in relation.items)
        # What cannot be ordered is among a star's columns too: nobody asks for an order.
        values = tuple(replace(value, is_exact=False) for value in values)
        return _Block(f"SELECT * FROM {self._tail(relation)}", values, ("",) * len(values), relation.rows)

    def _windowed(self, relation: Relation, *, is_top: bool) -> _Block:
        values = [self._made.value(relation.items) for _ in range(self._random.randint(1, 2))]
        values += [Value(item.ref, item.kind, True, item) for item in relation.key[:1]]
        exact = [item for item in relation.items if item.is_exact]
        for _ in range(self._random.randint(1, 2)):
            by = self._random.choice(exact).ref
            total = ", ".join(item.ref for item in relation.key)
            leading = f"{self._random.choice(exact).ref} DESC, " if self._made.chance(0.4) else ""
            over = f"OVER (PARTITION BY {by} ORDER BY {leading}{total})"
            functions = ["row_number()", "rank()", "dense_rank()", "ntile(3)", "count(*)"]
            item = self._random.choice(exact)
            functions += [f"lag({item.ref})", f"lead({item.ref}, 2)", f"max({item.ref})", f"first_value({item.ref})"]
            values.append(Value(f"{self._random.choice(functions)} {over}", "other"))
        return self._select("SELECT ", values, self._tail(relation, 1), relation, is_top)

    def _aggregate(self, relation: Relation, *, is_top: bool) -> _Block:
        made = self._made
        groups = [made.value(relation.items) for _ in range(self._random.choice((0, 1, 1, 1, 2, 2, 3)))]
        groups = [value for value in groups if value.is_exact]
        aggregates = [made.aggregate(relation.items) for _ in range(self._random.randint(1, 3))]
        shown = [value for value in groups if not made.chance(0.12)]
        tail = self._tail(relation, 1)
        by = ", ".join(value.sql for value in groups)
        if groups and all(value.item is not None for value in groups) and made.chance(0.18):
            # A set that is named twice would give its rows twice; that is Spark's to decide.
            sets = f"GROUPING SETS (({by}), ({groups[0].sql}), ())"
            tail += f" GROUP BY {self._random.choice((f'ROLLUP ({by})', f'CUBE ({by})', sets))}"
        elif groups:
            tail += f" GROUP BY {by}"
        if made.chance(0.2):
            kept = ["count(*) > 1", "count(*) BETWEEN 2 AND 50", "count(*) % 2 = 0", f"count(*) < {self._scalar(())}"]
            tail += f" HAVING {self._random.choice(kept)}"
        rows = min(relation.rows, 20.0 ** len(groups))
        return replace(self._select("SELECT ", [*shown, *aggregates], tail, relation, is_top), rows=rows)

    def _select(self, start: str, values: Sequence[Value], tail: str, relation: Relation, is_top: bool) -> _Block:
        names = tuple("" if is_top and self._made.chance(0.3) else f"x{index}" for index in range(len(values)))
        listed = ", ".join(
            f"{value.sql} AS {name}" if name else value.sql for value, name in zip(values, names, strict=True)
        )
        return _Block(f"{start}{listed} FROM {tail}", tuple(values), names, relation.rows)

    def _tail(self, relation: Relation, depth: int = 0) -> str:
        """FROM's relation and a WHERE."""
        conditions = list(relation.conditions)
        if self._made.chance(0.6):
            conditions.append(self._made.predicate(relation.items))
        if depth and self._made.chance(0.3):
            subquery = self._subquery(relation.items)
            conditions.append(
                f"({subquery} OR {self._made.compare(relation.items)})" if self._made.chance(0.2) else subquery
            )
        return f"{relation.sql} WHERE {' AND '.join(conditions)}" if conditions else relation.sql

    # --- FROM --------------------------------------------------------------------------------------------
    def _relation(self, depth: int) -> Relation:
        relation = self._source(self._any_table(), depth)
        for _ in range(self._random.choice((0, 0, 1, 1, 1, 2, 2, 3))):
            relation = self._joined(relation, depth) or relation
        return relation

    def _any_table(self) -> str:
        # Of an empty table little can be asked.
        names = list(self._tables)
        return self._random.choices(names, [0.2 if self._tables[name].rows == 0 else 1.0 for name in names])[0]

    def _source(self, name: str, depth: int) -> Relation:
        table, alias = self._tables[name], self._alias("t")
        items = tuple(
            Item(
                f"{alias}.{_quoted(column.name)}", column.kind, f"{name}.{column.name}", column.values, column.is_added
            )
            for column in table.columns
        )
        key = tuple(item for item in items if item.origin.split(".")[1] in KEYS[name])
        plain = Relation(f"{name} {alias}", items, table.rows, key)
        return self._derived(plain, alias) if depth and self._made.chance(0.2) else plain

    def _derived(self, plain: Relation, alias: str) -> Relation:
        """The table behind a subquery that filters it, keeps some columns, or groups it."""
        chosen = [*plain.key, *(item for item in plain.items if item not in plain.key and self._made.chance(0.3))]
        names = [f"y{index}" for index in range(len(chosen))]
        listed = ", ".join(f"{item.ref} AS {name}" for item, name in zip(chosen, names, strict=True))
        outer = tuple(item.renamed(f"{alias}.{name}") for item, name in zip(chosen, names, strict=True))
        inner = f"SELECT {listed} FROM {plain.sql}"
        if self._made.chance(0.7):
            inner += f" WHERE {self._made.predicate(plain.items, 1)}"
        if self._made.chance(0.2):
            terms = ", ".join(names[: len(plain.key)])
            inner += f" ORDER BY {terms} LIMIT {self._random.choice((5, 40))}"
        return Relation(f"({inner}) {alias}", outer, plain.rows, outer[: len(plain.key)])

    def _joined(self, left: Relation, depth: int) -> Relation | None:
        ways = [(item, other) for item in left.items if item.origin for other in partners(item.origin)]
        if not ways or self._made.chance(0.06):
            return self._crossed(left)
        item, other = self._random.choice(ways)
        name = other.split(".")[0]
        right = self._source(name, depth)
        found = next((each for each in right.items if each.origin == other), None)
        if found is None:
            return None
        # A key's partner makes no more rows than there are; other pairs are taken to match one in ten.
        is_key = any(each.origin.split(".")[1:] == [KEYS[each.origin.split(".")[0]][0]] for each in (item, found))
        rows = max(left.rows, right.rows) * 4 if is_key else left.rows * right.rows / 10
        if rows > ROWS_MAX:
            return None
        equal = f"{item.ref} {'<=>' if self._made.chance(0.08) else '='} {found.ref}"
        if left.is_list and self._made.chance(0.3):
            conditions = (*left.conditions, *right.conditions, equal)
            return Relation(
                f"{left.sql}, {right.sql}", left.items + right.items, rows, both(left, right), conditions, True
            )
        return self._explicit(left, right, equal, rows)

    def _explicit(self, left: Relation, right: Relation, equal: str, rows: float) -> Relation | None:
        if left.conditions:
            return None  # ON sees one side of a comma only
        kinds = (
            "JOIN",
            "JOIN",
            "JOIN",
            "LEFT JOIN",
            "LEFT JOIN",
            "RIGHT JOIN",
            "FULL JOIN",
            "LEFT SEMI JOIN",
            "LEFT ANTI JOIN",
        )
        kind = self._random.choice(kinds)
        on = equal
        if self._made.chance(0.25):
            on += f" AND {self._made.compare(left.items + right.items)}"
        names = {each.partition(".")[2] for each in equal.split(" = ")}
        # A column of that name on either side alone: USING could mean no other.
        is_simple = len(names) == 1 and " = " in equal and left.sql.count("JOIN") == 0 and "," not in left.sql
        end = f"USING ({names.pop()})" if is_simple and self._made.chance(0.5) else f"ON {on}"
        sql = f"{left.sql} {kind} {right.sql} {end}"
        if "SEMI" in kind or "ANTI" in kind:
            return Relation(sql, left.items, left.rows, left.key, is_list=False)
        return Relation(sql, left.items + right.items, rows, both(left, right), is_list=False)

    def _crossed(self, left: Relation) -> Relation | None:
        right = self._source(self._random.choice(("region", "empty")), 0)
        if left.conditions or left.rows * 5 > ROWS_MAX:
            return None
        sql = f"{left.sql} CROSS JOIN {right.sql}"
        return Relation(sql, left.items + right.items, left.rows * 5, both(left, right), is_list=False)

    # --- subqueries --------------------------------------------------------------------------------------
    def _subquery(self, outer: Sequence[Item]) -> str:
        """A predicate with one: IN, EXISTS or a scalar one, correlated or not."""
        ways = [(item, other) for item in outer if item.origin for other in partners(item.origin)]
        if not ways or self._made.chance(0.2):
            comparable = [item for item in outer if item.kind == "int"]
            left = self._random.choice(comparable).ref if comparable else "3"
            return f"{left} {self._random.choice(('<', '>', '<>', '<='))} {self._scalar(outer)}"
        item, other = self._random.choice(ways)
        inner = self._source(other.split(".")[0], 0)
        found = next(each for each in inner.items if each.origin == other)
        more = f" AND {self._made.predicate(inner.items, 1)}" if self._made.chance(0.6) else ""
        no = self._random.choice(("", "", "NOT "))
        if self._made.chance(0.2):
            return self._exists_join(inner, found, item, more, no)
        if self._made.chance(0.5):
            listed = self._random.choice(("*", "1", found.ref))
            return f"{no}EXISTS (SELECT {listed} FROM {inner.sql} WHERE {found.ref} = {item.ref}{more})"
        where = f" WHERE {more.removeprefix(' AND ')}" if more else ""
        if self._made.chance(0.25):
            group = f" GROUP BY {found.ref} HAVING count(*) > 1"
            return f"{item.ref} {no}IN (SELECT {found.ref} FROM {inner.sql}{where}{group})"
        return f"{item.ref} {no}IN (SELECT {found.ref} FROM {inner.sql}{where})"

    def _exists_join(self, inner: Relation, found: Item, item: Item, more: str, no: str) -> str:
        """EXISTS, or IN without a correlation, over a join."""
        ways = [(each, other) for each in inner.items if each.origin for other in partners(each.origin)]
        if not ways:
            return f"{no}EXISTS (SELECT * FROM {inner.sql} WHERE {found.ref} = {item.ref}{more})"
        each, other = self._random.choice(ways)
        joined = self._source(other.split(".")[0], 0)
        key = next(column for column in joined.items if column.origin == other)
        pair = f"{inner.sql} JOIN {joined.sql} ON {each.ref} = {key.ref}"
        if self._made.chance(0.4):
            return f"{item.ref} {no}IN (SELECT {found.ref} FROM {pair}{more.replace(' AND ', ' WHERE ', 1)})"
        numbers = [column.ref for column in joined.items if column.kind == "int"]
        link = f" AND {self._random.choice(numbers)} <> {item.ref}" if numbers and item.kind == "int" else ""
        return f"{no}EXISTS (SELECT 1 FROM {pair} WHERE {found.ref} = {item.ref}{link}{more})"

    def _scalar(self, outer: Sequence[Item]) -> str:
        """A subquery of one number; correlated by equality where a column has a partner."""
        ways = [(item, other) for item in outer if item.origin for other in partners(item.origin)]
        name = self._any_table()
        link = ""
        item, other = self._random.choice(ways) if ways and self._made.chance(0.5) else (None, "")
        inner = self._source(other.split(".")[0] if item is not None else name, 0)
        if item is not None:
            found = next(each for each in inner.items if each.origin == other)
            link = f" WHERE {found.ref} = {item.ref}"
        numbers = [each for each in inner.items if each.kind == "int"]
        asked = ["count(*)"] + (
            [f"{self._random.choice(('min', 'max'))}({self._random.choice(numbers).ref})"] if numbers else []
        )
        asked += [f"1 + count({numbers[0].ref})", f"coalesce(max({numbers[-1].ref}), 3)"] if numbers else []
        if self._made.chance(0.4):
            link += f"{' AND' if link else ' WHERE'} {self._made.compare(inner.items)}"
        return f"(SELECT {self._random.choice(asked)} FROM {inner.sql}{link})"

    def _alias(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"


def both(left: Relation, right: Relation) -> tuple[Item, ...]:
    return left.key + right.key if left.key and right.key else ()


def _outer(value: Value, ref: str) -> Item:
    """A column of a subquery as the query around it sees it."""
    if value.item is not None:
        return value.item.renamed(ref)
    return Item(ref, value.kind, is_exact=value.is_exact)


def _quoted(name: str) -> str:
    return name if PLAIN.fullmatch(name) else f"`{name}`"
