"""A member that ends at any point of its work: what was acknowledged is there, the rest is whole or not there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest

from skerry.model import points
from skerry.tables.store import FILE
from tests.unit.tables.crash_story import KILLED, check, story
from tests.unit.tables.table_samples import in_memory

pytestmark = pytest.mark.slow

# Where a member may end, and how often the story below passes there at least.
POINTS = {
    "store.committing": 10,
    "store.committed": 10,
    "file.written": 4,
    "flush.file": 2,
    "staged.file": 1,
    "staged.laid": 1,
    "flush.written": 2,
    "flush.named": 2,
    "delta.committed": 2,
    "flush.published": 2,
    "trim.forgotten": 1,
}


class Crash(BaseException):
    """No `except Exception` of ours may see it: nobody sees a power cut."""


@pytest.fixture
def watched() -> Iterator[list[str]]:
    """All points that are reached from here on."""
    seen: list[str] = []
    points.watch = seen.append
    yield seen
    points.watch = None


def test_the_story_passes_every_point(watched: list[str]) -> None:
    with in_memory() as folder:
        story(folder, [])
    assert {point: watched.count(point) >= least for point, least in POINTS.items()} == dict.fromkeys(POINTS, True)
    assert set(watched) == set(POINTS)


class Disk:
    """What a power cut leaves: files as they were when they were synced, under names that their folder was synced with.

    SQLite syncs by itself, unseen: its files stay as they are.
    """

    def __init__(self) -> None:
        self.contents: dict[int, bytes] = {}
        self.names: dict[str, list[tuple[str, int, bool]]] = {}

    def fsync(self, file: int) -> None:
        path = os.path.realpath(f"/proc/self/fd/{file}")
        if os.path.isdir(path):
            self.names[path] = [(entry.name, entry.inode(), entry.is_dir()) for entry in os.scandir(path)]
        else:
            self.contents[os.fstat(file).st_ino] = Path(path).read_bytes()

    def leave(self, folder: str, left: str) -> None:
        for name, number, is_folder in self.names.get(folder, []):
            if is_folder:
                os.mkdir(os.path.join(left, name))
                self.leave(os.path.join(folder, name), os.path.join(left, name))
            elif not name.startswith(FILE):
                Path(left, name).write_bytes(self.contents.get(number, b""))
        for name in os.listdir(folder):
            if name.startswith(FILE):
                shutil.copy(os.path.join(folder, name), os.path.join(left, name))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="a file's path is not known here")
def test_a_power_cut_anywhere_leaves_what_was_acknowledged(watched: list[str]) -> None:
    with in_memory() as folder:
        story(folder, [])
    for place in range(len(watched)):
        disk, said = Disk(), list[str]()
        with in_memory() as folder, in_memory() as left, mock.patch("os.fsync", disk.fsync):
            points.watch = crash_at(place, lambda disk=disk, folder=folder, left=left: disk.leave(folder, left))
            with pytest.raises(BaseException, match=r"|".join(POINTS)):
                story(folder, said)
            points.watch = None
            check(left, said)


def crash_at(place: int, first: Callable[[], None]) -> Callable[[str], None]:
    left = place

    def crash(point: str) -> None:
        nonlocal left
        left -= 1
        if left == -1:
            first()
        if left < 0:
            raise Crash(point)

    return crash


def test_a_crash_anywhere_leaves_what_was_acknowledged(watched: list[str]) -> None:
    with in_memory() as folder:
        story(folder, [])
    for place in range(len(watched)):
        said: list[str] = []
        with in_memory() as folder:
            points.watch = crash_at(place, lambda: None)
            # In the store's thread it ends the thread: whoever waits gets an error instead.
            with pytest.raises(BaseException, match=r"|".join(POINTS)):
                story(folder, said)
            points.watch = None
            check(folder, said)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[str]]]:
    """On a real disk, in processes of their own: the folders of members that ended, and what each had said."""
    folder = tmp_path_factory.mktemp("ended")
    command = [sys.executable, "-m", "tests.unit.tables.crash_story", str(folder)]
    run = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, timeout=300)
    said: dict[str, list[str]] = {}
    for line in run.stdout.splitlines():
        how, _, text = line.partition("|")
        said.setdefault(how, []).append(text)
    assert set(said) == {*KILLED, "disk"}, run.stderr
    return folder, said


@pytest.mark.parametrize("point", KILLED)
def test_a_killed_member_leaves_what_was_acknowledged(ended: tuple[Path, dict[str, list[str]]], point: str) -> None:
    folder, said = ended
    assert said[point][-1] == f"ended {-signal.SIGKILL}"
    check(str(folder / point), said[point][:-1])


def test_a_disk_that_fails_at_a_commit_leaves_what_was_acknowledged(ended: tuple[Path, dict[str, list[str]]]) -> None:
    folder, said = ended
    *lines, message, suggestion, end = said["disk"]
    assert end == "ended 0"
    assert "whether the last statements were is not known" in message
    assert "ask again with the statement's id" in suggestion
    check(str(folder / "disk"), lines)
