"""What a site reads besides files: `catalogs`, `schemas`, `views`, and the `packages` and `jars` of its Spark."""

from __future__ import annotations

import os
from typing import NamedTuple

from skerry.config import rules
from skerry.config.secrets import read_place
from skerry.config.yaml_nodes import Fields, Item, Refused, shown
from skerry.model.config import CatalogConfig, Leaves, SchemaConfig, SparkConfig, TableConfig, ViewConfig
from skerry.model.nearest import did_you_mean
from skerry.model.sources import CatalogTable

CATALOG = ("type", "class", "settings", "secrets")
SCHEMA = ("catalog", "namespace", "leaves")
# Of a table of a catalog: what else a table may have, its catalog knows.
CATALOG_HAS = ("format", "path", "columns")
SESSION = "spark_catalog"


class Engine(NamedTuple):
    """What decides which sources a member's Spark has."""

    is_sail: bool
    is_embedded: bool


def read_catalogs(fields: Fields, base_dir: str, engine: Engine) -> tuple[CatalogConfig, ...]:
    item = fields.get("catalogs")
    if item is not None and engine.is_sail:
        item.wrong_key("Sail has no catalogs that Skerry reads; use Apache Spark at this member, or name files by path")
        return ()
    found = []
    for name, each in fields.entries("catalogs", same_in_any_case=True):
        try:
            found.append(_catalog(rules.catalog_name(name), each, base_dir))
        except Refused as refused:
            each.wrong_key(str(refused))
    return tuple(found)


def _catalog(name: str, item: Item, base_dir: str) -> CatalogConfig:
    fields = item.fields(CATALOG)
    if ("type" in fields) == ("class" in fields):
        item.wrong("needs type, one of " + ", ".join(rules.CATALOG_TYPES) + ", or class, and not both")
    kind = fields.text("type", rules.catalog_type, "") or fields.text("class", rules.java_class, "")
    if (kind == "hive") != (name == SESSION) and "type" in fields and kind:
        if kind == "hive":
            raise Refused(f"the Hive metastore is Spark's session catalog: call it {SESSION}")
        raise Refused(f"{SESSION} is Spark's session catalog: give it type: hive, or a class")
    settings = {key: each.setting() for key, each in fields.entries("settings") if _is_key(each, key)}
    secrets = {key: read_place(each, base_dir) for key, each in fields.entries("secrets") if _is_key(each, key)}
    for key in settings.keys() & secrets.keys():
        item.wrong(f"{key} is in settings and in secrets; keep one")
    return CatalogConfig(name, kind, settings, secrets)


def _is_key(item: Item, key: str) -> bool:
    try:
        rules.catalog_key(key)
    except Refused as refused:
        item.wrong_key(str(refused))
        return False
    return True


def read_schemas(
    member: str, fields: Fields, catalogs: tuple[CatalogConfig, ...], engine: Engine
) -> dict[str, SchemaConfig]:
    item = fields.get("schemas")
    if item is not None and engine.is_sail:
        item.wrong_key("Sail has no catalogs that Skerry reads; use Apache Spark at this member")
        return {}
    found = {}
    for name, each in fields.entries("schemas", same_in_any_case=True):
        try:
            rules.plain_name(name)
        except Refused as refused:
            each.wrong_key(str(refused))
            continue
        inside = each.fields(SCHEMA, required=("namespace",))
        catalog = inside.text("catalog", rules.catalog_name, SESSION)
        _check_catalog(inside.get("catalog"), catalog, catalogs)
        namespace: tuple[str, ...] = inside.text("namespace", rules.dotted_name, ())
        leaves = inside.text("leaves", rules.leaves, Leaves.FREELY)
        found[name] = SchemaConfig(member, name, (catalog, *namespace), leaves)
    return found


def _check_catalog(item: Item | None, catalog: str, catalogs: tuple[CatalogConfig, ...]) -> None:
    known = [*(each.name for each in catalogs), SESSION]
    if item is not None and catalog.lower() not in [each.lower() for each in known]:
        item.wrong(
            f"no catalog {shown(catalog)}{did_you_mean(catalog, known) or '; this member has ' + ', '.join(known)}"
        )


def read_views(member: str, fields: Fields) -> dict[str, ViewConfig]:
    found = {}
    for name, each in fields.entries("views", same_in_any_case=True):
        try:
            rules.plain_name(name)
        except Refused as refused:
            each.wrong_key(str(refused))
            continue
        found[name] = ViewConfig(member, name, each.text(rules.some_text, ""))
    return found


def read_catalog_table(
    member: str, name: str, fields: Fields, options: dict[str, str], catalogs: tuple[CatalogConfig, ...], engine: Engine
) -> TableConfig:
    """`table: lake.sales.orders`."""
    named = fields.get("table")
    assert named is not None
    for key in CATALOG_HAS:
        if (refused := fields.get(key)) is not None:
            refused.wrong_key(f"a table of a catalog has no {key}: the catalog knows it")
    if engine.is_sail:
        named.wrong_key(
            "Sail has no catalogs that Skerry reads; use Apache Spark at this member, or name files by path"
        )
    parts: tuple[str, ...] = named.text(rules.dotted_name, ("",))
    if len(parts) > 2:
        _check_catalog(named, parts[0], catalogs)
    return TableConfig(
        member=member,
        name=name,
        format="catalog",
        path="",
        options=options,
        shown_path=".".join(parts),
        leaves=fields.text("leaves", rules.leaves, Leaves.FREELY),
        source=CatalogTable(parts if len(parts) > 2 else (SESSION, *parts)),
    )


def check_versioned(fields: Fields, format_: str, spark: SparkConfig) -> None:
    """What a folder with a log of its own does not go with."""
    path = fields.get("path")
    if path is not None:
        path.text(rules.versioned_path, "")
    for key in ("columns", "options"):
        if (refused := fields.get(key)) is not None:
            refused.wrong_key(f"the log of a {format_} table says all of that")
    check_package(fields, format_, spark)


def check_package(fields: Fields, format_: str, spark: SparkConfig) -> None:
    """An embedded Apache Spark reads some formats with a jar alone; what a cluster has is not known here."""
    artifact, example = rules.PACKAGES[format_]
    names = (*(package.split(":")[1] for package in spark.packages if package), *map(os.path.basename, spark.jars))
    item = fields.get("format")
    is_embedded = bool(spark.master and spark.master.startswith("local"))
    if item is not None and is_embedded and not any(name.startswith(artifact) for name in names):
        item.wrong(f"Spark reads {format_} with a package; add {example} to spark.packages of this member, or its jar")


def read_packages(fields: Fields, base_dir: str, engine: Engine) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of `spark`: coordinates, and absolute paths of jars."""
    items = {key: fields.get(key) for key in ("packages", "jars")}
    for key, item in items.items():
        if item is not None and not engine.is_embedded:
            item.wrong_key(
                f"only an embedded Apache Spark (master: local[…]) takes {key}; give a cluster its jars itself"
            )
    packages, jars = (item.elements() if item is not None else [] for item in items.values())
    paths = (each.text(rules.local_path, "") for each in jars)
    return (
        tuple(each.text(rules.coordinate, "") for each in packages),
        tuple(os.path.abspath(os.path.join(base_dir, path)) for path in paths if path),
    )
