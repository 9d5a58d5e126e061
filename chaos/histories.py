"""What clients saw of tables of our own, judged: is it what snapshot isolation allows, and is every write there once?

Pure. A history is a list of transactions, each with the steps that its client saw; an answer is a list of violations.
Lists give an order of versions, as in Elle (Kingsbury and Alvaro, 2020): whoever reads the last list of a key knows the
order of all its writers.
"""

from __future__ import annotations

import enum
import itertools
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Elements = tuple[str, ...]


class Outcome(enum.Enum):
    DONE = "done"  # acknowledged
    REFUSED = "refused"  # an error that says that nothing was written
    UNKNOWN = "unknown"  # nobody has told


@dataclass(frozen=True)
class Read:
    key: str
    elements: Elements


@dataclass(frozen=True)
class Append:
    """No two appends of a history have the same key and element."""

    key: str
    element: str


@dataclass(frozen=True)
class Transaction:
    """Steps in the order in which one client made them. Times are of one clock."""

    name: str
    client: str
    steps: tuple[Read | Append, ...]
    outcome: Outcome = Outcome.DONE
    began: float = 0.0
    ended: float = 0.0

    @property
    def appends(self) -> tuple[Append, ...]:
        return tuple(step for step in self.steps if isinstance(step, Append))

    @property
    def outer_reads(self) -> Iterator[Read]:
        """What it read of others: the first read of each key, without what it had appended itself."""
        own: dict[str, list[str]] = defaultdict(list)
        seen: set[str] = set()
        for step in self.steps:
            if isinstance(step, Append):
                own[step.key].append(step.element)
            elif step.key not in seen:
                seen.add(step.key)
                count = len(own[step.key])
                yield Read(step.key, step.elements[: len(step.elements) - count] if count else step.elements)


@dataclass(frozen=True)
class Transfer:
    """Money that one statement moved between two accounts."""

    name: str
    source: str
    target: str
    amount: int
    outcome: Outcome


def check_lists(history: Sequence[Transaction], final: Mapping[str, Elements]) -> list[str]:
    """`final`: what was read of every key when all was over."""
    return [*_Lists(history, final).violations()]


