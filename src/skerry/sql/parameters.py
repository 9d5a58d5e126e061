"""Parameter markers: `?` becomes `:p0`, `:p1` …, `:name` stays; values never enter the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlglot import exp

from skerry.model.errors import SqlError
from skerry.model.nearest import did_you_mean
from skerry.sql.position import error_at
from skerry.sql.walk import find_all

RESERVED = "skerry_"


class Unbound(tuple[Any, ...]):
    """Instead of values: the statement is only prepared, and every marker is NULL meanwhile."""


def bind_parameters(tree: exp.Expr, values: Sequence[Any] | Mapping[str, Any] | None, text: str) -> dict[str, Any]:
    """The value of every marker in `tree`; markers and values must match one to one."""
    markers = sorted(find_all(tree, exp.Placeholder), key=lambda marker: int(marker.meta.get("start", 0)))
    named = [marker for marker in markers if marker.this]
    if named and len(named) != len(markers):
        raise error_at("use either ? or :name for parameters, not both", text, named[0])
    if isinstance(values, Unbound):
        starts = {marker.meta.get("start", id(marker)) for marker in markers}
        values = dict.fromkeys((marker.name for marker in named), None) if named else [None] * len(starts)
    if isinstance(values, Mapping):
        return _by_name(markers, values, text)
    if isinstance(values, str | bytes):
        raise SqlError("parameters are a list (for ?) or a mapping (for :name), not a string")
    return _by_place(markers, list(values or ()), text)


class Bound(NamedTuple):
    """Values of the same markers, `times` times: by marker one of each time, which is how columns are made of them."""

    times: int
    values: Mapping[str, Sequence[Any]]

    def each(self) -> Iterator[dict[str, Any]]:
        """One set of values after the other."""
        if not self.values:
            return iter([{} for _ in range(self.times)])
        return (dict(zip(self.values, values, strict=True)) for values in zip(*self.values.values(), strict=True))


def bind_again(bound: Mapping[str, Any], more: Sequence[Any] = ()) -> Bound:
    """The values that are bound, and others for the same markers: all of them sequences, or all mappings."""
    names = tuple(bound)
    if more and isinstance(more[0], Mapping):
        for number, values in enumerate(more, 2):
            if values.keys() != bound.keys():
                said = ", ".join(f":{name}" for name in names) or "(there are none)"
                raise SqlError(f"values number {number} have other names than the parameters {said}")
        more = [[values[name] for name in names] for values in more]
    elif any(len(values) != len(names) for values in more):
        number, count = next((at, len(each)) for at, each in enumerate(more, 2) if len(each) != len(names))
        raise SqlError(f"values number {number} are {count}, the statement has {len(names)} parameters")
    return Bound(1 + len(more), dict(zip(names, zip(bound.values(), *more, strict=True), strict=True)))


def _by_name(markers: list[exp.Placeholder], values: Mapping[str, Any], text: str) -> dict[str, Any]:
    for marker in markers:
        name = marker.name
        if not marker.this:
            raise error_at("this ? has no name, but the parameters were given by name", text, marker)
        if name.lower().startswith(RESERVED):
            raise error_at(f"parameter names that start with {RESERVED} are Skerry's own", text, marker)
        if name not in values:
            raise error_at(f"no value for parameter :{name}{did_you_mean(name, values)}", text, marker)
    used = {marker.name for marker in markers}
    unused = [name for name in values if name not in used]
    if unused:
        raise SqlError(f"the statement has no parameter :{unused[0]}{did_you_mean(str(unused[0]), used)}")
    return {marker.name: values[marker.name] for marker in markers}


def _by_place(markers: list[exp.Placeholder], values: list[Any], text: str) -> dict[str, Any]:
    for marker in markers:
        if marker.this:
            raise error_at(f"no value for parameter :{marker.name}; give the parameters by name", text, marker)
    # A part of MERGE stands in its query several times: what has one place in the text is one marker.
    places = [marker.meta.get("start", id(marker)) for marker in markers]
    index_of = {place: index for index, place in enumerate(dict.fromkeys(places))}
    if len(index_of) != len(values):
        wanted = f"{len(index_of)} {'parameter' if len(index_of) == 1 else 'parameters'} (?)"
        raise SqlError(f"the statement has {wanted}; values given: {len(values)}")
    for place, marker in zip(places, markers, strict=True):
        marker.set("this", f"p{index_of[place]}")
    return {f"p{index}": value for index, value in enumerate(values)}
