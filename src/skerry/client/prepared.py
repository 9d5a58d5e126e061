"""Prepared statements: the parameters of a statement are known, and values are checked before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from skerry.client.arguments import Parameters
from skerry.client.dbcursor import Cursor
from skerry.client.edge import edge
from skerry.model.comparable import may_compare, said
from skerry.model.errors import SqlError
from skerry.model.results import Parameter


class CursorMaker(Protocol):
    """The connection that a statement was prepared for."""

    def cursor(self) -> Cursor: ...


class PreparedStatement:
    """`parameters` are the `?` in order, or each `:name` once, with the type that is expected where it is known."""

    def __init__(self, connection: CursorMaker, sql: str, parameters: Sequence[Parameter]) -> None:
        self.connection = connection
        self.sql = sql
        self.parameters = tuple(parameters)

    @edge
    def execute(self, parameters: Parameters | None = None, *, timeout_s: float | None = None) -> Cursor:
        """Run it with these values; the cursor is a new one."""
        self.check(parameters)
        return self.connection.cursor().execute(self.sql, parameters, timeout_s=timeout_s)

    @edge
    def check(self, parameters: Parameters | None) -> None:
        """Raise ProgrammingError for a wrong count, name or type."""
        values: Parameters = () if parameters is None else parameters
        wanted = self.parameters
        if isinstance(values, Mapping):
            names = {each.name for each in wanted}
            if names != set(values) or "" in names:
                shown = ", ".join(f":{each.name}" if each.name else "?" for each in wanted) or "none"
                raise SqlError(f"the statement has these parameters: {shown}; values came for {sorted(values)}")
            pairs: list[tuple[Parameter, str, Any]] = [(each, f":{each.name}", values[each.name]) for each in wanted]
        else:
            if len(values) != len(wanted):
                count = f"{len(wanted)} {'parameter' if len(wanted) == 1 else 'parameters'} (?)"
                raise SqlError(f"the statement has {count}; values given: {len(values)}")
            pairs = [
                (each, str(index + 1), value) for index, (each, value) in enumerate(zip(wanted, values, strict=True))
            ]
        for each, shown, value in pairs:
            if each.type and not may_compare(each.type, value):
                raise SqlError(f"parameter {shown}: {said(value)} has a wrong type: {each.type} is expected")
