"""Whether the CSV files of one table have the same header: every kind of Spark reads their values by position."""

from __future__ import annotations

import csv
import gzip
import os
import zlib
from collections.abc import Mapping
from contextlib import nullcontext
from functools import lru_cache
from typing import NamedTuple

from skerry.catalog.listing import Listing, ListingError
from skerry.catalog.reads import Reads
from skerry.catalog.stores import opened
from skerry.model.config import TableConfig
from skerry.model.errors import SiteError
from skerry.model.sources import Storage

_HEADER_BYTES = 64 * 1024  # a longer one is not looked at
_SHAPES = 1000  # files of one table mostly have the same header, and then they share it
_UTF_8 = ("utf-8", "utf8")
_PACKED = (".bz2", ".deflate", ".lz4", ".snappy", ".xz", ".zst")
# Characters as Spark lets its options write them.
_ESCAPED = {"\\t": "\t", "\\\\": "\\", '\\"': '"', "\\'": "'"}


class _Header(NamedTuple):
    file: str
    names: tuple[str, ...]


class _Form(NamedTuple):
    """How lines are written."""

    separator: str
    quote: str
    escape: str
    comment: str
    has_header: bool


def separator_of(options: Mapping[str, str]) -> str:
    """The text between two values; Spark takes `\\t` for a tab."""
    lower = {key.lower(): value for key, value in options.items()}
    text = lower.get("sep", lower.get("delimiter", ","))
    return _ESCAPED.get(text, text)


def check_headers(table: TableConfig, listing: Listing, is_sail: bool = False) -> None:
    """ListingError when the headers differ; what has no plain header is not looked at."""
    if how := header_difference(table, listing, is_sail):
        raise ListingError(table, how)


def header_difference(table: TableConfig, listing: Listing, is_sail: bool = False) -> str:
    """How they differ, with both files and what to do; "" when they do not."""
    options = {key.lower(): value for key, value in table.options.items()}
    form = _form(options)
    if table.format != "csv" or form is None or not (form.has_header or is_sail):
        return ""
    first: _Header | None = None
    if is_sail and table.columns:
        first = _Header(f"{table.key}.columns", tuple(column.name for column in table.columns))
    named: _Header | None = None
    for file, stamp in zip(listing.files, listing.stamps, strict=True):
        names = () if file.endswith(_PACKED) else HEADERS.of(file, stamp, form, listing.storage)
        if not names:
            continue
        header = _Header(os.path.relpath(file, listing.root), names)
        first, named = first or header, named or header
        if form.has_header and names != named.names and (how := _how(table, named, header)):
            return how
        if is_sail and len(names) != len(first.names):
            return (
                f"{first.file} has {_columns(first)} and {header.file} has {_columns(header)}, which Sail does not "
                "read as one table; write one of them anew, or use Apache Spark at this member"
            )
    return ""


def _form(options: Mapping[str, str]) -> _Form | None:
    """None when lines are written in a way that is not read here."""
    if "linesep" in options or options.get("encoding", options.get("charset", "utf-8")).lower() not in _UTF_8:
        return None
    quote, escape = options.get("quote", '"'), options.get("escape", "\\")
    has_header = options.get("header", "").lower() == "true"
    return _Form(separator_of(options), _ESCAPED.get(quote, quote), escape, options.get("comment", ""), has_header)


def _columns(header: _Header) -> str:
    return f"{len(header.names)} column{'' if len(header.names) == 1 else 's'}"


def _how(table: TableConfig, first: _Header, other: _Header) -> str:
    if sorted(first.names) == sorted(other.names):
        return (
            f"the columns of {other.file} stand in another order than those of {first.file}, and CSV is read by "
            "position; write one of them anew"
        )
    if table.columns:  # these name positions, whatever headers say
        return ""
    # A file that lacks its header begins with values, which no log may hold: places are named, not texts.
    differing = (place for place, (one, two) in enumerate(zip(first.names, other.names, strict=False), 1) if one != two)
    place = next(differing, None)
    what = (
        f"{first.file} has {_columns(first)} and {other.file} has {_columns(other)}"
        if place is None
        else f"column {place} of {other.file} has another name than column {place} of {first.file}"
    )
    return (
        f"{what}, and CSV is read by position; check that both begin with a header and write one of them anew, or name "
        f"the columns by position in {table.key}.columns"
    )


def _names(file: str, size_bytes: int, mtime_ns: int, form: _Form, storage: Storage | None) -> tuple[str, ...]:
    """() when there is no header that can be read here."""
    try:
        with (
            open(file, "rb") if storage is None else opened(file, storage) as bare,
            gzip.open(bare) if file.endswith(".gz") else nullcontext(bare) as plain,
        ):
            start = plain.read(_HEADER_BYTES)
    except FileNotFoundError:
        raise SiteError(f"file {os.path.basename(file)} is gone") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        return ()  # Spark says what is wrong with it
    except OSError as error:
        raise SiteError(f"file {os.path.basename(file)} cannot be read: {error.strerror}") from None
    comment = form.comment.encode()
    lines = [
        line for line in start.splitlines(keepends=True) if line.strip() and not (comment and line.startswith(comment))
    ]
    if not lines or (not lines[0].endswith((b"\n", b"\r")) and len(start) == _HEADER_BYTES):
        return ()
    try:
        names = _values(lines[0].decode("utf-8-sig").rstrip("\r\n"), form)
    except (UnicodeDecodeError, csv.Error, TypeError, ValueError):
        return ()
    return _shared(names if form.has_header else ("",) * len(names))  # values are counted, not kept


@lru_cache(maxsize=_SHAPES)
def _shared(names: tuple[str, ...]) -> tuple[str, ...]:
    return names


HEADERS = Reads(_names)  # all members of this process share them


def _values(line: str, form: _Form) -> tuple[str, ...]:
    """() when it may go on in the next line, or has quotes that Spark's and Python's readers may take differently."""
    if not form.quote or form.quote not in line:
        return tuple(line.split(form.separator))
    if line.count(form.quote) % 2 or (form.escape != form.quote and form.escape and form.escape in line):
        return ()
    return tuple(next(csv.reader([line], delimiter=form.separator, quotechar=form.quote), ()))
