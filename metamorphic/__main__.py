"""`python -m metamorphic`: generated queries on four clusters, then TPC-H on six. `--seed 7` replays one."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random

import skerry
from metamorphic import filtered, own
from metamorphic.changes import run_stories
from metamorphic.check import SCALE, Outcome, World, check, check_partition, query_of, world
from metamorphic.planned import CHOICES, planner
from metamorphic.ran import Clusters
from metamorphic.tables import read_tables
from metamorphic.tpch import check_all
from skerry.spark import SparkSettings, start_engine
from skerry.testing.topologies import SHAPES, make_files

# Of a hundred generated queries so many may be none of Spark's; more would mean that the grammar is wrong.
REFUSED_MAX = 0.05


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m metamorphic", description=__doc__)
    parser.add_argument("--queries", type=int, default=300, help="how many (default 300)")
    parser.add_argument("--first", type=int, default=0, help="the first one's seed (default 0)")
    parser.add_argument("--seed", type=int, help="run this seed alone and show its plans")
    parser.add_argument(
        "--tpch", type=float, default=0.1, help="TPC-H at this scale on six clusters; 0: not (default 0.1)"
    )
    parser.add_argument("--plans", type=int, help="only plan so many queries, by every choice of rules: needs no Spark")
    parser.add_argument("--run", action="store_true", help="with --plans: run them in DuckDB and compare")
    parser.add_argument("--sail", action="store_true", help="on Sail, beside Sail; Spark is asked where they differ")
    parser.add_argument("--filtered", action="store_true", help="with rows in the files that a filter hides")
    parser.add_argument("--own", action="store_true", help="of tables of our own that hold the files' rows")
    parser.add_argument("--elastic", action="store_true", help="groups grow over members, from 5 groups on")
    parser.add_argument("--changes", type=int, help="so many statements to tables of our own, beside a dict")
    options = parser.parse_args(arguments)
    if options.plans:
        seeds = range(options.first, options.first + options.plans)
        return _run_plans(seeds) if options.run else _plan(seeds)
    # Spark must start this very interpreter, also where its virtual environment is not activated.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    logging.getLogger("skerry").setLevel(logging.ERROR)
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # Spark's traces of what it refuses
    engine = start_engine(
        SparkSettings(sail=True) if options.sail else SparkSettings(conf={"spark.driver.memory": "2g"})
    )
    try:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            if options.changes:
                first = options.first if options.seed is None else options.seed
                return int(run_stories(root, engine, first, options.changes) > 0)
            if options.filtered:
                first = options.first if options.seed is None else options.seed
                count = options.queries if options.seed is None else 1
                with filtered.world(root, engine) as hiding:
                    return int(_run(hiding, range(first, first + count), (filtered.check,)))
            elastic = partial(world, is_elastic=options.elastic)
            with (own.world if options.own else elastic)(root / "small", engine) as small:
                if options.seed is not None:
                    return _replay(small, options.seed)
                is_wrong = _run(small, range(options.first, options.first + options.queries))
            if options.tpch and not options.own and not options.elastic:
                is_wrong |= bool(check_all(root / "tpch", options.tpch, engine, partial(print, flush=True)))
    finally:
        engine.stop()
    return int(is_wrong)


def _plan(seeds: range) -> int:
    """Every plan must be sound; an error of any kind is none of the user's."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        files = make_files(Path(folder), SCALE)
        tables, planners = read_tables(files), {name: planner(files, shape) for name, shape in SHAPES.items()}
        for seed in seeds:
            sql = query_of(tables, seed).sql
            for name, planned in planners.items():
                at = Random(f"initiator {seed} {name}").choice(list(planned.config.members))
                for rules in CHOICES:
                    try:
                        trouble = "; ".join(planned.unsound(planned.plan(sql, at, rules), at))
                    except Exception as error:
                        trouble = f"{type(error).__name__}: {error}"
                    if trouble:
                        wrong += 1
                        print(f"seed {seed}, {name} at {at}, {rules}: {trouble}\n  {sql}", flush=True)
                        break
    print(f"{len(seeds)} queries planned on {len(planners)} clusters by {len(CHOICES)} choices of rules: {wrong} wrong")
    return int(wrong > 0)


