"""`skerry up` before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skerry.cli.main import main


def up(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["up", *arguments])


def test_the_file_is_skerry_yaml_unless_another_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = up()
    assert result.exit_code == 1
    assert result.stderr == "error: skerry.yaml: cannot be read: no such file or directory\n"
    (tmp_path / "skerry.yaml").write_text("cluster: c\nmembers: {oslo: {address: 'h:x'}}")
    assert up().stderr.startswith("error: skerry.yaml:2:27: members.oslo.address: h:x is not an address")
    assert up("other.yaml").stderr.startswith("error: other.yaml: ")


def test_a_member_that_is_not_in_the_file_is_told(tmp_path: Path) -> None:
    file = tmp_path / "skerry.yaml"
    file.write_text("cluster: c\nmembers: {oslo: {address: 'localhost'}}")
    result = up(str(file), "--member", "olso")
    assert (result.exit_code, result.stderr) == (1, "error: no member olso in cluster c; did you mean oslo?\n")
