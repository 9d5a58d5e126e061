"""A tenth of `make chaos`: members in network namespaces, killed, stopped and cut off from each other."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.net import why_not

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.sail, pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(1800)]


def test_a_tenth_of_the_rounds_has_no_violation() -> None:
    if reason := why_not():
        pytest.skip(reason)
    made = subprocess.run([sys.executable, "-m", "chaos", "--tenth"], cwd=ROOT, capture_output=True, text=True)
    last = made.stdout.strip().rpartition("\n")[2]
    rounds = re.fullmatch(r"(\d+) rounds, 0 violations", last)
    assert made.returncode == 0, made.stdout + made.stderr
    assert rounds is not None, made.stdout
    assert int(rounds[1]) >= 16