def _run_plans(seeds: range) -> int:
    wrong = refused = runs = 0
    with tempfile.TemporaryDirectory() as folder:
        clusters = Clusters(make_files(Path(folder), SCALE))
        for seed in seeds:
            found = clusters.check(seed)
            runs, refused, wrong = runs + found.runs, refused + bool(found.refusal), wrong + bool(found.unlike)
            if found.unlike:
                unlike = "\n  ".join(found.unlike)
                print(f"seed {seed}: WRONG: {query_of(clusters.tables, seed).sql}\n  {unlike}", flush=True)
    print(f"{len(seeds)} queries, {runs} plans run in DuckDB, {refused} queries are none of DuckDB's: {wrong} wrong")
    return int(wrong > 0)


def _run(
    small: World, seeds: range, checks: Sequence[Callable[[World, int], Outcome]] = (check, check_partition)
) -> bool:
    began = time.monotonic()
    outcomes: list[Outcome] = []
    for seed in seeds:
        for found in (each(small, seed) for each in checks):
            outcomes.append(found)
            if found.unlike:
                print(f"seed {seed}: WRONG: {found.sql}\n  " + "\n  ".join(found.unlike), flush=True)
            if found.alone:
                print(f"seed {seed}: Sail alone: {found.sql}\n  " + "\n  ".join(found.alone), flush=True)
            if found.by_name:
                print(f"seed {seed}: refused by name on Sail: {found.sql}\n  {found.by_name[0]}", flush=True)
            if found.refusal:
                print(f"seed {seed}: refused: {found.refusal}\n  {found.sql}", flush=True)
        if (seed - seeds.start) % 25 == 24:
            print(f"… {seed - seeds.start + 1} of {len(seeds)}, {time.monotonic() - began:.0f} s", flush=True)
    wrong = sorted({each.seed for each in outcomes if each.unlike})
    refused = sum(1 for each in outcomes if each.refusal)
    alone = sum(1 for each in outcomes if each.alone)
    by_name = sum(1 for each in outcomes if each.by_name)
    print(
        f"{len(seeds)} queries{' and as many partitions' if len(checks) > 1 else ''}:"
        f" {sum(each.runs for each in outcomes)} runs,"
        f" {sum(each.plans for each in outcomes)} plans, {sum(1 for each in outcomes if each.rows)} with rows,"
        f" {refused} refused,{f' {by_name} refused by name over several Sails,' if by_name else ''}"
        f"{f' {alone} where Sail alone answers otherwise than Spark,' if alone else ''}"
        f" {len(wrong)} wrong{f' (seeds {wrong})' if wrong else ''},"
        f" {time.monotonic() - began:.0f} s"
    )
    return bool(wrong) or refused > REFUSED_MAX * len(outcomes)


def _replay(small: World, seed: int) -> int:
    sql = query_of(small.tables, seed).sql
    print(sql)
    for name, cluster in small.clusters.items():
        with cluster.connect() as connection, connection.cursor() as cursor:
            for how, planning in small.plannings.items():
                print(f"--- {name}, {how}")
                try:
                    for (line,) in cursor.execute(f"EXPLAIN {sql}", planning=planning).fetchall():
                        print(f"  {line}")
                except skerry.Error as error:
                    print(f"  {error}")
    outcomes = [check(small, seed), check_partition(small, seed)]
    for found in outcomes:
        print(f"{found.rows} rows, {found.runs} runs, {found.plans} plans {found.refusal}")
        told = (f"Sail alone: {each}" for each in found.alone), (f"refused by name: {each}" for each in found.by_name)
        print("\n".join([*found.unlike, *chain(*told)]))
    return int(any(found.unlike for found in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
