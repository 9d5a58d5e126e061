"""Addresses as they are written."""

from __future__ import annotations

import pytest

from skerry.model.errors import ConfigError, UserError
from skerry.wire.address import parse_address, temporary_socket


@pytest.mark.parametrize("text", ["", "tcp:", "oslo", "tcp:oslo", "tcp:oslo:port", "tcp:oslo:70000", "unix:", "tcp::1"])
def test_broken_addresses_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="is not an address"):
        parse_address(text)


@pytest.mark.parametrize(
    ("text", "full", "where"),
    [
        ("oslo:7101", "tcp:oslo:7101", "oslo:7101"),
        ("tcp:127.0.0.1:0", "tcp:127.0.0.1:0", "127.0.0.1:0"),
        ("tcp:[::1]:80", "tcp:[::1]:80", "[::1]:80"),
        ("unix:/run/a:1", "unix:/run/a:1", "/run/a:1"),
    ],
)
def test_addresses_are_parsed(text: str, full: str, where: str) -> None:
    assert (str(parse_address(text)), parse_address(text).where) == (full, where)


def test_a_temporary_folder_may_be_too_deep_for_sockets() -> None:
    assert temporary_socket("/tmp/skerry", "tasks.sock") == "/tmp/skerry/tasks.sock"
    with pytest.raises(ConfigError, match=r"has 120 bytes, and may have 10[37]: /ttt") as caught:
        temporary_socket("/" + 108 * "t", "tasks.sock")
    assert "TMPDIR" in caught.value.suggestion
