"""Clients: loads, rows of constants, changes of many rows by a query, copies of one table into another, reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sim.staged.model import Rows, Said, Scan, Step
from sim.staged.site import Lost, Site, Threads
from skerry.member.computing import Computing, Gathered, PlanChange, Sink, Writing, as_given
from skerry.member.requests import CountAnswer, RunStatement
from skerry.model.commits import Policy, TransactionId
from skerry.model.errors import InternalError, OutcomeUnknown, PeerError, SiteError, SkerryError, StaleSchema, unsure
from skerry.model.ids import QueryId
from skerry.model.limits import CHANGE_PAUSE_S, Limits
from skerry.model.rights import EVERYTHING
from skerry.tables.computed import Wanted, routed_rows
from skerry.tables.files import read_file
from skerry.tables.routing import Routed, routed_in_order
from skerry.wire.commit_messages import State
from skerry.wire.values import error_of

if TYPE_CHECKING:
    from sim.staged.world import World

SPREAD, COPIES = 1, 2
KEYS = 24
_STATEMENT_S = 30.0
_MERGE = (("update", (0, 1)), ("delete", ()), ("insert", (0, 1)))


class Client:
    """One statement after the other, at any member. What became of one whose answer is lost is asked by its id."""

    def __init__(self, name: str, world: World, random: Random) -> None:
        self.name = name
        self._world = world
        self._random = random
        self._number = 0

    async def run(self) -> None:
        await asyncio.sleep(self._random.uniform(0, 0.5))
        while not self._world.are_faults_over:
            kind = self._random.choice((self._load, self._load, self._put, self._change, self._change, self._copy))
            if self._random.random() < 0.2:
                kind = self._random.choice((self._scan, self._scan, self._flush))
            await kind()
            if self._random.random() < 0.5:
                await asyncio.sleep(self._random.expovariate(8))

    # --- statements -----------------------------------------------------------------------------------
    def _said(self, site: Site, kind: str) -> Said:
        self._number += 1
        table = self._random.choice((SPREAD, SPREAD, COPIES))
        said = Said(QueryId(site.name, f"{self.name}-{self._number}"), self.name, kind, table)
        self._world.said.append(said)
        return said

    def _site(self) -> Site:
        return self._world.sites[self._random.choice(list(self._world.sites))]

    def _rows(self, said: Said, most: int, *, twice: bool) -> list[tuple[int, str]]:
        pick = self._random.choices if twice else self._random.sample
        keys = pick(range(KEYS), k=self._random.randint(1, most))
        return [(key, f"{self.name}.{self._number}.{place}") for place, key in enumerate(keys)]

    async def _load(self) -> None:
        """Rows of the client, sent ahead in pieces."""
        site = self._site()
        said = self._said(site, "load")
        said.policy = self._random.choice((Policy.FAIL, Policy.NOTHING, Policy.REPLACE))
        said.given = self._rows(said, 10, twice=said.policy is not Policy.FAIL)
        cut = self._random.randint(1, 4)

        async def run(again: bool) -> CountAnswer:
            writing = self._writing(site, said, Wanted("insert", self._table(said), (0, 1), said.policy), again, None)
            if again and (answer := await writing.before()) is not None:
                return answer
            try:
                sink = writing.begin(_statement(said, again))
                for at in range(0, len(said.given), cut):
                    await sink.add(_batch(said.given[at : at + cut]), as_given)
                    await asyncio.sleep(self._random.choice((0.0, 0.0, 0.05)))
                answer = await writing.commit(await sink.finish(is_ordered=True), 0)
            finally:
                writing.drop()
            if answer is None:
                raise StaleSchema("the table has changed")
            return answer

        await self._say(site, said, run)

    async def _put(self) -> None:
        """Rows of constants, or keys to delete: tuples in the commit, as `Changing._write` has them."""
        site = self._site()
        is_delete = self._random.random() < 0.3
        said = self._said(site, "delete" if is_delete else "put")
        said.policy = (
            Policy.REPLACE if is_delete else self._random.choice((Policy.FAIL, Policy.NOTHING, Policy.REPLACE))
        )
        given = self._rows(said, 4, twice=False)
        said.given = [] if is_delete else given
        said.deleted = [key for key, _ in given] if is_delete else []

        async def run(again: bool) -> CountAnswer:
            definition = site.own.definition_of(said.table)
            assert definition is not None
            if is_delete:
                keys = pa.table({"0": pa.array([key for key, _ in given], pa.int64())})
                routed = routed_rows(definition, Wanted("delete", definition.table), keys)
            else:
                routed = routed_in_order(definition, _batch(given), said.policy, "", ())
            return await self._submitted(site, said, routed, again)

        await self._say(site, said, run)

    async def _submitted(self, site: Site, said: Said, routed: Routed, again: bool) -> CountAnswer:
        first_start, attempt = site.own.now(), 0
        while True:
            attempt += 1
            try:
                outcome = await site.own.submit(
                    TransactionId(said.query, attempt), first_start, routed.parts, is_routed=True
                )
            except SkerryError as trouble:
                raise unsure(said.query, trouble) if again else trouble from trouble
            if outcome.state is State.COMMITTED:
                return CountAnswer(outcome.rows // routed.copies, commit_ts=outcome.commit_ts)
            if outcome.failure is not None:
                error = error_of(outcome.failure)
                if outcome.state is State.UNKNOWN:
                    raise unsure(said.query, error)
                if not outcome.is_retryable:
                    raise error
            await asyncio.sleep(CHANGE_PAUSE_S * attempt)

    async def _change(self) -> None:
        """UPDATE, DELETE and MERGE: what is read decides what is written, ahead of the commit or within it."""
        site, is_staged = self._site(), self._random.random() < 0.7
        said = self._said(site, "change")
        wanted = Wanted("merge", self._table(said), (0, 1, 0, 1), clauses=_MERGE)  # type: ignore[arg-type]
        seed = self._random.random()

        async def gather(
            _statement: Any, _cursor: Any, attempt: int, _plan: Any, _check: Any, overflow: Any, _traced: bool = False
        ) -> Gathered:
            read_ts = site.own.now()
            said.read = await self._read(site, said.table, read_ts)
            said.steps = _steps(Random(seed), said.read, f"{self.name}.{self._number}")
            return await _given(_changes(said.steps), read_ts, overflow if is_staged else None)

        await self._say(site, said, self._computed(site, said, wanted, gather))

    async def _copy(self) -> None:
        """INSERT … SELECT: rows of one table go to the other, or come back under other keys."""
        site, is_staged = self._site(), self._random.random() < 0.7
        said = self._said(site, "insert-select")
        said.policy = self._random.choice((Policy.FAIL, Policy.NOTHING, Policy.REPLACE))
        wanted = Wanted("insert", self._table(said), (0, 1), said.policy)
        below = self._random.randint(1, KEYS)

        async def gather(
            _statement: Any, _cursor: Any, attempt: int, _plan: Any, _check: Any, overflow: Any, _traced: bool = False
        ) -> Gathered:
            read_ts = site.own.now()
            rows = await self._read(site, SPREAD + COPIES - said.table, read_ts)
            said.given = [(key, f"{value}+{self.name}.{self._number}") for key, value in rows.items() if key < below]
            return await _given(_batch(said.given), read_ts, overflow if is_staged else None)

        await self._say(site, said, self._computed(site, said, wanted, gather))

    def _computed(
        self, site: Site, said: Said, wanted: Wanted, gather: Any
    ) -> Callable[[bool], Coroutine[Any, Any, Any]]:
        async def run(again: bool) -> CountAnswer:
            writing = self._writing(site, said, wanted, again, gather)
            try:
                if (answer := await writing.before()) is not None:
                    return answer
                while True:
                    computed, read_ts = await writing.compute()
                    answer = await writing.commit(computed, read_ts)
                    if answer is not None:
                        return answer
            finally:
                writing.drop()

        return run

    async def _scan(self) -> None:
        """Both tables, at one moment."""
        site = self._site()

        async def run() -> None:
            read_ts = site.own.now()
            for table in (SPREAD, COPIES):
                await self._read(site, table, read_ts)

        await self._answered(site, run)

    async def _flush(self) -> None:
        site, table = self._site(), self._random.choice((SPREAD, COPIES))
        if site.folder:
            await self._answered(site, lambda: site.own.flush(table))

    # --- how ------------------------------------------------------------------------------------------
    def _table(self, said: Said) -> Any:
        return self._world.tables[said.table]

    def _writing(self, site: Site, said: Said, wanted: Wanted, again: bool, gather: Any) -> Writing:
        async def refresh(_members: object) -> None: ...

        planner: Any = SimpleNamespace(limits=Limits(), peer_tables=SimpleNamespace(refresh=refresh))
        message = PlanChange(_statement(said, again), {}, ())
        computing = Computing(site.own, Threads(), site.own.bulks)  # type: ignore[arg-type]
        cursor: Any = SimpleNamespace(tables=())
        return computing.filling(wanted.table, planner, lambda: message, cursor, gather, wanted)

    async def _say(self, site: Site, said: Said, run: Callable[[bool], Coroutine[Any, Any, CountAnswer]]) -> None:
        """Sometimes its client goes away in the middle of it. One whose end is not known may be said again."""
        again = False
        for _ in range(3):
            if not site.is_up:
                if not again:
                    said.is_over = True
                    await asyncio.sleep(0.1)
                    return
                await asyncio.sleep(0.3)
                continue
            try:
                said.first_start = said.first_start or site.now()
            except SkerryError:
                said.is_over = True
                await asyncio.sleep(0.2)
                return
            told = await self._answered(site, lambda again=again: run(again))  # type: ignore[misc]
            if isinstance(told, CountAnswer):
                said.is_over, said.commit_ts, said.count = True, told.commit_ts, told.rows
                self._world.complete += 1
                self._world.tell(
                    f"{said.query} ({said.kind}) of table {said.table}: {told.rows} rows at {told.commit_ts}"
                )
                return
            if isinstance(told, SkerryError) and not isinstance(told, OutcomeUnknown):
                self._world.failed += 1
                self._world.tell(f"{said.query} ({said.kind}): {type(told).__name__}: {told.message}")
                said.is_over = True
                return
            self._world.tell(f"{said.query} ({said.kind}): nobody has said how it ended")
            if self._random.random() < 0.4:
                return
            again = True
            await asyncio.sleep(self._random.uniform(0, 0.5))

    async def _answered(self, site: Site, run: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        answer, leave = site.call(run)
        if self._random.random() < 0.1:
            self._world.loop.call_later(self._random.uniform(0, 0.5), leave)
        try:
            return await asyncio.wait_for(answer, _STATEMENT_S)
        except (InternalError, PeerError) as error:
            self._world.violated(f"{self.name} at {site.name}: {type(error).__name__}: {error.message}")
        except SkerryError as error:
            return error
        except TimeoutError:
            self._world.violated(f"{self.name} at {site.name}: no answer within {_STATEMENT_S:g} s")
        except Lost:
            return None
        return None

    async def _read(self, site: Site, table: int, read_ts: int) -> Rows:
        """All rows at that moment, from the members that have them."""
        world = self._world
        members = world.disks if table == SPREAD else (self._random.choice(world.disks),)
        found: Rows = {}
        for member in members:
            await asyncio.sleep(self._random.choice((0.0, 0.01, 0.1)) if member != site.name else 0.0)
            try:
                answer, _ = world.sites[member].call(lambda at=world.sites[member]: rows_at(at, table, read_ts))  # type: ignore[misc]
                part: Rows = await answer
            except Lost:
                raise SiteError(f"site {member} is down", member=member) from None
            if doubled := found.keys() & part.keys():
                world.violated(f"keys {sorted(doubled)} of table {table} are at two members")
            found |= part
        world.scans.append(Scan(self.name, table, read_ts, found))
        return found


async def rows_at(site: Site, table: int, read_ts: int) -> Rows:
    """As an engine reads them: by a snapshot's files and rows."""
    definition = site.own.definition_of(table)
    assert definition is not None
    snapshot = await site.own.open(definition, read_ts)
    folder = site.own.folder_of(table)

    def read() -> Rows:
        found: Rows = {}
        hidden = set(snapshot.keys.column("k").to_pylist())
        for files, gone in ((snapshot.plain, set()), (snapshot.touched, hidden)):
            for file in files:
                _add(
                    found,
                    [row for row in read_file(folder, file, definition.table).to_pylist() if row["k"] not in gone],
                )
        _add(found, snapshot.rows.to_pylist())
        return found

    try:
        return await asyncio.to_thread(read)
    finally:
        site.own.close(table, read_ts)


