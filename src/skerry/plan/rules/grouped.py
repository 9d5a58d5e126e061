"""Tables of one site are grouped there before they are joined with others, where aggregates above make the whole.

    SELECT c_name, sum(l_price) AS s FROM customer, orders, lineitem WHERE c_id = o_cust AND o_id = l_order
        GROUP BY c_name
is
    SELECT c_name, sum(g.g_1) AS s FROM customer, (SELECT o_cust, sum(l_price) AS g_1 FROM orders, lineitem
        WHERE o_id = l_order GROUP BY o_cust) AS g WHERE c_id = g.o_cust GROUP BY c_name

The proof. Let all joins be inner, S the tables that are grouped, T the others, and K all columns of S that are named
anywhere but in conditions on S alone, which are asked inside, and in aggregates of S's columns alone. Rows of S with
one K pass the same of all other conditions with a row t of T, and fall into the same group with it. So beside each t
stand either all rows of S that have this K or none, and what an aggregate makes of them is what the partial one made
of the K: once for each t, as before. `partials.py` says how partial ones are merged. An aggregate that does not ask
how often a value comes may stand as it is, over any columns: those of S are then in K. A count of T's values counts
each as often as its K has rows. Other aggregates of T's columns would have to be multiplied: they are declined.

That the query stays Spark's, errors too: K are columns of types in which equal values are the same value. There is a K,
so of no rows there is no group. What is computed early cannot fail on a row that a join would have dropped, and a sum
that might is made by `try_sum`, which a row that does come makes the error that it would have been.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from skerry.model.names import TableRef
from skerry.model.table import Column, TablePart
from skerry.plan.grouping import Block, block_of, has_aggregate
from skerry.plan.mention import is_key
from skerry.plan.partials import Call, Split, call_of, called, cast, split_of
from skerry.plan.rules.blocks import ANSWER
from skerry.plan.rules.computed import cannot_fail
from skerry.plan.rules.joined import End, Reader, is_where, scopes_within
from skerry.plan.trees import conjunction, rename
from skerry.sql.alike import Once
from skerry.sql.push import conjuncts, owner
from skerry.sql.scope import Scope, Scopes, Source
from skerry.sql.types import Resolve, decimal_of, infer
from skerry.sql.walk import bare, find_all

GROUPED = "their rows are grouped there before they are joined with others"
# What is merged of partial ones; types of others' partial ones are not known, or they depend on an order.
_MERGED = frozenset("sum count count_if min max bool_and every bool_or some any avg mean".split())
# They do not ask how often a value comes.
_OF_SETS = frozenset("min max bool_and every bool_or some any bit_and bit_or collect_set approx_count_distinct".split())
# A sum of so many digits has ten more, for more rows than a group can have; so have sums of shorter whole numbers.
_DIGITS_MAX = 28
_SHORT = frozenset(("tinyint", "smallint", "int"))
_LARGEST = "9" * 38


class _Declined(Exception):
    """An aggregate cannot be made of groups."""


@dataclass(frozen=True)
class _Named:
    """As the reader of columns wants it."""

    name: str
    source: Source


@dataclass(frozen=True, eq=False)
class Early:
    """An aggregate of the query, and what it is made of."""

    node: exp.Expr
    split: Split


@dataclass(frozen=True, eq=False)
class Grouped:
    """`inside` is grouped by the columns of `uses`, which the rest names; `own`: under their own names.

    moved: conjuncts that are asked inside, kept: the others.
    """

    scope: Scope
    inside: tuple[_Named, ...]
    moved: tuple[exp.Expr, ...]
    kept: tuple[exp.Expr, ...]
    uses: tuple[tuple[exp.Column, End], ...]
    own: frozenset[End]
    early: tuple[Early, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.inside)


def may_be_grouped(
    scopes: Scopes, tables: Mapping[str, TableRef], holders: Mapping[str, Sequence[TablePart]]
) -> Iterator[Grouped]:
    """Whatever may be, in the order of the text. `tables` has the table of each scan, `holders` its parts."""
    within: dict[int, list[Scope]] = {}
    for scope in scopes.all:
        block = _block(scope, tables, holders)
        for inside in _together(scope, block, holders) if block is not None else ():
            assert block is not None
            within = within or scopes_within(scopes)
            found = _grouped(scope, within[id(scope)], block, inside)
            if found is not None:
                yield found


# --- which tables ------------------------------------------------------------------------------------
def _block(scope: Scope, tables: Mapping[str, TableRef], holders: Mapping[str, Sequence[TablePart]]) -> Block | None:
    """A SELECT with aggregates over an inner join of several sites; nothing is named after an aggregate."""
    select = scope.select
    joins = select.args.get("joins") or []
    if scope.parent is not None or not scope.plain or len(scope.sources) < 2 or select.args.get("distinct"):
        return None
    if any(_is_outer(join) for join in joins) or len(set(_homes(scope, holders).values())) < 2:
        return None
    if not is_where(scope, joins):
        return None
    if any(has_aggregate(item) and not isinstance(item, exp.Alias) for item in select.expressions):
        return None
    return block_of(select, tables, dict.fromkeys(tables, 1))


def _is_outer(join: exp.Expr) -> bool:
    return any(join.args.get(key) for key in ("side", "method", "using")) or join.args.get("kind") in ("SEMI", "ANTI")


def _homes(scope: Scope, holders: Mapping[str, Sequence[TablePart]]) -> dict[str, str]:
    """The one member that has all rows of a table, by scan; each other relation has none."""
    found: dict[str, str] = {}
    for number, source in enumerate(scope.sources):
        is_table = isinstance(source.node, exp.Table) and source.table is not None and not source.renamed
        parts = holders.get(source.node.name, ()) if is_table else ()
        found[source.node.name if is_table else str(number)] = parts[0].member if len(parts) == 1 else ""
    return found


def _together(scope: Scope, block: Block, holders: Mapping[str, Sequence[TablePart]]) -> Iterator[tuple[_Named, ...]]:
    """Tables of one member that equalities connect, as many as there are; never all of FROM."""
    homes = {name: home for name, home in _homes(scope, holders).items() if home}
    sets = {name: {name} for name in homes}
    for conjunct, _ in conjuncts(scope):
        names = _scans(conjunct, block)
        if isinstance(bare(conjunct), exp.EQ) and len(names) == 2 and names <= homes.keys():
            one, other = sorted(names)
            if homes[one] == homes[other]:
                both = sets[one] | sets[other]
                sets |= dict.fromkeys(both, both)
    by_name = {source.node.name: source for source in scope.sources if source.node.name in homes}
    for together in {id(each): each for each in sets.values()}.values():
        if len(together) < len(scope.sources):
            yield tuple(_Named(name, by_name[name]) for name in homes if name in together)


def _scans(node: exp.Expr, block: Block) -> set[str]:
    """Whose columns it names."""
    found = (block.owner(column) for column in find_all(node, exp.Column))
    return {each[0].scan for each in found if each is not None}


# --- whether they may be ------------------------------------------------------------------------------
def _grouped(scope: Scope, within: list[Scope], block: Block, inside: tuple[_Named, ...]) -> Grouped | None:
    names, sources = {each.name for each in inside}, [each.source for each in inside]
    moved: list[exp.Expr] = []
    kept: list[exp.Expr] = []
    for conjunct, allowed in conjuncts(scope):
        of, single = _scans(conjunct, block), owner(conjunct, scope)
        if len(of) > 1 and not of <= names and not cannot_fail(conjunct, block.resolve):
            return None  # the joins that Spark makes first, and so drops rows by, may be others
        if not of or not of <= names:
            kept.append(conjunct)
        elif (single in sources and single in allowed) or cannot_fail(conjunct, block.resolve):
            moved.append(conjunct)
        else:
            return None  # it would be asked of rows that others have dropped before
    try:
        splits = [(node, _split(node, block, names)) for node in block.aggregates]
    except _Declined:
        return None
    early = tuple(Early(node, split) for node, split in splits if split is not None)
    reader = Reader(scope, within, {each.name: each for each in inside})
    reader.read()
    gone = {id(column) for node in (*moved, *(each.node for each in early)) for column in find_all(node, exp.Column)}
    uses = tuple((node, end) for node, end, _ in reader.uses if id(node) not in gone)
    tables = {each.name: each.source.table for each in inside}
    types = [column.type for _, end in uses if (column := _column(tables, end)) is not None]
    if reader.doubtful or not types or not all(map(is_key, types)):
        return None
    return Grouped(scope, inside, tuple(moved), tuple(kept), uses, frozenset(reader.own), early)


def _split(node: exp.Expr, block: Block, names: set[str]) -> Split | None:
    """What the aggregate is made of; None if it may stay as it is."""
    call, of = call_of(node), _scans(node, block)
    if call is None:
        raise _Declined
    if of <= names:
        split = _partial(call, block)
        computed = [each for each in call.arguments if not isinstance(each, exp.Star)]
        computed += [call.where.this] if call.where is not None else []
        if split is not None and all(_is_safe(each, block.resolve) for each in computed):
            return split
    if call.is_distinct or call.name in _OF_SETS:
        return None
    if call.name == "count" and len(call.arguments) == 1 and call.where is None and not of & names:
        return _counted(call.arguments[0])
    raise _Declined


def _partial(call: Call, block: Block) -> Split | None:
    if call.name not in _MERGED or call.is_distinct:
        return None
    split = split_of(call, block.type_of)
    if split is None or any(block.type_of(value) != type_ for value, type_ in split.partials):
        return None
    type_ = block.type_of(call.arguments[0]) if call.name == "sum" else None
    digits = decimal_of(type_)
    if type_ == "bigint" or (digits is not None and digits[0] > _DIGITS_MAX):
        return _guarded(call, split.partials[0][1])
    return split if type_ is None or type_ in _SHORT or type_ in ("float", "double") or digits is not None else None


def _guarded(call: Call, type_: str) -> Split:
    """A sum that may be too large in a group that no row asks for; in one that is asked for it is Spark's error."""
    argument = call.arguments[0]
    summed = call.like("try_sum", argument)
    is_missing = exp.Is(this=summed, expression=exp.Null())
    is_over = exp.And(
        this=exp.GT(this=call.like("count", argument), expression=exp.Literal.number(0)), expression=is_missing
    )

    def merged(columns: Sequence[exp.Expr]) -> exp.Expr:
        value, over = columns
        failing = exp.Case(ifs=[exp.If(this=over, true=_too_large(over, type_))], default=value)
        whole = called("sum", failing)
        return cast(whole, type_) if decimal_of(type_) is not None else whole

    return Split(((cast(summed, type_), type_), (is_over, "boolean")), merged)


