"""Queries in FROM over several sites that may be answered at one member: then their result travels, not their rows.

They are the blocks of `blocks.py` whose tables are not all at one site. Such a query asks nothing of what is around it,
so it may be answered anywhere, and is planned there as a query of its own (`plan/apart.py`). It gives no keys ahead of
its rows; one that may give other rows when it is answered again shares its answer with no other. Only those that make
fewer rows of what they read are looked at: groups, sets and first rows.

A block of one site that has no room for it may be answered apart in the same way, by a member that its rows pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from skerry.model.fragment import Leaf
from skerry.model.names import TableRef
from skerry.model.table import TablePart
from skerry.plan.block import Block
from skerry.plan.fragments import Fragments
from skerry.plan.mention import Node
from skerry.plan.rules.blocks import ANSWER, SET, is_stable, queries_in_from
from skerry.plan.rules.outputs import Outputs
from skerry.sql.functions import is_aggregate
from skerry.sql.scope import Scopes
from skerry.sql.walk import find_all, nodes_of

# So many different ones of a query are looked at; each is a plan of its own.
_BLOCKS_MAX = 6


@dataclass(frozen=True, eq=False)
class Apart(Block):
    """A query over several sites that is answered at `member`, of the `inputs` that come there.

    `read` gives its tree there, over the leaves that it adds. `home`: of a query over one site, the site that has no
    room for it.
    """

    inputs: tuple[Node, ...] = ()
    read: Callable[[Fragments, str, list[Leaf]], exp.Expr] | None = None
    home: str = ""


def moved(block: Block) -> Apart:
    """A query that the member of its tables has no room for."""
    reason = str(block.source.node.meta.get(ANSWER, ""))
    own = block.source, block.scope, block.body, block.tables, "", block.columns, reason
    return Apart(*own, home=block.member, is_stable=block.is_stable, is_set=block.is_set)


def is_spread(query: exp.Expr, holders: Mapping[str, Sequence[TablePart]]) -> bool:
    """Are its tables, all of them known, at several members?"""
    names = [table.name for table in find_all(query, exp.Table)]
    # A name that WITH gives, or a table function, is nothing that another site knows.
    if not names or any(not holders.get(name) for name in names):
        return False
    return len({part.member for name in names for part in holders[name]}) > 1


def spread_blocks(
    tree: exp.Expr,
    scopes: Scopes,
    holders: Mapping[str, Sequence[TablePart]],
    tables: Mapping[str, TableRef],
    *,
    only_answers: bool,
) -> list[Apart]:
    """Those in which others stand come after them. `tables` has the table of each scan that `holders` has.

    A query that reads all that the tree does is none: what is left of the tree goes to where it is answered.
    """
    count = len(find_all(tree, exp.Table))
    outputs = Outputs(scopes)
    found: list[Apart] = []
    for scope, source, node in queries_in_from(scopes, only_answers=only_answers):
        body = node.this
        names = [table.name for table in find_all(body, exp.Table)]
        if len(names) == count or not is_spread(body, holders) or not _reduces(body):
            continue
        columns = outputs.of(body, node.args.get("alias"))
        if columns is not None:
            held = {name: f"{tables[name].member or ''}.{tables[name].name}" for name in names}
            reason, is_set = str(node.meta.get(ANSWER, "")), SET in node.meta
            block = Apart(source, scope, body, held, "", columns, reason, is_stable=is_stable(body), is_set=is_set)
            found.append(block)
    kept = list(dict.fromkeys(each.text for each in found))[:_BLOCKS_MAX]
    return sorted((each for each in found if each.text in kept), key=lambda each: len(each.names))


def _reduces(query: exp.Expr) -> bool:
    """Does it make fewer rows of those that it joins?"""
    for node in nodes_of(query):
        if isinstance(node, exp.Group | exp.Distinct | exp.Limit | exp.Except | exp.Intersect) or is_aggregate(node):
            return True
        if isinstance(node, exp.Union) and node.args.get("distinct"):
            return True
    return False
