"""Ports for members that listen later: free, and nobody's who asks for any."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import ExitStack

import pytest

from skerry.testing.ports import HOST, free_ports


def test_they_are_free_and_differ() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    with ExitStack() as stack:
        for port in ports:
            stack.enter_context(socket.create_server((HOST, port)))


def test_the_system_gives_them_to_nobody() -> None:
    with ExitStack() as stack:
        given = [stack.enter_context(socket.create_server((HOST, 0))).getsockname()[1] for _ in range(50)]
    if min(given) < 12_000:
        pytest.skip("this system gives nearly all ports")
    assert max(free_ports(50)) < min(given)


def test_some_in_a_row() -> None:
    ports = free_ports(5, in_a_row=True)
    assert ports == list(range(ports[0], ports[0] + 5))


def test_ports_in_use_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as stack:
        taken = {stack.enter_context(socket.create_server((HOST, port))).getsockname()[1] for port in free_ports(100)}
        monkeypatch.setattr("skerry.testing.ports._given._own", set())  # as if somebody else had them
        assert not set(free_ports(2000)) & taken


def test_no_port_is_given_twice_while_a_process_lives() -> None:
    """By chance some of so many would be the same."""
    ports = [*free_ports(5, in_a_row=True), *free_ports(500), *free_ports(500)]
    assert len(set(ports)) == len(ports)
    program = "from skerry.testing.ports import free_ports; print(*free_ports(1000))"
    others = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=100)
    given = set(map(int, others.stdout.split()))
    assert len(given) == 1000
    assert given.isdisjoint(ports)
