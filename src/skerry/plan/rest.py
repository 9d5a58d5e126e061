"""What is left of a query's tree for the member that runs the rest, and what has to come there for it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping

import msgspec
from sqlglot import exp

from skerry.plan.fragments import Fragments
from skerry.plan.joining import Joiner
from skerry.plan.mention import Mention, Shipment, signature
from skerry.plan.mentions import Mentions, free_prefix, read_scopes
from skerry.plan.reduce import columns_of
from skerry.plan.rules import Rules
from skerry.plan.rules.arms import without_arms
from skerry.plan.rules.computed import compute_at_source
from skerry.plan.rules.filters import without_moved
from skerry.plan.rules.joined import Joined
from skerry.plan.source import Source
from skerry.sql.prune import needed_columns
from skerry.sql.scope import Scopes
from skerry.sql.statement import Scan
from skerry.sql.walk import find_all


def rest_at(
    builder: Fragments,
    tree: exp.Expr,
    mentions: Mentions,
    joiner: Joiner,
    root: str,
    shipments: Mapping[str, Shipment],
    rules: Rules,
) -> tuple[exp.Expr, dict[str, Scan], list[Source]]:
    """The tree that is left for `root`, changed in place, with the scans in it and what comes for them."""
    sent = {name: mentions.all[name] for name in shipments if root not in mentions.all[name].members}
    without_moved(tree, joiner.moved(root) | (_moved(sent) if rules.has("filters") else set()))
    _replace_blocks(tree, sent)
    joiner.put(root)
    without_arms(tree)
    builder.mentions = mentions.all
    builder.key_prefix = free_prefix(tree, "key_")
    names = tables_in(tree)
    left = {name: each.scan for name, each in mentions.all.items() if name in names}
    scopes = read_scopes(tree, left)
    if rules.has("computed"):
        _compute(tree, scopes, _alone(sent, shipments))
        left = {name: mentions.all[name].scan for name in left}
        scopes = read_scopes(tree, left)
    placed = {source.node.name: source for scope in scopes.all for source in scope.sources if source.table is not None}
    needed = needed_columns(tree, scopes, placed)
    return tree, left, _sources({name: mentions.all[name] for name in left}, shipments, needed)


def tables_in(tree: exp.Expr) -> set[str]:
    return {node.name for node in find_all(tree, exp.Table)}


def _alone(sent: Mapping[str, Mention], shipments: Mapping[str, Shipment]) -> dict[str, Mention]:
    """Those that no other mention shares its rows with, and that send every row."""
    counts = Counter(signature(shipments[name].node) for name in sent)
    return {
        name: mention
        for name, mention in sent.items()
        if counts[signature(shipments[name].node)] == 1 and not mention.is_set
    }


def _compute(tree: exp.Expr, scopes: Scopes, sent: Mapping[str, Mention]) -> None:
    """What is computed from a mention alone becomes a column that it sends."""
    for name, columns in compute_at_source(scopes, sent, free_prefix(tree, "value_")).items():
        mention = sent[name]
        mention.computed = {each.column.name: each.value for each in columns}
        table = mention.scan.table
        wider = msgspec.structs.replace(table, columns=(*table.columns, *(each.column for each in columns)))
        mention.scan = dataclasses.replace(mention.scan, table=wider)


def _replace_blocks(tree: exp.Expr, sent: Mapping[str, Mention]) -> None:
    """A block that is answered elsewhere stands in the tree as a table of its columns."""
    for name, mention in sent.items():
        if mention.block is not None and not isinstance(mention.block, Joined):
            alias = exp.TableAlias(this=mention.alias.copy())
            mention.source.node.replace(exp.Table(this=exp.Identifier(this=name, quoted=False), alias=alias))


def _moved(sent: Mapping[str, Mention]) -> set[int]:
    """The conjuncts that every row of their mention has passed before it comes to the root."""
    return {
        id(condition.stands)
        for mention in sent.values()
        for condition in mention.conditions
        if condition.stands is not None
    }


def _sources(
    mentions: Mapping[str, Mention], shipments: Mapping[str, Shipment], needed: Mapping[str, tuple[str, ...]]
) -> list[Source]:
    """Mentions of which the same rows travel are one source, with the columns that any of them needs."""
    grouped: dict[str, list[Mention]] = {}
    for name, mention in mentions.items():
        grouped.setdefault(signature(shipments[name].node), []).append(mention)
    found: list[Source] = []
    for same in grouped.values():
        first = same[0]
        columns = columns_of(first, [column for mention in same for column in needed[mention.name]])
        names = tuple(mention.name for mention in same)
        found.append(Source(names, first.scan.table, columns, (), first.parts, shipment=shipments[first.name]))
    return found
