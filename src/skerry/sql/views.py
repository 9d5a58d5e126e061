"""Views of the configuration: a mention of one becomes its query, in brackets, before names are bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from sqlglot import exp
from sqlglot.tokens import Token

from skerry.model.config import Config
from skerry.model.errors import ConfigError, SkerryError, SqlError
from skerry.model.limits import VIEW_MENTIONS
from skerry.model.names import DEFAULT_SCHEMA, Catalog
from skerry.sql.scope import tables_of
from skerry.sql.walk import find_all, nodes_of

# What a mention of a table may have beside its name and alias.
_KEPT = ("joins", "laterals", "pivots", "sample")

# Reads a view's text, without a look at the tables: its tree and tokens. SqlError if it is none that is admitted.
Reader = Callable[[str], tuple[exp.Expr, list[Token]]]


class View(NamedTuple):
    """`schema`: whose tables its plain names mean, "" for those of the cluster. `place`: in skerry.yaml."""

    name: str
    sql: str
    schema: str
    place: str


class Views(NamedTuple):
    """`named`: by the names that they are called by, dotted: `late`, `oslo.late`. `members`: all in lower case, too.

    `is_told`: whether whoever asks may know their texts, and so what they read.
    """

    named: Mapping[str, View] = MappingProxyType({})
    members: frozenset[str] = frozenset()
    is_told: bool = True


NO_VIEWS = Views()


def shown_name(view: View) -> str:
    return f"{view.schema}.{view.name}" if view.schema else view.name


def known_as(views: Sequence[View], default_schema: str = "") -> dict[str, View]:
    """As somebody calls them whose default schema that is. Of a member's own ones all parts are the plain name's."""
    found: dict[str, View] = {}
    parts: dict[str, list[View]] = {}
    for view in views:
        if view.schema:
            found[f"{view.schema}.{view.name}".lower()] = view
            parts.setdefault(view.name.lower(), []).append(view)
    for name, each in parts.items():
        selects = [exp.select("*").from_(exp.table_(view.name, db=view.schema)) for view in each]
        whole: exp.Query = selects[0]
        for select in selects[1:]:
            whole = whole.union(select, distinct=False)
        found[name] = View(each[0].name, whole.sql("spark"), "", each[0].place)
    found |= {view.name.lower(): view for view in views if not view.schema}
    found |= {f"{DEFAULT_SCHEMA}.{name}": view for name, view in list(found.items()) if "." not in name}
    within = f"{default_schema.lower()}."
    own = {
        name.removeprefix(within): view for name, view in found.items() if default_schema and name.startswith(within)
    }
    return found | own


class Expanded:
    """One statement's views: `used` are those that it reads, by the names that it has for them, in their order."""

    def __init__(
        self, views: Views, catalog: Catalog, read: Reader, check: Callable[[exp.Expr, list[Token], View], None]
    ) -> None:
        self.used: dict[str, View] = {}
        self._views = views
        self._catalog = catalog
        self._read = read
        self._check = check
        self._mentions = 0

    def expand(self, tree: exp.Expr, around: tuple[str, ...] = ()) -> exp.Expr:
        """The tree is changed. SqlError for a view that is wrong, or that reads itself."""
        for node, ctes in tables_of(tree) if self._views.named else ():
            name = ".".join(part.name for part in node.parts).lower()
            view = self._views.named.get(name) if name not in ctes else None
            if view is None:
                continue
            self._mentions += 1
            if self._mentions > VIEW_MENTIONS:
                raise SqlError(f"the statement mentions more than {VIEW_MENTIONS} views, one inside the other")
            self._replace(node, name, view, around)
        return tree

    def _replace(self, node: exp.Table, name: str, view: View, around: tuple[str, ...]) -> None:
        shown = shown_name(view)
        if shown in around:
            raise SqlError(f"view {shown} reads itself: {' → '.join((*around[around.index(shown) :], shown))}")
        try:
            inside, tokens = self._read(view.sql)
            self._qualify(inside, view)
            inside = self.expand(inside, (*around, shown))
            self._check(inside.copy(), tokens, view)
        except SkerryError as error:
            if isinstance(error, SqlError) and not error.message.startswith("view "):
                if not self._views.is_told:
                    raise SqlError(f"view {shown} is not to be read with your rights, or is wrong") from None
                raise SqlError(f"view {shown}: {error.message}", suggestion=error.suggestion) from None
            raise
        self.used[name] = view
        for each in nodes_of(inside):  # places are those of another text
            each.meta.pop("start", None)
            each.meta.pop("end", None)
        alias = node.args.get("alias") or exp.TableAlias(this=exp.Identifier(this=node.name, quoted=True))
        subquery = exp.Subquery(this=inside, alias=alias)
        for key in _KEPT:
            if node.args.get(key):
                subquery.set(key, node.args[key])
        node.replace(subquery)

    def _qualify(self, tree: exp.Expr, view: View) -> None:
        """Its names mean the same whoever asks, and whatever WITH names stand around it."""
        for node, ctes in tables_of(tree):
            parts = [part.name for part in node.parts]
            if len(parts) == 1 and parts[0].lower() in ctes:
                continue
            schema = DEFAULT_SCHEMA
            if len(parts) == 1 and view.schema and self._is_at(view.schema, parts[0]):
                schema = view.schema
            elif len(parts) > 1 and parts[0].lower() in self._views.members:
                continue
            if len(parts) == 1:
                node.set("db", exp.Identifier(this=schema, quoted=False))
            elif len(parts) == 2 and parts[0].lower() != DEFAULT_SCHEMA:
                node.set("catalog", exp.Identifier(this=DEFAULT_SCHEMA, quoted=False))

    def _is_at(self, schema: str, table: str) -> bool:
        return f"{schema}.{table}".lower() in self._views.named or self._catalog.lookup((schema, table)) is not None


def mistakes(views: Sequence[View], read: Reader) -> list[tuple[str, str]]:
    """(place, what is wrong) of those that no statement could use, as far as one can tell without tables."""
    found: list[tuple[str, str]] = []
    reads: dict[str, set[str]] = {}
    for view in views:
        known = known_as(views, view.schema)
        shown = shown_name(view)
        try:
            tree, _ = read(view.sql)
        except SkerryError as error:
            found.append((view.place, error.message))
            continue
        if next(iter(find_all(tree, exp.Placeholder)), None) is not None:
            found.append((view.place, "has a marker for a value, and nobody gives a view values"))
        names = {
            ".".join(part.name for part in node.parts).lower()
            for node, ctes in tables_of(tree)
            if node.name.lower() not in ctes
        }
        reads[shown] = {shown_name(each) for name in names if (each := known.get(name))}
    for view in views:
        shown = shown_name(view)
        if shown in _reached(shown, reads):
            found.append((view.place, f"view {shown} reads itself"))
    return found


def _reached(start: str, reads: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    pending = [*reads.get(start, ())]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += reads.get(name, ())
    return found


def check_views(views: Sequence[View], read: Reader) -> None:
    """ConfigError with every mistake."""
    if found := mistakes(views, read):
        raise ConfigError("\n".join(f"{place}: {text}" for place, text in found))


def views_of(config: Config) -> tuple[View, ...]:
    """All of a configuration."""
    found = [*config.views.values(), *(view for member in config.members.values() for view in member.views.values())]
    return tuple(
        View(
            each.name,
            each.sql,
            each.member,
            f"members.{each.member}.views.{each.name}" if each.member else f"views.{each.name}",
        )
        for each in found
    )
