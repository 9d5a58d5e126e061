"""Tables of our own under fire: clients write and look, members are killed and cut off, and the history is judged.

Members are forks (chaos/forks.py), so that one is back a moment after it was killed. Without engines only writes of
constants run, and the last look comes when all is over; with engines lists, accounts and looks are in the history too.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

import yaml

import skerry
from chaos import large
from chaos.cluster import PORT, Broken, wait_until
from chaos.forks import READY
from chaos.histories import (
    Append,
    Outcome,
    Read,
    Transaction,
    Transfer,
    check_bank,
    check_lists,
    check_sets,
)
from chaos.net import Net
from chaos.shapes import SITES
from skerry.cli.secret import ensure_secret
from skerry.client.dbapi import Connection, Cursor
from skerry.config import load
from skerry.model.ids import QueryId
from skerry.tables.flushing import open_shards
from skerry.tables.store import Store

KEYS = tuple(f"k{number}" for number in range(12))
ACCOUNTS = tuple(f"a{number}" for number in range(8))
OPENING = 100
CLIENTS = 6
READY_S = 600.0  # a machine may have much else to do
DEATH_S, SELDOM_S = 1.0, 8.0  # until an armed point is reached; then it is killed where it is
TOLD_S = 300.0  # until an unknown outcome must be known, when all members are up
LIMITS = {"heartbeat_s": 0.5, "wait_s": 6, "stop_s": 5}
POINTS = (
    *("store.committing", "store.committed", "store.committing", "store.committed"),
    *("file.written", "flush.file", "flush.written", "flush.named", "flush.published", "delta.committed"),
)
TABLES = (
    "CREATE TABLE entries (k STRING, e STRING) PRIMARY KEY (k, e) DISTRIBUTED BY (k)",
    "CREATE TABLE lists (k STRING, v STRING) PRIMARY KEY (k) DISTRIBUTED BY (k)",
    "CREATE TABLE bank (id STRING, v BIGINT) PRIMARY KEY (id) DISTRIBUTED BY (id)",
    large.LOADED,
)
# An engine whose member is killed, or has no time on a busy machine, is late with its end; rows do not depend on it.
_TROUBLE = re.compile(r"^\S+ \S+ ERROR (?!.*(?:has not ended \d+ jobs in time|no receipt from)).*", re.MULTILINE)


class Member:
    """One fork. A process file descriptor means this very process, whatever becomes of its number."""

    def __init__(self, pid: int, log: Path, log_from: int) -> None:
        self.handle = os.pidfd_open(pid)
        self._log, self._log_from = log, log_from

    @property
    def is_dead(self) -> bool:
        return bool(select.select([self.handle], [], [], 0)[0])

    @property
    def is_ready(self) -> bool:
        return READY in self._log.read_text(errors="replace")[self._log_from :]

    def send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, number)

    def close(self) -> None:
        os.close(self.handle)


class Members:
    """All members of the run, on disks that outlive them."""

    def __init__(self, net: Net, folder: Path) -> None:
        self.net, self.folder = net, folder
        self.has_engines = False
        self._running: dict[str, Member] = {}
        members = {name: {"address": f"{net.address(name)}:{PORT}", "spark": {"sail": True}} for name in net.names}
        text = {"cluster": "own", "insecure": True, "data_root": ".", "state": "state", "limits": LIMITS}
        self.file = folder / "skerry.yaml"
        self.file.write_text(yaml.safe_dump(text | {"members": members}, sort_keys=False))
        ensure_secret(load(self.file), all_start_here=True)
        for name in net.names:
            (folder / name[0]).mkdir()
        self._forks = subprocess.Popen(
            [sys.executable, "-m", "chaos.forks"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def armed(self, name: str) -> Path:
        return self.folder / name[0] / "armed"

    def start(self, *names: str) -> None:
        assert self._forks.stdin is not None
        assert self._forks.stdout is not None
        for name in names:
            log, engine = self.log(name), "1" if self.has_engines else "0"
            log.touch()
            size = len(log.read_text(errors="replace"))
            words = (self.file, name, self.net.space(name), log, self.armed(name), engine)
            print(*words, file=self._forks.stdin, flush=True)
            self._running[name] = Member(int(self._forks.stdout.readline()), log, size)
        for name in names:
            wait_until(partial(self._up, name), f"{name} is ready (see {self.log(name)})", READY_S)

    def _up(self, name: str) -> bool:
        if self._running[name].is_dead:
            raise Broken(f"{name} ended while it started, see {self.log(name)}")
        return self._running[name].is_ready

    def is_dead(self, name: str) -> bool:
        return self._running[name].is_dead

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        self._running[name].send(number)
        wait_until(lambda: self.is_dead(name), f"{name} is dead", READY_S)
        self._running.pop(name).close()

    def buried(self, name: str) -> None:
        self.armed(name).unlink(missing_ok=True)
        self._running.pop(name).close()

    def stop(self) -> None:
        for name in list(self._running):
            with contextlib.suppress(Broken):
                self.kill(name)
        assert self._forks.stdin is not None
        self._forks.stdin.close()
        self._forks.wait(READY_S)

    def connect(self, name: str, resume_s: float = 0.0) -> Connection:
        with self.net.as_client():
            return skerry.connect(f"skerry://{self.net.address(name)}:{PORT}", timeout_s=5, resume_s=resume_s)

    def trouble(self) -> list[str]:
        return [
            f"{name} logged: {line[:200]}"
            for name in self.net.names
            for line in _TROUBLE.findall(self.log(name).read_text(errors="replace"))
        ]


@dataclass
class History:
    """What all clients saw; each adds at the end of its own lists."""

    entries: list[Transaction] = field(default_factory=list)
    entry_looks: list[Transaction] = field(default_factory=list)
    lists: list[Transaction] = field(default_factory=list)
    transfers: list[Transfer] = field(default_factory=list)
    loads: list[tuple[str, Outcome]] = field(default_factory=list)
    made: list[large.Made] = field(default_factory=list)
    balances: list[Mapping[str, int]] = field(default_factory=list)
    told_late: int = 0
    wrong: list[str] = field(default_factory=list)
    counts: Counter[Outcome] = field(default_factory=Counter)  # about: threads do not wait for each other

    @property
    def acknowledged(self) -> int:
        return self.counts[Outcome.DONE]


class Client:
    """One thread: statement after statement, at any member; an outcome that is unknown is asked for by its id."""

    def __init__(self, number: int, members: Members, history: History, seed: int) -> None:
        self.name = f"c{number}"
        self._random = Random(f"{seed} {self.name}")
        self._members, self._history = members, history
        self._resume_s = 20.0 if number % 3 == 2 else 0.0  # every third comes back by itself
        self._connections: dict[str, Connection] = {}
        self._number = 0
        self._stopping = threading.Event()
        self.crash: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()

    def join(self, deadline_s: float) -> bool:
        self._thread.join(deadline_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._number += 1
                self._random.choice(self._work())()
        except BaseException as error:
            self.crash = error
        finally:
            for connection in self._connections.values():
                connection.close()

    def _work(self) -> tuple[Callable[[], None], ...]:
        constants = (self._insert, self._insert, self._insert_many, self._insert, self._flush)
        if self._random.random() < 0.05:
            return (self._load, self._rebalance)
        if not self._members.has_engines:
            return constants
        if self._random.random() < 0.1:
            return (self._create_as,)
        computed = (self._append, self._append, self._transfer, self._transfer, self._transact, self._transact)
        return (*constants, *computed, self._look, self._look)

    # --- statements --------------------------------------------------------------------------------
    def _keys(self, most: int = 4) -> list[str]:
        return self._random.sample(KEYS, self._random.randint(1, most))

    def _insert(self) -> None:
        keys, element = self._keys(), f"{self.name}.{self._number}"
        rows = ", ".join(f"('{key}', '{element}')" for key in keys)
        self._write_entries(keys, element, partial(_execute, sql=f"INSERT INTO entries VALUES {rows}"))

    def _insert_many(self) -> None:
        keys, element = self._keys(), f"{self.name}.{self._number}"
        self._write_entries(keys, element, partial(_execute_many, rows=[(key, element) for key in keys]))

    def _write_entries(self, keys: list[str], element: str, run: Run) -> None:
        steps = tuple(Append(key, element) for key in keys)
        if (ended := self._write(run, len(keys))) is not None:
            self._history.entries.append(Transaction(element, self.name, steps, *ended))

    def _append(self) -> None:
        """One statement reads and writes the lists; what it read nobody was told."""
        keys, element = self._keys(2), f"{self.name}.{self._number}"
        where = ", ".join(f"'{key}'" for key in keys)
        sql = f"UPDATE lists SET v = concat(v, '{element} ') WHERE k IN ({where})"
        steps = tuple(Append(key, element) for key in keys)
        if (ended := self._write(partial(_execute, sql=sql), len(keys))) is not None:
            self._history.lists.append(Transaction(element, self.name, steps, *ended))

    def _transfer(self) -> None:
        source, target = self._random.sample(ACCOUNTS, 2)
        amount = self._random.randint(1, 9)
        sql = (
            f"UPDATE bank SET v = CASE WHEN id = '{source}' THEN v - {amount} ELSE v + {amount} END "
            f"WHERE id IN ('{source}', '{target}')"
        )
        if (ended := self._write(partial(_execute, sql=sql), 2)) is not None:
            name = f"{self.name}.{self._number}"
            self._history.transfers.append(Transfer(name, source, target, amount, ended[0]))

    def _transact(self) -> None:
        """Lists and accounts are read, then some are written, in several statements of one transaction."""
        name = self._random.choice(SITES)
        connection = self._connection(name)
        if connection is None:
            return
        (one, other), (source, target) = self._random.sample(KEYS, 2), self._random.sample(ACCOUNTS, 2)
        element, amount, began = f"{self.name}.{self._number}", self._random.randint(1, 9), time.monotonic()
        cursor = connection.cursor()
        try:
            cursor.execute("BEGIN")
            read = f"SELECT k, v FROM lists WHERE k IN ('{one}', '{other}')"
            cursor.execute(f"{read} UNION ALL SELECT id, CAST(v AS STRING) FROM bank")
            found: dict[str, str] = dict(cursor.fetchall())
            cursor.execute("UPDATE lists SET v = ? WHERE k = ?", (f"{found[one]}{element} ", one))
            for account, change in ((source, -amount), (target, amount)):
                cursor.execute("UPDATE bank SET v = ? WHERE id = ?", (int(found[account]) + change, account))
        except skerry.Error as error:
            self._refused(error)
            try:
                connection.reset()
            except skerry.Error:
                connection.close()
                self._connections.pop(name, None)
            return
        outcome = self._committed(name, cursor)
        steps = (Read(one, tuple(found[one].split())), Read(other, tuple(found[other].split())), Append(one, element))
        self._history.lists.append(Transaction(element, self.name, steps, outcome, began, time.monotonic()))
        self._history.transfers.append(Transfer(element, source, target, amount, outcome))
        self._history.balances.append({account: int(found[account]) for account in ACCOUNTS})

    def _committed(self, name: str, cursor: Cursor) -> Outcome:
        try:
            cursor.execute("COMMIT")
            outcome = Outcome.DONE
        except skerry.OutcomeUnknown:
            outcome = self._told(name, cursor.query_id, partial(_execute, sql="COMMIT"), 0)
        except skerry.Error as error:
            self._refused(error)
            outcome = Outcome.REFUSED
        self._history.counts[outcome] += 1
        return outcome

    def _refused(self, error: skerry.Error) -> None:
        if isinstance(error, skerry.IntegrityError | skerry.ProgrammingError | skerry.InternalError):
            self._history.wrong.append(f"{self.name}.{self._number}: {error}")
        time.sleep(0.01)

    def _flush(self) -> None:
        if self._random.random() < 0.3:
            table = self._random.choice(("entries", "lists", "bank") if self._members.has_engines else ("entries",))
            self._rows(f"FLUSH TABLE {table}")

    def _load(self) -> None:
        label = f"{self.name}.{self._number}"
        if (ended := self._write(partial(large.load, label=label), large.LOAD_ROWS)) is not None:
            self._history.loads.append((label, ended[0]))

    def _rebalance(self) -> None:
        """Rows leave one member, or come back: some moves, as far as they go."""
        without = f" WITHOUT ({self._random.choice(SITES)})" if self._random.random() < 0.5 else ""
        for _ in range(self._random.randint(1, 4)):
            self._rows(f"REBALANCE TABLES{without}")

    def _create_as(self) -> None:
        """All accounts at one moment, in a table of their own."""
        name = f"made_{self.name}_{self._number}"
        if (ended := self._write(partial(large.create_as, name=name), len(ACCOUNTS))) is None:
            return
        if ended[0] is Outcome.DONE and (rows := self._rows(f"SELECT id, v FROM {name}")) is not None:
            self._history.balances.append({key: int(str(value)) for key, value in rows})
        is_dropped = ended[0] is Outcome.DONE and self._random.random() < 0.8
        if is_dropped:
            self._rows(f"DROP TABLE {name}")
        self._history.made.append(large.Made(name, ended[0], is_dropped))

    def _look(self) -> None:
        kind, began = self._random.choice(("entries", "lists", "bank")), time.monotonic()
        rows = self._rows(LOOKS[kind])
        if rows is None:
            return
        name, ended = f"look {self.name}.{self._number}", time.monotonic()
        if kind == "bank":
            self._history.balances.append({key: int(str(value)) for key, value in rows})
            return
        found = grouped(rows) if kind == "entries" else listed(rows)
        steps = tuple(Read(key, elements) for key, elements in sorted(found.items()))
        into = self._history.entry_looks if kind == "entries" else self._history.lists
        into.append(Transaction(name, self.name, steps, Outcome.DONE, began, ended))

    # --- how ---------------------------------------------------------------------------------------
    def _connection(self, name: str) -> Connection | None:
        """None while nobody is there."""
        found = self._connections.get(name)
        if found is not None and found.usable:
            return found
        if found is not None:
            found.close()
        try:
            made = self._connections[name] = self._members.connect(name, self._resume_s)
            return made
        except skerry.Error:
            self._connections.pop(name, None)
            time.sleep(0.02)
            return None

    def _rows(self, sql: str) -> list[tuple[str, object]] | None:
        connection = self._connection(self._random.choice(SITES))
        if connection is None:
            return None
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql)
                return cursor.fetchall() if cursor.description else []
        except skerry.Error:
            time.sleep(0.02)
            return None

    def _write(self, run: Run, rows: int) -> tuple[Outcome, float, float] | None:
        """How it ended, and when it began and was known; None if it was not sent."""
        name = self._random.choice(SITES)
        connection = self._connection(name)
        if connection is None:
            return None
        began = time.monotonic()
        cursor = connection.cursor()
        try:
            run(cursor)
        except skerry.OutcomeUnknown:
            outcome = self._told(name, cursor.query_id, run, rows)
        except skerry.Error as error:
            outcome = Outcome.REFUSED
            self._refused(error)
        else:
            outcome = self._counted(cursor, rows)
        finally:
            with contextlib.suppress(skerry.Error):
                cursor.close()
        self._history.counts[outcome] += 1
        return outcome, began, time.monotonic()

    def _counted(self, cursor: Cursor, rows: int) -> Outcome:
        if cursor.rowcount != rows:
            self._history.wrong.append(f"{self.name}.{self._number}: {cursor.rowcount} rows counted, not {rows}")
        return Outcome.DONE

    def _told(self, name: str, query: QueryId, run: Run, rows: int) -> Outcome:
        """Asked at the same member, with the same id, until it is known."""
        self._history.told_late += 1
        give_up = time.monotonic() + TOLD_S
        while time.monotonic() < give_up:
            connection = self._connection(name)
            if connection is None:
                continue
            try:
                with connection.cursor() as cursor:
                    run(cursor, query_id=query)
                    return self._counted(cursor, rows)
            except skerry.OutcomeUnknown:
                time.sleep(0.05)
            except skerry.Error as error:
                if isinstance(error, skerry.IntegrityError | skerry.ProgrammingError | skerry.InternalError):
                    self._history.wrong.append(f"{self.name}.{self._number}, again: {error}")
                return Outcome.REFUSED
        self._history.wrong.append(f"{self.name}.{self._number}: how it ended was not told within {TOLD_S:g} s")
        return Outcome.UNKNOWN


Run = Callable[..., object]
LOOKS = {
    "entries": "SELECT k, e FROM entries",
    "lists": "SELECT k, v FROM lists",
    "bank": "SELECT id, v FROM bank",
    "loads": "SELECT l, count(*) FROM loads GROUP BY l",
}


def _execute(cursor: Cursor, sql: str, query_id: QueryId | None = None) -> None:
    cursor.execute(sql, query_id=query_id)


def _execute_many(cursor: Cursor, rows: list[tuple[str, str]], query_id: QueryId | None = None) -> None:
    cursor.executemany("INSERT INTO entries VALUES (?, ?)", rows, query_id=query_id)


def grouped(rows: list[tuple[str, object]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {key: [] for key in KEYS}
    for key, element in rows:
        found[key].append(str(element))
    return {key: tuple(elements) for key, elements in found.items()}


def listed(rows: list[tuple[str, object]]) -> dict[str, tuple[str, ...]]:
    return {key: tuple(str(elements).split()) for key, elements in rows}


@dataclass
class Verdict:
    crashes: int = 0
    at_points: int = 0
    cuts: int = 0
    seconds: float = 0.0
    history: History = field(default_factory=History)
    violations: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        history = self.history
        return (
            f"{self.crashes} crashes ({self.at_points} at named points), {self.cuts} partitions, "
            f"{history.acknowledged} statements acknowledged, {history.counts[Outcome.REFUSED]} refused, "
            f"{history.told_late} unknown and asked for by id, "
            f"{len(history.entry_looks) + len(history.balances)} looks, {self.seconds:.0f} s, "
            f"{len(self.violations)} violations"
        )


def run(folder: Path, crashes: int, seconds: float, seed: int, *, has_engines: bool, point: str = "") -> Verdict:
    """Until so many members have died, or time is up. `point`: they die there, and nowhere else."""
    folder.mkdir(parents=True, exist_ok=True)
    verdict, random, began = Verdict(), Random(seed), time.monotonic()
    with Net(SITES) as net:
        members = Members(net, folder)
        try:
            members.has_engines = has_engines
            members.start(*SITES)
            _make_tables(members)
            clients = [Client(number, members, verdict.history, seed) for number in range(CLIENTS)]
            try:
                with contextlib.suppress(KeyboardInterrupt):  # what has been done until then is judged
                    _torment(members, verdict, random, crashes, began + seconds, point)
            finally:
                for client in clients:
                    client.stop()
            for client in clients:
                if not client.join(TOLD_S + 30):
                    verdict.violations.append(f"{client.name} hangs")
                if client.crash is not None:
                    verdict.violations.append(f"{client.name} ended with {client.crash!r}")
            _judge(members, verdict)
        except Broken as error:
            verdict.violations.append(str(error))
        finally:
            members.stop()
        verdict.violations += members.trouble()
    verdict.seconds = time.monotonic() - began
    return verdict


def _make_tables(members: Members) -> None:
    with members.connect("oslo") as connection, connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(table)
        cursor.executemany("INSERT INTO lists VALUES (?, '')", [(key,) for key in KEYS])
        cursor.executemany(f"INSERT INTO bank VALUES (?, {OPENING})", [(each,) for each in ACCOUNTS])


def _torment(members: Members, verdict: Verdict, random: Random, crashes: int, until: float, point: str) -> None:
    while verdict.crashes < crashes and time.monotonic() < until:
        _let_work(members, verdict, random)
        if members.has_engines and not point and random.random() < 0.3:
            _cut(members, random)
            verdict.cuts += 1
            continue
        victims = random.sample(SITES, 1 if random.random() < 0.85 else 2)
        for victim in victims:
            if point or random.random() < 0.4:
                verdict.at_points += _kill_at_point(members, victim, random, point)
            else:
                time.sleep(random.uniform(0, 0.03))
                members.kill(victim)
            verdict.crashes += 1
        time.sleep(random.choice((0.0, 0.0, random.uniform(0, 0.1), 0.3)))
        members.start(*victims)
        if verdict.crashes % 50 < len(victims):
            print(f"  {verdict}", flush=True)


def _let_work(members: Members, verdict: Verdict, random: Random) -> None:
    """Until some statements were acknowledged since the last fault, but no long time."""
    enough = verdict.history.acknowledged + random.randint(1, 12)
    give_up = time.monotonic() + (6.0 if members.has_engines else 1.0)
    while verdict.history.acknowledged < enough and time.monotonic() < give_up:
        time.sleep(0.005)


def _kill_at_point(members: Members, victim: str, random: Random, point: str) -> bool:
    """Whether it died where it was to; else it is killed where it is."""
    seldom = (*large.POINTS, *(large.MADE_POINTS if members.has_engines else ()))
    point = point or random.choice(POINTS if random.random() < 0.6 else seldom)
    armed = members.armed(victim)
    new = armed.with_suffix(".new")
    new.write_text(f"{point}|kill|{random.randint(1, 4) if point in POINTS else 1}")
    new.rename(armed)
    give_up = time.monotonic() + (DEATH_S if point in POINTS else SELDOM_S)
    while not members.is_dead(victim) and time.monotonic() < give_up:
        time.sleep(0.005)
    is_there = members.is_dead(victim)
    if is_there:
        members.buried(victim)
    else:
        members.kill(victim)
        armed.unlink(missing_ok=True)
    return is_there


def _cut(members: Members, random: Random) -> None:
    one, other = random.sample(SITES, 2)
    seconds = random.choice((0.3, 1.5, 3.0, 8.0))
    match random.choice(("both", "one way", "alone")):
        case "alone":
            members.net.isolate(one)
            time.sleep(seconds)
            members.net.rejoin(one)
        case how:
            cuts = [(one, other), (other, one)] if how == "both" else [(one, other)]
            for cut in cuts:
                members.net.cut(*cut)
            time.sleep(seconds)
            for cut in cuts:
                members.net.heal(*cut)


def _judge(members: Members, verdict: Verdict) -> None:
    """The last look is after a restart of everybody: all of it comes from disk."""
    history = verdict.history
    for name in SITES:
        members.kill(name)
    members.start(*SITES)
    found = (
        {kind: _last_look(members, sql) for kind, sql in LOOKS.items()} if members.has_engines else _on_disk(members)
    )
    final = grouped(found["entries"])
    verdict.violations += check_sets(history.entries, history.entry_looks, final)
    verdict.violations += check_lists(history.lists, listed(found["lists"]))
    opening = dict.fromkeys(ACCOUNTS, OPENING)
    balances = {key: int(str(value)) for key, value in found["bank"]}
    verdict.violations += check_bank(opening, history.transfers, history.balances, balances)
    verdict.violations += large.check_loads(history.loads, found["loads"])
    if members.has_engines:
        names = {row[0] for row in _last_look(members, "SHOW TABLES")}
        verdict.violations += large.check_made(history.made, names)
    verdict.violations += history.wrong


def _on_disk(members: Members) -> dict[str, list[tuple[str, object]]]:
    """What members without an engine hold: a flush waits for all that is in doubt, then their folders are read here."""
    for kind in LOOKS:
        _last_look(members, f"FLUSH TABLE {kind}")
    found: dict[str, list[tuple[str, object]]] = {kind: [] for kind in LOOKS}
    for name in SITES:
        members.kill(name)
        store = Store(str(members.folder / "state" / f"_own.{name}.tables"), name)
        try:
            for shard in open_shards(store, name).shards.values():
                rows = shard.read((1 << 63) - 1)
                if shard.table.name == "loads":
                    rows = rows.group_by("l").aggregate([("n", "count")])
                found[shard.table.name] += zip(*rows.to_pydict().values(), strict=True)
        finally:
            store.close()
    return found


def _last_look(members: Members, sql: str) -> list[tuple[str, object]]:
    give_up = time.monotonic() + TOLD_S
    while True:
        try:
            with members.connect("bergen") as connection, connection.cursor() as cursor:
                cursor.execute(sql)
                return cursor.fetchall() if cursor.description else []
        except skerry.Error as error:
            if time.monotonic() > give_up:
                raise Broken(f"the last look: {error}") from error
            time.sleep(0.5)
