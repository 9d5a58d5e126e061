"""The files of a table as of now: Spark's own idea of what is data, and a version that changes with them."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable, Iterator

import msgspec
import xxhash

from skerry.config.rules import fixed_prefix, has_glob
from skerry.model.config import TableConfig
from skerry.model.errors import SiteError
from skerry.model.limits import Limits
from skerry.model.sources import Storage

VERSION_MASK = 2**63 - 1
FILES_MAX = Limits().table_files


class Listing(msgspec.Struct, frozen=True):
    """`files` are absolute and sorted; `stamps` holds (size in bytes, mtime in ns) of each.

    `root` is the directory under which directories named key=value are partitions. `storage`: of files that are not on
    this machine's disk; they are URLs then.
    """

    files: tuple[str, ...]
    size_bytes: int
    version: int
    root: str
    stamps: tuple[tuple[int, int], ...]
    storage: Storage | None = None


class ListingError(SiteError):
    """`reason` is the message without its "site …: table …:", for those who add that themselves."""

    def __init__(self, table: TableConfig, reason: str) -> None:
        self.reason = reason
        super().__init__(f"site {table.member}: table {table.name}: {reason}", member=table.member)


def list_table(data_root: str | os.PathLike[str], table: TableConfig, files_max: int = FILES_MAX) -> Listing:
    """The table's files; ListingError when there is none, or when one leads outside the data root."""
    root = real_path(os.fspath(data_root))
    walk = _Walk(root, table, files_max)
    base, starts = _starts(root, table)
    for start in starts:
        walk.start(start, base)
    if not walk.found:
        raise ListingError(table, f"no file under {table.shown_path or table.path} (check {table.key}.path)")
    files = tuple(sorted(walk.found))
    stamps = tuple(walk.found[file] for file in files)
    return Listing(files, sum(size for size, _ in stamps), version_of(base, files, stamps), base, stamps)


def real_path(path: str) -> str:
    """As `os.path.realpath`, by three calls of the kernel: that one asks for each directory on the way, in Python."""
    try:
        place = os.open(path, os.O_PATH)
    except (AttributeError, OSError):  # not on Linux; or it is not there
        return os.path.realpath(path)
    try:
        return os.readlink(f"/proc/self/fd/{place}")
    except OSError:  # no /proc here
        return os.path.realpath(path)
    finally:
        os.close(place)


def _starts(root: str, table: TableConfig) -> tuple[str, list[str]]:
    """The base directory of the table, and the files and directories its path names."""
    path = os.path.normpath(os.path.join(root, table.path))
    # A name with a bracket in it may simply be there.
    if not has_glob(table.path) or os.path.lexists(path):
        return (path if os.path.isdir(path) else os.path.dirname(path)), [path]
    base = os.path.normpath(os.path.join(root, fixed_prefix(table.path)))
    try:
        return base, sorted(set(glob.glob(path, recursive=True)))
    except OSError as error:
        raise ListingError(table, f"cannot be listed: {error.strerror} (check {table.key}.path)") from None


def version_of(base: str, files: tuple[str, ...], stamps: tuple[tuple[int, int], ...]) -> int:
    """Over the path inside the table, size and mtime of every file; the same files elsewhere give the same."""
    digest = xxhash.xxh3_64()
    for file, (size, mtime_ns) in zip(files, stamps, strict=True):
        # A path has no NUL, so no two listings give the same bytes.
        digest.update(os.fsencode(os.path.relpath(file, base)) + b"\0%d %d\n" % (size, mtime_ns))
    return digest.intdigest() & VERSION_MASK


def partitions(root: str, file: str) -> tuple[str, ...]:
    """The directories between `root` and the file that name a column's value: `country=no`."""
    steps = os.path.dirname(file.removeprefix(root)).split("/")
    return tuple(step for step in steps if "=" in step)


def unread_by_sail(root: str, files: Iterable[str]) -> str:
    """Why Sail cannot read these files, and what to do; "" if it can."""
    for file in files:
        for step in partitions(root, file):
            return f"Sail makes no columns of directories such as {step}; use Apache Spark at this member"
    return ""


def is_hidden(name: str) -> bool:
    """What Spark leaves out: _SUCCESS, .part-0.crc, _delta_log; a partition may begin with an underscore."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


def check_inside(root: str, path: str, table: TableConfig) -> None:
    """ListingError for a path whose real place is outside `root`, a real path."""
    real = real_path(path)
    if real != root and not real.startswith(root.rstrip("/") + "/"):
        shown = os.path.relpath(path, root)
        raise ListingError(table, f"{shown} leads outside data_root (check {table.key}.path)")


class _Walk:
    """One listing in progress. What vanishes while it runs is not there."""

    def __init__(self, root: str, table: TableConfig, files_max: int) -> None:
        self.root = root
        self.table = table
        self.files_max = files_max
        self.found: dict[str, tuple[int, int]] = {}
        self.linked: set[str] = set()  # real directories reached by a symlink: each is walked once, so loops end

    def start(self, path: str, base: str) -> None:
        inside = os.path.relpath(path, base)
        if inside != "." and any(is_hidden(step) for step in inside.split("/")):
            return
        # The configuration was checked when it was read; a symlink may have been put there since.
        self.check_inside(path)
        try:
            status = os.stat(path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise self.unreadable(path, error) from None
        if stat.S_ISDIR(status.st_mode):
            self.directory(path)
        elif stat.S_ISREG(status.st_mode):
            self.add(path, status)

    def directory(self, path: str) -> None:
        pending = [path]
        while pending:
            pending.extend(self.children(pending.pop()))

    def children(self, path: str) -> Iterator[str]:
        """Adds the files of one directory, gives its directories."""
        try:
            with os.scandir(path) as scan:
                entries = [entry for entry in scan if not is_hidden(entry.name)]
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise self.unreadable(path, error) from None
        for entry in entries:
            try:
                if entry.is_symlink():
                    self.check_inside(entry.path)
                    if entry.is_dir():
                        real = real_path(entry.path)
                        if real in self.linked:
                            continue
                        self.linked.add(real)
                if entry.is_dir():
                    yield entry.path
                elif entry.is_file():
                    self.add(entry.path, entry.stat())
            except FileNotFoundError:
                continue
            except OSError as error:
                raise self.unreadable(entry.path, error) from None

    def add(self, path: str, status: os.stat_result) -> None:
        if len(self.found) >= self.files_max:
            shown = self.table.shown_path or self.table.path
            raise ListingError(self.table, f"more than {self.files_max} files under {shown} (see limits.table_files)")
        self.found[path] = status.st_size, status.st_mtime_ns

    def check_inside(self, path: str) -> None:
        check_inside(self.root, path, self.table)

    def unreadable(self, path: str, error: OSError) -> ListingError:
        reason = (error.strerror or str(error)).lower()
        return ListingError(self.table, f"{self.shown(path)} cannot be read: {reason} (check {self.table.key}.path)")

    def shown(self, path: str) -> str:
        return os.path.relpath(path, self.root)
