"""YAML nodes with their places: a walk that notes every mistake instead of stopping at the first."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

import yaml

from skerry.model.errors import ConfigError
from skerry.model.nearest import did_you_mean

T = TypeVar("T")
Place = tuple[int, int]  # line and column, from 1

TAG = "tag:yaml.org,2002:"
PLAIN_TAGS = frozenset(
    TAG + kind for kind in ("str", "int", "float", "bool", "null", "timestamp", "value", "map", "seq")
)
WHOLE = re.compile(r"[-+]?[0-9][0-9_]{0,24}")
NUMBER = re.compile(r"[-+]?([0-9][0-9_]{0,24}(\.[0-9]{0,24})?|\.[0-9]{1,24})([eE][-+]?[0-9]{1,3})?")
WHOLE_MAX = 2**63 - 1
SHOWN_CHARS = 80


class Refused(Exception):
    """A rule's verdict on one value; becomes a mistake at the value's place."""


def shown(text: str) -> str:
    """Text from the file as a message may carry it: one line, printable, short."""
    short = text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in short)


class Notes:
    """The mistakes of one file, and the place of everything that was visited."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.places: dict[str, Place] = {}
        self._mistakes: dict[tuple[Place, str], None] = {}

    def at(self, place: Place, path: str, text: str) -> None:
        self._mistakes[place, f"{shown_path(path)}: {text}" if path else text] = None

    def note(self, path: str, text: str) -> None:
        """A mistake at `path`, or at the nearest parent that has a place."""
        parent = path
        while parent and parent not in self.places:
            parent = parent.rpartition(".")[0]
        self.at(self.places.get(parent, (1, 1)), path, text)

    def messages(self) -> list[str]:
        return [f"{self.name}:{line}:{column}: {text}" for (line, column), text in sorted(self._mistakes)]

    def raise_if_any(self) -> None:
        if self._mistakes:
            raise ConfigError("\n".join(self.messages()))


def shown_path(path: str) -> str:
    return ".".join(shown(step) for step in path.split("."))


def _place(mark: yaml.Mark) -> Place:
    return mark.line + 1, mark.column + 1


def compose(text: str, notes: Notes) -> Item:
    """The root of the only document in `text`; ConfigError when it is not YAML or empty."""
    node: yaml.Node | None = None
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = shown(error.problem or error.context or "unreadable")
        notes.at(_place(mark) if mark else (1, 1), "", f"not YAML: {problem}")
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = before.count("\n") + 1, error.position - before.rfind("\n")
        notes.at(place, "", f"not YAML: {shown(error.reason)}")
    # PyYAML lets these escape: a \U escape beyond Unicode, a directive it cannot split, a deep nest.
    except (yaml.YAMLError, ValueError, OverflowError, AttributeError, TypeError, IndexError) as error:
        notes.at((1, 1), "", f"not YAML: {shown(str(error))}")
    except RecursionError:
        notes.at((1, 1), "", "not YAML: nested too deeply")
    else:
        if node is None:
            notes.at((1, 1), "", "the file is empty")
    notes.raise_if_any()
    assert node is not None
    return Item(node, "", _place(node.start_mark), notes)


