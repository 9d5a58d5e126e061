from __future__ import annotations

import pytest

from skerry.client.url import Target, parse_url
from skerry.model.config import TlsFiles
from skerry.model.credentials import Credentials
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
        ("skerry://anna@oslo:1", Target("oslo", 1, credentials=Credentials("anna"))),
        ("skerry://a%40b:p%2F%3A%25@oslo:1/x", Target("oslo", 1, "x", credentials=Credentials("a@b", "p/:%"))),
        ("anna:%C3%A5@oslo:1", Target("oslo", 1, credentials=Credentials("anna", "å"))),
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


def test_a_password_is_not_shown() -> None:
    target = parse_url("skerry://anna:secret@oslo:1")
    assert target.credentials.password == "secret"
    assert "secret" not in f"{target} {target!r} {target.credentials}"
    assert "anna" in repr(target)


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
        ("skerry://me:secret@localhost:7101/a/b", "not one schema"),
        ("skerry://me:secret@localhost:x", "its port is no number"),
        ("skerry://me:secret/x@localhost", "its port is no number"),
        ("skerry://me:12/secret@localhost", "write / as %2F"),
        ("http://me:sec:ret@secret@localhost", "the scheme is"),
        ("skerry://localhost:7101/a/b", "not one schema"),
        ("skerry://localhost:7101?a=1", "nothing may follow"),
        ("", "names no host"),
        ("nonsense", "neither skerry:// nor a port"),
        ("skerry:/x", "neither skerry:// nor a port"),
        ("me:secret@localhost", "neither skerry:// nor a port"),
    ],
)
def test_says_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says) as caught:
        parse_url(text)
    assert "skerry://host:port/schema" in caught.value.message
    assert "secret" not in caught.value.message
