"""Plants the mistakes of tests/mutants.toml, one at a time, in a copy of the tree: a test or the simulation must find
each. Prints a table: the mutant, what caught it, with which seed, after how many seconds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
# A mutant may make a test endless; that is a caught mistake too. The simulation ends endless loops by itself.
TIMEOUT_S = 600
SIMULATION_TIMEOUT_S = 3600
# How a mutant says how many seeds, and of which simulation.
SIMULATIONS: dict[str, tuple[str, ...]] = {
    "seeds": (),
    "tables_seeds": ("--tables",),
    "groupby_seeds": ("--groupby",),
}
FAILED = 1  # exit status of pytest and of the simulation; 2 and more mean that they did not run
PARTS = ("src", "sim", "tests", "bench", "chaos", "soak", "fuzz", "metamorphic", "scripts", "pyproject.toml")


class Verdict(NamedTuple):
    is_caught: bool
    by: str
    where: str  # the seed, or the test


def run(tree: Path, command: list[str], timeout_s: float = TIMEOUT_S) -> subprocess.CompletedProcess[str] | None:
    """None when it took too long. An error that kept it from running is no answer."""
    # The copy's sources, not the installed ones.
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    try:
        ran = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return None
    if ran.returncode not in (0, FAILED):
        sys.exit(f"{' '.join(command)}: status {ran.returncode}:\n{ran.stdout[-3000:]}{ran.stderr[-3000:]}")
    return ran


def run_tests(tree: Path, tests: list[str]) -> Verdict:
    options = ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=mutants"]
    ran = run(tree, [sys.executable, "-m", "pytest", *options, *tests])
    if ran is None:
        return Verdict(True, "test", "took too long")
    if " during collection" in ran.stdout:
        sys.exit(f"the tests did not run:\n{ran.stdout[-3000:]}")
    if ran.returncode == 0:
        return Verdict(False, "", "")
    failed = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED tests", "ERROR tests"))]
    # A test that hangs is ended together with its pytest, which then has no time for a summary.
    test = failed[0].partition(" - ")[0].split("/")[-1] if failed else "a test hung"
    kind = "property test" if "property" in "".join(failed) else "test"
    return Verdict(True, kind, test)


def run_simulation(tree: Path, seeds: int, *options: str) -> Verdict:
    command = [sys.executable, "-m", "sim", *options, "--seeds", str(seeds), "--stop-at-first"]
    ran = run(tree, command, SIMULATION_TIMEOUT_S)
    if ran is None:
        sys.exit(f"{seeds} seeds took longer than {SIMULATION_TIMEOUT_S} s: this machine is too busy to tell")
    found = re.search(r"^seed (\d+): (.*)$", ran.stdout, re.M)
    if ran.returncode != 0 and found is None:
        sys.exit(f"the simulation did not run:\n{ran.stdout[-3000:]}{ran.stderr[-3000:]}")
    where = f"seed {found[1]}: {found[2]}" if found else ""
    return Verdict(found is not None, "simulation", where)


def judge(tree: Path, mutant: dict[str, Any]) -> Verdict:
    """By one of the simulations, if it says how many seeds; by its tests otherwise."""
    for name, options in SIMULATIONS.items():
        if name in mutant:
            return run_simulation(tree, mutant[name], *options)
    return run_tests(tree, mutant["tests"])


def plant(tree: Path, mutant: dict[str, Any]) -> None:
    source = (ROOT / mutant["file"]).read_text(encoding="utf-8")
    times = source.count(mutant["find"])
    if times != 1:
        sys.exit(f"{mutant['name']}: its text stands {times} times in {mutant['file']}, not once")
    (tree / mutant["file"]).write_text(source.replace(mutant["find"], mutant["replace"]), encoding="utf-8")


def check_sound(tree: Path, mutants: list[dict[str, Any]]) -> None:
    """Without a mutant nothing may fail, or the table would mean nothing."""
    tests = sorted({test for mutant in mutants for test in mutant.get("tests", ())})
    verdicts = [run_tests(tree, tests)] if tests else []
    for name, options in SIMULATIONS.items():
        seeds = max(mutant.get(name, 0) for mutant in mutants)
        verdicts += [run_simulation(tree, seeds, *options)] if seeds else []
    for verdict in verdicts:
        if verdict.is_caught:
            sys.exit(f"the {verdict.by} fails without any mutant: {verdict.where}")


def main(wanted: list[str]) -> int:
    mutants = tomllib.loads((ROOT / "tests/mutants.toml").read_text(encoding="utf-8"))["mutant"]
    mutants = [mutant for mutant in mutants if not wanted or mutant["name"] in wanted]
    if not mutants:
        sys.exit(f"no mutant named {' '.join(wanted)}")
    survivors = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder)
        for part in PARTS:
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy2
            copy(ROOT / part, tree / part)
        check_sound(tree, mutants)
        print(f"{'mutant':<40} {'caught by':<14} {'seconds':>7}  with")
        for mutant in mutants:
            plant(tree, mutant)
            began = time.monotonic()
            verdict = judge(tree, mutant)
            shutil.copy2(ROOT / mutant["file"], tree / mutant["file"])
            survivors += [] if verdict.is_caught else [mutant["name"]]
            by = verdict.by if verdict.is_caught else "SURVIVED"
            print(f"{mutant['name']:<40} {by:<14} {time.monotonic() - began:7.1f}  {verdict.where[:90]}", flush=True)
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} mutants caught")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
