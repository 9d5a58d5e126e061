"""Times of `wan`: three members as processes in network namespaces, each sending at 100 Mbit/s at most."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.frame import Bar, Options, Samples, Skipped, tpch_files
from chaos.cluster import Cluster
from chaos.net import Net, why_not
from skerry.testing.checkers import same_table
from skerry.testing.nasty import SITES
from skerry.testing.sites import TPCH_SITES

MBIT = 100.0
ALL, CHEAPEST, INITIATOR = "seconds, all rules", "seconds, (a)", "seconds, (b)"
SIDES: dict[str, dict[str, str]] = {
    ALL: {},
    CHEAPEST: {"rules": "none"},
    INITIATOR: {"rules": "none", "root": "initiator"},
}
FASTER = {CHEAPEST: 1.5, INITIATOR: 3.0}


@dataclass(frozen=True)
class Timed:
    """Seconds by query and side, a value an initiator."""

    samples: Samples
    bars: list[Bar]
    notes: list[str] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


def shaped_times(options: Options, texts: Mapping[int, str]) -> Timed:
    """Each side once for a warm-up at full speed, then measured in turn on slow links."""
    if reason := why_not():
        names = [f"faster_than_{side[-2]}" for side in FASTER]
        return Timed({}, [], [], [Skipped(name, reason) for name in names])
    folders = tpch_files(options.scale)
    placed = {site: {t: folders[t] for t, home in TPCH_SITES.items() if home == site} for site in SITES}
    samples: Samples = {}
    # A short path: it holds Unix sockets.
    with (
        tempfile.TemporaryDirectory(prefix="w", dir="/tmp") as scratch,
        Net(SITES) as net,
        Cluster(net, Path(scratch), placed, limits={}) as cluster,
    ):
        for number, text in texts.items():
            taken: dict[str, list[float]] = {side: [] for side in SIDES}
            for site in SITES:
                for side, took_s in _one(cluster, site, text, options.rounds).items():
                    taken[side].append(took_s)
            samples[f"Q{number}, {MBIT:.0f} Mbit/s"] = taken
    return Timed(samples, _bars(samples), [f"times on links of {MBIT:.0f} Mbit/s, nothing compressed, members on Sail"])


def _one(cluster: Cluster, site: str, text: str, rounds: int) -> dict[str, float]:
    """The median of each side; the sides alternate."""
    taken: dict[str, list[float]] = {side: [] for side in SIDES}
    answers = {}
    with cluster.connect(site) as connection, connection.cursor() as cursor:
        for side, planning in SIDES.items():
            answers[side] = cursor.execute(text, planning=planning).fetch_arrow_table()
            same_table(answers[side], answers[ALL], ordered=False)
        for name in SITES:
            cluster.net.slow(name, MBIT)
        try:
            for _ in range(rounds):
                for side, planning in SIDES.items():
                    began = time.perf_counter()
                    cursor.execute(text, planning=planning).fetch_arrow_table()
                    taken[side].append(time.perf_counter() - began)
        finally:
            for name in SITES:
                cluster.net.full_speed(name)
    return {side: statistics.median(each) for side, each in taken.items()}


def _bars(samples: Samples) -> list[Bar]:
    bars = []
    for side, bound in FASTER.items():
        ratios = [other / own for taken in samples.values() for other, own in zip(taken[side], taken[ALL], strict=True)]
        bars.append(Bar(f"faster_than_{side[-2]}", statistics.geometric_mean(ratios), bound, at_most=False))
    return bars
