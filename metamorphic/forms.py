"""Queries in forms that few write: QUALIFY, recursive CTEs, hints, pipes, pairs of aggregates, subqueries in HAVING,
correlated subqueries with LIMIT, conditions on who asks."""

from __future__ import annotations

from dataclasses import replace

from metamorphic.expressions import Item, Value
from metamorphic.grammar import Grammar, Query, Relation
from metamorphic.tables import partners

_HINTS = ("BROADCAST", "MERGE", "SHUFFLE_HASH", "MAPJOIN")


class Forms(Grammar):
    """One query a seed."""

    def query(self) -> Query:
        shapes = (
            self._qualified,
            self._recursive,
            self._hinted,
            self._piped,
            self._in_pairs,
            self._having,
            self._limited,
            self._asked,
        )
        return self._random.choice(shapes)()

    def _qualified(self) -> Query:
        """Rows by their place in a window; half of them below another condition, which must not move below it."""
        relation = self._keyed()
        by = self._random.choice([item for item in relation.items if item.is_exact]).ref
        total = ", ".join(item.ref for item in relation.key)
        place = f"row_number() OVER (PARTITION BY {by} ORDER BY {total})"
        kept = f"{place} {self._random.choice(('= 1', '<= 3', '% 2 = 0'))}"
        if self._made.chance(0.3):
            kept = f"({kept} OR {self._made.compare(relation.items)})"
        values = [Value(item.ref, item.kind, True, item) for item in relation.key]
        values += [self._made.value(relation.items) for _ in range(self._random.randint(1, 2))]
        block = self._select("SELECT ", values, self._tail(relation, 1), relation, is_top=False)
        block = replace(block, sql=f"{block.sql} QUALIFY {kept}")
        if self._made.chance(0.5):
            outer = self._named(f"({block.sql})", block)
            block = self._plain(replace(outer, is_list=False), 0, is_top=True)
        return self._ordered(block)

    def _recursive(self) -> Query:
        """Numbers up to one of the table's, joined with the table; or a chain through a table and its partner."""
        relation = self._source(self._any_table(), 0)
        numbers = [item for item in relation.items if item.kind == "int" and item.is_tame]
        name, least = self._alias("r"), self._random.choice((0, 1, 3))
        step, most = self._random.choice((1, 2)), self._random.choice((5, 12, 20))
        if not numbers:
            return self._hinted()
        number = self._random.choice(numbers)
        inner = f"SELECT {least} UNION ALL SELECT n + {step} FROM {name} WHERE n < {most}"
        if self._made.chance(0.4):
            arm = f"SELECT CAST(max({number.ref}) % 7 AS INT) FROM {relation.sql}"
            inner = f"{arm} UNION ALL SELECT n + {step} FROM {name} WHERE n < {most}"
        other = self._source(relation.sql.split(" ")[0], 0)
        key = next(item for item in other.items if item.origin == number.origin)
        how = self._random.choice(("JOIN", "LEFT JOIN", "LEFT SEMI JOIN"))
        items = (Item(f"{name}.n", "int"), *(() if "SEMI" in how else other.items))
        joined = Relation(f"{name} {how} {other.sql} ON {key.ref} = {name}.n", items, other.rows, is_list=False)
        block = self._aggregate(joined, is_top=True)
        query = self._ordered(block)
        return replace(query, sql=f"WITH RECURSIVE {name}(n) AS ({inner}) {query.sql}")

    def _hinted(self) -> Query:
        query = super().query()
        alias = self._random.choice(("t1", "t2", "c3"))
        hint = f"/*+ {self._random.choice(_HINTS)}({alias}), REPARTITION({self._random.randint(1, 5)}) */"
        return replace(query, sql=query.sql.replace("SELECT ", f"SELECT {hint} ", 1))

    def _asked(self) -> Query:
        """Conditions on who asks and where, which are true of everybody: the initiator's values reach every site."""
        query = super().query()
        kept = self._random.choice(("current_user <=> session_user()", "current_schema() = current_database()"))
        return replace(query, sql=query.sql.replace(" WHERE ", f" WHERE {kept} AND ", 1))

    def _piped(self) -> Query:
        """Operators one behind the other; names of relations are asked for where they are kept."""
        relation = self._relation(0)
        where = [*relation.conditions, self._made.predicate(relation.items)]
        sql = f"FROM {relation.sql} |> WHERE {' AND '.join(where)}"
        groups = [value for value in (self._made.value(relation.items) for _ in range(2)) if value.is_exact]
        values = [*groups, *(self._made.aggregate(relation.items) for _ in range(2))]
        names = [f"x{index}" for index in range(len(values))]
        listed = [f"{value.sql} AS {name}" for value, name in zip(values, names, strict=True)]
        if self._made.chance(0.3):
            sql += f" |> SELECT {', '.join(item.ref for item in relation.items[:1])}, count(*) AS many"
            sql += f" GROUP BY {relation.items[0].ref} |> EXTEND many + 1 AS more"
            if not relation.items[0].is_exact or not relation.items[0].origin:
                return Query(sql)
            return Query(f"{sql} |> ORDER BY many, 1 |> LIMIT 10")
        sql += f" |> AGGREGATE {', '.join(listed[len(groups) :])}"
        if groups:
            sql += f" GROUP BY {', '.join(listed[: len(groups)])}"
        exact = [place for place, value in enumerate(values) if value.is_exact]
        if groups and self._made.chance(0.5):
            return Query(f"{sql} |> ORDER BY {', '.join(names[place] for place in exact)}", tuple(exact))
        return Query(f"{sql} |> AS p |> WHERE p.{names[-1]} IS NOT NULL |> SELECT p.*")

    def _in_pairs(self) -> Query:
        """Two aggregates in one expression, over integers and decimals."""
        relation = self._relation(1)
        made, choose = self._made, self._random.choice
        numbers = [item for item in relation.items if item.kind in ("int", "dec") and item.is_tame and item.is_added]
        numbers = numbers or [item for item in relation.items if item.kind in ("int", "dec") and item.is_tame]
        if not numbers:
            return self._hinted()
        values = []
        for _ in range(self._random.randint(1, 3)):
            one, other = choose(numbers).ref, choose(numbers).ref
            calls = [f"sum({one})", f"count({one})", f"min({one})", f"max({one})", f"sum(DISTINCT {one})"]
            others = [f"sum({other})", f"count({other})", f"max({other})", f"count(DISTINCT {other})"]
            pair = f"{choose(calls)} {choose(('+', '-', '+'))} {choose(others)}"
            values.append(Value(choose((pair, pair, f"coalesce({pair}, 0)", f"({pair}) BETWEEN 0 AND 100")), "other"))
        groups = [value for value in (made.value(relation.items) for _ in range(choose((0, 1, 2)))) if value.is_exact]
        tail = self._tail(relation)
        if groups:
            tail += f" GROUP BY {', '.join(value.sql for value in groups)}"
        return self._ordered(self._select("SELECT ", [*groups, *values], tail, relation, is_top=True))

    def _having(self) -> Query:
        """HAVING asks of other tables: a value, IN, EXISTS."""
        relation = self._relation(0)
        made, choose = self._made, self._random.choice
        groups = [value for value in (made.value(relation.items) for _ in range(2)) if value.is_exact and value.item]
        if not groups:
            return self._hinted()
        values = [*groups, made.aggregate(relation.items)]
        asked = [f"count(*) {choose(('<', '>', '<>'))} {self._scalar(())}"]
        asked += [self._subquery([value.item for value in groups if value.item is not None])]
        linked = [(value.item, other) for value in groups if value.item for other in partners(value.item.origin)]
        if linked:
            item, other = choose(linked)
            inner = self._source(other.split(".")[0], 0)
            found = next(each for each in inner.items if each.origin == other)
            asked.append(f"max({item.ref}) IN (SELECT {found.ref} FROM {inner.sql} WHERE {made.compare(inner.items)})")
        by = ", ".join(value.sql for value in groups)
        having = f" {choose(('AND', 'OR'))} ".join(self._random.sample(asked, choose((1, min(2, len(asked))))))
        tail = f"{self._tail(relation)} GROUP BY {by} HAVING {having}"
        return self._ordered(self._select("SELECT ", values, tail, relation, is_top=True))

    def _limited(self) -> Query:
        """Subqueries that ask of the row around them, and take the first of what they find."""
        relation = self._relation(0)
        made = self._made
        # By a double Spark's answer depends on its plan: 0.0 and -0.0 are one value, or each has its own first row.
        items = [item for item in relation.items if item.origin and item.kind != "dbl"]
        ways = [(item, other) for item in items for other in partners(item.origin)]
        if not ways:
            return self._hinted()
        item, other = self._random.choice(ways)
        inner = self._source(other.split(".")[0], 0)
        found = next(each for each in inner.items if each.origin == other)
        exact = [each for each in inner.items if each.is_exact and each.kind in ("int", "str", "date", "dec")]
        asked = self._random.choice(exact)
        more = f" AND {made.compare(inner.items)}" if made.chance(0.5) else ""
        order = ", ".join([f"{asked.ref} DESC", *(each.ref for each in inner.key)])
        first = f"SELECT {asked.ref} FROM {inner.sql} WHERE {found.ref} = {item.ref}{more} ORDER BY {order} LIMIT 1"
        values = [made.value(relation.items) for _ in range(self._random.randint(1, 2))]
        where = list(relation.conditions)
        if made.chance(0.5):
            values.append(Value(f"({first})", "other"))
        else:
            any_row = (
                f"SELECT 1 FROM {inner.sql} WHERE {found.ref} = {item.ref}{more} LIMIT {self._random.choice((1, 3))}"
            )
            where.append(
                self._random.choice((f"({first}) IS NOT NULL", f"EXISTS ({any_row})", f"NOT EXISTS ({any_row})"))
            )
        tail = f"{relation.sql} WHERE {' AND '.join(where)}" if where else relation.sql
        return self._ordered(self._select("SELECT ", values, tail, relation, is_top=True))

    def _keyed(self) -> Relation:
        """A relation whose rows have names."""
        for _ in range(20):
            relation = self._relation(0)
            if relation.key and all(item.is_exact for item in relation.key):
                return relation
        return self._source("nation", 0)
