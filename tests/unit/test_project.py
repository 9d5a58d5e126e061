"""The project's own promises: locks, documents, decisions and exceptions that match the tree."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from scripts.transitions import DOCUMENT, TABLES, names_in, printed
from skerry.model.errors import BY_CODE, SkerryError
from skerry.plan.rules import NAMES

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
DECISIONS = sorted(ROOT.glob("docs/adr/*.md"))
MUTANTS = tomllib.loads((ROOT / "tests/mutants.toml").read_text(encoding="utf-8"))["mutant"]
LOCKS = sorted(ROOT.glob("requirements/*.txt"))


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_installed_release_is_the_projects() -> None:
    assert importlib.metadata.version("skerry") == PROJECT["project"]["version"]


def test_changelog_names_the_release() -> None:
    assert f"## [{PROJECT['project']['version']}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("lock", LOCKS, ids=relative)
def test_lock_pins_every_package_by_hash_and_names_no_host(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    assert "//" not in text
    packages = re.split(r"\n(?=\w)", text.strip())
    assert packages
    for package in packages:
        assert re.match(r"[\w.-]+==[\w.]+", package), package
        assert "--hash=sha256:" in package, package


def test_lock_holds_every_direct_dependency() -> None:
    locked = {match.lower() for match in re.findall(r"^([\w.-]+)==", LOCKS[0].read_text(encoding="utf-8"), re.M)}
    extras = PROJECT["project"]["optional-dependencies"].values()
    wanted = [*PROJECT["project"]["dependencies"], *(wish for extra in extras for wish in extra)]
    names = {re.match(r"[\w.-]+", wish)[0].lower().replace("_", "-") for wish in wanted}  # type: ignore[index]
    assert names - {"skerry"} <= locked


def test_sqlglot_is_the_release_whose_rendering_was_proven() -> None:
    assert f"sqlglot=={importlib.metadata.version('sqlglot')}" in PROJECT["project"]["optional-dependencies"]["member"]


def test_every_exception_from_the_pure_core_rule_is_still_needed() -> None:
    names = PROJECT["tool"]["ruff"]["lint"]["per-file-ignores"]
    assert [name for name in names if not any(ROOT.glob(name))] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=relative)
def test_links_and_paths_in_documents_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) if "//" not in link]
    paths = re.findall(r"`((?:src|tests|docs|scripts|bench|requirements)/[\w./-]+)`", text)
    missing = [link for link in links if not (document.parent / link).exists()]
    missing += [path for path in paths if not (ROOT / path).exists()]
    assert missing == []


def anchors(document: Path) -> set[str]:
    """The headings of a document as links name them."""
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=relative)
def test_links_to_headings_find_them(document: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", document.read_text(encoding="utf-8"))
    own = [
        ((document.parent / name).resolve() if name else document, anchor) for name, anchor in links if "//" not in name
    ]
    assert [(relative(target), anchor) for target, anchor in own if anchor not in anchors(target)] == []


@pytest.mark.parametrize("error", BY_CODE.values(), ids=lambda error: error.__name__)
def test_troubleshooting_tells_of_every_error(error: type[SkerryError]) -> None:
    text = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| \[?{error.code}\b.*`{error.__name__}`", text, re.MULTILINE)


def test_planning_tells_of_every_rule() -> None:
    text = (ROOT / "docs/planning.md").read_text(encoding="utf-8")
    assert [rule for rule in NAMES if f"\n| `{rule}` | " not in text] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=relative)
def test_documents_name_no_place_of_one_machine(document: Path) -> None:
    assert re.findall(r"/(?:home|root|work|Users)/\w*", document.read_text(encoding="utf-8")) == []


def test_architecture_walks_through_every_folder() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    folders = [path.parent.name for path in sorted(ROOT.glob("src/skerry/*/__init__.py"))]
    assert [folder for folder in folders if f"{folder}/" not in text] == []


def test_the_protocol_shows_every_table_of_states_as_the_code_has_it() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert sorted(names_in(text)) == sorted(TABLES)
    assert printed(text) == text, "print the tables anew: make docs"


def test_decisions_are_numbered_without_gaps() -> None:
    assert [int(path.name[:4]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))


@pytest.mark.parametrize("decision", DECISIONS, ids=relative)
def test_decision_has_context_decision_and_consequences(decision: Path) -> None:
    headings = re.findall(r"^## (.+)$", decision.read_text(encoding="utf-8"), re.M)
    assert headings == ["Context", "Decision", "Consequences"]


@pytest.mark.parametrize("name", [".ci/run", "scripts/setup"])
def test_scripts_can_be_run_and_parsed(name: str) -> None:
    assert os.access(ROOT / name, os.X_OK)
    assert subprocess.run(["bash", "-n", ROOT / name], capture_output=True).stderr == b""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant["name"])
def test_mutant_can_still_be_planted(mutant: dict[str, str]) -> None:
    assert (ROOT / mutant["file"]).read_text(encoding="utf-8").count(mutant["find"]) == 1
