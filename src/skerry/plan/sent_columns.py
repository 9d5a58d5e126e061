"""The columns that a table would send, for the choice of the place; `rest.py` finds those that it does send."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from sqlglot import exp

from skerry.plan.mention import Mention
from skerry.plan.mentions import alike
from skerry.plan.rules import Rules
from skerry.plan.rules.blocks import ANSWER
from skerry.plan.rules.subtrees import JOINED
from skerry.sql.walk import find_all


def _stays(column: str, own: Counter[str], total: Counter[str]) -> bool:
    return not own[column] or total[column] > own[column]


def columns_if_sent(mentions: Mapping[str, Mention], tree: exp.Expr, rules: Rules) -> dict[str, tuple[str, ...]]:
    """The columns that a mention would send, about: a column that only its own conditions name stays where it is."""
    total = Counter(node.name.lower() for node in find_all(tree, exp.Identifier))
    found: dict[str, tuple[str, ...]] = {}
    for name, mention in mentions.items():
        own: Counter[str] = Counter()
        if rules.has("filters"):
            for condition in mention.conditions:
                if condition.stands is not None:
                    own.update(node.name.lower() for node in find_all(condition.stands, exp.Identifier))
        if mention.source.node.meta.get(ANSWER) == JOINED:
            # It gives what the rest names, and the rest names all that it asks for.
            own.update(node.name.lower() for node in find_all(mention.source.node, exp.Identifier))
        columns = [column for column in mention.scan.columns if _stays(column.lower(), own, total)]
        found[name] = tuple(columns) or mention.scan.columns[:1]
    for same in alike(mentions.values()):
        # They are likely to travel as one.
        columns = list(dict.fromkeys(column for mention in same for column in found[mention.name]))
        found |= {mention.name: tuple(columns) for mention in same}
    return found
