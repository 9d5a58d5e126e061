"""Runs the engine's contract over releases of PySpark: embedded, on a standalone cluster, and by Spark Connect.

Each release goes to build/sparks, in front of the locked one; all else is as it is locked. Prints a table and why tests
failed. `python -m scripts.sparks 4.1 4.3` runs these alone. Fails if a release fails that pyproject.toml allows.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib.metadata import distributions
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from packaging.requirements import Requirement

from scripts.uv_settings import uv_settings

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build/sparks"
RELEASES = ("4.0", "4.1", "4.2", "4.3")
KINDS = ("spark", "standalone", "connect")
TESTS = "tests/integration/spark"
REASON_CHARS = 150
# PySpark 4.0 and 4.1 leave sockets for the garbage collector to close, and their logger calls what is deprecated.
WARNINGS = ("ResourceWarning", "DeprecationWarning", "pytest.PytestUnraisableExceptionWarning")


class Failure(NamedTuple):
    test: str
    reason: str


class Outcome(NamedTuple):
    passed: int
    failures: list[Failure]

    def __str__(self) -> str:
        return f"{self.passed} passed" + (f", {len(self.failures)} failed" if self.failures else "")


def install(release: str) -> tuple[Path, str]:
    """The latest patch of the release: its folder, and its version."""
    folder = FOLDER / release
    if not folder.exists():
        pip = subprocess.run(
            [sys.executable, "-m", "pip", "config", "list"], stdout=subprocess.PIPE, text=True, check=True
        )
        uv = [ROOT / ".venv/bin/uv", "pip", "install", "--quiet", "--python", sys.executable, "--target", folder]
        environment = os.environ | uv_settings(pip.stdout, os.environ)
        subprocess.run([*uv, f"pyspark=={release}.*"], env=environment, check=True)
    found = next(each for each in distributions(name="pyspark", path=[str(folder)]))
    return folder, found.version


def run(folder: Path, kind: str) -> Outcome:
    report = folder.with_name(f"{folder.name}-{kind}.xml")
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-m", f"{kind} and not e2e", TESTS]
    command += [word for name in WARNINGS for word in ("-W", f"ignore::{name}")]
    with report.with_suffix(".log").open("wb") as log:
        status = subprocess.run(
            [*command, f"--junitxml={report}"],
            cwd=ROOT,
            stdout=log,
            stderr=log,
            env=os.environ | {"PYTHONPATH": str(folder), "SPARKS": "all"},
        ).returncode
    if not report.exists():
        return Outcome(0, [Failure("the run itself", f"exit status {status}, see {log.name}")])
    return outcome_of(report.read_text(encoding="utf-8"))


def outcome_of(report: str) -> Outcome:
    """What pytest's report says."""
    passed, failures = 0, []
    for case in ElementTree.fromstring(report).iter("testcase"):
        failed = [each for each in case if each.tag in ("failure", "error")]
        if failed:
            lines = [line for line in failed[0].get("message", "").splitlines() if line.strip()]
            failures.append(Failure(case.get("name", ""), (lines or ["?"])[0][:REASON_CHARS]))
        elif case.find("skipped") is None:
            passed += 1
    return Outcome(passed, failures)


def allowed(version: str) -> bool:
    """By the project's own requirement."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = map(Requirement, project["optional-dependencies"]["member"])
    return next(each for each in wanted if each.name == "pyspark").specifier.contains(version)


def main(releases: list[str]) -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    print(f"{'pyspark':10}" + "".join(f"{kind:24}" for kind in KINDS) + "allowed", flush=True)
    status = 0
    told: list[str] = []
    for release in releases or RELEASES:
        folder, version = install(release)
        outcomes = {kind: run(folder, kind) for kind in KINDS}
        is_allowed = allowed(version)
        row = "".join(f"{outcome!s:24}" for outcome in outcomes.values())
        print(f"{version:10}{row}{'yes' if is_allowed else 'no'}", flush=True)
        for kind, outcome in outcomes.items():
            told += [f"{version} {kind}: {failure.test}: {failure.reason}" for failure in outcome.failures]
            if is_allowed and (outcome.failures or not outcome.passed):
                status = 1
    print("", *told, sep="\n")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
