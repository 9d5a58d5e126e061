"""Members that commit, step by step: messages are delivered at once, syncs happen when the test says so."""

from __future__ import annotations

from skerry.model.commits import Part, Policy, Record, TransactionId, Write
from skerry.model.ids import QueryId
from skerry.model.limits import CommitLimits
from skerry.tables.clock import At
from skerry.tables.commits import Commits
from skerry.tables.instructions import Apply, Found, Instruction, Look, Looked, Persist, Send
from skerry.wire.commit_messages import Submit

T0_US = 1_800_000_000_000_000
TABLE = 7


def txn(name: str = "q", attempt: int = 1, initiator: str = "oslo") -> TransactionId:
    return TransactionId(QueryId(initiator, name), attempt)


def put(key: str, row: str | None = "row", policy: Policy = Policy.REPLACE) -> Part:
    return Part((Write(TABLE, key.encode(), None if row is None else row.encode(), policy),))


class Members:
    """`lite` members have no disk. Instructions for shells are obeyed as far as they need no test to decide."""

    def __init__(self, *names: str, lite: tuple[str, ...] = ()) -> None:
        self.now = 0.0
        self.limits = CommitLimits()
        self.lite = lite
        self.disks: dict[str, list[Record]] = {name: [] for name in names}
        self.waiting: dict[str, list[Persist]] = {name: [] for name in names}
        self.rows: dict[str, dict[bytes, tuple[int, bytes | None]]] = {name: {} for name in names}
        self.down: set[str] = set()
        self.unlinked: set[str] = set()  # known to have no connection
        self.sent: list[tuple[str, Send]] = []
        self.told: list[Instruction] = []  # answers, outcomes and reads
        self.stale = ""
        self.of = {name: self._member(name) for name in names}

    def _member(self, name: str) -> Commits:
        return Commits(name, self.limits, self.at, self.disks[name], has_disk=name not in self.lite)

    @property
    def at(self) -> At:
        return At(self.now, T0_US + int(self.now * 1e6))

    def do(self, name: str, instructions: list[Instruction]) -> None:
        for each in instructions:
            match each:
                case Persist():
                    self.waiting[name].append(each)
                case Send(to, Submit(txn)) if to in self.unlinked:
                    self.of[name].withheld(txn)
                case Send(to, message):
                    self.sent.append((name, each))
                    if not {to, name} & self.down:
                        self.do(to, self.of[to].receive(name, message, self.at))
                case Look(txn, number, part):
                    found = tuple(self._found(name, write.key) for write in part.writes)
                    looked = Looked(found, tuple(Found(rows=5) for _ in part.staged), self.stale)
                    self.do(name, self.of[name].looked(txn, number, looked, self.at))
                case Apply():
                    for write in each.writes:
                        self.rows[name][write.key] = (each.commit_ts, write.row)
                case _:
                    self.told.append(each)

    def _found(self, name: str, key: bytes) -> Found:
        commit_ts, row = self.rows[name].get(key, (0, None))
        return Found(commit_ts, row is not None)

    def sync(self, *names: str) -> bool:
        """One fsync at each of these members, at the same time; whether there was any that somebody waits for."""
        groups = {name: self.waiting[name] for name in names or self.of}
        is_urgent = any(persist.is_urgent for group in groups.values() for persist in group)
        for name, group in groups.items():
            self.waiting[name] = []
            self.disks[name] += [record for persist in group for record in persist.records]
        for name, group in groups.items():
            for persist in group:
                self.do(name, self.of[name].persisted(persist.then, self.at))
        return is_urgent

    def settle(self) -> int:
        """How many syncs that somebody waits for follow each other."""
        syncs = 0
        while any(self.waiting.values()):
            syncs += self.sync()
        return syncs

    def begin(self, name: str) -> int:
        """A first start; the clocks' marks are on disk afterwards, so that they do not count."""
        for each, member in self.of.items():
            member.snapshot(0, self.at)
            self.do(each, member.tick(self.at))
        self.settle()
        return self.of[name].snapshot(0, self.at)

    def submit(self, name: str, txn: TransactionId, parts: dict[str, Part], start: int, read_ts: int = 0) -> None:
        self.do(name, self.of[name].submit(txn, start, read_ts, parts, self.at))

    def crash(self, name: str) -> None:
        self.waiting[name] = []
        self.of[name] = self._member(name)

    def wait(self, seconds: float) -> None:
        for _ in range(int(seconds * 10)):
            self.now += 0.1
            for name in self.of:
                if name not in self.down:
                    self.do(name, self.of[name].tick(self.at))
