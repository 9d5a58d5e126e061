"""What a fragment reads, and the fragments that send it what is not there.

Of a mention the useful rows are sent only: its conditions applied, its keys looked up among others' keys.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from sqlglot import exp

from skerry.model.fragment import EdgeLeaf, Leaf, Output, TableLeaf
from skerry.model.table import Column, TablePart
from skerry.plan.condition import Condition
from skerry.plan.estimate import held_row_bytes, row_bytes
from skerry.plan.fragments import Fragments
from skerry.plan.known import groups_key
from skerry.plan.mention import Mention, Node, distinct_rows, sent_rows, signature, width_of
from skerry.plan.partials import cast
from skerry.plan.placeholders import hint_broadcasts, replace_tables, select_from
from skerry.plan.remembered import sent_keys
from skerry.plan.rules.apart import Apart
from skerry.plan.rules.joined import Input, Joined
from skerry.plan.source import Source
from skerry.sql.types import decimal_of
from skerry.sql.walk import find_all
from skerry.sql.width import only_copies

# Columns of an edge with bounds.
_LOW, _HIGH = "low", "high"


def columns_of(mention: Mention, names: Sequence[str]) -> tuple[Column, ...]:
    """In the table's order."""
    wanted = {name.lower() for name in names}
    return tuple(column for column in mention.scan.table.columns if column.name.lower() in wanted)


def read_sources(
    builder: Fragments, tree: exp.Expr, sources: Sequence[Source], member: str, leaves: list[Leaf]
) -> None:
    """The sources' placeholders in the places of their names; `leaves` gets them."""
    names: dict[str, list[str | exp.Query]] = {}
    small: set[str] = set()
    for source in _keys_first(sources, member):
        source_names = _source_leaves(builder, source, member, leaves)
        names |= dict.fromkeys(source.mentions, source_names)
        if _is_small(builder, source, member):
            small |= set(source.mentions)
    hint_broadcasts(tree, small, {mention: source.table for source in sources for mention in source.mentions})
    replace_tables(tree, names, {mention: source.columns for source in sources for mention in source.mentions})


def _source_leaves(builder: Fragments, source: Source, member: str, leaves: list[Leaf]) -> list[str | exp.Query]:
    """The placeholders, or queries, whose rows together are the source's."""
    names: list[str | exp.Query] = []
    local = [part for part in source.parts if part.member == member]
    remote = [part for part in source.parts if part.member != member]
    for part in local:
        if source.partial is not None:
            names.append(at_part(builder, source.partial, source, source.joined, part, leaves))
            continue
        leaf = TableLeaf(builder.placeholder(), part.table)
        names.append(leaf.placeholder)
        leaves.append(leaf)
    if remote:
        arriving = _remote_leaf(builder, source, remote, member)
        names.append(arriving.placeholder)
        leaves.append(arriving)
    return names


def _remote_leaf(builder: Fragments, source: Source, remote: Sequence[TablePart], member: str) -> EdgeLeaf:
    """What these parts send to `member`; the same rows come there once."""
    of = signature(source.shipment.node) if source.shipment is not None else ""
    known = builder.arrived(member, of, source.columns, is_keys=False) if of else None
    if known is not None:
        return known
    edge, senders = builder.edge(), tuple(part.member for part in remote)
    for part in remote:
        _add_scan(builder, source, part, edge, member)
    if not of:
        return EdgeLeaf(builder.placeholder(), edge, source.columns, senders)
    return builder.arrives(member, of, edge, source.columns, senders, is_keys=False)


def _keys_first(sources: Sequence[Source], member: str) -> list[Source]:
    """Rows that come to `member` before those that are reduced there by keys of the same: they are its keys too."""
    asked = {
        each for source in sources if source.shipment is not None for each in keys_at(source.shipment.node, member)
    }
    if not asked:
        return list(sources)
    return sorted(sources, key=lambda each: each.shipment is None or signature(each.shipment.node) not in asked)


def keys_at(node: Node, member: str) -> list[str]:
    """Signatures of those whose keys are to come to `member` while the node's own rows are reduced elsewhere."""
    found: list[str] = []
    below = [(child, part.member) for _, child in node.children for part in node.mention.parts if part.member != member]
    while below:
        child, host = below.pop()
        if host == member and any(part.member != member for part in child.mention.parts):
            found.append(signature(child))
        below += [(each, part.member) for _, each in child.children for part in child.mention.parts]
    return found


