"""Databases and stores in skerry.yaml: the documents' examples are right, and mistakes are told without a secret."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skerry.config import parse
from skerry.model.errors import ConfigError
from skerry.model.sources import Database, JdbcTable, S3Store, Secret

DOCS = Path(__file__).parents[3] / "docs"


def example(name: str) -> str:
    found = re.search(r"```yaml\n(.*?)```", (DOCS / name).read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_of_databases() -> None:
    tables = parse(example("databases.md"), base_dir="/etc").members["oslo"].tables
    shop = Database("shop", "jdbc:postgresql://db.oslo.example:5432/shop", "reader", Secret(env="SHOP_PASSWORD"))
    assert tables["customer"].source == JdbcTable(shop, ("sales", "customer"))
    assert tables["orders"].source == JdbcTable(shop, ("sales", "orders"), "id", 8)
    assert not tables["orders"].is_listed


def test_the_example_of_stores() -> None:
    members = parse(example("object-storage.md"), base_dir="/etc").members
    oslo, bergen = members["oslo"].spark, members["bergen"].spark
    assert oslo is not None
    assert bergen is not None
    keys = Secret(env="LAKE_KEY"), Secret(file="/etc/lake.secret")
    assert oslo.storage.s3 == S3Store("", "eu-north-1", access_key=keys[0], secret_key=keys[1])
    assert bergen.storage.s3.path_style
    assert [table.path for table in members["oslo"].tables.values()] == [
        "s3a://lake/tables/orders",
        "s3a://logs/visits/2026-*/*.csv",
    ]
    assert members["bergen"].tables["orders"].path == "s3a://bergen/orders"


TEXT = """
cluster: c
members:
  oslo:
    address: 127.0.0.1:7101
    spark: {spark}
    databases: {{shop: {database}}}
    storage: {storage}
    tables: {{t: {table}}}
"""
RIGHT = {
    "spark": "{}",
    "database": "{jdbc: 'jdbc:postgresql://h/d', user: u, password: {env: P}}",
    "storage": "{s3: {access_key: {env: K}, secret_key: {env: S}}}",
    "table": "{database: shop, table: sales.t}",
}

MISTAKES = {
    "a password that stands there": ("database", "{jdbc: 'jdbc:postgresql://h/d', user: u, password: Tiger}", "env"),
    "a password in the URL": ("database", "{jdbc: 'jdbc:postgresql://h/d?user=u&password=Tiger'}", "holds a user or"),
    "a password in brackets": (
        "database",
        "{jdbc: 'jdbc:mysql://address=(host=h)(password=Tiger)/d'}",
        "holds a user or a password",
    ),
    "a password behind a comma": ("database", "{jdbc: 'jdbc:mysql://(host=h,password=Tiger)/d'}", "holds a user or"),
    "a password before the host": ("database", "{jdbc: 'jdbc:postgresql://u:Tiger@h/d'}", "holds a user or a password"),
    "no JDBC": ("database", "{jdbc: 'postgresql://h/d'}", "is not a JDBC URL"),
    "a password alone": ("database", "{jdbc: 'jdbc:postgresql://h/d', password: {env: P}}", "needs user"),
    "no such database": ("table", "{database: shpo, table: t}", "no database shpo; did you mean shop?"),
    "no table": ("table", "{database: shop}", "table: missing"),
    "a path beside it": ("table", "{database: shop, table: t, path: x}", "a table of a database has no path"),
    "parts without a column": ("table", "{database: shop, table: t, partition: {parts: 3}}", "column: missing"),
    "parts of files": (
        "table",
        "{format: parquet, path: x, partition: {column: a, parts: 3}}",
        "only a table of a data",
    ),
    "no parts": ("table", "{database: shop, table: t, partition: {column: a, parts: 0}}", "must be at least 1"),
    "on Sail": ("spark", "{sail: true}", "Sail reads no databases"),
    "a key that stands there": ("storage", "{s3: {access_key: Tiger, secret_key: {env: S}}}", "env"),
    "half of the keys": ("storage", "{s3: {access_key: {env: K}}}", "go together"),
    "keys for nobody": (
        "storage",
        "{s3: {anonymous: true, access_key: {env: K}, secret_key: {env: S}}}",
        "without keys",
    ),
    "no endpoint": ("storage", "{s3: {endpoint: 'h:9000'}}", "is not an endpoint"),
    "keys in the endpoint": ("storage", "{s3: {endpoint: 'https://k:Tiger@h'}}", "is not an endpoint"),
    "another store": ("storage", "{s3x: {}}", "unknown key"),
    "a log in a store": ("table", "{format: delta, path: 's3a://b/c'}", "is not read yet"),
    "up from a bucket": ("table", "{format: parquet, path: 's3a://b/../c'}", "leads outside its bucket"),
    "no bucket": ("table", "{format: parquet, path: 's3a:///c'}", "names no bucket"),
    "keys in a path": ("table", "{format: parquet, path: 's3a://k:Tiger@b/c'}", "names no bucket, or holds a password"),
    "another scheme": ("table", "{format: parquet, path: 's3://b/c'}", "nor one of s3a://"),
}


def test_it_is_right_without_mistakes() -> None:
    parse(TEXT.format(**RIGHT))


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_told_and_no_secret(what: str) -> None:
    key, text, words = MISTAKES[what]
    with pytest.raises(ConfigError) as caught:
        parse(TEXT.format(**RIGHT | {key: text}))
    assert words in caught.value.message
    assert "Tiger" not in caught.value.message
