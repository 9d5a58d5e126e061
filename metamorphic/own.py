"""Tables of our own beside files with the same rows: every query answers alike.

Each table is loaded from its files by statements, and left in one of three states by its name: all rows in logs, all in
Parquet files, or most in files and some of these changed since.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import yaml

import metamorphic.check as plain
from metamorphic.check import SCALE, World
from metamorphic.tables import KEYS, read_tables
from skerry.client.dbapi import Cursor
from skerry.config import load
from skerry.spark.engine import Engine
from skerry.spark.recycled import RecycledSail
from skerry.testing.cluster import LocalCluster
from skerry.testing.sites import write_config
from skerry.testing.topologies import ONE, Files, clusters, make_files

SITES, LITE = ("oslo", "bergen", "tromso"), ("kiosk",)
SOURCE = "_files"  # ends the names of the tables that the rows come from
GLOBAL = ("nation", "region")  # a copy at each member


@contextmanager
def world(root: Path, engine: Engine) -> Iterator[World]:
    """The oracle reads the files whole; the cluster has them by other names, and tables of our own by theirs."""
    files = make_files(root, SCALE)
    with ExitStack() as stack:
        oracle: plain.Oracle
        if isinstance(engine, RecycledSail):
            oracle = plain.OneSite(stack.enter_context(clusters(files, (ONE,), engine))[ONE.name])
        else:
            oracle = plain.oracle_of(engine, files)
        cluster = stack.enter_context(LocalCluster(load(str(_config(files))), engine=engine))
        with cluster.connect("kiosk") as connection, connection.cursor() as cursor:
            for number, table in enumerate(sorted(files.slices)):
                fill(cursor, table, number)
        yield World(read_tables(files), oracle, {"own": cluster})


def _config(files: Files) -> Path:
    """All files at oslo: what is asked for lies elsewhere."""
    tables = [msgspec.structs.replace(each, name=f"{each.name}{SOURCE}") for each in files.placed(ONE)]
    path = write_config(files.root / "own.yaml", files.root, tables, sites=SITES, lite=LITE)
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"state": "state"}, sort_keys=False))
    return path


def fill(cursor: Cursor, table: str, number: int) -> None:
    source, keys = f"{table}{SOURCE}", ", ".join(KEYS[table])
    types = {name: kind for name, kind, *_ in cursor.execute(f"DESCRIBE {source}").fetchall()}
    columns = ", ".join(f"`{name}` {kind}" for name, kind in types.items())
    spread = "GLOBALLY" if table in GLOBAL else f"BY ({KEYS[table][0]})"
    cursor.execute(f"CREATE TABLE {table} ({columns}) PRIMARY KEY ({keys}) DISTRIBUTED {spread}")
    first = f"pmod(hash({KEYS[table][0]}), 3)"
    if number % 3 == 2:  # most of it, some of it in vain
        cursor.execute(f"INSERT INTO {table} SELECT * FROM {source} WHERE {first} < 2")
        cursor.execute(f"FLUSH TABLE {table}")
        cursor.execute(f"DELETE FROM {table} WHERE {first} = 1")
        cursor.execute(f"INSERT INTO {table} SELECT * FROM {source} ON CONFLICT DO NOTHING")
    else:
        cursor.execute(f"INSERT INTO {table} SELECT * FROM {source}")
        if number % 3:
            cursor.execute(f"FLUSH TABLE {table}")
