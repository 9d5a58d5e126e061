"""Clients that come, ask, cancel, give up and go; what each of their queries came to."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import pyarrow as pa

import skerry
from skerry.client.dbapi import Connection
from skerry.model.errors import Cancelled, EngineEnded, SiteError, TimedOut, UserError
from soak.statements import FAILING, HEAVY, WRONG, Statements

CONNECT_S = 60.0
MARGIN_S = 15.0  # behind its deadline a query's end has so long to be told
NUMBERS = 1000  # texts of one statement

# How often each kind of use comes.
KINDS = {"right": 50, "large": 8, "slow": 4, "cancelled": 12, "left": 8, "wrong": 9, "failing": 9}


@dataclass
class Asked:
    """One query under way."""

    kind: str
    sql: str
    since: float
    is_told: bool = False  # that it has made no progress


class Crowd:
    """So many clients at once, each in a thread of its own, until `leave`."""

    def __init__(self, urls: Sequence[str], statements: Statements, count: int, deadline_s: float, seed: int) -> None:
        self._urls = urls
        self._statements = statements
        self._deadline_s = deadline_s
        self._leaving = threading.Event()
        self._lock = threading.Lock()
        self.asked: dict[int, Asked] = {}
        self.ended: Counter[str] = Counter()
        self.seconds: dict[str, list[float]] = {}
        self.violations: list[str] = []
        self._threads = [
            threading.Thread(target=self._live, args=(number, Random(f"{seed} {number}")), daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def stuck(self, stall_s: float) -> list[Asked]:
        """Queries without an end for so long, each once."""
        now = time.monotonic()
        with self._lock:
            found = [each for each in self.asked.values() if not each.is_told and now - each.since > stall_s]
            for each in found:
                each.is_told = True
        return found

    def leave(self) -> None:
        self._leaving.set()
        give_up = time.monotonic() + self._deadline_s + 2 * MARGIN_S
        for thread in self._threads:
            thread.join(max(0.0, give_up - time.monotonic()))
        for number, each in list(self.asked.items()):
            self.violations.append(f"client {number} hangs: {each.kind}: {each.sql}")

    # --- one client --------------------------------------------------------------------------------
    def _live(self, number: int, random: Random) -> None:
        while not self._leaving.is_set():
            try:
                connection = skerry.connect(random.choice(self._urls), timeout_s=CONNECT_S)
            except skerry.Error as error:
                self._violate(f"connecting: {error}")
                self._leaving.wait(1.0)
                continue
            try:
                for _ in range(random.randint(1, 8)):
                    if self._leaving.is_set():
                        break
                    self._ask(number, connection, random)
            finally:
                connection.close()
            self._leaving.wait(random.random())

    def _ask(self, number: int, connection: Connection, random: Random) -> None:
        kind = random.choices(list(KINDS), list(KINDS.values()))[0]
        sql, problem, started = "", "", time.monotonic()
        try:
            if kind in ("wrong", "failing"):
                sql = random.choice(WRONG if kind == "wrong" else FAILING).replace("$n", str(random.randrange(NUMBERS)))
                self._began(number, kind, sql)
                with connection.cursor() as cursor:
                    cursor.execute(sql, timeout_s=self._deadline_s).fetchall()
                problem = "it was answered"
            elif kind == "cancelled":
                sql = random.choice(list(HEAVY.values())).replace("$n", str(random.randrange(NUMBERS)))
                self._began(number, kind, sql)
                self._cancel(connection, sql, random.random() * 2)
            else:
                is_small = kind == "right" or (kind == "left" and random.random() < 0.5)
                statement = random.choice(self._statements.right if is_small else self._statements.large)
                sql = statement.sql(random.randrange(NUMBERS))
                self._began(number, kind, sql)
                problem = statement.wrong(found) if (found := self._read(connection, kind, sql)) is not None else ""
        except skerry.Error as error:
            problem = "" if _is_due(kind, error) else f"{type(error).__name__} {error.code}: {error}"
            if error.code == EngineEnded.code:
                kind, problem = "engine ended", ""
        seconds = time.monotonic() - started
        with self._lock:
            self.asked.pop(number, None)
            self.ended[kind] += 1
            self.seconds.setdefault(kind, []).append(seconds)
        if not problem and seconds > self._deadline_s + MARGIN_S:
            problem = f"it took {seconds:.0f} s, its deadline was {self._deadline_s:g} s"
        if problem:
            self._violate(f"{kind}, {seconds:.1f} s: {sql}: {problem}")

    def _began(self, number: int, kind: str, sql: str) -> None:
        with self._lock:
            self.asked[number] = Asked(kind, sql, time.monotonic())

    def _cancel(self, connection: Connection, sql: str, after_s: float) -> None:
        with connection.cursor() as cursor:
            timer = threading.Timer(after_s, cursor.cancel)
            timer.start()
            try:
                cursor.execute(sql, timeout_s=self._deadline_s).fetchall()
            finally:
                timer.cancel()
                timer.join()

    def _read(self, connection: Connection, kind: str, sql: str) -> pa.Table | None:
        """None: the client lost interest."""
        cursor = connection.cursor().execute(sql, timeout_s=self._deadline_s)
        if kind == "left":
            cursor.fetch_page()
            return None  # its cursor is closed with the connection, or when it is forgotten here
        if kind != "slow":
            return cursor.fetch_arrow_table()
        batches = []
        with cursor.fetch_record_batch_reader() as reader:
            for batch in reader:
                batches.append(batch)
                if len(batches) % 4 == 0:
                    time.sleep(0.1)
            return pa.Table.from_batches(batches, reader.schema)

    def _violate(self, what: str) -> None:
        with self._lock:
            self.violations.append(what)
        print(f"    VIOLATION {what[:600]}", flush=True)


def _is_due(kind: str, error: skerry.Error) -> bool:
    """Whether this kind of use ends in such an error."""
    if error.code == TimedOut.code:
        return False
    return {
        "wrong": error.code // 100 == UserError.code // 100,
        "failing": error.code // 100 in (UserError.code // 100, SiteError.code // 100),
        "cancelled": error.code == Cancelled.code,
    }.get(kind, False)
