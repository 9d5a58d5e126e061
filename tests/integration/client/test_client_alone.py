"""The wheel in environments without a member's packages, beside older releases of others, asks members on Sail."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skerry.testing.cluster import LocalCluster
from tests.integration.client.environments import COMPAT, Environment, build_wheel
from tests.integration.client.kinds import KINDS
from tests.integration.member.member_sites import FEW, TICKS

pytestmark = pytest.mark.sail

PROGRAMS = Path(__file__).parent / "programs"
VALUES = repr(tuple(values[0] for _, values in KINDS.values()))
SHARED = ["bergen", "oslo", "tromso"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def alone(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """`pip install skerry`."""
    return Environment(tmp_path_factory.mktemp("alone") / "env", wheel)


@pytest.fixture(scope="module")
def beside_others(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Environment]:
    """`pip install "skerry[sqlalchemy]"` where sqlglot is of 28, and SQLAlchemy of the release that is asked for."""

    def make(release: str) -> Environment:
        folder = tmp_path_factory.mktemp("others")
        others = COMPAT
        if release != "1.4":
            others = folder / "others"
            others.mkdir()
            for entry in COMPAT.glob("sqlglot*"):
                (others / entry.name).symlink_to(entry)
        return Environment(folder / "env", wheel, ["sqlalchemy"], others)

    return make


def url(cluster: LocalCluster) -> str:
    return f"skerry://{cluster.config.member('oslo').address}"


def said(environment: Environment, program: str, *arguments: str) -> dict[str, Any]:
    ran = environment.run("-W", "error", PROGRAMS / program, *arguments)
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr
    answers: dict[str, Any] = json.loads(ran.stdout)
    return answers


def test_the_client_alone_asks_a_member(alone: Environment, cluster: LocalCluster) -> None:
    assert alone.linked >= {"click", "msgspec", "prompt-toolkit", "pyarrow", "rich", "xxhash"}
    answers = said(alone, "asks.py", url(cluster))
    assert answers["found"] == []
    assert Path(answers["place"]).is_relative_to(alone.packages)
    assert answers["count"] == [3 * TICKS]
    assert answers["row"] == VALUES
    assert answers["types"][:3] == ["boolean", "int", "bigint"]
    assert answers["arrow"] == [str(arrow) for arrow, _ in KINDS.values()]
    assert answers["prepared"] == [["oslo 5"]]
    assert "bigint is expected" in answers["refused"]
    assert answers["without_pandas"] == "fetch_pandas needs pandas: pip install pandas"
    assert answers["members"] == ["bergen", "kiosk", "oslo", "tromso"]
    assert answers["asyncio"] == [[0], [1], [2]]


@pytest.mark.parametrize("release", ["1.4", "2"])
def test_the_dialect_beside_older_releases_of_others(
    beside_others: Callable[[str], Environment], cluster: LocalCluster, release: str
) -> None:
    answers = said(beside_others(release), "asks_sqlalchemy.py", url(cluster) + "/oslo")
    assert answers["sqlalchemy"].startswith(f"{release}.")
    assert answers["sqlglot"].startswith("28.")
    assert answers["parsed"] == "SELECT a FROM b"
    assert answers["schemas"] == ["bergen", "default", "kiosk", "oslo", "tromso"]
    assert answers["tables"] == answers["reflected"] == ["few", "kinds", "ticks"]
    assert answers["at_bergen"] == ["few", "ticks"]
    assert answers["has"] == [True, False, False]
    assert answers["missing"] == "none"
    assert answers["columns"]["decimal"] == "DECIMAL(precision=10, scale=2)"
    assert answers["columns"]["timestamp"] == "DateTime(timezone=True)"
    assert answers["columns"]["double"] == ("FLOAT()" if release == "1.4" else "DOUBLE()")
    assert answers["keys"] == [0, [], []]
    assert answers["row"] == VALUES
    assert answers["page"] == [97, 96, 95]
    assert answers["among"] == [1, 3]
    assert answers["text"] == "oslo 5"
    assert answers["casts"] == ["4", 12, 1.5]
    assert answers["levels"] == [["high", 49], ["low", 51]]
    assert answers["default_schema"] == "oslo"
    assert "nothing" in answers["refused"]
    assert answers["after"] == FEW - 1


def test_the_command_line_alone(alone: Environment, cluster: LocalCluster) -> None:
    address = url(cluster)
    asked = alone.command("sql", address, "--format", "csv", "SELECT max(id) AS most FROM few")
    assert (asked.returncode, asked.stdout) == (0, f"most\n{FEW - 1}\n"), asked.stderr
    explained = alone.command("explain", address, "SELECT count(*) FROM ticks")
    assert explained.returncode == 0, explained.stderr
    assert "ticks" in explained.stdout
    submitted = alone.command("submit", address, "SELECT max(id) AS most FROM few")
    assert submitted.returncode == 0, submitted.stderr
    query = submitted.stdout.split()[-1]
    attached = alone.command("attach", address, query, "--format", "csv")
    assert (attached.returncode, attached.stdout) == (0, f"most\n{FEW - 1}\n"), attached.stderr
    listed = alone.command("ps", address)
    assert listed.returncode == 0, listed.stderr
    assert "SELECT max(id) AS most FROM few" in listed.stdout
    cancelled = alone.command("cancel", address, query)
    assert cancelled.returncode == 0, cancelled.stderr


@pytest.mark.parametrize("command", ["up", "check", "demo"])
def test_commands_of_members_say_what_they_need(alone: Environment, command: str) -> None:
    ran = alone.command(command)
    assert (ran.returncode, ran.stdout) == (1, "")
    (line,) = ran.stderr.splitlines()
    assert f"skerry {command} needs the member's packages" in line
    assert 'pip install "skerry[member]"' in line
