"""The rules file: who may read what, by roles. From text to Rules, with the place of every mistake. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from skerry.access.expressions import check_columns, columns_in, may_be, read_expression
from skerry.config.yaml_nodes import Fields, Item, Notes, Refused, compose, shown
from skerry.model.config import Config
from skerry.model.errors import SqlError
from skerry.model.nearest import did_you_mean
from skerry.model.rights import CHANGES, Action, Pattern, Rights, Rule, Sight
from skerry.model.table import Column

TOP = ("roles", "users", "everybody")
RULE = ("on", "own", "select", *CHANGES, "where", "masks")
QUERIES = ("see", "end")
_ANY = "*"

KnownColumns = Mapping[tuple[str, str], tuple[Column, ...]]


class Role(msgspec.Struct, frozen=True):
    """`rules` are about tables, one a pattern. The rest: what the role may do with other users' queries."""

    rules: tuple[Rule, ...] = ()
    may_see_queries: bool = False
    may_end_queries: bool = False


class Rules(msgspec.Struct, frozen=True):
    """`users`: the roles of each. `everybody`: those of all whose names are known, whether they stand here or not."""

    roles: dict[str, Role]
    users: dict[str, tuple[str, ...]] = {}
    everybody: tuple[str, ...] = ()

    def rights_of(self, user: str, roles: tuple[str, ...] = ()) -> Rights:
        """`roles`: that the user's proof told of, beside those of the file. Who has no name has no rights."""
        names = dict.fromkeys((*self.users.get(user, ()), *roles, *self.everybody)) if user else {}
        # In the order of the file: which of two masks is taken does not depend on who asks.
        held = [role for name, role in self.roles.items() if name in names]
        return Rights(
            user,
            roles,
            tuple(role.rules for role in held),
            any(role.may_see_queries for role in held),
            any(role.may_end_queries for role in held),
        )

    def names(self, table: str, columns: frozenset[str]) -> str:
        """A role with a rule about this table of our own, at any member, that names one of the columns; "" if none
        does. `columns` are in lower case."""
        for name, role in self.roles.items():
            for rule in role.rules:
                if rule.pattern.table in ("", table.lower()) and not columns.isdisjoint(_named(rule)):
                    return name
        return ""


def _named(rule: Rule) -> frozenset[str]:
    """The columns that a rule names, in lower case."""
    if rule.sight is None:
        return frozenset()
    texts = filter(None, (rule.sight.where, *rule.sight.masks.values()))
    return frozenset((rule.sight.columns or frozenset()) | rule.sight.masks.keys()).union(*map(columns_in, texts))


def parse_rules(text: str, name: str, config: Config, columns: KnownColumns | None = None) -> Rules:
    """ConfigError has every mistake with its place. Tables and members that a rule names must be the cluster's.

    `columns`: by member and table, where somebody has looked at files. Else only those of the configuration are known.
    """
    notes = Notes(name)
    rules = _Reader(config, columns or {}).read(compose(text, notes))
    notes.raise_if_any()
    return rules


