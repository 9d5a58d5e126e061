"""The walk over skerry.yaml: from nodes to a Config, noting every mistake on the way."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from skerry.config import rules
from skerry.config.access import read_access
from skerry.config.audit import read_audit
from skerry.config.databases import read_database, read_database_table
from skerry.config.lakes import (
    Engine,
    check_package,
    check_versioned,
    read_catalog_table,
    read_catalogs,
    read_packages,
    read_schemas,
    read_views,
)
from skerry.config.limits import read_bytes, read_limits
from skerry.config.storage import read_storage
from skerry.config.yaml_nodes import Fields, Item, Notes, Refused, compose, shown
from skerry.model.columns import difference
from skerry.model.config import (
    Config,
    FaultPolicy,
    Leaves,
    Link,
    MemberConfig,
    Role,
    SinkConfig,
    SparkConfig,
    TableConfig,
    TlsFiles,
    ViewConfig,
)
from skerry.model.errors import ConfigError
from skerry.model.limits import CONFIG_BYTES, SAIL_MEMORY_LEAST
from skerry.model.nearest import did_you_mean
from skerry.model.sources import Database, PlainFiles, VersionedFolder, is_remote, url_of
from skerry.model.table import Column

TOP = (
    *("cluster", "data_root", "members", "links", "fault_policy", "limits", "tls", "insecure", "state"),
    *("log_format", "log_sql", "access", "audit", "secret", "views"),
)
MEMBER = (
    *(
        "address",
        "role",
        "spark",
        "capacity",
        "tables",
        "catalogs",
        "schemas",
        "views",
        "sinks",
        "databases",
        "storage",
    ),
    *("tls", "insecure", "data_ports"),
)
TLS = ("certificate", "key", "authority", "client_certificates")
SPARK = ("master", "remote", "sail", "memory", "conf", "packages", "jars")
TABLE = ("format", "path", "table", "database", "partition", "options", "columns", "leaves")
SINK = ("format", "path", "options")
LINK = ("from", "to", "between", "mbit", "ms", "usd_per_gb", "codec", "query_bytes")
CAPACITY = 16
CAPACITY_MAX = 10_000


def load(path: str | os.PathLike[str]) -> Config:
    """The configuration in a file; ConfigError carries every mistake, one a line."""
    return read_file(path)[0]


def parse(text: str, name: str = "skerry.yaml", base_dir: str | os.PathLike[str] = ".") -> Config:
    """The configuration in a text; `data_root` is relative to `base_dir`."""
    return _read(text, name, base_dir)[0]


def read_file(path: str | os.PathLike[str]) -> tuple[Config, Notes]:
    """Like load, with the places of everything, for checks that look further than the file."""
    name = os.fspath(path)
    try:
        with open(path, "rb") as file:
            data = file.read(CONFIG_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        hint = "name the file, or go to the folder that has it" if isinstance(error, FileNotFoundError) else ""
        raise ConfigError(f"{name}: cannot be read: {reason.lower()}", suggestion=hint) from None
    if len(data) > CONFIG_BYTES:
        raise ConfigError(f"{name}: larger than {CONFIG_BYTES} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        column = error.start - data[: error.start].rfind(b"\n")
        raise ConfigError(f"{name}:{line}:{column}: not YAML: not UTF-8") from None
    return _read(text, name, Path(path).parent)


def _read(text: str, name: str, base_dir: str | os.PathLike[str]) -> tuple[Config, Notes]:
    notes = Notes(name)
    root = compose(text, notes)
    config = _config(root, base_dir, f"{Path(name).stem}.secret")
    notes.raise_if_any()
    return config, notes


def _config(root: Item, base_dir: str | os.PathLike[str], usual_secret: str) -> Config:
    top = root.fields(TOP, required=("cluster", "members"))
    written_root = top.text("data_root", rules.any_path, ".")
    data_root = written_root if is_remote(written_root) else os.path.realpath(os.path.join(base_dir, written_root))
    shared = _Shared(data_root, written_root, os.fspath(base_dir), *_protection(top, os.fspath(base_dir)))
    members = {
        name: _member(name, item, shared)
        for name, item in top.entries("members", same_in_any_case=True)
        if _good_key(item, name, rules.plain_name)
    }
    _check_members(members, root, top)
    state = top.text("state", rules.local_path, "")
    # Where certificates prove who is a member, a secret is asked for only if one is named.
    has_tls = all(member.tls is not None for member in members.values())
    secret = top.text("secret", rules.local_path, "" if has_tls else usual_secret)
    links_item = top.get("links")
    links = _links(links_item.elements(), members) if links_item else ()
    return Config(
        cluster=top.text("cluster", rules.cluster_name, ""),
        data_root=data_root,
        members=members,
        links=links,
        limits=read_limits(top),
        fault_policy=top.text("fault_policy", rules.fault_policy, FaultPolicy.WAIT),
        state=os.path.abspath(os.path.join(base_dir, state)) if state else "",
        secret=os.path.abspath(os.path.join(base_dir, secret)) if secret else "",
        log_format=top.text("log_format", rules.log_format, "text"),
        log_sql=log_sql.flag() if (log_sql := top.get("log_sql")) else False,
        access=read_access(top, os.fspath(base_dir), members),
        audit=read_audit(top, os.fspath(base_dir)),
        views=_views(top, members, root),
    )


def _views(top: Fields, members: dict[str, MemberConfig], root: Item) -> dict[str, ViewConfig]:
    """Those of the cluster: no member has a table or a view of that name, or nobody knew which is meant."""
    views = read_views("", top)
    for name in views:
        for member in members.values():
            if name.lower() in {each.lower() for each in (*member.tables, *member.views)}:
                root.notes.note(f"views.{name}", f"members.{member.name} has a table or a view of that name")
    return views


def _good_key(item: Item, key: str, rule: Callable[[str], object]) -> bool:
    try:
        rule(key)
    except Refused as refused:
        item.wrong_key(str(refused))
        return False
    return True


class _Shared(NamedTuple):
    """What all members have in common."""

    data_root: str
    written_root: str
    base_dir: str
    tls: TlsFiles | None
    insecure: bool


# --- members -------------------------------------------------------------------------------------
def _member(name: str, item: Item, shared: _Shared) -> MemberConfig:
    fields = item.fields(MEMBER, required=("address",))
    role = fields.text("role", rules.role, Role.DATA)
    if role is Role.LITE:
        for key in ("spark", "tables", "sinks", "catalogs", "schemas", "databases", "storage"):
            refused = fields.get(key)
            if refused:
                refused.wrong_key(f"a lite member has no {key}; use role: data")
    capacity = fields.get("capacity")
    spark_item = fields.get("spark")
    spark = _spark(spark_item, shared.base_dir) if spark_item else SparkConfig(master="local[*]")
    catalogs = read_catalogs(fields, shared.base_dir, engine_of(spark))
    spark = msgspec.structs.replace(spark, catalogs=catalogs, storage=read_storage(fields, shared.base_dir))
    tls, insecure = _protection(fields, shared.base_dir)
    databases = {
        database: read_database(database, each, shared.base_dir)
        for database, each in fields.entries("databases", same_in_any_case=True)
        if _good_key(each, database, rules.plain_name)
    }
    return MemberConfig(
        name=name,
        address=fields.text("address", rules.address, ""),
        role=role,
        spark=None if role is Role.LITE else spark,
        capacity=capacity.whole(1, CAPACITY_MAX) if capacity else CAPACITY,
        tables={
            table: _table(name, table, each, shared, spark, databases)
            for table, each in fields.entries("tables", same_in_any_case=True)
            if _good_key(each, table, rules.plain_name)
        },
        sinks={
            sink: _sink(name, sink, each, shared.data_root)
            for sink, each in fields.entries("sinks", same_in_any_case=True)
            if _good_key(each, sink, rules.plain_name)
        },
        tls=tls or shared.tls,
        insecure=insecure or shared.insecure,
        data_ports=fields.text("data_ports", rules.port_range, None),
        schemas=read_schemas(name, fields, spark.catalogs, engine_of(spark)),
        views=read_views(name, fields),
    )


def engine_of(spark: SparkConfig) -> Engine:
    return Engine(spark.sail, bool(spark.master and spark.master.startswith("local")))


def _protection(fields: Fields, base_dir: str) -> tuple[TlsFiles | None, bool]:
    """`tls` (paths are relative to the file) and `insecure`, of all members or of one."""
    insecure = fields.get("insecure")
    item = fields.get("tls")
    tls = None
    if item is not None:
        files = item.fields(TLS, required=TLS[:3])
        texts = {key: files.text(key, rules.local_path, "") for key in TLS[:3]}
        paths = {key: os.path.join(base_dir, text) if text else "" for key, text in texts.items()}
        clients = files.get("client_certificates")
        tls = TlsFiles(**paths, client_certificates=clients.flag() if clients else False)
    return tls, insecure.flag() if insecure else False


def _spark(item: Item, base_dir: str) -> SparkConfig:
    fields = item.fields(SPARK)
    chosen = [key for key in ("master", "remote", "sail") if key in fields]
    if len(chosen) > 1:
        item.wrong(f"more than one of {', '.join(chosen)}; keep one")
    sail = fields.get("sail")
    is_sail = sail.flag() if sail else False
    if sail and not is_sail and sail.kind() == "true or false":
        sail.wrong("write sail: true, or leave it out")
    memory = fields.get("memory")
    if memory and not is_sail:
        memory.wrong("only Sail's process has a limit of its own; for Apache Spark set spark.driver.memory in conf")
    master = fields.text("master", rules.master, None if chosen else "local[*]")
    rule = rules.conf_key_embedded if master and master.startswith("local") else rules.conf_key
    spark = SparkConfig(master=master, remote=fields.text("remote", rules.remote, None), sail=is_sail)
    packages, jars = read_packages(fields, base_dir, engine_of(spark))
    return msgspec.structs.replace(
        spark,
        memory_bytes=read_bytes(memory, SAIL_MEMORY_LEAST, 2**63 - 1) if memory else 0,
        conf={key: each.setting() for key, each in fields.entries("conf") if _good_key(each, key, rule)},
        packages=packages,
        jars=jars,
    )


def _table(
    member: str, name: str, item: Item, shared: _Shared, spark: SparkConfig, databases: Mapping[str, Database]
) -> TableConfig:
    engine, is_sail = engine_of(spark), spark.sail
    fields = item.fields(TABLE)
    if "database" in fields:
        item.require(fields, ("table",))
        return read_database_table(member, name, fields, _columns(fields), databases, is_sail=is_sail)
    if (partition := fields.get("partition")) is not None:
        partition.wrong_key("only a table of a database is read in parts")
    if "table" in fields:
        return read_catalog_table(member, name, fields, _options(fields), spark.catalogs, engine)
    item.require(fields, ("format", "path"))
    path = fields.text("path", rules.path_inside(shared.data_root, globs=True), "")
    if is_remote(path) or is_remote(shared.data_root):
        path = url_of(shared.data_root, path)
    format_ = fields.text("format", rules.sail_format if is_sail else rules.format_name, "")
    is_versioned = format_ in rules.FORMATS_VERSIONED
    if is_versioned:
        check_versioned(fields, format_, spark)
        if is_remote(path):
            item.wrong(f"a {format_} table in a store is not read yet; read its table from a disk of the site")
    elif format_ == "avro":
        check_package(fields, "avro", spark)
    return TableConfig(
        member=member,
        name=name,
        format=format_,
        path=path,
        options=_options(fields, format_ if is_sail else ""),
        columns=_columns(fields),
        shown_path=path if is_remote(path) else os.path.normpath(os.path.join(shared.written_root, path)),
        leaves=fields.text("leaves", rules.leaves, Leaves.FREELY),
        source=VersionedFolder() if is_versioned else PlainFiles(),
    )


def _sink(member: str, name: str, item: Item, data_root: str) -> SinkConfig:
    fields = item.fields(SINK, required=("format", "path"))
    return SinkConfig(
        member=member,
        name=name,
        format=fields.text("format", rules.sink_format, ""),
        path=fields.text("path", rules.path_inside(data_root, globs=False), ""),
        options=_options(fields),
    )


def _options(fields: Fields, sail_format: str = "") -> dict[str, str]:
    found = {}
    for key, item in fields.entries("options", same_in_any_case=True):
        if _good_key(item, key, rules.option_key):
            found[key] = item.setting()
            if sail_format:
                _good_key(item, key, lambda key: rules.sail_option(sail_format, key, found[key]))
    return found


def _columns(fields: Fields) -> tuple[Column, ...]:
    item = fields.get("columns")
    if item is None:
        return ()
    entries = item.entries(same_in_any_case=True)
    if not entries and item.kind() == "a mapping":
        item.wrong("is empty; name every column, or leave it out and Spark finds them out")
    # `{a: decimal(15,2)}` is two keys to YAML, `a` and `2)`; one message for both will do.
    entries = [(name, each) for name, each in entries if not (name.endswith((")", ">")) and each.kind() == "nothing")]
    for name, each in entries:
        if not name.strip() or not name.isprintable():
            each.wrong_key("is not a name for a column")
    return tuple(Column(name, each.text(rules.column_type, "")) for name, each in entries)


def _check_members(members: dict[str, MemberConfig], root: Item, top: Fields) -> None:
    """What only shows when members are seen together."""
    item = top.get("members")
    # A member that was refused for its name may have been the data member.
    all_read = item is not None and item.kind() == "a mapping" and len(members) == len(item.node.value)
    if item is not None and all_read and all(member.role is Role.LITE for member in members.values()):
        item.wrong_key("no data member; at least one member needs role: data")
    taken: dict[str, str] = {}
    for member in members.values():
        endpoint = rules.same_endpoint(member.address)
        if endpoint in taken:
            path = f"members.{member.name}.address"
            root.notes.note(path, f"{member.address} is the address of {taken[endpoint]} too")
        elif endpoint:
            taken[endpoint] = member.name
    secured = {member.tls is not None for member in members.values()}
    for member in members.values() if len(secured) > 1 else ():
        if member.tls is None:
            root.notes.note(f"members.{member.name}", "has no tls, and others have; give it to all, or none, of them")
    _check_names(members, root)
    for first, other, how in declared_differences(members):
        text = f"not the columns that {first.member} has: {how}"
        root.notes.note(f"{other.key}.columns", text)


def _check_names(members: dict[str, MemberConfig], root: Item) -> None:
    """A name in SQL stands for one thing."""
    known = {name.lower() for name in members}
    for member in members.values():
        tables = {name.lower() for name in member.tables}
        for name in member.schemas:
            if name.lower() in known:
                root.notes.note(f"members.{member.name}.schemas.{name}", f"{name} is a member, and so a schema already")
        for name in member.views:
            if name.lower() in tables:
                root.notes.note(f"members.{member.name}.views.{name}", f"{name} is a table of this member already")


def declared_differences(members: dict[str, MemberConfig]) -> Iterator[tuple[TableConfig, TableConfig, str]]:
    """Pairs of parts of one table whose declared columns differ, each later part against the first."""
    first: dict[str, TableConfig] = {}
    for member in members.values():
        for table in member.tables.values():
            if not table.columns or not all(column.type for column in table.columns):
                continue
            known = first.setdefault(table.name.lower(), table)
            how = difference(table.columns, known.columns)
            if how:
                yield known, table, how


# --- links ---------------------------------------------------------------------------------------
def _links(items: list[Item], members: dict[str, MemberConfig]) -> tuple[Link, ...]:
    found: dict[tuple[str, str], Link] = {}
    for item in items:
        fields = item.fields(LINK, required=("mbit",))
        mbit, ms, usd = fields.get("mbit"), fields.get("ms"), fields.get("usd_per_gb")
        speed = mbit.number(0, above=True) if mbit else 0.0
        delay = ms.number(0) if ms else 0.0
        price = usd.number(0) if usd else 0.0
        codec = fields.text("codec", rules.codec, "auto")
        query_bytes = fields.get("query_bytes")
        budget = read_bytes(query_bytes, 0, 2**63 - 1) if query_bytes else None
        for sender, receiver in _ends(item, fields, members):
            if (sender, receiver) in found:
                item.wrong(f"duplicate link from {sender} to {receiver}")
            found[sender, receiver] = Link(sender, receiver, speed, delay, price, codec, budget)
    return tuple(found.values())


def _ends(item: Item, fields: Fields, members: dict[str, MemberConfig]) -> list[tuple[str, str]]:
    """The directions that one entry of `links` speaks of."""
    known = {name.lower(): name for name in members}

    def known_member(text: str) -> str:
        name = known.get(text.lower())
        if name is None:
            raise Refused(f"no member {shown(text)}{did_you_mean(text, members)}")
        return name

    between = fields.get("between")
    if between is not None:
        if "from" in fields or "to" in fields:
            item.wrong("between says both directions; leave out from and to")
        pair = between.elements()
        if between.kind() == "a list" and len(pair) != 2:
            between.wrong(f"expected two members, not {len(pair)}")
        names = [each.text(known_member, "") for each in pair]
    else:
        for key in ("from", "to"):
            if key not in fields and item.kind() == "a mapping":
                item.notes.at(item.place, f"{item.path}.{key}", "missing; a link has from and to, or between: [a, b]")
        names = [fields.text(key, known_member, "") for key in ("from", "to")]
    if len(names) != 2 or not all(names):
        return []
    sender, receiver = names
    if sender == receiver:
        item.wrong(f"a link from {sender} to itself")
        return []
    return [(sender, receiver), (receiver, sender)] if between is not None else [(sender, receiver)]
