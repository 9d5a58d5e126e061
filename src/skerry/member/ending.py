"""What a query ends in, as its initiator awaits it: whose columns are the result's, and when a count is whole. Pure."""

from __future__ import annotations

from typing import assert_never

from skerry.model.errors import SiteError
from skerry.model.fragment import Count, Plan, Rows, Written
from skerry.model.results import Schema


class Awaited:
    """Rows have columns, which all who send them must agree on; a count is the sum of what fragments report."""

    def __init__(self, plan: Plan) -> None:
        self._members = {fragment.id: fragment.member for fragment in plan.fragments}
        self._schemas: dict[int, Schema | None] = {}  # of the fragments whose rows are the result
        self._counts: dict[int, int | None] = {}  # of the fragments whose rows are counted
        match plan.ends_in:
            case Rows(edge):
                self._schemas = {each.id: None for each in plan.fragments if each.output.edge == edge}
            case Count(fragments) | Written(_, fragments):
                assert fragments, "what is counted is reported by fragments"
                self._counts = dict.fromkeys(fragments)
            case never:
                assert_never(never)

    def started(self, fragment: int, schema: Schema) -> Schema | None:
        """The result's columns, once all who send it have told theirs. SiteError: they do not agree.

        Batches pass on as bytes, so another type would be read as something else. Sites with different Sparks may
        give an expression different types.
        """
        if self._schemas.get(fragment, schema) is not None:
            return None
        for other, known in self._schemas.items():
            if known is not None and (how := _difference(known, schema)):
                there, here = self._members[other], self._members[fragment]
                raise SiteError(
                    f"sites {there} and {here} give the result different columns: {how}",
                    member=here,
                    suggestion="cast it to the type you want",
                )
        self._schemas[fragment] = schema
        return schema if all(self._schemas.values()) else None

    def done(self, fragment: int, rows: int) -> int | None:
        """The whole count, when this was the last fragment that it waited for."""
        if self._counts.get(fragment, rows) is not None:
            return None
        self._counts[fragment] = rows
        counts = [count for count in self._counts.values() if count is not None]
        return sum(counts) if len(counts) == len(self._counts) else None


def _difference(one: Schema, other: Schema) -> str:
    """How the types of two results differ, in words; "" when they agree."""
    if len(one.columns) != len(other.columns):
        return f"{len(one.columns)} and {len(other.columns)} of them"
    pairs = zip(one.columns, other.columns, strict=True)
    return next((f"{a.name} is {a.type} and {b.type}" for a, b in pairs if a.type != b.type), "")
