"""Environments that hold the built wheel and what its metadata asks for, and nothing else: no network is needed.

The wheel is installed by pip. What it requires is linked from the environment that the tests run in.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
# Older releases of what others have beside the client, put there by scripts/setup.
COMPAT = Path(sys.prefix) / "compat"
WAIT_S = 240.0

pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--no-input")


def build_wheel(folder: Path) -> Path:
    """Built from a copy: setuptools leaves folders where it works."""
    source = folder / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    made = run(*pip, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", folder, source)
    assert made.returncode == 0, made.stderr
    (wheel,) = folder.glob("skerry-*.whl")
    return wheel


class Environment:
    """A virtual environment with the wheel, some of its extras, and releases of other packages that come first."""

    def __init__(self, folder: Path, wheel: Path, extras: Iterable[str] = (), others: Path | None = None) -> None:
        self._folder = folder
        made = run(sys.executable, "-m", "venv", "--without-pip", folder)
        assert made.returncode == 0, made.stderr
        self.python = folder / "bin" / "python"
        made = run(*pip, "--python", self.python, "install", "--no-deps", "--no-index", "--no-compile", wheel)
        assert made.returncode == 0, made.stderr
        self.packages = Path(sysconfig.get_path("purelib", "venv", vars={"base": str(folder), "platbase": str(folder)}))
        if others is not None:
            assert others.is_dir(), f"there is no {others}: make setup"
            for entry in others.iterdir():
                self._link(entry)
        (own,) = self.packages.glob("skerry-*.dist-info")
        self.linked = {"skerry"}
        for each in required(PathDistribution(own), set(extras), self.linked):
            for entry in _top_entries(each):
                self._link(entry)

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """A Python program, alone: neither this project's folders nor the user's."""
        return run(self.python, "-I", *arguments, cwd=self._folder)

    def command(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """The `skerry` command."""
        return run(self._folder / "bin" / "skerry", *arguments, cwd=self._folder)

    def _link(self, entry: Path) -> None:
        link = self.packages / entry.name
        if not link.exists() and not self._is_replaced(entry.name):
            link.symlink_to(entry)

    def _is_replaced(self, name: str) -> bool:
        """Whether this is the metadata of a package that is here in another release."""
        stem = name.partition("-")[0].lower()
        return name.endswith(".dist-info") and any(
            each.name.partition("-")[0].lower() == stem for each in self.packages.glob("*.dist-info")
        )


def required(own: Distribution, extras: set[str], seen: set[str]) -> Iterator[Distribution]:
    """All that a distribution's metadata asks for, directly or not; `seen` gets the names."""
    for text in own.requires or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is not None and not any(marker.evaluate({"extra": extra}) for extra in extras or {""}):
            continue
        name = canonicalize_name(requirement.name)
        if name in seen:
            continue
        seen.add(name)
        found = distribution(name)
        yield found
        yield from required(found, set(requirement.extras), seen)


def run(*command: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_"))}
    return subprocess.run(
        [str(each) for each in command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=WAIT_S
    )


def _top_entries(found: Distribution) -> set[Path]:
    """Folders and files of a distribution in site-packages; commands lie elsewhere."""
    names = {path.parts[0] for path in found.files or () if path.parts[0] not in ("..", "__pycache__")}
    return {Path(str(found.locate_file(name))) for name in names}