def _too_large(over: exp.Expr, type_: str) -> exp.Expr:
    """A sum that does not fit, where `over` is true; not of constants, which might be computed beforehand."""
    if decimal_of(type_) is None:
        return exp.Add(this=exp.Literal.number(2**63 - 1), expression=cast(over, "bigint"))
    largest = cast(exp.Literal.string(_LARGEST), "decimal(38,0)")
    return cast(exp.Add(this=largest, expression=cast(over, "int")), type_)


def _counted(value: exp.Expr) -> Split:
    """A value of another table counts once for each row of the group beside it."""
    rows = called("count", exp.Star()), "bigint"

    def merged(columns: Sequence[exp.Expr]) -> exp.Expr:
        is_there = exp.Not(this=exp.Is(this=exp.Paren(this=value.copy()), expression=exp.Null()))
        counted = exp.Case(ifs=[exp.If(this=is_there, true=columns[0])])
        return called("coalesce", called("sum", counted), exp.Literal.number(0))

    return Split((rows,), merged)


def _is_safe(node: exp.Expr, types: Resolve) -> bool:
    """Can it be computed of any row? Doubles have no overflow, and CASE is as safe as what stands in it."""
    match node:
        case exp.Paren():
            return _is_safe(node.this, types)
        case exp.Case():
            parts = [each for branch in node.args["ifs"] for each in (branch.this, branch.args["true"])]
            parts += [node.args["default"]] if node.args.get("default") is not None else []
            is_known = node.args.get("this") is None and infer(node, types) is not None
            return is_known and all(_is_safe(each, types) for each in parts)
        case exp.Add() | exp.Sub() | exp.Mul():
            digits, type_ = decimal_of(infer(node, types)), infer(node, types)
            if type_ == "double" or (digits is not None and digits[0] < 38):
                return _is_safe(node.this, types) and _is_safe(node.args["expression"], types)
    return cannot_fail(node, types)


