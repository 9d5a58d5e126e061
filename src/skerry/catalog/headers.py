"""Whether the CSV files of one table have the same header: every kind of Spark reads their values by position."""

from __future__ import annotations

import csv
import os
from functools import lru_cache
from typing import NamedTuple

from skerry.catalog.listing import Listing, ListingError
from skerry.model.config import TableConfig
from skerry.model.errors import SiteError
from skerry.model.limits import Limits

_HEADER_BYTES = 64 * 1024  # a longer one is not looked at
# With these Spark's header is not simply the first line, or it is not written in UTF-8.
_OPTIONS = frozenset(("charset", "comment", "encoding", "escape", "linesep", "multiline"))
_PACKED = (".bz2", ".deflate", ".gz", ".lz4", ".snappy", ".xz", ".zst")


class _Header(NamedTuple):
    file: str
    names: tuple[str, ...]


def check_headers(table: TableConfig, listing: Listing) -> None:
    """ListingError when the headers differ; what has no plain header is not looked at."""
    if how := header_difference(table, listing):
        raise ListingError(table, how)


def header_difference(table: TableConfig, listing: Listing) -> str:
    """How they differ, with both files and what to do; "" when they do not."""
    options = {key.lower(): value for key, value in table.options.items()}
    if table.format != "csv" or options.get("header", "").lower() != "true" or options.keys() & _OPTIONS:
        return ""
    separator, quote = options.get("sep", options.get("delimiter", ",")), options.get("quote", '"')
    if len(separator) != 1 or len(quote) != 1:
        return ""
    first: _Header | None = None
    for file, stamp in zip(listing.files, listing.stamps, strict=True):
        names = () if file.endswith(_PACKED) else _names(file, *stamp, separator, quote)
        if not names:
            continue
        header = _Header(os.path.relpath(file, listing.root), names)
        first = first or header
        if names != first.names and (how := _how(table, first, header)):
            return how
    return ""


def _how(table: TableConfig, first: _Header, other: _Header) -> str:
    if sorted(first.names) == sorted(other.names):
        return (
            f"the columns of {other.file} stand in another order than those of {first.file}, and CSV is read by "
            "position; write one of them anew"
        )
    if table.columns:  # these name positions, whatever headers say
        return ""
    for here, there in ((other, first), (first, other)):
        for name in here.names:
            if name not in there.names:
                return (
                    f"{name} is a column of {here.file} and not of {there.file}, and CSV is read by position; "
                    f"write one of them anew, or name the columns by position in {table.key}.columns"
                )
    return f"{first.file} and {other.file} have a column more than once, and not as often; write one of them anew"


@lru_cache(maxsize=Limits().footers)
def _names(file: str, size_bytes: int, mtime_ns: int, separator: str, quote: str) -> tuple[str, ...]:
    """() when there is no header that can be read here."""
    try:
        with open(file, "rb") as opened:
            start = opened.read(min(size_bytes, _HEADER_BYTES))
    except FileNotFoundError:
        raise SiteError(f"file {os.path.basename(file)} is gone") from None
    except OSError as error:
        raise SiteError(f"file {os.path.basename(file)} cannot be read: {error.strerror}") from None
    lines = [line for line in start.splitlines(keepends=True) if line.strip()]
    if not lines or (not lines[0].endswith((b"\n", b"\r")) and size_bytes > _HEADER_BYTES):
        return ()
    try:
        text = lines[0].decode("utf-8-sig").rstrip("\r\n")
        return tuple(next(csv.reader([text], delimiter=separator, quotechar=quote), ()))
    except (UnicodeDecodeError, csv.Error, TypeError, ValueError):
        return ()
