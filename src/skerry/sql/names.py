"""What the SQL layer knows of tables: the catalog it is given, and the nearest name when one is wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Protocol

import msgspec

from skerry.catalog.table import Column


class TableRef(msgspec.Struct, frozen=True):
    """A table as a statement may name it; `member` is None for the logical table with all its parts."""

    name: str
    member: str | None
    columns: tuple[Column, ...]

    def column(self, name: str) -> Column | None:
        """The column of that name, as Spark finds it: in any case."""
        wanted = name.lower()
        return next((column for column in self.columns if column.name.lower() == wanted), None)


class Catalog(Protocol):
    def lookup(self, parts: tuple[str, ...]) -> TableRef | None:
        """The table `parts` name (`("orders",)` or `("oslo", "orders")`); SiteError when its site is down."""

    def names(self) -> list[str]:
        """Every name that `lookup` would find, dotted."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like `name`, if any is like it at all."""
    by_lower = {candidate.lower(): candidate for candidate in sorted(known, reverse=True)}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean orders?`, or nothing."""
    found = nearest(name, known)
    return f"; did you mean {found}?" if found is not None else ""


def unknown_table(parts: tuple[str, ...], known: Iterable[str]) -> str:
    """`unknown table bergen.orders; did you mean oslo.orders?`: the same table elsewhere before another one here."""
    name, known = ".".join(parts), list(known)
    elsewhere = [each for each in known if "." in each and each.rpartition(".")[2].lower() == parts[-1].lower()]
    if len(parts) > 1 and elsewhere:
        return f"unknown table {name}; did you mean {' or '.join(elsewhere[:3])}?"
    return f"unknown table {name}{did_you_mean(name, known)}"
