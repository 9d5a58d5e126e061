"""Parameter markers: `?` becomes `:p0`, `:p1` …, `:name` stays; values never enter the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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


def bind_again(bound: Mapping[str, Any], values: Sequence[Any] | Mapping[str, Any], number: int) -> dict[str, Any]:
    """Other values for the same markers; `number`: which ones they are, as a person counts."""
    if isinstance(values, Mapping):
        if values.keys() != bound.keys():
            names = ", ".join(f":{name}" for name in bound)
            raise SqlError(f"values number {number} have other names than the parameters {names or '(there are none)'}")
        return dict(values)
    if len(values) != len(bound):
        raise SqlError(f"values number {number} are {len(values)}, the statement has {len(bound)} parameters")
    return dict(zip(bound, values, strict=True))


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
