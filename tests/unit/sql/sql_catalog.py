"""A catalog of a few tables, for tests: `FakeCatalog({"t": "a int, b string", "oslo.t": …})`."""

from __future__ import annotations

from skerry.model.names import TableRef
from skerry.model.table import Column


class FakeCatalog:
    def __init__(self, tables: dict[str, str]) -> None:
        self._tables = {tuple(name.lower().split(".")): _table(name, columns) for name, columns in tables.items()}

    def lookup(self, parts: tuple[str, ...]) -> TableRef | None:
        return self._tables.get(tuple(part.lower() for part in parts))

    def names(self) -> list[str]:
        return [".".join(parts) for parts in self._tables]


def _table(name: str, columns: str) -> TableRef:
    *member, table = name.split(".")
    made = tuple(Column(*column.strip().split(" ", 1)) for column in columns.split(", "))
    return TableRef(table, member[0] if member else None, made)