@dataclass
class _Lists:
    history: Sequence[Transaction]
    final: Mapping[str, Elements]
    writers: dict[tuple[str, str], Transaction] = field(default_factory=dict)

    def violations(self) -> Iterator[str]:
        self.writers = {(each.key, each.element): txn for txn in self.history for each in txn.appends}
        yield from (broken := [*self._elements(), *self._written(), *self._reads()])
        if not broken:  # else there is no order of versions, and so there are no dependencies
            yield from self._cycles()

    def _elements(self) -> Iterator[str]:
        """Of every list that anybody read: each element once, by a transaction that was not refused."""
        told = set[str]()
        for name, read in self._all_reads():
            for element in read.elements:
                writer = self.writers.get((read.key, element))
                if writer is None:
                    told.add(f"invented: {name} read {element} of {read.key}, which nobody wrote")
                elif writer.outcome is Outcome.REFUSED:
                    told.add(f"G1a: {name} read {element} of {read.key}, of {writer.name}, which was refused")
            for element in {each for each in read.elements if read.elements.count(each) > 1}:
                told.add(f"doubled write: {name} read {element} of {read.key} twice")
        yield from sorted(told)

    def _all_reads(self) -> Iterator[tuple[str, Read]]:
        yield from (("the last read", Read(key, elements)) for key, elements in self.final.items())
        for txn in self.history:
            yield from ((txn.name, step) for step in txn.steps if isinstance(step, Read))

    def _written(self) -> Iterator[str]:
        """What was acknowledged is there in the end; of what is unknown all or nothing."""
        for txn in self.history:
            missing = [each for each in txn.appends if each.element not in self.final.get(each.key, ())]
            shown = ", ".join(f"{each.element} of {each.key}" for each in missing)
            if missing and len(missing) < len(txn.appends):
                yield f"partial write: {shown} of {txn.name} ({txn.outcome.value}) is not there in the end"
            elif missing and txn.outcome is Outcome.DONE:
                yield f"lost acknowledged write: {shown} of {txn.name} is not there in the end"
            elif missing and (seen := self._seen_by(txn)):
                yield f"lost write: {shown} of {txn.name} was read by {seen}, and is not there in the end"

    def _seen_by(self, txn: Transaction) -> str:
        own = {(each.key, each.element) for each in txn.appends}
        return next(
            (name for name, read in self._all_reads() if any((read.key, each) in own for each in read.elements)), ""
        )

    def _reads(self) -> Iterator[str]:
        """Every list that was read is how the last one begins, and ends where a transaction ends."""
        for txn in self.history:
            if txn.outcome is Outcome.REFUSED:
                continue
            for read in txn.outer_reads:
                last = self.final.get(read.key, ())
                if last[: len(read.elements)] != read.elements:
                    yield f"lost update: {txn.name} read {read.elements} of {read.key}, which is {last} in the end"
                    continue
                following = last[len(read.elements) : len(read.elements) + 1]
                if read.elements and following:
                    before, after = (self.writers.get((read.key, e)) for e in (read.elements[-1], following[0]))
                    if before is after and before is not txn:
                        yield f"G1b: {txn.name} read {read.key} in the middle of {before.name if before else '?'}"
            yield from self._own_reads(txn)

    @staticmethod
    def _own_reads(txn: Transaction) -> Iterator[str]:
        """Within a transaction nothing changes but by itself."""
        known: dict[str, Elements] = {}
        pending: dict[str, Elements] = defaultdict(tuple)
        for step in txn.steps:
            if isinstance(step, Append):
                pending[step.key] += (step.element,)
                if step.key in known:
                    known[step.key] += (step.element,)
            else:
                own = pending[step.key]
                expected = known.get(step.key)
                is_right = step.elements == expected if expected is not None else step.elements[-len(own) :] == own
                if (own or expected is not None) and not is_right:
                    yield f"internal: {txn.name} read {step.elements} of {step.key}, not what it had read and written"
                known[step.key] = step.elements

    def _cycles(self) -> Iterator[str]:
        """No circle of dependencies, each with at most one anti-dependency after it (Cerone and Gotsman, theorem 9)."""
        written: Edges = defaultdict(set)
        read_from: Edges = defaultdict(set)
        missed: Edges = defaultdict(set)
        for key, elements in self.final.items():
            for one, other in itertools.pairwise(elements):
                before, after = self.writers[key, one].name, self.writers[key, other].name
                if before != after:
                    written[before].add(after)
        for txn in self.history:
            for read in txn.outer_reads if txn.outcome is not Outcome.REFUSED else ():
                last, count = self.final.get(read.key, ()), len(read.elements)
                if count and (writer := self.writers[read.key, last[count - 1]].name) != txn.name:
                    read_from[writer].add(txn.name)
                if count < len(last) and (overtaken := self.writers[read.key, last[count]].name) != txn.name:
                    missed[txn.name].add(overtaken)
        if circle := _circle(written):
            yield f"G0: a circle of writes: {circle}"
            return
        if circle := _circle(_joined(written, read_from)):
            yield f"G1c: a circle of writes and reads: {circle}"
            return
        depends = _joined(written, read_from)
        if circle := _circle(_stepped(depends, missed)):
            yield f"G-single: a circle of dependencies with reads that missed a write: {circle}"
            return
        # What was acknowledged before another began is before it, at whichever member.
        ordered = _joined(depends, _in_time(self.history))
        if circle := _circle(_stepped(ordered, missed)):
            yield f"stale read: a circle of dependencies and of what came after an answer: {circle}"


Edges = dict[str, set[str]]


def _joined(*edges: Mapping[str, set[str]]) -> Edges:
    all_edges: Edges = defaultdict(set)
    for some in edges:
        for name, later in some.items():
            all_edges[name] |= later
    return all_edges


def _stepped(depends: Edges, missed: Edges) -> Edges:
    return {name: later | {each for one in later for each in missed.get(one, ())} for name, later in depends.items()}


def _in_time(history: Iterable[Transaction]) -> Edges:
    """From each that was answered to those that began afterwards: only to the next few, others follow from these."""
    known = sorted((txn for txn in history if txn.outcome is not Outcome.REFUSED), key=lambda txn: txn.began)
    edges: Edges = defaultdict(set)
    first_end = float("inf")
    ends = [first_end]  # the first answer among those that began from here on
    for txn in reversed(known):
        ends.append(first_end := min(first_end, txn.ended if txn.outcome is Outcome.DONE else first_end))
    ends.reverse()
    begins = [txn.began for txn in known]
    for txn in known:
        if txn.outcome is Outcome.DONE:
            start = bisect_right(begins, txn.ended)
            edges[txn.name] |= {each.name for each in known[start : bisect_right(begins, ends[start])]}
    return edges


