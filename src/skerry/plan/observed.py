"""What edges turned out to carry: remembered by what makes their rows, and used when the same is planned again."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import assert_never

import msgspec
import xxhash
from sqlglot import exp

from skerry.model.fragment import (
    Count,
    EdgeLeaf,
    Fragment,
    OperatorFragment,
    Plan,
    Rows,
    TableLeaf,
    VirtualLeaf,
    Written,
)
from skerry.model.table import TablePart
from skerry.sql.dialect import render
from skerry.sql.push import split
from skerry.sql.walk import bare, contains, find_all

# The version of the files of a table at a member; None when nobody knows it.
VersionOf = Callable[[str, str], int | None]
_LEAST = ">"
_COPY_TRIES = 10
_LATEST = 1000  # changes that others are told one by one
_TEXTS = "conjuncts"


class Size(msgspec.Struct, frozen=True):
    rows: int
    size_bytes: int


class Observed:
    """The latest size of each thing seen, least recently used first out.

    Plans are made in threads beside the one that learns, so an entry may go between two looks.
    """

    def __init__(self, entries_max: int) -> None:
        self._max = entries_max
        self._sizes: OrderedDict[str, Size] = OrderedDict()
        self.changes = 0  # so many sizes were new
        self._latest: deque[tuple[str, Size]] = deque(maxlen=_LATEST)

    def __len__(self) -> int:
        return len(self._sizes)

    def learn(self, plan: Plan, sizes: Mapping[int, Size], version_of: VersionOf) -> None:
        """A plan ran to its end, its fragments sent so much. With a LIMIT they may have been stopped: not counted."""
        if _may_end_early(plan) or any(_may_stop(fragment) for fragment in plan.fragments):
            return
        keys = fragment_keys(plan, version_of)
        for fragment in plan.fragments:
            size, key = sizes.get(fragment.id), keys[fragment.id]
            if size is None:
                continue
            for name in plan.known_by.get(fragment.id, ()):
                # The first size stays: files of one version do not change, and plans must not go to and fro.
                if name.startswith(_LEAST) or self._get(name) is None:
                    self._put(name, size)
            if not key or self._get(key) == size:  # nothing new: most queries have run before
                continue
            self._put(key, size)
            scan = _scan_key_of(fragment, version_of)
            if scan:
                self._put(scan, size)

    def estimate(self, plan: Plan, version_of: VersionOf) -> Plan:
        """The plan with what is known of its edges in the place of what was guessed."""
        keys = fragment_keys(plan, version_of)
        fragments = []
        for fragment in plan.fragments:
            size = self._get(keys[fragment.id])
            if size is not None:
                fragment = msgspec.structs.replace(fragment, estimated_rows=size.rows, estimated_bytes=size.size_bytes)
            fragments.append(fragment)
        return plan if tuple(fragments) == plan.fragments else msgspec.structs.replace(plan, fragments=tuple(fragments))

    def scan_keys(self, parts: Sequence[TablePart], filters: Sequence[exp.Expr]) -> list[str]:
        """The names of the rows of these parts that pass the filters."""
        return [scan_key(part.member, part.table, part.files_version, filters) for part in parts]

    def rows(self, keys: Sequence[str], shares: Sequence[float], guessed: float) -> float:
        """The rows of a relation in parts with these shares: as seen, or no fewer than was seen of them."""
        if not self._sizes:
            return guessed
        seen = self.seen(keys, shares)
        if seen is not None:
            return seen
        least = 0
        for key in keys:
            size = self._get(_LEAST + key)
            least += size.rows if size is not None else 0
        return max(guessed, float(least))

    def seen(self, keys: Sequence[str], shares: Sequence[float]) -> float | None:
        """Parts that were not sent are taken to be like those that were."""
        rows, known = 0.0, 0.0
        for key, share in zip(keys, shares, strict=True):
            size = self._get(key) if key else None
            if size is not None:
                rows, known = rows + size.rows, known + share
        return rows / known if known > 0 else None

    def has_least(self, keys: Iterable[str]) -> bool:
        """Has anything been seen of what is left of these rows?"""
        return any(_LEAST + key in self._sizes for key in keys)

    def size(self, key: str) -> Size | None:
        return self._get(key) if key else None

    def all(self) -> list[tuple[str, Size]]:
        """Least recently used first; none if others never cease to look while they are copied."""
        for _ in range(_COPY_TRIES):
            with suppress(RuntimeError):  # moved in the meantime
                return list(self._sizes.items())
        return []

    def since(self, changes: int) -> tuple[list[tuple[str, Size]], int]:
        """For another who knew all when there were so many changes: what is new, and how many there are now."""
        missed = self.changes - changes
        if missed > len(self._latest):
            return self.all(), self.changes
        return list(islice(self._latest, len(self._latest) - missed, None)), self.changes

    def restore(self, sizes: Iterable[tuple[str, Size]]) -> None:
        """What `all` gave, perhaps long ago."""
        for key, size in sizes:
            self._put(key, size)

    def _get(self, key: str) -> Size | None:
        size = self._sizes.get(key)
        if size is not None:
            with suppress(KeyError):
                self._sizes.move_to_end(key)
        return size

    def _put(self, key: str, size: Size) -> None:
        if key.startswith(_LEAST):
            known = self._sizes.get(key)
            size = known if known is not None and known.rows > size.rows else size
        if self._sizes.get(key) != size:
            self.changes += 1
            self._latest.append((key, size))
        self._sizes[key] = size
        self._sizes.move_to_end(key)
        while len(self._sizes) > self._max:
            self._sizes.popitem(last=False)


def at_least(key: str) -> str:
    """What is seen under this name are not all of the rows."""
    return _LEAST + key


def distinct_of(key: str, column: str) -> str:
    """The values of one column of the rows."""
    return f"{key} {column.lower()}"


def fragment_keys(plan: Plan, version_of: VersionOf) -> dict[int, str]:
    """What each fragment's rows are made of: text, versions of tables, and the same of what it reads. "" if unknown."""
    feeding = plan.feeding()
    found: dict[int, str] = {}

    def key_of(fragment: Fragment) -> str:
        if fragment.id not in found:
            found[fragment.id] = ""  # a plan has no circles; if it had, nothing would be known of it
            found[fragment.id] = _key(fragment, plan.parameters, feeding, key_of, version_of)
        return found[fragment.id]

    for fragment in plan.fragments:
        key_of(fragment)
    return found


