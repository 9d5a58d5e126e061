"""WITH queries in the places of their names (Spark does the same), each where that changes no answer.

Mentions that turn out alike are then answered once, and others may be reduced each in its own way. A query that may
give other rows when it is answered again (`is_stable`) is moved if it is named once, and else stays what it is: one
computation with a name. So does one whose name another WITH gives too, or that reads such a name: in another place
the name could mean the other.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from sqlglot import exp

from skerry.plan.rules.blocks import is_stable
from skerry.sql.statement import Query, Scan
from skerry.sql.walk import find_all

# More copies than that would cost more than they save.
_NODES_MAX = 5_000
# Each is looked for in the whole statement: of more than so many none moves.
_CTES_MAX = 200


def without_ctes(query: Query, partials: Collection[str] = ()) -> Query:
    """The same query when none of them may move. What reads `partials` is not copied: it would read them twice."""
    if not 1 <= len(find_all(query.tree, exp.CTE)) <= _CTES_MAX:
        return query
    tree = query.tree.copy()
    names = Counter(cte.alias.lower() for cte in find_all(tree, exp.CTE))
    scans = {scan.node_name: scan for scan in query.tables}
    copies = _Copies(scans, {node.name.lower() for node in find_all(query.tree, exp.Identifier)})
    moved = _Moved(tree, copies, {name for name, count in names.items() if count > 1}, frozenset(partials))
    for cte in list(_in_order(tree)):
        moved.decide(cte)
    moved.put(tree)
    left = {node.name for node in find_all(tree, exp.Table)}
    tables = tuple(scan for name, scan in copies.scans.items() if name in left)
    return dataclasses.replace(query, tree=tree, tables=tables)


def is_outside(node: exp.Expr) -> bool:
    """Does the query stand in FROM, in WITH or in a set operation only, in no expression and in nothing LATERAL?"""
    while node.parent is not None:
        parent = node.parent
        match parent:
            case exp.Select():
                if not isinstance(node, exp.From | exp.Join | exp.With):
                    return False
            case exp.Join():
                if node.arg_key != "this":
                    return False
            case exp.From() | exp.Subquery() | exp.SetOperation() | exp.CTE() | exp.With():
                pass
            case _:
                return False
        node = parent
    return True


def _in_order(tree: exp.Expr) -> Iterator[exp.CTE]:
    """Every WITH query after those that it may name and those that stand in it."""
    stack: list[tuple[exp.Expr, bool]] = [(tree, False)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            assert isinstance(node, exp.CTE)
            yield node
            continue
        if isinstance(node, exp.CTE):
            stack.append((node, True))
        with_ = node.args.get("with_")
        others = [child for child in node.iter_expressions() if child is not with_]
        stack += [(child, False) for child in reversed(others)]
        if with_ is not None:
            stack.append((with_, False))


class _Moved:
    """`fixed`: names of those that stay."""

    def __init__(self, tree: exp.Expr, copies: _Copies, doubtful: set[str], partials: frozenset[str]) -> None:
        self._tree = tree
        self._copies = copies
        self._doubtful = doubtful
        self._partials = partials
        self._fixed: set[str] = set(doubtful)
        self._defined: dict[str, exp.CTE] = {}
        self._nodes = sum(1 for _ in tree.walk())

    def decide(self, cte: exp.CTE) -> None:
        """Takes the WITH query away, if it may stand where its name does."""
        self.put(cte.this)
        name, with_ = cte.alias.lower(), cte.parent
        assert isinstance(with_, exp.With)
        if not self._may_move(cte, with_):
            self._fixed.add(name)
            return
        self._defined[name] = cte
        with_.set("expressions", [each for each in with_.expressions if each is not cte])
        if not with_.expressions and with_.parent is not None:
            with_.parent.set("with_", None)

    def _may_move(self, cte: exp.CTE, with_: exp.With) -> bool:
        name = cte.alias.lower()
        inside = {node.name.lower() for node in _mentions(cte.this)}
        if name in self._doubtful or with_.args.get("recursive") or not is_outside(with_):
            return False
        if inside & self._doubtful:
            self._doubtful.add(name)
            return False
        mentions = [node for node in _mentions(self._tree) if node.name.lower() == name]
        if any(value for node in mentions for key, value in node.args.items() if key not in ("this", "alias")):
            return False
        if len(mentions) == 1:
            return True
        if inside & self._fixed or not is_stable(cte.this) or inside & self._partials:
            return False
        added = max(0, len(mentions) - 1) * sum(1 for _ in cte.this.walk())
        if self._nodes + added > _NODES_MAX:
            return False
        self._nodes += added
        return True

    def put(self, tree: exp.Expr) -> None:
        """Queries in the places of their names."""
        for node in _mentions(tree):
            cte = self._defined.get(node.name.lower())
            if cte is None or node.name in self._copies.scans:
                continue
            body = cte.this.copy()
            self._copies.rename(body)
            said, own = node.args.get("alias"), cte.args["alias"]
            name = said.this if said is not None else node.this
            columns = (said.args.get("columns") if said is not None else None) or own.args.get("columns")
            alias = exp.TableAlias(this=name.copy(), columns=[column.copy() for column in columns] if columns else None)
            node.replace(exp.Subquery(this=body, alias=alias))


def _mentions(tree: exp.Expr) -> list[exp.Table]:
    """Relations that are named by a word: scans and WITH queries."""
    return [
        node for node in find_all(tree, exp.Table) if isinstance(node.this, exp.Identifier) and not node.args.get("db")
    ]


class _Copies:
    """Scans of copied queries get names of their own."""

    def __init__(self, scans: Mapping[str, Scan], taken: set[str]) -> None:
        self.scans = dict(scans)
        self._taken = taken
        self._used: set[str] = set()

    def rename(self, tree: exp.Expr) -> None:
        for node in find_all(tree, exp.Table):
            if node.name not in self.scans:
                continue
            if node.name in self._used:
                scan = self.scans[node.name]
                name = self._free(node.name)
                self.scans[name] = dataclasses.replace(scan, node_name=name)
                node.set("this", exp.Identifier(this=name, quoted=False))
            self._used.add(node.name)

    def _free(self, name: str) -> str:
        number = 2
        while f"{name}_{number}" in self._taken:
            number += 1
        self._taken.add(f"{name}_{number}")
        return f"{name}_{number}"
