"""`skerry up` before anything is started, and when it is told to stop."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
from click.testing import CliRunner, Result

import skerry.cli.up
from skerry.cli.main import main
from skerry.cli.processes import Members


def up(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["up", *arguments])


def test_the_file_is_skerry_yaml_unless_another_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = up()
    assert result.exit_code == 1
    error, hint = result.stderr.splitlines()
    assert error == "error: skerry.yaml: cannot be read: no such file or directory"
    assert hint == "hint: name the file, or go to the folder that has it"
    (tmp_path / "skerry.yaml").write_text("cluster: c\nmembers: {oslo: {address: 'h:x'}}")
    assert up().stderr.startswith("error: skerry.yaml:2:27: members.oslo.address: h:x is not an address")
    assert up("other.yaml").stderr.startswith("error: other.yaml: ")


def test_a_member_that_is_not_in_the_file_is_told(tmp_path: Path) -> None:
    file = tmp_path / "skerry.yaml"
    file.write_text("cluster: c\nmembers: {oslo: {address: 'localhost'}}")
    result = up(str(file), "--member", "olso")
    assert (result.exit_code, result.stderr) == (1, "error: no member olso in cluster c; did you mean oslo?\n")


class Waits:
    """A member that waits for its queries: it ends when it is told a second time."""

    def __init__(self, number: signal.Signals) -> None:
        self.told: list[str] = []
        self._number = number

    def stop(self) -> None:
        self.told.append("stop")

    def kill(self) -> None:
        self.told.append("kill")

    def wait(self, timeout_s: float) -> None:
        if len(self.told) == 1:
            signal.raise_signal(self._number)


@pytest.fixture
def signals() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_tells_the_members_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    member = Waits(number)

    class Told(Members):
        def __enter__(self) -> Self:
            self.processes = [member]  # type: ignore[list-item]
            return self

        def wait_ready(self) -> None:
            signal.raise_signal(number)

    monkeypatch.setattr(skerry.cli.up, "Members", Told)
    file = tmp_path / "skerry.yaml"
    file.write_text("cluster: c\nmembers: {oslo: {address: 'localhost'}}")
    assert up(str(file)).exit_code == 0
    assert member.told == ["stop", "stop"]


def test_a_secret_that_another_host_has_is_not_made_here(tmp_path: Path) -> None:
    file, secret = tmp_path / "skerry.yaml", tmp_path / "skerry.secret"
    members = "{oslo: {address: '10.0.0.1:7101', role: lite}, bergen: {address: '10.0.0.2:7101'}}"
    file.write_text(f"cluster: c\ninsecure: true\nmembers: {members}")
    result = up(str(file), "--member", "oslo")
    assert result.exit_code == 1
    assert f"error: secret: {secret} cannot be read: no such file" in result.stderr
    assert "copy the file from a host" in result.stderr
    assert not secret.exists()
    made = CliRunner().invoke(main, ["secret", str(file)])
    assert made.output == f"{secret}: made; copy it to every host of the cluster\n"
    text = secret.read_text()
    again = CliRunner().invoke(main, ["secret", str(file)])
    assert (again.exit_code, secret.read_text()) == (0, text)
    secret.chmod(0o644)
    refused = up(str(file), "--member", "oslo").stderr
    assert f"{secret} is open to others (mode 644)\nhint: chmod 600 {secret}" in refused
    checked = CliRunner().invoke(main, ["check", str(file), "--no-files"])
    assert checked.exit_code == 0, checked.output
    checked = CliRunner().invoke(main, ["check", str(file), "--member", "oslo"])
    assert f"secret: {secret} is open to others (mode 644); chmod 600 {secret}" in checked.output
