"""What every benchmark shares: data made once, one site on one Spark, fair rounds, and how results are shown."""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import shutil
import statistics
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from skerry.access.passwords import hash_password
from skerry.access.users import UsersFile
from skerry.spark import start_engine
from skerry.spark.settings import SparkSettings
from skerry.testing.cluster import LocalCluster
from skerry.testing.oracle import TPCH_TABLES
from skerry.testing.sites import tpch_tables, write_config

HERE = Path(__file__).parent
CACHE = HERE / ".cache"
RESULTS = HERE / "results"

SITE = "oslo"
BARE, SKERRY = "bare PySpark", "Skerry"
WARM_UPS = 3
LOGIN = {"SKERRY_USER": "bench", "SKERRY_PASSWORD": "a password of a benchmark"}
SAIL_START_S = 60.0
ENGINES = ("sail", "spark")

Samples = dict[str, dict[str, list[float]]]


@dataclass(frozen=True)
class Options:
    """What the command line may change."""

    scale: float = 1.0
    rounds: int = 7
    heap: str = "2g"
    shaped: bool = False
    locked: bool = False
    engines: tuple[str, ...] = ENGINES
    only: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bar:
    """A ratio and the bound it has to keep."""

    name: str
    value: float
    bound: float
    at_most: bool = True

    @property
    def cleared(self) -> bool:
        return self.value <= self.bound if self.at_most else self.value >= self.bound

    def line(self, report: str) -> str:
        sign, word = "<=" if self.at_most else ">=", "ok" if self.cleared else "short"
        return f"BAR {report}.{self.name} {self.value:.2f} {sign} {self.bound:.2f} {word}"


@dataclass(frozen=True)
class Skipped:
    """A bar that could not be measured here, and why."""

    name: str
    why: str

    def line(self, report: str) -> str:
        return f"BAR {report}.{self.name} skipped: {self.why}"


@dataclass(frozen=True)
class Report:
    """`samples` holds what was measured, by case and by series; `unit` is theirs.

    `more` is the same of other things that were measured, by their name: kept with the results, not drawn.
    """

    name: str
    title: str
    unit: str
    samples: Samples
    bars: list[Bar]
    options: Options
    notes: list[str] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    more: dict[str, Samples] = field(default_factory=dict)


@dataclass(frozen=True)
class Site:
    """One member on one Spark: `session` is that Spark without Skerry, with the same files as views."""

    cluster: LocalCluster
    session: Any
    url: str

    @property
    def address(self) -> str:
        return self.cluster.config.member(SITE).address


def tpch_files(scale: float) -> dict[str, Path]:
    """The eight tables, a folder each, made by tpchgen-cli on first use."""
    folder = CACHE / f"tpch-{scale:g}"
    if not folder.exists():
        CACHE.mkdir(exist_ok=True)
        # Made beside and renamed at the end: an interrupted run leaves no half of the data.
        with tempfile.TemporaryDirectory(dir=CACHE) as made:
            command = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
            subprocess.run([command, "parquet", "-s", f"{scale:g}", "--output-dir", made], check=True)
            whole = Path(made) / "whole"
            for table in TPCH_TABLES:
                (whole / table).mkdir(parents=True)
                shutil.move(Path(made) / f"{table}.parquet", whole / table / "part-0.parquet")
            whole.rename(folder)
    return {table: folder / table for table in TPCH_TABLES}


def access_of(options: Options, folder: Path) -> dict[str, Any] | None:
    """With `--locked`: one user, which may read all tables. Clients of this process and its children log in as it."""
    if not options.locked:
        return None
    os.environ |= LOGIN
    known = hash_password(LOGIN["SKERRY_PASSWORD"], os.urandom(16))
    UsersFile(str(folder / "users")).put("bench", known)
    rules = {"roles": {"reader": [{"on": "*", "select": True}]}, "users": {"bench": ["reader"]}}
    (folder / "rules.yaml").write_text(json.dumps(rules), encoding="utf-8")
    return {"users": "users", "rules": "rules.yaml"}


@contextmanager
def one_site(options: Options, limits: Mapping[str, int | float] | None = None) -> Iterator[Site]:
    """A member in this process, and bare PySpark in the same Spark, over the same files."""
    folders = tpch_files(options.scale)
    engine: Any = start_engine(SparkSettings(conf={"spark.driver.memory": options.heap}))
    try:
        session = engine.session.newSession()
        for table, folder in folders.items():
            session.read.parquet(str(folder)).createOrReplaceTempView(table)
        with tempfile.TemporaryDirectory() as scratch:
            tables, access = tpch_tables(folders, SITE), access_of(options, Path(scratch))
            path = write_config(
                Path(scratch) / "skerry.yaml", CACHE, tables, sites=[SITE], limits=limits, access=access
            )
            with LocalCluster(str(path), engine=engine, has_planners=True) as cluster:
                yield Site(cluster, session, f"skerry://{cluster.config.member(SITE).address}")
    finally:
        engine.stop()


