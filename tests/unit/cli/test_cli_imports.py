"""Commands that only talk to a member need neither a planner nor a Spark."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import skerry
from skerry.cli.main import MEMBER_PACKAGES

CLI = Path(skerry.__file__).with_name("cli")
TALKING = ("attach", "cancel", "explain", "load", "prompt", "ps", "rebalance", "sql", "submit")
FLOORS = ("catalog", "member", "plan", "spark", "sql", "exchange")


def imported(module: str) -> set[str]:
    """What a module of cli/ imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse((CLI / f"{module}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{each.name}" for each in node.names} | {str(node.module)}
    return found


def reached(module: str) -> dict[str, set[str]]:
    """The modules of cli/ that `module` leads to, lazy imports included, with what each imports."""
    found: dict[str, set[str]] = {}
    todo = [module]
    while todo:
        name = todo.pop()
        if name not in found:
            found[name] = imported(name)
            todo += [each.split(".")[2] for each in found[name] if each.startswith("skerry.cli.")]
    return found


@pytest.mark.parametrize("command", TALKING)
def test_talking_takes_little(command: str) -> None:
    floors = {f"skerry.{floor}" for floor in FLOORS}
    for module, names in reached(command).items():
        heavy = {
            name for name in names if name.split(".")[0] in MEMBER_PACKAGES or ".".join(name.split(".")[:2]) in floors
        }
        assert not heavy, f"skerry {command} reaches cli/{module}.py"


@pytest.mark.parametrize("module", sorted(path.stem for path in CLI.glob("*.py")))
def test_no_module_of_the_commands_leads_back_to_itself(module: str) -> None:
    leads_to = {each for name in imported(module) if name.startswith("skerry.cli.") for each in [name.split(".")[2]]}
    assert not any(module in reached(each) for each in leads_to)


def test_the_packages_of_a_member_are_those_of_its_extra() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {re.match(r"[\w-]+", each)[0].lower() for each in project["optional-dependencies"]["member"]}  # type: ignore[index]
    assert {"yaml" if name == "pyyaml" else name for name in named} == set(MEMBER_PACKAGES)


@pytest.mark.parametrize("command", ["check", "demo", "up"])
def test_without_the_members_packages_one_line_says_so(command: str, tmp_path: Path) -> None:
    """A process that finds no package but those of the client."""
    code = (
        "import importlib.util, sys\n"
        f"for name in {MEMBER_PACKAGES!r}: sys.modules[name] = None\n"
        "real = importlib.util.find_spec\n"
        f"importlib.util.find_spec = lambda name, *more: None if name in {MEMBER_PACKAGES!r} else real(name, *more)\n"
        "from skerry.cli.main import main\n"
        "main()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", code, command], env=environment, cwd=tmp_path, capture_output=True)
    said = f'Error: skerry {command} needs the member\'s packages: pip install "skerry[member]"\n'
    assert (ran.returncode, ran.stdout, ran.stderr.decode()) == (1, b"", said)