def _add(found: Rows, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if row["k"] in found:
            raise InternalError(f"key {row['k']} is there twice")
        found[row["k"]] = row["v"]


def _statement(said: Said, again: bool) -> RunStatement:
    return RunStatement(said.query, said.kind, options={"again": "1"} if again else {}, rights=EVERYTHING)


def _batch(rows: list[tuple[int, str]]) -> pa.RecordBatch:
    keys, values = [key for key, _ in rows], [value for _, value in rows]
    return pa.RecordBatch.from_arrays([pa.array(keys, pa.int64()), pa.array(values, pa.string())], names=["k", "v"])


def _steps(random: Random, read: Rows, mark: str) -> list[Step]:
    steps: list[Step] = []
    kinds = random.choice((("put",), ("delete",), ("put", "move", "delete"), ("put", "put", "move", "come")))
    free = [key for key in range(KEYS) if key not in read]
    random.shuffle(free)
    for key, value in sorted(read.items()):
        if random.random() < 0.6:
            kind = random.choice(kinds)
            if kind == "put":
                steps.append(Step(key, key, f"{value} {mark}"))
            elif kind == "delete":
                steps.append(Step(key, None))
                if random.random() < 0.3:
                    free.append(key)  # another may come to its place
            elif kind == "move" and free:
                steps.append(Step(key, free.pop(), f"{value} {mark}"))
    if "come" in kinds or not read:
        steps += [Step(None, free.pop(), mark) for _ in range(min(len(free), 3))]
    return steps


def _changes(steps: list[Step]) -> pa.RecordBatch:
    """The columns of a merge: its clause, the key of the row that is met, values for the update, for the insert."""
    clauses = [0 if step.old is not None and step.new is not None else 1 if step.new is None else 2 for step in steps]
    values = [(step.new, step.value) for step in steps]
    updates = [value if clause == 0 else (None, None) for clause, value in zip(clauses, values, strict=True)]
    inserts = [value if clause == 2 else (None, None) for clause, value in zip(clauses, values, strict=True)]
    arrays = [
        pa.array(clauses, pa.int32()),
        pa.array([step.old for step in steps], pa.int64()),
        pa.array([key for key, _ in updates], pa.int64()),
        pa.array([value for _, value in updates], pa.string()),
        pa.array([key for key, _ in inserts], pa.int64()),
        pa.array([value for _, value in inserts], pa.string()),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=[str(place) for place in range(len(arrays))])


async def _given(batch: pa.RecordBatch, read_ts: int, overflow: Any) -> Gathered:
    """Rows of a query: they are held, or go ahead."""
    rows = pa.Table.from_batches([batch])
    if overflow is None:
        return Gathered(rows, read_ts)
    sink: Sink = await overflow()
    for part in rows.to_batches(3):
        await sink.add(part, as_given)
    return Gathered(rows.slice(0, 0), read_ts, sink)
