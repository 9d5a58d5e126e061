"""Queries of a run: plans made by hand, who reads them and how, and what their answer must be."""

from __future__ import annotations

from collections import Counter
from random import Random

import msgspec

from sim.engine import COLUMNS, Row
from skerry.config import FaultPolicy
from skerry.model.fragment import (
    EdgeLeaf,
    Finish,
    Fragment,
    OperatorFragment,
    Output,
    Plan,
    Rows,
    SortKey,
    SparkFragment,
)
from skerry.model.ids import QueryId
from skerry.plan.cache import fingerprint

_KEYS = (SortKey(0, False, True),)


class Reader(msgspec.Struct):
    """How the client behaves. Times are from the query's start."""

    page_rows: int = 0
    page_bytes: int = 1 << 20
    pause_s: float = 0.0  # before each page
    stall_s: float = 0.0  # once
    quits_after_s: float | None = None
    quits_after_pages: int | None = None
    is_absent: bool = False


class Query(msgspec.Struct):
    query: QueryId
    plan: Plan
    lanes: dict[int, int]  # rows of each lane that the result is made of
    shape: str
    reader: Reader
    start_s: float
    timeout_s: float = 300.0
    limit: int | None = None
    copies: dict[int, int] = {}  # how many members send on the rows of a lane, where that is not one
    some: int = 0  # rows that another member sends on beside them
    may_fail: bool = False  # a failure was planted
    policy: FaultPolicy = FaultPolicy.WAIT
    # what happened
    rows: list[Row] = []
    count: int | None = None  # of a plan that ends in one
    outcome: str = ""  # "", "complete", "error: …", "lost"
    error_code: int = 0

    def wrong(self) -> str:
        """Why these rows are not the answer; "" when they are."""
        if self.shape == "count":
            total, checksum = sum(self.lanes.values()), sum(n * (n - 1) // 2 for n in self.lanes.values())
            return "" if self.rows == [(total, -1, checksum)] else f"counted {self.rows}, not {total} and {checksum}"
        return self._wrong_rows() or self._wrong_order()

    def _wrong_rows(self) -> str:
        got = Counter((lane, n) for _, lane, n in self.rows)
        if self.shape == "fan":
            return self._wrong_copies(got)
        doubled = [row for row, times in got.items() if times > 1]
        if doubled:
            return f"{len(doubled)} rows are doubled, {doubled[0]} among them"
        total = sum(self.lanes.values())
        strange = [(lane, n) for lane, n in got if n >= self.lanes.get(lane, 0)]
        if strange:
            return f"rows that nobody made, {strange[0]} among them"
        wanted = total if self.limit is None else min(self.limit, total)
        return "" if len(self.rows) == wanted else f"{len(self.rows)} rows of {wanted}"

    def _wrong_copies(self, got: Counter[tuple[int, int]]) -> str:
        wanted = {(lane, n): times for lane, times in self.copies.items() for n in range(self.lanes[lane])}
        if strange := got.keys() - wanted.keys():
            return f"rows that nobody made, {min(strange)} among them"
        beside = sum(got.values()) - sum(wanted.values())
        wrong = [row for row, times in wanted.items() if not times <= got[row] <= times + bool(self.some)]
        if wrong or beside != self.some:
            return f"{len(wrong)} rows do not come from each member, and {beside} of {self.some} rows beside them"
        return ""

    def _wrong_order(self) -> str:
        if self.shape == "merge":
            keys = [k for k, _, _ in self.rows]
            if keys != sorted(keys):
                return "the rows are not sorted"
        if self.shape in ("gather", "lanes", "driver", "merge"):
            last: dict[int, int] = {}
            for _, lane, n in self.rows:
                # A lane's rows come as they were made, all of them from its first on.
                if n != last.get(lane, -1) + 1:
                    return f"lane {lane}: row {n} after {last.get(lane, -1)}"
                last[lane] = n
        if self.shape == "lanes":
            at: dict[int, int] = {}
            for _, lane, _ in self.rows:
                if lane < at.get(lane // 100, 0):
                    return f"lane {lane} after lane {at[lane // 100]}"
                at[lane // 100] = lane
        return ""


def make_query(random: Random, number: int, members: list[str], *, may_fail: bool, may_quit: bool) -> Query:
    """A query at a random member, of a random shape."""
    initiator = random.choice(members)
    shape = random.choice(["gather", "gather", "lanes", "merge", "pass", "pass", "count", "driver", "limit", "some"])
    scanning = random.sample(members, random.randint(1, min(3, len(members))))
    maker = _Maker(random, initiator)
    through_driver = shape == "driver" or (shape == "count" and random.random() < 0.5)
    limit = random.randint(0, 12) if shape in ("limit", "some") else None
    # A chance of its own: what the other queries of a seed are stays as it was.
    chance = Random(f"{number} {initiator} {scanning}")
    shape = "fan" if shape == "gather" and chance.random() < 0.5 else shape
    if shape in ("pass", "count", "some"):
        root = random.choice(members)
        # Rows that stay where they are need no edge: no plan has one from a member to itself.
        others = [member for member in members if member != root]
        scanning = [member for member in scanning if member != root] or [random.choice(others)]
        scans = [(member, maker.scan(member, (root,), random.randint(1, 2), "any")) for member in scanning]
        if chance.random() < 0.3:  # small ones, which their member may run together
            small = [(member, edge) for member in scanning for edge in (5, 6, 7) if chance.random() < 0.8]
            maker.random = chance
            scans += [(member, maker.scan(member, (root,), edge, "any", through_driver=True)) for member, edge in small]
            maker.random = random
        leaves = tuple(
            EdgeLeaf(f"e{edge}", edge, COLUMNS, tuple(member for member, each in scans if each == edge))
            for edge in sorted({edge for _, edge in scans})
        )
        if shape != "count" and number % 2:  # the member does what its Spark would
            maker.operate(root, Finish((), 0, limit), leaves, Output(9, (initiator,)))
        else:
            if shape == "pass" and number % 3 == 0:
                leaves += (maker.ahead(leaves, root, scanning[0]),)
            words = {"pass": "pass", "count": "count", "some": f"limit={limit}"}[shape]
            maker.add(root, words, leaves, Output(9, (initiator,), "any", (), through_driver))
        ends_in = Rows(9, (root,))
    elif shape == "fan":
        ends_in = maker.fan(chance, scanning, members, initiator)
    else:
        order = {"gather": "any", "limit": "any", "driver": "any"}.get(shape, shape)
        for member in scanning:
            maker.scan(member, (initiator,), 9, order, through_driver)
        keys = _KEYS if shape == "merge" else ()
        ends_in = Rows(9, tuple(scanning), Finish(keys, 0, limit if shape == "limit" else None))
    plan = Plan("", tuple(maker.fragments), ends_in, {})
    if may_fail and random.random() < 0.3:
        plan = _broken(plan, random)
        fails = True
    else:
        fails = False
    plan = msgspec.structs.replace(plan, plan_id=fingerprint(plan))
    query = Query(
        QueryId(initiator, f"q{number}"), plan, maker.lanes, shape, Reader(), random.random() * 3, limit=limit
    )
    query.may_fail = fails
    query.policy = random.choice([FaultPolicy.WAIT, FaultPolicy.WAIT, FaultPolicy.FAIL, FaultPolicy.BUFFER])
    query.rows = []
    query.copies, query.some = maker.copies, maker.some
    query.reader = _reader(random, may_quit)
    if query.reader.is_absent:
        query.timeout_s = random.uniform(1, 12)
    elif may_fail and random.random() < 0.1:
        query.timeout_s = random.uniform(0.1, 3)
    return query


def statement(words: str) -> str:
    """What the invented Spark is to do, as SQL: members look at each other's fragments before they run them."""
    return f"SELECT '{words}'"


class _Maker:
    def __init__(self, random: Random, initiator: str) -> None:
        self.random = random
        self.fragments: list[Fragment] = []
        self.lanes: dict[int, int] = {}
        self.copies: dict[int, int] = {}
        self.some = 0

    def add(self, member: str, words: str, leaves: tuple[EdgeLeaf, ...], output: Output) -> None:
        self.fragments.append(SparkFragment(len(self.fragments) + 1, member, statement(words), leaves, output))

    def operate(self, member: str, operator: Finish, leaves: tuple[EdgeLeaf, ...], output: Output) -> None:
        leaves = tuple(msgspec.structs.replace(leaf, placeholder="") for leaf in leaves)
        self.fragments.append(OperatorFragment(len(self.fragments) + 1, member, operator, leaves, output))

    def scan(self, member: str, receivers: tuple[str, ...], edge: int, order: str, through_driver: bool = False) -> int:
        lanes, batches = self.random.randint(0, 3), self.random.randint(0, 5)
        rows = self.random.randint(1, 3) if through_driver else self.random.randint(1, 9)
        keys = _KEYS if order == "merge" else ()
        output = Output(edge, receivers, order, keys, through_driver)
        number = len(self.fragments) + 1
        self.add(member, f"make={number} lanes={lanes} batches={batches} rows={rows}", (), output)
        self.lanes |= {number * 100 + lane: batches * rows for lane in range(lanes)}
        return edge

    def fan(self, chance: Random, scanning: list[str], members: list[str], initiator: str) -> Rows:
        """Rows of one edge go to several members, not the same for each sender; all are sent on, by one only some.

        A member may be among its own receivers: what stays passes no Spark.
        """
        receivers = {member: chance.sample(members, chance.randint(1, len(members))) for member in scanning}
        for member, those in receivers.items():
            through_driver, order = chance.random() < 0.2, chance.choice(["any", "any", "lanes", "merge"])
            self.scan(member, tuple(those), 1, order, through_driver)
        wanted = [member for member in members if any(member in those for those in receivers.values())]
        stops = chance.choice(wanted) if len(wanted) > 1 and chance.random() < 0.4 else ""
        for member in wanted:
            limit = chance.randint(0, 9) if member == stops else None
            senders = tuple(sender for sender, those in receivers.items() if member in those)
            lanes = [lane for lane in self.lanes if self.fragments[lane // 100 - 1].member in senders]
            if member == stops:
                self.some = min(limit or 0, sum(self.lanes[lane] for lane in lanes))
            self.copies |= {lane: self.copies.get(lane, 0) + (member != stops) for lane in lanes}
            leaf, output = EdgeLeaf("e1", 1, COLUMNS, senders), Output(9, (initiator,))
            if member in senders or chance.random() < 0.4:
                self.operate(member, Finish((), 0, limit), (leaf,), output)
            else:
                self.add(member, "pass" if limit is None else f"limit={limit}", (leaf,), output)
        return Rows(9, tuple(wanted))

    def ahead(self, leaves: tuple[EdgeLeaf, ...], root: str, beside: str) -> EdgeLeaf:
        """What the root waits for, as for rows that its keys reduce: another fragment there reads the same edges first.

        It has enough long before they end; what is made of its rows beside is none.
        """
        self.add(root, "limit=2", leaves, Output(3, (beside,)))
        self.add(beside, "limit=0", (EdgeLeaf("e3", 3, COLUMNS, (root,)),), Output(4, (root,)))
        return EdgeLeaf("e4", 4, COLUMNS, (beside,))


def work(fragment: Fragment) -> str:
    """What the fragment does, for the story of a run."""
    return fragment.sql if isinstance(fragment, SparkFragment) else str(fragment.operator)


def _broken(plan: Plan, random: Random) -> Plan:
    fragments = list(plan.fragments)
    job = plan.jobs[random.randrange(len(fragments)) % len(plan.jobs)]  # an operator has no text to break
    word = random.choice(["refuse", f"fail={random.randrange(3)}:{random.randrange(4)}"])
    fragments[fragments.index(job)] = msgspec.structs.replace(job, sql=f"{job.sql[:-1]} {word}'")
    return msgspec.structs.replace(plan, fragments=tuple(fragments))


def _reader(random: Random, may_quit: bool) -> Reader:
    reader = Reader(page_rows=random.choice([0, 0, 1, 5, 20]), page_bytes=random.choice([1 << 20, 1 << 20, 1, 2000]))
    kind = random.random()
    if kind < 0.2:
        reader.pause_s = random.random() * 0.3
    elif kind < 0.3:
        reader.stall_s = random.random() * 6
    elif kind < 0.45 and may_quit:
        reader.quits_after_s = random.random() ** 2 * 2
    elif kind < 0.55 and may_quit:
        reader.quits_after_pages = random.randrange(3)
    elif kind < 0.58 and may_quit:
        reader.is_absent = True
    return reader
