"""Stories of one table of our own: statements of all forms, flushes and restarts, beside a dict that knows better."""

from __future__ import annotations

import datetime as dt
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import Any

import yaml

import skerry
from metamorphic.tables import quoted
from skerry.client.dbapi import Connection
from skerry.config import load
from skerry.spark.engine import Engine
from skerry.testing.cluster import LocalCluster

STATEMENTS = 40  # of a story
DATA, LITE = ("oslo", "bergen"), "kiosk"
Row = tuple[Any, ...]  # the key's columns first
Key = tuple[Any, ...]

# By type: values that have been trouble elsewhere. Those that are equal as keys stand in one story.
_FULL, _TINY = Decimal("99999999999999999999.999999999999999999"), Decimal("0.000000000000000001")
_MOMENTS = (
    *(dt.datetime(1, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2024, 2, 29, 12, 0, 0, 1)),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
)
_TEXTS = ("", " ", "a", "A", "a ", "ß", "é", "e\u0301", "日本語", "🙂", "NULL", "it's", "a\\b", "x\ny", "%_", "\u0130")
VALUES: dict[str, tuple[Any, ...]] = {
    "bigint": (0, 1, -1, 2, 7, 42, 2**53 + 1, -(2**63), 2**63 - 1),
    "int": (0, 1, -1, 2**31 - 1, -(2**31)),
    "string": _TEXTS,
    "decimal(38,18)": (
        Decimal(0),
        _TINY,
        _TINY.copy_negate(),
        Decimal("1.5"),
        Decimal("-1.5"),
        _FULL,
        _FULL.copy_negate(),
    ),
    "decimal(38,0)": tuple(map(Decimal, (0, 7, 10**38 - 1, -(10**38) + 1, 2**63, 2**64))),
    "double": (0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, -1.5, 2.0**53, 1e308, 5e-324, 0.1),
    "float": (0.0, -0.0, math.nan, math.inf, 1.5, 16777216.0),
    "boolean": (True, False),
    "date": (dt.date(1582, 10, 4), dt.date(1970, 1, 1), *(each.date() for each in _MOMENTS)),
    "timestamp": tuple(each.replace(tzinfo=dt.UTC) for each in _MOMENTS),
    "timestamp_ntz": _MOMENTS,
    "binary": (b"", b"\x00", b"a", b"\xff\xfe", b"\x00a"),
}
KEYS = (
    *(("bigint",), ("string",), ("decimal(38,18)",), ("decimal(38,0)",), ("double",), ("float",), ("date",)),
    *(("timestamp",), ("timestamp_ntz",), ("binary",), ("int", "string"), ("string", "double"), ("boolean", "bigint")),
)


def same_key(key: Key) -> Key:
    """Keys that are one row: -0.0 is 0.0, and there is one NaN."""
    return tuple(_same(each) if isinstance(each, float) else each for each in key)


def _same(number: float) -> float | str:
    return "NaN" if math.isnan(number) else number + 0


def shown(row: Row, key_columns: int) -> tuple[str, ...]:
    """As text, so that values which are only equal are told apart; keys are as `same_key` has them."""
    return tuple(_text(each) for each in (*same_key(row[:key_columns]), *row[key_columns:]))


def _text(value: Any) -> str:
    """Decimals of a column have its scale, whatever was written."""
    if not isinstance(value, Decimal):
        return repr(value)
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


