"""Ports for members that listen later: free, and nobody's who asks for any."""

from __future__ import annotations

import socket
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


def test_ports_in_use_are_passed_over() -> None:
    with ExitStack() as stack:
        taken = {stack.enter_context(socket.create_server((HOST, port))).getsockname()[1] for port in free_ports(100)}
        assert not any(set(free_ports(20)) & taken for _ in range(100))
