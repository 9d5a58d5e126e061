"""Demos that are started in the same second keep out of each other's way: ports, files, data."""

from __future__ import annotations

import socket
import stat
import sys
import threading
from pathlib import Path

import pytest
from click import ClickException
from rich.console import Console

from skerry.cli import demo
from skerry.config import load


@pytest.fixture(autouse=True)
def first_port(monkeypatch: pytest.MonkeyPatch) -> int:
    """Ports that the system gives to nobody by itself, and that a demo of this machine's user does not begin with."""
    monkeypatch.setattr(demo, "FIRST_PORT", 17101)
    return demo.FIRST_PORT


def test_ports_that_are_claimed_are_passed_over() -> None:
    with demo.claimed_ports(3) as first:
        with demo.claimed_ports(3) as second:
            assert len({*first, *second}) == 6
        # Members can listen at what their demo has claimed.
        for port in first:
            socket.create_server(("127.0.0.1", port)).close()


def test_a_port_that_somebody_listens_at_is_passed_over() -> None:
    with demo.claimed_ports(1) as ports:
        listening = socket.create_server(("127.0.0.1", ports[0]))
    with listening, demo.claimed_ports(2) as others:
        assert ports[0] not in others


def test_no_port_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "FIRST_PORT", 65535)
    with pytest.raises(ClickException, match="no 3 free ports from 65535 on"), demo.claimed_ports(3):
        pass


def test_each_has_its_own_configuration(tmp_path: Path) -> None:
    (tmp_path / "tpch-0.1").mkdir()
    with demo.claimed_ports(3) as one, demo.claimed_ports(3) as other:
        first, url = demo.write_config(tmp_path, one, sail=True)
        second, _ = demo.write_config(tmp_path, other, sail=True)
        assert url == f"skerry://127.0.0.1:{one[0]}"
        for path, ports in ((first, one), (second, other)):
            config = load(path)
            assert [member.address for member in config.members.values()] == [f"127.0.0.1:{port}" for port in ports]
            assert config.data_root == str((tmp_path / "tpch-0.1").resolve())


def test_data_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program that makes it is a script beside the interpreter, which counts how often it ran."""
    beside = tmp_path / "bin"
    beside.mkdir()
    maker = beside / "tpchgen-cli"
    maker.write_text(f'#!/bin/sh\necho run >> "{tmp_path}/runs"\nsleep 0.2\ntouch "$5/made"\n')
    maker.chmod(maker.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "executable", str(beside / "python"))
    folder, quiet = tmp_path / "demo", Console(quiet=True)
    threads = [threading.Thread(target=demo.make_data, args=(folder, quiet)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "runs").read_text() == "run\n"
    assert [path.name for path in (folder / "tpch-0.1").iterdir()] == ["made"]
    assert [path.name for path in folder.iterdir()] == ["tpch-0.1"]


def test_a_folder_that_others_may_write_is_refused(tmp_path: Path) -> None:
    """They would decide what its members read and run."""
    folder = tmp_path / "demo"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(ClickException, match=r"demo is not yours alone; name another with --dir"):
        demo.make_data(folder, Console(quiet=True))
