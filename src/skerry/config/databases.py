"""`databases:` of a member, and the tables that are in one."""

from __future__ import annotations

import re
from collections.abc import Mapping

from skerry.config import rules
from skerry.config.secrets import read_place
from skerry.config.yaml_nodes import Fields, Item, Refused, shown
from skerry.model.config import Leaves, TableConfig
from skerry.model.limits import JDBC_PARTS_MAX
from skerry.model.nearest import did_you_mean
from skerry.model.sources import Database, JdbcTable
from skerry.model.table import Column

DATABASE = ("jdbc", "user", "password", "driver")
PARTITION = ("column", "parts")
# What a URL must not hold: whoever sees this file, or a message about the database, would know it.
_SECRETS = re.compile(r"[?&;(,](user(name)?|[\w.]*(password|passwd|pwd|secret|token)[\w.]*)=", re.IGNORECASE)
_LOGIN = re.compile(r"[:/][^:/@?]+@")


def read_database(name: str, item: Item, base_dir: str) -> Database:
    fields = item.fields(DATABASE, required=("jdbc",))
    password = fields.get("password")
    if password is not None and "user" not in fields:
        password.wrong_key("needs user, too")
    return Database(
        name=name,
        url=fields.text("jdbc", jdbc_url, "jdbc:postgresql:"),
        user=fields.text("user", rules.some_text, ""),
        password=read_place(password, base_dir) if password is not None else None,
        driver=fields.text("driver", rules.java_class, ""),
    )


def jdbc_url(text: str) -> str:
    if not re.fullmatch(r"jdbc:[A-Za-z0-9]+:\S+", text):
        raise Refused("is not a JDBC URL; write jdbc:postgresql://host:port/database")
    if _SECRETS.search(text) or _LOGIN.search(text):
        raise Refused("holds a user or a password; write them as user and password beside it")
    return text


def read_database_table(
    member: str,
    name: str,
    fields: Fields,
    columns: tuple[Column, ...],
    databases: Mapping[str, Database],
    *,
    is_sail: bool,
) -> TableConfig:
    for key in ("format", "path", "options"):
        if (refused := fields.get(key)) is not None:
            refused.wrong_key(f"a table of a database has no {key}")
    source = _source(fields, databases, is_sail=is_sail)
    return TableConfig(
        member=member,
        name=name,
        format="jdbc",
        path="",
        columns=columns,
        shown_path=f"{'.'.join(source.name)} of database {source.database.name}",
        leaves=fields.text("leaves", rules.leaves, Leaves.FREELY),
        source=source,
    )


def _source(fields: Fields, databases: Mapping[str, Database], *, is_sail: bool) -> JdbcTable:
    """`database: shop, table: sales.orders, partition: {column: id, parts: 8}`."""
    named, table = fields.get("database"), fields.get("table")
    assert named is not None
    if is_sail:
        named.wrong_key("Sail reads no databases; use Apache Spark at this member")

    def known(text: str) -> Database:
        found = next((each for name, each in databases.items() if name.lower() == text.lower()), None)
        if found is None:
            raise Refused(f"no database {shown(text)}{did_you_mean(text, databases) or ' under databases'}")
        return found

    nowhere = Database("", "jdbc:postgresql:")
    database = named.text(known, nowhere)
    rule = rules.dotted_name if database.kind == "postgresql" else plain_parts
    name: tuple[str, ...] = table.text(rule, ("",)) if table is not None else ("",)
    item = fields.get("partition")
    if item is None:
        return JdbcTable(database, name)
    partition = item.fields(PARTITION, required=PARTITION)
    if database.kind != "postgresql":
        item.wrong_key("only a table of PostgreSQL is read in parts")
    parts = partition.get("parts")
    column = partition.text("column", rules.some_text, "")
    return JdbcTable(database, name, column, parts.whole(1, JDBC_PARTS_MAX) if parts else 1)


def plain_parts(text: str) -> tuple[str, ...]:
    """Names that need no quotes: other databases quote in other ways."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*){0,2}", text):
        raise Refused(f"{shown(text)} is not the name of a table (letters, digits and _, with points between)")
    return tuple(text.split("."))