def _circle(edges: Mapping[str, set[str]]) -> str:
    """One circle, as text; "" if there is none."""
    state: dict[str, int] = {}
    for start in edges:
        if start in state:
            continue
        path = [(start, iter(sorted(edges[start])))]
        state[start] = 1
        while path:
            name, rest = path[-1]
            following = next(rest, None)
            if following is None:
                state[name] = 2
                path.pop()
            elif state.get(following) == 1:
                names = [each for each, _ in path]
                return " → ".join([*names[names.index(following) :], following])
            elif following not in state:
                state[following] = 1
                path.append((following, iter(sorted(edges.get(following, ())))))
    return ""


# --- sets ------------------------------------------------------------------------------------------------------------
def check_sets(
    history: Sequence[Transaction], looks: Sequence[Transaction], final: Mapping[str, Elements]
) -> list[str]:
    """Appends of rows that have no order; each of `looks` read all keys at one moment.

    Any two moments are one before the other: what the one saw the other saw too, or the other way round.
    """
    violations = [*_written_whole(history, final)]
    rows = {each: txn for txn in history for each in txn.appends}
    seen: list[tuple[Transaction, frozenset[Append]]] = []
    for look in looks:
        read = [Append(step.key, e) for step in look.steps if isinstance(step, Read) for e in step.elements]
        snapshot = frozenset(read)
        if len(snapshot) < len(read):
            violations.append(f"doubled write: {look.name} read a row twice")
        violations += [f"invented: {look.name} read {each}, which nobody wrote" for each in snapshot - set(rows)]
        violations += [*_whole_moment(look, snapshot, history)]
        seen.append((look, snapshot))
    seen.sort(key=lambda pair: len(pair[1]))
    for (one, less), (other, more) in itertools.pairwise(seen):
        if not less <= more:
            lacking = sorted(f"{each.element} of {each.key}" for each in less - more)[:3]
            violations.append(f"long fork: {other.name} saw more than {one.name}, but not {', '.join(lacking)}")
    return violations


def _whole_moment(look: Transaction, snapshot: frozenset[Append], history: Iterable[Transaction]) -> Iterator[str]:
    for txn in history:
        own = set(txn.appends)
        met = own & snapshot
        if met and txn.outcome is Outcome.REFUSED:
            yield f"G1a: {look.name} read {txn.name}, which was refused"
        elif met and met != own:
            yield f"G1b: {look.name} read a part of {txn.name}: {len(met)} of {len(own)} rows"
        elif met and txn.began > look.ended:
            yield f"G1c: {look.name} read {txn.name}, which began after it had ended"
        elif not met and own and txn.outcome is Outcome.DONE and txn.ended < look.began:
            yield f"stale read: {look.name} did not read {txn.name}, which was acknowledged before it began"


def _written_whole(history: Iterable[Transaction], final: Mapping[str, Elements]) -> Iterator[str]:
    for key, elements in final.items():
        if len(set(elements)) < len(elements):
            yield f"doubled write: a row of {key} is there twice in the end"
    for txn in history:
        there = [each for each in txn.appends if each.element in final.get(each.key, ())]
        if txn.outcome is Outcome.REFUSED and there:
            yield f"G1a: {txn.name} was refused, and is there in the end"
        elif there and len(there) < len(txn.appends):
            yield f"partial write: {len(there)} of {len(txn.appends)} rows of {txn.name} ({txn.outcome.value})"
        elif txn.outcome is Outcome.DONE and len(there) < len(txn.appends):
            yield f"lost acknowledged write: {txn.name} is not there in the end"


# --- a bank ----------------------------------------------------------------------------------------------------------
def check_bank(
    opening: Mapping[str, int],
    transfers: Sequence[Transfer],
    looks: Sequence[Mapping[str, int]],
    final: Mapping[str, int],
) -> list[str]:
    """No look at all accounts finds another sum; in the end each balance is what the transfers made of it."""
    total = sum(opening.values())
    violations = []
    for number, balances in enumerate([*looks, final]):
        name = f"look {number}" if number < len(looks) else "the last look"
        if set(balances) != set(opening):
            violations.append(f"{name} found accounts {sorted(balances)}")
        elif sum(balances.values()) != total:
            violations.append(f"partial write: {name} found a sum of {sum(balances.values())}, not {total}")
    unknown = [each for each in transfers if each.outcome is Outcome.UNKNOWN]
    expected = dict(opening)
    for each in transfers:
        if each.outcome is Outcome.DONE:
            expected[each.source] -= each.amount
            expected[each.target] += each.amount
    if not unknown and dict(final) != expected:
        violations.append(f"lost or doubled write: the accounts are {dict(final)}, the transfers make {expected}")
    return violations
