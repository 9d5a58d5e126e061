"""Tables as a statement names them, and the catalog that knows them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple, Protocol

import msgspec

from skerry.model.nearest import did_you_mean
from skerry.model.table import Column

DEFAULT_SCHEMA = "default"  # no member may be called so: the whole tables, with all their parts

_OLDER = re.compile(r"(.*) (VERSION|TIMESTAMP) AS OF (\d{1,19})", re.DOTALL | re.IGNORECASE)


class Moment(NamedTuple):
    """A number of a commit, or microseconds since 1970."""

    kind: Literal["version", "timestamp"]
    value: int


def older_name(table: str, at: Moment) -> str:
    """What an older version of a table is called by everybody: it is a table beside it, with columns of its own."""
    return f"{table} {at.kind.upper()} AS OF {at.value}"


def split_older(name: str) -> tuple[str, Moment | None]:
    """The table, and which version of it; None: as it is now."""
    found = _OLDER.fullmatch(name) if " " in name else None
    if found is None:
        return name, None
    return found[1], Moment("version" if found[2].lower() == "version" else "timestamp", int(found[3]))


def base_of(name: str) -> str:
    """The table whose version it is: who may read the one may read the other."""
    return split_older(name)[0]


def schema_of(name: str) -> str:
    """`sales` of `sales.orders`, in lower case; "" of a table without a schema. The table's own name may have dots."""
    schema, dot, _ = name.partition(".")
    return schema.lower() if dot else ""


class TableRef(msgspec.Struct, frozen=True):
    """A table as a statement may name it; `member` is None for the logical table with all its parts."""

    name: str
    member: str | None
    columns: tuple[Column, ...]
    is_own: bool = False

    def column(self, name: str) -> Column | None:
        """The column of that name, as Spark finds it: in any case."""
        wanted = name.lower()
        return next((column for column in self.columns if column.name.lower() == wanted), None)


class Catalog(Protocol):
    def lookup(self, parts: tuple[str, ...]) -> TableRef | None:
        """The table `parts` name (`("orders",)` or `("oslo", "orders")`); SiteError when its site is down."""

    def names(self) -> list[str]:
        """Every name that `lookup` would find, dotted."""


def unknown_table(parts: tuple[str, ...], known: Iterable[str]) -> str:
    """`unknown table bergen.orders; did you mean oslo.orders?`: the same table elsewhere before another one here."""
    name, known = ".".join(parts), list(known)
    elsewhere = [each for each in known if "." in each and each.rpartition(".")[2].lower() == parts[-1].lower()]
    if len(parts) > 1 and elsewhere:
        return f"unknown table {name}; did you mean {' or '.join(elsewhere[:3])}?"
    return f"unknown table {name}{did_you_mean(name, known)}"
