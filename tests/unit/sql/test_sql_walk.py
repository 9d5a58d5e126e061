"""Walks over trees see what sqlglot's own see, in its order."""

from __future__ import annotations

from sqlglot import exp

from skerry.sql.walk import contains, find_all, nodes_of
from tests.plans.plan_cases import all_cases, bound


def test_nodes_come_as_sqlglot_has_them() -> None:
    for case in all_cases()[::10]:
        tree = bound(case.sql, case.header.get("parameters")).tree
        assert list(map(id, nodes_of(tree))) == list(map(id, tree.walk()))
        assert list(map(id, find_all(tree, exp.Column))) == list(map(id, tree.find_all(exp.Column)))
        kinds = exp.Subquery, exp.SetOperation
        assert list(map(id, find_all(tree, *kinds))) == list(map(id, tree.find_all(*kinds)))
        assert contains(tree, *kinds) == bool(find_all(tree, *kinds))


def test_who_changes_the_tree_sees_the_nodes_that_it_had() -> None:
    tree = bound("SELECT o_id + 1 FROM orders").tree
    seen = find_all(tree, exp.Column)
    for column in seen:
        column.replace(exp.Paren(this=column.copy()))
    assert len(seen) == len(find_all(tree, exp.Column)) == 1
    assert seen != []
