from __future__ import annotations

import pytest

from skerry.client.url import Target, parse_url
from skerry.model.config import TlsFiles
from skerry.model.errors import UserError


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("skerry://localhost:7101", Target("localhost", 7101)),
        ("skerry://localhost:7101/", Target("localhost", 7101)),
        ("skerry://10.0.0.1:7101/oslo", Target("10.0.0.1", 7101, "oslo")),
        ("skerry://[::1]:7101/o%20s", Target("::1", 7101, "o s")),
        ("skerry://oslo.example", Target("oslo.example", 7100)),
        ("skerry://[::1]/oslo", Target("::1", 7100, "oslo")),
        ("skerry+tls://oslo.example?authority=a.pem", Target("oslo.example", 7100, "", TlsFiles("a.pem"))),
        ("localhost:7101", Target("localhost", 7101)),
        ("localhost:7101/oslo", Target("localhost", 7101, "oslo")),
        ("[::1]:7101", Target("::1", 7101)),
        ("skerry://localhost/Default", Target("localhost", 7100)),
        ("skerry+tls://localhost:7101", Target("localhost", 7101, "", TlsFiles())),
        (
            "skerry+tls://localhost:7101/oslo?authority=a%20b.pem&certificate=c.pem&key=k.pem",
            Target("localhost", 7101, "oslo", TlsFiles("a b.pem", "c.pem", "k.pem")),
        ),
    ],
)
def test_reads(text: str, target: Target) -> None:
    assert parse_url(text) == target


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("authorty=x", "'authorty' is nothing that TLS needs"),
        ("certificate=x", "a certificate needs its key"),
        ("authority", "bad query field"),
    ],
)
def test_files_of_tls_that_make_no_sense_are_told(query: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        parse_url(f"skerry+tls://localhost:7101?{query}")


def test_shows_ipv6_in_brackets() -> None:
    assert str(parse_url("skerry://[::1]:7101")) == "[::1]:7101"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("http://localhost:7101", "the scheme is skerry://"),
        ("skerry://:7101", "names no host"),
        ("skerry://localhost:99999", "out of range"),
        ("skerry://localhost:x", "Port could not be cast"),
        ("skerry://[::1:7101", "Invalid IPv6"),
        ("skerry://me:secret@localhost:7101", "no user or password"),
        ("skerry://localhost:7101/a/b", "not one schema"),
        ("skerry://localhost:7101?a=1", "nothing may follow"),
        ("", "names no host"),
        ("nonsense", "neither skerry:// nor a port"),
        ("skerry:/x", "neither skerry:// nor a port"),
        ("me:secret@localhost", "no user or password"),
    ],
)
def test_says_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says) as caught:
        parse_url(text)
    assert "skerry://host:port/schema" in caught.value.message
    assert "secret" not in caught.value.message