class _Reader:
    def __init__(self, config: Config, columns: KnownColumns) -> None:
        self._members = {name.lower(): name for name in config.members}
        self._tables = {name.lower(): name for name in config.table_names()}
        self._schemas = {
            (member.name.lower(), name.lower()) for member in config.members.values() for name in member.schemas
        }
        # By member and table, both in lower case; () where only the files tell.
        self._columns = {
            (member.name.lower(), table.name.lower()): columns.get((member.name, table.name), table.columns)
            for member in config.members.values()
            for table in member.tables.values()
        }

    def read(self, root: Item) -> Rules:
        top = root.fields(TOP, required=("roles",))
        roles = {role: self._role(item) for role, item in top.entries("roles")}
        users = {user: _roles_of(item, roles) for user, item in top.entries("users")}
        everybody = top.get("everybody")
        return Rules(roles, users, _roles_of(everybody, roles) if everybody else ())

    def _role(self, item: Item) -> Role:
        rules: dict[Pattern, Rule] = {}
        queries: set[str] = set()
        for each in item.elements():
            if "queries" in dict(each.entries()):
                queries.add(each.fields(("queries",)).text("queries", _one_of(QUERIES), ""))
                continue
            fields = each.fields(RULE, required=("on",))
            own = fields.get("own")
            pattern = fields.text("on", self._own_pattern if own is not None and own.flag() else self._pattern, None)
            if pattern is None:
                continue
            if pattern in rules:
                each.wrong("the role has a rule about these tables already; write one")
            rules[pattern] = Rule(pattern, self._sight(each, fields, pattern), _actions(fields))
        # Whoever may end a query has to find it.
        return Role(tuple(rules.values()), bool(queries), "end" in queries)

    # --- tables ------------------------------------------------------------------------------------
    def _pattern(self, text: str) -> Pattern:
        if (pattern := self._in_schema(text.lower())) is not None:
            return pattern
        member, dot, table = text.lower().rpartition(".")
        if dot and member not in self._members:
            raise _refused(f"no member {shown(text[: len(member)])}", member, self._members.values())
        if table != _ANY:
            here = {each: name for each, name in self._tables.items() if not dot or (member, each) in self._columns}
            if table not in here:
                raise _refused(f"no table {shown(text)}", table, here.values())
        return Pattern(member, "" if table == _ANY else table)

    def _in_schema(self, text: str) -> Pattern | None:
        """`sales.orders`, `oslo.sales.*`: which tables there are, only the catalog knows."""
        first, _, rest = text.partition(".")
        member, name = (first, rest) if first in self._members else ("", text)
        schema, dot, table = name.partition(".")
        if not dot or not table or not any(each[1] == schema and member in ("", each[0]) for each in self._schemas):
            return None
        return Pattern(member, schema=schema) if table == _ANY else Pattern(member, f"{schema}.{table}")

    def _own_pattern(self, text: str) -> Pattern:
        """Of a table of our own, which may be made later: a name that is mistyped is not found out here."""
        member, dot, table = text.lower().rpartition(".")
        if dot and member not in self._members:
            raise _refused(f"no member {shown(text[: len(member)])}", member, self._members.values())
        if table == _ANY or table in self._tables:
            raise Refused(f"{shown(text)} is not one table of our own: leave out own")
        return Pattern(member, table)

    def _sight(self, item: Item, fields: Fields, pattern: Pattern) -> Sight | None:
        select = fields.get("select")
        columns: frozenset[str] | None = None
        is_shown = False
        if select is not None and select.kind() == "a list":
            names = select.elements()
            if not names:
                select.wrong("is empty; name the columns, or write true")
            columns = frozenset(each.text(self._column(pattern), "").lower() for each in names)
            is_shown = True
        elif select is not None:
            is_shown = select.flag()
        if not is_shown:
            for key in ("where", "masks"):
                if (about := fields.get(key)) is not None:
                    about.wrong_key("says how to show rows, and select does not show them")
            return None
        where = fields.get("where")
        masks = {
            name.lower(): self._mask(each, name, pattern)
            for name, each in fields.entries("masks", same_in_any_case=True)
            if self._masks(each, name, columns, pattern)
        }
        return Sight(columns, self._expression(where, pattern) if where is not None else "", masks)

    def _masks(self, item: Item, name: str, columns: frozenset[str] | None, pattern: Pattern) -> bool:
        try:
            self._column(pattern)(name)
            if columns is not None and name.lower() not in columns:
                raise _refused("select does not show this column", name, ())
        except Refused as refused:
            item.wrong_key(str(refused))
            return False
        return True

    def _mask(self, item: Item, name: str, pattern: Pattern) -> str:
        text = self._expression(item, pattern)
        for columns in self._known(pattern):
            kinds = [column.type for column in columns if column.name.lower() == name.lower()]
            if text and kinds and not may_be(text, kinds[0]):
                item.wrong(f"cannot be cast to {kinds[0]}, the type of {shown(name)}")
                break
        return text

    def _expression(self, item: Item, pattern: Pattern) -> str:
        text = item.scalar(also="\n\t")
        if text is None:
            return ""
        try:
            read_expression(text)
            for columns in self._known(pattern):
                check_columns(text, [column.name for column in columns])
        except SqlError as error:
            place = f" ({error.place})" if error.place else ""
            item.wrong(error.message.partition("\n")[0] + place)
            return ""
        return text

    def _column(self, pattern: Pattern) -> Callable[[str], str]:
        def rule(name: str) -> str:
            for columns in self._known(pattern):
                names = {column.name.lower(): column.name for column in columns}
                if name.lower() not in names:
                    raise _refused(f"no column {shown(name)}", name, names.values())
            return name

        return rule

    def _known(self, pattern: Pattern) -> list[tuple[Column, ...]]:
        """The columns of one table's parts, where the configuration says them; a rule about many says what holds."""
        if not pattern.table:
            return []
        return [columns for place, columns in self._columns.items() if columns and pattern.matches(*place)]


def _actions(fields: Fields) -> frozenset[Action]:
    """What may be changed. No statement changes rows yet; a rule that says so is kept for those that will."""
    return frozenset(action for action in CHANGES if (item := fields.get(action)) is not None and item.flag())


def _roles_of(item: Item, roles: dict[str, Role]) -> tuple[str, ...]:
    def known(name: str) -> str:
        if name not in roles:
            raise _refused(f"no role {shown(name)}", name, roles)
        return name

    return tuple(name for each in item.elements() if (name := each.text(known, "")))


def _one_of(words: tuple[str, ...]) -> Callable[[str], str]:
    def rule(text: str) -> str:
        if text not in words:
            raise _refused(f"expected {' or '.join(words)}, not {shown(text)}", text, words)
        return text

    return rule


def _refused(text: str, name: str, known: Iterable[str]) -> Refused:
    return Refused(text + did_you_mean(name, known))