def _add_scan(builder: Fragments, source: Source, part: TablePart, edge: int, receiver: str) -> None:
    if source.shipment is not None:
        sent, output = source.shipment, Output(edge, (receiver,))
        add_reduced(builder, sent.node, part, source.columns, output, is_keys=False, planned=sent.columns)
        return
    if builder.scanned_before(source, part, Output(edge, (receiver,))):
        return
    leaves: list[Leaf] = []
    if source.partial is not None:
        tree = at_part(builder, source.partial, source, source.joined, part, leaves)
    else:
        leaves.append(TableLeaf(builder.placeholder(), part.table))
        tree = select_from(leaves[0].placeholder, source.columns)
        tree = tree.where(*source.filters) if source.filters else tree
    rows, is_narrow = source.estimated_rows(part), held_row_bytes(part) <= builder.limits.narrow_row_bytes
    is_narrow = is_narrow and (source.partial is None or only_copies(source.partial))
    size_bytes, known, output = source.estimated_bytes(part), "", Output(edge, (receiver,))
    if source.partial is not None:
        known = groups_key(
            part, builder.text_of(source.partial), {each.mentions[0]: each.parts for each in source.joined}
        )
    output = builder.scanned(output, part, tree, leaves)
    builder.add(part.member, tree, tuple(leaves), output, rows, size_bytes, is_narrow, source.reason, (known,))
    if source.partial is None:
        builder.was_scanned(source, part)


def at_part(
    builder: Fragments, tree: exp.Query, cut: Source, joined: Sequence[Source], part: TablePart, leaves: list[Leaf]
) -> exp.Query:
    """The tree over one part of `cut`, and over all rows of the sources that it is joined with."""
    leaf = TableLeaf(builder.placeholder(), part.table)
    leaves.append(leaf)
    names: dict[str, list[str | exp.Query]] = {cut.mentions[0]: [leaf.placeholder]}
    for source in joined:
        here = _here(source, part.member) if source.is_beside else source
        names[source.mentions[0]] = _source_leaves(builder, here, part.member, leaves)
    own = tree.copy()
    others = [source for source in joined if not source.is_beside]
    small = {source.mentions[0] for source in others if _is_small(builder, source, part.member)}
    hint_broadcasts(own, small, {source.mentions[0]: source.table for source in (cut, *joined)})
    replace_tables(own, names, {source.mentions[0]: source.columns for source in joined})
    return own


def _here(source: Source, member: str) -> Source:
    """Its part at the member alone."""
    parts = tuple(part for part in source.parts if part.member == member)
    assert parts, f"{source.table.name} is not beside {member}'s"
    return msgspec.structs.replace(source, parts=parts)


def _is_small(builder: Fragments, source: Source, member: str) -> bool:
    """Should Spark be told that the source is small? An edge reports no size; a table of the site does."""
    if all(part.member == member for part in source.parts):
        return False
    if source.shipment is not None:
        # The parts that are there are read as they are.
        here = [part for part in source.parts if part.member == member]
        width = row_bytes(source.columns)
        held = sum(part.size_bytes if part.rows is None else part.rows * width for part in here)
        return source.shipment.size_bytes + held <= builder.limits.broadcast_bytes
    return sum(source.sent_bytes().values()) <= builder.limits.broadcast_bytes


def add_reduced(
    builder: Fragments,
    node: Node,
    part: TablePart,
    columns: Sequence[Column],
    output: Output,
    *,
    is_keys: bool,
    planned: Sequence[str] = (),
) -> None:
    """The fragment at the part's member. `planned`: the columns that it was taken to send when the plan was chosen."""
    leaves: list[Leaf] = []
    tree = reduced_select(builder, node, part, columns, leaves)
    if is_keys or node.mention.is_set:
        tree.set("distinct", exp.Distinct())
    share = (part.rows or 0) / max(1, sum(each.rows or 0 for each in node.mention.parts))
    estimate = node.estimate
    names = [column.name for column in columns]
    rows = distinct_rows(estimate, names) if is_keys else sent_rows(node, names)
    made = [column for column in columns if column.name in node.mention.computed]
    width = width_of(estimate, [name for name in names if name not in node.mention.computed]) + row_bytes(made)
    size_bytes = int(rows * share * width)
    reason = _reason(node, is_keys)
    known = sent_keys(node, part, names, planned, is_distinct=is_keys or node.mention.is_set)
    is_narrow = builder.is_narrow(part, node.mention)
    output = builder.scanned(output, part, tree, leaves)
    builder.add(part.member, tree, tuple(leaves), output, int(rows * share), size_bytes, is_narrow, reason, known)


def _reason(node: Node, is_keys: bool) -> str:
    """Why the fragment is there, and why it sends no more."""
    mention = node.mention
    what = mention.block.reason if mention.block is not None else f"{mention.scan.table.name} is there"
    others = ", ".join(_called(child.mention) for _, child in node.children)
    less = f"; rows without a match in {others} are not sent" if others else ""
    for (own, other), child in node.ranges:
        less += f"; rows whose {own} is outside of {_called(child.mention)}.{other} are not sent"
    return f"{what}{less}{'; its keys go ahead, so fewer rows travel' if is_keys else ''}"


