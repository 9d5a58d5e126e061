"""What must be there: a dictionary for each table, to which all that was committed is done again, in its order."""

from __future__ import annotations

from dataclasses import dataclass, field

from sim.loop import Violation
from skerry.model.commits import Policy
from skerry.model.ids import QueryId

Rows = dict[int, str]


@dataclass(frozen=True)
class Step:
    """A row `old` becomes (`new`, `value`); None: it comes, or it goes."""

    old: int | None
    new: int | None
    value: str = ""


@dataclass
class Said:
    """A statement, as its client knows it. `is_over`: nobody can commit it any more, or its commit is known."""

    query: QueryId
    client: str
    kind: str
    table: int
    first_start: int = 0
    given: list[tuple[int, str]] = field(default_factory=list)
    policy: Policy = Policy.FAIL
    deleted: list[int] = field(default_factory=list)
    steps: list[Step] | None = None  # of a change, by what was read
    read: Rows = field(default_factory=dict)
    is_over: bool = False
    commit_ts: int = 0
    count: int | None = None  # as it was acknowledged


@dataclass(frozen=True)
class Scan:
    client: str
    table: int
    read_ts: int
    rows: Rows


def replayed(said: list[Said], scans: list[Scan], tables: tuple[int, ...]) -> dict[int, Rows]:
    """The tables in the end; a Violation if a count, a scan or a change does not fit."""
    found: dict[int, Rows] = {table: {} for table in tables}
    committed = sorted((each for each in said if each.commit_ts), key=lambda each: each.commit_ts)
    waiting = sorted(scans, key=lambda scan: scan.read_ts, reverse=True)
    for each in committed:
        while waiting and waiting[-1].read_ts < each.commit_ts:
            _check(waiting.pop(), found)
        count = _apply(each, found[each.table])
        if each.count is not None and each.count != count:
            raise Violation(f"{each.query} ({each.kind}) was acknowledged with {each.count} rows, and writes {count}")
    while waiting:
        _check(waiting.pop(), found)
    return found


def _check(scan: Scan, found: dict[int, Rows]) -> None:
    if scan.rows != found[scan.table]:
        raise Violation(
            f"{scan.client} read table {scan.table} at {scan.read_ts} as {scan.rows}, and it was {found[scan.table]}"
        )


def _apply(said: Said, rows: Rows) -> int:
    if said.steps is not None:
        return _change(said, said.steps, rows)
    written: Rows = {}
    for key, value in said.given:
        is_there = key in written or (key in rows and said.policy is not Policy.REPLACE)
        if is_there and said.policy is Policy.FAIL:
            raise Violation(f"{said.query} ({said.kind}) inserted {key}, which was there already")
        if not (is_there and said.policy is Policy.NOTHING):
            written[key] = value
    rows |= written
    gone = [key for key in said.deleted if rows.pop(key, None) is not None]
    return len(written) + len(gone)


def _change(said: Said, steps: list[Step], rows: Rows) -> int:
    old = {step.old for step in steps if step.old is not None}
    for key in old:
        if rows.get(key) != said.read.get(key):
            raise Violation(f"lost update: {said.query} read {key} as {said.read.get(key)}, and it was {rows.get(key)}")
        del rows[key]
    for step in steps:
        if step.new is not None:
            if step.new in rows:
                raise Violation(f"{said.query} ({said.kind}) put {step.new}, which was there already")
            rows[step.new] = step.value
    comes = {step.new for step in steps if step.new is not None}
    return len(comes) + len({step.old for step in steps if step.new is None} - comes)
