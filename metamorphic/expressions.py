"""Expressions, predicates and aggregates over the columns in scope. All of them have one value whatever the plan:
nothing here depends on the order of rows, and nothing overflows or fails for some rows only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from metamorphic.tables import quoted

KINDS = ("int", "dec", "dbl", "str", "date", "ts")
COMPARED = ("=", "<>", "<", "<=", ">", ">=")
PATTERNS = ("%a%", "A%", "%e", "_o%", "%special%", "%", "100\\\\%%", "")


@dataclass(frozen=True)
class Item:
    """A column in scope. `origin` is `table.column` where it is one; `is_exact` is false for sums of doubles."""

    ref: str
    kind: str
    origin: str = ""
    values: tuple[str, ...] = ()
    is_added: bool = False
    is_exact: bool = True

    @property
    def is_tame(self) -> bool:
        """Arithmetic with small numbers cannot overflow."""
        return self.origin != "" and not self.origin.startswith("nasty.")

    def renamed(self, ref: str) -> Item:
        return replace(self, ref=ref)


@dataclass(frozen=True)
class Value:
    """An expression of the select list."""

    sql: str
    kind: str
    is_exact: bool = True
    item: Item | None = None  # when it is a bare column


class Expressions:
    def __init__(self, random: Random) -> None:
        self._random = random

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    # --- values --------------------------------------------------------------------------------------
    def value(self, items: Sequence[Item]) -> Value:
        """Any column, or something made of it."""
        item = self._random.choice(items)
        if item.kind not in KINDS or not item.is_exact or self.chance(0.55):
            return Value(item.ref, item.kind, item.is_exact, item)
        kind = self._random.choice(KINDS[:5])
        return Value(self.of_kind(items, kind, 2), kind)

    def of_kind(self, items: Sequence[Item], kind: str, depth: int = 1) -> str:
        """An expression of that kind; a literal where no column helps."""
        fitting = [item for item in items if item.kind == kind and item.is_exact]
        if not fitting and kind not in ("int", "str", "dec"):
            return {"date": "DATE '1995-06-17'", "ts": "TIMESTAMP '2024-01-01 05:00:00'", "dbl": "double('0.5')"}[kind]
        item = self._random.choice(fitting) if fitting else None
        if depth <= 0 and item is not None:
            return item.ref
        makers = {"int": self._int, "dec": self._dec, "dbl": self._dbl, "str": self._str, "date": self._date}
        return makers.get(kind, self._ts)(items, item, depth)

    def _int(self, items: Sequence[Item], item: Item | None, depth: int) -> str:
        choose = self._random.choice
        small = choose((1, 2, 3, 7, 10))
        forms = [f"length({self.of_kind(items, 'str', depth - 1)})" if self._has(items, "str") else str(small)]
        if self._has(items, "date"):
            forms.append(f"{choose(('year', 'month', 'day', 'quarter'))}({self.of_kind(items, 'date', 0)})")
            forms.append(f"datediff(DAY, {self.of_kind(items, 'date', 0)}, DATE '1995-06-17')")
        if self._has(items, "ts"):
            forms.append(f"extract(HOUR FROM {self.of_kind(items, 'ts', 0)} - TIMESTAMP '2024-01-01 00:00:00')")
        if item is not None:
            forms += [f"{item.ref} % {small}", f"coalesce({item.ref}, {small})", f"nullif({item.ref}, {small})"]
            forms += [f"try_add({item.ref}, {small})"] if not item.is_tame else [f"({item.ref} + {small})"]
            forms += [f"{item.ref} * {small} - 1"] if item.is_tame else [f"sign({item.ref})"]
            forms.append(f"CASE WHEN {self.compare(items)} THEN {item.ref} ELSE {choose((small, -(2**31)))} END")
        return choose(forms)

    def _dec(self, items: Sequence[Item], item: Item | None, depth: int) -> str:
        if item is None:
            return self._random.choice(("1.50", "0.00", "-12.345"))
        forms = [f"({item.ref} * 2)", f"({item.ref} + 1.5)", f"round({item.ref}, 1)", f"coalesce({item.ref}, 0.00)"]
        forms += [f"CASE WHEN {self.compare(items)} THEN {item.ref} ELSE 0 END", f"-{item.ref}"]
        forms.append(f"({item.ref} * (1 - 0.05))")
        return self._random.choice(forms)

    def _dbl(self, _items: Sequence[Item], item: Item | None, _depth: int) -> str:
        assert item is not None
        forms = [item.ref, f"coalesce({item.ref}, double('-1'))", f"nanvl({item.ref}, double('0'))"]
        forms += [f"nullif({item.ref}, double('0'))", f"({item.ref} / 2)"]
        return self._random.choice(forms)

    def _str(self, items: Sequence[Item], item: Item | None, depth: int) -> str:
        choose = self._random.choice
        if item is None:
            return quoted(choose(("x", "", "ø", "it's")))
        inner = item.ref if depth <= 1 else self.of_kind(items, "str", depth - 1)
        forms = [f"upper({inner})", f"lower({inner})", f"substring({inner}, 1, {choose((1, 2, 5))})", f"trim({inner})"]
        forms += [f"coalesce({inner}, 'none')", f"concat({inner}, '-', {item.ref})", f"{inner} || '!'"]
        forms.append(f"CASE WHEN {self.compare(items)} THEN {item.ref} ELSE {quoted(choose(('', 'else')))} END")
        return choose(forms)

    def _date(self, _items: Sequence[Item], item: Item | None, _depth: int) -> str:
        assert item is not None
        if not item.is_tame:
            return f"coalesce({item.ref}, DATE '2000-01-01')"
        forms = [f"date_add({item.ref}, 30)", f"{item.ref} + INTERVAL '1' MONTH", f"trunc({item.ref}, 'MM')"]
        forms += [f"last_day({item.ref})", f"{item.ref} - INTERVAL '3' DAY"]
        return self._random.choice(forms)

    def _ts(self, _items: Sequence[Item], item: Item | None, _depth: int) -> str:
        assert item is not None
        return f"coalesce({item.ref}, TIMESTAMP '2024-01-01 00:00:00')"

    # --- predicates ------------------------------------------------------------------------------------
    def predicate(self, items: Sequence[Item], depth: int = 2) -> str:
        """True, false or NULL."""
        if depth > 0 and self.chance(0.35):
            one, other = self.predicate(items, depth - 1), self.predicate(items, depth - 1)
            return self._random.choice((f"({one} AND {other})", f"({one} OR {other})", f"NOT ({one})"))
        return self.compare(items)

    def compare(self, items: Sequence[Item]) -> str:
        choose = self._random.choice
        simple = [item for item in items if item.is_exact]
        if not simple:
            return choose(("1 = 1", "NULL IS NULL"))
        item = choose(simple)
        if item.kind == "bool":
            return choose((item.ref, f"NOT {item.ref}", f"{item.ref} IS NOT TRUE"))
        if item.kind == "other" or not item.values or self.chance(0.1):
            return f"{item.ref} IS {choose(('', 'NOT '))}NULL"
        forms = [f"{item.ref} {choose(COMPARED)} {choose(item.values)}"] * 4
        forms.append(f"{item.ref} <=> {choose(item.values)}")
        low, high = sorted(self._random.choices(range(len(item.values)), k=2))
        forms.append(f"{item.ref} {choose(('', 'NOT '))}BETWEEN {item.values[low]} AND {item.values[high]}")
        some = ", ".join(self._random.sample(item.values, min(3, len(item.values))))
        forms.append(f"{item.ref} {choose(('', '', 'NOT '))}IN ({some}{choose(('', '', ', NULL'))})")
        if item.kind == "str":
            forms.append(f"{item.ref} {choose(('', 'NOT '))}LIKE {quoted(choose(PATTERNS))}")
            forms.append(f"substring({item.ref}, 1, 1) {choose(COMPARED)} substring({choose(item.values)}, 1, 1)")
        others = [other for other in simple if other.kind == item.kind and other.ref != item.ref]
        if others:
            forms += [f"{item.ref} {choose(COMPARED)} {choose(others).ref}"] * 2
        return choose(forms)

    # --- aggregates ------------------------------------------------------------------------------------
    def aggregate(self, items: Sequence[Item]) -> Value:
        choose = self._random.choice
        exact = [item for item in items if item.is_exact]
        if not exact or self.chance(0.2):
            return Value("count(*)", "int")
        forms = [self._counted(exact), self._extreme(exact)]
        added = [item for item in exact if item.is_added]
        if added:
            forms += [self._summed(exact, choose(added))] * 3
        found = choose(forms)
        if self.chance(0.15) and found.sql.endswith(")") and "(" in found.sql and not found.sql.startswith("round"):
            plain = found.sql.split("(")[0] in ("sum", "count", "min", "max", "avg")
            if plain and "CASE" not in found.sql:
                return replace(found, sql=f"{found.sql} FILTER (WHERE {self.compare(exact)})")
        return found

    def _counted(self, items: Sequence[Item]) -> Value:
        item = self._random.choice(items)
        forms = [f"count({item.ref})", f"count(DISTINCT {item.ref})", f"count_if({self.compare(items)})"]
        return Value(self._random.choice(forms), "int")

    def _extreme(self, items: Sequence[Item]) -> Value:
        choose = self._random.choice
        item = choose(items)
        if self.chance(0.15):
            return Value(f"{choose(('bool_and', 'bool_or', 'every', 'some'))}({self.compare(items)})", "bool")
        if item.kind in ("int", "str", "date") and self.chance(0.2):
            return Value(f"sort_array(collect_set({item.ref}))", "other")
        if item.kind == "int" and self.chance(0.2):
            return Value(f"{choose(('bit_or', 'bit_and', 'bit_xor'))}({item.ref})", "other")
        return Value(f"{choose(('min', 'max'))}({item.ref})", item.kind)

    def _summed(self, items: Sequence[Item], item: Item) -> Value:
        choose = self._random.choice
        is_exact = item.kind != "dbl"
        if self.chance(0.12):
            # Rounded: of equal values it may be 0 or nearly 0. What is added keeps it off the middle of two numbers.
            spread = choose(("stddev", "variance", "stddev_pop", "var_pop"))
            return Value(f"round({spread}({item.ref}) + 0.0000123, 4)", "dbl", False)
        forms = [f"sum({item.ref})"] * 3 + [f"avg({item.ref})"]
        if item.kind != "dbl":
            forms += [f"sum(DISTINCT {item.ref})", f"sum(CASE WHEN {self.compare(items)} THEN {item.ref} ELSE 0 END)"]
        sql = choose(forms)
        kind = "dbl" if sql.startswith("avg") and item.kind == "int" else item.kind
        # What a sum's type can hold is more than what arithmetic on it could: it is not added again.
        return Value(sql, "other" if kind == "dec" else kind, is_exact and kind != "dbl")

    def _has(self, items: Sequence[Item], kind: str) -> bool:
        return any(item.kind == kind and item.is_exact for item in items)
