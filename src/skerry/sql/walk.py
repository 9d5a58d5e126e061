"""Every node of a tree in sqlglot's order, level by level: a list, in a quarter of the time that its generators take.

A tree is walked hundreds of times while it is planned. Who changes the tree on the way sees the nodes that it had.
"""

from __future__ import annotations

from typing import Any, TypeVar, overload

from sqlglot import exp

A = TypeVar("A", bound=exp.Expr)
B = TypeVar("B", bound=exp.Expr)


def nodes_of(tree: exp.Expr) -> list[exp.Expr]:
    """The tree's root first."""
    found = [tree]
    for node in found:  # grows while it is read
        if node.is_primitive:  # nothing is below a name or a literal
            continue
        for value in node.args.values():
            if isinstance(value, exp.Expr):
                found.append(value)
            elif type(value) is list:
                for each in value:
                    if isinstance(each, exp.Expr):
                        found.append(each)
    return found


def children_of(node: exp.Expr) -> list[exp.Expr]:
    """The nodes right below one, in the order of its parts."""
    found: list[exp.Expr] = []
    for value in node.args.values():
        if isinstance(value, exp.Expr):
            found.append(value)
        elif type(value) is list:
            found += [each for each in value if isinstance(each, exp.Expr)]
    return found


def bare(node: exp.Expr) -> exp.Expr:
    """The node inside of any brackets around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def operands(node: exp.Expr) -> list[exp.Expr]:
    """a, b and c of `a OR b OR c`: rows of one operator group to the left, and may be thousands long."""
    kind, found = type(node), []
    while type(node) is kind:
        found.append(node.args["expression"])
        node = node.this
    return [node, *reversed(found)]


def columns_right_in(select: exp.Expr, tree: exp.Expr) -> list[exp.Column]:
    """The columns below `tree` whose own query is `select`, and none inside of it."""
    found: list[exp.Column] = []
    queue = [(tree, tree.find_ancestor(exp.Query))]
    for node, around in queue:  # grows while it is read
        if isinstance(node, exp.Column) and around is select:
            found.append(node)
        inner = node if isinstance(node, exp.Query) else around
        queue += [(child, inner) for child in children_of(node)]
    return found


@overload
def find_all(tree: exp.Expr, kind: type[A], /) -> list[A]: ...
@overload
def find_all(tree: exp.Expr, kind: type[A], other: type[B], /) -> list[A | B]: ...
@overload
def find_all(tree: exp.Expr, /, *kinds: type[exp.Expr]) -> list[exp.Expr]: ...
def find_all(tree: exp.Expr, /, *kinds: type[Any]) -> list[Any]:
    """The nodes of some kinds, in the order of `nodes_of`."""
    found, queue = [], [tree]
    for node in queue:  # each is looked at once: a large tree is larger than the processor's cache
        if isinstance(node, kinds):
            found.append(node)
        if node.is_primitive:
            continue
        for value in node.args.values():
            if isinstance(value, exp.Expr):
                queue.append(value)
            elif type(value) is list:
                for each in value:
                    if isinstance(each, exp.Expr):
                        queue.append(each)
    return found


def contains(tree: exp.Expr, *kinds: type[exp.Expr]) -> bool:
    """Is a node of one of these kinds in it?"""
    return bool(find_all(tree, *kinds))