class Item:
    """One node, its dotted path and the place of its key."""

    def __init__(self, node: yaml.Node, path: str, key_place: Place, notes: Notes) -> None:
        self.node = node
        self.path = path
        self.key_place = key_place
        self.place = _place(node.start_mark)
        self.notes = notes
        notes.places[path] = self.place

    def wrong(self, text: str) -> None:
        self.notes.at(self.place, self.path, text)

    def wrong_key(self, text: str) -> None:
        self.notes.at(self.key_place, self.path, text)

    def kind(self) -> str:
        """What stands here, in the words of a message."""
        if self.node.tag not in PLAIN_TAGS:
            return f"the tag {shown(self.node.tag)}"
        if isinstance(self.node, yaml.MappingNode):
            return "a mapping"
        if isinstance(self.node, yaml.SequenceNode):
            return "a list"
        assert isinstance(self.node, yaml.ScalarNode)
        kind = "str" if self.node.style in ("'", '"') else self.node.tag.removeprefix(TAG)
        return {"null": "nothing", "int": "a number", "float": "a number", "bool": "true or false"}.get(kind, "text")

    def entries(self, *, same_in_any_case: bool = False) -> list[tuple[str, Item]]:
        """The pairs of a mapping, each key once; later ones of the same name are mistakes."""
        if not isinstance(self.node, yaml.MappingNode) or self.node.tag not in PLAIN_TAGS:
            self.wrong(f"expected a mapping, not {self.kind()}")
            return []
        found: dict[str, tuple[str, Item]] = {}
        for key_node, value_node in self.node.value:
            place = _place(key_node.start_mark)
            if not isinstance(key_node, yaml.ScalarNode):
                self.notes.at(place, self.path, "a key must be plain text")
                continue
            key = key_node.value
            path = f"{self.path}.{key}" if self.path else key
            folded = key.lower() if same_in_any_case else key
            if key_node.tag == TAG + "merge":
                self.notes.at(place, path, "merge keys are not supported")
            elif folded in found:
                first, item = found[folded]
                same = "" if first == key else f" (the same name as {shown(first)})"
                self.notes.at(place, path, f"duplicate key{same}; first at line {item.key_place[0]}")
            else:
                found[folded] = key, Item(value_node, path, place, self.notes)
        return list(found.values())

    def fields(self, known: Sequence[str], required: Collection[str] = ()) -> Fields:
        """The pairs of a mapping whose keys are known; what is unknown or missing is a mistake."""
        found = dict(self.entries())
        for key in [key for key in found if key not in known]:
            found.pop(key).wrong_key(f"unknown key{did_you_mean(key, known)}")
        fields = Fields(found)
        self.require(fields, required)
        return fields

    def require(self, found: Fields, keys: Collection[str]) -> None:
        """Each of these keys that a mapping lacks is a mistake."""
        is_mapping = isinstance(self.node, yaml.MappingNode) and self.node.tag in PLAIN_TAGS
        for key in keys:
            if is_mapping and key not in found:
                self.notes.at(self.key_place, f"{self.path}.{key}" if self.path else key, "missing")

    def elements(self) -> list[Item]:
        if not isinstance(self.node, yaml.SequenceNode) or self.node.tag not in PLAIN_TAGS:
            self.wrong(f"expected a list, not {self.kind()}")
            return []
        place = _place
        nodes = enumerate(self.node.value)
        return [Item(node, f"{self.path}[{i}]", place(node.start_mark), self.notes) for i, node in nodes]

    def scalar(self, also: str = "") -> str | None:
        """The text of a scalar as written, so that a site may be called `no`; None for anything else."""
        if not isinstance(self.node, yaml.ScalarNode) or self.node.tag not in PLAIN_TAGS or self.kind() == "nothing":
            self.wrong(f"expected text, not {self.kind()}")
            return None
        if not all(c.isprintable() or c in also for c in self.node.value):
            self.wrong("has characters that cannot be printed")
            return None
        return str(self.node.value)

    def text(self, rule: Callable[[str], T], instead: T) -> T:
        """What `rule` makes of the text here; `instead` after a mistake."""
        text = self.scalar()
        if text is None:
            return instead
        try:
            return rule(text)
        except Refused as refused:
            self.wrong(str(refused))
            return instead

    def setting(self) -> str:
        """A value for Spark, which wants true and false spelled so."""
        text = self.scalar(also="\t") or ""  # a separator
        if self.kind() == "true or false":
            return "true" if text.lower() in ("true", "yes", "on") else "false"
        return text

    def whole(self, least: int, most: int = WHOLE_MAX) -> int:
        value = self._plain(WHOLE, "a whole number")
        if value is None:
            return least
        return self._within(int(value), least, most)

    def number(self, least: float, *, above: bool = False) -> float:
        value = self._plain(NUMBER, "a number")
        if value is None:
            return least
        number = float(value)
        if number < least or (above and number == least) or number == float("inf"):
            self.wrong(f"must be {'above' if above else 'at least'} {least:g}, not {shown(value)}")
        return number

    def flag(self) -> bool:
        if self.kind() != "true or false":
            self.wrong(f"expected true or false, not {self.kind()}")
            return False
        return self.setting() == "true"

    def _plain(self, pattern: re.Pattern[str], wanted: str) -> str | None:
        is_plain = isinstance(self.node, yaml.ScalarNode) and self.node.style is None and self.node.tag in PLAIN_TAGS
        if is_plain and pattern.fullmatch(self.node.value):
            return str(self.node.value).replace("_", "")
        seen = shown(self.node.value) if is_plain and self.node.value else self.kind()
        self.wrong(f"expected {wanted}, not {seen}")
        return None

    def _within(self, value: int, least: int, most: int) -> int:
        if value < least:
            self.wrong(f"must be at least {least}, not {value}")
        elif value > most:
            self.wrong(f"must be at most {most}, not {value}")
        return value


class Fields:
    """The known keys of one mapping; reading a key that is absent gives the default."""

    def __init__(self, items: dict[str, Item]) -> None:
        self._items = items

    def __contains__(self, key: str) -> bool:
        return key in self._items

    def get(self, key: str) -> Item | None:
        return self._items.get(key)

    def text(self, key: str, rule: Callable[[str], T], default: T) -> T:
        item = self.get(key)
        return item.text(rule, default) if item else default

    def entries(self, key: str, *, same_in_any_case: bool = False) -> list[tuple[str, Item]]:
        item = self.get(key)
        return item.entries(same_in_any_case=same_in_any_case) if item else []
