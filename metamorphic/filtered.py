"""Rows that a filter hides, values that a mask replaces: every query answers as if they were not in the files.

The clusters' files have other rows among those that the oracle's have, and a column that says which. A third of the
columns have other values, and their own stand in a column beside, from which the mask takes them. The user who asks
sees none of that.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

import metamorphic.check as plain
from metamorphic.check import PLANNINGS, SCALE, Outcome, World, first_line, query_of
from metamorphic.grammar import Query
from metamorphic.tables import read_tables
from skerry.model.errors import SkerryError
from skerry.spark.engine import Engine
from skerry.spark.recycled import RecycledSail
from skerry.testing.asking import ask
from skerry.testing.checkers import same_table
from skerry.testing.cluster import LocalCluster
from skerry.testing.sites import write_config
from skerry.testing.topologies import CHAIN, FIVE, ONE, THREE, Files, Shape, clusters, make_files

SHAPES: tuple[Shape, ...] = (THREE, FIVE, CHAIN)
USER = "ann"
HIDDEN = "concealed"
OWN = "own_"  # begins the names of columns that masks take their values from
# For one hidden row so many are shown.
SHOWN_EACH = 2


@contextmanager
def world(root: Path, engine: Engine, shapes: Sequence[Shape] = SHAPES) -> Iterator[World]:
    """The oracle reads files without the hidden rows; the clusters' members have rules that hide them."""
    shown = make_files(root / "shown", SCALE)
    whole = with_hidden_rows(shown, root / "whole")
    (whole.root / "rules.yaml").write_text(yaml.safe_dump(rules_for(shown)), encoding="utf-8")
    with ExitStack() as stack:
        oracle: plain.Oracle
        if isinstance(engine, RecycledSail):
            oracle = plain.OneSite(stack.enter_context(clusters(shown, (ONE,), engine))[ONE.name])
        else:
            oracle = plain.oracle_of(engine, shown)
        found = {shape.name: stack.enter_context(LocalCluster(_config(whole, shape), engine)) for shape in shapes}
        yield World(read_tables(shown), oracle, found)


def _config(files: Files, shape: Shape) -> str:
    path, tables = files.root / f"{shape.name}.yaml", tuple(files.placed(shape))
    access = {"rules": "rules.yaml"}
    write_config(path, files.root, tables, sites=shape.data_members, lite=shape.lite, links=shape.links, access=access)
    return str(path)


def rules_for(files: Files) -> dict[str, object]:
    """Two roles show the table together: the rows of both are the shown ones."""
    halves = (f"NOT {HIDDEN} AND session_user() = '{USER}'", f"{HIDDEN} = false AND 1 = 1")
    roles = {}
    for role, where in zip(("one", "other"), halves, strict=True):
        roles[role] = [_rule(table, _names(files, table), where) for table in sorted(files.slices)]
    return {"roles": roles, "users": {USER: list(roles)}}


def _rule(table: str, names: list[str], where: str) -> dict[str, object]:
    return {"on": table, "select": names, "where": where, "masks": _masks(names)}


def _masks(names: Sequence[str]) -> dict[str, str]:
    return {name: f"`{OWN}{name}`" for name in names[::3]}


def _names(files: Files, table: str) -> list[str]:
    return [str(name) for name in _read(files.slices[table][0]).column_names]


def _read(folder: str) -> pa.Table:
    return pa.concat_tables([pq.read_table(file) for file in sorted(Path(folder).rglob("*.parquet"))])


def with_hidden_rows(files: Files, root: Path) -> Files:
    """The same files, in each among its rows some that no table has: values of any rows of the table, mixed."""
    slices: dict[str, tuple[str, ...]] = {}
    for table, folders in files.slices.items():
        every = pa.concat_tables([_read(folder) for folder in folders])
        made = []
        for folder in folders:
            target = root / table / Path(folder).name / "part-0.parquet"
            target.parent.mkdir(parents=True)
            pq.write_table(_mixed(_read(folder), every, Random(f"hidden {table} {folder[-1]}")), target)
            made.append(str(target.parent))
        slices[table] = tuple(made)
    return Files(root, slices)


def _mixed(rows: pa.Table, every: pa.Table, random: Random) -> pa.Table:
    count = -(-every.num_rows // (SHOWN_EACH * 3)) if every.num_rows else 0
    own = [(f"{OWN}{name}", rows.column(name)) for name in _masks(rows.column_names)]
    rows = _scrambled(rows, every, random)
    drawn = [pa.array([random.randrange(every.num_rows) for _ in range(count)], pa.int64()) for _ in every.columns]
    columns = [column.take(places) for column, places in zip(every.columns, drawn, strict=True)]
    hidden = pa.Table.from_arrays(columns, schema=rows.schema) if count else rows.slice(0, 0)
    marks = [False] * rows.num_rows + [True] * hidden.num_rows
    both = pa.concat_tables([rows, hidden]).add_column(0, HIDDEN, pa.array(marks, pa.bool_()))
    for name, values in own:
        nothing = pa.nulls(hidden.num_rows, values.type)
        both = both.append_column(name, pa.chunked_array([*values.chunks, nothing], values.type))
    order = list(range(both.num_rows))
    random.shuffle(order)
    return both.take(pa.array(order, pa.int64()))


def _scrambled(rows: pa.Table, every: pa.Table, random: Random) -> pa.Table:
    """The columns that have masks, with values of any rows."""
    for name in _masks(rows.column_names):
        places = pa.array([random.randrange(every.num_rows) for _ in range(rows.num_rows)], pa.int64())
        index = rows.column_names.index(name)
        rows = rows.set_column(index, rows.schema.field(index), every.column(name).take(places))
    return rows


def check(world: World, seed: int) -> Outcome:
    """The seed's query everywhere, asked by the user; the member that is asked is the seed's choice too."""
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
        _compare(outcome, f"{name}, asked at {at}", cluster, at, query, expected)
    outcome.seconds = time.monotonic() - began
    return outcome


def _compare(outcome: Outcome, where: str, cluster: LocalCluster, at: str, query: Query, expected: pa.Table) -> None:
    """Plans that are the same are run once."""
    seen: set[str] = set()
    for how, planning in PLANNINGS.items():
        try:
            plan = str(ask(cluster, at, USER, f"EXPLAIN {query.sql}", **planning).to_pylist())
            if plan in seen:
                continue
            seen.add(plan)
            rows = ask(cluster, at, USER, query.sql, **planning)
            same_table(rows, expected, ordered=False, keys=query.keys)
        except (AssertionError, SkerryError) as error:
            outcome.unlike.append(f"{where}, {how}: {type(error).__name__}: {error}")
        outcome.runs += 1
    outcome.plans += len(seen)
