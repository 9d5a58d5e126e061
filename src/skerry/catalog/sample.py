"""A few rows from many places of Parquet files: how wide values are, and how many there are."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skerry.catalog.stores import opened
from skerry.model.errors import SiteError
from skerry.model.sources import Storage

SPOTS_MAX = 16
# From so many distinct values in each place on, values that are in one place only are taken to be in order.
_MANY = 32


class Spot(msgspec.Struct, frozen=True):
    """One row group."""

    file: str
    group: int
    rows: int


def spots_of(spots: Sequence[Spot], rows_max: int) -> Iterator[tuple[Spot, int]]:
    """Places to read from, far apart, and how many rows at each; all of a table that is no larger than that."""
    spots = [spot for spot in spots if spot.rows]
    if sum(spot.rows for spot in spots) <= rows_max:
        yield from ((spot, spot.rows) for spot in spots)
        return
    chosen = spots if len(spots) <= SPOTS_MAX else [spots[i * len(spots) // SPOTS_MAX] for i in range(SPOTS_MAX)]
    for spot in chosen:
        yield spot, max(1, rows_max // len(chosen))


class _Values(msgspec.Struct):
    """One column of the sample: its arrays, and the distinct values of each place."""

    rows: int = 0
    size_bytes: float = 0.0
    arrays: list[pa.Array] = []
    uniques: list[pa.Array] = []


class Seen:
    """The rows of a sample by column (lower-case names). Arrow does the counting: it does not hold Python up."""

    def __init__(self, names: Sequence[str], storage: Storage | None = None) -> None:
        self._storage = storage
        self._names = frozenset(names)
        self.rows = 0
        self._spots = 0
        self._values: dict[str, _Values] = {}

    def read(self, places: Iterable[tuple[Spot, int]]) -> None:
        """The first rows of each spot, at most so many; SiteError when a file cannot be read.

        Spots of a file follow each other: it is opened once, as a footer with many row groups takes long to parse.
        """
        for path, in_file in groupby(places, lambda place: place[0].file):
            try:
                with pq.ParquetFile(opened(path, self._storage)) as file:
                    wanted = [name for name in file.schema_arrow.names if name.lower() in self._names]
                    for spot, rows_max in in_file:
                        batches = file.iter_batches(rows_max, [spot.group], wanted, use_threads=False)
                        self._add_spot(next(iter(batches), None))
            except (OSError, pa.ArrowException) as error:
                raise SiteError(f"file {os.path.basename(path)}: no sample: {str(error).splitlines()[0]}") from None

    def _add_spot(self, batch: pa.RecordBatch | None) -> None:
        if batch is None:
            return
        self.rows += batch.num_rows
        self._spots += 1
        for field, array in zip(batch.schema, batch.columns, strict=True):
            self._add(self._values.setdefault(field.name.lower(), _Values()), array)

    def _add(self, values: _Values, array: pa.Array) -> None:
        kind = array.type
        if pa.types.is_string_view(kind):
            array = array.cast(pa.string())
        values.rows += len(array)
        values.size_bytes += _array_bytes(array)
        if not pa.types.is_nested(kind) and not pa.types.is_dictionary(kind):
            known = array.drop_null()
            values.arrays.append(known)
            values.uniques.append(pc.unique(known))

    def width_bytes(self, name: str) -> float | None:
        """The average width of a value in Arrow."""
        values = self._values.get(name)
        return round(values.size_bytes / values.rows, 2) if values is not None and values.rows else None

    def distinct(self, name: str, rows: float) -> float | None:
        """Distinct values among `rows` rows, going by the sample; None for types that are not counted."""
        values = self._values.get(name)
        if values is None or not values.arrays or len({array.type for array in values.arrays}) > 1:
            return None
        counts = _counts(values.arrays)
        found, sampled = float(len(counts)), float(sum(len(array) for array in values.arrays))
        if self.rows >= rows or not found:
            return found
        here_only = _ones(_counts(values.uniques)) / found
        if self._spots > 1 and here_only > 0.9 and found < sampled * 0.9:
            # Each place has values of its own, and has them more than once: they are in order.
            grows = rows / self.rows
            return found * (grows if found / self._spots >= _MANY else math.sqrt(grows))
        once = _ones(counts)
        # Haas and Stokes' Duj1: what was seen once only tells how many were not seen.
        return min(rows, sampled * found / max(1.0, sampled - once + once * sampled / rows))


def _counts(arrays: list[pa.Array]) -> pa.Array:
    return pc.value_counts(pa.chunked_array(arrays)).field("counts")


def _ones(counts: pa.Array) -> int:
    return int(pc.sum(pc.equal(counts, 1)).as_py() or 0)


def _array_bytes(array: pa.Array) -> float:
    """As Arrow sends it: fixed widths as they are, strings with their offsets."""
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind):
        return float(pc.sum(pc.binary_length(array)).as_py() or 0) + 4.0 * len(array)
    if pa.types.is_decimal(kind):
        return 16.0 * len(array)
    if pa.types.is_nested(kind):
        return float(array.nbytes)
    return len(array) * max(1.0, kind.bit_width / 8) if pa.types.is_primitive(kind) else float(array.nbytes)