# --- the tree ------------------------------------------------------------------------------------------
def put_grouped(grouped: Grouped, name: str) -> None:
    """Changes the tree: a query `name` in FROM that groups the tables."""
    alias = exp.Identifier(this=name, quoted=False)
    by_name = {each.name: each.source for each in grouped.inside}
    keys, partials = _keys(grouped, by_name, name), _partials(grouped)
    derived = exp.Subquery(this=grouped_body(grouped, name), alias=exp.TableAlias(this=alias))
    derived.meta[ANSWER] = GROUPED
    for each in grouped.early:
        columns: list[exp.Expr] = []
        for value, _ in each.split.partials:
            place = len(keys) + partials.add(value)
            said = exp.Identifier(this=f"{name}_{place}", quoted=True)
            columns.append(exp.Column(this=said, table=alias.copy()))
        merged = each.split.merged(columns)
        each.node.replace(exp.Paren(this=merged) if isinstance(merged, exp.Binary) else merged)
    for node, end in grouped.uses:
        rename(node, by_name[end[0]].alias, alias, keys[end][1])
    _put_in_from(grouped, derived)


def grouped_body(grouped: Grouped, name: str) -> exp.Select:
    """The query that groups the tables."""
    by_name = {each.name: each.source for each in grouped.inside}
    keys = _keys(grouped, by_name, name)
    columns = {
        end: exp.Column(this=exp.Identifier(this=own.name, quoted=True), table=_alias(by_name[end[0]]).copy())
        for end, (own, _) in keys.items()
    }
    items = [_called(columns[end], said) for end, (_, said) in keys.items()]
    items += [_called(value, f"{name}_{place}") for place, value in enumerate(_partials(grouped).values, len(keys))]
    body = exp.Select(expressions=items, group=exp.Group(expressions=[each.copy() for each in columns.values()]))
    _read(body, [each.source.node.copy() for each in grouped.inside])
    if grouped.moved:
        body.set("where", exp.Where(this=conjunction([bare(each).copy() for each in grouped.moved])))
    return body


