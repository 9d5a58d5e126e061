"""Runs generated queries on several clusters, with rules and without, and compares with one plain Spark session."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Protocol

import pyarrow as pa

import skerry
from metamorphic.forms import Forms
from metamorphic.grammar import Grammar, Query
from metamorphic.groups import Groups
from metamorphic.joins import Joins
from metamorphic.last_word import LastWord
from metamorphic.tables import Table, read_tables
from skerry.client.dbapi import Cursor
from skerry.spark.engine import Engine
from skerry.spark.recycled import RecycledSail
from skerry.testing.checkers import same_table
from skerry.testing.cluster import LocalCluster
from skerry.testing.oracle import SparkOracle
from skerry.testing.topologies import CHAIN, FIVE, ONE, STAR, THREE, Files, Shape, clusters, make_files

SCALE = 0.001
# What Sail would answer by the order of rows, and Skerry does not answer over several sites (docs/sail.md, Refused).
BY_NAME = re.compile(
    r"(min|max) of structs or arrays over several sites|typeof of an aggregate over several sites"
    r"|Sail takes a count of no rows for NULL"
)
SHAPES: tuple[Shape, ...] = (THREE, FIVE, CHAIN, STAR)
# With these every query whose groups members can fold between them grows over members.
ELASTIC = {"group_by": "elastic"}
ELASTIC_LIMITS = {"group_by_groups": 5}
PLANNINGS: dict[str, dict[str, str]] = {
    "all rules": {},
    "no rules": {"rules": "none"},
    "bottom-up": {"strategy": "bottom-up"},
}


class Oracle(Protocol):
    """What it answers is right."""

    def run(self, sql: str) -> pa.Table: ...


class OneSite:
    """All tables at one member: the query reaches its engine whole."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster

    def run(self, sql: str) -> pa.Table:
        with self._cluster.connect() as connection, connection.cursor() as cursor:
            return cursor.execute(sql, planning={"rules": "none"}).fetch_arrow_table()


@dataclass(frozen=True)
class World:
    """`last_word` is asked where answers differ, if the oracle is none that is always right."""

    tables: Mapping[str, Table]
    oracle: Oracle
    clusters: Mapping[str, LocalCluster]
    last_word: LastWord | None = None
    plannings: Mapping[str, dict[str, str]] = field(default_factory=lambda: PLANNINGS)


@dataclass
class Outcome:
    """`runs` were compared; `unlike` tells of those that gave another answer. `refusal`: why nobody answers it.

    `alone`: where the oracle stands alone: Spark answers as the cluster does. `by_name`: refused by name on Sail alone.
    """

    seed: int
    sql: str
    rows: int = 0
    runs: int = 0
    plans: int = 0
    seconds: float = 0.0
    refusal: str = ""
    unlike: list[str] = field(default_factory=list)
    alone: list[str] = field(default_factory=list)
    by_name: list[str] = field(default_factory=list)


@contextmanager
def world(root: Path, engine: Engine, shapes: Sequence[Shape] = SHAPES, *, is_elastic: bool = False) -> Iterator[World]:
    """Files below `root`; the oracle is a session of the same Spark that runs the fragments, or the same Sail."""
    files = make_files(root, SCALE)
    is_spark = not isinstance(engine, RecycledSail)
    plannings = {"elastic": ELASTIC} if is_elastic else PLANNINGS
    limits = ELASTIC_LIMITS if is_elastic else None
    with clusters(files, shapes if is_spark else (*shapes, ONE), engine, limits) as found:
        asked = {shape.name: found[shape.name] for shape in shapes}
        if is_spark:
            yield World(read_tables(files), oracle_of(engine, files), asked, plannings=plannings)
            return
        with closing(LastWord(files)) as last_word:
            yield World(read_tables(files), OneSite(found[ONE.name]), asked, last_word, plannings)


def oracle_of(engine: Any, files: Files) -> SparkOracle:
    oracle = SparkOracle(engine.session)
    files.add_to(oracle)
    return oracle


