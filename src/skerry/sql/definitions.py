"""CREATE, ALTER, DROP, TRUNCATE, FLUSH and SHOW of tables of our own: text → typed statement, with every mistake named.

Pure: what is checked here is checked again by whoever carries it out, for tables may have changed by then.
"""

from __future__ import annotations

import msgspec
from sqlglot import exp

from skerry.model.errors import SqlError
from skerry.model.limits import OWN_BUCKETS, OWN_COLUMNS, OWN_NAME_CHARS
from skerry.model.nearest import did_you_mean
from skerry.model.position import sql_error
from skerry.model.sharded import OwnColumn, OwnTable, numbered
from skerry.sql.columntypes import may_be_key, type_text
from skerry.sql.constants import Misfit, Unsure, assigned, constant, is_plain
from skerry.sql.dialect import render
from skerry.sql.grammar.changes import ChangeGrammar, Defined, TableDefinition
from skerry.sql.owntables import AlterTable, CreateTable, Known, column_place
from skerry.sql.position import error_at
from skerry.sql.statement import check_said

_SHAPE = "CREATE TABLE t (a BIGINT, …) PRIMARY KEY (a) DISTRIBUTED BY (a)"
_OPTIONS = ("buckets",)
_MOMENTS = {
    "timestamp": "write TIMESTAMP '2024-01-31 12:00:00', which is UTC, or an offset behind it: '…+02:00'",
    "timestamp_ntz": "write TIMESTAMP_NTZ '2024-01-31 12:00:00', without a zone",
    "date": "write DATE '2024-01-31'",
}
_OWN_PREFIX = "skerry_"


def create_table(said: TableDefinition, known: Known, text: str) -> CreateTable:
    name = new_name(said, known, text)
    columns = _columns(said.columns, (), text)
    key = _key(said, columns, text)
    distributed, members = _distributed(said, key, known, text)
    required = {each.lower() for each in key}
    columns = tuple(
        msgspec.structs.replace(column, is_nullable=column.is_nullable and column.name.lower() not in required)
        for column in columns
    )
    for column, defined in zip(columns, said.columns, strict=True):
        _check_default(column, defined, text)
    table = OwnTable(0, name, 0, columns, key, distributed, members, is_placed=said.members is not None)
    buckets = _buckets(said, len(members), text)
    return CreateTable(
        table if buckets is None else msgspec.structs.replace(table, buckets=buckets), said.if_not_exists
    )


def new_name(said: TableDefinition, known: Known, text: str) -> str:
    """The name of the table; SqlError if it cannot have it."""
    name = said.name.name
    if not name.isprintable() or len(name) > OWN_NAME_CHARS or "." in name or name.lower().startswith(_OWN_PREFIX):
        rule = (
            f"a table's name has at most {OWN_NAME_CHARS} printable characters, no dot, and no {_OWN_PREFIX} in front"
        )
        raise error_at(rule, text, said.name)
    if name.lower() in known.tables:
        if not said.if_not_exists:
            raise error_at(
                f"table {name} exists already (say IF NOT EXISTS, or DROP TABLE {name} first)", text, said.name
            )
    elif name.lower() in {each.rpartition(".")[2].lower() for each in known.catalog.names()}:
        raise error_at(f"table {name} is in the configuration already: choose another name", text, said.name)
    return name


def _columns(said: list[Defined], before: tuple[OwnColumn, ...], text: str) -> tuple[OwnColumn, ...]:
    """The columns that are said, beside those that the table has."""
    names = {column.name.lower() for column in before}
    made = []
    for defined in said:
        name = defined.name.name
        if name.lower() in names:
            raise error_at(f"two columns are called {name}", text, defined.name)
        if not name.isprintable() or len(name) > OWN_NAME_CHARS:
            raise error_at(f"a column's name has at most {OWN_NAME_CHARS} printable characters", text, defined.name)
        names.add(name.lower())
        default = None if defined.default is None else render(defined.default)
        made.append(OwnColumn(name, type_text(defined.type, text), defined.is_nullable, default))
    if len(names) > OWN_COLUMNS:
        raise error_at(f"a table has at most {OWN_COLUMNS} columns, this one {len(names)}", text, said[-1].name)
    return tuple(made)


