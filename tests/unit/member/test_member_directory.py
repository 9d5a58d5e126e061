"""A member's directory goes with its member, also when nobody is left to remove it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from skerry.member.directory import Directory

HOLD = "from skerry.member.directory import Directory; held = Directory('oslo'); print(held.path, flush=True); input()"


def test_what_a_killed_member_left_is_removed_by_the_next() -> None:
    command = [sys.executable, "-c", HOLD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        left = Path(other.stdout.readline().strip())
        (left / "tasks.sock").touch()
        while_it_lives = Directory("bergen")
        assert left.is_dir()
        other.kill()
        other.wait()
        assert left.is_dir()
        afterwards = Directory("bergen")
        assert not left.exists()
        assert Path(while_it_lives.path).is_dir()  # of this process, which lives
    for directory in (while_it_lives, afterwards):
        directory.remove()
        directory.remove()  # again does no harm
        assert not Path(directory.path).exists()
