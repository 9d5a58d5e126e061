"""A query in FROM that is answered at one member."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cached_property

from sqlglot import exp

from skerry.model.table import Column
from skerry.sql.dialect import render
from skerry.sql.scope import Scope, Source
from skerry.sql.walk import find_all


@dataclasses.dataclass(frozen=True, eq=False)
class Block:
    """A query in FROM whose tables are all at `member`; `tables` has the table of each of its scans."""

    source: Source
    scope: Scope
    body: exp.Expr
    tables: Mapping[str, str]
    member: str
    columns: tuple[Column, ...]
    reason: str = "its tables are there"
    is_stable: bool = dataclasses.field(default=True, kw_only=True)
    is_set: bool = dataclasses.field(default=False, kw_only=True)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.tables)

    @cached_property
    def text(self) -> str:
        """The query with its tables' names, and the names of its columns: equal for blocks with equal answers."""
        body = self.body.copy()
        for node in find_all(body, exp.Table):
            if node.name in self.tables:
                node.set("this", exp.Identifier(this=self.tables[node.name], quoted=True))
        return f"{render(body)} at {self.member} as {', '.join(column.name for column in self.columns)}"

    @property
    def known_as(self) -> str:
        """Its text wherever it is answered, for sizes that were seen before."""
        return self.text.replace(f" at {self.member} as ", " as ")
