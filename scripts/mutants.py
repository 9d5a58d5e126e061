"""Plants the mistakes of tests/mutants.toml, one at a time, in a copy of the tree: a test must fail for each."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# A mutant may make a loop endless; that is a caught mistake too.
TIMEOUT_S = 600
TESTS_FAILED = 1  # pytest's exit status; 2 and more mean that the tests did not run


def run_tests(tree: Path, tests: list[str]) -> tuple[bool, str]:
    """Did the tests pass? An error that kept them from running is no answer."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    # The copy's sources, not the installed ones.
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    try:
        ran = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return False, "the tests took too long"
    if ran.returncode not in (0, TESTS_FAILED):
        sys.exit(f"the tests did not run (status {ran.returncode}):\n{ran.stdout[-3000:]}{ran.stderr[-3000:]}")
    failed = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    # A test that hangs is ended together with its pytest, which then has no time for a summary.
    return ran.returncode == 0, failed[0][:100] if failed else "a test hung"


def plant(tree: Path, mutant: dict[str, Any]) -> None:
    source = (ROOT / mutant["file"]).read_text(encoding="utf-8")
    times = source.count(mutant["find"])
    if times != 1:
        sys.exit(f"{mutant['name']}: its text stands {times} times in {mutant['file']}, not once")
    (tree / mutant["file"]).write_text(source.replace(mutant["find"], mutant["replace"]), encoding="utf-8")


def main(wanted: list[str]) -> int:
    mutants = tomllib.loads((ROOT / "tests/mutants.toml").read_text(encoding="utf-8"))["mutant"]
    mutants = [mutant for mutant in mutants if not wanted or mutant["name"] in wanted]
    if not mutants:
        sys.exit(f"no mutant named {' '.join(wanted)}")
    survivors = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder)
        for part in ("src", "tests", "pyproject.toml"):
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy2
            copy(ROOT / part, tree / part)
        sound, failure = run_tests(tree, sorted({test for mutant in mutants for test in mutant["tests"]}))
        if not sound:
            sys.exit(f"the tests fail without any mutant: {failure}")
        for mutant in mutants:
            plant(tree, mutant)
            survived, failure = run_tests(tree, mutant["tests"])
            shutil.copy2(ROOT / mutant["file"], tree / mutant["file"])
            print(f"{'SURVIVED' if survived else 'caught  '} {mutant['name']:<40} {failure}", flush=True)
            survivors += [mutant["name"]] if survived else []
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} mutants caught")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
