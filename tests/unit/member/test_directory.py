"""A member's own directory, below one where anybody may make anything."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from skerry.member.directory import Directory, remove_abandoned


@pytest.fixture
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def killed(folder: Path) -> Path:
    """What a member leaves that could not clean up."""
    folder.mkdir()
    (folder / "lock").touch()
    (folder / "spool").touch()
    return folder


def test_it_is_the_users_alone_and_goes_with_its_member(temp: Path) -> None:
    directory = Directory("oslo")
    assert stat.S_IMODE(os.stat(directory.path).st_mode) == 0o700
    remove_abandoned()  # a member that starts beside it
    assert os.listdir(directory.path) == ["lock"]
    directory.remove()
    assert not os.listdir(temp)


def test_what_a_killed_member_left_is_removed(temp: Path) -> None:
    killed(temp / "skerry-member-oslo-a")
    (temp / "skerry-member-oslo-b").mkdir()  # only just being made
    remove_abandoned()
    assert os.listdir(temp) == ["skerry-member-oslo-b"]


def test_a_name_that_leads_elsewhere_is_left_alone(temp: Path, tmp_path: Path) -> None:
    elsewhere = killed(tmp_path / "elsewhere")
    (temp / "skerry-member-a").symlink_to(elsewhere)
    own = temp / "skerry-member-b"
    own.mkdir()
    (own / "lock").symlink_to(elsewhere / "lock")
    remove_abandoned()
    assert sorted(os.listdir(elsewhere)) == ["lock", "spool"]
    assert os.listdir(own) == ["lock"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_directory_of_another_user_is_left_alone(temp: Path) -> None:
    theirs = killed(temp / "skerry-member-theirs")
    os.chown(theirs, 65534, -1)
    remove_abandoned()
    assert sorted(os.listdir(theirs)) == ["lock", "spool"]
