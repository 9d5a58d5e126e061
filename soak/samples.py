"""What the members held over the time of a soak: written, drawn, and judged. Does it stay flat?"""

from __future__ import annotations

import csv
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

WARM_SHARE = 0.4  # of the time, until caches, pools and heaps have their size
# How much more of something a later part of a run may have than an earlier one: a share, and at least so much.
SLACK = {
    "member MB": (0.25, 100.0),
    "engine MB": (0.35, 400.0),
    "worker MB": (0.5, 400.0),
    "planner MB": (0.35, 150.0),
    "threads": (0.3, 30.0),
    "files": (0.3, 40.0),
    "sockets": (0.3, 40.0),
    "processes": (0.5, 6.0),
    "spool MB": (1.0, 200.0),
}
# Two pools of each JVM that remove blocks have up to 100 threads each when much is asked.
SLACK_ON_SPARK = {"engine threads": (0.3, 600.0)}
# When nobody asks, nothing of these is above what it was before the first query, but for the members' own pools.
IDLE_SLACK = {"member sockets": 6.0, "engine sockets": 40.0, "spool MB": 0.0}

# Each of a member's threads that spoke to its JVM keeps a connection there, which has two ends.
IDLE_SLACK_ON_SPARK = {"member sockets": 60.0, "engine sockets": 60.0}


@dataclass(frozen=True)
class Judged:
    """One series: its medians in the earlier and the later half of its warm part."""

    name: str
    earlier: float
    later: float
    highest: float
    per_hour: float
    is_flat: bool


class Samples:
    """Rows of numbers with their time."""

    def __init__(self, on_sail: bool) -> None:
        self._on_sail = on_sail
        self.times: list[float] = []
        self._rows: list[Mapping[str, float]] = []
        self._began = time.monotonic()

    def add(self, held: Mapping[str, float]) -> None:
        self.times.append(time.monotonic() - self._began)
        self._rows.append(dict(held))

    @property
    def names(self) -> list[str]:
        return sorted({name for row in self._rows for name in row})

    def series(self, name: str) -> list[float]:
        return [row.get(name, 0.0) for row in self._rows]

    def judged(self) -> list[Judged]:
        """All but what the clients did."""
        return [
            judge(name, self.times, self.series(name), slack)
            for name in self.names
            if (slack := slack_of(name, self._on_sail)) is not None
        ]

    def write(self, path: Path) -> None:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["seconds", *self.names])
            for at, row in zip(self.times, self._rows, strict=True):
                writer.writerow([f"{at:.1f}", *(f"{row.get(name, 0.0):.1f}" for name in self.names)])

    def draw(self, path: Path, title: str) -> None:
        import matplotlib

        matplotlib.use("agg")
        from matplotlib import pyplot as plt

        units = {"MB": "megabytes", "threads": "threads", "files": "open files", "sockets": "sockets"}
        units |= {"processes": "processes", "queries": "queries"}
        figure, axes = plt.subplots(len(units), 1, figsize=(10, 14), sharex=True, layout="constrained")
        minutes = [at / 60 for at in self.times]
        for axis, (unit, label) in zip(axes, units.items(), strict=True):
            for name in self.names:
                if name.endswith(unit):
                    axis.plot(minutes, self.series(name), label=name.removesuffix(unit).strip(), linewidth=1)
            axis.set_ylabel(label)
            axis.set_ylim(bottom=0)
            axis.axvline(minutes[-1] * WARM_SHARE, color="grey", linestyle=":", linewidth=1)
            axis.legend(loc="upper left", fontsize="small")
        axes[-1].set_xlabel("minutes")
        axes[0].set_title(title)
        figure.savefig(path, dpi=110)
        plt.close(figure)


def slack_of(name: str, on_sail: bool) -> tuple[float, float] | None:
    known = SLACK if on_sail else SLACK | SLACK_ON_SPARK
    return known.get(name) or known.get(name.rpartition(" ")[2])


def judge(name: str, times: Sequence[float], values: Sequence[float], slack: tuple[float, float]) -> Judged:
    """Flat: the later half of the warm part has hardly more than the earlier one. Whatever leaks goes on leaking."""
    share, least = slack
    begins = times[-1] * WARM_SHARE
    warm = [(at, value) for at, value in zip(times, values, strict=True) if at >= begins]
    middle = (begins + times[-1]) / 2
    earlier = statistics.median([value for at, value in warm if at <= middle] or [0.0])
    later = statistics.median([value for at, value in warm if at >= middle] or [0.0])
    slope = statistics.linear_regression(*zip(*warm, strict=True)).slope if len(warm) > 1 else 0.0
    is_flat = later - earlier <= max(share * earlier, least)
    return Judged(name, earlier, later, max(values), slope * 3600, is_flat)


def above_idle(before: Mapping[str, float], after: Mapping[str, float], on_sail: bool) -> list[str]:
    """What is left when all clients have gone."""
    slacks = IDLE_SLACK if on_sail else IDLE_SLACK | IDLE_SLACK_ON_SPARK
    return [
        f"{name}: {after.get(name, 0.0):.1f} when all have gone, {before.get(name, 0.0):.1f} before they came"
        for name, slack in slacks.items()
        if after.get(name, 0.0) > before.get(name, 0.0) + slack
    ]