def _check_default(column: OwnColumn, defined: Defined, text: str) -> None:
    default = defined.default
    if default is None:
        return
    if not is_plain(default) or default.find(exp.Placeholder):
        advice = "write a number, a text in quotes, DATE '…', TIMESTAMP '…', X'…', true, false or NULL"
        raise error_at(f"the default of {column.name} is no constant: {advice}", text, default)
    check_said(default, defined.default_tokens, text)
    try:
        value = assigned(constant(default, {}), column.type)
    except Misfit as error:
        raise error_at(f"the default of {column.name}: {error.message}", text, default) from None
    except Unsure:
        advice = _MOMENTS.get(column.type, "write it as one")
        raise error_at(f"the default of {column.name} is no {column.type}: {advice}", text, default) from None
    if value is None and not column.is_nullable:
        raise error_at(f"the default of {column.name} is NULL, which the column does not take", text, default)


def _key(said: TableDefinition, columns: tuple[OwnColumn, ...], text: str) -> tuple[str, ...]:
    if not said.keys:
        message = f"table {said.name.name} has no PRIMARY KEY: write PRIMARY KEY (column, …) behind the columns"
        raise error_at(message, text, said.name)
    if len(said.keys) > 1:
        raise error_at("the table has two PRIMARY KEYs", text, said.keys[1][0])
    key = _listed(said.keys[0], columns, "PRIMARY KEY", text)
    by_name = {column.name: column for column in columns}
    for place, name in enumerate(key):
        if not may_be_key(by_name[name].type):
            message = f"column {name} of type {by_name[name].type} cannot be part of a key"
            raise error_at(message, text, said.keys[0][place])
    return key


def _listed(names: list[exp.Identifier], columns: tuple[OwnColumn, ...], clause: str, text: str) -> tuple[str, ...]:
    """Columns as the table spells them, each once."""
    spelled = {column.name.lower(): column.name for column in columns}
    found: list[str] = []
    for name in names:
        own = spelled.get(name.name.lower())
        if own is None:
            message = f"{clause}: the table has no column {name.name[:100]}{did_you_mean(name.name, spelled.values())}"
            raise error_at(message, text, name)
        if own in found:
            raise error_at(f"{clause}: column {own} stands there twice", text, name)
        found.append(own)
    return tuple(found)


