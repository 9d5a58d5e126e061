"""A condition on a column holds of every column that is equal to it: `o_id = l_order AND o_id < 9` says l_order < 9."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from skerry.plan.condition import Condition
from skerry.plan.mention import Mention
from skerry.sql.fields import names_field
from skerry.sql.walk import find_all


def infer_filters(groups: Sequence[Sequence[tuple[Mention, str]]]) -> None:
    """`groups` are columns of one type, equal in every row that survives. The tree keeps what it has."""
    for group in groups:
        said = [(mention, column, each) for mention, column in group for each in _about(mention, column)]
        for mention, column in group:
            for other, _, condition in said:
                if other is not mention:
                    mention.conditions.append(Condition(_renamed(condition.filter, mention, column), None))


def _about(mention: Mention, column: str) -> list[Condition]:
    """The conditions on that column alone, as they were written."""
    return [
        condition
        for condition in mention.conditions
        if condition.stands is not None
        and condition.subquery is None
        and {node.name.lower() for node in find_all(condition.filter, exp.Column)} == {column.lower()}
        and not any(map(names_field, find_all(condition.filter, exp.Column)))
    ]


def _renamed(filter_: exp.Expr, mention: Mention, column: str) -> exp.Expr:
    copy = exp.Paren(this=filter_.copy())
    for node in find_all(copy, exp.Column):
        node.replace(exp.Column(this=exp.Identifier(this=column, quoted=True), table=mention.alias.copy()))
    return copy
