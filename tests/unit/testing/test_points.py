"""Points at which `make chaos` kills or stops a member: nothing unless asked for, and each of them exists."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.points import POINTS, Where
from chaos.rounds import fault_rounds, spark_rounds
from chaos.shapes import ASKED_AT, SHAPES
from skerry.testing.points import VARIABLE
from tests.e2e.test_process_groups import KILLS as GROUP_KILLS
from tests.e2e.test_process_moves import KILLS
from tests.unit.tables.test_tables_crashes import POINTS as STORED

SOURCE = Path(__file__).resolve().parents[3] / "src" / "skerry"
REACH = """
import os
from skerry.model.points import reach
if "SKERRY_CHAOS" in os.environ:
    from skerry.testing.points import watch
    watch()
for point in "a b a b a".split():
    reach(point)
    print(point)
"""


def run(armed: Path | None) -> tuple[int, str]:
    env = {name: value for name, value in os.environ.items() if name != VARIABLE}
    env |= {"PYTHONPATH": str(SOURCE.parent)} | ({VARIABLE: str(armed)} if armed is not None else {})
    made = subprocess.run([sys.executable, "-uc", REACH], env=env, capture_output=True, text=True, timeout=100)
    return made.returncode, made.stdout.replace("\n", "")


@pytest.mark.parametrize(
    ("armed", "status", "reached"),
    [
        ("a|kill|1", -signal.SIGKILL, ""),
        ("b|kill|2", -signal.SIGKILL, "aba"),
        ("a|kill|3", -signal.SIGKILL, "abab"),
        ("a|kill|4", 0, "ababa"),
        ("c|kill|1", 0, "ababa"),
    ],
)
def test_a_process_dies_at_the_point_it_is_told(tmp_path: Path, armed: str, status: int, reached: str) -> None:
    file = tmp_path / "armed"
    file.write_text(armed)
    assert run(file) == (status, reached)
    assert file.exists() == (status == 0)


def test_nothing_happens_unless_told(tmp_path: Path) -> None:
    assert run(None) == (0, "ababa")
    assert run(tmp_path / "armed") == (0, "ababa")


def hooks_in(*parts: str) -> set[str]:
    calls = [
        call
        for part in parts
        for path in (SOURCE / part).rglob("*.py")
        for call in re.findall(r"\breach\((.*)\)", path.read_text(encoding="utf-8"))
    ]
    return {hook for call in calls for hook in re.findall(r'"([^"]+)"', call)}


def test_every_point_is_in_the_source() -> None:
    """Those of tables of our own have tests of their own, and those of moves and of group-bys that grow too."""
    moves = {point for _, point, _ in KILLS if point.startswith("move.")}
    groups = {point for _, point in GROUP_KILLS}
    folders = [each.name for each in SOURCE.iterdir() if each.is_dir() and each.name != "tables"]
    assert {point.hook for point in POINTS} - {"idle"} == hooks_in(*folders) - {"table.made"} - moves - groups
    assert hooks_in("tables") - moves == {*STORED, "delta.checkpoint"}
    assert {hook for hook in hooks_in("tables", *folders) if hook.startswith("move.")} == moves


def test_twenty_points_four_shapes_both_signals() -> None:
    rounds = fault_rounds()
    names = {each.name for each in rounds}
    assert len({point.name for point in POINTS}) == 20
    assert len(SHAPES) == 4
    assert {f"{action}@{p.name}@{s.name}" for action in ("kill", "stop") for p in POINTS for s in SHAPES} <= names
    assert len(names) == len(rounds)
    assert not names & {each.name for each in spark_rounds()}


def test_a_round_hits_the_same_member_when_run_alone() -> None:
    for each in fault_rounds():
        victim = each.victim(7)
        assert victim == each.victim(7)
        assert (victim == ASKED_AT) == (each.point.where is Where.INITIATOR)
