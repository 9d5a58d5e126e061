"""Six clusters over the same files: one member to five, a chain with relays, a star with slow links.

Each TPC-H table lies in three files, so that a cluster can have it whole at one member or a part of it at two or three.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq

from skerry.spark.engine import Engine
from skerry.spark.recycled import RecycledSail
from skerry.testing.cluster import LocalCluster
from skerry.testing.nasty import SampleTable, make_nasty, write_rows
from skerry.testing.oracle import TPCH_TABLES, SparkOracle, make_tpch
from skerry.testing.sites import TPCH_SITES, write_config

SLICES = 3
# Beside TPC-H's: whole files of nasty values, and one table that lies in three folders.
NASTY_TABLES = ("nasty", "empty")
SPLIT_TABLES = ("events",)


class Shape(msgspec.Struct, frozen=True):
    """`places` maps a table to its member, or to those that hold its first, second and third slice."""

    name: str
    places: dict[str, str | tuple[str, ...]]
    lite: tuple[str, ...] = ()
    links: tuple[dict[str, Any], ...] = ()

    @property
    def data_members(self) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for at in self.places.values():
            found |= dict.fromkeys([at] if isinstance(at, str) else at)
        return tuple(found)

    @property
    def members(self) -> tuple[str, ...]:
        return (*self.data_members, *self.lite)


def _between(one: str, other: str, mbit: float, ms: float = 0.0) -> dict[str, Any]:
    return {"between": [one, other], "mbit": mbit, "ms": ms}


ONE = Shape("one", dict.fromkeys((*TPCH_TABLES, *NASTY_TABLES, *SPLIT_TABLES), "oslo"))
TWO = Shape(
    "two",
    {
        **dict.fromkeys(("lineitem", "customer", "part", "nation", "empty"), "oslo"),
        **dict.fromkeys(("orders", "supplier", "partsupp", "region", "nasty"), "bergen"),
        "events": ("oslo", "bergen", "oslo"),
    },
)
THREE = Shape("three", {**TPCH_SITES, "nasty": "bergen", "empty": "tromso", "events": ("oslo", "bergen", "tromso")})
FIVE = Shape(
    "five",
    {
        "lineitem": ("oslo", "bergen", "tromso"),
        "orders": ("bergen", "oslo", "oslo"),
        "customer": ("bodo", "alta", "bodo"),
        "part": "alta",
        "partsupp": ("alta", "tromso", "alta"),
        "supplier": "bodo",
        "nation": "alta",
        "region": "bergen",
        "nasty": ("tromso", "bodo", "alta"),
        "empty": "oslo",
        "events": ("oslo", "alta", "oslo"),
    },
)
# Rows between the ends pass all that lie between; ferry has neither Spark nor tables.
CHAIN = Shape(
    "chain",
    {
        **dict.fromkeys(("orders", "lineitem", "nasty"), "oslo"),
        **dict.fromkeys(("customer", "part", "empty"), "bergen"),
        **dict.fromkeys(("supplier", "partsupp", "nation", "region"), "tromso"),
        "events": ("oslo", "bergen", "tromso"),
    },
    lite=("ferry",),
    links=(_between("oslo", "ferry", 200), _between("ferry", "bergen", 200, 5), _between("bergen", "tromso", 20, 20)),
)
# Slow links to a hub without tables; one end is slower still, and slowest on its way out.
STAR = Shape(
    "star",
    {
        "lineitem": ("oslo", "oslo", "bergen"),
        "orders": "bergen",
        "customer": ("tromso", "oslo", "tromso"),
        **dict.fromkeys(("part", "supplier", "nasty"), "tromso"),
        **dict.fromkeys(("partsupp", "nation"), "bergen"),
        **dict.fromkeys(("region", "empty"), "oslo"),
        "events": ("tromso", "bergen", "bergen"),
    },
    lite=("hub",),
    links=(
        _between("oslo", "hub", 10, 20),
        _between("bergen", "hub", 10, 20),
        {"from": "hub", "to": "tromso", "mbit": 5, "ms": 40, "usd_per_gb": 0.1},
        {"from": "tromso", "to": "hub", "mbit": 1, "ms": 40, "usd_per_gb": 0.1},
    ),
)
SHAPES = {shape.name: shape for shape in (ONE, TWO, THREE, FIVE, CHAIN, STAR)}


class Files(msgspec.Struct, frozen=True):
    """The slices of every table below one folder."""

    root: Path
    slices: dict[str, tuple[str, ...]]

    def add_to(self, oracle: SparkOracle) -> None:
        """Every table, whole."""
        for table, paths in self.slices.items():
            oracle.add_table(table, paths)

    def placed(self, shape: Shape) -> Iterator[SampleTable]:
        for table, at in shape.places.items():
            if table not in self.slices:
                continue
            paths = self.slices[table]
            held: dict[str, list[str]] = {}
            members = [at] * len(paths) if isinstance(at, str) else [at[index % len(at)] for index in range(len(paths))]
            for member, path in zip(members, paths, strict=True):
                held.setdefault(member, []).append(path)
            for member, own in held.items():
                yield SampleTable(table, member, _pattern(own))


def make_files(root: Path, scale: float, *, with_nasty: bool = True) -> Files:
    """TPC-H at that scale, as DuckDB makes it, in three slices a table, and the nasty tables beside it."""
    slices: dict[str, tuple[str, ...]] = {}
    for table, folder in make_tpch(root / "tpch", scale).items():
        slices[table] = _sliced(folder)
    if with_nasty:
        folders: dict[str, list[str]] = {}
        for each in make_nasty(root / "nasty"):
            folders.setdefault(each.name, []).append(each.path)
        for table in NASTY_TABLES:
            slices[table] = _sliced(Path(folders[table][0]))
        for table in SPLIT_TABLES:
            slices[table] = _moved(folders[table], root / table)
    return Files(root, slices)


@contextmanager
def clusters(
    files: Files, shapes: Iterable[Shape], engine: Engine | None = None, limits: Mapping[str, int | float] | None = None
) -> Iterator[Mapping[str, LocalCluster]]:
    """A cluster of each shape over these files; all share one engine."""
    found = {}
    spark = {"sail": True} if isinstance(engine, RecycledSail) else None
    with ExitStack() as stack:
        for shape in shapes:
            path = files.root / f"{shape.name}.yaml"
            tables = tuple(files.placed(shape))
            write_config(
                path,
                files.root,
                tables,
                sites=shape.data_members,
                lite=shape.lite,
                links=shape.links,
                spark=spark,
                limits=limits,
            )
            found[shape.name] = stack.enter_context(LocalCluster(str(path), engine=engine))
        yield found


def _sliced(folder: Path) -> tuple[str, ...]:
    """The folder's one file as three; rows stay in their order, so that keys of the slices hardly overlap."""
    whole = pq.read_table(folder / "part-0.parquet")
    (folder / "part-0.parquet").unlink()
    step = -(-max(whole.num_rows, 1) // SLICES)
    paths = []
    for index in range(SLICES):
        path = folder / str(index) / "part-0.parquet"
        path.parent.mkdir()
        write_rows(whole.slice(index * step, step), path, max(step // 2, 1))
        paths.append(str(path.parent))
    return tuple(paths)


def _moved(folders: list[str], beneath: Path) -> tuple[str, ...]:
    """These folders as 0, 1, 2 of one."""
    beneath.mkdir()
    return tuple(str(Path(folder).rename(beneath / str(index))) for index, folder in enumerate(folders))


def _pattern(folders: list[str]) -> str:
    """One path for folders of one parent that are named by a digit."""
    if len(folders) == 1:
        return folders[0]
    names = "".join(Path(folder).name for folder in folders)
    return str(Path(folders[0]).parent / f"[{names}]" / "*.parquet")