def _called(mention: Mention) -> str:
    return str(mention.alias.name)


def reduced_select(
    builder: Fragments, node: Node, part: TablePart, columns: Sequence[Column], leaves: list[Leaf]
) -> exp.Select:
    """The useful rows of one part; `leaves` gets what is read for them."""
    mention = node.mention
    alias = mention.alias
    table = _relation(builder, mention, part, leaves)
    joins: list[exp.Expr] = []
    small: list[exp.Expr] = []
    for number, (pairs, child) in enumerate(node.children):
        wanted = columns_of(child.mention, [other for _, other in pairs])
        keys = key_relation(builder, child, wanted, part.member, leaves)
        name = exp.to_identifier(builder.key_name(node, number, part.member), quoted=False)
        on: exp.Expr | None = None
        for own, other in pairs:
            equal = exp.EQ(this=_column(alias, own), expression=_column(name, other))
            on = equal if on is None else exp.And(this=on, expression=equal)
        relation = exp.Subquery(this=keys, alias=exp.TableAlias(this=name))
        joins.append(exp.Join(this=relation, side="LEFT", kind="SEMI", on=on))
        if builder.is_small(child.estimate, wanted):
            small.append(name.copy())
    for number, ((own, other), child) in enumerate(node.ranges, len(node.children)):
        name = exp.to_identifier(builder.key_name(node, number, part.member), quoted=False)
        bounds = bounds_relation(builder, child, other, part.member, leaves)
        within = exp.Between(this=_column(alias, own), low=_column(name, _LOW), high=_column(name, _HIGH))
        relation = exp.Subquery(this=bounds, alias=exp.TableAlias(this=name))
        joins.append(exp.Join(this=relation, side="LEFT", kind="SEMI", on=within))
        small.append(name.copy())
    select = exp.Select(
        expressions=[_sent(mention, column) for column in columns], from_=exp.From(this=table), joins=joins or None
    )
    if small:
        select.set("hint", exp.Hint(expressions=[exp.Anonymous(this="BROADCAST", expressions=small)]))
    if mention.conditions:
        select.set("where", exp.Where(this=_where(builder, mention.conditions, part, leaves)))
    return select


def _relation(builder: Fragments, mention: Mention, part: TablePart, leaves: list[Leaf]) -> exp.Expr:
    """The part of the table, or the query that is answered there."""
    if mention.block is not None:
        if isinstance(mention.block, Apart) and mention.block.read is not None:
            read = mention.block.read(builder, part.member, leaves)
            return exp.Subquery(this=read, alias=mention.source.node.args["alias"].copy())
        body = mention.block.body.copy()
        if isinstance(mention.block, Joined):
            _read_inputs(builder, body, mention.block.inputs, part.member, leaves)
            return exp.Subquery(this=body, alias=mention.source.node.args["alias"].copy())
        _read_in_place(builder, body, mention.block.names, part, leaves)
        return exp.Subquery(this=body, alias=mention.source.node.args["alias"].copy())
    leaf = TableLeaf(builder.placeholder(), part.table)
    leaves.append(leaf)
    return exp.Table(this=exp.to_identifier(leaf.placeholder), alias=exp.TableAlias(this=mention.alias.copy()))


def _read_inputs(builder: Fragments, tree: exp.Expr, inputs: Sequence[Input], member: str, leaves: list[Leaf]) -> None:
    """Tables that are joined at `member` before the rest: what it does not hold arrives over edges."""
    sources = [
        Source(
            (each.mention.name,),
            each.mention.scan.table,
            each.columns,
            (),
            each.mention.parts,
            shipment=each.shipment,
        )
        for each in inputs
    ]
    read_sources(builder, tree, sources, member, leaves)


def key_relation(
    builder: Fragments, node: Node, columns: Sequence[Column], member: str, leaves: list[Leaf]
) -> exp.Query:
    """The keys that `node` has, at `member`: from the part that is there, and from those that send theirs."""
    queries: list[exp.Query] = []
    remote = [part for part in node.mention.parts if part.member != member]
    for part in node.mention.parts:
        if part.member == member:
            queries.append(reduced_select(builder, node, part, columns, leaves))
    if remote:
        of = signature(node)
        leaf = builder.arrived(member, of, columns, is_keys=True)
        if leaf is None:
            edge, senders = builder.edge(), tuple(part.member for part in remote)
            for part in remote:
                add_reduced(builder, node, part, columns, Output(edge, (member,)), is_keys=True)
            leaf = builder.arrives(member, of, edge, tuple(columns), senders, is_keys=True)
        leaves.append(leaf)
        queries.append(select_from(leaf.placeholder, columns))
    union = queries[0]
    for query in queries[1:]:
        union = exp.union(union, query, distinct=False, copy=False)
    return union