def _distributed(
    said: TableDefinition, key: tuple[str, ...], known: Known, text: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if said.distributed is None:
        advice = f"write DISTRIBUTED BY ({', '.join(key)}), or DISTRIBUTED GLOBALLY for a copy at every member"
        raise sql_error(f"where do the rows of {said.name.name} go? {advice}", text, len(text.rstrip()))
    if not said.distributed:
        return (), tuple(known.members)
    in_key = {name.lower() for name in key}
    columns = tuple(OwnColumn(defined.name.name, "") for defined in said.columns)
    distributed = _listed(said.distributed, columns, "DISTRIBUTED BY", text)
    for name, node in zip(distributed, said.distributed, strict=True):
        if name.lower() not in in_key:
            message = f"DISTRIBUTED BY: column {name} is not part of the PRIMARY KEY ({', '.join(key)})"
            raise error_at(f"{message}; a key is unique only at its own member", text, node)
    return distributed, _members(said.members, known, text)


def _members(said: list[exp.Identifier] | None, known: Known, text: str) -> tuple[str, ...]:
    return tuple(known.members) if said is None else members_named("IN", said, known, text)


def members_named(word: str, said: list[exp.Identifier], known: Known, text: str) -> tuple[str, ...]:
    """Members with data, as the configuration spells them; SqlError for any other."""
    spelled = {member.lower(): member for member in known.members}
    found: list[str] = []
    for node in said:
        member = spelled.get(node.name.lower())
        if member is None:
            message = f"{word}: unknown member {node.name[:100]}{did_you_mean(node.name, known.members)}"
            raise error_at(f"{message} (members with data: {', '.join(known.members)})", text, node)
        if member in found:
            raise error_at(f"{word}: member {member} stands there twice", text, node)
        found.append(member)
    return tuple(found)


def _buckets(said: TableDefinition, members: int, text: str) -> int | None:
    buckets = None
    for name, value in said.options:
        option = name.name.lower()
        if option not in _OPTIONS:
            advice = f"{did_you_mean(option, _OPTIONS)} (options: {', '.join(_OPTIONS)})"
            raise error_at(f"WITH: unknown option {name.name[:100]}{advice}", text, name)
        if buckets is not None:
            raise error_at(f"WITH: option {option} stands there twice", text, name)
        if not said.distributed:
            raise error_at("WITH: a table that is DISTRIBUTED GLOBALLY has no buckets", text, name)
        buckets = int(value.text) if value.text.isdecimal() else 0
        if not members <= buckets <= OWN_BUCKETS:
            message = f"WITH: buckets is a number from {members} (one a member) to {OWN_BUCKETS}"
            raise sql_error(message, text, value.start, value.end)
    return buckets


def alter_table(grammar: ChangeGrammar, table: OwnTable, text: str) -> AlterTable:
    """What stands behind the table's name."""
    table = numbered(table)
    if grammar.take_words("ADD"):
        changed = _added(table, *grammar.added(), text)
        said = "ADD COLUMN"
    elif grammar.take_words("DROP"):
        changed = _dropped(table, *grammar.dropped(), text)
        said = "DROP COLUMN"
    elif grammar.take_words("RENAME"):
        changed = _renamed(table, *grammar.renamed(), text)
        said = "RENAME COLUMN"
    else:
        grammar.fail("expected ADD COLUMN, DROP COLUMN or RENAME COLUMN")
    grammar.ended()
    return AlterTable(table, changed, said)


def _added(table: OwnTable, said: list[Defined], if_not_exists: bool, text: str) -> OwnTable:
    if if_not_exists:
        said = [defined for defined in said if column_place(table, defined.name.name) is None]
    columns = _columns(said, table.columns, text)
    for column, defined in zip(columns, said, strict=True):
        _check_default(column, defined, text)
        if not column.is_nullable and column.default is None:
            message = f"column {column.name} is NOT NULL, and rows that are there have no value: give it a DEFAULT"
            raise error_at(message, text, defined.name)
    return msgspec.structs.replace(table, columns=(*table.columns, *columns))


def _dropped(table: OwnTable, names: list[exp.Identifier], if_exists: bool, text: str) -> OwnTable:
    keys = {name.lower() for name in table.primary_key}
    gone: set[int] = set()
    for name in names:
        place = column_place(table, name.name)
        if place is None and if_exists:
            continue
        if place is None:
            raise _no_column(table, name, text)
        if name.name.lower() in keys:
            raise error_at(f"column {name.name} is part of the PRIMARY KEY, and stays", text, name)
        gone.add(place)
    left = tuple(column for place, column in enumerate(table.columns) if place not in gone)
    return msgspec.structs.replace(table, columns=left)


def _renamed(table: OwnTable, old: exp.Identifier, new: exp.Identifier, text: str) -> OwnTable:
    place, taken = column_place(table, old.name), column_place(table, new.name)
    if place is None:
        raise _no_column(table, old, text)
    if taken is not None and taken != place:
        raise error_at(f"table {table.name} has a column {table.columns[taken].name} already", text, new)
    if not new.name.isprintable() or len(new.name) > OWN_NAME_CHARS:
        raise error_at(f"a column's name has at most {OWN_NAME_CHARS} printable characters", text, new)
    before = table.columns[place].name

    def spelled(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(new.name if name == before else name for name in names)

    columns = list(table.columns)
    columns[place] = msgspec.structs.replace(columns[place], name=new.name)
    return msgspec.structs.replace(
        table,
        columns=tuple(columns),
        primary_key=spelled(table.primary_key),
        distributed_by=spelled(table.distributed_by),
    )


def _no_column(table: OwnTable, name: exp.Identifier, text: str) -> SqlError:
    nearest = did_you_mean(name.name, [column.name for column in table.columns])
    return error_at(f"table {table.name} has no column {name.name[:100]}{nearest}", text, name)


def shown_table(table: OwnTable) -> str:
    """What SHOW CREATE TABLE tells: a statement that makes the same table."""
    columns = []
    for column in table.columns:
        parts = [_name(column.name), column.type.upper() if "<" not in column.type else column.type]
        parts += [] if column.is_nullable else ["NOT NULL"]
        parts += [] if column.default is None else ["DEFAULT", column.default]
        columns.append("  " + " ".join(parts))
    lines = [f"CREATE TABLE {_name(table.name)} (", ",\n".join(columns), f") PRIMARY KEY ({_names(table.primary_key)})"]
    if not table.distributed_by:
        return "\n".join([*lines, "DISTRIBUTED GLOBALLY"])
    lines.append(f"DISTRIBUTED BY ({_names(table.distributed_by)}) IN ({_names(table.members)})")
    return "\n".join([*lines, f"WITH (buckets = {table.buckets})"])


def _name(name: str) -> str:
    return render(exp.Identifier(this=name, quoted=True))


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(map(_name, names))