def _key(
    fragment: Fragment,
    parameters: Sequence[str],
    feeding: Mapping[tuple[int, str], Sequence[Fragment]],
    key_of: Callable[[Fragment], str],
    version_of: VersionOf,
) -> str:
    if isinstance(fragment, OperatorFragment) or fragment.facts is None:
        return ""
    if not set(parameters).isdisjoint(fragment.facts.markers):
        return ""  # other values, other rows
    sql, inputs = fragment.sql, []
    for number, leaf in enumerate(fragment.leaves):
        sql = sql.replace(leaf.placeholder, f"leaf_{number}")
        match leaf:
            case TableLeaf(_, table):
                version = version_of(fragment.member, table)
                inputs.append(f"{table} {version}" if version is not None else "")
            case EdgeLeaf(_, edge):
                inputs += sorted(key_of(each) for each in feeding.get((edge, fragment.member), ()))
            case VirtualLeaf(placeholder):
                inputs.append(placeholder)
            case never:
                assert_never(never)
    return digest([fragment.member, sql, *inputs]) if all(inputs) else ""


def scan_key(member: str, table: str, files_version: int, filters: Iterable[exp.Expr]) -> str:
    """The rows of one part that pass these conditions, whichever columns of them are wanted."""
    return _scan_key(member, table, files_version, [text for condition in filters for text in texts_of(condition)])


def _scan_key(member: str, table: str, files_version: int, texts: Sequence[str]) -> str:
    if not all(texts):  # other values, other rows
        return ""
    return digest(["scan", member, table.lower(), str(files_version), *sorted(texts)])


def _scan_key_of(fragment: Fragment, version_of: VersionOf) -> str:
    """The same for a fragment that does nothing but scan; "" for any other."""
    if fragment.facts is None or fragment.facts.scan is None:
        return ""
    (leaf,) = fragment.leaves
    version = version_of(fragment.member, leaf.table) if isinstance(leaf, TableLeaf) else None
    if version is None or not isinstance(leaf, TableLeaf):
        return ""
    return _scan_key(fragment.member, leaf.table, version, fragment.facts.scan)


def _may_end_early(plan: Plan) -> bool:
    """Whether the query may be over before its fragments have made all of their rows."""
    match plan.ends_in:
        case Rows(_, _, finish):
            return finish.limit is not None
        case Count() | Written():
            return False
        case never:
            assert_never(never)


def _may_stop(fragment: Fragment) -> bool:
    return fragment.facts is None or fragment.facts.has_limit


def texts_of(condition: exp.Expr) -> list[str]:
    """Its conjuncts, "" for one with a parameter. Kept with it and its copies: they are asked for many times."""
    known: list[str] | None = condition.meta.get(_TEXTS)
    if known is None:
        conjuncts = split(condition)
        known = ["" if contains(each, exp.Placeholder) else normal(each) for each in conjuncts]
        condition.meta[_TEXTS] = known
    return known


def normal(condition: exp.Expr) -> str:
    """A condition however its columns are quoted and qualified."""
    condition = bare(condition)
    copy = condition.copy()
    for column in find_all(copy, exp.Column):
        name = exp.Identifier(this=column.name.lower(), quoted=False)
        for key in ("table", "db", "catalog"):
            column.set(key, None)
        column.set("this", name)
    return render(copy)


def digest(texts: Iterable[str]) -> str:
    return xxhash.xxh3_128_hexdigest("\0".join(texts).encode())
