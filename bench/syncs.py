"""How often members wait for the disk before they answer, counted by strace while they run."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

STATEMENTS = 10
PAUSE_S = 1.0  # what is written lazily is on disk by then


class NoTrace(Exception):
    """Nobody may be traced here."""


def syncs_of(option: str, members: Sequence[str], work: Callable[[], None]) -> float:
    """Syncs after each other, the most of any member: the median of some statements.

    Members sync beside each other, each one thing after the other. So the longest row is that of the busiest member.
    """
    strace = shutil.which("strace")
    if strace is None:
        raise NoTrace("there is no strace")
    with tempfile.TemporaryDirectory() as scratch:
        outs = [Path(scratch) / member for member in members]
        traced = [
            subprocess.Popen(
                [
                    strace,
                    "-f",
                    "-ttt",
                    "-e",
                    "trace=fsync,fdatasync",
                    "-o",
                    str(out),
                    "-p",
                    str(_pid_of(option, member)),
                ],
                stderr=subprocess.PIPE,
            )
            for out, member in zip(outs, members, strict=True)
        ]
        try:
            for each in traced:
                assert each.stderr is not None
                if b"attached" not in each.stderr.readline():
                    raise NoTrace("strace may not attach to members")
            spans = []
            for _ in range(STATEMENTS):
                time.sleep(PAUSE_S)
                started = time.time()
                work()
                spans.append((started, time.time()))
        finally:
            for each in traced:
                each.terminate()
                each.wait()
        times = [[float(line.split()[1]) for line in out.read_text().splitlines() if "sync(" in line] for out in outs]
    counts = [[sum(first <= at <= last for at in own) for own in times] for first, last in spans]
    if not all(all(each) for each in counts):
        raise AssertionError(f"a statement was answered before all members had synced: {counts}")
    return statistics.median(max(each) for each in counts)


def _pid_of(option: str, member: str) -> int:
    for process in psutil.Process().children(recursive=True):
        words = process.cmdline()
        if option in words and words[words.index(option) + 1 :][:1] == [member]:
            return process.pid
    raise NoTrace(f"no process of {member}")
