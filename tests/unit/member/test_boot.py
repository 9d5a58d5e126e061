"""A member that anyone on the network could connect to does not start."""

from __future__ import annotations

import pytest

from skerry.config import parse
from skerry.config.exposed import refuse_exposed
from skerry.member.boot import run_member
from skerry.model.errors import ConfigError

TLS = "tls: {certificate: c.pem, key: k.pem, authority: a.pem}"
GUARDED = TLS.replace("}", ", client_certificates: true}")


def test_beyond_loopback_without_tls_is_refused_before_anything_starts() -> None:
    config = parse("cluster: c\nmembers: {oslo: {address: '192.0.2.1:7101'}}")
    with pytest.raises(ConfigError) as caught:
        run_member(config, "oslo")
    assert caught.value.message == "member oslo listens at 192.0.2.1:7101, beyond loopback, without TLS"
    assert "tls: {certificate, key, authority}" in caught.value.suggestion
    assert "insecure: true" in caught.value.suggestion


@pytest.mark.parametrize(
    ("address", "more", "is_refused"),
    [
        ("127.0.0.1:1", "", False),
        ("127.8.9.1:1", "", False),
        ("[::1]:1", "", False),
        ("localhost:1", "", False),
        ("10.0.0.1:1", "", True),
        ("[2001:db8::1]:1", "", True),
        ("db.example:1", "", True),
        ("localhost.example:1", "", True),
        ("db.example:1", "insecure: true", False),
        ("db.example:1", GUARDED, False),
    ],
)
def test_what_counts_as_beyond_loopback(address: str, more: str, is_refused: bool) -> None:
    for text in (
        f"cluster: c\nmembers: {{oslo: {{address: '{address}'}}}}\n{more}",
        f"cluster: c\nmembers: {{oslo: {{address: '{address}'{', ' if more else ''}{more}}}}}",
    ):
        config = parse(text)
        if is_refused:
            with pytest.raises(ConfigError, match="beyond loopback"):
                refuse_exposed(config, config.member("oslo"))
        else:
            refuse_exposed(config, config.member("oslo"))


@pytest.mark.parametrize(
    ("more", "is_refused"),
    [
        (TLS, True),
        (GUARDED, False),
        (f"{TLS}\naccess: open", False),
        (f"{TLS}\naccess: {{users: users}}", False),
        (f"{TLS}\naccess: {{certificates: true}}", False),
        ("access: open", True),  # but without TLS
        ("access: open\ninsecure: true", False),
        ("insecure: true", False),
    ],
)
def test_beyond_loopback_somebody_says_who_may_ask(more: str, is_refused: bool) -> None:
    for address in ("10.0.0.1:1", "127.0.0.1:1"):
        config = parse(f"cluster: c\nmembers: {{oslo: {{address: '{address}'}}}}\n{more}")
        if is_refused and address.startswith("10."):
            with pytest.raises(ConfigError, match="beyond loopback") as caught:
                refuse_exposed(config, config.member("oslo"))
            assert ("access: open" in caught.value.suggestion) == (more == TLS)
        else:
            refuse_exposed(config, config.member("oslo"))