def _serve_sail(options: Options, pipe: Connection) -> None:
    folders = tpch_files(options.scale)
    with tempfile.TemporaryDirectory() as scratch:
        tables, access = tpch_tables(folders, SITE), access_of(options, Path(scratch))
        path = Path(scratch) / "skerry.yaml"
        write_config(path, CACHE, tables, sites=[SITE], spark={"sail": True}, access=access)
        with LocalCluster(str(path), has_planners=True) as cluster:
            pipe.send(cluster.config.member(SITE).address)
            pipe.recv()


@contextmanager
def sail_site(options: Options) -> Iterator[str]:
    """The address of a member on Sail, in a process of its own: this one has another Spark already."""
    if options.locked:
        os.environ |= LOGIN
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve_sail, args=(options, theirs), daemon=True)
    process.start()
    try:
        if not ours.poll(SAIL_START_S):
            raise TimeoutError(f"no member on Sail after {SAIL_START_S:.0f} s")
        yield ours.recv()
    finally:
        if process.is_alive():
            ours.send(None)
        process.join(SAIL_START_S)
        process.kill()


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def interleaved(
    works: Mapping[str, Callable[[], object]], rounds: int, warm_ups: int | Mapping[str, int] = WARM_UPS
) -> dict[str, list[float]]:
    """Seconds of each work in each round; the works alternate, so a slow minute of the machine hits all alike."""
    for name, work in works.items():
        for _ in range(warm_ups if isinstance(warm_ups, int) else warm_ups.get(name, WARM_UPS)):
            work()
    taken: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds):
        # Whoever goes second finds warmer caches: take turns.
        for name in list(works) if number % 2 == 0 else reversed(list(works)):
            taken[name].append(seconds(works[name]))
    return taken


def ratio(samples: Mapping[str, list[float]], series: str = SKERRY, base: str = BARE) -> float:
    return statistics.median(samples[series]) / statistics.median(samples[base])


def publish(report: Report) -> None:
    """Prints a table; writes NAME.json and NAME.png below bench/results."""
    RESULTS.mkdir(exist_ok=True)
    _print(report)
    written = {
        "name": report.name,
        "title": report.title,
        "unit": report.unit,
        "made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {
            "cores": os.cpu_count(),
            "system": platform.system(),
            "python": platform.python_version(),
            "load": os.getloadavg()[0],
        },
        "options": asdict(report.options),
        "samples": report.samples,
        "more": report.more,
        "bars": [asdict(bar) | {"cleared": bar.cleared} for bar in report.bars],
        "skipped": [asdict(each) for each in report.skipped],
        "notes": report.notes,
    }
    (RESULTS / f"{report.name}.json").write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    if report.samples:
        _plot(report)


def _print(report: Report) -> None:
    table = Table(title=f"{report.name}: {report.title} ({report.unit}, medians)")
    series = list(dict.fromkeys(name for case in report.samples.values() for name in case))
    for heading in ("case", *series, "rounds"):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    for case, taken in report.samples.items():
        medians = [f"{statistics.median(taken[name]):.3f}" if name in taken else "" for name in series]
        table.add_row(case, *medians, str(max(map(len, taken.values()))))
    console = Console()
    console.print(table)
    for note in report.notes:
        console.print(note, style="dim")
    # The works themselves make a load of about one a core; beyond twice that, others were measured too.
    if os.getloadavg()[0] > 2 * (os.cpu_count() or 1):
        console.print(f"load average {os.getloadavg()[0]:.0f}: others used this machine, the ratios mean little")


def _plot(report: Report) -> None:
    # Imported here: drawing needs it, measuring does not.
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    series = list(dict.fromkeys(name for case in report.samples.values() for name in case))
    figure, axes = plt.subplots(figsize=(2 + 1.6 * len(report.samples), 4), layout="constrained")
    width = 0.8 / len(series)
    for place, name in enumerate(series):
        for index, taken in enumerate(report.samples.values()):
            if name not in taken:
                continue
            x = index + (place - (len(series) - 1) / 2) * width
            label = name if index == 0 else None
            axes.bar(x, statistics.median(taken[name]), width, color=f"C{place}", alpha=0.6, label=label)
            axes.scatter([x] * len(taken[name]), taken[name], s=8, color="black", zorder=3)
    axes.set_xticks(range(len(report.samples)), list(report.samples))
    axes.set_ylabel(report.unit)
    axes.set_title(report.title)
    axes.legend()
    figure.savefig(RESULTS / f"{report.name}.png", dpi=120)
    plt.close(figure)
