"""A plan, as `EXPLAIN FORMAT JSON` tells it, drawn on its topology: one self-contained SVG.

Rows flow from left to right: members stand in columns by the order in which their fragments read each other, the
initiator last; fragments are cards in their members.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping
from html import escape
from itertools import pairwise
from typing import Any

import msgspec

from skerry.model.amounts import counted, size_text

BOX, CARD_GAP, PAD, LINE, TITLE = 400, 10, 14, 17, 34
MARGIN, BETWEEN, ABOVE, ROW_GAP = 190, 290, 64, 48
HEADLINE = 22  # from line to line
_PORT = 11  # between the ends of two lines at one place
_LANE = 20  # between lines that pass above members
# Characters of a line: small text in a card, a card's head, a member's name beside its role.
_CHARS, _HEAD_CHARS, _NAME_CHARS = 58, 50, 28
_TITLE_PX = 10.5  # of a character, about as wide as they come
_REASON_LINES = 2
_STYLE = """
text { font-family: "DejaVu Sans", Helvetica, Arial, sans-serif; font-size: 12px; fill: #1d2733 }
.title { font-size: 16px; font-weight: bold } .head { font-weight: bold } .small { font-size: 10.5px; fill: #4a5a6a }
.fact { font-size: 10.5px; fill: #0b6b3a } .link { font-size: 10.5px; fill: #7a8794 }
.edge { font-weight: bold; fill: #0f4c8a }
.member { fill: #f4f7fa; stroke: #8fa1b3; stroke-width: 1.5 } .initiator { fill: #fff8e8; stroke: #c99a2e }
.card { fill: #ffffff; stroke: #c4d0db } .wire { fill: none; stroke: #b5c0ca; stroke-width: 1.5; stroke-dasharray: 5 4 }
.rows { fill: none; stroke: #1f6fc0; stroke-opacity: 0.85 } .plate { fill: #ffffff; fill-opacity: 0.9 }
"""


_Point = tuple[float, float]
_Curve = tuple[_Point, _Point, _Point, _Point]


class _Card(msgspec.Struct):
    """Lines of (class, text); `y` is where its box begins."""

    key: str
    lines: list[tuple[str, str]]
    y: float = 0.0
    ends: int = 0

    @property
    def height(self) -> float:
        return 2 * PAD + LINE * len(self.lines) - 8


class _Box(msgspec.Struct):
    name: str
    role: str
    is_initiator: bool
    cards: list[_Card]
    layer: int = 0
    x: float = 0.0
    y: float = 0.0
    ends: int = 0

    @property
    def height(self) -> float:
        return TITLE + PAD + sum(card.height + CARD_GAP for card in self.cards)

    def place(self, x: float, y: float) -> None:
        self.x, self.y = x, y
        at = y + TITLE
        for card in self.cards:
            card.y = at
            at += card.height + CARD_GAP

    def anchor(self, key: str) -> float:
        """The height of a card's middle, or a free place beside the title."""
        card = next((card for card in self.cards if card.key == key), None)
        if card is not None:
            card.ends += 1
            side = _PORT * (card.ends // 2) * (-1 if card.ends % 2 else 1)
            return card.y + card.height / 2 + max(8 - card.height / 2, min(side, card.height / 2 - 8))
        self.ends += 1
        return self.y + 8 + min((self.ends - 1) * _PORT, self.height - 16)


class _Labels:
    """Texts on lines; none covers another, or a box."""

    def __init__(self, boxes: Iterable[_Box]) -> None:
        self.parts: list[str] = []
        self._taken = [(box.x, box.y, box.x + BOX, box.y + box.height) for box in boxes]

    def add(self, curve: _Curve, kind: str, text: str) -> None:
        width = (7.4 if kind == "edge" else 6.3) * len(text) + 8
        for share in (0.36, 0.5, 0.64, 0.25, 0.75, 0.43, 0.57, 0.15, 0.85):
            x, y = _at(curve, share)
            x = max(x, width / 2 + 4)
            if self._is_free(x, y, width):
                break
        while not self._is_free(x, y, width):
            y += 18
        self._taken.append((x - width / 2, y - 9, x + width / 2, y + 8))
        plate = f'<rect class="plate" x="{x - width / 2:.1f}" y="{y - 9:.1f}" width="{width:.1f}" height="16" rx="4"/>'
        self.parts += [plate, _text(x, y + 4, kind, text, "middle")]

    def _is_free(self, x: float, y: float, width: float) -> bool:
        left, top, right, bottom = x - width / 2, y - 9, x + width / 2, y + 8
        return all(right < a or left > c or bottom < b or top > d for a, b, c, d in self._taken)


def _at(curve: _Curve, share: float) -> _Point:
    """The point of a Bézier curve."""
    weights = ((1 - share) ** 3, 3 * (1 - share) ** 2 * share, 3 * (1 - share) * share**2, share**3)
    x, y = (sum(weight * point[axis] for weight, point in zip(weights, curve, strict=True)) for axis in (0, 1))
    return x, y


def draw(plan: Mapping[str, Any]) -> str:
    """The SVG of a plan."""
    boxes = _boxes(plan)
    hops = [hop for fragment, to in _sent(plan) for hop in _hops(fragment, to)]
    hops += [(sender, receiver) for sender, receiver, _ in _links(plan)]
    headline = textwrap.wrap(_headline(plan), int((_width(boxes.values()) - 48) / _TITLE_PX), break_on_hyphens=False)
    above = ABOVE + HEADLINE * (len(headline) - 1) + _LANE * sum(_is_far(boxes, *hop) for hop in hops)
    width, height = _place(list(boxes.values()), above)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">',
        f"<style>{_STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="11" markerHeight="11" '
        'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 L10 5 L0 10 z" fill="#1f6fc0"/></marker></defs>',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        *(_text(24, 36 + HEADLINE * number, "title", line) for number, line in enumerate(headline)),
    ]
    labels = _Labels(boxes.values())
    lanes = _Lanes(boxes)
    lines = [piece for fragment, to in _sent(plan) for piece in _rows(fragment, to, plan, lanes, labels)]
    wires = [piece for link in _links(plan) for piece in _wire(link, lanes, labels)]
    return "\n".join([*parts, *wires, *lines, *(_box(box) for box in boxes.values()), *labels.parts, "</svg>"]) + "\n"


def _headline(plan: Mapping[str, Any]) -> str:
    ran = f": {counted(plan['rows'])} in {plan['seconds']:.2f} s" if "seconds" in plan else ""
    refused = " (refused)" if "refused" in plan else ""
    return f"plan {str(plan['plan_id'])[:12]}, result at {plan['initiator']}{ran}{refused}"


# --- boxes -----------------------------------------------------------------------------------------
def _boxes(plan: Mapping[str, Any]) -> dict[str, _Box]:
    """Members that the plan or a link of it needs; those of the configuration if there are few."""
    initiator = plan["initiator"]
    roles = {each["name"]: each["role"] for each in plan.get("members", ())}
    used = [initiator, *(fragment["member"] for fragment in plan["fragments"])]
    used += [hop for _, to in _sent(plan) for hop in to.get("route", ())]
    names = list(roles) if len(roles) <= 8 else [name for name in roles if name in used]
    names = list(dict.fromkeys([*names, *used]))
    boxes = {name: _Box(name, roles.get(name, "data"), name == initiator, []) for name in names}
    for fragment in plan["fragments"]:
        boxes[fragment["member"]].cards.append(_card(fragment))
    boxes[initiator].cards.append(_Card("finish", _head(f"result: {_finish(plan['finish'])}")))
    _find_layers(plan, boxes)
    return boxes


def _finish(finish: Mapping[str, Any]) -> str:
    steps = ", ".join(finish["operators"])
    if "edge" in finish:
        return f"{steps} edge {finish['edge']}"
    return f"{steps} of fragment {', '.join(map(str, finish['fragments']))}"


def _find_layers(plan: Mapping[str, Any], boxes: Mapping[str, _Box]) -> None:
    """A member stands right of those whose rows its fragments read; relays beside the sender; the initiator last."""
    feeding: dict[tuple[int, str], list[Mapping[str, Any]]] = {}
    for fragment, to in _sent(plan):
        feeding.setdefault((fragment["output"]["edge"], to["member"]), []).append(fragment)

    def depth(fragment: Mapping[str, Any]) -> int:
        edges = [(leaf["edge"], fragment["member"]) for leaf in fragment["reads"] if "edge" in leaf]
        senders = [each for edge in edges for each in feeding.get(edge, ())]
        return 1 + max(map(depth, senders)) if senders else 0

    for fragment in plan["fragments"]:
        box = boxes[fragment["member"]]
        box.layer = max(box.layer, depth(fragment))
    for fragment, to in _sent(plan):
        for relay in to.get("route", ())[1:-1]:
            if not boxes[relay].cards:
                boxes[relay].layer = boxes[fragment["member"]].layer
    others = [box.layer for box in boxes.values() if not box.is_initiator]
    initiator = boxes[plan["initiator"]]
    initiator.layer = max(initiator.layer, max(others) + 1) if others else 0


def _head(text: str) -> list[tuple[str, str]]:
    return [("head", line) for line in textwrap.wrap(text, _HEAD_CHARS, subsequent_indent="  ")]


def _card(fragment: Mapping[str, Any]) -> _Card:
    kinds = [next(kind for kind in ("table", "edge", "values") if kind in each) for each in fragment["reads"]]
    reads = [f"{kind} {each[kind]}" for kind, each in zip(kinds, fragment["reads"], strict=True)]
    lines = _head(f"fragment {fragment['id']}: {', '.join(fragment['operators'])}")
    lines.append(("small", textwrap.shorten(f"reads {', '.join(reads) or 'nothing'}", _CHARS, placeholder=" …")))
    if "reason" in fragment:
        wrapped = textwrap.wrap(f"because {fragment['reason']}", _CHARS)
        if len(wrapped) > _REASON_LINES:
            wrapped = [*wrapped[: _REASON_LINES - 1], wrapped[_REASON_LINES - 1][: _CHARS - 2] + " …"]
        lines += [("small", line) for line in wrapped]
    if "estimated" in fragment:
        estimated = fragment["estimated"]
        lines.append(("small", f"about {counted(estimated['rows'])}, {size_text(estimated['bytes'])}"))
    if "actual" in fragment:
        ran = fragment["actual"]
        jobs = f", Spark jobs {', '.join(map(str, ran['spark_jobs']))}" if ran["spark_jobs"] else ""
        fact = f"in fact {counted(ran['rows'])}, {size_text(ran['bytes'])}, {ran['seconds']:.2f} s{jobs}"
        lines.append(("fact", textwrap.shorten(fact, _CHARS + 6, placeholder=" …")))
    return _Card(f"fragment {fragment['id']}", lines)


def _width(boxes: Iterable[_Box]) -> float:
    return MARGIN + len({box.layer for box in boxes}) * (BOX + BETWEEN) - BETWEEN + 30


def _place(boxes: list[_Box], above: float) -> tuple[float, float]:
    """Columns, each in the middle of the height that the tallest takes; above them is room for titles and lines."""
    columns = [[box for box in boxes if box.layer == layer] for layer in sorted({box.layer for box in boxes})]
    heights = [sum(box.height for box in column) + ROW_GAP * (len(column) - 1) for column in columns]
    tallest = max(heights)
    for number, (column, height) in enumerate(zip(columns, heights, strict=True)):
        y = above + (tallest - height) / 2
        for box in column:
            box.place(MARGIN + number * (BOX + BETWEEN), y)
            y += box.height + ROW_GAP
    return _width(boxes), above + tallest + 40


def _box(box: _Box) -> str:
    kind = "member initiator" if box.is_initiator else "member"
    found = [
        f'<rect class="{kind}" x="{box.x}" y="{box.y:.1f}" width="{BOX}" height="{box.height:.1f}" rx="10"/>',
        _text(box.x + PAD, box.y + 22, "title", _cut(box.name, _NAME_CHARS)),
        _text(box.x + BOX - PAD, box.y + 22, "small", "initiator" if box.is_initiator else box.role, "end"),
    ]
    for card in box.cards:
        x = box.x + PAD
        found.append(
            f'<rect class="card" x="{x}" y="{card.y:.1f}" width="{BOX - 2 * PAD}" height="{card.height:.1f}" rx="6"/>'
        )
        found += [
            _text(x + 10, card.y + PAD + 5 + LINE * number, kind, text)
            for number, (kind, text) in enumerate(card.lines)
        ]
    return "\n".join(found)


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: chars - 1] + "…"


def _text(x: float, y: float, kind: str, text: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


# --- lines between them ------------------------------------------------------------------------------
def _links(plan: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Links with what is known of them; two directions that are alike are one line."""
    speeds = {(each["from"], each["to"]): _speed(each) for each in plan.get("links", ())}
    found = []
    for (sender, receiver), speed in speeds.items():
        back = speeds.get((receiver, sender))
        if back == speed and sender > receiver:
            continue
        found.append((sender, receiver, speed if back == speed else f"{speed} →"))
    return found


def _speed(link: Mapping[str, Any]) -> str:
    price = f", ${link['usd_per_gb']:g}/GB" if "usd_per_gb" in link else ""
    return f"{link['mbit']:g} Mbit/s" + (f", {link['ms']:g} ms" if link["ms"] else "") + price


def _sent(plan: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Every fragment with each of its receivers."""
    return [(fragment, to) for fragment in plan["fragments"] for to in fragment["output"]["to"]]


def _hops(fragment: Mapping[str, Any], to: Mapping[str, Any]) -> list[tuple[str, str]]:
    """From member to member, the way that the rows of a fragment take to one of its receivers."""
    if to["member"] == fragment["member"]:
        return []
    return list(pairwise(to.get("route") or [fragment["member"], to["member"]]))


def _is_far(boxes: Mapping[str, _Box], sender: str, receiver: str) -> bool:
    """Do other columns lie between the two?"""
    if sender not in boxes or receiver not in boxes:
        return False
    low, high = sorted((boxes[sender].layer, boxes[receiver].layer))
    return any(low < box.layer < high for box in boxes.values())


class _Lanes:
    """Lines between boxes. Those that would be hidden by a box between theirs pass above it, each in its own lane."""

    def __init__(self, boxes: Mapping[str, _Box]) -> None:
        self.boxes = boxes
        self._y = min(box.y for box in boxes.values())

    def line(self, sender: str, start: str, receiver: str, end: str) -> tuple[str, _Curve]:
        """The path, from card to card, and the piece of it that has room for a text."""
        a, b = self.boxes[sender], self.boxes[receiver]
        curve = _curve(a, a.anchor(start), b, b.anchor(end))
        if not _is_far(self.boxes, sender, receiver):
            return _path(curve), curve
        self._y -= _LANE
        (x1, y1), _, _, (x2, y2) = curve
        way = math.copysign(BETWEEN, x2 - x1)
        up, down = x1 + 0.8 * way, x2 - 0.8 * way
        rise = (x1, y1), (x1 + 0.5 * way, y1), (x1 + 0.3 * way, self._y), (up, self._y)
        fall = (down, self._y), (x2 - 0.3 * way, self._y), (x2 - 0.5 * way, y2), (x2, y2)
        thirds = [(up + (down - up) * share, self._y) for share in (0.0, 1 / 3, 2 / 3, 1.0)]
        path = f"{_path(rise)} L{down:.1f} {self._y:.1f} C{_path(fall).partition('C')[2]}"
        return path, (thirds[0], thirds[1], thirds[2], thirds[3])


def _curve(a: _Box, a_y: float, b: _Box, b_y: float) -> _Curve:
    """From the side of one box to the side of another; within a column around its left."""
    if a.x == b.x:
        x = a.x - min(MARGIN - 30.0, 60 + 0.2 * abs(a_y - b_y)) * 1.3
        return (a.x, a_y), (x, a_y), (x, b_y), (b.x, b_y)
    x1, x2 = (a.x + BOX, b.x) if a.x < b.x else (a.x, b.x + BOX)
    middle = (x1 + x2) / 2
    return (x1, a_y), (middle, a_y), (middle, b_y), (x2, b_y)


def _path(curve: _Curve) -> str:
    start, *others = (f"{x:.1f} {y:.1f}" for x, y in curve)
    return f"M{start} C{' '.join(others)}"


def _wire(link: tuple[str, str, str], lanes: _Lanes, labels: _Labels) -> list[str]:
    sender, receiver, speed = link
    if sender not in lanes.boxes or receiver not in lanes.boxes:
        return []
    path, curve = lanes.line(sender, "", receiver, "")
    labels.add(curve, "link", speed)
    return [f'<path class="wire" d="{path}"/>']


def _rows(
    fragment: Mapping[str, Any], to: Mapping[str, Any], plan: Mapping[str, Any], lanes: _Lanes, labels: _Labels
) -> list[str]:
    """The edge of one fragment, hop by hop, to the card that reads it at one of its receivers."""
    output, found = fragment["output"], []
    hops = _hops(fragment, to)
    size = fragment.get("actual", fragment.get("estimated", {})).get("bytes")
    reader = next(
        (
            f"fragment {each['id']}"
            for each in plan["fragments"]
            if each["member"] == to["member"] and any(leaf.get("edge") == output["edge"] for leaf in each["reads"])
        ),
        "finish",
    )
    width = 2.0 if not size else min(9.0, 1.5 + math.log10(max(10.0, size)) * 0.9)
    codecs = to.get("codecs") or ["none"] * len(hops)
    for number, (here, there) in enumerate(hops):
        start = f"fragment {fragment['id']}" if number == 0 else ""
        end = reader if number == len(hops) - 1 else ""
        path, curve = lanes.line(here, start, there, end)
        found.append(f'<path class="rows" d="{path}" stroke-width="{width:.1f}" marker-end="url(#tip)"/>')
        about = "" if size is None else f": {'' if 'actual' in fragment else '~'}{size_text(size)}"
        codec = "" if codecs[number] == "none" else f", {codecs[number]}"
        labels.add(curve, "edge", f"edge {output['edge']}{about}{codec}")
    return found
