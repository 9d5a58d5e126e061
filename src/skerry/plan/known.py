"""Names for what travels, so that sizes seen once are found again: the same for the same rows, wherever they go.

A name is made of tables with the versions of their files, the conditions on them, and the same of all that reduces
them; so another plan of the query, or of another query, finds what this one has seen. "" stands for rows that depend on
values of parameters. `observed.py` keeps the sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from skerry.model.table import TablePart
from skerry.plan.observed import at_least, digest, distinct_of, scan_key, texts_of
from skerry.plan.rules.joined import Conjunct, Joined
from skerry.sql.dialect import render

if TYPE_CHECKING:
    from skerry.plan.mentions import Mention
    from skerry.plan.rules.blocks import Block
    from skerry.plan.rules.semijoin import Node


def mention_keys(mention: Mention) -> tuple[str, ...]:
    """The rows of each part that pass the mention's conditions."""
    filters = [condition.plain for condition in mention.conditions]
    if mention.block is None and not mention.reads:
        return tuple(scan_key(part.member, part.table, part.files_version, filters) for part in mention.parts)
    texts = sorted(text for condition in filters for text in texts_of(condition))
    if mention.block is not None:
        of = "joined" if isinstance(mention.block, Joined) else _block_text(mention.block)
        return (_name("block", of, *mention.reads, "where", *texts),)
    return tuple(_name(table_text(part), *mention.reads, "where", *texts) for part in mention.parts)


def block_key(block: Block, parts_of: Mapping[str, Sequence[TablePart]]) -> str:
    """A query in FROM, before conditions on its rows."""
    return _name("block", _block_text(block), *reads(block.names, parts_of), "where")


def _block_text(block: Block) -> str:
    """Wherever it is answered."""
    return block.text.replace(f" at {block.member} as ", " as ")


def reads(names: Iterable[str], parts_of: Mapping[str, Sequence[TablePart]]) -> tuple[str, ...]:
    """What stands for each of these scans."""
    return tuple(f"{name}={table_text(part)}" for name in names for part in parts_of[name])


def table_text(part: TablePart) -> str:
    return f"{part.member}.{part.table.lower()}@{part.files_version}"


def node_keys(node: Node) -> tuple[str, ...]:
    """The same of a mention that others reduce."""
    own = node.mention.known
    if not node.children and not node.ranges:
        return own
    below = [f"{pairs} among {_whole(child)}" for pairs, child in node.children]
    below += [f"{pair} in the range of {_whole(other)}" for pair, other in node.ranges]
    if any(text.endswith(" ") for text in below):
        return ("",) * len(own)
    return tuple(_name(key, *sorted(below)) if key else "" for key in own)


def _whole(node: Node) -> str:
    return digest(node.known) if all(node.known) else ""


def sent_keys(
    node: Node, part: TablePart, columns: Sequence[str], planned: Sequence[str], *, is_distinct: bool
) -> tuple[str, ...]:
    """Under which names the size of a fragment of the node is to be remembered."""
    index = node.mention.parts.index(part)
    own, plain = node.known[index], node.mention.known[index]
    if not own:
        return ()
    found = [at_least(own) if is_distinct else own]
    if is_distinct and len(columns) == 1:
        found.append(distinct_of(own, columns[0]))
    if planned:
        found.append(width_key(plain, planned))
    if own != plain:
        found.append(at_least(plain))
    if node.mention.join_key:
        is_join = not is_distinct and own == plain and not _is_reduced_from_outside(node.mention)
        found.append(node.mention.join_key if is_join else at_least(node.mention.join_key))
    return tuple(found)


def width_key(key: str, columns: Sequence[str]) -> str:
    """Rows with what is sent of them where the plan takes these columns to be."""
    return f"{key} with {' '.join(sorted(columns)).lower()}"


def _is_reduced_from_outside(group: Mention) -> bool:
    """Have tables that are joined lost rows to tables that are not?"""
    block = group.block
    assert isinstance(block, Joined)
    nodes = [each.shipment.node for each in block.inputs]
    while nodes:
        node = nodes.pop()
        if isinstance(node.mention.block, Joined) and _is_reduced_from_outside(node.mention):
            return True
        below = [child for _, child in (*node.children, *node.ranges)]
        if any(child.mention.name not in block.names for child in below):
            return True
        nodes += below
    return False


def join_key(plain: Sequence[str], conjuncts: Sequence[str]) -> str:
    """Tables joined with nothing else: `plain` are the names of their rows, `conjuncts` what joins them."""
    return _name("join", *plain, "on", *conjuncts)


def conjunct_texts(conjuncts: Iterable[Conjunct]) -> dict[frozenset[str], tuple[str, ...]]:
    """By the mentions that they are of."""
    found: dict[frozenset[str], tuple[str, ...]] = {}
    for each in conjuncts:
        found[each.names] = (*found.get(each.names, ()), render(each.node))
    return found


def groups_key(part: TablePart, tree: exp.Expr, parts_of: Mapping[str, Sequence[TablePart]]) -> str:
    """Groups that one part sends; `parts_of` are those of the tables that it is joined with."""
    return _name("groups", table_text(part), render(tree), *reads(sorted(parts_of), parts_of))


def result_key(text: str, parts_of: Mapping[str, Sequence[TablePart]]) -> str:
    return _name("result", text, *reads(sorted(parts_of), parts_of))


def _name(*texts: str) -> str:
    # A parameter, or a text that might be taken for one.
    return "" if any(not text or ":" in text for text in texts) else digest(texts)
