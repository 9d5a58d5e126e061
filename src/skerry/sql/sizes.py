"""What a statement makes more of than its text shows: relations that a WITH doubles, values of any size."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from sqlglot import exp

from skerry.model.limits import SQL_RELATIONS_MAX, VALUE_ITEMS_MAX
from skerry.sql.functions import call_name
from skerry.sql.position import error_at
from skerry.sql.walk import children_of, find_all

# Of a format's item, such as %1$-20.5s, all but its last letter; and the numbers in it, but for that of an argument.
_ITEM = re.compile(r"%[-#+ 0,(<\d.$]*")
_NUMBER = re.compile(r"\d+(?![\d$])")


def check_relations(tree: exp.Expr, text: str) -> None:
    """Engines put a query of a WITH wherever it is named: thirty that each name the one before twice are a billion."""
    count = _relations(tree, {}) if find_all(tree, exp.With) else 0
    if count > SQL_RELATIONS_MAX:
        raise error_at(
            f"queries of a WITH name each other so often that this is a query over {_shown(count)} relations; at most "
            f"{SQL_RELATIONS_MAX} are admitted",
            text,
            tree,
        )


def check_values(tree: exp.Expr, text: str) -> None:
    """Where the text itself says how large a value is; one that depends on rows is bounded by its engine's memory."""
    for call in find_all(tree, exp.Anonymous):
        name = call_name(call) or ""
        size = _SIZES[name](call.expressions) if name in _SIZES else 0
        if size > VALUE_ITEMS_MAX:
            raise error_at(
                f"{name} makes a value of {_shown(size)} characters or elements here; at most {VALUE_ITEMS_MAX} are "
                "admitted (rows come from the table function range)",
                text,
                call,
            )


def _relations(tree: exp.Expr, known: Mapping[str, int]) -> int:
    """Relations of a query, those of each name in `known` counted as often as it is named."""
    count, pending = 0, [(tree, known)]
    while pending:
        node, names = pending.pop()
        defined = node.args.get("with_")
        if defined is not None:
            names = dict(names)
            for each in defined.expressions:
                names[each.alias.lower()] = _relations(each.this, names)
        if isinstance(node, exp.Table):
            count += names.get(node.name.lower(), 1) if not node.db else 1
        pending += [(child, names) for child in children_of(node) if child is not defined]
    return count


def _whole(node: exp.Expr | None) -> int | None:
    """The number that is written there, if one is."""
    if isinstance(node, exp.Neg):
        inside = _whole(node.this)
        return None if inside is None else -inside
    if isinstance(node, exp.Literal) and not node.is_string:
        found = re.fullmatch(r"(\d+)[LlSsYy]?", node.name)
        return int(found[1]) if found and len(found[1]) < 20 else None
    return None


def _at(place: int) -> Callable[[list[exp.Expr]], int]:
    def size(arguments: list[exp.Expr]) -> int:
        return (_whole(arguments[place]) if len(arguments) > place else None) or 0

    return size


def _sequence(arguments: list[exp.Expr]) -> int:
    first, last, step = [*map(_whole, arguments), 1][:3] if len(arguments) in (2, 3) else (None, None, None)
    if first is None or last is None or not step:
        return 0
    return abs(last - first) // abs(step)


def _widths(arguments: list[exp.Expr]) -> int:
    """`%2147483647d` of a format is as wide."""
    first = arguments[0] if arguments else None
    if not isinstance(first, exp.Literal) or not first.is_string:
        return 0
    numbers = [number for item in _ITEM.findall(first.name) for number in _NUMBER.findall(item)]
    return max((int(number[:20]) for number in numbers), default=0)


_SIZES: dict[str, Callable[[list[exp.Expr]], int]] = {
    **dict.fromkeys(("repeat", "lpad", "rpad", "array_repeat"), _at(1)),
    "space": _at(0),
    "sequence": _sequence,
    **dict.fromkeys(("format_string", "printf"), _widths),
}


def _shown(count: int) -> str:
    return str(count) if count < 10**12 else "a trillion or more"
