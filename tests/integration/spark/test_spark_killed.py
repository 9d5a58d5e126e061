"""However a member ends, its Spark ends with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

SCRIPT = Path(__file__).with_name("member_to_kill.py")
ROOT = Path(__file__).parents[3]
GRACE_S = 60.0
# How py4j tells of calls that meet a JVM that is gone; garbage collection makes some at any moment.
UNDER_WAY = (b"root: Exception while sending command.", b"py4j.")


def alive(pids: list[int]) -> list[int]:
    found = []
    for pid in pids:
        try:
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
        except psutil.NoSuchProcess:
            pass
    return found


@pytest.mark.spark
@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.timeout(400)  # two JVMs start one after the other
def test_kill_9_of_a_member_ends_its_jvm_and_python_workers_and_leaves_no_file() -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    member = subprocess.Popen(
        [sys.executable, str(SCRIPT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert member.stdin is not None
    assert member.stdout is not None
    assert member.stderr is not None
    try:
        line = member.stdout.readline()
        assert line, member.stderr.read().decode()
        told = json.loads(line)
        assert len(alive(told["pids"])) >= 3, "a JVM, a daemon, a worker"
    finally:
        member.kill()
        _, said = member.communicate()
    give_up = time.monotonic() + GRACE_S
    while (alive(told["pids"]) or os.path.exists(told["directory"])) and time.monotonic() < give_up:
        time.sleep(0.05)
    assert alive(told["pids"]) == []
    assert not os.path.exists(told["directory"])
    lines = [line for line in said.splitlines() if line and not line.startswith(UNDER_WAY)]
    ended = b"skerry.spark: Spark's process has ended (it ran out of memory: raise spark.driver.memory in the member's "
    assert lines == [ended + b"spark.conf) and is started again"], "Spark writes to its own log, not to the terminal"