@dataclass
class Story:
    """One seed. `said` is what was executed, for whoever replays it."""

    seed: int
    cluster: LocalCluster
    statements: int = 0
    looks: int = 0
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = Random(f"story {self.seed}")
        self.name = f"m{self.seed}"
        self.key_types = self.random.choice(KEYS)
        kinds = list(VALUES)
        self.value_types = [*self.random.sample(kinds, 4), "bigint"]  # the last is computed with
        self.keys = [f"k{number}" for number in range(len(self.key_types))]
        self.values = [f"v{number}" for number in range(len(self.value_types))]
        self.types = [*self.key_types, *self.value_types]
        self.rows: dict[Key, Row] = {}
        self.transaction: tuple[str, Connection] | None = None
        self.seen = 0  # the last commit: connections are at any member
        self.before: dict[Key, Row] = {}  # what others see while a transaction is open

    # --- the world ---------------------------------------------------------------------------------
    def run(self, statements: int = STATEMENTS) -> None:
        """AssertionError with the story so far, if the table is not what the dict is."""
        spread = self.random.choice((f"BY ({', '.join(self.keys)})", f"BY ({self.keys[0]})", "GLOBALLY"))
        columns = ", ".join(f"{name} {kind}" for name, kind in zip((*self.keys, *self.values), self.types, strict=True))
        self._say(f"CREATE TABLE {self.name} ({columns}) PRIMARY KEY ({', '.join(self.keys)}) DISTRIBUTED {spread}")
        work: tuple[Callable[[], None], ...] = (
            *(self._insert, self._insert, self._insert, self._insert_many, self._update, self._update, self._delete),
            *(self._compute, self._update_where, self._delete_where, self._insert_select, self._flush, self._flush),
            *(self._merge, self._merge),
        )
        for _ in range(statements):
            rare = self.random.random()
            if self.transaction is None and self.random.random() < 0.15:
                self._begin()
            elif self.transaction is not None and self.random.random() < 0.2:
                self._end()
            if rare < 0.02 and self.transaction is None:
                self._restart()
            elif rare < 0.03:
                self._change(f"TRUNCATE TABLE {self.name}", [], len(self.rows))
                self.rows = {}
            else:
                self.random.choice(work)()
            if self.random.random() < 0.3:
                self._look()
        self._end()
        self._look()
        self._say(f"DROP TABLE {self.name}")

    def _say(self, sql: str, values: Any = None, many: list[list[Any]] | None = None) -> int:
        with self._connection(is_alone=sql.startswith("FLUSH")) as (at, connection), connection.cursor() as cursor:
            self.said.append(f"{at}: {sql} {many if many is not None else values or ''}")
            self.statements += 1
            cursor.executemany(sql, many) if many is not None else cursor.execute(sql, values)
            return cursor.rowcount

    @contextmanager
    def _connection(self, *, is_alone: bool) -> Iterator[tuple[str, Connection]]:
        """That of the open transaction, unless it is for others."""
        if self.transaction is not None and not is_alone:
            yield self.transaction
            return
        at = self.random.choice((*DATA, LITE))
        with self.cluster.connect(at) as connection:
            connection.last_commit = self.seen
            try:
                yield at, connection
            finally:
                self.seen = max(self.seen, connection.last_commit)

    def _begin(self) -> None:
        at = self.random.choice((*DATA, LITE))
        self.transaction, self.before = (at, self.cluster.connect(at)), dict(self.rows)
        self.transaction[1].last_commit = self.seen
        self._say("BEGIN")

    def _end(self) -> None:
        if self.transaction is None:
            return
        is_commit = self.random.random() < 0.6
        self._say("COMMIT" if is_commit else "ROLLBACK")
        connection, self.transaction = self.transaction[1], None
        self.seen = max(self.seen, connection.last_commit)
        connection.close()
        self.rows = self.rows if is_commit else self.before

    def _change(self, sql: str, values: list[Any], count: int | None, many: list[list[Any]] | None = None) -> None:
        """`count` None: an IntegrityError is due."""
        try:
            found: int | None = self._say(sql, values, many)
        except skerry.IntegrityError:
            found = None
        assert found == count, f"{found} rows counted, not {count}\n{self}"

    def _look(self) -> None:
        """What is there; while a transaction is open it sees its own rows, and others see those before it."""
        if self.transaction is not None and self.random.random() < 0.3:
            mine, self.rows = self.rows, self.before
            try:
                self._look_at(is_alone=True)
            finally:
                self.rows = mine
        self._look_at(is_alone=False)

    def _look_at(self, *, is_alone: bool) -> None:
        self.looks += 1
        with self._connection(is_alone=is_alone) as (at, connection), connection.cursor() as cursor:
            found = cursor.execute(f"SELECT * FROM {self.name}").fetchall()
            wanted = sorted(shown(row, len(self.keys)) for row in self.rows.values())
            rows = sorted(shown(row, len(self.keys)) for row in found)
            unlike = [pair for pair in zip_longest(rows, wanted) if pair[0] != pair[1]]
            assert not unlike, f"SELECT * at {at}: found and wanted: {unlike[0]}\n{self}"
            if self.rows:  # one row by its key; floating point numbers are asked by no equality
                key = self.random.choice(list(self.rows))
                if not any(kind in ("double", "float") for kind in self.key_types):
                    where = " AND ".join(f"{name} = ?" for name in self.keys)
                    sql, wanted = f"SELECT * FROM {self.name} WHERE {where}", [shown(self.rows[key], len(key))]
                    found = cursor.execute(sql, self.rows[key][: len(key)]).fetchall()
                    assert [shown(each, len(key)) for each in found] == wanted, f"{sql} {key} at {at}\n{self}"

    def _restart(self) -> None:
        name = self.random.choice(DATA)
        self.said.append(f"restart of {name}")
        self.cluster.stop_member(name)
        self.cluster.start_member(name)

    def _flush(self) -> None:
        if self.random.random() < 0.5:
            self._say(f"FLUSH TABLE {self.name}")

    def __str__(self) -> str:
        return f"seed {self.seed}:\n" + "\n".join(f"  {line}" for line in self.said)

    # --- what is drawn -----------------------------------------------------------------------------
    def _value(self, kind: str, *, is_key: bool = False) -> Any:
        return None if not is_key and self.random.random() < 0.2 else self.random.choice(VALUES[kind])

    def _key(self) -> Key:
        if self.rows and self.random.random() < 0.5:
            return self.rows[self.random.choice(list(self.rows))][: len(self.keys)]
        return tuple(self._value(kind, is_key=True) for kind in self.key_types)

    def _row(self) -> Row:
        small = self.random.choice((None, *range(-3, 4)))
        return (*self._key(), *(self._value(kind) for kind in self.value_types[:-1]), small)

    def _new_rows(self, most: int = 4) -> dict[Key, Row]:
        rows = [self._row() for _ in range(self.random.randint(1, most))]
        return {same_key(row[: len(self.keys)]): row for row in rows}

    def _policy(self) -> str:
        return self.random.choice(("", " ON CONFLICT DO FAIL", " ON CONFLICT DO NOTHING", " ON CONFLICT DO REPLACE"))

    # --- statements --------------------------------------------------------------------------------
    def _insert(self) -> None:
        rows, policy = self._new_rows(), self._policy()
        if self.random.random() < 0.3:
            literals = ", ".join(f"({', '.join(map(literal, row, self.types))})" for row in rows.values())
            sql, values = f"INSERT INTO {self.name} VALUES {literals}{policy}", []
        else:
            markers = ", ".join(f"({', '.join('?' for _ in self.types)})" for _ in rows)
            sql, values = f"INSERT INTO {self.name} VALUES {markers}{policy}", [v for row in rows.values() for v in row]
        self._change(sql, values, self._inserted(rows, policy))

    def _insert_many(self) -> None:
        rows, policy = self._new_rows(6), self._policy()
        sql = f"INSERT INTO {self.name} VALUES ({', '.join('?' for _ in self.types)}){policy}"
        self._change(sql, [], self._inserted(rows, policy), [list(row) for row in rows.values()])

    def _inserted(self, rows: dict[Key, Row], policy: str) -> int | None:
        there = rows.keys() & self.rows.keys()
        if policy.endswith("NOTHING"):
            rows = {key: row for key, row in rows.items() if key not in there}
        elif there and not policy.endswith("REPLACE"):
            return None
        self.rows |= rows
        return len(rows)

    def _update(self) -> None:
        """By its key, to constants."""
        key, place = self._key(), self.random.randrange(len(self.values))
        value = self._value(self.value_types[place]) if place < len(self.values) - 1 else 5
        where = " AND ".join(f"{name} = ?" for name in self.keys)
        met = [same_key(key)] if same_key(key) in self.rows else []
        self._set(met, place, lambda _: value)
        self._change(f"UPDATE {self.name} SET {self.values[place]} = ? WHERE {where}", [value, *key], len(met))

    def _set(self, met: list[Key], place: int, value: Callable[[Row], Any]) -> None:
        at = len(self.keys) + place
        for each in met:
            row = self.rows[each]
            self.rows[each] = (*row[:at], value(row), *row[at + 1 :])

    def _delete(self) -> None:
        key = self._key()
        where = " AND ".join(f"{name} = ?" for name in self.keys)
        count = int(self.rows.pop(same_key(key), None) is not None)
        self._change(f"DELETE FROM {self.name} WHERE {where}", [*key], count)

    def _number(self, row: Row) -> int | None:
        number: int | None = row[-1]
        return number

    def _compute(self) -> None:
        """Of all rows, by what they hold."""
        name = self.values[-1]
        self._set(list(self.rows), len(self.values) - 1, lambda row: None if row[-1] is None else (row[-1] * 3 + 1) % 7)
        self._change(f"UPDATE {self.name} SET {name} = pmod({name} * 3 + 1, 7)", [], len(self.rows))

    def _where(self) -> tuple[str, list[Key]]:
        """A condition on the last column, and whom it meets."""
        name, bound = self.values[-1], self.random.randint(-2, 4)
        most = max((row[-1] for row in self.rows.values() if row[-1] is not None), default=0)
        form, is_met = self.random.choice(_FORMS)
        met = [key for key, row in self.rows.items() if is_met(row[-1], bound, most)]
        form = form.format(name=name, bound=bound, table=self.name)
        return form, met

    def _update_where(self) -> None:
        form, met = self._where()
        place = self.random.randrange(len(self.values) - 1)
        value = self._value(self.value_types[place])
        self._set(met, place, lambda _: value)
        self._change(f"UPDATE {self.name} SET {self.values[place]} = ? WHERE {form}", [value], len(met))

    def _delete_where(self) -> None:
        form, met = self._where()
        if self.random.random() < 0.5:
            return
        for key in met:
            del self.rows[key]
        self._change(f"DELETE FROM {self.name} WHERE {form}", [], len(met))

    def _insert_select(self) -> None:
        """Rows of the table itself, with another number."""
        form, met = self._where()
        policy = self.random.choice((" ON CONFLICT DO NOTHING", " ON CONFLICT DO REPLACE"))
        columns = ", ".join((*self.keys, *self.values[:-1]))
        sql = f"INSERT INTO {self.name} SELECT {columns}, 9 FROM {self.name} WHERE {form}{policy}"
        if policy.endswith("NOTHING"):
            self._change(sql, [], 0)
        else:
            self._set(met, len(self.values) - 1, lambda _: 9)
            self._change(sql, [], len(met))

    def _merge(self) -> None:
        """Rows of constants, matched by their key; the last number of each decides which clause it meets."""
        new, number = self._new_rows(5), self.values[-1]
        rows = ", ".join(f"({', '.join(map(literal, row, self.types))})" for row in new.values())
        source = f"(SELECT * FROM VALUES {rows} AS v({', '.join((*self.keys, *self.values))})) s"
        on = " AND ".join(f"t.{name} = s.{name}" for name in self.keys)
        bound, said, count = self.random.randint(-2, 3), list[str](), 0
        before, place = dict(self.rows), self.random.randrange(len(self.values) - 1)
        clauses = [clause for clause in _CLAUSES if self.random.random() < 0.6] or ["star"]
        for clause in clauses:
            form = _CLAUSES[clause]
            said.append(form.format(bound=bound, number=number, value=self.values[place], listed=self._listed()))
        for key, row in new.items():
            met = row[-1] is not None and row[-1] > bound
            old = before.get(key)
            if old is not None and "delete" in clauses and met:
                del self.rows[key]
            elif old is not None and "update" in clauses and (old[-1] is None):
                at = len(self.keys) + place
                self.rows[key] = (*old[:at], row[at], *old[at + 1 :])
            elif old is not None and "star" in clauses:
                self.rows[key] = row
            elif old is None and "insert" in clauses and met:
                self.rows[key] = (*row[: len(self.keys)], *(None for _ in self.values[:-1]), row[-1])
            elif old is None and "insert star" in clauses:
                self.rows[key] = row
            else:
                continue
            count += 1
        for key, row in before.items():
            if key in new:
                continue
            if "gone" in clauses and row[-1] is not None and row[-1] > bound:
                del self.rows[key]
            elif "set" in clauses:
                self._set([key], len(self.values) - 1, lambda _: 8)
            else:
                continue
            count += 1
        self._change(f"MERGE INTO {self.name} t USING {source} ON {on} {' '.join(said)}", [], count)

    def _listed(self) -> str:
        columns = [*self.keys, self.values[-1]]
        return f"({', '.join(columns)}) VALUES ({', '.join(f's.{name}' for name in columns)})"