def bounds_relation(builder: Fragments, node: Node, column: str, member: str, leaves: list[Leaf]) -> exp.Query:
    """The least and the greatest value of a column, at `member`: NULLs if there is none."""
    (known,) = columns_of(node.mention, [column])
    columns = tuple(Column(name, known.type) for name in (_LOW, _HIGH))
    remote = [part for part in node.mention.parts if part.member != member]
    queries: list[exp.Query] = [
        _bounds(reduced_select(builder, node, part, [known], leaves))
        for part in node.mention.parts
        if part.member == member
    ]
    if remote:
        of = f"{signature(node)}: least and greatest {known.name}"
        leaf = builder.arrived(member, of, columns, is_keys=False)
        if leaf is None:
            edge, senders = builder.edge(), tuple(part.member for part in remote)
            for part in remote:
                _add_bounds(builder, node, part, known, Output(edge, (member,), through_driver=True))
            leaf = builder.arrives(member, of, edge, columns, senders, is_keys=False)
        leaves.append(leaf)
        queries.append(select_from(leaf.placeholder, columns))
    union = queries[0]
    for query in queries[1:]:
        union = exp.union(union, query, distinct=False, copy=False)
    whole = exp.select(_aliased("min", _LOW, _LOW), _aliased("max", _HIGH, _HIGH))
    return whole.from_(exp.Subquery(this=union, alias=exp.TableAlias(this=exp.to_identifier("bounds"))))


def _add_bounds(builder: Fragments, node: Node, part: TablePart, column: Column, output: Output) -> None:
    leaves: list[Leaf] = []
    tree = _bounds(reduced_select(builder, node, part, [column], leaves))
    size_bytes = int(2 * width_of(node.estimate, [column.name]))
    reason = f"{_called(node.mention)} is there; its least and greatest {column.name} go ahead, so fewer rows travel"
    is_narrow = builder.is_narrow(part, node.mention)
    builder.add(part.member, tree, tuple(leaves), output, 1, size_bytes, is_narrow, reason)


def _bounds(select: exp.Select) -> exp.Select:
    """The least and the greatest value of the one column that the query gives."""
    (item,) = select.expressions
    name = item.this if isinstance(item, exp.Alias) else item
    select.set("expressions", [_aliased("min", name, _LOW), _aliased("max", name, _HIGH)])
    return select


def _aliased(call: str, argument: str | exp.Expr, name: str) -> exp.Expr:
    node = exp.column(argument, quoted=True) if isinstance(argument, str) else argument.copy()
    made = exp.Anonymous(this=call, expressions=[node])
    return exp.Alias(this=made, alias=exp.Identifier(this=name, quoted=True))


def _where(builder: Fragments, conditions: Sequence[Condition], part: TablePart, leaves: list[Leaf]) -> exp.Expr:
    joined: exp.Expr | None = None
    for condition in conditions:
        copy = condition.filter.copy()
        if condition.subquery is not None:
            _read_in_place(builder, copy, condition.subquery.names, part, leaves)
        copy = exp.Paren(this=copy) if isinstance(copy, exp.Or) and len(conditions) > 1 else copy
        joined = copy if joined is None else exp.And(this=joined, expression=copy)
    assert joined is not None
    return joined


def _read_in_place(
    builder: Fragments, tree: exp.Expr, names: Sequence[str], part: TablePart, leaves: list[Leaf]
) -> None:
    """Scans inside a subquery become tables of the same member."""
    for node in find_all(tree, exp.Table):
        if node.name in names:
            leaf = TableLeaf(builder.placeholder(), builder.table_at(node.name, part.member))
            leaves.append(leaf)
            node.set("this", exp.to_identifier(leaf.placeholder))


def _sent(mention: Mention, column: Column) -> exp.Expr:
    """A column as the table has it, or as it is computed; a block's decimals as the plan says, whatever the engine."""
    value = mention.computed.get(column.name)
    if value is not None:
        value = value.copy()
    else:
        own = _column(mention.alias, column.name)
        if mention.block is None or isinstance(mention.block, Joined) or decimal_of(column.type) is None:
            return own
        # Sail gives some quotients and averages other sizes, and a receiver reads the sizes that it was told.
        value = cast(own, column.type)
    # A block's column may have any name; those of computed ones are ours.
    is_ours = column.name in mention.computed
    return exp.Alias(this=value, alias=exp.Identifier(this=column.name, quoted=not is_ours))


def _column(table: exp.Identifier, name: str) -> exp.Column:
    return exp.Column(this=exp.Identifier(this=name, quoted=True), table=table.copy())
