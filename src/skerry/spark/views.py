"""Temporary views over a site's tables: one per listing of files, made once and shared by all jobs."""

from __future__ import annotations

import itertools
import operator
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import reduce

import msgspec
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lit

from skerry.catalog.listing import partitions
from skerry.model import trace
from skerry.model.errors import SiteError
from skerry.model.limits import SEEN_VIEWS
from skerry.model.table import Column
from skerry.spark.engine import WHOLE_TABLE, Older, Overlaid, TableFiles, TableView
from skerry.spark.relations import read_pinned
from skerry.spark.types import struct_of

PREFIX = "skerry_table_"
EDGE_PREFIX = "skerry_edge_"


# Everything of a listing: tables of one name may live in several directories when clusters share a Spark.
_Key = tuple[object, ...]


def _key(table: TableFiles) -> _Key:
    options = tuple(sorted(table.options.items()))
    touched = table.overlaid.touched if table.overlaid is not None else ()
    pinned = table.pinned.key if table.pinned is not None else b""
    files = (table.files, touched, table.older, pinned)
    return (*_place(table), table.version, table.format, options, *files, table.columns, table.definition, table.seen)


def _place(table: TableFiles) -> _Key:
    return (table.member, table.table, table.root, table.seen)


class _View:
    """`ready` is held while the view is made: who comes meanwhile waits for it."""

    def __init__(self, name: str, key: _Key, place: _Key) -> None:
        self.name = name
        self.key = key
        self.place = place
        self.users = 0
        self.is_made = False
        self.ready = threading.Lock()