# Clauses of MERGE, in an order in which each can be met.
_CLAUSES = {
    "delete": "WHEN MATCHED AND s.{number} > {bound} THEN DELETE",
    "update": "WHEN MATCHED AND t.{number} IS NULL THEN UPDATE SET {value} = s.{value}",
    "star": "WHEN MATCHED THEN UPDATE SET *",
    "insert": "WHEN NOT MATCHED AND {number} > {bound} THEN INSERT {listed}",
    "insert star": "WHEN NOT MATCHED THEN INSERT *",
    "gone": "WHEN NOT MATCHED BY SOURCE AND {number} > {bound} THEN DELETE",
    "set": "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET {number} = 8",
}


# Conditions on a number, and whether a row meets them, by its number, the bound, and the greatest number of all.
_FORMS: tuple[tuple[str, Callable[[int | None, int, int], bool]], ...] = (
    ("{name} > {bound}", lambda number, bound, _: number is not None and number > bound),
    ("{name} IS NULL", lambda number, _, __: number is None),
    ("{name} IN (SELECT max({name}) FROM {table})", lambda number, _, most: number == most),
)


def literal(value: Any, kind: str) -> str:
    """As Spark reads it, of that type."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case str():
            return quoted(value)
        case bytes():
            return f"X'{value.hex()}'"
        case dt.datetime() if value.tzinfo is not None:
            return f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S.%f} UTC'".replace(f"'{value:%Y}", f"'{value.year:04}")
        case dt.datetime():
            return f"TIMESTAMP_NTZ '{value:%Y-%m-%d %H:%M:%S.%f}'".replace(f"'{value:%Y}", f"'{value.year:04}")
        case dt.date():
            return f"DATE '{value.year:04}-{value:%m-%d}'"
        case float():
            text = "NaN" if math.isnan(value) else repr(value).replace("inf", "Infinity")
            return f"CAST('{text}' AS {kind})"
        case Decimal():  # Sail reads no exponent
            return f"CAST('{value:f}' AS {kind})"
    return f"CAST('{value}' AS {kind})"


@contextmanager
def world(root: Path, engine: Engine) -> Iterator[LocalCluster]:
    """Two members with disks, and one without."""
    members: dict[str, Any] = {name: {"address": "127.0.0.1:1", "spark": {"sail": True}} for name in DATA}
    members[LITE] = {"address": "127.0.0.1:1", "role": "lite"}
    for number, each in enumerate(members.values()):
        each["address"] = f"127.0.0.1:{7101 + number}"  # LocalCluster finds others
    text = {"cluster": "stories", "data_root": ".", "state": "state", "members": members}
    root.mkdir(parents=True, exist_ok=True)
    (root / "skerry.yaml").write_text(yaml.safe_dump(text, sort_keys=False))
    with LocalCluster(load(str(root / "skerry.yaml")), engine=engine) as cluster:
        yield cluster


def run_stories(root: Path, engine: Engine, first: int, statements: int) -> int:
    """As many stories as it takes; how many went wrong."""
    began, said, looks, wrong, seed = time.monotonic(), 0, 0, 0, first
    with world(root, engine) as cluster:
        while said < statements:
            story = Story(seed, cluster)
            try:
                story.run()
            except (AssertionError, skerry.Error) as error:
                wrong += 1
                print(f"seed {seed}: WRONG: {error}\n{story}", flush=True)
            said, looks, seed = said + story.statements, looks + story.looks, seed + 1
            print(f"… {said} of {statements}, {time.monotonic() - began:.0f} s", flush=True)
    took_s = time.monotonic() - began
    print(f"{seed - first} stories of {said} statements and {looks} looks: {wrong} wrong, {took_s:.0f} s")
    return wrong
