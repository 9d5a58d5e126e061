"""What a plan is made of once it is cut: fragments, their leaves, their outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import msgspec
import xxhash

from skerry.model.config import Leaves
from skerry.model.errors import InternalError
from skerry.model.table import Column


class SortKey(msgspec.Struct, frozen=True, array_like=True):
    """Sort by the output column at `index`, in Spark's order (NaN greatest, -0.0 = 0.0)."""

    index: int
    descending: bool
    nulls_first: bool


class TableLeaf(msgspec.Struct, frozen=True, array_like=True, tag="table"):
    """`placeholder` stands in the SQL where the site's own view of `table` goes."""

    placeholder: str
    table: str


class EdgeLeaf(msgspec.Struct, frozen=True, array_like=True, tag="edge"):
    """`placeholder` stands in the SQL where the rows of `edge` go; `senders` feed it here, one channel each."""

    placeholder: str
    edge: int
    columns: tuple[Column, ...]
    senders: tuple[str, ...]


class VirtualLeaf(msgspec.Struct, frozen=True, array_like=True, tag="virtual"):
    """`placeholder` stands in the SQL where rows go that come in the request (Execute.virtual_tables), and names them:
    it is made of them (`virtual_name`), so a plan has these rows and no others."""

    placeholder: str
    columns: tuple[Column, ...]


Leaf = TableLeaf | EdgeLeaf | VirtualLeaf


def virtual_name(columns: Sequence[Column], rows: Sequence[bytes]) -> str:
    """The placeholder of a virtual table with these rows, each a msgpack array."""
    return f"tmp_{xxhash.xxh3_128_hexdigest(msgspec.msgpack.encode((columns, rows)))}"


class Output(msgspec.Struct, frozen=True, array_like=True):
    """Where a fragment's rows go: to every one of `receivers`, each over a channel of its own.

    order: "any" (as they come), "lanes" (Spark partitions in their order: ORDER BY),
    "merge" (lanes are sorted runs: SORT BY; merged by `keys` before they leave the member),
    "groups" (each row to the receiver that has its group, by the hash in the last column: see GroupHere).
    through_driver: the plan bounds the rows to a page, so they return through Spark's driver.
    rows_max: it is the size of the fragment's tables that bounds them, to so many; 0 if it is the statement itself.
    """

    edge: int
    receivers: tuple[str, ...]
    order: str = "any"
    keys: tuple[SortKey, ...] = ()
    through_driver: bool = False
    rows_max: int = 0


class Facts(msgspec.Struct, frozen=True, array_like=True):
    """What the maker of a fragment tells its initiator of it.

    operators: the kinds of work in it, in the order in which rows meet them.
    markers: the names of its parameters.
    has_limit: it may have been stopped before its tables' ends.
    scan: the conditions of a fragment that does nothing but scan one table, as texts, "" for one with a parameter; None
    for any other fragment.
    done: what is done to the rows of each leaf before they are in its own (plan/egress.py); () if nobody asked.
    virtual: the rows of its virtual tables, by placeholder.
    """

    operators: tuple[str, ...] = ()
    markers: tuple[str, ...] = ()
    has_limit: bool = False
    scan: tuple[str, ...] | None = None
    done: tuple[Leaves, ...] = ()
    virtual: tuple[tuple[str, tuple[bytes, ...]], ...] = ()


# The kinds of merges, and how many columns each is made from.
MERGED_FROM = {
    **dict.fromkeys(("any", "sum", "count", "min", "max", "bit_and", "bit_or", "bit_xor"), 1),
    **dict.fromkeys(("avg", "mean"), 2),
    **dict.fromkeys(("var_pop", "var_samp", "stddev_pop", "stddev_samp"), 3),
}


class MergeStep(msgspec.Struct, frozen=True, array_like=True):
    """How the column at `index` of the partial rows becomes one of the result (kinds: `exchange/kernels.py`).

    inputs: the columns it is made from, where they are others than its own: avg of a sum and a count.
    """

    index: int
    kind: str
    inputs: tuple[int, ...] = ()


class Finish(msgspec.Struct, frozen=True, array_like=True, tag="finish"):
    """The finishing operators of a member: gather or merge, then aggregate, then offset and limit.

    aggregate: the rows are partial aggregates, sorted by `keys`, which are the groups; a step a column of the result.
    """

    keys: tuple[SortKey, ...] = ()
    offset: int = 0
    limit: int | None = None
    aggregate: tuple[MergeStep, ...] = ()


class SparkFragment(msgspec.Struct, frozen=True, array_like=True, tag="spark"):
    """A part of the plan that one member runs as one Spark job. `plan/maker.py` makes it, of a tree.

    is_narrow: its rows are copies of what its tables hold, and those have been seen to be short.
    reason: why it runs at that member, for EXPLAIN.
    analyzes: the table whose statistics its one row holds, for the member to keep (see analyze.py); else "".
    operator_depth: of the statement's tree. An engine whose stack is small refuses a statement by it: whoever runs the
    fragment has counted it (admission.py).
    facts: those of its maker, at the initiator; what a participant found out itself; else None.
    is_repeatable: no function in it may give another value each time, so its plan may serve twice. Counted likewise.
    """

    id: int
    member: str
    sql: str
    leaves: tuple[Leaf, ...]
    output: Output
    estimated_rows: int = 0
    estimated_bytes: int = 0
    is_narrow: bool = False
    reason: str = ""
    analyzes: str = ""
    operator_depth: int = 0
    facts: Facts | None = None
    is_repeatable: bool = False