class Views:
    """Thread-safe. A view is dropped when a newer listing of its table came and its last user left.

    A view of what somebody may see of a table reads the view of the whole table. Of such views that nobody uses now
    only the latest ones are kept.

    `shielded` is a block that no cancel of a job reaches: others use the view that a job makes or drops.
    """

    def __init__(
        self,
        session: Callable[[], SparkSession],
        read: Callable[[TableFiles], DataFrame],
        shielded: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._session = session
        self._read = read
        self._shielded = shielded
        self._lock = threading.Lock()
        self._views: dict[_Key, _View] = {}
        self._current: dict[_Key, _Key] = {}  # place → the listing that was asked for last
        self._numbers = itertools.count(1)

    @contextmanager
    def lease(self, tables: Mapping[str, TableFiles]) -> Iterator[dict[str, str]]:
        """Placeholder → name of the view, for as long as the block runs."""
        taken: list[_View] = []
        names = {}
        try:
            for placeholder, table in tables.items():
                names[placeholder] = self._name(table, taken)
            yield names
        finally:
            for view in taken:
                self._give_back(view)

    def made(self, tables: Mapping[str, TableFiles]) -> dict[str, str] | None:
        """What `lease` would give, if it had nothing to make."""
        with self._lock:
            found = {placeholder: self._views.get(_key(table)) for placeholder, table in tables.items()}
        names = {placeholder: view.name for placeholder, view in found.items() if view is not None and view.is_made}
        return names if len(names) == len(found) else None

    def _name(self, table: TableFiles, taken: list[_View]) -> str:
        """The view is made, and added to those that are taken; so is the one that it reads."""
        whole = self._name(msgspec.structs.replace(table, seen=None), taken) if table.seen is not None else ""
        view, replaced = self._take(table)
        taken.append(view)  # first: what follows may be interrupted by a cancel
        for other in replaced:
            self._drop(other)
        return self._make(view, table, whole)

    def names(self) -> list[str]:
        with self._lock:
            return sorted(view.name for view in self._views.values())

    def in_use(self) -> set[str]:
        with self._lock:
            return {view.name for view in self._views.values() if view.users}

    def reset(self) -> None:
        """The session that had the views is gone."""
        with self._lock:
            self._views = {}

    def _take(self, table: TableFiles) -> tuple[_View, list[_View]]:
        """The table's view, and those that it takes the place of."""
        key = _key(table)
        with self._lock:
            if key not in self._views:
                self._views[key] = _View(f"{PREFIX}{next(self._numbers)}", key, _place(table))
            view = self._views[key]
            view.users += 1
            self._current.pop(view.place, None)
            self._current[view.place] = key  # the last: its place was asked for now
            self._forget_seen()
            return view, [other for other in self._views.values() if self._is_over(other)]

    def _forget_seen(self) -> None:
        """Of what users see so many places stay: there may be as many as users, and rules change."""
        seen = [place for place in self._current if place[-1] is not None]
        for place in seen[: max(0, len(seen) - SEEN_VIEWS)]:
            del self._current[place]

    def _make(self, view: _View, table: TableFiles, whole: str) -> str:
        with view.ready, self._shielded():
            if not view.is_made:
                if table.seen is None:
                    self._read(table).createOrReplaceTempView(view.name)
                else:
                    self._make_seen(view.name, table.table, table.seen, whole)
                view.is_made = True
        return view.name

    def _make_seen(self, name: str, table: str, seen: TableView, whole: str) -> None:
        try:
            frame = self._session().sql(seen.sql.replace(WHOLE_TABLE, whole), args=dict(seen.arguments) or None)
            frame.createOrReplaceTempView(name)
        except AnalysisException as error:  # its words are about rules, which are not the user's to read
            trace.emit(trace.TableUnread(table, type(error).__name__), error)
            raise SiteError(
                f"table {table}: its rules do not fit its columns, so nobody who depends on them can read it",
                suggestion="the rules file there needs a look; the member's debug log has Spark's words",
            ) from None

    def _give_back(self, view: _View) -> None:
        with self._lock:
            view.users -= 1
            is_over = self._is_over(view)
        if is_over:
            self._drop(view)

    def _is_over(self, view: _View) -> bool:
        """Nobody uses it, and nobody will: a newer listing is current, or it could not be made."""
        return view.users == 0 and (self._current.get(view.place) != view.key or not view.is_made)

    def _drop(self, view: _View) -> None:
        with self._lock:
            if self._views.get(view.key) is not view or not self._is_over(view):
                return
            del self._views[view.key]
        if view.is_made:
            with self._shielded():
                self._session().catalog.dropTempView(view.name)


def with_views(sql: str, views: Mapping[str, str]) -> str:
    """The text with each placeholder replaced by the name of its view."""
    if not views:
        return sql
    placeholders = "|".join(re.escape(placeholder) for placeholder in sorted(views, key=len, reverse=True))
    return re.sub(rf"\b({placeholders})\b", lambda match: views[match[1]], sql)


def escape_glob(path: str) -> str:
    """Spark takes paths for patterns: a `[` or `*` in the name of a listed file is just that."""
    return re.sub(r"([\\\[\]{}*?])", r"\\\1", path)


def read_table(session: SparkSession, table: TableFiles, path_of: Callable[[str], str]) -> DataFrame:
    """The files of one listing, and no others; `path_of` writes a file's path as this Spark reads it."""
    if table.pinned is not None:
        return read_pinned(session, table, path_of)
    if not table.files:
        return _empty(session, table)
    reader = session.read.format(table.format).options(**table.options)
    if any(partitions(table.root, file) for file in table.files):
        reader = reader.option("basePath", table.root)
    if table.columns:
        reader = reader.schema(struct_of(table.columns))
    return reader.load([path_of(file) for file in table.files])


def read_overlaid(
    table: TableFiles,
    read: Callable[[TableFiles], DataFrame],
    rows: Callable[[Sequence[Column], pa.Table], DataFrame],
) -> DataFrame:
    """A table of our own. `rows` makes a relation of Arrow: what no file holds yet is a part of the plan."""
    overlaid = table.overlaid
    assert overlaid is not None
    width, bare = len(table.columns), msgspec.structs.replace(table, overlaid=None, older=())
    plain = [numbered(read(bare), width)] if table.files else []
    touched = [numbered(read(msgspec.structs.replace(bare, files=overlaid.touched)), width)] if overlaid.touched else []
    for older in table.older:
        plain += [_read_older(bare, older, older.files, read)] if older.files else []
        touched += [_read_older(bare, older, older.touched, read)] if older.touched else []
    frames = [*plain, *(frame.join(*_changed(table, overlaid, rows), "left_anti") for frame in touched)]
    if overlaid.rows.num_rows or not frames:
        frames.append(numbered(rows(table.columns, pa.Table.from_batches([overlaid.rows])), width))
    return reduce(DataFrame.unionAll, frames).toDF(*[column.name for column in table.columns])


def _read_older(
    table: TableFiles, older: Older, files: tuple[str, ...], read: Callable[[TableFiles], DataFrame]
) -> DataFrame:
    """With the columns that the table has now, by number."""
    pairs = list(zip(table.columns, older.names, strict=True))
    there = tuple(Column(name, column.type) for column, name in pairs if name is not None)
    frame = numbered(read(msgspec.structs.replace(table, files=files, columns=there)), len(there))
    places = iter(range(len(there)))
    kinds = [field.dataType for field in struct_of(table.columns).fields]
    columns = [
        (col(f"c{next(places)}") if name is not None else lit(value).cast(kind)).alias(f"c{place}")
        for place, (name, value, kind) in enumerate(zip(older.names, older.values, kinds, strict=True))
    ]
    return frame.select(*columns)


def _changed(
    table: TableFiles, overlaid: Overlaid, rows: Callable[[Sequence[Column], pa.Table], DataFrame]
) -> tuple[DataFrame, SparkColumn]:
    """The keys that the overlay decides, and when a row of a file has one of them. Keys are never NULL."""
    places = {column.name: place for place, column in enumerate(table.columns)}
    names = [f"k{number}" for number in range(len(overlaid.key))]
    columns = [Column(name, table.columns[places[key]].type) for name, key in zip(names, overlaid.key, strict=True)]
    keys = rows(columns, pa.Table.from_batches([overlaid.keys]).rename_columns(names))
    equal = [col(f"c{places[key]}") == col(name) for name, key in zip(names, overlaid.key, strict=True)]
    return keys, reduce(operator.and_, equal)


def numbered(frame: DataFrame, width: int) -> DataFrame:
    """Columns may share a name, or have one with dots: between Spark and the member they are numbers."""
    return frame.toDF(*[f"c{index}" for index in range(width)])


def _empty(session: SparkSession, table: TableFiles) -> DataFrame:
    if not table.columns:
        raise SiteError(
            f"table {table.table}: no file under {table.root}, so its columns are not known",
            suggestion=f"put a file there, or name the columns in members.{table.member}.tables.{table.table}.columns",
        )
    fields = struct_of(table.columns).fields
    return session.range(0).select(*[lit(None).cast(field.dataType).alias(field.name) for field in fields])
