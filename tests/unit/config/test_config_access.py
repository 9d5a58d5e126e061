"""`access:` in skerry.yaml: what it may say, and what `skerry check` tells of the files that it names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from skerry.cli.main import main
from skerry.config import parse
from skerry.model.config import AccessConfig, TokensConfig
from skerry.model.errors import ConfigError
from tests.unit.access.access_worlds import keys_file, users_file

BASE = "cluster: c\nmembers: {oslo: {address: 'localhost:1'}}\n"
TLS = "tls: {certificate: c.pem, key: k.pem, authority: a.pem}\n"


def access(text: str, more: str = "") -> AccessConfig:
    return parse(f"{BASE}{more}access: {text}\n", base_dir="/etc/skerry").access


def test_what_it_may_say() -> None:
    assert parse(BASE).access == AccessConfig()
    assert parse(BASE).access.is_open
    assert access("open") == AccessConfig(is_written=True)
    assert access("open").is_open
    whole = access(
        "{users: users, tokens: {keys: k.json, issuer: i, audience: a, name_claim: email}, "
        "certificates: true, rules: /r.yaml}",
        TLS,
    )
    tokens = TokensConfig("/etc/skerry/k.json", "i", "a", "email")
    assert whole == AccessConfig("/etc/skerry/users", tokens, True, "/r.yaml", is_written=True)
    assert not whole.is_open
    assert access("{rules: r}").is_open  # with rules for everybody
    assert whole.ways == "user and password or a token or a client certificate"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("closed", "3:9: access: write open, or a mapping"),
        ("[users]", "3:9: access: expected text, not a list"),
        ("{}", "3:1: access: says of nobody who it is"),
        ("{certificates: false}", "3:1: access: says of nobody who it is"),
        ("{certificates: true}", "3:24: access.certificates: clients show a certificate only to members with tls"),
        ("{user: x}", "3:10: access.user: unknown key; did you mean users?"),
        ("{users: 's3://x/y'}", "3:17: access.users: s3://x/y is not a path"),
        ("{tokens: {keys: k}}", "3:10: access.tokens.issuer: missing"),
        ("{tokens: {keys: k, issuer: ' ', audience: a}}", "3:36: access.tokens.issuer: is empty"),
    ],
)
def test_what_it_may_not_say(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        access(text)
    assert f"skerry.yaml:{says}" in caught.value.message


def check(folder: Path) -> list[str]:
    return CliRunner().invoke(main, ["check", str(folder / "skerry.yaml")]).output.splitlines()


def test_check_looks_into_the_files(tmp_path: Path) -> None:
    users, tokens = users_file(tmp_path, anna="fjord"), keys_file(tmp_path)
    text = f"{BASE}access:\n  users: users\n  tokens: {{keys: {tokens.keys}, issuer: i, audience: a}}\n"
    (tmp_path / "skerry.yaml").write_text(text)
    assert check(tmp_path)[-1].endswith("ok: cluster c, 1 member, 0 tables, 0 links")
    with open(users, "a") as file:
        file.write("bob\neve:plain\n")
    os.chmod(tokens.keys, 0o666)
    file_name = tmp_path / "skerry.yaml"
    assert check(tmp_path) == [
        f"{file_name}:4:10: access.users: {users}:2: expected name:hash (`skerry user add` writes it)",
        f"{file_name}:4:10: access.users: {users}:3: the password's hash has the form scrypt$n$r$p$salt$hash",
        f"{file_name}:5:18: access.tokens.keys: {tokens.keys}: others may write it (chmod 644 {tokens.keys})",
    ]
    os.unlink(users)
    assert "access.users: " in check(tmp_path)[0]
    assert "no such file" in check(tmp_path)[0]