class GroupHere(msgspec.Struct, frozen=True, array_like=True, tag="group"):
    """A member's share of an elastic group-by (docs/protocol.md, 16): partial rows in, partial rows out.

    The last column of the rows that come is the hash of their keys. `steps`: one for each other column that is no key.
    `members` have fragments like this; the first is the manager, all rows go to it until there are too many groups.
    Rows that came to the wrong member go on over edge `forwards`, shares of a state over edge `shares`: both lead from
    each member to each other one, and no fragment reads them.
    """

    keys: tuple[int, ...]
    steps: tuple[MergeStep, ...]
    members: tuple[str, ...]
    forwards: int
    shares: int


# What a member can do with rows without its Spark.
Operator = Finish | GroupHere


class OperatorFragment(msgspec.Struct, frozen=True, array_like=True, tag="operator"):
    """A part of the plan that one member runs by itself: `operator` over the rows of its edges, all of them alike.

    Its leaves stand in no text: their placeholders are empty. A sender may be the member itself. No other fragment
    reads these edges: their rows are let go of as they are taken.
    """

    id: int
    member: str
    operator: Operator
    leaves: tuple[EdgeLeaf, ...]
    output: Output
    estimated_rows: int = 0
    estimated_bytes: int = 0
    reason: str = ""

    @property
    def facts(self) -> None:
        """Nobody tells more of an operator than it says itself."""


Fragment = SparkFragment | OperatorFragment


class Rows(msgspec.Struct, frozen=True, array_like=True, tag="rows"):
    """The query ends in rows for a cursor: the initiator finishes what arrives from `senders` on `edge`."""

    edge: int
    senders: tuple[str, ...]
    finish: Finish = Finish()


class Count(msgspec.Struct, frozen=True, array_like=True, tag="count"):
    """The query ends in a number: of the rows that `fragments` report when they are done.

    Rows that no other fragment reads are counted where they are made, and go nowhere.
    """

    fragments: tuple[int, ...]


class Written(msgspec.Struct, frozen=True, array_like=True, tag="written"):
    """The query ends in rows that `fragments` wrote to `sink`; it is over when all of them are done."""

    sink: str
    fragments: tuple[int, ...]


Ending = Rows | Count | Written


class LeftOut(msgspec.Struct, frozen=True, array_like=True):
    """A part of a table that has no row for the query, as long as its files are those of `files_version`."""

    member: str
    table: str
    files_version: int
    reason: str


class Plan(msgspec.Struct, frozen=True, array_like=True):
    """`plan_id` is a fingerprint of all that is run: not of estimates, reasons, facts and parts that are left out.

    `schema_info` maps `member.table` to its schema_version. `known_by`: names of what a fragment sends, under which its
    initiator remembers the size (known.py).
    """

    plan_id: str
    fragments: tuple[Fragment, ...]
    ends_in: Ending
    schema_info: dict[str, int]
    parameters: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    known_by: dict[int, tuple[str, ...]] = {}

    @property
    def rows(self) -> Rows:
        """The ending of a plan that ends in rows, as every SELECT does."""
        if not isinstance(self.ends_in, Rows):
            raise InternalError(f"plan {self.plan_id} ends in {self.ends_in}, not in rows")
        return self.ends_in

    @property
    def finish(self) -> Finish:
        """What the initiator does with the rows of a plan that ends in rows."""
        return self.rows.finish

    @property
    def jobs(self) -> tuple[SparkFragment, ...]:
        """The fragments that are Spark jobs."""
        return tuple(fragment for fragment in self.fragments if isinstance(fragment, SparkFragment))

    def is_result(self, output: Output) -> bool:
        """Whether these rows are those that the query ends in."""
        match self.ends_in:
            case Rows(edge):
                return output.edge == edge
            case Count() | Written():
                return False
            case never:
                assert_never(never)

    def readers(self) -> dict[int, tuple[str, ...]]:
        """The receivers that take each fragment's rows; those of a fragment that is only counted need none."""
        leaves = ((fragment.member, leaf) for fragment in self.fragments for leaf in fragment.leaves)
        read = {(leaf.edge, member) for member, leaf in leaves if isinstance(leaf, EdgeLeaf)}
        return {
            each.id: tuple(
                receiver
                for receiver in each.output.receivers
                if self.is_result(each.output) or (each.output.edge, receiver) in read
            )
            for each in self.fragments
        }

    def feeding(self) -> dict[tuple[int, str], list[Fragment]]:
        """Who sends, by edge and receiver: an edge may bring one receiver rows of other members than another."""
        found: dict[tuple[int, str], list[Fragment]] = {}
        for fragment in self.fragments:
            for receiver in fragment.output.receivers:
                found.setdefault((fragment.output.edge, receiver), []).append(fragment)
        return found

    def virtual_tables(self, member: str) -> dict[str, tuple[bytes, ...]]:
        """The rows that go to a member with its request."""
        told = [job.facts.virtual for job in self.jobs if job.member == member and job.facts is not None]
        return {name: rows for virtual in told for name, rows in virtual}

    def veiled(self) -> Plan:
        """As its initiator runs it without remembering what its fragments gave."""
        return msgspec.structs.replace(self, fragments=tuple(map(_veiled, self.fragments)), known_by={})

    def to_run(self) -> Plan:
        """Without what is of use to its initiator alone."""
        return msgspec.structs.replace(self, fragments=tuple(map(_to_run, self.fragments)), known_by={})


def _veiled(fragment: Fragment) -> Fragment:
    if isinstance(fragment, OperatorFragment) or fragment.facts is None:
        return fragment
    virtual = fragment.facts.virtual
    return msgspec.structs.replace(fragment, facts=Facts(virtual=virtual) if virtual else None)


def _to_run(fragment: Fragment) -> Fragment:
    match fragment:
        case SparkFragment():
            return msgspec.structs.replace(fragment, facts=None)
        case OperatorFragment():
            return fragment
        case never:
            assert_never(never)