def query_of(tables: Mapping[str, Table], seed: int) -> Query:
    """Every fourth joins many tables, every eighth groups a join, every eighth is of a form that few write."""
    kind = Joins if seed % 4 == 3 else Groups if seed % 8 == 5 else Forms if seed % 8 == 1 else Grammar
    return kind(tables, Random(f"query {seed}")).query()


def check(world: World, seed: int) -> Outcome:
    """The seed's query everywhere; the member that is asked is the seed's choice too."""
    query = query_of(world.tables, seed)
    outcome = Outcome(seed, query.sql)
    began = time.monotonic()
    try:
        expected = world.oracle.run(query.sql)
    except Exception as error:
        outcome.refusal = f"Spark: {type(error).__name__}: {first_line(error)}"
        return outcome
    outcome.rows = expected.num_rows
    for name, cluster in world.clusters.items():
        at = Random(f"initiator {seed} {name}").choice(list(cluster.members))
        with cluster.connect(at) as connection, connection.cursor() as cursor:
            _compare(outcome, f"{name}, asked at {at}", cursor, query, expected, world)
    outcome.seconds = time.monotonic() - began
    return outcome


def _compare(outcome: Outcome, where: str, cursor: Cursor, query: Query, expected: pa.Table, world: World) -> None:
    """Plans that are the same are run once."""
    seen: set[str] = set()
    last_word = world.last_word
    for how, planning in world.plannings.items():
        try:
            plan = str(cursor.execute(f"EXPLAIN {query.sql}", planning=planning).fetchall())
            if plan in seen:
                continue
            seen.add(plan)
            rows = cursor.execute(query.sql, planning=planning).fetch_arrow_table()
            same_table(rows, expected, ordered=False, keys=query.keys)
        except AssertionError as error:
            is_right = last_word is not None and last_word.is_right(query.sql, rows, query.keys)
            (outcome.alone if is_right else outcome.unlike).append(f"{where}, {how}: {error}")
        except skerry.Error as error:
            told = f"{where}, {how}: {type(error).__name__}: {error}"
            if last_word is not None and BY_NAME.match(str(error)):
                outcome.by_name.append(told)
            else:
                is_right = last_word is not None and last_word.refuses(query.sql)
                (outcome.alone if is_right else outcome.unlike).append(told)
        outcome.runs += 1
    outcome.plans += len(seen)


def check_partition(world: World, seed: int) -> Outcome:
    """Rows where a predicate is true, false and NULL, in one statement or in three, are those that the oracle finds.

    They are not always all rows: to Spark `x IN (SELECT …)` is false or nothing where it should be NULL, if it stands
    beside another condition.
    """
    random = Random(f"partition {seed}")
    partition = Grammar(world.tables, random).partition()
    outcome = Outcome(seed, f"{partition.whole}\n  parted by {partition.parts[0]}")
    try:
        expected = world.oracle.run(partition.whole)
        expected_parts = pa.concat_tables([world.oracle.run(part) for part in partition.parts])
    except Exception as error:
        outcome.refusal = f"Spark: {type(error).__name__}: {first_line(error)}"
        return outcome
    name = random.choice(list(world.clusters))
    cluster = world.clusters[name]
    at = random.choice(list(cluster.members))
    statements = [" UNION ALL ".join(partition.parts)] if random.random() < 0.5 else partition.parts
    with cluster.connect(at) as connection, connection.cursor() as cursor:
        try:
            whole = cursor.execute(partition.whole).fetch_arrow_table()
            parts = [cursor.execute(statement).fetch_arrow_table() for statement in statements]
            same_table(whole, expected, ordered=False)
            same_table(pa.concat_tables(parts), expected_parts, ordered=False)
        except AssertionError as error:
            asked = [(partition.whole, whole), *zip(statements, parts, strict=True)]
            is_right = world.last_word is not None and all(world.last_word.is_right(*each) for each in asked)
            (outcome.alone if is_right else outcome.unlike).append(f"{name}, asked at {at}: {error}")
        except skerry.Error as error:
            outcome.unlike.append(f"{name}, asked at {at}: {type(error).__name__}: {error}")
        outcome.rows, outcome.runs = whole.num_rows if not outcome.unlike else 0, 1 + len(statements)
    return outcome


def first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0][:300]