def _partials(grouped: Grouped) -> Once:
    return Once(value for each in grouped.early for value, _ in each.split.partials)


def _put_in_from(grouped: Grouped, derived: exp.Expr) -> None:
    """The query in the place of the first of its tables; inner joins become a list, their ON becomes WHERE."""
    select = grouped.scope.select
    gone = {id(each.source.node) for each in grouped.inside}
    relations: list[exp.Expr] = []
    for node in (select.args["from_"].this, *(join.this for join in select.args.get("joins") or ())):
        if id(node) not in gone:
            relations.append(node)
        elif derived not in relations:
            relations.append(derived)
    _read(select, relations)
    kept = [each for each in grouped.kept if not (isinstance(each, exp.Boolean) and each.this)]
    select.set("where", exp.Where(this=conjunction(kept)) if kept else None)


def _read(select: exp.Select, relations: Sequence[exp.Expr]) -> None:
    select.set("from_", exp.From(this=relations[0]))
    select.set("joins", [exp.Join(this=each, kind="COMMA") for each in relations[1:]] or None)


def _keys(grouped: Grouped, by_name: Mapping[str, Source], name: str) -> dict[End, tuple[Column, str]]:
    """Each with what the query calls it: its own name, unless another has that."""
    tables = {each: source.table for each, source in by_name.items()}
    taken: set[str] = set()
    found: dict[End, tuple[Column, str]] = {}
    for end in sorted({end for _, end in grouped.uses}, key=lambda end: (end not in grouped.own, end)):
        column = _column(tables, end)
        assert column is not None, "what is no column of its table is in doubt"
        found[end] = column, f"{name}_{len(found)}" if end[1] in taken else column.name
        taken.add(end[1])
    return found


def _column(tables: Mapping[str, TableRef | None], end: End) -> Column | None:
    table = tables[end[0]]
    return table.column(end[1]) if table is not None else None


def _called(value: exp.Expr, name: str) -> exp.Expr:
    return exp.Alias(this=value.copy(), alias=exp.Identifier(this=name, quoted=True))


def _alias(source: Source) -> exp.Identifier:
    return source.node.args["alias"].this  # type: ignore[no-any-return]
