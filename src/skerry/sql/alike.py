"""Expressions that are the same but for how names are written, found without comparing each with each."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp


def alike(one: exp.Expr, other: exp.Expr) -> bool:
    """The same expression; names in any case, quoted or not."""
    return type(one) is type(other) and form(one) == form(other)


def form(node: exp.Expr) -> tuple[object, ...]:
    """Equal for expressions that are alike, and for no others: its nodes from the first to the last."""
    found: list[object] = []
    ahead: list[object] = [node]
    while ahead:
        match ahead.pop():
            case exp.Identifier() as name:
                found += (exp.Identifier, name.name.lower())
            case exp.Literal() as literal:
                found += (exp.Literal, literal.this, literal.is_string)
            case exp.Expr() as inner:
                said = {key: value for key, value in inner.args.items() if _is_said(value)}
                # Keys as one item, so that no value is taken for a key.
                found += (type(inner), tuple(sorted(said)))
                ahead += (said[key] for key in sorted(said, reverse=True))
            case list() as several:
                found += (list, len(several))
                ahead += reversed(several)
            case str() as word:
                found += (str, word.lower())
            case value:
                found += (type(value), value)
    return tuple(found)


def _is_said(value: object) -> bool:
    return not (value is None or value is False or (isinstance(value, list) and not value))


class Once:
    """Expressions in the order in which they came, those that are alike once."""

    def __init__(self, values: Iterable[exp.Expr] = ()) -> None:
        self.values: list[exp.Expr] = []
        self._places: dict[tuple[object, ...], int] = {}
        for value in values:
            self.add(value)

    def place(self, value: exp.Expr) -> int | None:
        return self._places.get(form(value))

    def add(self, value: exp.Expr) -> int:
        """Its place, or that of the one that is alike."""
        place = self._places.setdefault(form(value), len(self.values))
        if place == len(self.values):
            self.values.append(value)
        return place
